// SPDX-License-Identifier: GPL-2.0-only
//! `znsage-lab workloads`: real programs on znsage, stock swap and others, in one boot. The
//! programs run in the guest; bench/README.md describes them.

pub mod model;
pub mod sources;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use crate::files;
use crate::load::show;
use crate::model::PAGE;
use crate::result::Result;
use crate::table::{clock, micros, size, thousands, Table};
use crate::vm::{self, Clock, Vm};
use model::{select, select_systems, Comparison, Measured, Metric, Run, Setting, Workload};

/// The Python of `vm/setup figures`, which has Pillow and pandas, and the loads in Python.
pub const PYTHON: &str = "build/venv-figures/bin/python";
pub const LOADS: &str = "bench/loads.py";

/// A device for each system, and a disk for files.
const SWAP: &str = "size=512M";
const ZNS: &str = "size=512M,zone=512K";
const DISK: &str = "size=512M";

const TIMEOUT: u32 = 3 * 3600;

#[derive(clap::Args)]
pub struct Args {
    /// Names: etc, redis, compile, sort, stress, list, flip, bfs, sandbox [default: all]
    #[arg(long, value_name = "NAME,...")]
    workloads: Vec<String>,

    /// Names, beside stock swap: zswap, zram, znsage, znsage-lz4, znsage-zstd, or all
    #[arg(long, value_name = "NAME,...", default_value = "znsage")]
    systems: Vec<String>,

    /// Repetitions on each system, in turns; medians count
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

/// result.json
#[derive(Serialize)]
struct Document {
    version: u32,
    kernel: String,
    machine: String,
    /// The share of other programs in the machine's CPU time meanwhile.
    others_cpu_share: Option<f64>,
    rounds: u32,
    seconds: f64,
    workloads: Vec<Comparison>,
    problems: Vec<String>,
}

pub fn run(args: &Args) -> Result<bool> {
    let start = Instant::now();
    let chosen = select(&args.workloads)?;
    let systems = select_systems(&args.systems)?;
    let out = Path::new("build/workloads");
    check_programs(&chosen)?;
    if chosen.contains(&Workload::Compile) {
        sources::fetch(out)?;
    }
    let names: Vec<&str> = chosen.iter().map(|w| w.name()).collect();
    let machine = Vm {
        kernel: vm::KERNEL,
        cpus: vm::CPUS,
        clock: Clock::Real,
        conventional: vec![SWAP, DISK],
        zns: vec![ZNS],
        job: "workloads",
        arguments: vec![
            format!("--workloads={}", names.join(",")),
            format!(
                "--systems={}",
                systems.iter().map(|s| s.option()).collect::<Vec<_>>().join(",")
            ),
            format!("--rounds={}", args.rounds),
        ],
        out,
        timeout: TIMEOUT,
    };
    let harvest = vm::collect::<Measured>(&machine)?;
    let document = Document {
        version: 1,
        kernel: harvest.document.kernel,
        machine: vm::machine(vm::CPUS),
        others_cpu_share: harvest.others,
        rounds: args.rounds,
        seconds: start.elapsed().as_secs_f64(),
        workloads: harvest.document.comparisons,
        problems: harvest.document.problems,
    };
    files::write_json(&out.join("result.json"), &document)?;
    show(&to_text(&document), &document.problems, document.others_cpu_share);
    println!("It took {}.", clock(document.seconds as u64));
    println!("numbers: {}/result.json; what they mean: bench/README.md", out.display());
    Ok(document.problems.is_empty())
}

/// The programs that a workload needs, and the package of each. The guest runs those of
/// the host.
fn programs(workload: Workload) -> &'static [(&'static str, &'static str)] {
    match workload {
        Workload::Etc => &[],
        Workload::Redis => &[("redis-server", "redis-server"), ("mkfs.ext4", "e2fsprogs")],
        Workload::Compile => &[("gcc", "gcc"), ("mkfs.ext4", "e2fsprogs")],
        Workload::Sort => &[("sort", "coreutils"), ("mkfs.ext4", "e2fsprogs")],
        Workload::Stress => &[("stress-ng", "stress-ng"), ("mkfs.ext4", "e2fsprogs")],
        _ => &[("mkfs.ext4", "e2fsprogs")],
    }
}

/// Checks, before the guest boots, that all programs are installed.
fn check_programs(chosen: &[Workload]) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<_> = std::env::split_paths(&path).collect();
    // These are on the guest's PATH.
    places.extend(["/usr/sbin".into(), "/sbin".into()]);
    match missing(chosen, |name| places.iter().any(|dir| dir.join(name).is_file())).as_slice() {
        [] => Ok(()),
        packages => Err(format!(
            "packages are missing: {}; `vm/setup workloads` installs them",
            packages.join(", ")
        )),
    }
}

