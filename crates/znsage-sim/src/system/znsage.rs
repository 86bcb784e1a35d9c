// SPDX-License-Identifier: GPL-2.0-only
//! This project's engine, the C code of the module, driven as the module
//! drives it (`kmod/write.c`, `read.c`, `worker.c`).

use slab::Slab;
use znsage_engine::{
    Append, Config, Engine, Filled, Finish, GcRead, Op, Policy, Read, ReadHold, Refusal, Reset,
};

use super::media::Zoned;
use super::{In, SlotSource, System, SystemStats, Taken, Wrong};
use crate::event::Event;
use crate::host::lock::Lock;
use crate::host::page::NONE;
use crate::host::task::By;
use crate::host::Host;
use crate::spec::{PolicyKind, SpecError, ZnsageSpec};
use crate::time::{Ns, BLOCK};

// As in the module: kmod/geometry.c, kmod/worker.c.
const DEFAULT_CHUNK: u64 = 256 << 10;
const NR_CHUNKS: u32 = 64;
const NR_GC_CHUNKS: u32 = 8;
const READ_OVER: u32 = 8;
const READ_MAX: u32 = 256;

// Kinds of events, above the index of what they are about.
const APPENDED: u64 = 0 << 32;
const READ: u64 = 1 << 32;
const GC_READ: u64 = 2 << 32;
const RESET: u64 = 3 << 32;
const FINISHED: u64 = 4 << 32;
const DEADLINE: u64 = 5 << 32;

struct Appending {
    append: Append,
    cpu: u32,
    /// Where it is on the device, or that it failed.
    at: Option<u32>,
}

/// A read command of swap-in.
struct Reading {
    hold: ReadHold,
    frame: u32,
    /// The blocks that follow, if any.
    more: Vec<(ReadHold, u32)>,
    cpu: u32,
    ok: bool,
}

/// The system.
pub struct Znsage {
    e: Engine,
    cfg: Config,
    set: ZnsageSpec,
    media: Zoned,
    /// The frame of each entry of each swap-out chunk.
    frames: Vec<u32>,
    /// What each held, if the content is followed.
    contents: Vec<u64>,
    appends: Slab<Appending>,
    reads: Slab<Reading>,
    gc_reads: Slab<(GcRead, Vec<u32>)>,
    resets: Slab<(Reset, bool)>,
    finishes: Slab<(Finish, bool)>,
    slots: Vec<u32>,
    timer_on: bool,
    flush: bool,
    stream_locks: Vec<Lock>,
    lock: Lock,
    failed_pages: u64,
}

fn refuse<T>(key: &str, what: impl Into<String>) -> Result<T, SpecError> {
    Err(SpecError { key: key.into(), what: what.into() })
}

/// Blocks of a chunk if nothing else is said, on a device that takes multiples
/// of `unit` up to `most`.
pub(crate) fn default_chunk(unit: u32, most: u32) -> u32 {
    let chunk = ((DEFAULT_CHUNK / BLOCK) as u32).max(unit).min(most);
    chunk - chunk % unit
}

/// The engine's configuration for a device, as the module chooses it.
fn configure(media: &Zoned, set: &ZnsageSpec, cpus: u32) -> Result<Config, SpecError> {
    let g = media.dev.geometry();
    let unit = g.write_unit;
    let mut chunk = (set.chunk / BLOCK) as u32;
    if set.chunk == 0 {
        chunk = default_chunk(unit, g.max_append.min(media.zone_blocks));
    }
    if chunk == 0 || chunk % unit != 0 || chunk > g.max_append || chunk > media.zone_blocks {
        return refuse(
            "znsage.chunk",
            format!(
                "must be a multiple of {} blocks of 4 KiB and at most {} (append limit) and {} (zone)",
                unit, g.max_append, media.zone_blocks
            ),
        );
    }
    let policy = match set.policy {
        PolicyKind::Single => Policy::Single,
        PolicyKind::Cpu => Policy::Cpu,
        other => return refuse("znsage.policy", format!("{other}: znsage knows single and cpu")),
    };
    let mut cfg = Config {
        nr_zones: g.zones,
        zone_blocks: media.zone_blocks,
        zone_caps: Vec::new(),
        finish: media.zone_blocks != g.zone_blocks,
        max_active: media.max_active(),
        nr_slots: 0,
        chunk_blocks: chunk,
        write_unit: unit,
        nr_chunks: set.chunks,
        nr_gc_chunks: set.gc_chunks,
        reserve: set.reserve,
        nr_cpus: cpus,
        policy,
        stripe: set.stripe,
        gc_low: set.gc_low,
        gc_high: set.gc_high,
    };
    if cfg.nr_chunks == 0 {
        cfg.nr_chunks = NR_CHUNKS.max(4 * cfg.nr_streams() * cfg.lanes().0);
    }
    if cfg.nr_gc_chunks == 0 {
        cfg.nr_gc_chunks = NR_GC_CHUNKS.max(2 * cfg.lanes().1);
    }
    let left = media.blocks() as f64 * (100.0 - set.over_provisioning) / 100.0;
    cfg.nr_slots = (left as u64).min(u64::from(cfg.max_slots())) as u32;
    Ok(cfg)
}

