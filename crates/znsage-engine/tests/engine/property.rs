// SPDX-License-Identifier: GPL-2.0-only
//! Random steps, drawn from a seed, with every invariant checked after each.
//!
//! `ZNSAGE_SEED=N` replays one run; `ZNSAGE_STEPS=N` sets the steps of all runs together
//! (four million by default, ten in `make test-all`).

use znsage_engine::last_words;

use crate::device::Fate;
use crate::host::{Host, ENDLESS};
use crate::options::{any_policy, any_victim, Errors, Options, Weights};
use crate::rng::{from_env, Rng};

const STEPS: u64 = 4_000_000;
/// Tests that share the steps and run in parallel.
const SHARES: u64 = 4;

/// A kind of step.
type Step = fn(&mut Run);

/// A run; if it panics, it prints how to repeat it.
struct Run {
    seed: u64,
    rng: Rng,
    opt: Options,
    host: Host,
    filled: u32,
    held_back: Option<u32>,
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", how_to_replay(self.seed, &self.opt));
            eprintln!("  last steps:");
            self.host.print_trace();
        }
    }
}

fn how_to_replay(seed: u64, opt: &Options) -> String {
    format!(
        "\nseed {seed} failed; to replay it:\n  \
         ZNSAGE_SEED={seed} cargo test -p znsage-engine --test engine replay -- --nocapture\n  \
         {opt:?}\n"
    )
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let opt = Options::draw(&mut rng);
        last_words::set(&how_to_replay(seed, &opt));
        let mut host = Host::new(&opt.cfg);
        host.many_cgroups = opt.many_cgroups;
        Run { seed, rng, opt, host, filled: 0, held_back: None }
    }

    fn slot(&mut self) -> u32 {
        self.rng.below(self.opt.working_set)
    }

    /// The slot to write next.
    fn next_slot(&mut self) -> u32 {
        if self.opt.fill && self.filled < self.opt.working_set {
            self.filled += 1;
            return self.filled - 1;
        }
        self.slot()
    }

    /// Does an operation fail that does so with `chance`?
    fn fails(&mut self, chance: impl Fn(&Errors) -> u32) -> bool {
        let errors = &self.opt.errors;
        self.host.errors < errors.most && self.rng.below(10_000) < chance(errors)
    }

    fn write(&mut self) {
        let cpu = self.rng.below(self.opt.cfg.nr_cpus);
        // Reclaim writes in batches.
        for _ in 0..self.rng.pick(&[1, 1, 2, 8]) {
            let slot = self.next_slot();
            // More words than the engine has room for, of which some are frequent.
            if self.rng.percent(5) {
                let words = self.rng.pick(&[2, 8, 2000]);
                let word = u64::from(self.rng.below(words));
                if self.host.fill(slot, word) {
                    continue;
                }
            }
            if !self.host.write(cpu, slot) {
                break;
            }
        }
    }

    fn flush(&mut self) {
        let streams = self.opt.cfg.max_streams();
        let stream = self.rng.below(streams);
        if self.rng.percent(50) {
            return self.host.end_batch(stream);
        }
        let before = match self.rng.pick(&[0, 0, 20, 100]) {
            0 => u64::MAX,
            age => self.host.now.saturating_sub(age),
        };
        self.host.take(stream, before);
    }

    fn is_held_back(&self, zone: u32) -> bool {
        self.held_back == Some(self.host.e.zone(zone).stream)
    }

    fn end_append(&mut self) {
        if self.host.appends.is_empty() {
            return;
        }
        let i = self.rng.index(self.host.appends.len());
        let append = &self.host.appends[i];
        if append.gc(&self.host.e) && self.is_held_back(append.zone) {
            return;
        }
        let append = self.host.appends.swap_remove(i);
        let fate = match self.fails(|e| e.append) {
            false => Fate::Done,
            true => self.rng.pick(&[Fate::Refused, Fate::Garbled]),
        };
        self.host.end_append(append, fate);
    }

    fn end_gc_read(&mut self) {
        if self.host.gc_reads.is_empty() {
            return;
        }
        let i = self.rng.index(self.host.gc_reads.len());
        let block = self.host.gc_reads[i].entries(&self.host.e)[0].expect;
        if self.is_held_back(self.host.e.locate(block).0) {
            return;
        }
        let read = self.host.gc_reads.swap_remove(i);
        let chance = self.opt.errors.gc_read;
        let mut left = self.opt.errors.most.saturating_sub(self.host.errors);
        let rng = &mut self.rng;
        self.host.end_gc_read(read, || {
            let lost = left > 0 && rng.below(10_000) < chance;
            left -= u32::from(lost);
            lost
        });
    }

    fn end_reset(&mut self) {
        if !self.host.resets.is_empty() {
            let reset = self.rng.take(&mut self.host.resets);
            let ok = !self.fails(|e| e.reset);
            self.host.end_zone(reset, ok);
        }
    }

    fn end_finish(&mut self) {
        if !self.host.finishes.is_empty() {
            let finish = self.rng.take(&mut self.host.finishes);
            let ok = !self.fails(|e| e.finish);
            self.host.end_zone(finish, ok);
        }
    }

    fn begin_read(&mut self) {
        let (slot, max) = (self.slot(), 1 + self.rng.below(16));
        self.host.begin_read(slot, max);
    }

    fn end_read(&mut self) {
        let reads = self.host.reads();
        if reads > 0 {
            let i = self.rng.index(reads);
            self.host.end_read(i);
        }
    }

    /// One operation, or all of them.
    fn next_op(&mut self) {
        if self.rng.percent(50) {
            self.host.pump();
        } else {
            self.host.next_op();
        }
    }

    fn tune(&mut self) {
        if !self.opt.tuning {
            return;
        }
        if self.rng.percent(50) {
            let on = self.rng.percent(70);
            self.host.set_gc(on);
        } else if self.rng.percent(20) {
            let (policy, victim) = (any_policy(&mut self.rng), any_victim(&mut self.rng));
            self.host.set_policy(policy, victim);
        } else {
            let most = self.opt.cfg.nr_zones + 1;
            let (low, high) = (self.rng.below(most), self.rng.below(most));
            // 0 asks for a default, which is tested elsewhere.
            if low > 0 && high > 0 {
                self.host.set_watermarks(low, high);
            }
        }
    }

    fn free(&mut self) {
        let slot = self.slot();
        let range = self.rng.pick(&[1, 1, 1, 1, 2, 8]);
        for s in slot..(slot + range).min(self.opt.working_set) {
            self.host.free(s);
        }
    }

    /// Takes a random step of those that are possible now.
    fn step(&mut self, w: &Weights) {
        let h = &self.host;
        let if_any = |weight, nr| if nr > 0 { weight } else { 0 };
        let next_op = if self.opt.hints && !h.kick { 0 } else { w.next_op };
        let kinds: [(u32, Step); 11] = [
            (if_any(w.write, h.chunks_left()), Self::write),
            (if_any(w.flush, h.chunks_filling()), Self::flush),
            (w.free, Self::free),
            (w.tune, Self::tune),
            (w.read_begin, Self::begin_read),
            (next_op, Self::next_op),
            (if_any(w.append_end, h.appends.len()), Self::end_append),
            (if_any(w.gc_read_end, h.gc_reads.len()), Self::end_gc_read),
            (if_any(w.reset_end, h.resets.len()), Self::end_reset),
            (if_any(w.finish_end, h.finishes.len()), Self::end_finish),
            (if_any(w.read_end, h.reads()), Self::end_read),
        ];
        let all: u32 = kinds.iter().map(|k| k.0).sum();
        let mut at = self.rng.below(all.max(1));
        for (weight, act) in kinds {
            if at < weight {
                act(self);
                return;
            }
            at -= weight;
        }
    }

    /// What must hold after any step.
    fn check(&mut self) {
        self.host.check();
        let slot = self.rng.below(self.opt.cfg.nr_slots);
        let reads = self.host.reads();
        self.host.begin_read(slot, 1);
        if self.host.reads() > reads {
            self.host.end_read(reads);
        }
        if self.host.now.is_multiple_of(32) {
            self.host.check_stats();
            self.host.check_content();
        }
    }

    /// Lets everything end, including all writes.
    fn settle(&mut self) {
        self.host.set_gc(true);
        self.held_back = None;
        let start = self.host.now;
        loop {
            self.host.now += 1;
            assert!(self.host.now - start < ENDLESS.into(), "never comes to rest");
            if self.host.kick || !self.opt.hints {
                self.host.pump();
            }
            self.host.flush_all();
            if self.host.nothing_outstanding() && !self.host.kick {
                break;
            }
            let ends = [
                Self::end_append,
                Self::end_gc_read,
                Self::end_reset,
                Self::end_finish,
                Self::end_read,
            ];
            self.rng.pick(&ends)(self);
            self.check();
        }
        self.host.check_at_rest();
    }

    fn free_all(&mut self) {
        for slot in 0..self.opt.cfg.nr_slots {
            self.host.free(slot);
        }
        self.host.check_at_rest();
        let st = self.host.e.stats();
        assert_eq!((st.slots_used, st.live_blocks), (0, 0));
    }

    fn run(&mut self) {
        let mut weights = Weights::draw(&mut self.rng);
        for step in 0..self.opt.steps {
            if step % self.opt.phase == 0 {
                weights = Weights::draw(&mut self.rng);
                self.held_back = weights.held_back;
                if self.rng.percent(5) {
                    self.settle();
                }
            }
            self.host.now += 1;
            self.step(&weights);
            self.check();
        }
        self.settle();
        self.free_all();
        last_words::set("");
    }
}

