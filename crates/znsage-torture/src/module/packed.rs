// SPDX-License-Identifier: GPL-2.0-only
//! Packed pages, as kmod/packed.c: chunks that are packed before their append, and the
//! spans that GC reads.

use std::mem;
use std::ops::Range;

use znsage_engine::{Entry, Filled, GcRead, Part, Read};
use znsage_sim::rng::mix;

use crate::chunks::GcReading;
use crate::content::{Cell, NOTHING};
use crate::model::Slot;
use crate::state::Run;
use crate::types::trace;

impl Run {
    /// Packs a chunk that was taken from its stream. False: the log has no room for it.
    pub(super) fn pack(&mut self, chunk: &Filled) -> bool {
        let (id, nr) = (chunk.id(&self.e), chunk.len(&self.e));
        let contents = self.plan.contents;
        let first = self.parent(id, 0);
        let (mut cells, mut lengths): (Vec<Cell>, Vec<u32>) = (Vec::new(), Vec::new());
        for &(bio, page) in &self.m.parents[first..first + nr as usize] {
            let bio = &self.bios[bio];
            let (slot, token) = (bio.slots[page as usize], bio.tokens[page as usize]);
            lengths.push(contents.len(token));
            cells.extend(contents.cells(slot, token));
        }
        self.m.charged[id as usize] = cells.len() as u32;
        self.put_packed(id, cells);
        self.e.pack(chunk, &lengths)
    }

    /// What a chunk appends, up to the end of a page.
    fn put_packed(&mut self, chunk: u32, mut cells: Vec<Cell>) {
        cells.resize(cells.len().next_multiple_of(self.plan.contents.pack as usize), NOTHING);
        self.m.data[chunk as usize] = cells;
    }

    /// The log has no room for a chunk, and its pages fail.
    pub(super) fn refuse(&mut self, chunk: Filled) {
        let cfg = &self.plan.cfg;
        // Nothing is refused while all would fit if no page shrank. Retired zones have no room.
        let taken = self.model.stored
            + self.m.charged.iter().map(|&n| u64::from(n)).sum::<u64>()
            + self.e.stats().zones_retired * u64::from(cfg.zone_blocks);
        let fits = u64::from(cfg.max_slots()) * u64::from(cfg.pack + 1);
        if taken <= fits {
            self.wrong.push(format!("swap-out is refused with {taken} blocks taken of {fits}"));
        }
        self.n.no_room += u64::from(chunk.len(&self.e));
        let failed = self.e.chunk_lose(chunk);
        if self.fail(failed) || self.m.starved {
            self.kick();
        }
    }

    /// The cells of an append; they must be those of its entries.
    pub(super) fn packed_cells(
        &mut self,
        chunk: u32,
        range: Range<u32>,
        entries: &[Entry],
    ) -> Vec<Cell> {
        let packed = &self.m.data[chunk as usize];
        let cells = packed[range.start as usize..range.end as usize].to_vec();
        for entry in entries {
            let from = (entry.at - range.start) as usize;
            let token =
                self.plan.contents.unpack(&cells[from..from + entry.len as usize], entry.slot);
            if token >= crate::content::GARBAGE {
                self.wrong.push(format!("chunk {chunk} appends something else than {entry:?}"));
            }
        }
        cells
    }

    // ---- GC

    /// The slots whose pages may be in these blocks.
    pub(super) fn slots_in(&self, block: u32, blocks: u32) -> Vec<u32> {
        let cells = &self.media.cells()[block as usize..(block + blocks) as usize];
        let pages = cells.iter().filter_map(|&cell| self.plan.contents.header(cell));
        let live = pages.filter(|&(slot, token)| self.model.get(slot) == Slot::Stored(token));
        live.map(|(slot, _)| slot).collect()
    }

    fn span_start(&self, read: &GcRead) -> u32 {
        read.zone * self.plan.cfg.zone_blocks + read.from
    }

