// SPDX-License-Identifier: GPL-2.0-only
//! The measurements. Each starts with empty zones, or fills those that it reads.

use super::advise;
use super::fio::{parse_log, Job, Run};
use super::record::{
    Fill, Neighbours, Operation, Point, Probe, Sample, Speed, Times, Varies, ZoneTimes,
};
use super::work::{sum, Work};
use crate::error::{Error, Result};
use crate::sys::{Sys, ZoneCommand};

/// Zones that are read; writers use the zones behind them.
const READ_ZONES: u64 = 3;

fn point(
    varies: Varies,
    operation: Operation,
    (request_bytes, depth, zones): (u64, u64, u64),
    speed: Speed,
) -> Point {
    Point { varies, operation, request_bytes, depth, zones, speed }
}

pub fn write_requests(w: &mut Work, probe: &mut Probe) -> Result<()> {
    w.reset()?;
    let (requests, all) = (w.ready.plan.requests.clone(), w.ready.layout.all());
    let done = w.fio(requests.iter().map(|&bytes| Job::new("write", bytes, all)).collect())?;
    let points = requests
        .iter()
        .zip(&done.jobs)
        .map(|(&bytes, job)| point(Varies::Request, Operation::Write, (bytes, 1, 1), job.speed()));
    probe.parallelism.extend(points);
    Ok(())
}

pub fn append_requests(w: &mut Work, probe: &mut Probe) -> Result<()> {
    let layout = w.ready.layout.clone();
    for bytes in w.ready.plan.requests.clone() {
        if bytes > layout.append_max {
            break;
        }
        let Some(speeds) = w.append(bytes, vec![layout.starts(0, layout.count)])? else {
            probe.notes.push("appends were not measured: not an NVMe device".into());
            return Ok(());
        };
        let point = |speed| point(Varies::Request, Operation::Append, (bytes, 1, 1), speed);
        probe.parallelism.extend(sum(&speeds).map(point));
    }
    Ok(())
}

/// Several threads append to the same zone.
pub fn append_depths(w: &mut Work, probe: &mut Probe) -> Result<()> {
    let layout = w.ready.layout.clone();
    let bytes = layout.typical();
    for depth in w.ready.plan.depths.clone() {
        let lanes = vec![layout.starts(0, layout.count); depth as usize];
        let Some(speeds) = w.append(bytes, lanes)? else { return Ok(()) };
        let point = |speed| point(Varies::Depth, Operation::Append, (bytes, depth, 1), speed);
        probe.parallelism.extend(sum(&speeds).map(point));
    }
    Ok(())
}

pub fn write_zones(w: &mut Work, probe: &mut Probe) -> Result<()> {
    w.reset()?;
    let (layout, numbers) = (w.ready.layout.clone(), w.ready.plan.zones.clone());
    let job = |&threads: &u64| {
        let each = layout.count / threads;
        let apart = each * layout.zone;
        Job { threads, apart, ..Job::new("write", layout.typical(), layout.span(0, each)) }
    };
    let done = w.fio(numbers.iter().map(job).collect())?;
    let points = numbers.iter().zip(&done.jobs).map(|(&zones, job)| {
        point(Varies::Zones, Operation::Write, (layout.typical(), 1, zones), job.speed())
    });
    probe.parallelism.extend(points);
    Ok(())
}

/// Each zone has its own thread.
pub fn append_zones(w: &mut Work, probe: &mut Probe) -> Result<()> {
    let layout = w.ready.layout.clone();
    let bytes = layout.typical();
    for zones in w.ready.plan.zones.clone() {
        let each = layout.count / zones;
        let lanes = (0..zones).map(|i| layout.starts(i * each, each)).collect();
        let Some(speeds) = w.append(bytes, lanes)? else { return Ok(()) };
        let point = |speed| point(Varies::Zones, Operation::Append, (bytes, 1, zones), speed);
        probe.parallelism.extend(sum(&speeds).map(point));
    }
    Ok(())
}

fn neighbours(
    worker: Operation,
    request_bytes: u64,
    (others, others_do, same_zone): (u64, Operation, bool),
    speed: Speed,
) -> Neighbours {
    Neighbours {
        worker,
        request_bytes,
        others,
        others_do: (others > 0).then_some(others_do),
        same_zone: (others > 0).then_some(same_zone),
        speed,
    }
}

