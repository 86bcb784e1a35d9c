// SPDX-License-Identifier: GPL-2.0-only
//! What a device does alone: the publications' benchmarks, without a host.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use rand::RngExt;
use serde::Serialize;

use crate::device::params::Interface;
use crate::device::{ConventionalSsd, Extent, Params, ZnsSsd};
use crate::host::costs::Costs;
use crate::rng::{self, Rng};
use crate::stats::mean;
use crate::time::{to_secs, to_us, Ns, MS, SEC};

/// Time between two commands of a benchmark: the difference between the
/// published rates and latencies of a ZN540 at depth 1
/// (stonet-research/NVMeBenchmarks @01f40f1c, spdk, writes of 4 KiB: 1 /
/// 85,100/s - 11.36 us).
const PAUSE: Ns = 390;
/// Blocks of a MiB.
const MIB: u32 = 256;

/// Blocks of the requests whose latency is measured.
const SIZES: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// Percent of a device that are full in its steady state.
const FILLS: [u32; 2] = [60, 90];
/// Superblocks or zones, of their real size, of the device that is filled.
const UNITS: u32 = 128;

/// What a device does alone. What it cannot do is missing.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Its parameter set.
    pub device: String,
    /// Random reads, and writes in sequence, one at a time.
    pub latency: Vec<MeanLatency>,
    /// Writes of 4 KiB by a thread, one at a time, while others do the same elsewhere.
    pub beside: Vec<Beside>,
    /// 10 GB are written to a device in its steady state.
    pub steady: Vec<Steady>,
    /// Half of a zone's units of 16 KiB are live and move to another zone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compaction: Vec<Compaction>,
}

/// A mean latency.
#[derive(Clone, Debug, Serialize)]
pub struct MeanLatency {
    /// Else writes.
    pub reads: bool,
    /// Of 4 KiB, of a request.
    pub blocks: u32,
    /// Microseconds.
    pub us: f64,
}

/// A writer beside others.
#[derive(Clone, Debug, Serialize)]
pub struct Beside {
    /// How many others.
    pub others: u32,
    /// Its writes a second.
    pub per_s: f64,
}

/// Writes to a full device.
#[derive(Clone, Debug, Serialize)]
pub struct Steady {
    /// Percent.
    pub fill: u32,
    /// In each half of a second.
    pub mb_s: Vec<f64>,
}

/// Moving live blocks.
#[derive(Clone, Debug, Serialize)]
pub struct Compaction {
    /// Who moves them.
    pub by: Mover,
    /// Milliseconds.
    pub ms: f64,
    /// Of the live blocks.
    pub mb_s: f64,
    /// Moved within a chip.
    pub copyback_percent: f64,
}

/// Who moves live blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mover {
    /// The host reads and appends.
    Host,
    /// The device, by `zone_compaction`; the host orders the units by chip in the new
    /// zone.
    Device,
    /// The same, but the host writes the units that it has in memory: IZC-H.
    Cached,
}

pub(crate) enum Dev {
    Zns(ZnsSsd),
    Conventional(ConventionalSsd),
}

/// Submits a command at a time; returns its completion time.
pub(crate) type Issue<'a> = Box<dyn FnMut(&mut Dev, Ns) -> Ns + 'a>;

/// A thread of a benchmark, with `depth` commands in flight.
pub(crate) struct Thread<'a> {
    issue: Issue<'a>,
    depth: u32,
    /// Commands left to submit.
    left: u64,
    /// Completion time and latency of each command.
    latencies: Vec<(Ns, Ns)>,
}

