// SPDX-License-Identifier: GPL-2.0-only
//! The phases of the worker's threads. Each thread has its own share of the pages, so
//! content and generation of a page stay consistent without locks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::access::Chooser;
use super::arena::{poke, touch};
use super::pattern;
use super::protocol::{Latency, Outcome, Setup};
use crate::cli::Pattern;

/// Damaged pages to describe; further ones are only counted.
const MAX_FINDINGS: u64 = 20;

/// Longest latency of the histogram: a minute, in nanoseconds.
const MAX_LATENCY: u64 = 60_000_000_000;

pub type Job<'a> = &'a (dyn Fn(Share, &Running) -> Tally + Sync);

/// A counter on a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Counter(AtomicU64);

/// Shared by the threads and their supervisor during a phase.
pub struct Running {
    stop: AtomicBool,
    ops: Vec<Counter>,
    described: AtomicU64,
    findings: Mutex<Vec<String>>,
}

impl Running {
    pub fn new(threads: usize) -> Self {
        Running {
            stop: AtomicBool::new(false),
            ops: (0..threads).map(|_| Counter::default()).collect(),
            described: AtomicU64::new(0),
            findings: Mutex::new(Vec::new()),
        }
    }

    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    pub fn ops(&self) -> u64 {
        self.ops.iter().map(|c| c.0.load(Relaxed)).sum()
    }

    pub fn take_findings(&self) -> Vec<String> {
        std::mem::take(&mut *self.findings.lock().expect("no holder panics"))
    }
}

/// The work of one thread.
#[derive(Default)]
pub struct Tally {
    ops: u64,
    writes: u64,
    corrupt: u64,
    end: Option<Instant>,
    latency: Option<Histogram<u32>>,
}

impl Tally {
    pub fn add(&mut self, other: Tally) {
        self.ops += other.ops;
        self.writes += other.writes;
        self.corrupt += other.corrupt;
        self.end = self.end.max(other.end);
        match (&mut self.latency, other.latency) {
            (Some(sum), Some(part)) => sum.add(part).expect("the same bounds"),
            (none @ None, part) => *none = part,
            (Some(_), None) => {}
        }
    }

    pub fn outcome(self, start: Instant) -> Outcome {
        Outcome {
            seconds: self.end.map_or(0.0, |end| (end - start).as_secs_f64()),
            ops: self.ops,
            writes: self.writes,
            corrupt: self.corrupt,
            latency_us: self.latency.filter(|h| !h.is_empty()).map(|h| {
                let us = |ns: u64| ns as f64 / 1e3;
                Latency {
                    mean: h.mean() / 1e3,
                    p50: us(h.value_at_quantile(0.5)),
                    p99: us(h.value_at_quantile(0.99)),
                    p99_9: us(h.value_at_quantile(0.999)),
                    max: us(h.max()),
                }
            }),
        }
    }
}

/// The pages of one thread.
pub struct Share<'a> {
    thread: usize,
    /// Number of its first page in the arena.
    first: usize,
    words: &'a mut [u64],
    generations: &'a mut [u8],
    page_words: usize,
    /// See [`pattern::distinct`].
    distinct: usize,
    seed: u64,
    /// Different for each thread and phase.
    access_seed: u64,
    /// Only for phases that access pages.
    chooser: Option<Chooser>,
}

impl<'a> Share<'a> {
    /// Splits the pages into one share per thread, or fewer if there are not enough.
    /// `words` and `generations` start with page `first`.
    pub fn split(
        words: &'a mut [u64],
        generations: &'a mut [u8],
        first: usize,
        setup: &Setup,
        phase: u64,
    ) -> Vec<Share<'a>> {
        let page_words = setup.page_bytes as usize / size_of::<u64>();
        let pages = generations.len().div_ceil(setup.threads as usize).max(1);
        let phase_seed = pattern::mix(setup.seed ^ phase);
        words
            .chunks_mut(pages * page_words)
            .zip(generations.chunks_mut(pages))
            .enumerate()
            .map(|(thread, (words, generations))| Share {
                thread,
                first: first + thread * pages,
                words,
                generations,
                page_words,
                distinct: pattern::distinct(page_words, setup.compressible),
                seed: setup.seed,
                access_seed: pattern::mix(phase_seed ^ thread as u64),
                chooser: None,
            })
            .collect()
    }

    /// Called before the clock runs, because laying out a store takes a while.
    pub fn choose(&mut self, pattern: Pattern, write_ratio: f64) {
        let chooser = Chooser::new(pattern, write_ratio, self.pages(), self.access_seed);
        self.chooser = Some(chooser);
    }

    fn pages(&self) -> usize {
        self.generations.len()
    }

    fn page(&mut self, page: usize) -> &mut [u64] {
        &mut self.words[page * self.page_words..][..self.page_words]
    }

    fn key(&self, page: usize) -> u64 {
        let number = (self.first + page) as u64;
        pattern::key(self.seed, number, self.generations[page])
    }

    /// Writes the next content of a page. The caller may time the first store.
    fn rewrite(&mut self, page: usize) {
        self.generations[page] = pattern::next_generation(self.generations[page]);
        let key = self.key(page);
        let distinct = self.distinct;
        pattern::write(self.page(page), key, distinct);
    }

    /// Verifies a page. Counts, describes and repairs a damaged one, so that it counts
    /// once.
    fn check(&mut self, page: usize, tally: &mut Tally, running: &Running) {
        let key = self.key(page);
        let distinct = self.distinct;
        if pattern::verify(self.page(page), key, distinct) {
            return;
        }
        tally.corrupt += 1;
        if running.described.fetch_add(1, Relaxed) < MAX_FINDINGS {
            let seed = self.seed;
            let number = self.first + page;
            let generation = self.generations[page];
            let holds = pattern::diagnose(self.page(page), seed, key, distinct);
            let text = format!("page {number} generation {generation} holds {holds}");
            running.findings.lock().expect("no holder panics").push(text);
        }
        self.rewrite(page);
    }
}

