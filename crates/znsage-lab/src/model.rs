// SPDX-License-Identifier: GPL-2.0-only
//! The report of `znsage bench --json`, and what the benchmarks make of it.

use serde::{Deserialize, Serialize};

/// Bytes of a page and of a block.
pub const PAGE: u64 = 4096;

pub const MIB: f64 = (1 << 20) as f64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum System {
    /// Linux's own swap on the conventional device.
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
    pub config: Config,
    pub phases: Vec<Phase>,
    pub corrupt_pages: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    pub size_bytes: u64,
    pub memory_limit_bytes: Option<u64>,
    pub threads: u32,
    /// None: the pattern has its own.
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

/// A line of the file of `--samples`.
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

/// Counters since the phase began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
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

/// One phase on one system, in result.json.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    pub system: System,
    /// `fill`, `random40`, ...; several of these are the phase `random` of bench.
    pub phase: String,
    #[serde(flatten)]
    pub config: Config,
    #[serde(flatten)]
    pub measured: Phase,
    /// Pages that were compared with what was written to them.
    pub verified_pages: u64,
    /// The counters twice a second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<Point>,
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn phase(system: System, name: &str, ops_per_s: f64) -> Run {
        let znsage = system == System::Znsage;
        let fill = name == "fill";
        let latency = Latency { mean: 800.0, p50: 419.0, p99: 7930.0, p99_9: 2e4, max: 1.4e6 };
        Run {
            system,
            phase: name.to_string(),
            config: Config {
                size_bytes: 440 << 20,
                memory_limit_bytes: Some(64 << 20),
                threads: 4,
                write_ratio: Some(0.5),
            },
            measured: Phase {
                name: String::new(),
                seconds: 20.0,
                ops: 20 * ops_per_s as u64,
                writes: 0,
                ops_per_s,
                mib_per_s: ops_per_s / 256.0,
                latency_us: (!fill).then_some(latency),
                pages_swapped_in: 25600,
                pages_swapped_out: 51200,
                swap_in_mib_per_s: 5.0,
                swap_out_mib_per_s: 10.0,
                corrupt_pages: 0,
                waf: znsage.then_some(2.0),
                utilization: None,
                device: None,
            },
            verified_pages: 100_000,
            course: Vec::new(),
        }
    }

    #[test]
    fn a_run_is_flat_and_can_be_read_again() {
        let json = serde_json::to_value(phase(System::Znsage, "random40", 4000.0)).unwrap();
        assert_eq!(json["system"], "znsage");
        assert_eq!(json["phase"], "random40");
        assert_eq!(json["waf"], 2.0);
        assert_eq!(json["threads"], 4);
        let again: Run = serde_json::from_value(json).unwrap();
        assert_eq!(again.phase, "random40");
    }
}