/// Runs seeds share, share + 4, ... until there were enough steps.
fn share(share: u64) {
    if from_env("ZNSAGE_SEED").is_some() {
        return; // replay() does it
    }
    let enough = from_env("ZNSAGE_STEPS").unwrap_or(STEPS) / SHARES;
    let (mut steps, mut runs) = (0, 0);
    let (mut gc, mut stalls, mut resets, mut splits) = (0, 0, 0, 0);
    for seed in (share..).step_by(SHARES as usize) {
        if steps >= enough {
            break;
        }
        let mut run = Run::new(seed);
        steps += u64::from(run.opt.steps);
        run.run();
        let host = &run.host;
        runs += 1;
        gc += host.want.gc_blocks;
        stalls += host.want.stalls;
        resets += host.want.zone_resets;
        splits += u64::from(host.splits);
    }
    println!("{runs} runs, {steps} steps: {gc} blocks of GC, {stalls} stalls, {resets} resets, {splits} split chunks");
    // A test that never reaches the hard parts is no test.
    if steps >= 1_000_000 {
        assert!(gc > steps / 50 && resets > steps / 100);
        assert!(stalls > steps / 200 && splits > steps / 1000);
    }
}

#[test]
fn random_0() {
    share(0);
}

#[test]
fn random_1() {
    share(1);
}

#[test]
fn random_2() {
    share(2);
}

#[test]
fn random_3() {
    share(3);
}

/// One seed from the environment, to look at a failure.
#[test]
fn replay() {
    if let Some(seed) = from_env("ZNSAGE_SEED") {
        Run::new(seed).run();
    }
}
