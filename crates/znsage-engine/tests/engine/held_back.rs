// SPDX-License-Identifier: GPL-2.0-only
//! A stream for which GC's I/O is held up, like that of a cgroup under io.max: reads or
//! appends of its pages never end. Other streams continue.

use znsage_engine::{Append, Config, Entry, GcRead, Policy, Victim};

use crate::device::Fate;
use crate::host::Host;
use crate::refusals::plain;
use crate::rng::Rng;

/// The stream that is held back, and the other one.
const SLOW: u32 = 0;
const OTHER: u32 = 1;

/// Which I/O of GC is held back.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Held {
    Nothing,
    Appends,
    Reads,
}

/// A device with two isolated streams; GC empties two zones at a time.
fn config(change: impl FnOnce(&mut Config)) -> Config {
    let mut cfg = Config {
        nr_zones: 130,
        nr_chunks: 24,
        nr_gc_chunks: 4,
        reserve: 2,
        policy: Policy::builtin("cgroup").expect("the engine has it"),
        max_active: 9,
        stripe: 3,
        ..plain()
    };
    change(&mut cfg);
    cfg.nr_slots = cfg.max_slots() / 10 * 9;
    cfg
}

/// The same, but GC empties one zone at a time.
fn one_lane(change: impl FnOnce(&mut Config)) -> Config {
    config(|c| {
        (c.nr_zones, c.max_active, c.stripe) = (300, 7, 0);
        change(c);
    })
}

struct Pair {
    h: Host,
    rng: Rng,
    held: Held,
    /// Slots of each stream.
    slots: [Vec<u32>; 2],
}

impl Pair {
    /// Both streams have written all their slots, some of them again.
    fn new(cfg: &Config) -> Pair {
        let mut pair = Pair::of(Host::new(cfg));
        pair.fill();
        for stream in [SLOW, OTHER, SLOW, OTHER] {
            assert_eq!(pair.rewrite(stream, cfg.nr_slots / 2), cfg.nr_slots / 2);
        }
        pair
    }

    /// All slots were written before the streams were isolated, some of them more than
    /// once, so that the streams own no zone.
    fn after_switch(cfg: &Config) -> Pair {
        let mut h = Host::new(cfg);
        h.set_policy(Policy::single(), Victim::Greedy);
        let all = [(0..cfg.nr_slots).collect(), Vec::new()];
        let mut pair = Pair { h, rng: Rng::new(1), held: Held::Nothing, slots: all };
        pair.fill();
        pair.rewrite(0, cfg.nr_slots);
        pair.h.run_idle();
        let mut h = pair.h;
        h.set_policy(cfg.policy, Victim::Greedy);
        Pair::of(h)
    }

    fn of(mut h: Host) -> Pair {
        assert_eq!(h.e.stats().streams, 2);
        let mut slots = [Vec::new(), Vec::new()];
        for slot in 0..h.cfg.nr_slots {
            slots[h.stream_of(slot) as usize].push(slot);
        }
        Pair { h, rng: Rng::new(1), held: Held::Nothing, slots }
    }

    fn fill(&mut self) {
        for slot in 0..self.h.cfg.nr_slots {
            assert!(self.write(slot));
        }
    }

    /// Zones from before the switch have no key.
    fn is_slow(&self, zone: u32) -> bool {
        let zi = self.h.e.zone(zone);
        zi.stream == SLOW && zi.key != 0
    }

    fn holds_append(&self, a: &Append) -> bool {
        let entries = a.entries(&self.h.e);
        self.held == Held::Appends && a.gc(&self.h.e) && self.is_slow(self.victim_of(entries))
    }

    fn holds_read(&self, r: &GcRead) -> bool {
        let entries = r.entries(&self.h.e);
        self.held == Held::Reads && self.is_slow(self.victim_of(entries))
    }

    /// The zone that GC's pages come from.
    fn victim_of(&self, entries: &[Entry]) -> u32 {
        self.h.e.locate(entries[0].expect).0
    }

    /// Ends everything that is not held back.
    fn run(&mut self) {
        loop {
            if self.h.kick {
                self.h.pump();
            }
            if let Some(i) = self.h.appends.iter().position(|a| !self.holds_append(a)) {
                let append = self.h.appends.remove(i);
                self.h.end_append(append, Fate::Done);
            } else if let Some(i) = self.h.gc_reads.iter().position(|r| !self.holds_read(r)) {
                let read = self.h.gc_reads.remove(i);
                self.h.end_gc_read(read, || false);
            } else if let Some(reset) = self.h.resets.pop() {
                self.h.end_zone(reset, true);
            } else if !self.h.kick {
                return;
            }
        }
    }

    /// Returns false if no chunk is left for the slot's stream.
    fn write(&mut self, slot: u32) -> bool {
        let written = self.h.write(0, slot);
        self.run();
        written
    }