/// A writer alone, and beside one and two others with their own zones.
pub fn writers(w: &mut Work, probe: &mut Probe) -> Result<()> {
    w.reset()?;
    let layout = w.ready.layout.clone();
    let most = if layout.open < 3 { layout.open.saturating_sub(1) } else { 2 };
    let (bytes, third) = (layout.typical(), layout.count / 3);
    let writer = |i: u64| Job::new("write", bytes, layout.span(i * third, third));
    let mut jobs = Vec::new();
    for others in 0..=most {
        jobs.push(writer(0));
        jobs.extend((1..=others).map(|i| writer(i).beside()));
    }
    let done = w.fio(jobs)?;
    let mut at = 0;
    for others in 0..=most {
        let company = (others, Operation::Write, false);
        let speed = done.jobs[at].speed();
        probe.isolation.push(neighbours(Operation::Write, bytes, company, speed));
        at += 1 + others as usize;
    }
    Ok(())
}

/// As [`writers`], with appends, also to the same zone.
pub fn appenders(w: &mut Work, probe: &mut Probe) -> Result<()> {
    let layout = w.ready.layout.clone();
    let (bytes, third) = (layout.typical(), layout.count / 3);
    for (others, same) in [(0, false), (1, false), (2, false), (1, true), (2, true)] {
        if !same && others >= layout.open {
            continue;
        }
        let lane = |i: u64| layout.starts(if same { 0 } else { i * third }, third);
        let Some(speeds) = w.append(bytes, (0..=others).map(lane).collect())? else {
            return Ok(());
        };
        let company = (others, Operation::Append, same);
        let of = |speed: &Speed| neighbours(Operation::Append, bytes, company, speed.clone());
        probe.isolation.extend(speeds.first().map(of));
    }
    Ok(())
}

/// Fills the zones for reads.
fn fill_for_reads(w: &Work) -> Vec<Job> {
    let layout = &w.ready.layout;
    let limit = Some(layout.read_bytes());
    let bytes = layout.whole(layout.read_bytes().min(256 << 10));
    let job = |i| Job { limit, ..Job::new("write", bytes, layout.span(i, 1)) };
    (0..READ_ZONES).map(job).collect()
}

pub fn reads(w: &mut Work, probe: &mut Probe) -> Result<()> {
    w.reset()?;
    let (layout, plan) = (w.ready.layout.clone(), w.ready.plan.clone());
    let mut jobs = fill_for_reads(w);
    let from = layout.span(0, READ_ZONES);
    let most = layout.read_bytes();
    let requests: Vec<u64> = plan.requests.into_iter().filter(|n| *n <= most).collect();
    jobs.extend(requests.iter().map(|&bytes| Job::new("randread", bytes, from)));
    let deep = |&depth: &u64| Job { depth, ..Job::new("randread", layout.page, from) };
    jobs.extend(plan.depths.iter().map(deep));
    let done = w.fio(jobs)?;
    let speeds: Vec<Speed> = done.jobs[READ_ZONES as usize..].iter().map(|j| j.speed()).collect();
    let (by_request, by_depth) = speeds.split_at(requests.len());
    let read = Operation::Read;
    for (&bytes, speed) in requests.iter().zip(by_request) {
        probe.parallelism.push(point(Varies::Request, read, (bytes, 1, 1), speed.clone()));
    }
    for (&depth, speed) in plan.depths.iter().zip(by_depth) {
        let what = (layout.page, depth, READ_ZONES);
        probe.parallelism.push(point(Varies::Depth, read, what, speed.clone()));
    }
    Ok(())
}

