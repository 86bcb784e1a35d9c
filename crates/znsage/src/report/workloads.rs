// SPDX-License-Identifier: GPL-2.0-only
//! Results of `make bench-workloads`: real programs in memory, on stock swap, on znsage and
//! on other systems.

use std::collections::BTreeMap;

use serde::Deserialize;
use znsage_sim::chart::{Look, Variant};
use znsage_sim::html::{Block, Section};
use znsage_sim::spec::SystemKind;
use znsage_sim::stats;

use super::parts::{bars, section, table, verdict, Key};
use super::Named;
use crate::units;

/// The part of the document (bench/README.md) that is used.
#[derive(Debug, Deserialize)]
pub struct Workloads {
    kernel: String,
    machine: String,
    others_cpu_share: Option<f64>,
    rounds: u32,
    seconds: f64,
    workloads: Vec<Workload>,
    problems: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Workload {
    title: String,
    memory_bytes: u64,
    limit_bytes: u64,
    metrics: Vec<Metric>,
    runs: Vec<Run>,
}

#[derive(Debug, Deserialize)]
struct Metric {
    name: String,
    title: String,
    unit: String,
}

#[derive(Debug, Deserialize)]
struct Run {
    system: System,
    round: u32,
    seconds: f64,
    pages_swapped_in: u64,
    pages_swapped_out: u64,
    bytes_written: u64,
    values: BTreeMap<String, f64>,
    verified: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum System {
    Memory,
    Stock,
    Zswap,
    Zram,
    Znsage,
    ZnsageLz4,
    ZnsageZstd,
}

impl System {
    const ALL: [System; 7] = [
        System::Memory,
        System::Stock,
        System::Zswap,
        System::Zram,
        System::Znsage,
        System::ZnsageLz4,
        System::ZnsageZstd,
    ];

    fn name(self) -> &'static str {
        match self {
            System::Memory => "in memory",
            System::Stock => "stock swap",
            System::Zswap => "zswap, lz4",
            System::Zram => "zram, lz4",
            System::Znsage => "znsage",
            System::ZnsageLz4 => "znsage, lz4",
            System::ZnsageZstd => "znsage, zstd",
        }
    }

    fn key(self) -> Key {
        let look = match self {
            System::Memory => Look::other(5),
            System::Stock => Look::system(SystemKind::Stock),
            System::Zswap => Look::other(3),
            System::Zram => Look::other(4),
            System::Znsage => Look::system(SystemKind::ZnSage),
            System::ZnsageLz4 => System::Znsage.key().look.variant(Variant::Setting),
            System::ZnsageZstd => System::Znsage.key().look.variant(Variant::OtherSetting),
        };
        Key { label: self.name().to_string(), look }
    }
}

pub fn sections(all: &[Named<Workloads>]) -> Vec<Section> {
    all.iter().flat_map(|one| of_one(one, all.len() > 1)).collect()
}

/// The sections of one result.
fn of_one(one: &Named<Workloads>, among_others: bool) -> Vec<Section> {
    let title = |text: &str| match among_others {
        true => format!("{}: {text}", one.name),
        false => text.to_string(),
    };
    let w = &one.result;
    let problems = w.problems.iter().map(|p| verdict(&format!("not measured: {p}"), false));
    let mut blocks: Vec<Block> = problems.collect();
    blocks.push(overview(w));
    let mut sections = vec![section(&title("Real programs"), blocks)];
    for workload in &w.workloads {
        let mut blocks = charts(workload);
        blocks.push(sizes(workload));
        blocks.push(Block::Folded("All runs".into(), vec![runs(workload)]));
        sections.push(section(&title(&workload.title), blocks));
    }
    sections.push(section(&title("Machine of the programs"), vec![machine(w)]));
    sections
}

impl Workload {
    fn median(&self, system: System, name: &str) -> Option<f64> {
        let runs = self.runs.iter().filter(|r| r.system == system);
        let values: Vec<f64> = runs.filter_map(|r| r.values.get(name).copied()).collect();
        stats::median(&values)
    }

    /// Ratio to stock swap.
    fn ratio(&self, system: System, name: &str) -> Option<f64> {
        let stock = self.median(System::Stock, name).filter(|v| *v > 0.0)?;
        Some(self.median(system, name)? / stock)
    }

    /// The systems that it ran on.
    fn systems(&self) -> Vec<System> {
        let has = |system: &System| self.runs.iter().any(|r| r.system == *system);
        System::ALL.into_iter().filter(has).collect()
    }

