// SPDX-License-Identifier: GPL-2.0-only
//! Swap on a log-structured layer over ZNS+ (Han et al., OSDI 2021): a hybrid
//! policy either lets the device copy valid blocks (`zone_compaction`) or
//! writes new blocks over the dead ones of a full zone (`TL_open`, threaded
//! logging).
//!
//! ZNS+ was built for a file system. Here its log holds swap slots: the kernel
//! allocates them, and maps in RAM take 4 bytes per slot and 4 per block. On a
//! device without the commands, NVMe Copy does the copying and there is no
//! threaded logging.

mod check;
mod recycle;
mod state;

use slab::Slab;

use super::media::Zoned;
use super::turns::{Begun, Write};
use super::zones::{Zones, READ, RESET};
use super::{In, SlotSource, System, SystemCounters, SystemStats, Taken, Wrong};
use crate::event::Event;
use crate::host::lock::Lock;
use crate::host::page::{MAX_SLOTS, NONE};
use crate::host::task::By;
use crate::host::Host;
use crate::spec::{PublishedSpec, SpecError, SystemKind};
use crate::time::Ns;
pub use state::ZnsPlus;
use state::{Recycler, State, Writing, Zone, COMPACTED, OPENED, WRITTEN};

/// Pages of a write; a batch of reclaim fits.
const WRITE: u32 = 64;

impl ZnsPlus {
    /// The system on a device; `commands`: the device has those of ZNS+.
    pub fn new(media: Zoned, set: &PublishedSpec, commands: bool) -> Result<Self, SpecError> {
        let refuse = |key: &str, what: String| Err(SpecError { key: key.into(), what });
        let g = media.dev.geometry();
        if g.write_unit > 1 {
            let unit = g.write_unit;
            return refuse(
                "device",
                format!("zns-plus writes pages; the device takes units of {unit}"),
            );
        }
        if media.blocks() >= MAX_SLOTS {
            return refuse("size", format!("{} slots are the most", MAX_SLOTS - 1));
        }
        let nr = g.zones;
        let low = nr.div_ceil(50).max(3);
        if nr < low + 8 {
            return refuse("device", format!("{nr} zones are too few; at least {}", low + 8));
        }
        let max_open = match media.max_active() {
            0 => nr,
            n if n < 3 => {
                return refuse("device", format!("{n} open zones are too few; 3 are needed"))
            }
            n => n,
        };
        let zone = || Zone { state: State::Free, given: 0, live: 0, writes: 0 };
        let left = media.blocks() as f64 * (100.0 - set.over_provisioning) / 100.0;
        Ok(ZnsPlus {
            zones: (0..nr).map(|_| zone()).collect(),
            upkeep: Zones::new(SystemKind::ZnsPlus, nr),
            map: vec![NONE; left as usize],
            owner: vec![NONE; media.blocks() as usize],
            head: NONE,
            threaded: Default::default(),
            free: (0..nr).rev().collect(),
            open: 0,
            max_open,
            low,
            recycler: Recycler::new(commands),
            writes: Slab::new(),
            slots: Vec::new(),
            lock: Lock::default(),
            count: SystemCounters::default(),
            set: set.clone(),
            media,
        })
    }

    fn zone_of(&self, block: u32) -> u32 {
        block / self.media.zone_blocks
    }

    /// Opens a free zone for writing, unless only `kept` places are left among the open
    /// zones.
    fn take_free(&mut self, kept: u32) -> Option<u32> {
        if self.open + kept >= self.max_open {
            return None;
        }
        let zone = self.free.pop()?;
        self.zones[zone as usize].state = State::Open;
        self.open += 1;
        Some(zone)
    }

    // ---- writing

