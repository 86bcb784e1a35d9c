// SPDX-License-Identifier: GPL-2.0-only
//! Results of `znsage bench`.

use serde::Deserialize;
use serde_json::Value;
use znsage_sim::chart::Look;
use znsage_sim::html::{Block, Section};

use super::parts::{
    bars, keys, machines, percentiles, section, settings, table, verdict, Key, MOST_SERIES,
};
use super::Named;
use crate::bench::Latency;
use crate::machine::Machine;
use crate::units;

/// The part of the document (docs/json.md) that is used.
#[derive(Debug, Deserialize)]
pub struct Bench {
    system: String,
    kernel: String,
    machine: Option<Machine>,
    config: Value,
    phases: Vec<Phase>,
    corrupt_pages: u64,
    #[serde(default)]
    corrupt: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Phase {
    phase: String,
    seconds: f64,
    ops_per_s: f64,
    latency_us: Option<Latency>,
    swap_in_mib_per_s: f64,
    swap_out_mib_per_s: f64,
    waf: Option<f64>,
    utilization: Option<Utilization>,
}

#[derive(Debug, Deserialize)]
struct Utilization {
    mean: f64,
}

pub fn sections(all: &[Named<Bench>]) -> Vec<Section> {
    let keys = keys(all, |b| b.system.clone());
    let columns: Vec<_> =
        all.iter().zip(&keys).map(|(b, key)| (key.label.clone(), &b.result.config)).collect();
    let of = all
        .iter()
        .zip(&keys)
        .map(|(b, key)| (key.label.clone(), b.result.machine.as_ref(), b.result.kernel.clone()));
    vec![
        section("Swapping", charts(all, &keys)),
        section("Phases", vec![phases(all, &keys)]),
        section("Settings of the benchmark", vec![settings(&columns)]),
        section("Machine of the benchmark", vec![machines(of)]),
    ]
}

/// The names of the phases, in order.
fn names(all: &[Named<Bench>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for phase in all.iter().flat_map(|b| &b.result.phases) {
        if !names.contains(&phase.phase) {
            names.push(phase.phase.clone());
        }
    }
    names
}

fn charts(all: &[Named<Bench>], keys: &[Key]) -> Vec<Block> {
    let mut blocks: Vec<Block> =
        all.iter().zip(keys).map(|(b, key)| pages(&b.result, key)).collect();
    let each = |f: fn(&Phase) -> Option<f64>| -> Vec<(String, Vec<Option<f64>>)> {
        let of = |b: &Named<Bench>, name: &str| {
            b.result.phases.iter().find(|p| p.phase == name).and_then(f)
        };
        let group = |name: String| {
            let values = all.iter().map(|b| of(b, &name)).collect();
            (name, values)
        };
        names(all).into_iter().map(group).collect()
    };
    blocks.extend(bars(
        ("Pages accessed", "each verified before it is used", "pages/s"),
        keys,
        each(|p| Some(p.ops_per_s)),
    ));
    let latencies = all.iter().zip(keys).flat_map(|(b, key)| {
        let timed = b.result.phases.iter().filter_map(|p| Some((p, p.latency_us.as_ref()?)));
        timed.map(|(p, l)| {
            (format!("{}, {}", key.label, p.phase), key.look, [l.p50, l.p99, l.p99_9, l.max])
        })
    });
    let mut latencies: Vec<_> = latencies.collect();
    if latencies.len() > all.len() && latencies.len() <= MOST_SERIES {
        latencies.iter_mut().enumerate().for_each(|(i, l)| l.1 = Look::other(i));
    }
    blocks.extend(percentiles("Accesses", "latency, from the first touch of a page", latencies));
    for (title, f) in [
        ("Swapped out", (|p| Some(p.swap_out_mib_per_s)) as fn(&Phase) -> Option<f64>),
        ("Swapped in", |p| Some(p.swap_in_mib_per_s)),
    ] {
        blocks.extend(bars((title, "by the kernel's counters", "MiB/s"), keys, each(f)));
    }
    blocks.extend(bars(
        ("Write amplification", "blocks appended for each swapped out", "blocks"),
        keys,
        each(|p| p.waf),
    ));
    blocks
}

/// The result of verification.
fn pages(bench: &Bench, key: &Key) -> Block {
    let n = bench.corrupt_pages;
    let text = match n {
        0 => format!("{}: every page was correct", key.label),
        _ => format!("{}: {n} corrupt pages: {}", key.label, bench.corrupt.join("; ")),
    };
    verdict(&text, n == 0)
}

fn phases(all: &[Named<Bench>], keys: &[Key]) -> Block {
    let head = [
        "Result",
        "Phase",
        "Seconds",
        "Pages/s",
        "p50",
        "p99",
        "p99.9",
        "Longest",
        "In, MiB/s",
        "Out, MiB/s",
        "WAF",
        "Full",
    ];
    let time = |l: &Option<Latency>, f: fn(&Latency) -> f64| {
        l.as_ref().map_or("-".to_string(), |l| units::micros(f(l)))
    };
    let rows = all.iter().zip(keys).flat_map(|(b, key)| {
        b.result.phases.iter().map(|p| {
            vec![
                key.label.clone(),
                p.phase.clone(),
                format!("{:.1}", p.seconds),
                format!("{:.0}", p.ops_per_s),
                time(&p.latency_us, |l| l.p50),
                time(&p.latency_us, |l| l.p99),
                time(&p.latency_us, |l| l.p99_9),
                time(&p.latency_us, |l| l.max),
                format!("{:.1}", p.swap_in_mib_per_s),
                format!("{:.1}", p.swap_out_mib_per_s),
                p.waf.map_or("-".into(), |w| format!("{w:.2}")),
                p.utilization.as_ref().map_or("-".into(), |u| format!("{:.1} %", 100.0 * u.mean)),
            ]
        })
    });
    table(&head, 2, rows.collect())
}
