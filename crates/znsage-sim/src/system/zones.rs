// SPDX-License-Identifier: GPL-2.0-only
//! What logs on zones have in common: reads in flight, and zones that are reset once nobody
//! reads them any more.

use slab::Slab;

use super::media::Zoned;
use crate::event::Event;
use crate::host::task::By;
use crate::host::Host;
use crate::spec::SystemKind;
use crate::time::Ns;

/// Event: a read has ended; its number is in the lower half.
pub(super) const READ: u64 = 1 << 32;
/// Event: a zone was reset; its number is in the lower half.
pub(super) const RESET: u64 = 3 << 32;

/// A read in flight.
struct Reading {
    zone: u32,
    first: u32,
    frames: Vec<u32>,
    cpu: u32,
}

/// The reads and resets of a system.
pub(super) struct Zones {
    kind: SystemKind,
    reads: Slab<Reading>,
    /// Reads in flight, of each zone.
    readers: Vec<u32>,
    to_reset: Vec<u32>,
    resetting: u32,
}

impl Zones {
    /// Zones that nobody reads; `kind` is for messages.
    pub fn new(kind: SystemKind, zones: u32) -> Self {
        Zones {
            kind,
            reads: Slab::new(),
            readers: vec![0; zones as usize],
            to_reset: Vec::new(),
            resetting: 0,
        }
    }

    /// Reads consecutive blocks of a zone, from `first` on, into frames.
    pub fn read(&mut self, h: &mut Host, media: &mut Zoned, by: By, first: u32, frames: Vec<u32>) {
        let (zone, offset) = (first / media.zone_blocks, first % media.zone_blocks);
        let nr = frames.len() as u32;
        h.spent += h.costs.read + Ns::from(nr) * h.costs.segment;
        let done = media.dev.read(h.now, zone, offset, nr);
        let done = done.unwrap_or_else(|fault| panic!("{}: read: {fault}", self.kind));
        self.readers[zone as usize] += 1;
        let i = self.reads.insert(Reading { zone, first, frames, cpu: by.cpu });
        h.queue.push(done, Event::System(READ | i as u64));
    }

    /// A read has ended.
    pub fn read_ended(&mut self, h: &mut Host, media: &mut Zoned, i: u32) {
        let r = self.reads.remove(i as usize);
        h.interrupt(r.cpu, r.frames.len() as u32);
        for (block, frame) in (u64::from(r.first)..).zip(r.frames) {
            if media.shadow.on() {
                media.shadow.check(block, h.content(frame));
            }
            h.read_done(frame);
        }
        let readers = &mut self.readers[r.zone as usize];
        *readers -= 1;
        if *readers == 0 && !self.to_reset.is_empty() {
            h.kick();
        }
    }

    /// A zone without live blocks waits for its reset.
    pub fn is_empty(&mut self, h: &mut Host, zone: u32) {
        self.to_reset.push(zone);
        self.resetting += 1;
        h.kick();
    }

    /// Resets a waiting zone without readers; false if there is none.
    pub fn reset_one(&mut self, h: &mut Host, media: &mut Zoned) -> bool {
        let idle = |&zone: &u32| self.readers[zone as usize] == 0;
        let Some(i) = self.to_reset.iter().position(idle) else { return false };
        let zone = self.to_reset.swap_remove(i);
        h.spent += h.costs.write;
        let done = media.dev.reset(h.now, zone);
        let done = done.unwrap_or_else(|fault| panic!("{}: reset: {fault}", self.kind));
        media.cleared(zone);
        h.queue.push(done, Event::System(RESET | u64::from(zone)));
        true
    }

    /// A zone was reset.
    pub fn was_reset(&mut self) {
        self.resetting -= 1;
    }

    /// Zones that wait for a reset or are being reset.
    pub fn resetting(&self) -> u32 {
        self.resetting
    }

    /// Reads in flight.
    pub fn reads(&self) -> usize {
        self.reads.len()
    }

    /// ... of a zone.
    pub fn readers(&self, zone: u32) -> u32 {
        self.readers[zone as usize]
    }
}
