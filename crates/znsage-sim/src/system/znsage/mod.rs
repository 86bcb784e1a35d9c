// SPDX-License-Identifier: GPL-2.0-only
//! This project's engine, driven as the module drives it (`kmod/write.c`,
//! `read.c`, `worker.c`).

mod io;
mod packed;
mod place;
mod state;

use slab::Slab;
use znsage_engine::Read;

use packed::Packing;
pub use state::Znsage;
use state::{Placement, Reading, APPENDED, FILLED, GC_READ, READ, UNPACKED, ZONE_ENDED};

use super::media::Zoned;
use super::{In, Packed, SlotSource, System, SystemCounters, SystemStats, Taken, Wrong};
use crate::contents::Contents;
use crate::device::ZoneDevice;
use crate::event::Event;
use crate::host::lock::Lock;
use crate::host::page::NONE;
use crate::host::slots::Released;
use crate::host::task::By;
use crate::host::Host;
use crate::spec::{Spec, SpecError};
use crate::time::{Ns, BLOCK};
use crate::workload::oracle::Oracle;

/// Copying or filling a page, nanoseconds. Assumed: 4 KiB at 8 GB/s.
const COPY: Ns = 500;

impl<D: ZoneDevice> Znsage<D> {
    /// The engine on a device.
    pub fn new(mut media: Zoned<D>, spec: &Spec) -> Result<Self, SpecError> {
        let set = &spec.znsage;
        let (cfg, e) = place::engine(&media, set, spec.host.cpus)?;
        let contents = spec.load.contents.as_deref();
        let load = |name| Contents::load(name, set.compress, spec.seed);
        if cfg.pack > 0 {
            media.divide(cfg.pack);
        }
        let entries = (cfg.nr_chunks * cfg.chunk_pages) as usize;
        let of_gc = (cfg.nr_gc_chunks * cfg.chunk_pages) as usize;
        Ok(Znsage {
            e,
            frames: vec![NONE; entries],
            contents: if media.shadow.on() { vec![0; entries + of_gc] } else { Vec::new() },
            stream_locks: vec![Lock::default(); cfg.max_streams() as usize],
            shrink: contents.map(load).transpose()?,
            packing: Packing::new(&cfg),
            cfg,
            set: set.clone(),
            media,
            appends: Slab::new(),
            reads: Slab::new(),
            gc_reads: Slab::new(),
            zone_ops: Slab::new(),
            slots: Vec::new(),
            pasts: Vec::new(),
            placement: Placement::default(),
            timer_on: false,
            flush: false,
            lock: Lock::default(),
            failed_pages: 0,
        })
    }

    fn let_go(&mut self, h: &mut Host, slot: u32) {
        h.spent += self.set.map_cost;
        self.packing.take(slot, 0);
        if self.e.free(slot) {
            h.kick();
        }
    }

    /// Pages whose swap-out failed.
    pub fn failed_pages(&self) -> u64 {
        self.failed_pages
    }
}

impl<D: ZoneDevice> System for Znsage<D> {
    fn slots(&self) -> SlotSource {
        SlotSource::Kernel { total: self.cfg.nr_slots, discards: self.set.discards_only }
    }

    fn foresee(&mut self, oracle: Oracle) {
        self.placement.oracle = Some(oracle);
    }

    fn capacity(&self) -> u64 {
        self.media.blocks()
    }

    fn swap_out(&mut self, h: &mut Host, by: By, frames: &[u32]) -> Taken {
        self.slots.clear();
        h.alloc_slots(by.cpu, frames.len(), &mut self.slots);
        let nr = self.slots.len();
        self.draw_lengths(h, &frames[..nr]);
        let mut done = 0;
        while done < nr {
            if self.packing.drawn[done] == 0 {
                self.fill(h, by, frames[done], self.slots[done]);
                done += 1;
                continue;
            }
            let rest = self.until_filled(done, nr - done);
            let (stream, nr) = self.place(h, by, &frames[done..done + rest]);
            self.pasts.clear();
            for &frame in &frames[done..done + nr] {
                self.pasts.push(self.placement.last_stay(frame, h.frame(frame).page).1);
            }
            let slots = &self.slots[done..done + nr];
            let Some(added) = self.e.add_all(stream, slots, &self.pasts, h.now) else {
                for slot in self.slots.split_off(done) {
                    let what = h.slots.release(slot);
                    self.released(h, slot, what);
                }
                return Taken::Wait(done);
            };
            let hold = Ns::from(added.nr) * self.set.map_cost;
            h.lock(&mut self.stream_locks[stream as usize], hold);
            let first = self.entry(added.chunk, added.page);
            for i in 0..added.nr as usize {
                let frame = frames[done + i];
                let slot = self.slots[done + i];
                h.begin_write(frame, slot);
                self.frames[first + i] = frame;
                self.packing.lens[first + i] = self.packing.drawn[done + i];
                self.packing.take(slot, self.packing.drawn[done + i]);
                if self.media.shadow.on() {
                    self.contents[first + i] = h.content(frame);
                }
            }
            done += added.nr as usize;
            match added.full {
                Some(chunk) => self.chunk_go(h, chunk, by.cpu),
                None => self.arm(h),
            }
        }
        if done == frames.len() {
            Taken::All
        } else {
            Taken::NoSlot(done)
        }
    }