    /// A part of a span was read. What could not be read keeps what was there before.
    pub(super) fn span_part_read(&mut self, of: usize, part: Part) {
        let read = &self.m.gc_readings[of].read;
        let span = &mut self.m.spans[read.id(&self.e) as usize];
        span.resize(read.blocks as usize, NOTHING);
        let (from, at) = (part.block as usize, (part.first * self.plan.contents.pack) as usize);
        let cells = &self.media.cells()[from..from + part.blocks as usize];
        span[at..at + cells.len()].copy_from_slice(cells);
    }

    /// Goes on with the spans that were read.
    pub(super) fn scan_spans(&mut self) {
        for of in mem::take(&mut self.m.gc_scan) {
            let reading = self.m.gc_readings.remove(of);
            self.scan(reading);
        }
    }

    fn scan(&mut self, GcReading { mut read, unread, .. }: GcReading) {
        let (id, base) = (read.id(&self.e), self.span_start(&read));
        let (contents, nr_slots) = (self.plan.contents, self.plan.cfg.nr_slots);
        self.see_unreadable(base, read.blocks, &unread);
        let mut span = mem::take(&mut self.m.spans[id as usize]);
        span.resize(read.blocks as usize, NOTHING);
        // What is not a header reads as some slot's number: GC must not trust it.
        let slot = |at: u32| match contents.header(span[at as usize]) {
            Some((slot, _)) => slot,
            None => (mix(u64::from(base + at)) % u64::from(nr_slots)) as u32,
        };
        self.e.gc_scan(&mut read, slot, |at| unread[(at / contents.pack) as usize]);
        let entries = read.entries(&self.e).to_vec();
        let mut cells = Vec::new();
        for entry in &entries {
            if entry.at as usize != cells.len() {
                self.wrong.push(format!("GC leaves a gap before {entry:?}"));
            }
            let from = entry.page as usize;
            match span.get(from..from + entry.len as usize) {
                Some(page) => cells.extend(page),
                None => self.wrong.push(format!("{entry:?} is beyond the span")),
            }
        }
        trace!(self, "GC takes {} pages of zone {} at {}", entries.len(), read.zone, read.from);
        self.wanted(entries, "takes");
        self.put_packed(id, cells);
        self.m.spans[id as usize] = span;
        self.e.gc_read_done(read);
    }

    /// Notes the slots whose pages are, in part, in pages of the span that could not be read.
    fn see_unreadable(&mut self, base: u32, blocks: u32, unread: &[bool]) {
        if !unread.contains(&true) {
            return;
        }
        let pack = self.plan.contents.pack;
        let touches = |block: u32, len: u32| {
            let end = (block + len).min(base + blocks);
            block >= base && (block..end).any(|at| unread[((at - base) / pack) as usize])
        };
        for slot in 0..self.plan.cfg.nr_slots {
            if let Some((block, len)) = self.place_of(slot) {
                let at = (slot, block);
                if touches(block, len) && !self.m.at_risk.contains(&at) {
                    self.m.at_risk.push(at);
                }
            }
        }
    }

    /// Block and length of a slot's page, if it is on the device.
    fn place_of(&mut self, slot: u32) -> Option<(u32, u32)> {
        let mut kick = false;
        let Read::Block(hold) = self.e.read_begin(slot, 1, &mut kick) else { return None };
        let place = (hold.block(), hold.first_len());
        kick |= self.e.read_end(hold);
        if kick {
            self.kick();
        }
        Some(place)
    }

    /// GC may have given up pages that it could not read.
    pub(super) fn see_losses(&mut self) {
        for (slot, block) in mem::take(&mut self.m.at_risk) {
            let mut kick = false;
            match self.e.read_begin(slot, 1, &mut kick) {
                Read::Lost if matches!(self.model.get(slot), Slot::Stored(_)) => {
                    trace!(self, "GC gives up slot {slot}");
                    self.n.gc_lost += 1;
                    self.model.lost(slot);
                }
                Read::Block(hold) => {
                    if hold.block() == block {
                        self.m.at_risk.push((slot, block));
                    }
                    kick |= self.e.read_end(hold);
                }
                _ => (),
            }
            if kick {
                self.kick();
            }
        }
    }
}