/// Measures a parameter set, by name or path.
///
/// # Errors
/// If there is no such device, or it refuses a command.
pub fn measure(device: &str) -> Result<Report, String> {
    let params = Params::load(device, &[]).map_err(|e| e.to_string())?;
    let mut report = Report {
        device: device.into(),
        latency: Vec::new(),
        beside: Vec::new(),
        steady: Vec::new(),
        compaction: Vec::new(),
    };
    for reads in [true, false] {
        for blocks in SIZES {
            let us = latency(device, reads, blocks)?;
            report.latency.push(MeanLatency { reads, blocks, us });
        }
    }
    for others in 0..=2 {
        report.beside.push(Beside { others, per_s: beside(device, others)? });
    }
    for fill in FILLS {
        report.steady.push(Steady { fill, mb_s: steady(device, fill)? });
    }
    if params.zns_plus.is_some() {
        for by in [Mover::Host, Mover::Device, Mover::Cached] {
            report.compaction.push(compaction(device, by)?);
        }
    }
    Ok(report)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for MeanLatency { reads, blocks, us } in &self.latency {
            let what = if *reads { "reads" } else { "writes" };
            writeln!(f, "{what} of {} KiB: {us:.1} us", blocks * 4)?;
        }
        for Beside { others, per_s } in &self.beside {
            writeln!(f, "a writer beside {others} others: {per_s:.0} writes/s")?;
        }
        for Steady { fill, mb_s } in &self.steady {
            let least = mb_s.iter().copied().fold(f64::MAX, f64::min);
            writeln!(
                f,
                "{fill} % full: {:.0} MB/s, {least:.0} at least",
                mean(mb_s).unwrap_or(0.0)
            )?;
        }
        for Compaction { by, ms, mb_s, copyback_percent } in &self.compaction {
            let by = match by {
                Mover::Host => "host",
                Mover::Device => "device",
                Mover::Cached => "device, but for cached units",
            };
            writeln!(f, "compaction by the {by}: {ms:.1} ms, {mb_s:.0} MB/s, copyback {copyback_percent:.0} %")?;
        }
        Ok(())
    }
}

pub(crate) fn open(
    device: &str,
    size: Option<u64>,
    set: &[(String, String)],
) -> Result<Dev, String> {
    let params = Params::load(device, set).map_err(|e| e.to_string())?;
    let text = |e: crate::device::ParamError| e.to_string();
    Ok(match params.interface {
        Interface::Zoned => Dev::Zns(ZnsSsd::new(&params, size, 1).map_err(text)?),
        Interface::Conventional => {
            Dev::Conventional(ConventionalSsd::new(&params, size, 1).map_err(text)?)
        }
    })
}

impl Dev {
    /// Writes the first `part` of the device in sequence, 1 MiB at a time; returns the
    /// completion time and the number of blocks.
    fn fill(&mut self, part: f64) -> (Ns, u64) {
        let mut now = 0;
        match self {
            Dev::Zns(d) => {
                let g = d.geometry().clone();
                let zones = (f64::from(g.zones) * part) as u32;
                for zone in 0..zones {
                    now = fill_zone(d, now, zone);
                }
                (now, u64::from(zones) * u64::from(g.zone_blocks))
            }
            Dev::Conventional(d) => {
                let chunks = (d.blocks() as f64 * part) as u64 / u64::from(MIB);
                for chunk in 0..chunks {
                    now = d.write(now, chunk * u64::from(MIB), MIB);
                }
                (now, chunks * u64::from(MIB))
            }
        }
    }

    /// Writes at block `at` and advances it; returns the completion time.
    pub(crate) fn write_next(&mut self, now: Ns, at: &mut u64, blocks: u32) -> Ns {
        let done = match self {
            Dev::Zns(d) => {
                let size = u64::from(d.geometry().zone_blocks);
                // A request does not cross into the next zone.
                if size - *at % size < u64::from(blocks) {
                    *at = (*at / size + 1) * size;
                }
                d.write(now, (*at / size) as u32, (*at % size) as u32, blocks)
                    .expect("the place was not written before")
            }
            Dev::Conventional(d) => d.write(now, *at % d.blocks(), blocks),
        };
        *at += u64::from(blocks);
        done
    }

    fn read(&mut self, now: Ns, at: u64, blocks: u32) -> Ns {
        match self {
            Dev::Zns(d) => {
                let size = u64::from(d.geometry().zone_blocks);
                // A request does not cross into the next zone.
                let offset = (at % size).min(size - u64::from(blocks));
                d.read(now, (at / size) as u32, offset as u32, blocks).expect("was written")
            }
            Dev::Conventional(d) => d.read(now, at, blocks),
        }
    }
}

fn fill_zone(d: &mut ZnsSsd, mut now: Ns, zone: u32) -> Ns {
    let g = d.geometry();
    let (size, most) = (g.zone_blocks, g.max_append);
    let mut at = 0;
    while at < size {
        let blocks = most.min(size - at);
        now = d.append(now, zone, blocks).expect("an empty zone").done;
        at += blocks;
    }
    now
}

impl<'a> Thread<'a> {
    pub(crate) fn new(depth: u32, issue: impl FnMut(&mut Dev, Ns) -> Ns + 'a) -> Self {
        Thread { issue: Box::new(issue), depth, left: u64::MAX, latencies: Vec::new() }
    }

    /// Latencies of commands completed from `from` on.
    pub(crate) fn since(&self, from: Ns) -> impl Iterator<Item = Ns> + '_ {
        self.latencies.iter().filter(move |l| l.0 >= from).map(|l| l.1)
    }
}

