// SPDX-License-Identifier: GPL-2.0-only
//! The published systems that swap on zones: ZNSwap, its version for small
//! zones, and ZNSage.
//!
//! A slot is a block of the device, so garbage collection rewrites page
//! tables. One thread handles one victim at a time: it reads a batch, waits,
//! writes the pages still needed, waits, and then rewrites the page tables
//! (acsl-technion/znswap@4d384595, `kznsd_gc()` and what it calls). Slots
//! whose page is also in memory are dropped instead of copied.
//!
//! | | appends | reverse map | while GC copies |
//! | --- | --- | --- | --- |
//! | znswap | of a page; a plug merges those to the same zone | 24 B in the 64 B beside each block | |
//! | small-zone | of a chunk that GC and swap-out fill together | RAM, 24 B; or the last page of each chunk | |
//! | znsage-2025 | of such a chunk | RAM, 24 B | faults get the page from GC's memory |
//!
//! ZNSwap's kernel lets the block layer merge zone appends (its `blk_try_merge()` and
//! `rq_mergeable()`; upstream excludes them): what reclaim or a batch of GC submits under
//! one plug becomes one append for each zone, up to the largest request. All three read
//! consecutive blocks of a victim by one request for the same reason.
//!
//! Differences from the originals: their code calls BUG() or hangs when GC
//! finds no zone to write to; here GC waits for a reset. A zone being reset
//! counts as free for the watermarks; otherwise GC would collect ever fuller
//! zones where a reset takes longer than filling a zone. Slots return at once,
//! not in batches that GC would have to wait for.

mod check;
mod gc;
mod isolate;
mod place;
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
use crate::spec::{PolicyKind, PublishedSpec, SpecError, SystemKind};
use crate::time::{Ns, US};
pub use state::ZoneLog;
use state::{
    Entry, Gc, Head, Limits, State, Traits, Vmas, Writing, Zone, FLUSH, FROM_GC, GC_READ, PAID,
    WRITTEN,
};

/// Pages of a chunk: 192 KiB.
const CHUNK: u32 = 48;
/// Bytes of a reverse map entry.
const ENTRY: u64 = 24;
/// Bytes of metadata per block in ZNSwap's device format.
const BESIDE: u64 = 64;
/// Copying a page from GC's memory. Assumed.
const FROM_MEMORY: Ns = US;

