// SPDX-License-Identifier: GPL-2.0-only
//! The work of the module's worker and of the device, one operation at a time; or all at
//! once, for tests that do not depend on the order.

use znsage_engine::{Entry, GcRead, Op, ZoneOp};

use super::{Host, Slot, ENDLESS};
use crate::device::Fate;

impl Host {
    /// One operation of next_op(). False: there is none.
    pub fn next_op(&mut self) -> bool {
        let op = self.e.next_op(self.now);
        trace!(self, "next_op: {op:?}");
        match op {
            None => {
                self.kick = false;
                return false;
            }
            Some(Op::Append(append)) => self.submit(append),
            Some(Op::Fail(failed)) => self.fail(failed),
            Some(Op::Read(read)) => {
                let blocks: Vec<u32> = read.entries(&self.e).iter().map(|e| e.expect).collect();
                let stream = |block: &u32| self.e.zone(self.e.locate(*block).0).stream;
                let alone = blocks.iter().all(|b| stream(b) == stream(&blocks[0]));
                assert!(alone || !self.isolates(), "a chunk of GC has pages of two streams");
                for block in blocks {
                    self.dev.begin_read(block);
                    self.want.gc_read_blocks += 1;
                }
                self.gc_reads.push(read);
            }
            Some(Op::Zone(reset)) if reset.resets() => {
                assert_eq!(self.live[reset.zone() as usize], 0, "reset of live blocks");
                self.dev.submit_reset(reset.zone());
                self.resets.push(reset);
            }
            Some(Op::Zone(finish)) => {
                self.dev.submit_finish(finish.zone());
                self.finishes.push(finish);
            }
        }
        true
    }

    pub fn pump(&mut self) {
        let mut ops = 0;
        self.flush_due();
        while self.next_op() {
            ops += 1;
            assert!(ops < ENDLESS, "next_op() never answers None");
        }
    }

    /// A GC read ends; `lost` says which of its entries could not be read.
    pub fn end_gc_read(&mut self, read: GcRead, mut lost: impl FnMut() -> bool) {
        let entries = read.entries(&self.e).to_vec();
        let id = read.id(&self.e) as usize;
        trace!(self, "gc read of chunk {id}: {entries:?}");
        for (i, entry) in entries.iter().enumerate() {
            let content = self.dev.end_read(entry.expect);
            if lost() {
                self.lose(&read, i as u32, entry);
                continue;
            }
            let page = content.expect("GC reads a block that was written");
            assert_eq!(page.0, entry.slot, "GC reads a page of another slot");
            self.pages[id][entry.page as usize] = Some(page);
        }
        self.check_left(id);
        let pages = &self.pages[id];
        let with_page = |e: Entry| pages[e.page as usize].map(|page| (e, page));
        self.left[id] = entries.into_iter().filter_map(with_page).collect();
        self.kick |= self.e.gc_read_done(read);
    }

    /// Without errors, every page that GC read but did not append has become stale.
    fn check_left(&self, id: usize) {
        for (entry, page) in &self.left[id] {
            // Compare versions: the slot may be in the same block again.
            let Slot::Stored { version, block } = self.slots[entry.slot as usize] else {
                continue;
            };
            let same = block == entry.expect && version == page.1;
            assert!(self.errors > 0 || !same, "GC gave up {entry:?}");
        }
    }

    /// No GC chunk is in use: check that GC finished all it had begun.
    pub fn check_all_left(&self) {
        (0..self.left.len()).for_each(|id| self.check_left(id));
    }

    /// Does `entry` of a GC chunk still hold the slot's page?
    pub(super) fn wants(&self, entry: &Entry) -> bool {
        match self.slots[entry.slot as usize] {
            Slot::Stored { block, .. } => block == entry.expect,
            _ => false,
        }
    }

    fn lose(&mut self, read: &GcRead, index: u32, entry: &Entry) {
        trace!(self, "  cannot read {entry:?}");
        self.errors += 1;
        self.want.read_errors += 1;
        self.dev.failed = true;
        // GC gives up a block only after several tries.
        if self.e.gc_entry_failed(read, index) {
            self.want.pages_lost += 1;
            assert!(self.wants(entry), "lost {entry:?}");
            self.set(entry.slot, Slot::Lost);
        }
    }

    /// A reset or a finish ends.
    pub fn end_zone(&mut self, op: ZoneOp, ok: bool) {
        trace!(self, "{op:?} ok {ok}");
        match op.resets() {
            true => self.dev.complete_reset(op.zone(), ok),
            false => self.dev.complete_finish(op.zone(), ok),
        }
        if !ok {
            self.want.write_errors += 1;
            self.errors += 1;
        } else if op.resets() {
            self.want.zone_resets += 1;
        }
        self.kick |= self.e.zone_done(op, ok);
    }

    // ---- all at once

    pub fn end_appends(&mut self) {
        let fate = if self.away { Fate::Refused } else { Fate::Done };
        while let Some(append) = self.appends.pop() {
            self.end_append(append, fate);
        }
    }

    pub fn end_finishes(&mut self) {
        while let Some(finish) = self.finishes.pop() {
            let ok = !self.away && !self.dev.is_read_only(finish.zone());
            self.end_zone(finish, ok);
        }
    }

    pub fn end_resets(&mut self) {
        while let Some(reset) = self.resets.pop() {
            let zone = reset.zone();
            let fails = self.away || self.dev.is_read_only(zone) || self.dead.contains(&zone);
            self.end_zone(reset, !fails);
        }
    }

    /// Runs the device and the worker until both are idle.
    pub fn run_device(&mut self) {
        for _ in 0..ENDLESS {
            if self.kick {
                self.pump();
            }
            self.end_appends();
            self.end_finishes();
            while let Some(read) = self.gc_reads.pop() {
                let fails = |e: Entry| self.away || self.unreadable.contains(&e.slot);
                let mut lost = read.entries(&self.e).iter().map(|e| fails(*e)).collect::<Vec<_>>();
                self.end_gc_read(read, || lost.remove(0));
            }
            self.end_resets();
            let idle = self.appends.is_empty() && self.gc_reads.is_empty();
            if idle && self.resets.is_empty() && !self.kick {
                return;
            }
        }
        panic!("the engine never comes to rest");
    }

    /// Also takes chunks that are not full, and ends reads.
    pub fn run_idle(&mut self) {
        while !self.reads.is_empty() {
            self.end_read(0);
        }
        self.flush_all();
        self.kick = true;
        self.run_device();
    }
}