    /// Where up to `nr` pages can be written together: first block and count. The last
    /// free zone is for compaction.
    fn place(&mut self, h: &mut Host, nr: u32) -> Option<(u32, u32)> {
        let cap = self.media.zone_blocks;
        let kept = u32::from(self.recycler.head() == NONE);
        if self.head == NONE && self.free.len() as u32 > self.low {
            self.head = self.take_free(kept).unwrap_or(NONE);
        }
        if self.head == NONE {
            if let Some(t) = self.threaded.front_mut() {
                let (first, len) = t.runs.front_mut().expect("a log that is used up is closed");
                let n = nr.min(*len);
                let at = t.zone * cap + *first;
                (*first, *len) = (*first + n, *len - n);
                if *len == 0 {
                    t.runs.pop_front();
                }
                return Some((at, n));
            }
            h.kick();
            if self.free.len() <= 1 {
                return None;
            }
            self.head = self.take_free(kept)?;
        }
        let z = &mut self.zones[self.head as usize];
        let n = nr.min(cap - z.given);
        let at = self.head * cap + z.given;
        z.given += n;
        if z.given == cap {
            self.head = NONE;
        }
        Some((at, n))
    }

    fn write(&mut self, h: &mut Host, by: By, at: u32, frames: &[u32]) {
        let (zone, offset) = (self.zone_of(at), at % self.media.zone_blocks);
        let nr = frames.len() as u32;
        h.spent += h.costs.write + Ns::from(nr) * h.costs.segment;
        let z = &mut self.zones[zone as usize];
        z.writes += 1;
        z.live += nr;
        let in_place = (z.state == State::Threaded).then_some(offset);
        if self.media.shadow.on() {
            for (block, &frame) in (u64::from(at)..).zip(frames) {
                self.media.shadow.write(block, h.content(frame));
            }
        }
        let frames = frames.to_vec();
        let id = self.writes.insert(Writing { zone, offset, frames, cpu: by.cpu });
        let write = Write { zone, offset: in_place, blocks: nr, id };
        if let Some(begun) = self.media.write(h.now, write) {
            self.begun(h, begun);
        }
        // A used-up log is closed when its writes end.
        let used_up = self.threaded.front().is_some_and(|t| t.zone == zone && t.runs.is_empty());
        if used_up {
            self.threaded.pop_front();
        }
    }

    /// The device has accepted a write.
    fn begun(&mut self, h: &mut Host, Begun { id, result }: Begun) {
        let a = result.unwrap_or_else(|fault| panic!("zns-plus: write: {fault}"));
        assert_eq!(a.offset, self.writes[id].offset, "a write is where it was placed");
        h.queue.push(a.done, Event::System(WRITTEN | id as u64));
    }

    fn written(&mut self, h: &mut Host, i: usize) {
        let w = self.writes.remove(i);
        if let Some(next) = self.media.ended(h.now, w.zone) {
            self.begun(h, next);
        }
        h.interrupt(w.cpu, w.frames.len() as u32);
        self.count.host_blocks += w.frames.len() as u64;
        self.count.host_pages += w.frames.len() as u64;
        for frame in w.frames {
            h.write_done(frame, w.cpu);
        }
        self.zones[w.zone as usize].writes -= 1;
        self.check_written(h, w.zone);
    }

    /// Handles a zone whose last block is written.
    fn check_written(&mut self, h: &mut Host, zone: u32) {
        let z = &mut self.zones[zone as usize];
        if z.writes > 0 {
            return;
        }
        match z.state {
            State::Open if z.given == self.media.zone_blocks => {
                z.state = State::Full;
                self.open -= 1;
                self.check_empty(h, zone);
                h.has_room();
                h.kick();
            }
            State::Threaded if !self.threaded.iter().any(|t| t.zone == zone) => {
                self.close_log(h, zone);
            }
            _ => (),
        }
    }

    /// Marks a block dead.
    fn kill(&mut self, h: &mut Host, block: u32) {
        self.owner[block as usize] = NONE;
        let zone = self.zone_of(block);
        self.zones[zone as usize].live -= 1;
        self.check_empty(h, zone);
    }