impl ZoneLog {
    /// The system `kind` on a device.
    pub fn new(
        kind: SystemKind,
        media: Zoned,
        set: &PublishedSpec,
        cpus: u32,
    ) -> Result<Self, SpecError> {
        let refuse = |key: &str, what: String| Err(SpecError { key: key.into(), what });
        let g = media.dev.geometry();
        let (unit, nr) = (g.write_unit, g.zones);
        let traits = match kind {
            SystemKind::ZnSwap => Traits {
                kind,
                chunk: g.max_append,
                plugged: true,
                map_in_chunk: false,
                from_gc: false,
            },
            SystemKind::SmallZone => Traits {
                kind,
                chunk: CHUNK,
                plugged: false,
                map_in_chunk: set.map_in_chunk,
                from_gc: false,
            },
            _ => Traits {
                kind,
                chunk: CHUNK,
                plugged: false,
                map_in_chunk: false,
                from_gc: set.fault_from_gc,
            },
        };
        let least = if traits.plugged { 1 } else { traits.chunk };
        if least % unit != 0 || least > g.max_append {
            return refuse(
                "device",
                format!(
                    "{kind} appends {} KiB at a time, but this device writes units of {} KiB, {} KiB at most: \
                     try --device {}",
                    4 * least,
                    4 * unit,
                    4 * g.max_append,
                    if traits.plugged { "zn540" } else { "hynix" }
                ),
            );
        }
        if media.blocks() >= MAX_SLOTS {
            return refuse("size", format!("{} slots are the most", MAX_SLOTS - 1));
        }
        let max_open = match media.max_active() {
            0 => nr,
            1 => return refuse("device", "one open zone is too few".into()),
            n => n,
        };
        // One open zone is for GC, the others are streams; at most max(CPUs, 16), or 1
        // for policy `single`.
        let wanted = if set.policy == PolicyKind::Single { 1 } else { cpus.max(16) };
        let streams = wanted.min(max_open - 1).min(nr / 8).max(1);
        let low = nr.div_ceil(50).max(2);
        let high = nr.div_ceil(25).max(low + 2);
        if nr < high + streams + 2 {
            return refuse("device", format!("{nr} zones are too few for {streams} streams and watermarks of {low} and {high}"));
        }
        let zone = |i| Zone {
            state: if i == nr - 1 { State::Emergency } else { State::Free },
            given: 0,
            done: 0,
            live: 0,
            stream: 0,
        };
        let head = Head { zone: NONE, chunk: Vec::new(), first: 0, max: 0, chunks: 0 };
        Ok(ZoneLog {
            zones: (0..nr).map(zone).collect(),
            upkeep: Zones::new(kind, nr),
            owner: vec![NONE; media.blocks() as usize],
            heads: vec![head; streams as usize + 1],
            streams,
            free: nr - 1,
            open: 0,
            max_open,
            last_opened: nr - 1,
            emergency: Some(nr - 1),
            low,
            high,
            suspended: false,
            gc: Gc::default(),
            vmas: Vmas::new(streams),
            limits: Limits::default(),
            writes: Slab::new(),
            locks: vec![Lock::default(); streams as usize + 1],
            count: SystemCounters::default(),
            traits,
            set: set.clone(),
            media,
            unit,
        })
    }

    fn zone_of(&self, slot: u32) -> u32 {
        slot / self.media.zone_blocks
    }

    // ---- writing

    /// Allocates a slot in a stream's zone; None if no zone can be opened.
    fn give(&mut self, h: &mut Host, head: usize, entry: Entry) -> Option<u32> {
        if self.heads[head].zone == NONE {
            self.heads[head].zone = self.open_zone(h, head)?;
        }
        let zone = self.heads[head].zone;
        let cap = self.media.zone_blocks;
        let z = &mut self.zones[zone as usize];
        let slot = zone * cap + z.given;
        let hd = &mut self.heads[head];
        if hd.chunk.is_empty() {
            hd.first = slot;
            hd.max = self.traits.chunk.min(cap - z.given);
            hd.chunks += 1;
            if !self.traits.plugged {
                let timer = FLUSH | (head as u64) << 24 | u64::from(hd.chunks & 0xff_ffff);
                h.queue.push(h.now + self.set.flush_after, Event::System(timer));
            }
        }
        z.given += 1;
        z.live += 1;
        hd.chunk.push(entry);
        h.slots.handed_out();
        Some(slot)
    }

    /// Is the chunk of a stream full?
    fn is_full(&self, head: usize) -> bool {
        let hd = &self.heads[head];
        let map = u32::from(self.traits.map_in_chunk);
        !hd.chunk.is_empty() && hd.chunk.len() as u32 + map >= hd.max
    }

    /// Appends the chunk of a stream, full or not.
    fn append(&mut self, h: &mut Host, head: usize, cpu: u32) {
        let hd = &mut self.heads[head];
        let entries = std::mem::take(&mut hd.chunk);
        let (zone, first, max) = (hd.zone, hd.first, hd.max);
        let nr = entries.len() as u32;
        let map = u32::from(self.traits.map_in_chunk).min(max - nr);
        let blocks = (nr + map).next_multiple_of(self.unit);
        self.count.metadata_blocks += u64::from(map);
        self.count.padding_blocks += u64::from(blocks - nr - map);
        let cost = h.costs.write + Ns::from(blocks) * h.costs.segment;
        if self.traits.plugged {
            h.spent += cost;
        } else {
            // Submission holds the lock of the chunks.
            h.lock(&mut self.locks[0], cost);
        }
        if self.media.shadow.on() {
            for (slot, entry) in (u64::from(first)..).zip(&entries) {
                match *entry {
                    Entry::Out(frame) => self.media.shadow.write(slot, h.content(frame)),
                    Entry::Moved(from) => self.media.shadow.copy(u64::from(from), slot),
                }
            }
        }
        let z = &mut self.zones[zone as usize];
        z.given += blocks - nr;
        if z.given == self.media.zone_blocks {
            self.heads[head].zone = NONE;
            self.vmas.zone_ended(head as u32);
        }
        let id = self.writes.insert(Writing { zone, first, blocks, entries, cpu });
        if let Some(begun) = self.media.write(h.now, Write { zone, offset: None, blocks, id }) {
            self.begun(h, begun);
        }
    }

