// SPDX-License-Identifier: GPL-2.0-only
//! Measurements of real programs, and their comparison.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use znsage_sim::stats::median;

use crate::model::System;
use crate::result::Result;
use crate::select;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    Memcached,
    Etc,
    Redis,
    Compile,
    Sort,
}

/// Each workload with its name in WORKLOADS=.
const WORKLOADS: [(Workload, &str); 5] = [
    (Workload::Memcached, "memcached"),
    (Workload::Etc, "etc"),
    (Workload::Redis, "redis"),
    (Workload::Compile, "compile"),
    (Workload::Sort, "sort"),
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Setting {
    /// All in memory, without a limit and without swap.
    Memory,
    Stock,
    Znsage,
}

impl Setting {
    pub fn system(self) -> Option<System> {
        match self {
            Setting::Memory => None,
            Setting::Stock => Some(System::Stock),
            Setting::Znsage => Some(System::Znsage),
        }
    }

    pub fn name(self) -> &'static str {
        self.system().map_or("in memory", System::name)
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
    pub values: BTreeMap<String, f64>,
    /// Which results were found right.
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

/// The medians of a value in each setting, and their ratio, znsage to stock; NaN
/// where nothing was measured.
#[derive(Debug, PartialEq)]
pub struct Summary {
    pub memory: f64,
    pub stock: f64,
    pub znsage: f64,
    pub ratio: f64,
    /// The least and the greatest ratio of one round.
    pub range: Option<(f64, f64)>,
}

impl Comparison {
    pub fn summary(&self, metric: &Metric) -> Summary {
        self.summary_of(|run| run.values.get(&metric.name).copied())
    }

    pub fn summary_of(&self, value: impl Fn(&Run) -> Option<f64>) -> Summary {
        let values = |setting| -> Vec<f64> {
            self.runs.iter().filter(|r| r.setting == setting).filter_map(&value).collect()
        };
        let of = |setting| median(&values(setting)).unwrap_or(f64::NAN);
        let (stock, znsage) = (of(Setting::Stock), of(Setting::Znsage));
        let rounds = values(Setting::Znsage).into_iter().zip(values(Setting::Stock));
        let ratios: Vec<f64> = rounds.map(|(znsage, stock)| znsage / stock).collect();
        let least = ratios.iter().copied().reduce(f64::min);
        let greatest = ratios.iter().copied().reduce(f64::max);
        Summary {
            memory: of(Setting::Memory),
            stock,
            znsage,
            ratio: znsage / stock,
            range: least.zip(greatest),
        }
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
        assert_eq!(select("").unwrap().len(), 5);
        assert_eq!(select("sort,redis,sort").unwrap(), [Workload::Redis, Workload::Sort]);
        assert!(select("mem").unwrap_err().contains("`mem`"));
    }

    pub fn comparison() -> Comparison {
        let run = |setting, round, rate: f64| Run {
            setting,
            round,
            seconds: 15.0,
            pages_swapped_in: if setting == Setting::Memory { 0 } else { 5000 },
            pages_swapped_out: if setting == Setting::Memory { 0 } else { 4000 },
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
        let got = c.summary(&c.metrics[0]);
        assert_eq!((got.memory, got.stock, got.znsage), (2000.0, 900.0, 1000.0));
        assert_eq!(got.ratio, 1000.0 / 900.0);
        assert_eq!(got.range, Some((1.0, 1.2)));
    }

    #[test]
    fn summary_of_nothing_is_nan() {
        let c = Comparison { runs: Vec::new(), ..comparison() };
        let got = c.summary(&c.metrics[0]);
        assert!(got.ratio.is_nan() && got.range.is_none());
    }
}
