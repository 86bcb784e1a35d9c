// SPDX-License-Identifier: GPL-2.0-only
//! Shared by the device tests: jobs that keep a queue filled, and a table of
//! published and simulated values.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use znsage_sim::device::{Params, ZnsSsd};
use znsage_sim::stats;
use znsage_sim::time::{to_us, Ns, SEC};

/// Time between two commands of a queue place: the difference between the
/// published rates and latencies at depth 1 (spdk, 4 KiB writes: 1 / 85,100/s
/// - 11.36 us).
pub const PAUSE: Ns = 390;

/// A generator for a test.
pub fn rng(seed: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed)
}

/// Settings for a device, as for `--set`.
pub fn set(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
}

/// Results of a job.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub latencies: Vec<Ns>,
    /// Completions in each tenth of a second.
    pub tenths: Vec<u32>,
    pub span: Ns,
}

impl Seen {
    pub fn mean_us(&self) -> f64 {
        stats::mean(&self.us()).expect("something was measured")
    }

    pub fn percentile_us(&self, p: f64) -> f64 {
        stats::percentile(&self.us(), p / 100.0).expect("something was measured")
    }

    fn us(&self) -> Vec<f64> {
        self.latencies.iter().map(|l| to_us(*l)).collect()
    }

    /// Thousands of commands a second.
    pub fn kiops(&self) -> f64 {
        self.latencies.len() as f64 / (self.span as f64 / SEC as f64) / 1e3
    }

    /// 10^6 bytes a second, of commands of `blocks`.
    pub fn mb_s(&self, blocks: u32) -> f64 {
        self.kiops() * f64::from(blocks) * 4.096
    }
}

type Issue<'a, D> = Box<dyn FnMut(&mut D, Ns) -> Ns + 'a>;

/// A job keeps `depth` commands in flight and pauses after each; with an
/// interval it issues at most one command per interval.
pub struct Job<'a, D> {
    pub depth: u32,
    pub pause: Ns,
    pub interval: Ns,
    pub issue: Issue<'a, D>,
}

impl<'a, D> Job<'a, D> {
    pub fn new(depth: u32, issue: impl FnMut(&mut D, Ns) -> Ns + 'a) -> Self {
        Job { depth, pause: PAUSE, interval: 0, issue: Box::new(issue) }
    }
}

/// Runs jobs concurrently from `start` for `span`; the first fifth, in which
/// buffers fill, does not count.
pub fn run<D>(device: &mut D, start: Ns, span: Ns, jobs: &mut [Job<D>]) -> Vec<Seen> {
    let (warm, end) = (start + span / 5, start + span);
    let empty = Seen {
        tenths: vec![0; (span * 10 / SEC) as usize + 1],
        span: end - warm,
        ..Seen::default()
    };
    let mut seen = vec![empty; jobs.len()];
    let mut turn = vec![start; jobs.len()];
    let (mut queue, mut sequence) = (BinaryHeap::new(), 0u64);
    for (j, job) in jobs.iter().enumerate() {
        for d in 0..job.depth {
            queue.push(Reverse((start + u64::from(d), sequence, j)));
            sequence += 1;
        }
    }
    while let Some(Reverse((now, _, j))) = queue.pop() {
        if now >= end {
            break;
        }
        let job = &mut jobs[j];
        let done = (job.issue)(device, now);
        if (warm..end).contains(&done) {
            seen[j].latencies.push(done - now);
            seen[j].tenths[((done - warm) * 10 / SEC) as usize] += 1;
        }
        turn[j] = (turn[j] + job.interval).max(now.saturating_sub(job.interval));
        queue.push(Reverse(((done + job.pause).max(turn[j]), sequence, j)));
        sequence += 1;
    }
    seen
}

/// Published and simulated values side by side.
pub struct Table {
    name: &'static str,
    rows: Vec<(String, f64, f64, f64)>,
}

impl Table {
    pub fn new(name: &'static str) -> Table {
        Table { name, rows: Vec::new() }
    }