    /// Gives pages slots, and appends each chunk that is full.
    fn take(&mut self, h: &mut Host, by: By, frames: &[u32]) -> Taken {
        for (i, &frame) in frames.iter().enumerate() {
            if h.slots.used() >= h.slots.total() {
                return Taken::NoSlot(i);
            }
            let head = self.place(h, by, frame);
            // One lock for shared chunks; else the zone's.
            let lock = if self.traits.plugged { head } else { 0 };
            h.lock(&mut self.locks[lock], self.set.lock_hold);
            let Some(slot) = self.give(h, head, Entry::Out(frame)) else {
                self.count.stalls += 1;
                return Taken::Wait(i);
            };
            self.owner[slot as usize] = h.frame(frame).page;
            h.begin_write(frame, slot);
            if self.is_full(head) {
                self.append(h, head, by.cpu);
            }
        }
        Taken::All
    }

    /// Appends what chunks hold. ZNSwap: at the end of a plug.
    pub(super) fn append_rest(&mut self, h: &mut Host, cpu: u32) {
        for head in 0..self.heads.len() {
            if !self.heads[head].chunk.is_empty() {
                self.append(h, head, cpu);
            }
        }
    }

    /// The device has accepted an append.
    fn begun(&mut self, h: &mut Host, Begun { id, result }: Begun) {
        let a = result.unwrap_or_else(|fault| panic!("{}: append: {fault}", self.traits.kind));
        let first = self.writes[id].first;
        assert_eq!(a.offset, first % self.media.zone_blocks, "slots are where they were given");
        h.queue.push(a.done, Event::System(WRITTEN | id as u64));
    }

    fn written(&mut self, h: &mut Host, i: usize) {
        let w = self.writes.remove(i);
        if let Some(next) = self.media.ended(h.now, w.zone) {
            self.begun(h, next);
        }
        h.interrupt(w.cpu, w.entries.len() as u32);
        for entry in w.entries {
            match entry {
                Entry::Out(frame) => {
                    self.count.host_blocks += 1;
                    self.count.host_pages += 1;
                    h.write_done(frame, w.cpu);
                }
                Entry::Moved(_) => {
                    self.count.gc_blocks += 1;
                    self.gc.written(h);
                }
            }
        }
        let z = &mut self.zones[w.zone as usize];
        z.done += w.blocks;
        if z.done == self.media.zone_blocks {
            z.state = State::Full;
            self.open -= 1;
            self.check_empty(h, w.zone);
            h.has_room();
            h.kick();
        }
    }

    /// Marks a slot dead.
    fn kill(&mut self, h: &mut Host, slot: u32) {
        self.owner[slot as usize] = NONE;
        let zone = self.zone_of(slot);
        self.zones[zone as usize].live -= 1;
        self.check_empty(h, zone);
    }

    /// Resets a full zone without live blocks.
    fn check_empty(&mut self, h: &mut Host, zone: u32) {
        let z = &mut self.zones[zone as usize];
        if z.state == State::Full && z.live == 0 && zone != self.gc.victim() {
            z.state = State::Resetting;
            self.upkeep.is_empty(h, zone);
        } else if self.suspended {
            // There may be a victim now.
            h.kick();
        }
    }

