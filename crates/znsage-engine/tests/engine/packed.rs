// SPDX-License-Identifier: GPL-2.0-only
//! Pages of any length, one after the other. The host here knows where each page is, and
//! compares that with what the engine says. What is not the first word of a page reads as
//! some slot's number, so GC would take it for a page if it trusted what it reads.
//!
//! `ZNSAGE_SEED=N` replays one run; `ZNSAGE_RUNS=N` asks for more of them (600 in
//! `make test-all`).

use std::collections::BTreeSet;

use znsage_engine::{
    last_words, Append, Config, Engine, Failed, Filled, GcRead, Op, PageOwner, Policy, Read,
    ReadHold, ZoneOp, LEAST_PART,
};

use crate::device::{Device, Fate};
use crate::options::any_victim;
use crate::rng::{from_env, Rng};

mod given_up;

const RUNS: u64 = 240;
const STEPS_A_CHECK: u64 = 5;

/// What a run did.
#[derive(Default)]
struct Did {
    moved: u64,
    splits: u64,
    errors: u64,
    refused: u64,
    verified: u64,
}

/// A block: the slot and the version of its page, and which of the page's blocks it is.
type Block = (u32, u64);

fn block(slot: u32, version: u64, part: u32) -> Block {
    (slot, version << 8 | u64::from(part))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Zero,
    Filled { word: u64 },
    Writing { version: u64 },
    Stored { version: u64, block: u32, len: u32 },
    Lost,
}

struct Run {
    rng: Rng,
    cfg: Config,
    e: Engine,
    dev: Device,
    slots: Vec<Slot>,
    versions: u64,
    /// Of each chunk, the pages that it was filled with.
    pages: Vec<Vec<(u32, u64)>>,
    /// And what it appends.
    packed: Vec<Vec<Option<Block>>>,
    appends: Vec<Append>,
    gc_reads: Vec<GcRead>,
    resets: Vec<ZoneOp>,
    finishes: Vec<ZoneOp>,
    reads: Vec<(ReadHold, Block)>,
    errors: u32,
    /// In 1/1000.
    chance: u32,
    most_errors: u32,
    /// Blocks of the device that cannot be read until their zone is reset.
    bad: BTreeSet<u32>,
    /// Blocks that something else was written to, without an error.
    overwritten: BTreeSet<u32>,
    /// Of each zone, blocks of the device that GC could not read in its last pass.
    unread: Vec<BTreeSet<u32>>,
    /// Percent of pages that do not shrink.
    raw: u32,
    now: u64,
    moved: u64,
    splits: u64,
    verified: u64,
    /// Pages for which there was no room.
    refused: u64,
    /// Chunks that failed.
    failed: u64,
    /// Pages that GC gave up.
    lost: u64,
}

