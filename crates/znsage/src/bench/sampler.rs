// SPDX-License-Identifier: GPL-2.0-only
//! Samples counters during a benchmark, and writes them to a file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::cgroup::{self, Cgroup};
use crate::counters::{self, Device};
use crate::error::{Error, Result};
use crate::sys::Sys;

/// Sums over all znsage devices.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Totals {
    pub blocks_total: u64,
    /// Includes blocks in flight; not reported.
    #[serde(skip)]
    pub slots_used: u64,
    pub live_blocks: u64,
    pub host_blocks: u64,
    pub gc_blocks: u64,
    pub padding_blocks: u64,
    pub chunks: u64,
    pub zone_resets: u64,
    pub stalls: u64,
    pub read_errors: u64,
    pub write_errors: u64,
}

impl Totals {
    pub fn of(devices: &[Device]) -> Option<Totals> {
        let mut sum = Totals::default();
        for d in devices {
            sum.blocks_total += d.blocks_total;
            sum.slots_used += d.slots_used;
            sum.live_blocks += d.live_blocks;
            sum.host_blocks += d.host_blocks;
            sum.gc_blocks += d.gc_blocks;
            sum.padding_blocks += d.padding_blocks;
            sum.chunks += d.chunks;
            sum.zone_resets += d.zone_resets;
            sum.stalls += d.stalls;
            sum.read_errors += d.read_errors;
            sum.write_errors += d.write_errors;
        }
        (!devices.is_empty()).then_some(sum)
    }

    /// Counters since `before`; gauges as they are now.
    pub fn since(&self, before: &Totals) -> Totals {
        Totals {
            blocks_total: self.blocks_total,
            slots_used: self.slots_used,
            live_blocks: self.live_blocks,
            host_blocks: self.host_blocks.saturating_sub(before.host_blocks),
            gc_blocks: self.gc_blocks.saturating_sub(before.gc_blocks),
            padding_blocks: self.padding_blocks.saturating_sub(before.padding_blocks),
            chunks: self.chunks.saturating_sub(before.chunks),
            zone_resets: self.zone_resets.saturating_sub(before.zone_resets),
            stalls: self.stalls.saturating_sub(before.stalls),
            read_errors: self.read_errors.saturating_sub(before.read_errors),
            write_errors: self.write_errors.saturating_sub(before.write_errors),
        }
    }

    /// Blocks appended to the device.
    pub fn written(&self) -> u64 {
        self.host_blocks + self.gc_blocks + self.padding_blocks
    }

    pub fn waf(&self) -> Option<f64> {
        counters::waf(self.host_blocks, self.gc_blocks, self.padding_blocks)
    }

    pub fn utilization(&self) -> Option<f64> {
        (self.blocks_total > 0).then(|| self.live_blocks as f64 / self.blocks_total as f64)
    }
}

/// All counters at one time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Snapshot {
    pub pages_in: u64,
    pub pages_out: u64,
    pub device: Option<Totals>,
}

pub struct Sampler<'a> {
    sys: &'a dyn Sys,
    start: Instant,
    page: u64,
    file: Option<BufWriter<File>>,
}

/// A line of the file.
#[derive(Serialize)]
struct Sample<'a> {
    t: f64,
    phase: &'a str,
    /// Pages accessed since the phase began.
    ops: u64,
    /// Since the group was created, or since boot without one.
    bytes_in: u64,
    bytes_out: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    live_blocks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_blocks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gc_blocks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    padding_blocks: Option<u64>,
}

impl<'a> Sampler<'a> {
    pub fn new(sys: &'a dyn Sys, path: Option<&Path>, page: u64) -> Result<Self> {
        let file = match path {
            Some(path) => {
                let file = File::create(path).map_err(|e| Error::io("create", path, e))?;
                Some(BufWriter::new(file))
            }
            None => None,
        };
        Ok(Sampler { sys, start: Instant::now(), page, file })
    }

    pub fn look(&self, group: Option<&Cgroup>) -> Snapshot {
        let vmstat = self.sys.read("/proc/vmstat").unwrap_or_default();
        // Groups have these counters since Linux 6.12.
        let count = |key: &str| {
            group
                .and_then(|g| g.number("memory.stat", key))
                .or_else(|| cgroup::lookup(&vmstat, key))
                .unwrap_or(0)
        };
        let devices = counters::all(self.sys).unwrap_or_default();
        Snapshot {
            pages_in: count("pswpin"),
            pages_out: count("pswpout"),
            device: Totals::of(&devices),
        }
    }

    pub fn record(&mut self, phase: &str, ops: u64, now: &Snapshot) -> Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let sample = Sample {
            t: (self.start.elapsed().as_secs_f64() * 1e3).round() / 1e3,
            phase,
            ops,
            bytes_in: now.pages_in * self.page,
            bytes_out: now.pages_out * self.page,
            live_blocks: now.device.map(|d| d.live_blocks),
            host_blocks: now.device.map(|d| d.host_blocks),
            gc_blocks: now.device.map(|d| d.gc_blocks),
            padding_blocks: now.device.map(|d| d.padding_blocks),
        };
        let line = serde_json::to_string(&sample).expect("plain data");
        writeln!(file, "{line}")
            .and_then(|()| file.flush())
            .map_err(|e| Error::io("write", Path::new("the samples"), e))
    }
}
