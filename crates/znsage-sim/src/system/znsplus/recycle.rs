// SPDX-License-Identifier: GPL-2.0-only
//! Makes room for swap-out: compacts zones with many dead blocks, or opens
//! them for threaded logging.
//!
//! Either way the device handles the live blocks, and the dead ones become
//! writable. The hybrid policy compares the remaining costs: compaction
//! updates the map for each live block and resets the zone; threaded logging
//! needs a write command per run of dead blocks. (In the paper, compaction
//! also rewrites the file system's node and metadata blocks, which swap does
//! not have.)

use super::state::{State, Threaded, ZnsPlus, CLOSED, COMPACTED, OPENED};
use crate::device::Extent;
use crate::event::Event;
use crate::host::page::NONE;
use crate::host::Host;
use crate::time::Ns;

/// Blocks of a compaction command.
const COMMAND: u32 = 256;
/// Zones open for threaded logging at a time.
const LOGS: usize = 2;

impl ZnsPlus {
    pub(super) fn was_reset(&mut self, h: &mut Host, zone: u32) {
        let z = &mut self.zones[zone as usize];
        (z.state, z.given) = (State::Free, 0);
        self.free.insert(0, zone);
        self.upkeep.was_reset();
        self.count.resets += 1;
        h.has_room();
        h.kick();
    }

    /// A step of recycling; false if there is nothing to do.
    pub(super) fn recycle(&mut self, h: &mut Host) -> bool {
        if self.recycler.busy {
            return false;
        }
        if self.recycler.victim == NONE && !self.choose(h) {
            return false;
        }
        if self.recycler.victim == NONE {
            return true;
        }
        self.compact(h)
    }

    /// Chooses a zone and how to recycle it. False: none.
    fn choose(&mut self, h: &mut Host) -> bool {
        let coming =
            self.upkeep.resetting() as usize + self.recycler.opening.len() + self.threaded.len();
        if self.free.len() + coming > self.low as usize {
            return false;
        }
        let cap = self.media.zone_blocks;
        let full = (0..self.zones.len() as u32).filter(|&i| {
            let z = &self.zones[i as usize];
            z.state == State::Full && z.live < cap
        });
        let Some(victim) = full.min_by_key(|&i| (self.zones[i as usize].live, i)) else {
            return false;
        };
        let may_log = self.recycler.commands
            && self.set.threaded_logging
            && self.threaded.len() + self.recycler.opening.len() < LOGS
            && self.open < self.max_open - 1;
        if may_log && self.logging_is_cheaper(h, victim) {
            self.open_log(h, victim);
            return true;
        }
        // The live blocks must fit the free zones and the rest of compaction's zone.
        let live = self.zones[victim as usize].live;
        let rest = match self.recycler.head {
            NONE => 0,
            head => cap - self.zones[head as usize].given,
        };
        if rest < live && (self.free.is_empty() || self.open >= self.max_open) {
            return false;
        }
        self.zones[victim as usize].state = State::Victim;
        (self.recycler.victim, self.recycler.at) = (victim, 0);
        true
    }

    fn dead_runs(&self, zone: u32) -> Vec<(u32, u32)> {
        let cap = self.media.zone_blocks;
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for offset in 0..cap {
            if self.owner[(zone * cap + offset) as usize] != NONE {
                continue;
            }
            match runs.last_mut() {
                Some((first, len)) if *first + *len == offset => *len += 1,
                _ => runs.push((offset, 1)),
            }
        }
        runs
    }

    /// The hybrid policy.
    fn logging_is_cheaper(&self, h: &Host, zone: u32) -> bool {
        let runs = self.dead_runs(zone).len() as Ns;
        let live = Ns::from(self.zones[zone as usize].live);
        let commands = live / Ns::from(COMMAND) + 1;
        let compaction = live * self.set.remap_cost + (commands + 1) * h.costs.write;
        runs * h.costs.write < compaction
    }

    // ---- threaded logging

    fn open_log(&mut self, h: &mut Host, zone: u32) {
        let cap = self.media.zone_blocks;
        let mut valid = vec![0u64; cap.div_ceil(64) as usize];
        for offset in 0..cap {
            if self.owner[(zone * cap + offset) as usize] != NONE {
                valid[offset as usize / 64] |= 1 << (offset % 64);
            }
        }
        let runs = self.dead_runs(zone);
        self.zones[zone as usize].state = State::Threaded;
        self.open += 1;
        self.recycler.opening.push(Threaded { zone, runs: runs.into() });
        h.spent += h.costs.write;
        let done = self.media.dev.tl_open(h.now, zone, &valid);
        let done = done.unwrap_or_else(|fault| panic!("zns-plus: TL_open: {fault}"));
        h.queue.push(done, Event::System(OPENED | u64::from(zone)));
    }

