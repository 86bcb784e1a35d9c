// SPDX-License-Identifier: GPL-2.0-only
//! Measurements of real programs, and their comparison.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use znsage_sim::stats::median;

use crate::result::Result;
use crate::select;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    Etc,
    Redis,
    Compile,
    Sort,
    Stress,
    List,
    Flip,
    Bfs,
    Sandbox,
}

/// Each workload with its name in WORKLOADS=.
const WORKLOADS: [(Workload, &str); 9] = [
    (Workload::Etc, "etc"),
    (Workload::Redis, "redis"),
    (Workload::Compile, "compile"),
    (Workload::Sort, "sort"),
    (Workload::Stress, "stress"),
    (Workload::List, "list"),
    (Workload::Flip, "flip"),
    (Workload::Bfs, "bfs"),
    (Workload::Sandbox, "sandbox"),
];

impl Workload {
    pub fn name(self) -> &'static str {
        WORKLOADS.iter().find(|row| row.0 == self).expect("each workload has a row").1
    }
}

/// The workloads of these names; all if there are no names.
pub fn select(words: &[String]) -> Result<Vec<Workload>> {
    select::select("workload", words, &WORKLOADS, |name, word| name == word)
}

/// Where a workload's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// All in memory, without a limit and without swap.
    Memory,
    Stock,
    /// Stock swap behind zswap.
    Zswap,
    /// zram, which writes back to the device of stock swap.
    Zram,
    Znsage,
    ZnsageLz4,
    ZnsageZstd,
}

/// Each setting with swap, by its name in WORKLOAD_SYSTEMS=.
const SYSTEMS: [(Setting, &str); 6] = [
    (Setting::Stock, "stock"),
    (Setting::Zswap, "zswap"),
    (Setting::Zram, "zram"),
    (Setting::Znsage, "znsage"),
    (Setting::ZnsageLz4, "znsage-lz4"),
    (Setting::ZnsageZstd, "znsage-zstd"),
];

/// The settings with swap of these names, and stock swap, with which the others are compared.
pub fn select_systems(words: &[String]) -> Result<Vec<Setting>> {
    let mut chosen = select::select("system", words, &SYSTEMS, |name, word| name == word)?;
    if !chosen.contains(&Setting::Stock) {
        chosen.insert(0, Setting::Stock);
    }
    Ok(chosen)
}

impl Setting {
    pub fn name(self) -> &'static str {
        match self {
            Setting::Memory => "in memory",
            Setting::Stock => "stock swap",
            Setting::Zswap => "zswap, lz4",
            Setting::Zram => "zram, lz4",
            Setting::Znsage => "znsage",
            Setting::ZnsageLz4 => "znsage, lz4",
            Setting::ZnsageZstd => "znsage, zstd",
        }
    }

    pub fn option(self) -> &'static str {
        SYSTEMS.iter().find(|row| row.0 == self).expect("every system has a row").1
    }
}

/// A value that every run of a workload has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Its key in `Run::values`.
    pub name: String,
    pub title: String,
    /// `s`, `us`, or a rate such as `requests/s`.
    pub unit: String,
}

impl Metric {
    pub fn new(name: &str, title: &str, unit: &str) -> Metric {
        Metric { name: name.to_string(), title: title.to_string(), unit: unit.to_string() }
    }
}

/// The memory of a workload, and its limit while it swaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sizes {
    pub memory_bytes: u64,
    pub limit_bytes: u64,
}

impl Sizes {
    /// The workload's limit. With zram it is lower, by the memory that zram may use.
    pub fn limit(&self, setting: Setting) -> Option<u64> {
        match setting {
            Setting::Memory => None,
            Setting::Zram => Some(self.limit_bytes - ZRAM_MEMORY),
            _ => Some(self.limit_bytes),
        }
    }
}

/// The limit of zram's compressed pages.
pub const ZRAM_MEMORY: u64 = 8 << 20;

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    #[serde(rename = "system")]
    pub setting: Setting,
    /// From 1 on.
    pub round: u32,
    pub seconds: f64,
    pub pages_swapped_in: u64,
    pub pages_swapped_out: u64,
    /// Bytes written to the device.
    pub bytes_written: u64,
    pub values: BTreeMap<String, f64>,
    /// The results that were verified.
    pub verified: String,
}