    fn was_reset(&mut self, h: &mut Host, zone: u32) {
        let z = &mut self.zones[zone as usize];
        (z.given, z.done) = (0, 0);
        self.count.resets += 1;
        self.upkeep.was_reset();
        if self.emergency.is_none() {
            z.state = State::Emergency;
            self.emergency = Some(zone);
        } else {
            z.state = State::Free;
            self.free += 1;
        }
        h.kick();
    }

    fn flush(&mut self, h: &mut Host, what: u32) {
        let (head, chunk) = ((what >> 24) as usize, what & 0xff_ffff);
        let hd = &self.heads[head];
        if hd.chunks & 0xff_ffff == chunk && !hd.chunk.is_empty() {
            self.append(h, head, h.tasks[h.worker() as usize].cpu);
        }
    }
}

impl System for ZoneLog {
    fn slots(&self) -> SlotSource {
        let left = self.media.blocks() as f64 * (100.0 - self.set.over_provisioning) / 100.0;
        SlotSource::System {
            total: left as u32,
            zones: self.zones.len() as u32,
            zone_blocks: self.media.zone_blocks,
        }
    }

    fn capacity(&self) -> u64 {
        self.media.blocks()
    }

    fn swap_out(&mut self, h: &mut Host, by: By, frames: &[u32]) -> Taken {
        if self.over_limit(h, by.group) {
            return Taken::Wait(0);
        }
        self.charge_pages(h, by.group, frames.len());
        let taken = self.take(h, by, frames);
        if self.traits.plugged {
            self.append_rest(h, by.cpu);
        }
        taken
    }

    fn unplug(&mut self, _h: &mut Host, _by: By) {}

    fn swap_in(&mut self, h: &mut Host, by: By, pages: &[In]) {
        let zone = |slot| slot / self.media.zone_blocks;
        let follows = |a: &In, b: &In| a.slot + 1 == b.slot && zone(a.slot) == zone(b.slot);
        let runs: Vec<&[In]> = pages.chunk_by(follows).collect();
        for run in runs {
            if run.len() == 1 && self.traits.from_gc && self.gc.has(run[0].slot) {
                let event = FROM_GC | u64::from(run[0].frame);
                h.queue.push(h.now + FROM_MEMORY, Event::System(event));
            } else {
                let frames = run.iter().map(|p| p.frame).collect();
                self.upkeep.read(h, &mut self.media, by, run[0].slot, frames);
            }
        }
    }

    fn free(&mut self, h: &mut Host, slot: u32) {
        self.kill(h, slot);
    }

    fn event(&mut self, h: &mut Host, what: u64) {
        let i = what as u32;
        match what & !u64::from(u32::MAX) {
            WRITTEN => self.written(h, i as usize),
            READ => self.upkeep.read_ended(h, &mut self.media, i),
            GC_READ => self.gc.read(h),
            RESET => self.was_reset(h, i),
            FLUSH => self.flush(h, i),
            PAID => self.limit_timer(h),
            _ => h.read_done(i),
        }
    }

    fn work(&mut self, h: &mut Host) -> bool {
        self.upkeep.reset_one(h, &mut self.media) || self.collect(h)
    }

    fn wind_down(&mut self, h: &mut Host) {
        self.append_rest(h, 0);
    }

    fn stats(&self) -> SystemStats {
        let blocks = self.media.blocks();
        let (map_bytes, device_map_bytes) = match self.traits.kind {
            SystemKind::ZnSwap => (0, blocks * BESIDE),
            _ if self.traits.map_in_chunk => (0, blocks / u64::from(CHUNK) * crate::time::BLOCK),
            _ => (blocks * ENTRY, 0),
        };
        let device = *self.media.dev.counters();
        SystemStats { count: self.count, map_bytes, device_map_bytes, device, packed: None }
    }

    fn check(&self, h: &Host) -> Vec<Wrong> {
        self.check_all(h)
    }
}
