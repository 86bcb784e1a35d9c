// SPDX-License-Identifier: GPL-2.0-only
//! Results of `znsage sim run`.

use serde_json::Value;
use znsage_sim::chart::number;
use znsage_sim::html::{Block, Section};
use znsage_sim::result::{Latency, RunResult};
use znsage_sim::time::BLOCK;

use super::parts::{bars, keys, percentiles, section, settings, table, verdict, Key};
use super::Named;
use crate::units;

pub fn sections(all: &[Named<RunResult>]) -> Vec<Section> {
    let keys = keys(all, |r| r.system.name().to_string());
    let mut sections = vec![section("Simulated runs", charts(all, &keys))];
    sections.push(section("Values of the runs", values(all, &keys)));
    sections
}

fn charts(all: &[Named<RunResult>], keys: &[Key]) -> Vec<Block> {
    let each = |f: &dyn Fn(&RunResult) -> f64| all.iter().map(|r| Some(f(&r.result))).collect();
    let mut blocks = Vec::new();
    for r in all.iter().filter(|r| !r.result.wrong.is_empty()) {
        blocks.push(verdict(&format!("{}: {}", r.name, r.result.wrong.join("; ")), false));
    }
    blocks.extend(bars(
        ("Swap bandwidth", "in virtual time", "MB/s"),
        keys,
        vec![
            ("swapped out".into(), each(&|r| r.swap_out_mb_s)),
            ("swapped in".into(), each(&|r| r.swap_in_mb_s)),
        ],
    ));
    blocks.extend(bars(
        ("Write amplification", "blocks programmed for each page swapped out", "blocks"),
        keys,
        vec![
            ("in all".into(), each(&|r| r.waf.total)),
            ("GC".into(), each(&|r| r.waf.gc)),
            ("padding".into(), each(&|r| r.waf.padding)),
            ("mappings".into(), each(&|r| r.waf.metadata)),
            ("the device's own".into(), each(&|r| r.waf.device)),
        ],
    ));
    let latency = |of: &dyn Fn(&RunResult) -> Option<Latency>| {
        let lines = all.iter().zip(keys).filter_map(|(r, key)| {
            let l = of(&r.result)?;
            Some((key.label.clone(), key.look, [l.p50_us, l.p99_us, l.p999_us, l.max_us]))
        });
        lines.collect()
    };
    let faults = latency(&|r| Some(r.fault_latency.clone()));
    blocks.extend(percentiles("Page faults that read from the device", "latency", faults));
    let requests = latency(&|r| r.request_latency.clone());
    blocks.extend(percentiles("Requests of the workload", "latency", requests));
    blocks.extend(bars(
        ("Operations of the workload", "requests; where it has none, accesses", "1/s"),
        keys,
        vec![("operations".into(), each(&|r| r.operations_s))],
    ));
    blocks
}

fn values(all: &[Named<RunResult>], keys: &[Key]) -> Vec<Block> {
    let head = [
        "Result",
        "Device",
        "Workload",
        "Size",
        "Full",
        "Seed",
        "Measured",
        "WAF",
        "Fault p99",
        "CPU",
        "Map",
    ];
    let row = |(r, key): (&Named<RunResult>, &Key)| {
        let r = &r.result;
        vec![
            key.label.clone(),
            r.device.clone(),
            r.workload.to_string(),
            units::size(r.capacity_blocks.saturating_mul(BLOCK)),
            format!("{} %", number(r.utilization)),
            r.seed.to_string(),
            format!("{} s", number(r.seconds)),
            format!("{:.2}", r.waf.total),
            units::micros(r.fault_latency.p99_us),
            format!("{} %", number(r.cpu.threads + r.cpu.gc + r.cpu.irq)),
            format!("{} B a page", number(r.mapping.ram_per_page)),
        ]
    };
    let counts: Vec<(String, Value)> = all
        .iter()
        .zip(keys)
        .map(|(r, key)| (key.label.clone(), serde_json::to_value(&r.result.counts)))
        .filter_map(|(label, counts)| Some((label, counts.ok()?)))
        .collect();
    let columns: Vec<(String, &Value)> = counts.iter().map(|(l, v)| (l.clone(), v)).collect();
    vec![
        table(&head, 3, all.iter().zip(keys).map(row).collect()),
        Block::Folded("All counters".into(), vec![settings(&columns)]),
    ]
}