fn missing(chosen: &[Workload], is_here: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let wanted = chosen.iter().flat_map(|&w| programs(w));
    let packages = wanted.filter(|(name, _)| !is_here(name)).map(|(_, package)| *package);
    packages.collect::<BTreeSet<_>>().into_iter().collect()
}

fn to_text(document: &Document) -> String {
    let systems = settings(document);
    let names = systems.iter().map(|s| match s {
        Setting::Memory | Setting::Stock => s.name().to_string(),
        _ => format!("{}, of stock's (in the rounds)", s.name()),
    });
    let head: Vec<String> = std::iter::once(String::new()).chain(names).collect();
    let mut table = Table::new(&head.iter().map(String::as_str).collect::<Vec<_>>());
    for comparison in &document.workloads {
        table.row([format!("**{}**", comparison.title)]);
        for metric in &comparison.metrics {
            let cell = |&setting: &Setting| cell(comparison, setting, metric);
            table.row(row(&metric.title, systems.iter().map(cell)));
        }
        let cell = |&setting: &Setting| pages(comparison, setting);
        table.row(row("pages swapped in, out; written", systems.iter().map(cell)));
    }
    let kernel = match document.kernel.as_str() {
        "" => String::new(),
        kernel => format!("Linux {kernel} (Debian's, unmodified); "),
    };
    let sizes: Vec<String> = document.workloads.iter().map(sizes).collect();
    format!(
        "{kernel}{}; {} rounds\n\n{}\n{}",
        document.machine,
        document.rounds,
        table.to_text(),
        sizes.concat()
    )
}

/// All workloads that were measured.
fn settings(document: &Document) -> Vec<Setting> {
    let runs = document.workloads.iter().flat_map(|c| &c.runs);
    runs.map(|run| run.setting).collect::<BTreeSet<_>>().into_iter().collect()
}

fn row(title: &str, cells: impl Iterator<Item = String>) -> Vec<String> {
    std::iter::once(format!("- {title}")).chain(cells).collect()
}

fn cell(comparison: &Comparison, setting: Setting, metric: &Metric) -> String {
    let Some(found) = comparison.summary(setting, metric) else {
        return "-".to_string();
    };
    let value = match metric.unit.as_str() {
        "us" => micros(found.value),
        "s" => format!("{:.1} s", found.value),
        unit => format!("{} {unit}", thousands(found.value)),
    };
    match setting {
        Setting::Memory | Setting::Stock => value,
        _ => {
            let (least, greatest) = found.range;
            format!("{value}, {:.2} ({least:.2} to {greatest:.2})", found.ratio)
        }
    }
}

/// Swapped pages, and of a page swapped out, what part was written to the device.
fn pages(comparison: &Comparison, setting: Setting) -> String {
    let median = |value: &dyn Fn(&Run) -> f64| {
        comparison.summary_of(setting, |r| Some(value(r))).map_or(f64::NAN, |s| s.value)
    };
    match setting {
        Setting::Memory => String::new(),
        _ => format!(
            "{}, {}; {:.2}",
            thousands(median(&|r| r.pages_swapped_in as f64)),
            thousands(median(&|r| r.pages_swapped_out as f64)),
            median(&|r| r.bytes_written as f64 / (r.pages_swapped_out * PAGE) as f64)
        ),
    }
}

fn sizes(comparison: &Comparison) -> String {
    let s = comparison.sizes;
    let verified = comparison.runs.last().map_or("", |r| &r.verified);
    format!(
        "{}: {} of memory, limited to {}; {verified}\n",
        comparison.title,
        size(s.memory_bytes),
        size(s.limit_bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Document {
        Document {
            version: 1,
            kernel: "6.12-test".to_string(),
            machine: "a test".to_string(),
            others_cpu_share: None,
            rounds: 2,
            seconds: 100.0,
            workloads: vec![model::tests::comparison()],
            problems: Vec::new(),
        }
    }

    #[test]
    fn table_compares_the_settings() {
        let text = to_text(&document());
        for cells in [
            "| 2,000 requests/s |     900 requests/s | 1,000 requests/s, 1.11 (1.00 to 1.20) |",
            "| - Reads, 99 %",
            "5,000, 4,000; 1.50 |",
            "A store, 95/5: 100 MiB of memory, limited to 50 MiB; all 100 keys",
        ] {
            assert!(text.contains(cells), "{cells}\n{text}");
        }
    }

    #[test]
    fn missing_packages_are_named_once() {
        let chosen = [Workload::Redis, Workload::Sort, Workload::Compile];
        assert!(missing(&chosen, |_| true).is_empty());
        let got = missing(&chosen, |name| !matches!(name, "mkfs.ext4" | "gcc"));
        assert_eq!(got, ["e2fsprogs", "gcc"]);
        assert!(missing(&[Workload::Etc], |_| false).is_empty());
    }
}