/// A reader alone, and beside one and two others that read the same zone, or read or
/// write other zones.
pub fn readers(w: &mut Work, probe: &mut Probe) -> Result<()> {
    w.reset()?;
    let layout = w.ready.layout.clone();
    let half = (layout.count - READ_ZONES) / 2;
    let reader = |zone: u64| Job::new("randread", layout.page, layout.span(zone, 1));
    let writer = |i: u64| {
        let zones = layout.span(READ_ZONES + (i - 1) * half, half);
        Job::new("write", layout.typical(), zones).beside()
    };
    let mut companies = vec![(0, Operation::Read, true)];
    for others in 1..=2 {
        companies.push((others, Operation::Read, true));
        companies.push((others, Operation::Read, false));
        if others <= layout.open {
            companies.push((others, Operation::Write, false));
        }
    }
    let mut jobs = fill_for_reads(w);
    for &(others, what, same) in &companies {
        jobs.push(reader(0));
        jobs.extend((1..=others).map(|i| match (what, same) {
            (Operation::Read, true) => reader(0).beside(),
            (Operation::Read, false) => reader(i).beside(),
            _ => writer(i),
        }));
    }
    let done = w.fio(jobs)?;
    let mut at = READ_ZONES as usize;
    for company in companies {
        let speed = done.jobs[at].speed();
        probe.isolation.push(neighbours(Operation::Read, layout.page, company, speed));
        at += 1 + company.0 as usize;
    }
    Ok(())
}

/// The part of the zones that half the time of a fill can write at the bandwidth
/// measured before, so that zones of a large device are reset and rewritten, too.
fn within_reach(w: &Work, probe: &Probe, bytes: u64) -> u64 {
    let layout = &w.ready.layout;
    let writes = probe.series(Varies::Request, Operation::Write);
    let same = writes.filter(|p| p.request_bytes <= bytes).last();
    let speed = same.map_or(0.0, |p| p.speed.mib_per_s) * (1 << 20) as f64;
    let zones = speed * w.ready.plan.fill_seconds / 2.0 / layout.capacity as f64;
    (zones.ceil() as u64).clamp(READ_ZONES, layout.count)
}

/// Writes the first `percent` of the zones repeatedly; resets each before rewriting.
pub fn fill(w: &mut Work, probe: &mut Probe, percent: u64) -> Result<()> {
    w.reset()?;
    let layout = w.ready.layout.clone();
    let bytes = advise::request(probe, &layout);
    let zones = (within_reach(w, probe, bytes) * percent / 100).max(1);
    let prefix = format!("/run/znsage/probe-{}", w.ready.backing.name);
    let log = format!("{prefix}_bw.1.log");
    // This also creates the directory, which fio does not.
    let io = |verb: &str, sys: &dyn Sys, e| Error::io(verb, &sys.at(&log), e);
    w.sys.save(&log, "").map_err(|e| io("write", w.sys, e))?;
    let run = Run {
        jobs: vec![Job::new("write", bytes, layout.span(0, zones))],
        seconds: w.ready.plan.fill_seconds,
        zoned: true,
        log: Some(prefix),
    };
    let done = w.fio_run(&run);
    let text = w.sys.read(&log);
    w.sys.forget(&log).map_err(|e| io("remove", w.sys, e))?;
    let done = done?;
    let text = text.map_err(|e| io("read", w.sys, e))?;
    let samples = parse_log(&text).into_iter();
    let samples = samples.map(|(seconds, mib_per_s)| Sample { seconds, mib_per_s }).collect();
    let passes = done.jobs[0].bytes() as f64 / (zones * layout.capacity) as f64;
    probe.predictability.push(Fill::of((percent, zones), bytes, passes, samples));
    Ok(())
}

/// Fills zones to each level; resets half of them and finishes the others.
pub fn zone_times(w: &mut Work, probe: &mut Probe) -> Result<()> {
    let layout = w.ready.layout.clone();
    let repeats = w.ready.plan.repeats;
    for percent in w.ready.plan.fullness.clone() {
        w.reset()?;
        let limit = layout.whole(layout.capacity / 100 * percent).min(layout.capacity);
        let limit = if percent == 100 { layout.capacity } else { limit };
        let bytes = layout.whole(limit.min(256 << 10));
        let finish = if percent == 100 { 0 } else { repeats };
        let job = |i| Job { limit: Some(limit), ..Job::new("write", bytes, layout.span(i, 1)) };
        w.fio((0..repeats + finish).map(job).collect())?;
        let time = |command, from: u64, n: u64| -> Result<Vec<f64>> {
            (from..from + n).map(|i| w.command(command, layout.start(i), layout.zone)).collect()
        };
        probe.zone_times.push(ZoneTimes {
            full_percent: percent,
            reset_us: Times::of(&time(ZoneCommand::Reset, 0, repeats)?),
            finish_us: Times::of(&time(ZoneCommand::Finish, repeats, finish)?),
        });
    }
    Ok(())
}
