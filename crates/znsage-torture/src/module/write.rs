// SPDX-License-Identifier: GPL-2.0-only
//! Swap-out, as kmod/write.c.

use znsage_engine::{Append, Filled, PageOwner};
use znsage_sim::time::Ns;

use crate::bio::{Bio, BioId};
use crate::chunks::{Cmd, Plug};
use crate::content::Token;
use crate::media::Ticket;
use crate::state::{Ev, Run};
use crate::types::{trace, Sabotage};

impl Run {
    pub(super) fn parent(&self, chunk: u32, entry: u32) -> usize {
        (chunk * self.plan.cfg.chunk_pages + entry) as usize
    }

    /// Completes pages of a swap-out chunk.
    pub(super) fn end_pages(&mut self, pages: &[(BioId, u32)], ok: bool) {
        for &(id, page) in pages {
            let bio = &mut self.bios[id];
            let (slot, token) = (bio.slots[page as usize], bio.tokens[page as usize]);
            bio.failed |= !ok;
            if ok {
                self.acknowledged += 1;
                self.n.packed += u64::from(self.plan.contents.pack > 0);
                self.model.written(slot, token);
            }
            self.bio_put(id);
        }
    }

    pub(crate) fn append_ended(&mut self, t: &Ticket, append: Append) {
        let (id, gc) = (append.id(&self.e), append.gc(&self.e));
        let slots: Vec<u32> = append.entries(&self.e).iter().map(|e| e.slot).collect();
        let moment = if gc { "copy ends" } else { "write ends" };
        self.worst(moment, &slots, Some(t.zone));
        let ok = self.media.complete(t);
        let first = self.parent(if gc { 0 } else { id }, append.first);
        let nr = append.nr as usize;
        let parents = if gc { vec![] } else { self.m.parents[first..first + nr].to_vec() };
        let per = self.plan.contents.per_page();
        let mut at = ok.then_some(t.offset);
        if self.sabotage == Sabotage::WrongPlace && ok && t.offset > 0 && self.spoil(20) {
            at = Some(t.offset - 1);
        }
        if self.sabotage == Sabotage::TrustFailedAppend && !ok && self.spoil(1) {
            at = Some(t.offset.min(self.plan.cfg.zone_blocks / per - t.pages));
        }
        let at = at.map(|page| page * per);
        trace!(self, "append of chunk {id} to zone {} ended: {at:?}", t.zone);
        self.n.append_errors += u64::from(!ok);
        if gc {
            if !ok && self.m.vain.0 == 0 {
                self.m.vain.1 = self.now;
            }
            self.m.vain.0 += u32::from(!ok);
        } else if ok {
            self.m.vain.0 = 0;
        } else {
            self.m.tries[id as usize] += 1;
        }
        let end = self.e.append_done(append, at, self.now);
        let mut more = end.more;
        for (zone, what) in self.e.take_odd() {
            self.wrong.push(format!("the engine says that zone {zone} is odd: {what:?}"));
        }
        if end.worked && !gc {
            self.end_pages(&parents, true);
        }
        if let Some(ended) = end.ended {
            if !gc {
                self.m.tries[id as usize] = 0;
                self.m.charged[id as usize] = 0;
            }
            more |= self.e.chunk_put(ended);
        }
        if more || self.m.starved {
            self.kick();
        }
    }

    pub(super) fn append(&mut self, append: Append) {
        let (id, gc) = (append.id(&self.e), append.gc(&self.e));
        let entries = append.entries(&self.e).to_vec();
        let packed = self.plan.contents.pack > 0;
        let mut cells = Vec::with_capacity(entries.len());
        for (i, entry) in entries.iter().enumerate() {
            if !gc {
                let (bio, page) = self.m.parents[self.parent(id, append.first + i as u32)];
                let bio = &self.bios[bio];
                if bio.slots[page as usize] != entry.slot {
                    self.wrong.push(format!("chunk {id} has the page of another slot"));
                }
                cells.push(bio.tokens[page as usize]);
            } else if !packed {
                cells.push(self.m.data[id as usize][entry.page as usize]);
            }
        }
        if packed {
            cells = self.packed_cells(id, append.from..append.from + append.blocks, &entries);
        }
        let t = self.media.append(self.now, append.zone, &cells, append.padding);
        // Check now: this event may reset the zone to blame.
        self.refused_for_active();
        trace!(
            self,
            "append of chunk {id} ({} + {} blocks{}) to zone {} at {}: {:?}",
            append.nr,
            append.padding,
            if gc { ", GC" } else { "" },
            append.zone,
            t.offset,
            t.error
        );
        self.submit(t, Cmd::Append(append));
    }

    fn chunk_go(&mut self, chunk: Filled) {
        if self.plan.contents.pack > 0 && !self.pack(&chunk) {
            return self.refuse(chunk);
        }
        match self.e.append_start(chunk, self.now) {
            Some(append) => {
                let slots: Vec<u32> = append.entries(&self.e).iter().map(|e| e.slot).collect();
                self.worst("write begins", &slots, Some(append.zone));
                self.append(append);
            }
            None => {
                self.n.waits += 1;
                self.kick();
            }
        }
        if self.e.gc_due() {
            self.kick();
        }
    }

    fn flush_stream(&mut self, stream: u32) {
        if let Some(chunk) = self.e.flush(stream) {
            self.chunk_go(chunk);
        }
    }

    fn deadline_arm(&mut self) {
        if !self.m.timer_on {
            self.m.timer_on = true;
            self.queue.push(self.now + self.plan.deadline, Ev::Deadline);
        }
    }

