// SPDX-License-Identifier: GPL-2.0-only
//! What pages hold: those that repeat a word take no block, and compressed ones are packed
//! (`kmod/write.c`, `packed.c`).
//!
//! A task compresses the pages of a chunk before it appends it, and pays for that in CPU time;
//! the append does not begin later for it. Swap-in decompresses a page when it was read.

use std::mem;

use znsage_engine::{Failed, Filled, GcRead};

use super::state::{Appending, Reading, Znsage, UNPACKED};
use super::COPY;
use crate::device::ZoneDevice;
use crate::event::Event;
use crate::host::page::NONE;
use crate::host::task::By;
use crate::host::Host;
use crate::time::Ns;

/// The word that pages repeat. The kernel does not swap out pages of zeros.
const WORD: u64 = 1;

/// What the driver keeps of packed pages, and of those that repeat a word.
#[derive(Default)]
pub(super) struct Packing {
    /// Blocks of each page that is being swapped out; 0: it repeats a word.
    pub(super) drawn: Vec<u32>,
    /// Pages drawn so far.
    nth: u64,
    /// Blocks of the page of each entry of each swap-out chunk.
    pub(super) lens: Vec<u32>,
    /// Blocks of the page of each slot, and of all.
    taken: Vec<u8>,
    pub(super) all_taken: u64,
    /// In each zone, where pages begin, and their slots.
    records: Vec<Vec<(u32, u32)>>,
    /// With a shadow: the contents of the entries of each chunk of GC.
    moving: Vec<Vec<u64>>,
    /// CPU time for compression that the task has not spent yet: locks are taken in the order of
    /// events, and who spent it first would let others wait for a lock that is free.
    pub(super) compressing: Ns,
    /// CPU time of the worker that it has not spent yet.
    pub(super) debt: Ns,
    pub(super) filled: u64,
}

impl Packing {
    pub(super) fn new(cfg: &znsage_engine::Config) -> Packing {
        Packing {
            lens: vec![0; (cfg.nr_chunks * cfg.chunk_pages) as usize],
            taken: vec![0; cfg.nr_slots as usize],
            records: vec![Vec::new(); if cfg.pack > 0 { cfg.nr_zones as usize } else { 0 }],
            moving: vec![Vec::new(); (cfg.nr_chunks + cfg.nr_gc_chunks) as usize],
            ..Packing::default()
        }
    }

    /// The page of a slot takes this many blocks from now on.
    pub(super) fn take(&mut self, slot: u32, blocks: u32) {
        let was = mem::replace(&mut self.taken[slot as usize], blocks as u8);
        self.all_taken = self.all_taken + u64::from(blocks) - u64::from(was);
    }

    /// A zone was reset.
    pub(super) fn cleared(&mut self, zone: u32) {
        if let Some(records) = self.records.get_mut(zone as usize) {
            records.clear();
        }
    }
}

impl<D: ZoneDevice> Znsage<D> {
    /// Blocks of the engine in one of the device.
    pub(super) fn per_block(&self) -> u32 {
        self.cfg.pack.max(1)
    }

    // ---- swap-out

    /// Draws what the pages in these frames take.
    pub(super) fn draw_lengths(&mut self, h: &Host, frames: &[u32]) {
        let p = &mut self.packing;
        p.drawn.clear();
        for &frame in frames {
            p.nth += 1;
            p.drawn.push(match &self.shrink {
                Some(contents) => contents.blocks(h.frame(frame).page, p.nth, self.cfg.pack),
                None => 1,
            });
        }
    }

    /// Pages from `at` on that go to a chunk: up to one that repeats a word.
    pub(super) fn until_filled(&self, at: usize, nr: usize) -> usize {
        let rest = &self.packing.drawn[at..at + nr];
        rest.iter().position(|&blocks| blocks == 0).unwrap_or(nr)
    }

    /// Swaps out a page that repeats a word.
    pub(super) fn fill(&mut self, h: &mut Host, by: By, frame: u32, slot: u32) {
        h.spent += self.set.map_cost;
        if self.e.fill(slot, WORD).expect("the table has room for one word") {
            h.kick();
        }
        h.begin_write(frame, slot);
        self.packing.take(slot, 0);
        self.packing.filled += 1;
        h.write_done(frame, by.cpu);
    }

