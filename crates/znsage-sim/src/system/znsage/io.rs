// SPDX-License-Identifier: GPL-2.0-only
//! Chunks, device commands and completions, the deadline, and the worker's
//! steps.

use znsage_engine::{Append, Filled, GcRead, Op, Part};

use super::state::{Appending, Reading, Znsage, APPENDED, DEADLINE, GC_READ, READ, ZONE_ENDED};
use crate::device::ZoneDevice;
use crate::event::Event;
use crate::host::Host;
use crate::system::turns::{Begun, Write};
use crate::time::Ns;

impl<D: ZoneDevice> Znsage<D> {
    // ---- swap-out

    pub(super) fn entry(&self, chunk: u32, page: u32) -> usize {
        (chunk * self.cfg.chunk_pages + page) as usize
    }

    /// Appends a chunk taken from its stream, or leaves it to the worker until there is
    /// a zone.
    pub(super) fn chunk_go(&mut self, h: &mut Host, chunk: Filled, cpu: u32) {
        if self.cfg.pack > 0 && !self.pack(&chunk) {
            return self.refuse(h, chunk, cpu);
        }
        h.lock(&mut self.lock, self.set.lock_hold);
        match self.e.append_start(chunk, h.now) {
            Some(append) => self.append(h, append, cpu),
            None => h.kick(),
        }
        if self.e.gc_due() {
            h.kick();
        }
    }

    fn append(&mut self, h: &mut Host, append: Append, cpu: u32) {
        let per = self.per_block();
        let (zone, blocks) = (append.zone, (append.blocks + append.padding) / per);
        h.spent += h.costs.write + Ns::from(blocks) * h.costs.segment;
        let stream = append.write_stream(&self.e, self.media.dev.write_streams());
        self.media.dev.set_write_stream(zone, stream);
        let offset = self.media.dev.is_virtual().then_some(append.offset / per);
        let id = self.appends.insert(Appending { append, cpu, at: None });
        if let Some(begun) = self.media.write(h.now, Write { zone, offset, blocks, id }) {
            self.begun(h, begun);
        }
    }

    /// The device has accepted an append, or refused it.
    fn begun(&mut self, h: &mut Host, Begun { id, result }: Begun) {
        let done = match result {
            Ok(a) => {
                let offset = a.offset * self.per_block();
                self.appends[id].at = Some(offset);
                if self.cfg.pack > 0 {
                    self.note_records(id, offset);
                }
                if self.media.shadow.on() {
                    self.shadow_append(id, offset);
                }
                a.done
            }
            Err(fault) => fault.done,
        };
        h.queue.push(done, Event::System(APPENDED | id as u64));
    }

    fn shadow_append(&mut self, id: usize, offset: u32) {
        let append = &self.appends[id].append;
        let chunk = append.id(&self.e);
        for (i, entry) in append.entries(&self.e).iter().enumerate() {
            let (gc, packed) = (append.gc(&self.e), self.cfg.pack > 0);
            let at = if packed { entry.at - append.from } else { i as u32 };
            let to = self.media.block(append.zone, offset + at);
            let content = match gc && packed {
                true => self.moved_content(chunk, append.first + i as u32),
                false => self.contents[self.entry(chunk, entry.page)],
            };
            self.media.shadow.write(to, content);
        }
    }

    pub(super) fn appended(&mut self, h: &mut Host, i: usize) {
        let Appending { append, cpu, at } = self.appends.remove(i);
        if let Some(next) = self.media.ended(h.now, append.zone) {
            self.begun(h, next);
        }
        let gc = append.gc(&self.e);
        h.interrupt(cpu, append.nr);
        if !gc && at.is_some() {
            let first = self.entry(append.id(&self.e), 0);
            for entry in append.entries(&self.e) {
                h.write_done(self.frames[first + entry.page as usize], cpu);
            }
        }
        let end = self.e.append_done(append, at, h.now);
        debug_assert_eq!(end.worked, at.is_some(), "the device does not lie");
        let mut more = end.more;
        if let Some(ended) = end.ended {
            more |= self.e.chunk_put(ended);
            if !gc && h.wants_room() {
                h.has_room();
            }
        }
        if more {
            h.kick();
        }
    }

    /// Starts the timer for chunks over their deadline.
    pub(super) fn arm(&mut self, h: &mut Host) {
        if !self.timer_on {
            self.timer_on = true;
            h.queue.push(h.now + self.set.deadline, Event::System(DEADLINE));
        }
    }

    pub(super) fn deadline(&mut self, h: &mut Host) {
        self.timer_on = false;
        let Some(born) = self.e.oldest() else { return };
        if born <= h.now.saturating_sub(self.set.deadline) {
            self.flush = true;
            h.kick();
        }
        self.arm(h);
    }