impl Znsage {
    /// The engine on a device.
    pub fn new(media: Zoned, set: &ZnsageSpec, cpus: u32) -> Result<Self, SpecError> {
        let cfg = configure(&media, set, cpus)?;
        let e = match Engine::new(&cfg) {
            Ok(e) => e,
            Err(Refusal::TooFewZones) => {
                return refuse(
                    "device",
                    format!(
                        "{} zones are too few for {} streams, GC and a reserve of {}; a larger size or smaller zones (device.zoned.zone_capacity) would do",
                        cfg.nr_zones,
                        cfg.nr_streams(),
                        cfg.reserve
                    ),
                )
            }
            Err(why) => return refuse("znsage", format!("the engine refuses it: {why:?}")),
        };
        let entries = (cfg.nr_chunks * cfg.chunk_blocks) as usize;
        Ok(Znsage {
            e,
            frames: vec![NONE; entries],
            contents: if media.shadow.on() { vec![0; entries] } else { Vec::new() },
            stream_locks: vec![Lock::default(); cfg.nr_streams() as usize],
            cfg,
            set: set.clone(),
            media,
            appends: Slab::new(),
            reads: Slab::new(),
            gc_reads: Slab::new(),
            resets: Slab::new(),
            finishes: Slab::new(),
            slots: Vec::new(),
            timer_on: false,
            flush: false,
            lock: Lock::default(),
            failed_pages: 0,
        })
    }

    // ---- swap-out

    fn entry(&self, chunk: u32, page: u32) -> usize {
        (chunk * self.cfg.chunk_blocks + page) as usize
    }

    /// A chunk that was taken from its stream is appended, or the worker does
    /// it when there is a zone.
    fn chunk_go(&mut self, h: &mut Host, chunk: Filled, cpu: u32) {
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
        let blocks = append.nr + append.padding;
        h.spent += h.costs.write + Ns::from(blocks) * h.costs.segment;
        let (at, done) = match self.media.dev.append(h.now, append.zone, blocks) {
            Ok(a) => (Some(a.offset), a.done),
            Err(fault) => (None, fault.done),
        };
        if let Some(offset) = at.filter(|_| self.media.shadow.on()) {
            self.shadow_append(&append, offset);
        }
        let i = self.appends.insert(Appending { append, cpu, at });
        h.queue.push(done, Event::System(APPENDED | i as u64));
    }

    fn shadow_append(&mut self, append: &Append, offset: u32) {
        let (gc, id) = (append.gc(&self.e), append.id(&self.e));
        for (i, entry) in append.entries(&self.e).iter().enumerate() {
            let to = self.media.block(append.zone, offset + i as u32);
            if gc {
                self.media.shadow.copy(u64::from(entry.expect), to);
            } else {
                let content = self.contents[self.entry(id, entry.page)];
                self.media.shadow.write(to, content);
            }
        }
    }

    fn appended(&mut self, h: &mut Host, i: usize) {
        let Appending { append, cpu, at } = self.appends.remove(i);
        let gc = append.gc(&self.e);
        h.interrupt(cpu, append.nr);
        if !gc && at.is_some() {
            let first = self.entry(append.id(&self.e), 0);
            for entry in append.entries(&self.e) {
                h.write_done(self.frames[first + entry.page as usize], cpu);
            }
        }
        let end = self.e.append_done(append, at);
        let mut more = end.more;
        if let Some(ended) = end.ended {
            more |= self.e.chunk_put(ended, h.now);
            if !gc && h.wants_room() {
                h.has_room();
            }
        }
        if more {
            h.kick();
        }
    }

    /// The timer looks whether a chunk is over its deadline.
    fn arm(&mut self, h: &mut Host) {
        if !self.timer_on {
            self.timer_on = true;
            h.queue.push(h.now + self.set.deadline, Event::System(DEADLINE));
        }
    }

