// SPDX-License-Identifier: GPL-2.0-only
//! Which stream a page goes to, and which zone a stream gets
//! (acsl-technion/znswap@4d384595, `get_zns_zone_slot()` and
//! `allocate_free_zone()`).

use super::state::{State, ZoneLog};
use crate::host::page::NONE;
use crate::host::task::By;
use crate::host::Host;
use crate::spec::PolicyKind;

impl ZoneLog {
    /// The stream of a page.
    pub(super) fn place(&mut self, h: &Host, by: By, frame: u32) -> usize {
        let n = self.streams;
        (match self.set.policy {
            PolicyKind::Single => 0,
            PolicyKind::Cpu => by.cpu % n,
            PolicyKind::Process => by.task % n,
            PolicyKind::Vma => self.place_vma(h, frame),
            PolicyKind::Heat => h.heat(frame).min(n - 1),
            // Half of the streams for the first cgroup, half for the others.
            PolicyKind::Cgroup if n < 2 => 0,
            PolicyKind::Cgroup => by.cpu % (n / 2) + if by.group > 0 { n / 2 } else { 0 },
        }) as usize
    }

    fn place_vma(&mut self, h: &Host, frame: u32) -> u32 {
        let vma = h.vma_of(h.frame(frame).page) as usize;
        if self.vmas.at.len() <= vma {
            self.vmas.at.resize(vma + 1, (NONE, NONE));
        }
        let (stream, zone) = self.vmas.at[vma];
        if zone != NONE && self.heads[stream as usize].zone == zone {
            return stream;
        }
        let using = &self.vmas.using[..self.streams as usize];
        let stream = (0..self.streams).min_by_key(|&s| using[s as usize]).unwrap_or(0);
        self.vmas.using[stream as usize] += u64::from(h.vma_pages(vma as u32));
        // NONE if it has no zone yet; the next page tries again.
        self.vmas.at[vma] = (stream, self.heads[stream as usize].zone);
        stream
    }

    /// Whether the device allows another open zone.
    fn may_open(&self) -> bool {
        self.open < self.max_open
    }

    /// The next free zone, in turn.
    fn next_free(&mut self) -> u32 {
        let n = self.zones.len() as u32;
        let after = |i: &u32| (self.last_opened + 1 + i) % n;
        let is_free = |&zone: &u32| self.zones[zone as usize].state == State::Free;
        let zone = (0..n).map(|i| after(&i)).find(is_free).expect("free zones are counted");
        self.last_opened = zone;
        self.free -= 1;
        zone
    }

    fn opened(&mut self, zone: u32, stream: usize) -> u32 {
        let z = &mut self.zones[zone as usize];
        (z.state, z.stream) = (State::Open, stream as u32);
        self.open += 1;
        zone
    }

    /// A zone for a stream, or for garbage collection.
    pub(super) fn open_zone(&mut self, h: &mut Host, head: usize) -> Option<u32> {
        if head == self.streams as usize {
            return self.open_for_gc();
        }
        if self.suspended || !self.may_open() {
            return None;
        }
        if self.free == 0 {
            self.suspended = true;
            h.kick();
            return None;
        }
        let zone = self.next_free();
        // Taking the last zone suspends swap-out until GC catches up.
        self.suspended = self.free == 0;
        if self.free < self.low {
            h.kick();
        }
        Some(self.opened(zone, head))
    }

    /// Opens a free zone for GC, or the emergency zone while swap-out is suspended.
    fn open_for_gc(&mut self) -> Option<u32> {
        if !self.may_open() {
            return None;
        }
        let zone = if self.free > 0 && !self.suspended {
            self.next_free()
        } else {
            self.emergency.take()?
        };
        let stream = self.gc.stream();
        Some(self.opened(zone, stream))
    }
}
