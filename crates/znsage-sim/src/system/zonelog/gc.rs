// SPDX-License-Identifier: GPL-2.0-only
//! Garbage collection: one thread, one victim, a batch at a time
//! (acsl-technion/znswap@4d384595, `kznsd_gc()`).
//!
//! ```text
//! Idle -> Reading -> Read -> Writing -> Written -> Idle
//! ```
//!
//! It runs from the low watermark of free zones to the high one. Survivors go
//! to the open zone of the victim's stream, else to any open zone; GC opens
//! one only if there is none.

use super::state::{Entry, Stage, State, Zone, ZoneLog, GC_READ};
use crate::event::Event;
use crate::host::page::NONE;
use crate::host::{Holds, Host};
use crate::time::Ns;

/// Pages of a batch: `ZNS_GC_PAGES`, 4 MiB.
const BATCH: usize = 1024;

impl ZoneLog {
    /// A step of garbage collection; false if it waits or is idle.
    pub(super) fn collect(&mut self, h: &mut Host) -> bool {
        match self.gc.stage {
            Stage::Idle => self.read_batch(h),
            Stage::Read => self.write_batch(h),
            Stage::Written => {
                self.remap(h);
                true
            }
            Stage::Reading | Stage::Writing => false,
        }
    }

    /// Zones that could be gained from full zones (`gc_calc_potential()`).
    fn potential(&self, h: &Host) -> u64 {
        let gain = |(i, z): (usize, &Zone)| match z.state {
            State::Full => u64::from(self.gain(h, i as u32)),
            _ => 0,
        };
        let sum: u64 = self.zones.iter().enumerate().map(gain).sum();
        sum / u64::from(self.media.zone_blocks)
    }

    /// Blocks of a zone that GC need not copy.
    fn gain(&self, h: &Host, zone: u32) -> u32 {
        self.media.zone_blocks - self.zones[zone as usize].live + h.cached_in(zone)
    }

    /// Should GC run (`prepare_kznsd_sleep()`)?
    fn is_due(&mut self, h: &mut Host) -> bool {
        if self.free > self.low && self.emergency.is_some() && self.suspended {
            self.suspended = false;
            h.has_room();
        }
        let coming = self.free + self.upkeep.resetting();
        if coming <= self.low + u32::from(self.emergency.is_none()) {
            self.gc.running = true;
            return true;
        }
        if self.gc.running && coming < self.high && self.potential(h) >= 2 {
            return true;
        }
        self.gc.running = false;
        false
    }

    fn find_victim(&self, h: &Host) -> Option<u32> {
        let full = (0..self.zones.len() as u32).filter(|&i| {
            let z = &self.zones[i as usize];
            z.state == State::Full && z.live > 0
        });
        // The first zone with the highest gain.
        let best = full.map(|i| (self.gain(h, i), i)).min_by_key(|&(gain, i)| (!gain, i))?;
        (best.0 > 0).then_some(best.1)
    }

    /// Reads the victim's next slots in use, up to a batch.
    fn read_batch(&mut self, h: &mut Host) -> bool {
        if self.gc.victim == NONE {
            if !self.is_due(h) {
                return false;
            }
            let Some(victim) = self.find_victim(h) else { return false };
            (self.gc.victim, self.gc.at) = (victim, 0);
            self.gc.stream = self.zones[victim as usize].stream as usize;
        }
        let base = self.gc.victim * self.media.zone_blocks;
        self.gc.batch.clear();
        while self.gc.at < self.media.zone_blocks && self.gc.batch.len() < BATCH {
            let slot = base + self.gc.at;
            self.gc.at += 1;
            let page = self.owner[slot as usize];
            if page == NONE || self.drop_cached(h, page, slot) {
                continue;
            }
            self.gc.batch.push((page, slot));
        }
        let nr = self.gc.batch.len();
        self.count.gc_read_blocks += nr as u64;
        self.gc.next = 0;
        if nr == 0 {
            self.end_batch(h);
            return true;
        }
        let done = self.submit_reads(h);
        self.gc.stage = Stage::Reading;
        h.queue.push(done, Event::System(GC_READ));
        true
    }

