// SPDX-License-Identifier: GPL-2.0-only
//! What `znsage bench --json` reports, and the documents made of it.

use serde::{Deserialize, Serialize};

/// Pages and blocks; what the module and the command count in.
pub const PAGE: u64 = 4096;

pub const MIB: f64 = (1 << 20) as f64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum System {
    /// Linux' own swap on the conventional device.
    Stock,
    Znsage,
}

impl System {
    pub const BOTH: [System; 2] = [System::Stock, System::Znsage];

    pub fn name(self) -> &'static str {
        match self {
            System::Stock => "stock swap",
            System::Znsage => "znsage",
        }
    }
}

/// The report of one `znsage bench`.
#[derive(Debug, Deserialize)]
pub struct Report {
    pub kernel: String,
    pub config: Config,
    pub phases: Vec<Phase>,
    pub corrupt_pages: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    pub size_bytes: u64,
    pub memory_limit_bytes: Option<u64>,
    pub threads: u32,
    /// None where it is the pattern's own.
    pub write_ratio: Option<f64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Phase {
    #[serde(rename = "phase", default, skip_serializing)]
    pub name: String,
    pub seconds: f64,
    pub ops: u64,
    pub writes: u64,
    pub ops_per_s: f64,
    pub mib_per_s: f64,
    pub latency_us: Option<Latency>,
    pub pages_swapped_in: u64,
    pub pages_swapped_out: u64,
    pub swap_in_mib_per_s: f64,
    pub swap_out_mib_per_s: f64,
    pub corrupt_pages: u64,
    /// Blocks appended / blocks swapped out; null on stock swap.
    pub waf: Option<f64>,
    pub utilization: Option<Utilization>,
    pub device: Option<Counters>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Latency {
    pub mean: f64,
    pub p50: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub max: f64,
}

/// Live blocks / all blocks of the device, 0 to 1.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Utilization {
    pub start: f64,
    pub mean: f64,
    pub end: f64,
}

/// The device's counters over a phase.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    pub blocks_total: u64,
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

/// A line of the file that `--samples` writes.
#[derive(Clone, Debug, Deserialize)]
pub struct Sample {
    /// Seconds since the benchmark began.
    pub t: f64,
    pub phase: String,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub host_blocks: Option<u64>,
    pub gc_blocks: Option<u64>,
    pub padding_blocks: Option<u64>,
}

/// Counters at a moment of a run; all 0 at its begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Seconds since the phase began.
    pub t: f64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub host_blocks: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub written_blocks: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// One phase of one system, as it stands in result.json.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    pub system: System,
    /// `fill`, `random40`, ...; what was done, not the name that bench uses.
    pub phase: String,
    #[serde(flatten)]
    pub config: Config,
    #[serde(flatten)]
    pub measured: Phase,
    /// Pages that were compared with what had been written to them.
    pub verified_pages: u64,
    /// The course of it, twice a second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<Point>,
}

/// What the guest leaves behind for the host.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Runs {
    pub kernel: String,
    /// Bytes of the znsage device that can hold pages.
    pub device_bytes: u64,
    pub runs: Vec<Run>,
}