/// A workload, or one of its mixes, in all settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    pub name: String,
    pub title: String,
    #[serde(flatten)]
    pub sizes: Sizes,
    pub metrics: Vec<Metric>,
    pub runs: Vec<Run>,
}

/// The median of a value in a setting, and its ratio to stock swap.
#[derive(Debug, PartialEq)]
pub struct Summary {
    pub value: f64,
    pub ratio: f64,
    /// The least and the greatest ratio of one round.
    pub range: (f64, f64),
}

impl Comparison {
    /// `None` where nothing was measured.
    pub fn summary(&self, setting: Setting, metric: &Metric) -> Option<Summary> {
        self.summary_of(setting, |run| run.values.get(&metric.name).copied())
    }

    pub fn summary_of(
        &self,
        setting: Setting,
        value: impl Fn(&Run) -> Option<f64>,
    ) -> Option<Summary> {
        let values = |setting| -> Vec<f64> {
            self.runs.iter().filter(|r| r.setting == setting).filter_map(&value).collect()
        };
        let (mine, stock) = (values(setting), values(Setting::Stock));
        let of = median(&mine)?;
        let ratios = || mine.iter().zip(&stock).map(|(mine, stock)| mine / stock);
        Some(Summary {
            value: of,
            ratio: of / median(&stock).unwrap_or(f64::NAN),
            range: (ratios().fold(f64::NAN, f64::min), ratios().fold(f64::NAN, f64::max)),
        })
    }
}

/// The guest's results for the host.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Measured {
    pub kernel: String,
    pub comparisons: Vec<Comparison>,
    /// Why something could not be measured.
    pub problems: Vec<String>,
}

#[cfg(test)]
pub mod tests {
    use super::*;

    #[test]
    fn whole_names_choose_workloads() {
        let select = |text: &str| select(&[text.to_string()]);
        assert_eq!(select("").unwrap().len(), WORKLOADS.len());
        assert_eq!(select("sort,redis,sort").unwrap(), [Workload::Redis, Workload::Sort]);
        assert!(select("red").unwrap_err().contains("`red`"));
    }

    pub fn comparison() -> Comparison {
        let run = |setting, round, rate: f64| Run {
            setting,
            round,
            seconds: 15.0,
            pages_swapped_in: if setting == Setting::Memory { 0 } else { 5000 },
            pages_swapped_out: if setting == Setting::Memory { 0 } else { 4000 },
            bytes_written: if setting == Setting::Memory { 0 } else { 6000 << 12 },
            values: [("rate".to_string(), rate), ("p99".to_string(), 2e6 / rate)].into(),
            verified: "all 100 keys".to_string(),
        };
        Comparison {
            name: "test".to_string(),
            title: "A store, 95/5".to_string(),
            sizes: Sizes { memory_bytes: 100 << 20, limit_bytes: 50 << 20 },
            metrics: vec![
                Metric::new("rate", "Requests", "requests/s"),
                Metric::new("p99", "Reads, 99 %", "us"),
            ],
            runs: vec![
                run(Setting::Memory, 1, 2000.0),
                run(Setting::Stock, 1, 1000.0),
                run(Setting::Znsage, 1, 1200.0),
                run(Setting::Znsage, 2, 800.0),
                run(Setting::Stock, 2, 800.0),
            ],
        }
    }

    #[test]
    fn summary_compares_medians_and_rounds() {
        let c = comparison();
        let of = |setting| c.summary(setting, &c.metrics[0]).unwrap();
        assert_eq!(of(Setting::Memory).value, 2000.0);
        assert_eq!(of(Setting::Stock).value, 900.0);
        let znsage = Summary { value: 1000.0, ratio: 1000.0 / 900.0, range: (1.0, 1.2) };
        assert_eq!(of(Setting::Znsage), znsage);
        assert_eq!(c.summary(Setting::Zswap, &c.metrics[0]), None);
    }

    #[test]
    fn stock_swap_is_always_there() {
        let select = |text: &str| select_systems(&[text.to_string()]).unwrap();
        assert_eq!(select("znsage-lz4"), [Setting::Stock, Setting::ZnsageLz4]);
        assert_eq!(select("znsage,stock"), [Setting::Stock, Setting::Znsage]);
        assert_eq!(select("all").len(), SYSTEMS.len());
    }
}
