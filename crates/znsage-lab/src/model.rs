// SPDX-License-Identifier: GPL-2.0-only
//! Results of the benchmarks, from the reports of `znsage bench`.

use serde::{Deserialize, Serialize};
use znsage::parsers::{Config, Phase};

/// Bytes of a page and of a block.
pub const PAGE: u64 = 4096;

pub const MIB: f64 = (1 << 20) as f64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
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

/// A line of the file of `--samples`.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    #[serde(flatten)]
    pub config: Config,
    /// Its name is `fill`, `random40`, ...; several of these are the phase `random` of bench.
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
    use znsage::parsers::Latency;

    use super::*;

    pub fn phase(system: System, name: &str, ops_per_s: f64) -> Run {
        let znsage = system == System::Znsage;
        let fill = name == "fill";
        let latency = Latency { mean: 800.0, p50: 419.0, p99: 7930.0, p99_9: 2e4, max: 1.4e6 };
        Run {
            system,
            config: Config {
                size_bytes: 440 << 20,
                memory_limit_bytes: Some(64 << 20),
                threads: 4,
                pattern: "random".to_string(),
                write_ratio: Some(0.5),
                utilization_percent: None,
                seed: 1,
                thp: false,
                compressible: 0.0,
                page_cluster: None,
            },
            measured: Phase {
                phase: name.to_string(),
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
        assert_eq!(again.measured.phase, "random40");
    }
}