    /// Appends chunks that waited for appends of their stream.
    pub(super) fn flush_due(&mut self, h: &mut Host) {
        for stream in 0..self.cfg.max_streams() {
            if !self.e.is_due(stream) {
                continue;
            }
            if let Some(chunk) = self.e.flush(stream) {
                self.chunk_go(h, chunk, h.tasks[h.worker() as usize].cpu);
            }
        }
    }

    /// Appends chunks born before `before`.
    pub(super) fn flush_before(&mut self, h: &mut Host, before: Ns) {
        for stream in 0..self.cfg.max_streams() {
            if let Some(chunk) = self.e.take(stream, before) {
                self.chunk_go(h, chunk, h.tasks[h.worker() as usize].cpu);
            }
        }
    }

    // ---- swap-in

    pub(super) fn read(&mut self, h: &mut Host, mut r: Reading) {
        let (zone, offset, nr) = self.span(&r);
        h.spent += h.costs.read + Ns::from(nr) * h.costs.segment;
        let done = match self.media.dev.read(h.now, zone, offset, nr) {
            Ok(done) => done,
            Err(fault) => {
                r.ok = false;
                fault.done
            }
        };
        let i = self.reads.insert(r);
        h.queue.push(done, Event::System(READ | i as u64));
    }

    pub(super) fn read_ended(&mut self, h: &mut Host, i: usize) {
        let r = self.reads.remove(i);
        h.interrupt(r.cpu, 1 + r.more.len() as u32);
        match self.cfg.pack > 0 && r.ok {
            true => self.unpack(h, r),
            false => self.deliver(h, r),
        }
    }

    /// The pages of a read are in memory, or it failed.
    pub(super) fn deliver(&mut self, h: &mut Host, r: Reading) {
        match r.ok {
            true => self.e.read_worked(),
            false => self.e.read_failed(1 + r.more.len() as u32),
        }
        let mut more = false;
        for (hold, frame) in std::iter::once((r.hold, r.frame)).chain(r.more) {
            if self.media.shadow.on() {
                self.media.shadow.check(u64::from(hold.block()), h.content(frame));
            }
            more |= self.e.read_end(hold);
            h.read_done(frame);
        }
        if more {
            h.kick();
        }
    }

    // ---- the worker

    /// Reads what a GC chunk is made of.
    fn gc_read(&mut self, h: &mut Host, read: GcRead) {
        let (mut last, mut lost) = (h.now, Vec::new());
        for Part { first, nr, block, blocks } in read.parts(&self.e, false) {
            let (zone, at) = self.e.locate(block);
            let (at, blocks) = (at / self.per_block(), blocks / self.per_block());
            h.spent += h.costs.read + Ns::from(blocks) * h.costs.segment;
            match self.media.dev.read(h.now, zone, at, blocks) {
                Ok(done) => last = last.max(done),
                Err(fault) => {
                    last = last.max(fault.done);
                    lost.extend(first..first + nr);
                }
            }
        }
        h.spent += Ns::from(read.nr) * self.set.map_cost;
        let i = self.gc_reads.insert((read, lost));
        h.queue.push(last, Event::System(GC_READ | i as u64));
    }

    pub(super) fn gc_read_ended(&mut self, h: &mut Host, i: usize) {
        let (read, lost) = self.gc_reads.remove(i);
        h.interrupt(h.tasks[h.worker() as usize].cpu, read.nr);
        if self.cfg.pack > 0 {
            return self.scan(h, read, &lost);
        }
        for index in lost {
            self.e.gc_entry_failed(&read, index);
        }
        let id = read.id(&self.e);
        for entry in read.entries(&self.e) {
            if let Some(content) = self.media.shadow.get(u64::from(entry.expect)) {
                let at = self.entry(id, entry.page);
                self.contents[at] = content;
            }
        }
        if self.e.gc_read_done(read) {
            h.kick();
        }
    }

    pub(super) fn do_op(&mut self, h: &mut Host, op: Op) {
        let cpu = h.tasks[h.worker() as usize].cpu;
        h.lock(&mut self.lock, self.set.lock_hold);
        match op {
            Op::Append(append) => self.append(h, append, cpu),
            Op::Read(read) => self.gc_read(h, read),
            Op::Zone(op) => {
                h.spent += h.costs.write;
                let end = match op.resets() {
                    true => self.media.dev.reset(h.now, op.zone()),
                    false => self.media.dev.finish(h.now, op.zone()),
                };
                if op.resets() {
                    self.media.cleared(op.zone());
                    self.packing.cleared(op.zone());
                }
                let i = self.zone_ops.insert((op, end.is_ok()));
                let done = end.unwrap_or_else(|fault| fault.done);
                h.queue.push(done, Event::System(ZONE_ENDED | i as u64));
            }
            Op::Fail(failed) => self.fail(h, failed, cpu),
        }
    }
}