fn config(rng: &mut Rng) -> Config {
    loop {
        let pack = rng.pick(&[LEAST_PART, LEAST_PART, 2 * LEAST_PART]);
        let write_unit = pack * rng.pick(&[1, 1, 2, 3, 8]);
        let mut cfg = Config {
            nr_zones: rng.between(6, 24),
            zone_blocks: rng.between(8, 40) * write_unit,
            pack,
            finish: rng.percent(20),
            max_active: rng.pick(&[0, 0, 1, 2, 3, 14]),
            serial: rng.percent(20),
            wide: rng.percent(20),
            chunk_pages: rng.between(1, 6),
            write_unit,
            nr_chunks: rng.between(1, 8),
            nr_gc_chunks: rng.between(1, 6),
            reserve: rng.pick(&[1, 1, 2]),
            nr_cpus: rng.between(1, 4),
            policy: Policy::builtin(rng.pick(&["single", "cpu", "heat"])).expect("it exists"),
            victim: any_victim(rng),
            pace: rng.pick(&[0, 50, 100]),
            stripe: rng.pick(&[0, 0, 1, 2]),
            ..Config::default()
        };
        cfg.batch_pages = rng.between(1, cfg.chunk_pages);
        // As many as fit if none shrinks, or more.
        cfg.nr_slots = cfg.max_slots() * rng.pick(&[1, 1, 2, 3]);
        if cfg.nr_slots > 0 && Engine::new(&cfg).is_ok() {
            return cfg;
        }
    }
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let cfg = config(&mut rng);
        last_words::set(&format!(
            "\nseed {seed} failed; to replay it:\n  ZNSAGE_SEED={seed} cargo test -p \
             znsage-engine --test engine packed\n  {cfg:?}\n"
        ));
        let chunks = (cfg.nr_chunks + cfg.nr_gc_chunks) as usize;
        let errors = rng.percent(40);
        let bad = if rng.percent(15) { rng.between(1, 10) } else { 0 };
        let pages = cfg.nr_zones * (cfg.zone_blocks / cfg.pack);
        let bad: BTreeSet<u32> = (0..pages).filter(|_| rng.percent(bad)).collect();
        Run {
            e: Engine::new(&cfg).expect("config() has tried it"),
            dev: Device::new(&cfg),
            slots: vec![Slot::Zero; cfg.nr_slots as usize],
            versions: 0,
            pages: vec![Vec::new(); chunks],
            packed: vec![Vec::new(); chunks],
            appends: Vec::new(),
            gc_reads: Vec::new(),
            resets: Vec::new(),
            finishes: Vec::new(),
            reads: Vec::new(),
            errors: u32::from(!bad.is_empty()),
            chance: rng.pick(&[2, 20]),
            most_errors: if errors { rng.between(1, 8) } else { 0 },
            bad,
            overwritten: BTreeSet::new(),
            unread: vec![BTreeSet::new(); cfg.nr_zones as usize],
            raw: rng.pick(&[0, 50, 100, 100]),
            now: 1,
            moved: 0,
            splits: 0,
            verified: 0,
            refused: 0,
            failed: 0,
            lost: 0,
            cfg,
            rng,
        }
    }

    fn fails(&mut self) -> bool {
        let fails = self.errors < self.most_errors && self.rng.below(1000) < self.chance;
        self.errors += u32::from(fails);
        fails
    }

    /// The blocks that a page takes.
    fn length(&mut self) -> u32 {
        let (least, most) = (self.cfg.pack / LEAST_PART, self.cfg.pack + 1);
        match self.rng.percent(self.raw) {
            true => most,
            false => self.rng.between(least, most),
        }
    }

    // ---- swap-out

    fn write(&mut self) {
        let slot = self.rng.below(self.cfg.nr_slots);
        let word = u64::from(1 + self.rng.below(10));
        if self.rng.percent(10) && self.e.fill(slot, word).is_some() {
            self.slots[slot as usize] = Slot::Filled { word };
        } else {
            self.write_slot(slot);
        }
    }

    fn write_slot(&mut self, slot: u32) {
        let cpu = self.rng.below(self.cfg.nr_cpus);
        let stream = self.e.place(&PageOwner::of_cpu(cpu));
        let Some(added) = self.e.add(stream, slot, self.now) else { return };
        self.versions += 1;
        let version = self.versions;
        let pages = &mut self.pages[added.chunk as usize];
        pages.truncate(added.page as usize);
        pages.push((slot, version));
        self.slots[slot as usize] = Slot::Writing { version };
        if let Some(filled) = added.full {
            self.start(filled);
        }
    }

    fn take(&mut self) {
        let stream = self.rng.below(self.cfg.max_streams());
        let filled = match self.rng.percent(50) {
            true => self.e.flush(stream),
            false => self.e.take(stream, u64::MAX),
        };
        if let Some(filled) = filled {
            self.start(filled);
        }
    }

    /// Packs a chunk and appends it.
    fn start(&mut self, filled: Filled) {
        let id = filled.id(&self.e) as usize;
        let mut lengths: Vec<u32> = (0..filled.len(&self.e)).map(|_| self.length()).collect();
        if self.most_errors > 0 && self.rng.percent(1) {
            // It cannot go on, say, since it cannot encrypt.
            self.errors += 1;
            lengths.truncate(self.rng.below(filled.len(&self.e)) as usize);
            assert!(!self.e.pack(&filled, &lengths));
            let failed = self.e.chunk_lose(filled);
            return self.fail(failed);
        }
        let room = self.e.room();
        assert!(room <= self.e.certain());
        if !self.e.pack(&filled, &lengths) {
            assert!(self.cfg.nr_slots > self.cfg.max_slots(), "refused, and all pages fit");
            assert!(room < filled.len(&self.e), "refused, and there was room for {room} pages");
            self.refused += u64::from(filled.len(&self.e));
            let failed = self.e.chunk_lose(filled);
            return self.fail(failed);
        }
        let pages = self.pages[id].iter().zip(&lengths);
        let blocks = pages.flat_map(|(&(slot, version), &len)| {
            (0..len).map(move |part| Some(block(slot, version, part)))
        });
        self.packed[id] = blocks.collect();
        self.pad(id);
        if let Some(append) = self.e.append_start(filled, self.now) {
            self.submit(append);
        }
    }

    /// The rest of a chunk's last block of the device.
    fn pad(&mut self, id: usize) {
        let packed = &mut self.packed[id];
        packed.resize(packed.len().next_multiple_of(self.cfg.pack as usize), None);
    }

    fn submit(&mut self, append: Append) {
        let Append { zone, first, from, blocks, padding, .. } = append;
        assert!(from % self.cfg.pack == 0 && blocks % self.cfg.pack == 0);
        assert!((from + blocks) as usize <= self.packed[append.id(&self.e) as usize].len());
        self.splits += u64::from(first > 0);
        self.dev.submit_append(zone, blocks + padding);
        self.appends.push(append);
    }

    fn end_append(&mut self) {
        if self.appends.is_empty() {
            return;
        }
        let append = self.rng.take(&mut self.appends);
        let fate = match self.fails() {
            false => Fate::Done,
            true => self.rng.pick(&[Fate::Refused, Fate::Garbled]),
        };
        let Append { zone, from, blocks, padding, .. } = append;
        let (gc, entries) = (append.gc(&self.e), append.entries(&self.e).to_vec());
        let packed = &self.packed[append.id(&self.e) as usize];
        let nothing = block(self.cfg.nr_slots - 1, 0, 1);
        let data = packed[from as usize..(from + blocks) as usize].iter();
        let data: Vec<Block> = data.map(|b| b.unwrap_or(nothing)).collect();
        let at = self.dev.complete_append(zone, &data, padding, fate);
        let versions: Vec<u64> =
            entries.iter().map(|entry| data[(entry.at - from) as usize].1 >> 8).collect();
        let end = self.e.append_done(append, at, self.now);
        if let Some(offset) = at {
            let base = zone * self.cfg.zone_blocks + offset;
            for (entry, version) in entries.iter().zip(versions) {
                let was = self.slots[entry.slot as usize];
                let wanted = match was {
                    Slot::Writing { version: v } => !gc && v == version,
                    Slot::Stored { block, .. } => gc && block == entry.expect,
                    _ => false,
                };
                if wanted {
                    let (block, len) = (base + entry.at - from, entry.len);
                    self.slots[entry.slot as usize] = Slot::Stored { version, block, len };
                }
            }
            self.moved += if gc { entries.len() as u64 } else { 0 };
        }
        if let Some(ended) = end.ended {
            self.e.chunk_put(ended);
        }
    }

    fn fail(&mut self, failed: Failed) {
        assert!(self.errors > 0 || self.refused > 0, "pages fail without an error");
        self.failed += 1;
        let id = failed.id(&self.e) as usize;
        for i in failed.first..failed.first + failed.nr {
            let (slot, version) = self.pages[id][i as usize];
            if self.slots[slot as usize] == (Slot::Writing { version }) {
                self.slots[slot as usize] = Slot::Lost;
            }
        }
        self.e.failed_put(failed);
    }

    // ---- GC

    /// A span has been read: take its live pages.
    fn end_gc_read(&mut self) {
        if self.gc_reads.is_empty() {
            return;
        }
        let mut read = self.rng.take(&mut self.gc_reads);
        let id = read.id(&self.e) as usize;
        let base = read.zone * self.cfg.zone_blocks + read.from;
        let (pack, nr_slots) = (self.cfg.pack, self.cfg.nr_slots);
        let span: Vec<Option<Block>> =
            (0..read.blocks).map(|at| self.dev.end_read(base + at)).collect();
        let bad = |page| self.bad.contains(&(base / pack + page));
        let mut unread: Vec<bool> = (0..read.blocks.div_ceil(pack)).map(bad).collect();
        unread.iter_mut().for_each(|page| *page |= self.fails());
        self.dev.failed |= unread.contains(&true);
        let of_zone = &mut self.unread[read.zone as usize];
        of_zone.extend((base / pack..).zip(&unread).filter(|(_, fails)| **fails).map(|(p, _)| p));
        let overwritten = &self.overwritten;
        let slot = |at: u32| match span[at as usize] {
            Some((slot, _)) if overwritten.contains(&((base + at) / pack)) => (slot + 1) % nr_slots,
            Some((slot, name)) if name & 0xff == 0 => slot,
            _ => at.wrapping_mul(2_654_435_761) % nr_slots,
        };
        self.e.gc_scan(&mut read, slot, |at| unread[(at / pack) as usize]);
        self.packed[id].clear();
        for entry in read.entries(&self.e).to_vec() {
            assert_eq!(entry.at as usize, self.packed[id].len(), "pages follow one another");
            for part in 0..entry.len {
                let at = entry.page + part;
                let is = span[at as usize].expect("GC copies what was written");
                assert!(!unread[(at / pack) as usize], "GC copies what it could not read");
                assert_eq!((is.0, is.1 & 0xff), (entry.slot, u64::from(part)));
                self.packed[id].push(Some(is));
            }
        }
        self.pad(id);
        self.e.gc_read_done(read);
    }

    /// Is a page damaged, as far as GC has seen in its last pass over the zone?
    fn is_damaged(&self, block: u32, len: u32) -> bool {
        let pages = block / self.cfg.pack..=(block + len - 1) / self.cfg.pack;
        let unread = &self.unread[(block / self.cfg.zone_blocks) as usize];
        self.overwritten.contains(pages.start()) || unread.range(pages).next().is_some()
    }

    /// `zone` is about to be reset: of its pages, those that could not be read, or not be found,
    /// may have been given up.
    fn see_losses(&mut self, zone: u32) {
        if self.overwritten.is_empty() && self.unread[zone as usize].is_empty() {
            return;
        }
        for slot in 0..self.cfg.nr_slots {
            let Slot::Stored { block, len, .. } = self.slots[slot as usize] else { continue };
            if block / self.cfg.zone_blocks == zone && self.is_damaged(block, len) {
                self.see_loss(slot);
            }
        }
    }

    fn see_loss(&mut self, slot: u32) {
        if matches!(self.look(slot), Read::Lost) {
            self.slots[slot as usize] = Slot::Lost;
            self.lost += 1;
        }
    }

    /// Where a slot is, without reading it.
    fn look(&mut self, slot: u32) -> Read {
        let read = self.e.read_begin(slot, 1, &mut false);
        if let Read::Block(hold) = read {
            self.e.read_end(hold);
            return Read::Busy;
        }
        read
    }

    fn next_op(&mut self) -> bool {
        match self.e.next_op(self.now) {
            None => return false,
            Some(Op::Append(append)) => self.submit(append),
            Some(Op::Fail(failed)) => self.fail(failed),
            Some(Op::Read(read)) => {
                if read.from == 0 {
                    self.unread[read.zone as usize].clear();
                }
                let base = read.zone * self.cfg.zone_blocks + read.from;
                (0..read.blocks).for_each(|at| self.dev.begin_read(base + at));
                self.gc_reads.push(read);
            }
            Some(Op::Zone(reset)) if reset.resets() => {
                self.see_losses(reset.zone());
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

    fn end_reset(&mut self) {
        if !self.resets.is_empty() {
            let reset = self.rng.take(&mut self.resets);
            let ok = !self.fails();
            self.dev.complete_reset(reset.zone(), ok);
            if ok {
                let pages = self.cfg.zone_blocks / self.cfg.pack;
                let zone = reset.zone() * pages..(reset.zone() + 1) * pages;
                self.bad.retain(|page| !zone.contains(page));
                self.overwritten.retain(|page| !zone.contains(page));
            }
            self.e.zone_done(reset, ok);
        }
    }

    fn end_finish(&mut self) {
        if !self.finishes.is_empty() {
            let finish = self.rng.take(&mut self.finishes);
            let ok = !self.fails();
            self.dev.complete_finish(finish.zone(), ok);
            self.e.zone_done(finish, ok);
        }
    }

    // ---- swap-in

    fn begin_read(&mut self, slot: u32) {
        let max = self.rng.between(1, 8).min(self.cfg.nr_slots - slot);
        match (self.e.read_begin(slot, max, &mut false), self.slots[slot as usize]) {
            (Read::Block(hold), Slot::Stored { version, block: at, len }) => {
                assert_eq!((hold.block(), hold.first_len()), (at, len), "of slot {slot}");
                let mut blocks = 0;
                for next in slot..slot + hold.count() {
                    let Slot::Stored { block, len, .. } = self.slots[next as usize] else {
                        panic!("slot {next} is not stored");
                    };
                    assert_eq!(block, at + blocks, "slot {next} does not follow");
                    blocks += len;
                }
                assert_eq!(blocks, hold.blocks());
                self.dev.begin_read(at);
                self.reads.push((hold, block(slot, version, 0)));
            }
            (Read::Filled(is), Slot::Filled { word }) => assert_eq!(is, word, "slot {slot}"),
            (Read::Filled(0), Slot::Zero)
            | (Read::Lost, Slot::Lost)
            | (Read::Busy, Slot::Writing { .. }) => (),
            (Read::Lost, Slot::Stored { block, len, .. }) if self.is_damaged(block, len) => {
                self.see_loss(slot);
            }
            (is, want) => panic!("slot {slot} reads {is:?}, should be {want:?}"),
        }
    }

    fn end_read(&mut self) {
        if !self.reads.is_empty() {
            let (hold, want) = self.rng.take(&mut self.reads);
            let content = self.dev.end_read(hold.block());
            assert_eq!(content, Some(want), "content of block {}", hold.block());
            self.verified += 1;
            self.e.read_worked();
            self.e.read_end(hold);
        }
    }

    fn free(&mut self, slot: u32) {
        self.e.free(slot);
        self.slots[slot as usize] = Slot::Zero;
    }

    // ---- the run

    fn step(&mut self, frees: u32) {
        self.now += 1;
        match self.rng.below(20 + frees) {
            0..=6 => self.write(),
            7 => self.take(),
            8..=10 => {
                self.next_op();
            }
            11..=13 => self.end_append(),
            14..=15 => self.end_gc_read(),
            16 => self.end_reset(),
            17 => self.end_finish(),
            18 => {
                let slot = self.rng.below(self.cfg.nr_slots);
                self.begin_read(slot);
            }
            19 => self.end_read(),
            _ => {
                let slot = self.rng.below(self.cfg.nr_slots);
                self.free(slot);
            }
        }
        // It walks over all maps.
        if self.now.is_multiple_of(STEPS_A_CHECK) {
            self.check();
        }
    }

    fn check(&self) {
        let found = self.e.check();
        assert!(found.is_empty(), "{found:?}");
    }

    /// Lets everything end.
    fn settle(&mut self) {
        for round in 0.. {
            assert!(round < 1_000_000, "never comes to rest");
            self.now += 1;
            while self.next_op() {}
            for stream in 0..self.cfg.max_streams() {
                if let Some(filled) = self.e.take(stream, u64::MAX) {
                    self.start(filled);
                }
            }
            self.end_append();
            self.end_gc_read();
            self.end_reset();
            self.end_finish();
            self.end_read();
            let quiet = self.appends.is_empty()
                && self.gc_reads.is_empty()
                && self.resets.is_empty()
                && self.finishes.is_empty()
                && self.reads.is_empty();
            if quiet && !self.next_op() && self.e.idle() {
                break;
            }
        }
        self.check();
        for slot in 0..self.cfg.nr_slots {
            self.begin_read(slot);
            self.end_read();
        }
    }

    fn run(mut self) -> Did {
        // All slots are in use before long, and stay so.
        let frees = self.rng.pick(&[0, 0, 0, 2, 6]);
        for _ in 0..self.rng.pick(&[2000, 8000]) {
            self.step(frees);
        }
        self.settle();
        for slot in 0..self.cfg.nr_slots {
            self.free(slot);
        }
        self.settle();
        let st = self.e.stats();
        assert_eq!((st.slots_used, st.live_blocks), (0, 0));
        assert_eq!(st.refused_pages, self.refused);
        last_words::set("");
        Did {
            moved: self.moved,
            splits: self.splits,
            errors: self.errors.into(),
            refused: self.refused,
            verified: self.verified,
        }
    }
}

#[test]
fn random_lengths() {
    if let Some(seed) = from_env("ZNSAGE_SEED") {
        Run::new(seed).run();
        return;
    }
    let runs = from_env("ZNSAGE_RUNS").unwrap_or(RUNS);
    let mut all = Did::default();
    for seed in 0..runs {
        let did = Run::new(seed).run();
        all.moved += did.moved;
        all.splits += did.splits;
        all.errors += did.errors;
        all.refused += did.refused;
        all.verified += did.verified;
    }
    println!(
        "{runs} runs: {} pages verified, {} moved by GC, {} split chunks, {} errors, {} pages \
         refused",
        all.verified, all.moved, all.splits, all.errors, all.refused
    );
    // A test that never reaches the hard parts is no test.
    assert!(all.moved > 20 * runs && all.splits > runs && all.errors > runs / 2);
    assert!(all.refused > runs);
}