    /// Reads the batch under one plug, which merges consecutive blocks. Returns when the
    /// last read ends.
    fn submit_reads(&mut self, h: &mut Host) -> Ns {
        let (victim, cap) = (self.gc.victim, self.media.zone_blocks);
        let most = self.media.dev.geometry().max_append as usize;
        let mut done = h.now;
        for run in self.gc.batch.chunk_by(|a, b| a.1 + 1 == b.1).flat_map(|run| run.chunks(most)) {
            let nr = run.len() as u32;
            h.spent += h.costs.read + Ns::from(nr) * h.costs.segment + h.costs.irq;
            let read = self.media.dev.read(h.now, victim, run[0].1 % cap, nr);
            let read = read.unwrap_or_else(|fault| panic!("{}: GC: {fault}", self.traits.kind));
            done = done.max(read);
        }
        done
    }

    /// Drops the slot of a clean page in memory instead of copying it.
    fn drop_cached(&mut self, h: &mut Host, page: u32, slot: u32) -> bool {
        if h.holds(page, slot) != Holds::Cached {
            return false;
        }
        h.forget_slot(page);
        h.slots.release(slot);
        self.kill(h, slot);
        self.count.dropped_cached += 1;
        true
    }

    /// Writes the pages of the batch still in use.
    fn write_batch(&mut self, h: &mut Host) -> bool {
        let cpu = h.tasks[h.worker() as usize].cpu;
        while self.gc.next < self.gc.batch.len() {
            let (page, from) = self.gc.batch[self.gc.next];
            if self.owner[from as usize] != page || self.drop_cached(h, page, from) {
                self.gc.next += 1;
                continue;
            }
            let Some(head) = self.gc_head(h) else {
                self.end_plug(h, cpu);
                return false;
            };
            h.lock(&mut self.locks[0], self.set.lock_hold);
            let to = self.give(h, head, Entry::Moved(from)).expect("the stream has a zone");
            self.gc.next += 1;
            self.gc.moves.push((page, from, to));
            self.charge_moved(h, page);
            self.gc.pending += 1;
            if self.is_full(head) {
                self.append(h, head, cpu);
            }
        }
        self.end_plug(h, cpu);
        self.gc.stage = if self.gc.pending == 0 { Stage::Written } else { Stage::Writing };
        true
    }

    /// The plug of a batch ends: what it has for a zone becomes one append.
    fn end_plug(&mut self, h: &mut Host, cpu: u32) {
        if self.traits.plugged {
            self.append_rest(h, cpu);
        }
    }

    /// The stream that survivors go to (`gc_swap_zone_slot()`).
    fn gc_head(&mut self, h: &mut Host) -> Option<usize> {
        let own = self.streams as usize;
        if self.heads[own].zone != NONE {
            return Some(own);
        }
        let first = self.gc.stream.min(own - 1);
        let open = |&i: &usize| self.heads[i].zone != NONE;
        if let Some(i) = (0..own).map(|i| (first + i) % own).find(open) {
            return Some(i);
        }
        self.heads[own].zone = self.open_zone(h, own)?;
        Some(own)
    }

    /// Rewrites the page tables.
    fn remap(&mut self, h: &mut Host) {
        for (page, from, to) in std::mem::take(&mut self.gc.moves) {
            let wanted = self.owner[from as usize] == page && h.holds(page, from) != Holds::No;
            if !wanted {
                h.slots.release(to);
                self.kill(h, to);
                continue;
            }
            h.spent += self.set.remap_cost;
            h.moved(page, from, to);
            self.owner[to as usize] = page;
            self.count.remapped += 1;
            h.slots.release(from);
            self.kill(h, from);
        }
        self.end_batch(h);
    }

    fn end_batch(&mut self, h: &mut Host) {
        self.gc.stage = Stage::Idle;
        self.gc.batch.clear();
        if self.gc.at == self.media.zone_blocks {
            let victim = std::mem::replace(&mut self.gc.victim, NONE);
            self.gc.at = 0;
            self.check_empty(h, victim);
        }
    }
}
