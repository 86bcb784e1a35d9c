// SPDX-License-Identifier: GPL-2.0-only
//! Random outages, of all commands or of some kinds. After each one swap-out works again.

use znsage_engine::{Config, Policy};

use crate::device::Fate;
use crate::host::Host;
use crate::refusals::plain;
use crate::rng::Rng;

/// Commands that fail, in percent.
#[derive(Clone, Copy, Default)]
struct Fails {
    appends: u32,
    reads: u32,
    resets: u32,
    finishes: u32,
}

struct Outages {
    h: Host,
    rng: Rng,
    fails: Fails,
}

impl Outages {
    fn new(seed: u64, change: impl FnOnce(&mut Config)) -> Outages {
        let mut cfg = Config {
            nr_zones: 40,
            nr_chunks: 16,
            reserve: 2,
            nr_gc_chunks: 4,
            policy: Policy::builtin("cgroup").expect("the engine has it"),
            max_active: 9,
            ..plain()
        };
        change(&mut cfg);
        cfg.nr_slots = cfg.max_slots() / 10 * 9;
        let mut outages =
            Outages { h: Host::new(&cfg), rng: Rng::new(seed), fails: Fails::default() };
        // The engine may count a zone that it could not finish as inactive too early.
        outages.h.dev.max_active = 0;
        for slot in 0..cfg.nr_slots {
            assert!(outages.h.write(0, slot));
            outages.h.run_device();
        }
        outages
    }

    fn write(&mut self) -> bool {
        let slot = self.rng.below(self.h.cfg.nr_slots);
        if self.rng.percent(10) {
            self.h.free(slot);
        }
        self.h.write(0, slot)
    }

    /// One operation of the worker, or the end of a random command.
    fn step(&mut self) {
        let Outages { h, rng, fails } = self;
        match rng.below(5) {
            0 if !h.appends.is_empty() => {
                let append = rng.take(&mut h.appends);
                let fails = rng.percent(fails.appends);
                h.end_append(append, if fails { Fate::Refused } else { Fate::Done });
            }
            1 if !h.gc_reads.is_empty() => {
                let read = rng.take(&mut h.gc_reads);
                h.end_gc_read(read, || rng.percent(fails.reads));
            }
            2 if !h.resets.is_empty() => {
                let reset = rng.take(&mut h.resets);
                h.end_zone(reset, !rng.percent(fails.resets));
            }
            3 if !h.finishes.is_empty() => {
                let finish = rng.take(&mut h.finishes);
                h.end_zone(finish, !rng.percent(fails.finishes));
            }
            _ if h.kick => {
                h.next_op();
            }
            _ => (),
        }
    }

    /// Writes `writes` pages, with fewer than `steps` steps after each.
    fn go_on(&mut self, writes: u32, steps: u32) {
        for _ in 0..writes {
            // In an outage all chunks may be stalled.
            let _ = self.write();
            (0..self.rng.below(steps)).for_each(|_| self.step());
        }
    }

    fn outage(&mut self) {
        let (before, during) = (self.rng.between(1, 100), self.rng.between(1, 500));
        self.go_on(before, 6);
        let mut some = || self.rng.pick(&[0, 100, 100]);
        self.fails = Fails { appends: some(), reads: some(), resets: some(), finishes: some() };
        self.go_on(during, 20);
        self.fails = Fails::default();
        self.h.run_idle();
    }

    /// Writes as many pages as there are slots; returns the chunks that fail.
    fn fails(&mut self, round: u32) -> u32 {
        let failed = self.h.failed_chunks;
        for i in 0..self.h.cfg.nr_slots {
            assert!(self.write(), "outage {round}: no chunk is left for page {i}");
            self.h.run_device();
        }
        self.h.failed_chunks - failed
    }

    /// Some chunks may fail at first, since retries have become rare.
    fn is_over(&mut self, round: u32) {
        let fails = [self.fails(round), self.fails(round)];
        assert_eq!(fails[1], 0, "outage {round}: chunks failed after {}", fails[0]);
    }
}

fn go_on_after(change: impl Fn(&mut Config)) {
    for seed in 0..3 {
        let mut outages = Outages::new(seed, &change);
        for round in 0..10 {
            outages.outage();
            outages.is_over(round);
        }
        outages.h.run_idle();
        outages.h.check_at_rest();
    }
}

#[test]
fn swap_out_goes_on_with_isolated_streams() {
    go_on_after(|_| ());
    go_on_after(|c| (c.nr_zones, c.stripe) = (80, 3));
    go_on_after(|c| (c.nr_gc_chunks, c.stripe) = (2, 3));
}

#[test]
fn swap_out_goes_on_with_one_stream() {
    go_on_after(|c| c.policy = Policy::single());
}

/// GC empties more zones at a time than it has chunks.
#[test]
fn swap_out_goes_on_with_fewer_gc_chunks_than_victims() {
    for chunks in [1, 2, 4] {
        go_on_after(|c| {
            (c.nr_zones, c.max_active, c.stripe) = (160, 19, 4);
            (c.nr_gc_chunks, c.policy) = (chunks, Policy::single());
        });
    }
}
