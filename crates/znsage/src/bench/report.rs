// SPDX-License-Identifier: GPL-2.0-only
//! The result of a benchmark, as text and JSON.

use serde::{Deserialize, Serialize};

use super::protocol::{Latency, Outcome};
use super::sampler::{Snapshot, Totals};
use crate::machine::Machine;
use crate::swaps::Area;
use crate::units;

const MIB: f64 = (1 << 20) as f64;

/// Utilization of the device, 0 to 1.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Utilization {
    pub start: f64,
    pub mean: f64,
    pub end: f64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Phase {
    pub phase: String,
    pub seconds: f64,
    /// Pages accessed, and pages written.
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
    /// Null without a znsage device, or if nothing was swapped out.
    pub waf: Option<f64>,
    pub utilization: Option<Utilization>,
    /// The device's counters over the phase.
    pub device: Option<Totals>,
}

impl Phase {
    pub fn new(
        name: &str,
        page: u64,
        outcome: Outcome,
        before: &Snapshot,
        after: &Snapshot,
        mean_utilization: Option<f64>,
    ) -> Phase {
        let per_s = |n: u64| match outcome.seconds > 0.0 {
            true => n as f64 / outcome.seconds,
            false => 0.0,
        };
        let mib_per_s = |pages: u64| per_s(pages * page) / MIB;
        let pages_in = after.pages_in.saturating_sub(before.pages_in);
        let pages_out = after.pages_out.saturating_sub(before.pages_out);
        let device = after.device.map(|d| d.since(&before.device.unwrap_or_default()));
        let utilization = || {
            let start = before.device?.utilization()?;
            let end = after.device?.utilization()?;
            let mean = mean_utilization.unwrap_or((start + end) / 2.0);
            Some(Utilization { start, mean, end })
        };
        Phase {
            phase: name.to_string(),
            ops_per_s: per_s(outcome.ops),
            mib_per_s: mib_per_s(outcome.ops),
            swap_in_mib_per_s: mib_per_s(pages_in),
            swap_out_mib_per_s: mib_per_s(pages_out),
            pages_swapped_in: pages_in,
            pages_swapped_out: pages_out,
            utilization: utilization(),
            waf: device.and_then(|d| d.waf()),
            device,
            seconds: outcome.seconds,
            ops: outcome.ops,
            writes: outcome.writes,
            corrupt_pages: outcome.corrupt,
            latency_us: outcome.latency_us,
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    pub size_bytes: u64,
    /// Null without a limit.
    pub memory_limit_bytes: Option<u64>,
    pub threads: u32,
    pub pattern: String,
    /// Null if the pattern decides.
    pub write_ratio: Option<f64>,
    pub utilization_percent: Option<f64>,
    pub seed: u64,
    pub thp: bool,
    pub compressible: f64,
    /// vm.page-cluster: swap-in reads up to 2^N pages ahead.
    pub page_cluster: Option<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    pub version: u32,
    /// The swap system: `znsage`, `stock` or `none`.
    pub system: String,
    pub kernel: String,
    pub machine: Machine,
    pub swaps: Vec<Area>,
    pub config: Config,
    pub phases: Vec<Phase>,
    pub corrupt_pages: u64,
    /// Descriptions of the first damaged pages.
    pub corrupt: Vec<String>,
}

impl Report {
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("plain data")
    }

    pub fn to_text(&self) -> String {
        let c = &self.config;
        let limit = match c.memory_limit_bytes {
            Some(bytes) => format!("{} of them resident", units::size(bytes)),
            None => "no limit".to_string(),
        };
        let areas: Vec<&str> = self.swaps.iter().map(|a| a.path.as_str()).collect();
        let mut text = format!(
            "{} in {} threads, {limit}; swap: {}\n",
            units::size(c.size_bytes),
            c.threads,
            match areas.is_empty() {
                true => "none".to_string(),
                false => areas.join(", "),
            }
        );
        for phase in &self.phases {
            text += &phase.to_text();
        }
        text += &line("corrupt", &format!("{} pages", self.corrupt_pages));
        for what in &self.corrupt {
            text += &line("", what);
        }
        text
    }
}

fn line(label: &str, text: &str) -> String {
    format!("{label:<12}{text}\n")
}

impl Phase {
    fn to_text(&self) -> String {
        let mut text = match &self.latency_us {
            None => {
                line(&self.phase, &format!("{:.1} MiB/s for {:.1} s", self.mib_per_s, self.seconds))
            }
            Some(l) => {
                line(
                    &self.phase,
                    &format!("{:.0} operations/s for {:.1} s", self.ops_per_s, self.seconds),
                ) + &line("  latency", &units::percentiles([l.p50, l.p99, l.p99_9, l.max]))
            }
        };
        text += &line(
            "  swapped",
            &format!(
                "in {} pages ({:.1} MiB/s), out {} pages ({:.1} MiB/s)",
                self.pages_swapped_in,
                self.swap_in_mib_per_s,
                self.pages_swapped_out,
                self.swap_out_mib_per_s
            ),
        );
        if let Some(d) = &self.device {
            text += &line(
                "  device",
                &format!(
                    "WAF {} (swapped out {}, copied {}, padding {} blocks), {:.1} % full",
                    self.waf.map_or("-".to_string(), |w| format!("{w:.2}")),
                    d.host_blocks,
                    d.gc_blocks,
                    d.padding_blocks,
                    100.0 * d.utilization().unwrap_or(0.0)
                ),
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(host: u64, gc: u64, pages: u64) -> Snapshot {
        Snapshot {
            pages_in: pages,
            pages_out: 2 * pages,
            device: Some(Totals {
                blocks_total: 1000,
                live_blocks: host.min(800),
                host_blocks: host,
                gc_blocks: gc,
                ..Totals::default()
            }),
        }
    }

    #[test]
    fn counters_are_differences() {
        let outcome = Outcome { seconds: 2.0, ops: 512, ..Outcome::default() };
        let phase = Phase::new(
            "random",
            4096,
            outcome,
            &snapshot(400, 0, 10),
            &snapshot(800, 200, 522),
            None,
        );
        assert_eq!(phase.waf, Some(1.5));
        assert_eq!(phase.mib_per_s, 1.0);
        assert_eq!(phase.pages_swapped_in, 512);
        assert_eq!(phase.swap_out_mib_per_s, 2.0);
        let utilization = phase.utilization.unwrap();
        assert!((utilization.mean - 0.6).abs() < 1e-9);
    }

    /// All fields, for docs/json.md.
    #[test]
    fn report_prints_the_file() {
        let latency = Latency { mean: 210.5, p50: 200.0, p99: 900.0, p99_9: 1500.0, max: 2000.0 };
        let outcome =
            Outcome { seconds: 2.0, ops: 512, writes: 200, corrupt: 1, latency_us: Some(latency) };
        let none = Snapshot::default();
        let phase =
            |name, outcome, before, after| Phase::new(name, 4096, outcome, before, after, None);
        let area = Area {
            path: "/dev/znsage0".to_string(),
            bytes: 1 << 30,
            used_bytes: 1 << 20,
            priority: -2,
        };
        let config = Config {
            size_bytes: 1 << 30,
            memory_limit_bytes: Some(256 << 20),
            threads: 2,
            pattern: "random".to_string(),
            write_ratio: Some(0.5),
            compressible: 0.0,
            utilization_percent: Some(60.0),
            seed: 7,
            thp: false,
            page_cluster: Some(3),
        };
        let report = Report {
            version: 1,
            system: "znsage".to_string(),
            kernel: "6.12.0-test".to_string(),
            machine: Machine {
                cpu: Some("Test 9000".to_string()),
                cpus: 2,
                memory_bytes: Some(4 << 30),
                virtual_machine: true,
            },
            swaps: vec![area],
            config,
            phases: vec![
                phase("fill", Outcome::default(), &none, &none),
                phase("random", outcome, &snapshot(400, 0, 10), &snapshot(800, 200, 522)),
            ],
            corrupt_pages: 1,
            corrupt: vec!["page 7: zeros".to_string()],
        };
        crate::setup_tests::compare_json(&report.to_json(), "bench");
    }

    #[test]
    fn no_waf_without_a_device() {
        let none = Snapshot::default();
        let phase = Phase::new("fill", 4096, Outcome::default(), &none, &none, None);
        assert!(phase.waf.is_none() && phase.device.is_none() && phase.utilization.is_none());
    }
}