    /// Compresses the pages of a chunk. False: the log has no room for them.
    pub(super) fn pack(&mut self, chunk: &Filled) -> bool {
        let (first, nr) = (self.entry(chunk.id(&self.e), 0), chunk.len(&self.e) as usize);
        let cost = match self.set.compress_cost {
            0 => self.set.compress.compress_cost(),
            cost => cost,
        };
        self.packing.compressing += nr as Ns * cost;
        self.e.pack(chunk, &self.packing.lens[first..first + nr])
    }

    /// The log has no room for a chunk: its pages stay in memory.
    pub(super) fn refuse(&mut self, h: &mut Host, chunk: Filled, cpu: u32) {
        let failed = self.e.chunk_lose(chunk);
        self.fail(h, failed, cpu);
    }

    /// The pages of a chunk failed.
    pub(super) fn fail(&mut self, h: &mut Host, failed: Failed, cpu: u32) {
        let first = self.entry(failed.id(&self.e), 0);
        for entry in failed.entries(&self.e) {
            self.failed_pages += 1;
            self.packing.take(entry.slot, 0);
            h.write_failed(self.frames[first + entry.page as usize], cpu);
        }
        if self.e.failed_put(failed) {
            h.kick();
        }
        h.has_room();
    }

    /// The pages of an append begin at these blocks of its zone, from `offset` on.
    pub(super) fn note_records(&mut self, id: usize, offset: u32) {
        let Appending { append, .. } = &self.appends[id];
        let records = &mut self.packing.records[append.zone as usize];
        for entry in append.entries(&self.e) {
            records.push((offset + entry.at - append.from, entry.slot));
        }
    }

    /// The content of entry `i` of an append of GC.
    pub(super) fn moved_content(&self, chunk: u32, i: u32) -> u64 {
        self.packing.moving[chunk as usize][i as usize]
    }

    // ---- swap-in

    /// The blocks of the device to read for a page, or for some that follow one another.
    pub(super) fn span(&self, r: &Reading) -> (u32, u32, u32) {
        let (zone, at) = self.e.locate(r.hold.block());
        match self.cfg.pack {
            0 => (zone, at, 1 + r.more.len() as u32),
            pack => (zone, at / pack, (at % pack + r.hold.blocks()).div_ceil(pack)),
        }
    }

    /// A page was read: a work item decompresses it.
    pub(super) fn unpack(&mut self, h: &mut Host, r: Reading) {
        let cost = match self.set.decompress_cost {
            0 => self.set.compress.decompress_cost(),
            cost => cost,
        };
        h.cpus.interrupt(h.now, r.cpu, cost);
        let i = self.reads.insert(r);
        h.queue.push(h.now + h.costs.wake + cost, Event::System(UNPACKED | i as u64));
    }

    // ---- GC

    /// A span was read: GC finds the live pages in it, and copies them.
    pub(super) fn scan(&mut self, h: &mut Host, mut read: GcRead, lost: &[u32]) {
        let (pack, from, id) = (self.cfg.pack, read.from, read.id(&self.e) as usize);
        let records = &self.packing.records[read.zone as usize];
        let mut next = records.partition_point(|r| r.0 < from);
        // What begins no page is no slot here; znsage-torture has other words there.
        let slot = |at: u32| {
            while records.get(next).is_some_and(|r| r.0 < from + at) {
                next += 1;
            }
            records.get(next).filter(|r| r.0 == from + at).map_or(NONE, |r| r.1)
        };
        self.e.gc_scan(&mut read, slot, |at| lost.contains(&(at / pack)));
        let entries = read.entries(&self.e);
        let blocks: u32 = entries.iter().map(|entry| entry.len).sum();
        self.packing.debt += entries.len() as Ns * self.set.map_cost;
        self.packing.debt += Ns::from(blocks.div_ceil(pack)) * COPY;
        let shadow = &self.media.shadow;
        let content = |entry: &znsage_engine::Entry| shadow.get(u64::from(entry.expect));
        self.packing.moving[id] = entries.iter().filter_map(content).collect();
        if self.e.gc_read_done(read) {
            h.kick();
        }
    }
}