    pub(crate) fn deadline(&mut self) {
        self.m.timer_on = false;
        let Some(born) = self.e.oldest() else { return };
        if born + self.plan.deadline <= self.now {
            self.kick();
        }
        self.deadline_arm();
    }

    pub(super) fn write_flush(&mut self) {
        let mut before = (self.now + 1).saturating_sub(self.plan.deadline);
        if std::mem::take(&mut self.m.flush) {
            before = Ns::MAX;
        }
        for stream in 0..self.plan.cfg.max_streams() {
            if self.e.is_due(stream) {
                self.flush_stream(stream);
            }
            if let Some(chunk) = self.e.take(stream, before) {
                self.chunk_go(chunk);
            }
        }
    }

    /// False: chunks ran out; `bio.at` has the progress.
    fn write_bio(&mut self, id: BioId, stream: u32) -> bool {
        loop {
            // With its last page, the bio may be gone.
            let left = self.bios[id].slots.len() - self.bios[id].at;
            if left == 0 {
                return true;
            }
            if self.fill_page(id) {
                if left == 1 {
                    return true;
                }
                continue;
            }
            let (from, nr) = (self.bios[id].at, self.until_a_word(id));
            let Bio { slots, tokens, .. } = &self.bios[id];
            let (rest, tokens) = (slots[from..from + nr].to_vec(), tokens[from..].to_vec());
            let Some(added) = self.e.add_all(stream, &rest, &[], self.now) else { return false };
            let first = self.parent(added.chunk, added.page);
            for i in 0..added.nr as usize {
                self.m.parents[first + i] = (id, (from + i) as u32);
                self.model.begin_write(rest[i], tokens[i]);
            }
            self.bios[id].at = from + added.nr as usize;
            let all = left == added.nr as usize;
            trace!(self, "{} pages from slot {} on in chunk {}", added.nr, rest[0], added.chunk);
            match added.full {
                Some(chunk) => self.chunk_go(chunk),
                None if added.page == 0 => self.deadline_arm(),
                None => (),
            }
            if all {
                return true;
            }
        }
    }

    /// Writes the next page of a bio if it repeats a word for which the map has room.
    fn fill_page(&mut self, id: BioId) -> bool {
        let bio = &self.bios[id];
        let (slot, token) = (bio.slots[bio.at], bio.tokens[bio.at]);
        let Some(word) = self.plan.contents.word(token) else { return false };
        let Some(kick) = self.e.fill(slot, word) else { return false };
        trace!(self, "slot {slot} repeats {word:#x}");
        self.n.filled += 1;
        self.model.filled(slot, token);
        self.bios[id].at += 1;
        if kick {
            self.kick();
        }
        self.bio_put(id);
        true
    }

    /// Pages of a bio from its next one on, up to another that repeats a word.
    fn until_a_word(&self, id: BioId) -> usize {
        let rest = &self.bios[id].tokens[self.bios[id].at..];
        let word = |token: &Token| self.plan.contents.word(*token).is_some();
        rest[1..].iter().position(word).map_or(rest.len(), |n| n + 1)
    }

    fn wait_for_chunk(&mut self, id: BioId, first: bool) {
        match first {
            true => self.m.pending.push_front(id),
            false => self.m.pending.push_back(id),
        }
        self.m.starved = true;
        self.n.starved += 1;
    }

    /// Places a page of a random owner, possibly swapped out before.
    fn place(&mut self, cpu: u32) -> u32 {
        let owners = self.plan.load.owners;
        let mut page = PageOwner::of_cpu(cpu);
        // Keys of all sizes; 0 is no owner.
        page.cgroup = u64::from(self.draw(owners)) * 0x1_0000_0001;
        if self.percent(70) {
            page.life = self.draw(4 * self.plan.cfg.nr_slots);
            let past = self.draw(256) as u8;
            page.usual = self.e.usual_life(past);
        }
        (page.workingset, page.active) = (self.percent(30), self.percent(10));
        self.e.place(&page)
    }

    pub(super) fn write_pending(&mut self) {
        if !self.m.starved {
            return;
        }
        while let Some(id) = self.m.pending.pop_front() {
            let cpu = self.draw(self.plan.cfg.nr_cpus);
            let stream = self.place(cpu);
            if self.write_bio(id, stream) {
                continue;
            }
            self.wait_for_chunk(id, true);
            if !self.e.has_chunk(stream) {
                return;
            }
        }
        self.m.starved = false;
        for actor in std::mem::take(&mut self.m.fed) {
            self.queue.push(self.now, Ev::Actor(actor));
        }
        self.m.flush = true;
    }

    /// Handles a write bio. A caller that may wait for a chunk has done so.
    pub(crate) fn write(&mut self, id: BioId, cpu: u32, plug: Option<&mut Plug>) {
        if self.m.starved {
            self.wait_for_chunk(id, false);
            self.kick();
            return;
        }
        let mut stream = self.place(cpu);
        let plugged = plug.is_some();
        if let Some(plug) = plug {
            stream = *plug.stream.get_or_insert(stream);
        }
        if !self.write_bio(id, stream) {
            self.wait_for_chunk(id, false);
            self.kick();
        } else if !plugged {
            self.flush_stream(stream);
        }
    }

    /// Ends a plug; `deferred` if its task goes to sleep or is within a submission.
    pub(crate) fn unplug(&mut self, plug: Plug, deferred: bool) {
        let Some(stream) = plug.stream else { return };
        if deferred {
            self.m.flush = true;
            self.kick();
        } else {
            self.flush_stream(stream);
        }
    }
}