/// Runs threads concurrently until `end`, or until all their commands are
/// submitted.
pub(crate) fn together(dev: &mut Dev, start: Ns, end: Ns, threads: &mut [Thread]) {
    let (mut queue, mut sequence) = (BinaryHeap::new(), 0u64);
    for (i, thread) in threads.iter().enumerate() {
        for _ in 0..thread.depth {
            queue.push(Reverse((start + sequence, sequence, i)));
            sequence += 1;
        }
    }
    while let Some(Reverse((now, _, i))) = queue.pop() {
        if now >= end {
            break;
        }
        let Some(left) = threads[i].left.checked_sub(1) else { continue };
        threads[i].left = left;
        let done = (threads[i].issue)(dev, now);
        threads[i].latencies.push((done, done - now));
        queue.push(Reverse((done + PAUSE, sequence, i)));
        sequence += 1;
    }
}

fn generator(seed: u64) -> Rng {
    rng::stream(1, seed)
}

/// Bytes of a device of which only a few GB are written.
const SMALL: u64 = 20 << 30;

fn latency(device: &str, reads: bool, blocks: u32) -> Result<f64, String> {
    let mut dev = open(device, Some(SMALL), &[])?;
    let (filled, written) = dev.fill(0.5);
    let start = filled + SEC;
    let (mut at, mut rng) = (written, generator(2));
    let places = written / u64::from(blocks);
    let mut threads = [Thread::new(1, |dev: &mut Dev, now| match reads {
        true => dev.read(now, rng.random_range(0..places) * u64::from(blocks), blocks),
        false => dev.write_next(now, &mut at, blocks),
    })];
    together(&mut dev, start, start + 500 * MS, &mut threads);
    let (mut sum, mut n) = (0, 0);
    for l in threads[0].since(start + 100 * MS) {
        (sum, n) = (sum + l, n + 1);
    }
    Ok(to_us(sum) / f64::from(n.max(1)))
}

fn beside(device: &str, others: u32) -> Result<f64, String> {
    let mut dev = open(device, Some(SMALL), &[])?;
    let start = SEC;
    let each = match &dev {
        // Whole zones, of more than a second's writes.
        Dev::Zns(d) => {
            let zone = u64::from(d.geometry().zone_blocks);
            zone * (1u64 << 18).div_ceil(zone)
        }
        Dev::Conventional(d) => d.blocks() / 8,
    };
    let mut threads: Vec<Thread> = (0..=others)
        .map(|i| {
            let mut at = u64::from(i) * each;
            Thread::new(1, move |dev: &mut Dev, now| dev.write_next(now, &mut at, 1))
        })
        .collect();
    together(&mut dev, start, start + SEC, &mut threads);
    Ok(threads[0].since(start + 200 * MS).count() as f64 / 0.8)
}

/// Blocks of a write of [`steady`], and writes in flight.
const STEADY: (u32, u32) = (32, 16);

fn steady(device: &str, fill: u32) -> Result<Vec<f64>, String> {
    let part = f64::from(fill) / 100.0;
    let set = |key: &str, mib: u32| vec![(key.to_string(), format!("{mib} MiB"))];
    let zoned = Params::load(device, &[]).map_err(|e| e.to_string())?.interface == Interface::Zoned;
    let mut dev = match zoned {
        true => open(device, Some(u64::from(UNITS) * (1077 << 20)), &[])?,
        false => open(device, None, &set("conventional.flash", UNITS * 1077))?,
    };
    let (mut now, written) = dev.fill(part);
    let (blocks, depth) = STEADY;
    let places = written / u64::from(blocks);
    let mut rng = generator(3);
    if let Dev::Conventional(d) = &mut dev {
        // Write the flash twice, so that garbage collection is in its steady state.
        for _ in 0..2 * d.blocks() / u64::from(blocks) {
            now = d.write(now, rng.random_range(0..places) * u64::from(blocks), blocks);
        }
    }
    let start = now + SEC;
    let total = 10_000_000_000 / (u64::from(blocks) * 4096);
    let mut at = written;
    let mut threads = [Thread::new(depth, |dev: &mut Dev, now| match dev {
        Dev::Zns(_) => dev.write_next(now, &mut at, blocks),
        Dev::Conventional(d) => {
            d.write(now, rng.random_range(0..places) * u64::from(blocks), blocks)
        }
    })];
    threads[0].left = total;
    together(&mut dev, start, Ns::MAX, &mut threads);
    Ok(halves(start, &threads[0].latencies, u64::from(blocks) * 4096))
}