    fn deadline(&mut self, h: &mut Host) {
        self.timer_on = false;
        let limit = h.now.saturating_sub(self.set.deadline);
        let born = (0..self.cfg.nr_streams()).map(|s| self.e.born(s)).filter(|&b| b != 0);
        let (mut filling, mut late) = (false, false);
        for b in born {
            filling = true;
            late |= b <= limit;
        }
        if late {
            self.flush = true;
            h.kick();
        }
        if filling {
            self.arm(h);
        }
    }

    /// Appends chunks that were born before.
    fn flush_before(&mut self, h: &mut Host, before: Ns) {
        for stream in 0..self.cfg.nr_streams() {
            if let Some(chunk) = self.e.take(stream, false, before) {
                self.chunk_go(h, chunk, h.tasks[h.worker() as usize].cpu);
            }
        }
    }

    // ---- swap-in

    fn read(&mut self, h: &mut Host, mut r: Reading) {
        let block = r.hold.block();
        let (zone, offset) = self.e.locate(block);
        let nr = 1 + r.more.len() as u32;
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

    fn read_ended(&mut self, h: &mut Host, i: usize) {
        let r = self.reads.remove(i);
        h.interrupt(r.cpu, 1 + r.more.len() as u32);
        if !r.ok {
            self.e.read_failed();
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

    /// Reads the blocks of a GC chunk; over short gaps in one command.
    fn gc_read(&mut self, h: &mut Host, read: GcRead) {
        let entries = read.entries(&self.e);
        let (mut first, mut last) = (0, h.now);
        let mut lost = Vec::new();
        while first < entries.len() {
            let from = entries[first].expect;
            let zone = self.e.locate(from).0;
            let (mut end, mut nr) = (first + 1, 1);
            while end < entries.len() {
                // With a write unit, a chunk goes on with the next victim.
                if self.e.locate(entries[end].expect).0 != zone {
                    break;
                }
                let step = entries[end].expect - entries[end - 1].expect;
                if step > READ_OVER + 1 || nr + step > READ_MAX {
                    break;
                }
                nr += step;
                end += 1;
            }
            h.spent += h.costs.read + Ns::from(nr) * h.costs.segment;
            let offset = self.e.locate(from).1;
            match self.media.dev.read(h.now, zone, offset, nr) {
                Ok(done) => last = last.max(done),
                Err(fault) => {
                    last = last.max(fault.done);
                    lost.extend(first as u32..end as u32);
                }
            }
            first = end;
        }
        h.spent += entries.len() as Ns * self.set.map_cost;
        let i = self.gc_reads.insert((read, lost));
        h.queue.push(last, Event::System(GC_READ | i as u64));
    }

    fn gc_read_ended(&mut self, h: &mut Host, i: usize) {
        let (read, lost) = self.gc_reads.remove(i);
        h.interrupt(h.tasks[h.worker() as usize].cpu, read.nr);
        for index in lost {
            self.e.gc_entry_lost(&read, index);
        }
        if self.e.gc_read_done(read) {
            h.kick();
        }
    }

    fn do_op(&mut self, h: &mut Host, op: Op) {
        let cpu = h.tasks[h.worker() as usize].cpu;
        h.lock(&mut self.lock, self.set.lock_hold);
        match op {
            Op::Append(append) => self.append(h, append, cpu),
            Op::Read(read) => self.gc_read(h, read),
            Op::Reset(reset) => {
                h.spent += h.costs.write;
                let (ok, done) = match self.media.dev.reset(h.now, reset.zone()) {
                    Ok(done) => (true, done),
                    Err(fault) => (false, fault.done),
                };
                self.media.cleared(reset.zone());
                let i = self.resets.insert((reset, ok));
                h.queue.push(done, Event::System(RESET | i as u64));
            }
            Op::Finish(finish) => {
                h.spent += h.costs.write;
                let (ok, done) = match self.media.dev.finish(h.now, finish.zone()) {
                    Ok(done) => (true, done),
                    Err(fault) => (false, fault.done),
                };
                let i = self.finishes.insert((finish, ok));
                h.queue.push(done, Event::System(FINISHED | i as u64));
            }
            Op::Fail(failed) => {
                let first = self.entry(failed.id(&self.e), 0);
                for entry in failed.entries(&self.e) {
                    self.failed_pages += 1;
                    h.write_failed(self.frames[first + entry.page as usize], cpu);
                }
                if self.e.failed_put(failed) {
                    h.kick();
                }
                h.has_room();
            }
        }
    }

    /// Pages whose swap-out failed.
    pub fn failed_pages(&self) -> u64 {
        self.failed_pages
    }
}

impl System for Znsage {
    fn slots(&self) -> SlotSource {
        SlotSource::Kernel { total: self.cfg.nr_slots, discards: false }
    }

    fn capacity(&self) -> u64 {
        self.media.blocks()
    }

    fn swap_out(&mut self, h: &mut Host, by: By, frames: &[u32]) -> Taken {
        let stream = self.e.place(by.cpu);
        self.slots.clear();
        h.alloc_slots(by.cpu, frames.len(), &mut self.slots);
        let mut done = 0;
        while done < self.slots.len() {
            let Some(added) = self.e.add_all(stream, &self.slots[done..], h.now) else {
                for &slot in &self.slots[done..] {
                    h.slots.release(slot);
                }
                return Taken::Wait(done);
            };
            let hold = Ns::from(added.nr) * self.set.map_cost;
            h.lock(&mut self.stream_locks[stream as usize], hold);
            let first = self.entry(added.chunk, added.page);
            for i in 0..added.nr as usize {
                let frame = frames[done + i];
                h.begin_write(frame, self.slots[done + i]);
                self.frames[first + i] = frame;
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
        let stream = self.e.place(by.cpu);
        if let Some(chunk) = self.e.take(stream, self.cfg.write_unit > 1, u64::MAX) {
            self.chunk_go(h, chunk, by.cpu);
        }
    }

    fn swap_in(&mut self, h: &mut Host, by: By, pages: &[In]) {
        let mut run: Option<Reading> = None;
        let mut kick = false;
        for page in pages {
            h.spent += self.set.map_cost;
            let hold = match self.e.read_begin(page.slot, 1, &mut kick) {
                Read::Block(hold) => hold,
                // The host reads no slot that is empty or being written; one
                // that was lost to an error has nothing to read.
                Read::Zero | Read::Busy | Read::Lost => {
                    self.e.read_failed();
                    h.read_done(page.frame);
                    continue;
                }
            };
            if let Some(r) = &mut run {
                let next = r.hold.block() + 1 + r.more.len() as u32;
                if hold.block() == next && self.e.locate(next).1 != 0 {
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
        h.spent += self.set.map_cost;
        self.e.free(slot);
    }

    fn event(&mut self, h: &mut Host, what: u64) {
        let i = what as u32 as usize;
        match what & !u64::from(u32::MAX) {
            APPENDED => self.appended(h, i),
            READ => self.read_ended(h, i),
            GC_READ => self.gc_read_ended(h, i),
            RESET => {
                let (reset, ok) = self.resets.remove(i);
                if self.e.reset_done(reset, ok) {
                    h.kick();
                }
            }
            FINISHED => {
                let (finish, ok) = self.finishes.remove(i);
                if self.e.finish_done(finish, ok) {
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
        match self.e.next_op() {
            Some(op) => {
                self.do_op(h, op);
                true
            }
            None => false,
        }
    }

    fn wind_down(&mut self, h: &mut Host) {
        self.flush_before(h, Ns::MAX);
    }

    fn stats(&self) -> SystemStats {
        let st = self.e.stats();
        SystemStats {
            host_blocks: st.host_blocks,
            gc_blocks: st.gc_blocks,
            padding_blocks: st.padding_blocks,
            gc_read_blocks: st.gc_read_blocks,
            resets: st.zone_resets,
            stalls: st.stalls,
            map_bytes: st.map_bytes,
            device: self.media.dev.counters().clone(),
            ..SystemStats::default()
        }
    }

    fn check(&self, h: &Host) -> Vec<Wrong> {
        let mut wrong = self.media.shadow.wrong().to_vec();
        let say = |v: znsage_engine::Violation| {
            Wrong(format!("{} at {}: is {}, should be {}", v.what, v.at, v.is, v.want))
        };
        wrong.extend(self.e.check().into_iter().map(say));
        let mut must = |what: &str, is: u64, want: u64| {
            if is != want {
                wrong.push(Wrong(format!("{what}: is {is}, should be {want}")));
            }
        };
        let st = self.e.stats();
        must("engine at rest", u64::from(self.e.idle()), 1);
        must("slots in use", st.slots_used, u64::from(h.slots.used()));
        must("live blocks", st.live_blocks, u64::from(h.slots.used()));
        let c = self.media.dev.counters();
        let blocks = st.host_blocks + st.gc_blocks + st.padding_blocks;
        must("blocks on the device", c.written_blocks, blocks);
        wrong
    }
}