    /// The units of its values, in order.
    fn units(&self) -> Vec<&str> {
        let mut units: Vec<&str> = Vec::new();
        for metric in &self.metrics {
            if !units.contains(&metric.unit.as_str()) {
                units.push(&metric.unit);
            }
        }
        units
    }
}

fn shown(value: Option<f64>, unit: &str) -> String {
    match (value, unit) {
        (None, _) => "-".to_string(),
        (Some(v), "us") => units::micros(v),
        (Some(v), "s") => format!("{v:.1} s"),
        (Some(v), unit) => format!("{v:.0} {unit}"),
    }
}

fn overview(w: &Workloads) -> Block {
    let has = |system: &System| w.workloads.iter().any(|one| one.systems().contains(system));
    let systems: Vec<System> = System::ALL.into_iter().filter(has).collect();
    let cell = |one: &Workload, m: &Metric, system: System| {
        let value = shown(one.median(system, &m.name), &m.unit);
        match (system, one.ratio(system, &m.name)) {
            (System::Memory | System::Stock, _) | (_, None) => value,
            (_, Some(ratio)) => format!("{value}, {ratio:.2} of stock swap's"),
        }
    };
    let rows = w.workloads.iter().flat_map(|one| {
        one.metrics.iter().map(|m| {
            let cells = systems.iter().map(|&system| cell(one, m, system));
            [one.title.clone(), m.title.clone()].into_iter().chain(cells).collect()
        })
    });
    let mut head = vec!["Program", "Value"];
    head.extend(systems.iter().map(|s| s.name()));
    table(&head, 2, rows.collect())
}

/// A chart for each unit, with the medians of all rounds.
fn charts(workload: &Workload) -> Vec<Block> {
    let systems = workload.systems();
    let keys: Vec<Key> = systems.iter().map(|s| s.key()).collect();
    let chart = |unit: &str| {
        let metrics = workload.metrics.iter().filter(|m| m.unit == unit);
        let groups: Vec<_> = metrics
            .map(|m| {
                let values = systems.iter().map(|&s| workload.median(s, &m.name));
                (m.title.clone(), values.collect())
            })
            .collect();
        bars((&workload.title, "medians of all rounds", unit), &keys, groups)
    };
    workload.units().into_iter().filter_map(chart).collect()
}

fn sizes(workload: &Workload) -> Block {
    let memory = units::size(workload.memory_bytes);
    let limit = units::size(workload.limit_bytes);
    Block::Small(format!("{memory} of memory, limited to {limit} where it swaps."))
}

fn runs(workload: &Workload) -> Block {
    let mut head =
        vec!["System", "Checked", "Round", "Seconds", "Pages in", "Pages out", "MiB written"];
    head.extend(workload.metrics.iter().map(|m| m.title.as_str()));
    let row = |r: &Run| {
        let mut row = vec![
            r.system.name().to_string(),
            r.verified.clone(),
            r.round.to_string(),
            format!("{:.1}", r.seconds),
            r.pages_swapped_in.to_string(),
            r.pages_swapped_out.to_string(),
            (r.bytes_written >> 20).to_string(),
        ];
        let value = |m: &Metric| shown(r.values.get(&m.name).copied(), &m.unit);
        row.extend(workload.metrics.iter().map(value));
        row
    };
    table(&head, 2, workload.runs.iter().map(row).collect())
}

fn machine(w: &Workloads) -> Block {
    let others = w.others_cpu_share.map_or("-".into(), |s| format!("{:.0} %", 100.0 * s));
    let rows = [
        ("Machine", w.machine.clone()),
        ("Kernel", w.kernel.clone()),
        ("Rounds", w.rounds.to_string()),
        ("It took", units::duration(w.seconds)),
        ("CPU time of other programs", others),
    ];
    let rows = rows.into_iter().map(|(name, value)| vec![name.to_string(), value]).collect();
    table(&["", ""], 2, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The document that the tests of znsage-lab check, too.
    const RESULT: &str = include_str!("../../../znsage-lab/tests/workloads.json");

    fn page(text: &str) -> String {
        crate::report::page_of(text).unwrap()
    }

    #[test]
    fn medians_and_ratios_cover_all_rounds() {
        let w: Workloads = serde_json::from_str(RESULT).unwrap();
        let one = &w.workloads[0];
        assert_eq!(one.median(System::Stock, "rate"), Some(900.0));
        assert_eq!(one.median(System::Memory, "rate"), Some(2000.0));
        assert_eq!(one.median(System::Memory, "none"), None);
        assert_eq!(one.ratio(System::Znsage, "rate"), Some(1000.0 / 900.0));
        assert_eq!(one.ratio(System::Znsage, "none"), None);
    }

    #[test]
    fn page_shows_every_program() {
        let html = page(RESULT);
        assert!(html.contains("<h1>znsage: real programs</h1>"), "{html}");
        // One for requests and one for latencies.
        assert_eq!(html.matches("<svg ").count(), 2);
        for text in [
            "A store, 95/5",
            "1000 requests/s",
            "1.11 of stock",
            "all 100 keys",
            "100 MiB of memory",
        ] {
            assert!(html.contains(text), "{text}");
        }
        assert!(!html.contains("not measured"));
    }

    #[test]
    fn missing_measurements_are_reported() {
        let problem = RESULT.replace("\"problems\": []", "\"problems\": [\"sort: no room\"]");
        assert!(page(&problem).contains("not measured: sort: no room"));
    }
}