    fn unplug(&mut self, h: &mut Host, by: By) {
        let mut streams = self.placement.take_streams(by.task);
        while streams != 0 {
            let stream = streams.trailing_zeros();
            streams &= streams - 1;
            if let Some(chunk) = self.e.flush(stream) {
                self.chunk_go(h, chunk, by.cpu);
            }
        }
        h.spent += std::mem::take(&mut self.packing.compressing);
    }

    fn swap_in(&mut self, h: &mut Host, by: By, pages: &[In]) {
        let mut run: Option<Reading> = None;
        let mut kick = false;
        for page in pages {
            h.spent += self.set.map_cost;
            let hold = match self.e.read_begin(page.slot, 1, &mut kick) {
                Read::Block(hold) => {
                    let (life, past) = self.e.life(page.slot, &hold);
                    let of = h.frame(page.frame).page;
                    self.placement.note_stay(page.frame, of, life, past);
                    hold
                }
                Read::Filled(word) if word != 0 => {
                    h.spent += COPY;
                    h.queue.push(h.now + COPY, Event::System(FILLED | u64::from(page.frame)));
                    continue;
                }
                // The host reads no slot that is empty or being written; a slot lost to
                // an error has no data.
                Read::Filled(_) | Read::Busy | Read::Lost => {
                    self.e.read_failed(1);
                    h.read_done(page.frame);
                    continue;
                }
            };
            if let Some(r) = &mut run {
                let next = r.hold.block() + 1 + r.more.len() as u32;
                // The module reads each packed page by itself.
                let merges = self.cfg.pack == 0 && hold.block() == next;
                if merges && self.e.locate(next).1 != 0 {
                    r.more.push((hold, page.frame));
                    continue;
                }
            }
            let new = Reading { hold, frame: page.frame, more: vec![], cpu: by.cpu, ok: true };
            if let Some(r) = run.replace(new) {
                self.read(h, r);
            }
        }
        if let Some(r) = run {
            self.read(h, r);
        }
        if kick {
            h.kick();
        }
    }

    fn free(&mut self, h: &mut Host, slot: u32) {
        if !self.set.discards_only {
            self.let_go(h, slot);
        }
    }

    fn released(&mut self, h: &mut Host, _slot: u32, what: Released) {
        let Released::Cluster(c) = what else { return };
        if self.set.discards_only {
            let (first, nr) = h.slots.cluster(c);
            (first..first + nr).for_each(|slot| self.let_go(h, slot));
            h.slots.discarded(c);
        }
    }

    fn event(&mut self, h: &mut Host, what: u64) {
        let i = what as u32 as usize;
        match what & !u64::from(u32::MAX) {
            APPENDED => self.appended(h, i),
            READ => self.read_ended(h, i),
            FILLED => h.read_done(i as u32),
            UNPACKED => {
                let r = self.reads.remove(i);
                self.deliver(h, r);
            }
            GC_READ => self.gc_read_ended(h, i),
            ZONE_ENDED => {
                let (op, ok) = self.zone_ops.remove(i);
                if self.e.zone_done(op, ok) {
                    h.kick();
                }
            }
            _ => self.deadline(h),
        }
    }

    fn work(&mut self, h: &mut Host) -> bool {
        if std::mem::take(&mut self.flush) {
            self.flush_before(h, h.now.saturating_sub(self.set.deadline) + 1);
        }
        self.flush_due(h);
        let op = self.e.next_op(h.now);
        h.spent += std::mem::take(&mut self.packing.debt);
        let more = op.is_some();
        if let Some(op) = op {
            self.do_op(h, op);
        }
        h.spent += std::mem::take(&mut self.packing.compressing);
        more
    }

    fn wind_down(&mut self, h: &mut Host) {
        self.flush_before(h, Ns::MAX);
    }

    fn stats(&self) -> SystemStats {
        let st = self.e.stats();
        let count = SystemCounters {
            host_blocks: st.host_blocks,
            host_pages: st.host_pages + self.packing.filled,
            refused_pages: st.refused_pages,
            filled_pages: self.packing.filled,
            gc_blocks: st.gc_blocks,
            padding_blocks: st.padding_blocks,
            gc_read_blocks: st.gc_read_blocks,
            resets: st.zone_resets,
            stalls: st.stalls,
            ..SystemCounters::default()
        };
        SystemStats {
            count,
            map_bytes: st.map_bytes,
            device: *self.media.dev.counters(),
            packed: self.shrink.as_ref().map(|_| Packed {
                pages: st.slots_used,
                bytes: self.packing.all_taken * BLOCK / u64::from(self.per_block()),
            }),
            ..SystemStats::default()
        }
    }

    fn check(&self, h: &Host) -> Vec<Wrong> {
        let mut wrong = self.media.shadow.wrong().to_vec();
        wrong.extend(self.e.check().iter().map(|violation| Wrong(violation.to_string())));
        let mut must = |what: &str, is: u64, want: u64| {
            if is != want {
                wrong.push(Wrong(format!("{what}: is {is}, should be {want}")));
            }
        };
        let st = self.e.stats();
        must("engine at rest", u64::from(self.e.idle()), 1);
        if !self.set.discards_only {
            must("slots in use", st.slots_used, u64::from(h.slots.used()));
            let live = match self.shrink {
                Some(_) => self.packing.all_taken.div_ceil(self.per_block().into()),
                None => u64::from(h.slots.used()),
            };
            must("live blocks", st.live_blocks, live);
        }
        let c = self.media.dev.counters();
        let blocks = st.host_blocks + st.gc_blocks + st.padding_blocks;
        must("blocks on the device", c.written_blocks, blocks);
        wrong
    }
}
