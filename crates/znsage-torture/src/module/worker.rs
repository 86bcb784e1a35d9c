// SPDX-License-Identifier: GPL-2.0-only
//! The worker, as kmod/worker.c.

use std::mem;

use znsage_engine::{Entry, Failed, GcRead, Op, Part, ZoneOp};
use znsage_sim::time::{Ns, SEC, US};

use crate::chunks::{Cmd, GcReading, Stage, TRIES};
use crate::media::{Ticket, Verb};
use crate::model::Slot;
use crate::state::{Ev, Run};
use crate::types::{trace, Sabotage};

/// As in engine/recover.c.
const VAIN: Ns = 30 * SEC;
/// Worker steps without a completion that count as spinning.
const SPINS: u32 = 100_000;

impl Run {
    /// Reads what a GC chunk is made of; `single`: once more, block by block.
    fn gc_read(&mut self, of: usize, single: bool) {
        let r = &mut self.m.gc_readings[of];
        (r.single, r.failed, r.left) = (single, false, 1);
        r.unread = vec![false; (r.read.blocks / self.plan.contents.per_page()) as usize];
        for part in r.read.parts(&self.e, single) {
            self.m.gc_readings[of].left += 1;
            let t = self.media.read(self.now, part.block, part.blocks);
            trace!(
                self,
                "GC reads {} of zone {} from {}: {:?}",
                t.pages,
                t.zone,
                t.offset,
                t.error
            );
            self.submit(t, Cmd::GcRead { of, part });
        }
        self.gc_read_put(of);
    }

    pub(crate) fn gc_part_ended(&mut self, t: &Ticket, of: usize, part: Part) {
        let packed = self.plan.contents.pack > 0;
        let read = &self.m.gc_readings[of].read;
        let id = read.id(&self.e) as usize;
        let range = part.first as usize..(part.first + part.nr) as usize;
        let entries = if packed { &[] } else { &read.entries(&self.e)[range] }.to_vec();
        let slots = match packed {
            true => self.slots_in(part.block, part.blocks),
            false => entries.iter().map(|e| e.slot).collect(),
        };
        self.worst("GC read ends", &slots, Some(t.zone));
        let ok = self.media.complete(t);
        self.n.gc_read_errors += u64::from(!ok);
        let r = &mut self.m.gc_readings[of];
        r.failed |= !ok;
        match packed {
            true if ok => self.span_part_read(of, part),
            true => r.unread[part.first as usize] = r.single && self.sabotage != Sabotage::KeepLost,
            false if ok => {
                for entry in entries {
                    let page = self.media.page(entry.expect, 1, entry.slot);
                    self.m.data[id][entry.page as usize] = page;
                }
            }
            false if r.single => self.lose(of, part.first, slots[0]),
            false => (),
        }
        self.gc_read_put(of);
    }

    /// Tells the engine that an entry of a GC chunk is unreadable.
    fn lose(&mut self, of: usize, index: u32, slot: u32) {
        if self.sabotage == Sabotage::KeepLost && self.spoil(1) {
            return;
        }
        let lost = self.e.gc_entry_failed(&self.m.gc_readings[of].read, index);
        trace!(self, "GC cannot read slot {slot}, lost {lost}");
        if lost {
            self.n.gc_lost += 1;
            if !self.model.lost(slot) {
                self.wrong.push(format!("slot {slot} was lost though it had no block"));
            }
        }
    }

    pub(super) fn gc_read_put(&mut self, of: usize) {
        let r = &mut self.m.gc_readings[of];
        r.left -= 1;
        if r.left > 0 {
            return;
        }
        if r.failed && !r.single {
            self.m.gc_retry.push(of);
        } else if self.plan.contents.pack > 0 {
            self.m.gc_scan.push(of);
        } else {
            let r = self.m.gc_readings.remove(of);
            self.e.gc_read_done(r.read);
        }
        self.kick();
    }