    pub(super) fn log_opened(&mut self, h: &mut Host, zone: u32) {
        let i = self.recycler.opening.iter().position(|t| t.zone == zone);
        self.threaded.push_back(self.recycler.opening.remove(i.expect("it was being opened")));
        h.has_room();
        h.kick();
    }

    pub(super) fn close_log(&mut self, h: &mut Host, zone: u32) {
        let done = self.media.dev.tl_close(h.now, zone);
        let done = done.unwrap_or_else(|fault| panic!("zns-plus: end of a log: {fault}"));
        h.queue.push(done, Event::System(CLOSED | u64::from(zone)));
    }

    pub(super) fn log_closed(&mut self, h: &mut Host, zone: u32) {
        self.zones[zone as usize].state = State::Full;
        self.open -= 1;
        self.check_empty(h, zone);
        h.kick();
    }

    // ---- compaction

    /// Lets the device copy the next blocks of the victim.
    fn compact(&mut self, h: &mut Host) -> bool {
        let cap = self.media.zone_blocks;
        if self.recycler.head == NONE {
            let Some(zone) = self.take_free(0) else { return false };
            self.recycler.head = zone;
        }
        let head = self.recycler.head;
        let room = cap - self.zones[head as usize].given;
        let base = self.recycler.victim * cap;
        let mut extents: Vec<Extent> = Vec::new();
        let (most, mut nr) = (room.min(COMMAND), 0);
        let to = head * cap + self.zones[head as usize].given;
        while nr < most && self.recycler.at < cap {
            let offset = self.recycler.at;
            self.recycler.at += 1;
            let slot = self.owner[(base + offset) as usize];
            if slot == NONE {
                continue;
            }
            self.recycler.moves.push((slot, base + offset, to + nr));
            nr += 1;
            match extents.last_mut() {
                Some(e) if e.offset + e.blocks == offset => e.blocks += 1,
                _ => extents.push(Extent { zone: self.recycler.victim, offset, blocks: 1 }),
            }
        }
        if nr == 0 {
            self.end_victim(h);
            return true;
        }
        h.spent += h.costs.write + extents.len() as Ns * h.costs.segment;
        let dev = &mut self.media.dev;
        let moved = match self.recycler.commands {
            true => dev.zone_compaction(h.now, &extents, head),
            false => dev.copy(h.now, &extents, head),
        };
        let moved = moved.unwrap_or_else(|fault| panic!("zns-plus: compaction: {fault}"));
        assert_eq!(moved.offset, to % cap, "a copy is where it was placed");
        for &(_, from, to) in &self.recycler.moves {
            self.media.shadow.copy(from.into(), to.into());
        }
        let z = &mut self.zones[head as usize];
        (z.given, z.live, z.writes) = (z.given + nr, z.live + nr, z.writes + 1);
        if z.given == cap {
            self.recycler.head = NONE;
        }
        self.count.gc_read_blocks += u64::from(nr);
        self.recycler.busy = true;
        h.queue.push(moved.done, Event::System(COMPACTED | u64::from(head)));
        true
    }

    /// A copy has ended: remaps the slots still valid.
    pub(super) fn compacted(&mut self, h: &mut Host) {
        let moves = std::mem::take(&mut self.recycler.moves);
        let zone = self.zone_of(moves[0].2);
        for (slot, from, to) in moves {
            if self.owner[from as usize] != slot {
                self.kill(h, to);
                continue;
            }
            self.map[slot as usize] = to;
            self.owner[to as usize] = slot;
            self.kill(h, from);
        }
        self.recycler.busy = false;
        self.zones[zone as usize].writes -= 1;
        self.check_written(h, zone);
        if self.recycler.at == self.media.zone_blocks {
            self.end_victim(h);
        }
        h.kick();
    }

    fn end_victim(&mut self, h: &mut Host) {
        let victim = std::mem::replace(&mut self.recycler.victim, NONE);
        let z = &mut self.zones[victim as usize];
        debug_assert_eq!(z.live, 0);
        z.state = State::Full;
        self.check_empty(h, victim);
    }
}