    /// Writes up to `nr` random slots of a stream; returns how many.
    fn rewrite(&mut self, stream: u32, nr: u32) -> u32 {
        for done in 0..nr {
            let i = self.rng.index(self.slots[stream as usize].len());
            let slot = self.slots[stream as usize][i];
            if !self.write(slot) {
                return done;
            }
        }
        nr
    }

    /// Chunks of GC that are held back.
    fn chunks_held(&self) -> usize {
        let appends = self.h.appends.iter().filter(|a| self.holds_append(a)).count();
        appends + self.h.gc_reads.iter().filter(|r| self.holds_read(r)).count()
    }

    fn end(mut self) {
        self.held = Held::Nothing;
        self.h.run_idle();
        assert_eq!(self.h.failed_chunks, 0);
        self.h.check_at_rest();
    }
}

/// The slow stream writes until it waits for its GC. Then the other one writes all its
/// slots several times, and never waits for long.
fn other_goes_on(cfg: &Config, held: Held) {
    goes_on(Pair::new(cfg), held);
}

fn goes_on(mut p: Pair, held: Held) {
    let cfg = p.h.cfg.clone();
    p.held = held;
    let nr = 4 * cfg.nr_slots;
    assert!(p.rewrite(SLOW, nr) < nr, "{held:?}: the slow stream does not wait for its GC");
    let chunks = p.chunks_held();
    assert!(chunks > 0, "{held:?}: no chunk of GC is held back");
    assert!(chunks <= cfg.nr_gc_chunks as usize / 2, "{held:?}: it has {chunks} chunks of GC");

    let before = p.h.e.stream_info(OTHER);
    assert_eq!(p.rewrite(OTHER, nr), nr, "{held:?}: it waits for another stream's GC");
    p.h.take(OTHER, u64::MAX);
    p.run();
    let after = p.h.e.stream_info(OTHER);
    let written = after.host_blocks - before.host_blocks;
    assert!(written >= u64::from(nr), "{held:?}: {written} of {nr} pages are written");
    assert!(after.gc_blocks > before.gc_blocks, "{held:?}: no GC for it");
    assert!(p.chunks_held() <= cfg.nr_gc_chunks as usize / 2);
    p.end();
}

#[test]
fn held_back_appends_do_not_delay_other_streams() {
    other_goes_on(&config(|_| ()), Held::Appends);
    other_goes_on(&one_lane(|_| ()), Held::Appends);
}

#[test]
fn held_back_reads_do_not_delay_other_streams() {
    other_goes_on(&config(|_| ()), Held::Reads);
    other_goes_on(&one_lane(|_| ()), Held::Reads);
}

#[test]
fn many_chunks_of_gc_are_shared() {
    // They hold several victims: the slow stream could use up GC's room.
    for held in [Held::Appends, Held::Reads] {
        other_goes_on(&config(|c| c.nr_gc_chunks = 24), held);
        other_goes_on(&one_lane(|c| c.nr_gc_chunks = 24), held);
    }
}

#[test]
fn two_chunks_of_gc_are_shared() {
    other_goes_on(&config(|c| c.nr_gc_chunks = 2), Held::Appends);
    other_goes_on(&one_lane(|c| c.nr_gc_chunks = 2), Held::Reads);
}

#[test]
fn units_are_not_filled_with_pages_of_another_stream() {
    let cfg = config(|c| (c.chunk_pages, c.write_unit) = (8, 4));
    other_goes_on(&cfg, Held::Appends);
    other_goes_on(&cfg, Held::Reads);
}

#[test]
fn zones_of_an_earlier_policy_are_cleaned_beside_a_slow_stream() {
    for held in [Held::Appends, Held::Reads] {
        goes_on(Pair::after_switch(&config(|_| ())), held);
        goes_on(Pair::after_switch(&one_lane(|c| c.reserve = 4)), held);
    }
}

/// Chunks of the other stream that wait for a zone while GC has a pace.
fn waits(held: Held) -> u64 {
    let cfg = one_lane(|c| c.pace = 50);
    let mut p = Pair::new(&cfg);
    p.held = held;
    p.rewrite(SLOW, 4 * cfg.nr_slots);
    p.rewrite(OTHER, cfg.nr_slots);
    let before = p.h.e.stream_info(OTHER).stalls;
    assert_eq!(p.rewrite(OTHER, 2 * cfg.nr_slots), 2 * cfg.nr_slots);
    let stalls = p.h.e.stream_info(OTHER).stalls - before;
    p.end();
    stalls
}

#[test]
fn other_stream_waits_no_more_often_than_usual() {
    let usual = waits(Held::Nothing);
    for held in [Held::Appends, Held::Reads] {
        let chunks = waits(held);
        println!("{held:?}: {chunks} chunks waited; {usual} if nothing is held back");
        assert!(chunks <= usual + usual / 10, "{held:?}: {chunks} chunks waited, {usual} usually");
    }
}