/// MB/s in each whole half of a second.
fn halves(start: Ns, done: &[(Ns, Ns)], bytes: u64) -> Vec<f64> {
    let last = done.iter().map(|d| d.0).max().unwrap_or(start);
    let mut counts = vec![0u64; ((last - start) / (500 * MS)) as usize];
    for (d, _) in done {
        if let Some(n) = counts.get_mut(((d - start) / (500 * MS)) as usize) {
            *n += 1;
        }
    }
    counts.into_iter().map(|n| (n * bytes) as f64 * 2.0 / 1e6).collect()
}

/// Blocks of a unit, and units moved by one command.
const UNIT: (u32, usize) = (4, 32);
/// Units that the host has in memory (table 2 of ZNS+: 10.4 % of the blocks are not offloaded).
const CACHED: f64 = 0.104;

/// Adds the host's software costs to a command, as in the simulated host.
fn software(command: Ns, blocks: u32) -> Ns {
    let c = Costs::default();
    command + c.irq + c.wake + Ns::from(blocks) * (c.segment + c.end_page)
}

fn compaction(device: &str, by: Mover) -> Result<Compaction, String> {
    let Dev::Zns(mut d) = open(device, None, &[])? else {
        return Err(format!("{device}: not a zoned device"));
    };
    let start = fill_zone(&mut d, 0, 0) + SEC;
    let (unit, batch) = UNIT;
    let mut rng = generator(4);
    let units = (0..d.geometry().zone_blocks).step_by(unit as usize);
    let live = units.filter(|_| rng.random_bool(0.5));
    let mut live: Vec<Extent> =
        live.map(|offset| Extent { zone: 0, offset, blocks: unit }).collect();
    let all = live.len();
    if by == Mover::Cached {
        live.retain(|_| !rng.random_bool(CACHED));
    }
    // The cached units are written evenly, some with each command: those before the `i`-th.
    let (cached, commands) = (all - live.len(), live.len().div_ceil(batch));
    let before = |i: usize| (cached * i / commands) as u32;
    if by != Mover::Host {
        live = by_chip(&d, live, |i| i as u32 + before(i / batch));
    }
    let mut now = start;
    for (i, some) in live.chunks(batch).enumerate() {
        now = match by {
            Mover::Host => by_host(&mut d, now, some)?,
            Mover::Device | Mover::Cached => {
                let done = d.zone_compaction(now, some, 1).map_err(|e| e.to_string())?.done;
                let done = done + software(Costs::default().write, 1);
                match before(i + 1) - before(i) {
                    0 => done,
                    cached => append(&mut d, now, unit * cached)?.max(done),
                }
            }
        };
    }
    let c = d.counters();
    let took = now - start;
    Ok(Compaction {
        by,
        ms: to_us(took) / 1e3,
        mb_s: (all as u64 * u64::from(unit) * 4096) as f64 / 1e6 / to_secs(took),
        copyback_percent: 100.0 * c.copyback_blocks as f64 / c.copied_blocks.max(1) as f64,
    })
}

/// The host reads extents and appends them to zone 1; returns the completion time.
fn by_host(d: &mut ZnsSsd, now: Ns, some: &[Extent]) -> Result<Ns, String> {
    let mut read = now;
    for (i, e) in some.iter().enumerate() {
        // One CPU submits the reads one by one.
        let at = now + (i as Ns + 1) * Costs::default().read;
        let done = d.read(at, e.zone, e.offset, e.blocks).map_err(|e| e.to_string())?;
        read = read.max(done + software(0, e.blocks));
    }
    append(d, read, some.iter().map(|e| e.blocks).sum())
}

/// The host appends to zone 1; returns the completion time.
fn append(d: &mut ZnsSsd, now: Ns, blocks: u32) -> Result<Ns, String> {
    let done = d.append(now, 1, blocks).map_err(|e| e.to_string())?.done;
    Ok(done + software(Costs::default().write, blocks))
}

/// Orders extents by their chip in the new zone, where the `i`-th becomes unit `place(i)`:
/// ZNS+'s copyback-aware allocation.
fn by_chip(d: &ZnsSsd, mut left: Vec<Extent>, place: impl Fn(usize) -> u32) -> Vec<Extent> {
    let mut chosen: Vec<Extent> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let chip = d.die(1, UNIT.0 * place(chosen.len()));
        let at = left.iter().position(|e| d.die(0, e.offset) == chip).unwrap_or(0);
        chosen.push(left.remove(at));
    }
    chosen
}