    /// The slots of entries that GC is about to do something with: they must
    /// still have the very blocks that GC takes for theirs.
    pub(super) fn wanted(&mut self, entries: Vec<Entry>, does: &str) -> Vec<u32> {
        for entry in &entries {
            let is = self.model.get(entry.slot);
            if is != self.read_from(entry) {
                self.wrong.push(format!("GC {does} {entry:?}, but the slot is {is:?}"));
            }
        }
        entries.into_iter().map(|e| e.slot).collect()
    }

    /// What a slot holds that has the block of a GC entry.
    fn read_from(&self, entry: &Entry) -> Slot {
        Slot::Stored(self.media.page(entry.expect, entry.len, entry.slot))
    }

    /// The slots that GC is about to copy. Of packed pages, stale ones go along.
    fn copied(&mut self, entries: Vec<Entry>) -> Vec<u32> {
        if self.plan.contents.pack == 0 {
            return self.wanted(entries, "copies");
        }
        let live = entries.iter().filter(|e| self.model.get(e.slot) == self.read_from(e));
        live.map(|e| e.slot).collect()
    }

    fn begin_gc_read(&mut self, read: GcRead) {
        let (slots, zone) = if self.plan.contents.pack > 0 {
            let block = read.zone * self.plan.cfg.zone_blocks + read.from;
            (self.slots_in(block, read.blocks), read.zone)
        } else {
            let zone = self.e.locate(read.entries(&self.e)[0].expect).0;
            (self.wanted(read.entries(&self.e).to_vec(), "reads"), zone)
        };
        self.worst("GC read begins", &slots, Some(zone));
        let r = GcReading { read, left: 0, failed: false, single: false, unread: Vec::new() };
        let of = self.m.gc_readings.insert(r);
        self.gc_read(of, false);
    }

    /// The pages of a chunk fail. True: the engine may have something new.
    pub(super) fn fail(&mut self, failed: Failed) -> bool {
        let id = failed.id(&self.e);
        let first = self.parent(id, failed.first);
        let parents = self.m.parents[first..first + failed.nr as usize].to_vec();
        let slots: Vec<u32> = failed.entries(&self.e).iter().map(|e| e.slot).collect();
        self.n.failed_pages += u64::from(failed.nr);
        for &(bio, page) in &parents {
            let bio = &self.bios[bio];
            self.model.not_written(bio.slots[page as usize], bio.tokens[page as usize]);
        }
        self.worst("write fails", &slots, None);
        let ok = self.sabotage == Sabotage::HideFailure && self.spoil(1);
        self.end_pages(&parents, ok);
        self.m.charged[id as usize] = 0;
        self.e.failed_put(failed)
    }

    fn do_op(&mut self, op: Op) {
        match op {
            Op::Append(append) => {
                if append.gc(&self.e) {
                    let slots = self.copied(append.entries(&self.e).to_vec());
                    self.worst("copy begins", &slots, Some(append.zone));
                }
                self.append(append);
            }
            Op::Read(read) => self.begin_gc_read(read),
            Op::Zone(op) => {
                let zone = op.zone();
                let verb = if op.resets() { Verb::Reset } else { Verb::Finish };
                if op.resets() {
                    self.worst("reset", &[], Some(zone));
                }
                let t = self.media.manage(self.now, zone, verb);
                trace!(self, "{} of zone {zone}: {:?}", verb.name(), t.error);
                self.submit(t, Cmd::Zone(op));
            }
            Op::Fail(failed) => {
                let id = failed.id(&self.e);
                trace!(self, "chunk {id} failed: {failed:?}");
                let tries = mem::take(&mut self.m.tries[id as usize]);
                if tries <= TRIES && !self.in_vain() {
                    self.must_be_full();
                }
                if self.plan.errorless() {
                    self.wrong.push("swap-out fails, and no command ever did".into());
                }
                self.fail(failed);
                if self.m.starved && self.sabotage != Sabotage::FailSilently {
                    self.kick();
                }
            }
        }
    }

