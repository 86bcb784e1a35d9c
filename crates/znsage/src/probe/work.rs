// SPDX-License-Identifier: GPL-2.0-only
//! What the measurements of a probe share: the device, and the time left.

use std::time::{Duration, Instant};

use super::fio::{self, Job, Output, Run};
use super::record::Speed;
use super::Ready;
use crate::bench::Latency;
use crate::error::{reason, Error, Kind, Result};
use crate::progress::Progress;
use crate::sys::{Appends, Lane, Sys, ZoneCommand};
use crate::units;

const MIB: f64 = (1 << 20) as f64;

pub struct Work<'a> {
    pub sys: &'a dyn Sys,
    pub ready: &'a Ready,
    pub engine: String,
    /// True if the device accepts appends that bypass the block layer.
    pub appends: bool,
    progress: Progress,
    begun: Instant,
    /// Planned seconds, in total and done.
    planned: f64,
    done: f64,
    step: (&'static str, f64),
}

impl<'a> Work<'a> {
    /// `planned`: seconds that all steps together should take.
    pub fn new(sys: &'a dyn Sys, ready: &'a Ready, engine: &str, planned: f64) -> Self {
        let (progress, begun) = (Progress::new(), Instant::now());
        let engine = engine.to_string();
        let (appends, done, step) = (true, 0.0, ("", 0.0));
        Work { sys, ready, engine, appends, progress, begun, planned, done, step }
    }

    /// A step begins, which should take this many seconds.
    pub fn begin(&mut self, name: &'static str, seconds: f64) {
        self.done += self.step.1;
        self.step = (name, seconds);
        self.show();
    }

    /// Shows the current step and the time left, extrapolated from the past steps.
    fn show(&mut self) {
        let (step, took) = (self.step, self.begun.elapsed().as_secs_f64());
        let slower = if self.done > 0.0 { (took / (self.done + step.1)).max(1.0) } else { 1.0 };
        let left = (self.planned * slower - took).max(0.0);
        let percent = 100.0 * self.done / self.planned;
        self.progress
            .show(|| format!("{percent:.0} %: {}, about {} left", step.0, units::duration(left)));
    }

    /// Empties all zones.
    pub fn reset(&self) -> Result<()> {
        super::reset(self.sys, self.ready)
    }

    /// Sends a command to zones; returns microseconds.
    pub fn command(&self, command: ZoneCommand, start: u64, length: u64) -> Result<f64> {
        let path = &self.ready.backing.path;
        let took = self.sys.command_zones(path, command, start, length).map_err(|e| {
            let verb = format!("{command:?} zones of").to_lowercase();
            Error::io(&verb, &self.sys.at(path), e)
        })?;
        Ok(took.as_secs_f64() * 1e6)
    }

    /// Runs jobs one after the other, each for the time of the plan.
    pub fn fio(&mut self, jobs: Vec<Job>) -> Result<Output> {
        let seconds = self.ready.plan.seconds;
        let zoned = self.ready.backing.zones.is_some();
        self.fio_run(&Run { jobs, seconds, log: None, zoned })
    }

    pub fn fio_run(&mut self, run: &Run) -> Result<Output> {
        let words = run.words(&self.ready.backing.path, &self.engine);
        let sys = self.sys;
        let output = fio::run(sys, &words, &mut || self.show())?;
        match output.jobs.len() == run.jobs.len() {
            true => Ok(output),
            false => {
                let (got, want) = (output.jobs.len(), run.jobs.len());
                let what = format!("fio failed: it reports {got} jobs instead of {want}");
                Err(Error::new(Kind::Kernel, what).hint("check the version: 3.33 works"))
            }
        }
    }

    /// Appends with a thread per lane. None if the device is not NVMe.
    pub fn append(&mut self, bytes: u64, lanes: Vec<Vec<u64>>) -> Result<Option<Vec<Speed>>> {
        if !self.appends {
            return Ok(None);
        }
        self.show();
        self.reset()?;
        let what = Appends {
            path: self.ready.backing.path.clone(),
            block: self.ready.layout.block,
            zone: self.ready.layout.zone,
            bytes,
            time: Duration::from_secs_f64(self.ready.plan.seconds),
            lanes,
        };
        match self.sys.append(&what) {
            Ok(lanes) if self.sys.interrupted() => {
                drop(lanes);
                Err(Error::interrupted())
            }
            Ok(lanes) => Ok(Some(lanes.iter().map(|lane| lane_speed(lane, bytes)).collect())),
            Err(e) if e.raw_os_error() == Some(libc::ENOTTY) => {
                self.appends = false;
                Ok(None)
            }
            Err(e) => {
                let what = format!("cannot append to {}: {}", what.path, reason(&e));
                Err(Error::new(Kind::Kernel, what).hint("the kernel log (`dmesg`) may show why"))
            }
        }
    }
}

fn lane_speed(lane: &Lane, bytes: u64) -> Speed {
    let seconds = lane.time.as_secs_f64().max(1e-9);
    let at = |q: f64| lane.times.value_at_quantile(q) as f64 / 1e3;
    Speed {
        mib_per_s: lane.bytes as f64 / MIB / seconds,
        ops_per_s: (lane.bytes / bytes) as f64 / seconds,
        latency_us: Latency {
            mean: lane.times.mean() / 1e3,
            p50: at(0.5),
            p99: at(0.99),
            p99_9: at(0.999),
            max: lane.times.max() as f64 / 1e3,
        },
    }
}

/// Combines lanes: the sum of bandwidths, the worst of latencies.
pub fn sum(speeds: &[Speed]) -> Option<Speed> {
    let first = speeds.first()?.clone();
    Some(speeds[1..].iter().fold(first, |a, b| {
        let ops = a.ops_per_s + b.ops_per_s;
        let mean = |a: f64, b: f64, of_b: f64| a + (b - a) * of_b;
        let of_b = if ops > 0.0 { b.ops_per_s / ops } else { 0.0 };
        let (l, m) = (&a.latency_us, &b.latency_us);
        Speed {
            mib_per_s: a.mib_per_s + b.mib_per_s,
            ops_per_s: ops,
            latency_us: Latency {
                mean: mean(l.mean, m.mean, of_b),
                p50: l.p50.max(m.p50),
                p99: l.p99.max(m.p99),
                p99_9: l.p99_9.max(m.p99_9),
                max: l.max.max(m.max),
            },
        }
    }))
}