    /// A row with a tolerance of 10 %.
    pub fn row(&mut self, what: impl Into<String>, published: f64, simulated: f64) {
        self.within(10.0, what, published, simulated);
    }

    /// A row with a tolerance of `percent`.
    pub fn within(
        &mut self,
        percent: f64,
        what: impl Into<String>,
        published: f64,
        simulated: f64,
    ) {
        self.rows.push((what.into(), published, simulated, percent));
    }

    /// Prints the table, and fails if a row exceeds its tolerance.
    pub fn check(self) {
        println!("\n{:46} {:>10} {:>10}  difference", self.name, "published", "simulated");
        let mut off = Vec::new();
        for (what, published, simulated, percent) in &self.rows {
            let difference = (simulated / published - 1.0) * 100.0;
            let bad = difference.abs() > *percent || difference.is_nan();
            let mark = match (bad, *percent == 10.0) {
                (true, _) => format!("  more than the {percent} % allowed"),
                (false, true) => String::new(),
                (false, false) => format!("  ({percent} % allowed)"),
            };
            println!("{what:46} {published:10.2} {simulated:10.2} {difference:+10.1} %{mark}");
            if bad {
                off.push(what.clone());
            }
        }
        assert!(off.is_empty(), "{}: {}", self.name, off.join("; "));
    }
}

/// A ZNS SSD of `gib` GiB with its first `zones` zones written, and the time
/// when all is programmed.
pub fn zns(device: &str, gib: u64, zones: u32) -> (ZnsSsd, Ns) {
    let params = Params::load(device, &[]).unwrap();
    let mut ssd = ZnsSsd::new(&params, Some(gib << 30), 1).unwrap();
    let mut now = 0;
    for zone in 0..zones {
        now = fill_zone(&mut ssd, now, zone, 1.0);
    }
    (ssd, now + SEC)
}

/// Writes a part of an empty zone; returns the completion time.
pub fn fill_zone(ssd: &mut ZnsSsd, mut now: Ns, zone: u32, part: f64) -> Ns {
    let g = ssd.geometry().clone();
    let end = (f64::from(g.zone_blocks) * part) as u32 / g.write_unit * g.write_unit;
    let mut at = 0;
    while at < end {
        let blocks = g.max_append.min(end - at);
        now = ssd.append(now, zone, blocks).unwrap().done;
        at += blocks;
    }
    now
}

/// Random aligned reads of `blocks` in the first `zones` zones.
pub fn random_reads<'a>(depth: u32, blocks: u32, zones: u32) -> Job<'a, ZnsSsd> {
    let mut rng = rng(7);
    Job::new(depth, move |ssd: &mut ZnsSsd, now| {
        let places = ssd.geometry().zone_blocks / blocks;
        let zone = rng.random_range(0..zones);
        let at = rng.random_range(0..places) * blocks;
        ssd.read(now, zone, at, blocks).unwrap()
    })
}

/// How [`stream`] writes.
#[derive(Clone, Copy, PartialEq)]
pub enum By {
    Write,
    Append,
}

/// Writes of `blocks` in sequence to `zone` and, when that is full, to the
/// next one; `zones` of them in turn, each reset before.
pub fn stream<'a>(depth: u32, blocks: u32, first: u32, zones: u32, by: By) -> Job<'a, ZnsSsd> {
    let mut zone = first;
    Job::new(depth, move |ssd: &mut ZnsSsd, now| {
        if ssd.geometry().zone_blocks - ssd.zone(zone).write_pointer < blocks {
            ssd.reset(now, zone).unwrap();
            zone = first + (zone - first + 1) % zones;
            ssd.reset(now, zone).unwrap();
        }
        match by {
            By::Append => ssd.append(now, zone, blocks).unwrap().done,
            By::Write => ssd.write(now, zone, ssd.zone(zone).write_pointer, blocks).unwrap(),
        }
    })
}