    fn check_empty(&mut self, h: &mut Host, zone: u32) {
        let z = &self.zones[zone as usize];
        if z.state == State::Full && z.live == 0 {
            self.zones[zone as usize].state = State::Resetting;
            self.upkeep.is_empty(h, zone);
        } else if h.wants_room() {
            // There may be a zone to recycle now.
            h.kick();
        }
    }
}

impl System for ZnsPlus {
    fn slots(&self) -> SlotSource {
        SlotSource::Kernel { total: self.map.len() as u32, discards: false }
    }

    fn capacity(&self) -> u64 {
        self.media.blocks()
    }

    fn swap_out(&mut self, h: &mut Host, by: By, frames: &[u32]) -> Taken {
        let mut slots = std::mem::take(&mut self.slots);
        slots.clear();
        h.alloc_slots(by.cpu, frames.len(), &mut slots);
        let (mut done, nr) = (0, slots.len());
        while done < nr {
            let Some((at, n)) = self.place(h, (nr - done).min(WRITE as usize) as u32) else {
                break;
            };
            h.lock(&mut self.lock, Ns::from(n) * self.set.lock_hold);
            let end = done + n as usize;
            for ((&frame, &slot), block) in
                frames[done..end].iter().zip(&slots[done..end]).zip(at..)
            {
                h.begin_write(frame, slot);
                self.map[slot as usize] = block;
                self.owner[block as usize] = slot;
            }
            self.write(h, by, at, &frames[done..end]);
            done = end;
        }
        for &slot in &slots[done..] {
            h.slots.release(slot);
        }
        self.slots = slots;
        if done == frames.len() {
            Taken::All
        } else if done < nr {
            self.count.stalls += 1;
            Taken::Wait(done)
        } else {
            Taken::NoSlot(done)
        }
    }

    fn unplug(&mut self, _h: &mut Host, _by: By) {}

    fn swap_in(&mut self, h: &mut Host, by: By, pages: &[In]) {
        let cap = self.media.zone_blocks;
        let mut run: Vec<u32> = Vec::new();
        let mut first = NONE;
        for page in pages {
            let block = self.map[page.slot as usize];
            debug_assert_ne!(block, NONE, "the kernel reads no slot that is free");
            let follows =
                !run.is_empty() && block == first + run.len() as u32 && !block.is_multiple_of(cap);
            if !follows {
                if !run.is_empty() {
                    self.upkeep.read(h, &mut self.media, by, first, std::mem::take(&mut run));
                }
                first = block;
            }
            run.push(page.frame);
        }
        self.upkeep.read(h, &mut self.media, by, first, run);
    }

    fn free(&mut self, h: &mut Host, slot: u32) {
        let block = std::mem::replace(&mut self.map[slot as usize], NONE);
        self.kill(h, block);
    }

    fn event(&mut self, h: &mut Host, what: u64) {
        let i = what as u32;
        match what & !u64::from(u32::MAX) {
            WRITTEN => self.written(h, i as usize),
            READ => self.upkeep.read_ended(h, &mut self.media, i),
            COMPACTED => self.compacted(h),
            RESET => self.was_reset(h, i),
            OPENED => self.log_opened(h, i),
            _ => self.log_closed(h, i),
        }
    }

    fn work(&mut self, h: &mut Host) -> bool {
        self.upkeep.reset_one(h, &mut self.media) || self.recycle(h)
    }

    fn wind_down(&mut self, _h: &mut Host) {}

    fn stats(&self) -> SystemStats {
        SystemStats {
            count: self.count,
            map_bytes: 4 * (self.map.len() + self.owner.len()) as u64,
            device_map_bytes: 0,
            device: *self.media.dev.counters(),
            packed: None,
        }
    }

    fn check(&self, h: &Host) -> Vec<Wrong> {
        self.check_all(h)
    }
}