    /// Has GC worked in vain, so that chunks that wait fail?
    fn in_vain(&self) -> bool {
        let (nr, since) = self.m.vain;
        nr >= self.plan.cfg.nr_zones || nr > TRIES && self.now >= since + VAIN
    }

    /// A chunk failed for want of a zone, with nothing in flight, and not because GC worked in
    /// vain. Checks that GC could not have gained one.
    fn must_be_full(&mut self) {
        let (cfg, per) = (&self.plan.cfg, self.plan.contents.per_page());
        let (unit, zone_pages) = (cfg.write_unit / per, cfg.zone_blocks / per);
        // As packed_waste() of the engine.
        let waste = match cfg.pack {
            0 => 0,
            _ => (zone_pages.div_ceil(cfg.batch_pages) + 4) * unit,
        };
        let (mut empty, mut room, mut least) = (0, 0, u32::MAX);
        for zone in 0..cfg.nr_zones {
            let z = self.e.zone(zone);
            let live = match z.live {
                0 => 0,
                live => live.div_ceil(unit) * unit + waste,
            };
            match z.state {
                "empty" => (empty, room) = (empty + 1, room.max(zone_pages)),
                "open" => room = room.max(z.room),
                "full" if !z.failed && !z.deferred && live < z.capacity => least = least.min(live),
                _ => (),
            }
        }
        if empty <= cfg.reserve && least > room {
            return;
        }
        self.wrong.push(format!(
            "swap-out failed though {empty} zones are empty, {room} blocks in one, and GC has to move {least} to gain a zone"
        ));
    }

    pub(crate) fn zone_ended(&mut self, t: &Ticket, op: ZoneOp) {
        let ok = self.media.complete(t);
        trace!(self, "{} of zone {} ended, {ok}", t.verb.name(), t.zone);
        if op.resets() {
            self.n.resets += 1;
            self.n.reset_errors += u64::from(!ok);
        } else {
            self.n.finish_errors += u64::from(!ok);
            let failed = &mut self.m.unfinished[t.zone as usize];
            *failed = if ok { 0 } else { *failed + 1 };
        }
        self.e.zone_done(op, ok);
        self.kick();
    }

    /// One step of the worker; false: the work function returns.
    fn work_step(&mut self) -> bool {
        let Some(stage) = self.m.stage else {
            self.m.queued = false;
            self.m.stage = Some(Stage::Retry);
            return true;
        };
        let next = match stage {
            Stage::Retry => {
                for of in mem::take(&mut self.m.gc_retry) {
                    self.gc_read(of, true);
                }
                match self.plan.contents.pack {
                    0 => Stage::Pending,
                    _ => Stage::Scan,
                }
            }
            Stage::Scan => {
                self.scan_spans();
                Stage::Pending
            }
            Stage::Pending => {
                self.write_pending();
                Stage::Flush
            }
            Stage::Flush => {
                self.write_flush();
                Stage::Ops
            }
            Stage::Ops => {
                let op = self.e.next_op(self.now);
                self.see_losses();
                match op {
                    Some(op) => {
                        self.do_op(op);
                        Stage::Ops
                    }
                    None => {
                        self.m.stage = None;
                        return false;
                    }
                }
            }
        };
        self.m.stage = Some(next);
        true
    }

    pub(crate) fn work(&mut self) {
        let pause = self.plan.pause;
        loop {
            self.m.spins += 1;
            if self.m.spins > SPINS {
                self.wrong.push("the worker spins: it has work and nothing comes of it".into());
                return;
            }
            if !self.work_step() {
                break;
            }
            if pause > 0 {
                let at = self.now + self.delay(pause);
                self.queue.push(at, Ev::Work);
                return;
            }
        }
        if self.m.queued {
            let at = self.now + self.delay(self.plan.wake.max(US));
            self.queue.push(at, Ev::Work);
        }
    }

    pub(crate) fn not_spinning(&mut self) {
        self.m.spins = 0;
    }
}
