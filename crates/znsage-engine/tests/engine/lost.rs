// SPDX-License-Identifier: GPL-2.0-only
//! Another program resets zones that are in use. A page reads as its slot's, or as an error.
//! It reads as zeros only as long as nothing shows that its zone was reset, and as another
//! slot's only while the append that wrote that, or one beside it, is in flight.
//!
//! The host here looks at a zone before it finishes it and with each read of GC, as the
//! module does. The device executes an append when it likes, and reports it later.
//!
//! `ZNSAGE_SEED=N` replays one run; `ZNSAGE_RUNS=N` asks for more of them.

use std::collections::HashSet;

use znsage_engine::{
    last_words, Append, Config, Engine, Filled, GcRead, Oddity, Op, PageOwner, Policy, Read,
    ReadHold, ZoneOp, LEAST_PART,
};

use crate::options::any_victim;
use crate::rng::{from_env, Rng};

const RUNS: u64 = 500;
const STEPS: u32 = 3000;

/// A block: the slot and the version of its page, and which of the page's blocks it is.
type Cell = Option<(u32, u64, u32)>;

#[derive(Default)]
struct Zone {
    cells: Vec<Cell>,
    finished: bool,
    /// Another program has reset it since the engine did.
    outside: bool,
    /// An append to it was reported as failed.
    failed: bool,
    appends: u32,
    odd: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Zero,
    Writing { version: u64 },
    Stored { version: u64, block: u32, len: u32 },
    Lost,
}

struct Flying {
    append: Append,
    /// Where the device has put it.
    at: Option<u32>,
    fails: bool,
}

struct Reading {
    hold: ReadHold,
    slot: u32,
    version: u64,
    len: u32,
    /// What the device has read, and whether appends to the zone were in flight.
    seen: Option<(Vec<Cell>, bool)>,
}

#[derive(Default, Debug)]
struct Did {
    resets: u64,
    found: u64,
    lost: u64,
    zeros: u64,
    foreign: u64,
    verified: u64,
    moved: u64,
}

struct Run {
    rng: Rng,
    cfg: Config,
    e: Engine,
    zones: Vec<Zone>,
    slots: Vec<Slot>,
    versions: u64,
    pages: Vec<Vec<(u32, u64)>>,
    /// What each chunk appends.
    data: Vec<Vec<Cell>>,
    appends: Vec<Flying>,
    reads: Vec<Reading>,
    gc_reads: Vec<GcRead>,
    resets: Vec<ZoneOp>,
    finishes: Vec<ZoneOp>,
    errors: bool,
    did: Did,
}