pub fn fill(mut share: Share, running: &Running) -> Tally {
    let mut tally = Tally::default();
    for page in 0..share.pages() {
        if running.stop.load(Relaxed) {
            break;
        }
        share.rewrite(page);
        tally.ops += 1;
        tally.writes += 1;
        running.ops[share.thread].0.store(tally.ops, Relaxed);
    }
    tally.end = Some(Instant::now());
    tally
}

pub fn verify(mut share: Share, running: &Running) -> Tally {
    let mut tally = Tally::default();
    for page in 0..share.pages() {
        if running.stop.load(Relaxed) {
            break;
        }
        share.check(page, &mut tally, running);
        tally.ops += 1;
        running.ops[share.thread].0.store(tally.ops, Relaxed);
    }
    tally.end = Some(Instant::now());
    tally
}

/// Accesses the pages in the order of the share's chooser.
pub fn access(mut share: Share, running: &Running, time: Duration) -> Tally {
    let mut tally = Tally::default();
    let mut latency = Histogram::new_with_bounds(1, MAX_LATENCY, 3).expect("valid bounds");
    let mut chooser = share.chooser.take().expect("chosen before");
    let mut now = Instant::now();
    let end = now + time;
    while now < end && !running.stop.load(Relaxed) {
        let page = chooser.next_page();
        let start = Instant::now();
        touch(&share.page(page)[0]);
        let mut took = start.elapsed();
        share.check(page, &mut tally, running);
        if chooser.is_write() {
            let word = &mut share.page(page)[0];
            let start = Instant::now();
            poke(word, 0);
            took += start.elapsed();
            share.rewrite(page);
            tally.writes += 1;
        }
        now = start + took;
        latency.saturating_record(took.as_nanos() as u64);
        tally.ops += 1;
        running.ops[share.thread].0.store(tally.ops, Relaxed);
    }
    tally.end = Some(Instant::now());
    tally.latency = Some(latency);
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(threads: u32) -> Setup {
        Setup {
            cgroup_procs: None,
            max_pages: 0,
            page_bytes: 4096,
            threads,
            seed: 99,
            huge_pages: false,
            compressible: 0.0,
        }
    }

    /// Runs a job on one thread that has all pages.
    fn run(words: &mut [u64], generations: &mut [u8], job: Job) -> (Tally, Vec<String>) {
        let running = Running::new(1);
        let mut share = Share::split(words, generations, 0, &setup(1), 1).remove(0);
        share.choose(Pattern::Random, 0.5);
        (job(share, &running), running.take_findings())
    }

    #[test]
    fn shares_cover_all_pages() {
        let (mut words, mut generations) = (vec![0; 10 * 512], vec![0; 10]);
        let shares = Share::split(&mut words, &mut generations, 5, &setup(4), 1);
        let spans: Vec<_> = shares.iter().map(|s| (s.first, s.pages())).collect();
        assert_eq!(spans, [(5, 3), (8, 3), (11, 3), (14, 1)]);
    }

    #[test]
    fn no_pages_make_no_shares() {
        assert!(Share::split(&mut [], &mut [], 0, &setup(2), 1).is_empty());
    }

    #[test]
    fn filled_pages_verify() {
        let (mut words, mut generations) = (vec![0; 8 * 512], vec![0; 8]);
        let (tally, _) = run(&mut words, &mut generations, &fill);
        assert_eq!((tally.ops, tally.corrupt), (8, 0));
        assert_eq!(generations, [1; 8]);
        let (tally, found) = run(&mut words, &mut generations, &verify);
        assert_eq!((tally.ops, tally.corrupt, found.len()), (8, 0, 0));
    }

    #[test]
    fn damage_is_counted_once_and_described() {
        let (mut words, mut generations) = (vec![0; 8 * 512], vec![0; 8]);
        run(&mut words, &mut generations, &fill);
        words[3 * 512 + 100] ^= 1;
        let (tally, found) = run(&mut words, &mut generations, &verify);
        assert_eq!(tally.corrupt, 1);
        assert!(found[0].starts_with("page 3 generation 1 holds its own words"));
        let (tally, _) = run(&mut words, &mut generations, &verify);
        assert_eq!(tally.corrupt, 0);
    }

    #[test]
    fn accesses_keep_pages_sound() {
        let (mut words, mut generations) = (vec![0; 8 * 512], vec![0; 8]);
        run(&mut words, &mut generations, &fill);
        let time = Duration::from_millis(50);
        let (tally, _) =
            run(&mut words, &mut generations, &|share, running| access(share, running, time));
        assert!(tally.writes > 0 && tally.writes < tally.ops);
        assert_eq!(tally.corrupt, 0);
        let outcome = tally.outcome(Instant::now());
        assert!(outcome.latency_us.unwrap().max > 0.0);
        let (tally, _) = run(&mut words, &mut generations, &verify);
        assert_eq!(tally.corrupt, 0);
    }
}