fn config(rng: &mut Rng) -> Config {
    loop {
        let pack = rng.pick(&[0, 0, LEAST_PART]);
        let unit = pack.max(1) * rng.pick(&[1, 1, 2]);
        let mut cfg = Config {
            nr_zones: rng.between(6, 20),
            zone_blocks: rng.between(8, 40) * unit,
            pack,
            finish: rng.percent(30),
            max_active: rng.pick(&[0, 0, 1, 2, 14]),
            serial: rng.percent(20),
            chunk_pages: 2 * rng.between(1, 4),
            write_unit: unit,
            nr_chunks: rng.between(2, 8),
            nr_gc_chunks: rng.between(1, 4),
            reserve: rng.pick(&[1, 2]),
            nr_cpus: rng.between(1, 2),
            policy: Policy::builtin(rng.pick(&["single", "cpu"])).expect("it exists"),
            victim: any_victim(rng),
            pace: rng.pick(&[0, 50]),
            stripe: rng.pick(&[0, 0, 2]),
            ..Config::default()
        };
        cfg.nr_slots = cfg.max_slots();
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
             znsage-engine --test engine lost\n  {cfg:?}\n"
        ));
        let chunks = (cfg.nr_chunks + cfg.nr_gc_chunks) as usize;
        Run {
            e: Engine::new(&cfg).expect("config() has tried it"),
            zones: (0..cfg.nr_zones).map(|_| Zone::default()).collect(),
            slots: vec![Slot::Zero; cfg.nr_slots as usize],
            versions: 0,
            pages: vec![Vec::new(); chunks],
            data: vec![Vec::new(); chunks],
            appends: Vec::new(),
            reads: Vec::new(),
            gc_reads: Vec::new(),
            resets: Vec::new(),
            finishes: Vec::new(),
            errors: rng.percent(30),
            did: Did::default(),
            cfg,
            rng,
        }
    }

    fn zone_of(&mut self, block: u32) -> (&mut Zone, usize) {
        let (zone, offset) = self.e.locate(block);
        (&mut self.zones[zone as usize], offset as usize)
    }

    fn read_cells(&mut self, block: u32, len: u32) -> Vec<Cell> {
        let (zone, at) = self.zone_of(block);
        (at..at + len as usize).map(|i| zone.cells.get(i).copied().flatten()).collect()
    }

    /// What the engine has found: those zones were reset, and their pages are lost.
    fn see_odd(&mut self) {
        for (zone, what) in self.e.take_odd() {
            let z = &mut self.zones[zone as usize];
            assert!(z.outside && what != Oddity::Beyond, "{what:?} of zone {zone}");
            assert!(!z.odd, "said twice of zone {zone}");
            z.odd = true;
            self.did.found += 1;
            for slot in &mut self.slots {
                if matches!(*slot, Slot::Stored { block, .. } if self.e.locate(block).0 == zone) {
                    *slot = Slot::Lost;
                    self.did.lost += 1;
                }
            }
        }
    }

    // ---- swap-out

    fn write(&mut self) {
        let slot = self.rng.below(self.cfg.nr_slots);
        let cpu = self.rng.below(self.cfg.nr_cpus);
        let stream = self.e.place(&PageOwner::of_cpu(cpu));
        let Some(added) = self.e.add(stream, slot, 1) else { return };
        self.versions += 1;
        let pages = &mut self.pages[added.chunk as usize];
        pages.truncate(added.page as usize);
        pages.push((slot, self.versions));
        self.slots[slot as usize] = Slot::Writing { version: self.versions };
        if let Some(filled) = added.full {
            self.start(filled);
        }
    }

    fn take(&mut self) {
        let stream = self.rng.below(self.cfg.max_streams());
        if let Some(filled) = self.e.take(stream, u64::MAX) {
            self.start(filled);
        }
    }

    fn start(&mut self, filled: Filled) {
        let id = filled.id(&self.e) as usize;
        let pages = self.pages[id][..filled.len(&self.e) as usize].to_vec();
        let mut lengths = vec![1; pages.len()];
        if self.cfg.pack > 0 {
            lengths.fill_with(|| self.rng.between(1, self.cfg.pack + 1));
            assert!(self.e.pack(&filled, &lengths), "all pages fit");
        }
        let parts = pages.iter().zip(&lengths);
        self.data[id] = parts
            .flat_map(|(&(slot, version), &len)| (0..len).map(move |i| Some((slot, version, i))))
            .collect();
        if let Some(append) = self.e.append_start(filled, 1) {
            self.submit(append);
        }
    }

    fn submit(&mut self, append: Append) {
        self.zones[append.zone as usize].appends += 1;
        let fails = self.errors && self.rng.below(1000) < 10;
        self.appends.push(Flying { append, at: None, fails });
    }

    /// The device executes an append.
    fn execute(&mut self, i: usize) {
        let Flying { append, at, .. } = &mut self.appends[i];
        if at.is_some() {
            return;
        }
        let data = &self.data[append.id(&self.e) as usize];
        let cells: Vec<Cell> = match self.cfg.pack {
            0 => append.entries(&self.e).iter().map(|e| data[e.page as usize]).collect(),
            _ => (append.from..append.from + append.blocks)
                .map(|b| data.get(b as usize).copied().flatten())
                .collect(),
        };
        let z = &mut self.zones[append.zone as usize];
        *at = Some(z.cells.len() as u32);
        z.cells.extend(cells);
        z.cells.resize(z.cells.len() + append.padding as usize, None);
        assert!(z.cells.len() <= self.cfg.zone_blocks as usize, "beyond the zone");
    }

    fn end_append(&mut self, i: usize) {
        self.execute(i);
        let Flying { append, at, fails } = self.appends.swap_remove(i);
        let (zone, id, gc) = (append.zone, append.id(&self.e) as usize, append.gc(&self.e));
        let entries = append.entries(&self.e).to_vec();
        let (from, packed) = (append.from, self.cfg.pack > 0);
        let first = append.first as usize;
        let at = at.filter(|_| !fails);
        self.zones[zone as usize].failed |= fails;
        let end = self.e.append_done(append, at, 1);
        self.zones[zone as usize].appends -= 1;
        self.see_odd();
        if let (true, Some(offset)) = (end.worked, at) {
            let base = zone * self.cfg.zone_blocks + offset;
            for (i, entry) in entries.iter().enumerate() {
                let (block, len) = match packed {
                    true => (base + entry.at - from, entry.len),
                    false => (base + i as u32, 1),
                };
                let is = &mut self.slots[entry.slot as usize];
                let version = match *is {
                    Slot::Writing { version } if !gc => version,
                    Slot::Stored { version, block, .. } if gc && block == entry.expect => version,
                    _ => continue,
                };
                if gc || self.pages[id][first + i] == (entry.slot, version) {
                    *is = Slot::Stored { version, block, len };
                    self.did.moved += u64::from(gc);
                }
            }
        }
        if let Some(ended) = end.ended {
            self.e.chunk_put(ended);
        }
    }

    // ---- the worker

    fn work(&mut self) {
        while let Some(op) = self.e.next_op(1) {
            match op {
                Op::Append(append) => self.submit(append),
                Op::Read(read) => self.gc_reads.push(read),
                Op::Zone(op) if op.resets() => self.resets.push(op),
                Op::Zone(op) => self.finishes.push(op),
                Op::Fail(failed) => {
                    for (slot, version) in self.pages[failed.id(&self.e) as usize].clone() {
                        let is = &mut self.slots[slot as usize];
                        if *is == (Slot::Writing { version }) {
                            *is = Slot::Lost;
                        }
                    }
                    self.e.failed_put(failed);
                }
            }
        }
    }

    fn look(&mut self, zone: u32) {
        let Some(look) = self.e.look_begin(zone) else { return };
        let z = &self.zones[zone as usize];
        let full = z.finished || z.cells.len() == self.cfg.zone_blocks as usize && !self.cfg.finish;
        self.e.look_end(look, full, z.cells.len() as u32);
        self.see_odd();
    }

    fn end_gc_read(&mut self) {
        let mut read = self.rng.take(&mut self.gc_reads);
        let id = read.id(&self.e) as usize;
        if self.cfg.pack == 0 {
            let entries = read.entries(&self.e).to_vec();
            let zones: HashSet<u32> = entries.iter().map(|e| self.e.locate(e.expect).0).collect();
            zones.into_iter().for_each(|zone| self.look(zone));
            self.data[id] = entries.iter().map(|e| self.read_cells(e.expect, 1)[0]).collect();
            self.e.gc_read_done(read);
            return;
        }
        self.look(read.zone);
        let base = read.zone * self.cfg.zone_blocks + read.from;
        let span = self.read_cells(base, read.blocks);
        let slot = |at: u32| match span[at as usize] {
            Some((slot, _, 0)) => slot,
            other => other.map_or(0, |_| u32::MAX),
        };
        self.e.gc_scan(&mut read, slot, |_| false);
        self.data[id].clear();
        for entry in read.entries(&self.e).to_vec() {
            let at = entry.page as usize;
            self.data[id].extend_from_slice(&span[at..at + entry.len as usize]);
        }
        self.e.gc_read_done(read);
    }

    fn end_reset(&mut self) {
        let reset = self.rng.take(&mut self.resets);
        self.zones[reset.zone() as usize] = Zone::default();
        self.e.zone_done(reset, true);
    }

    fn end_finish(&mut self) {
        let finish = self.rng.take(&mut self.finishes);
        self.look(finish.zone());
        self.zones[finish.zone() as usize].finished = true;
        self.e.zone_done(finish, true);
    }

    /// Another program resets a zone.
    fn outside(&mut self) {
        let i = self.rng.index(self.zones.len());
        let z = &mut self.zones[i];
        if z.cells.is_empty() {
            return;
        }
        (z.outside, z.finished) = (true, false);
        z.cells.clear();
        self.did.resets += 1;
    }

    // ---- swap-in

    fn begin_read(&mut self, slot: u32) {
        let is = self.slots[slot as usize];
        match self.e.read_begin(slot, 1, &mut false) {
            Read::Filled(word) => assert_eq!((word, is), (0, Slot::Zero)),
            Read::Busy => assert!(matches!(is, Slot::Writing { .. }), "{is:?}"),
            Read::Lost => assert_eq!(is, Slot::Lost, "slot {slot}"),
            Read::Block(hold) => {
                let Slot::Stored { version, block, len } = is else { panic!("{is:?}") };
                assert_eq!((block, len), (hold.block(), hold.blocks()));
                self.reads.push(Reading { hold, slot, version, len, seen: None });
            }
        }
    }

    fn execute_read(&mut self, i: usize) {
        if self.reads[i].seen.is_some() {
            return;
        }
        let (block, len) = (self.reads[i].hold.block(), self.reads[i].len);
        let cells = self.read_cells(block, len);
        let z = self.zone_of(block).0;
        let busy = z.appends > 0 || z.failed;
        self.reads[i].seen = Some((cells, busy));
    }

    fn end_read(&mut self, i: usize) {
        self.execute_read(i);
        let Reading { hold, slot, version, len, seen } = self.reads.swap_remove(i);
        let lost = self.e.block_lost(&hold);
        let z = self.zone_of(hold.block()).0;
        let (outside, odd) = (z.outside, z.odd);
        self.e.read_end(hold);
        assert_eq!(lost, odd, "a read in flight");
        let (cells, busy) = seen.expect("it was read");
        if lost {
            return;
        }
        if (0..len).all(|i| cells[i as usize] == Some((slot, version, i))) {
            self.did.verified += 1;
        } else if cells.iter().all(Option::is_none) {
            assert!(outside, "zeros");
            self.did.zeros += 1;
        } else {
            assert!(outside && busy, "slot {slot} reads {cells:?}");
            self.did.foreign += 1;
        }
    }

    fn step(&mut self) {
        let (appends, reads) = (self.appends.len(), self.reads.len());
        match self.rng.below(100) {
            0..=39 => self.write(),
            40..=42 => self.take(),
            43..=54 if appends > 0 => {
                let i = self.rng.index(appends);
                self.execute(i);
            }
            55..=69 if appends > 0 => {
                let i = self.rng.index(appends);
                self.end_append(i);
            }
            70..=74 => {
                let slot = self.rng.below(self.cfg.nr_slots);
                self.begin_read(slot);
            }
            75..=76 if reads > 0 => {
                let i = self.rng.index(reads);
                self.execute_read(i);
            }
            77..=80 if reads > 0 => {
                let i = self.rng.index(reads);
                self.end_read(i);
            }
            81..=84 if !self.gc_reads.is_empty() => self.end_gc_read(),
            85..=88 if !self.resets.is_empty() => self.end_reset(),
            89..=92 if !self.finishes.is_empty() => self.end_finish(),
            93 => {
                let slot = self.rng.below(self.cfg.nr_slots);
                self.e.free(slot);
                self.slots[slot as usize] = Slot::Zero;
            }
            94 if self.rng.percent(30) => self.outside(),
            95 if self.rng.percent(20) => {
                let zone = self.rng.below(self.cfg.nr_zones);
                self.look(zone);
            }
            96.. => self.work(),
            _ => (),
        }
    }

    fn settle(&mut self) {
        for _ in 0..100_000 {
            (0..self.cfg.max_streams()).for_each(|_| self.take());
            self.work();
            if !self.appends.is_empty() {
                self.end_append(0);
            } else if !self.gc_reads.is_empty() {
                self.end_gc_read();
            } else if !self.finishes.is_empty() {
                self.end_finish();
            } else if !self.resets.is_empty() {
                self.end_reset();
            } else if !self.reads.is_empty() {
                self.end_read(0);
            } else if self.e.idle() {
                return;
            }
        }
        panic!("never at rest: {:?}", self.e.stats());
    }

    fn read_all(&mut self) {
        for slot in 0..self.cfg.nr_slots {
            self.begin_read(slot);
            while !self.reads.is_empty() {
                self.end_read(0);
            }
        }
    }

    fn run(mut self) -> Did {
        (0..STEPS).for_each(|_| self.step());
        self.e.set_gc(false);
        self.settle();
        let before = self.did.foreign;
        self.read_all();
        assert!(self.errors || self.did.foreign == before, "another's page at rest");
        // As `znsage check` does: afterwards nothing reads as zeros.
        (0..self.cfg.nr_zones).for_each(|zone| self.look(zone));
        self.settle();
        let before = (self.did.zeros, self.did.foreign);
        self.read_all();
        assert!(self.errors || (self.did.zeros, self.did.foreign) == before, "not found");
        let violations = self.e.check();
        assert!(self.errors || violations.is_empty(), "{violations:?}");
        let st = self.e.stats();
        assert_eq!(st.zones_lost, self.did.found);
        assert!(st.pages_lost <= self.did.lost, "some were freed or written again");
        self.did
    }
}

#[test]
fn zones_that_another_program_resets() {
    if let Some(seed) = from_env("ZNSAGE_SEED") {
        println!("{:?}", Run::new(seed).run());
        return;
    }
    let runs = from_env("ZNSAGE_RUNS").unwrap_or(RUNS);
    let mut all = Did::default();
    for seed in 0..runs {
        let did = Run::new(seed).run();
        all.resets += did.resets;
        all.found += did.found;
        all.lost += did.lost;
        all.zeros += did.zeros;
        all.foreign += did.foreign;
        all.verified += did.verified;
        all.moved += did.moved;
    }
    println!("{all:?}");
    assert!(all.found > runs && all.lost > 10 * runs && all.zeros > runs, "{all:?}");
    assert!(all.verified > 100 * runs && all.moved > 50 * runs, "{all:?}");
}
