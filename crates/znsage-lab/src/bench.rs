// SPDX-License-Identifier: GPL-2.0-only
//! `znsage-lab bench`: measures the figures and tells which targets are met. Speeds are
//! compared in a boot of their own whose clock counts instructions, and on devices with
//! latency in one of each kernel.

use std::path::Path;

use serde::Serialize;

use crate::engine::Engine;
use crate::figures::{select, Figure, Measurements, Outcome, Place, Target};
use crate::load::{show, Load};
use crate::result::Result;
use crate::table::Table;
use crate::vm::{self, Clock, Vm};
use crate::{engine, files, simulator};

/// The conventional device and the first zoned one are for the comparison with stock
/// swap, the second zoned one for the WAF: small, to be rewritten many times in a minute,
/// and with 1024 zones, as large devices have, so that the empty ones hardly count.
const CONVENTIONAL: &str = "size=512M";
const ZNS: [&str; 2] = ["size=512M,zone=512K", "size=256M,zone=256K"];

const TIMEOUT: u32 = 3600;

#[derive(clap::Args)]
pub struct Args {
    /// Names or prefixes of names: seq, random40, waf, ... [default: all]
    #[arg(long, value_name = "NAME,...")]
    figures: Vec<String>,

    /// Repetitions of each comparison; their medians count
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Loops of stress-ng that use the guest's CPU meanwhile
    #[arg(long, value_name = "N", default_value_t = 0)]
    busy: u32,

    /// Kernels to measure the devices with latency on
    #[arg(long, value_name = "VERSION,...", default_value = "6.1,6.12")]
    kernels: String,
}

/// result.json
#[derive(Serialize)]
struct Document {
    kernel: String,
    machine: String,
    /// The share of other programs in the machine's CPU time meanwhile.
    others_cpu_share: Option<f64>,
    rounds: u32,
    figures: Vec<Outcome>,
    measurements: Measurements,
    engine: Option<Engine>,
    /// By the kernel, as vm/run calls it.
    latency: Vec<(String, Measurements)>,
}

pub fn run(args: &Args) -> Result<bool> {
    let figures = select(&args.figures)?;
    let at =
        |place| -> Vec<Figure> { figures.iter().filter(|f| f.place == place).cloned().collect() };
    let out = Path::new("build/bench");
    let mut measured = Measurements::default();
    let mut others = None;
    for clock in [Clock::Instructions, Clock::Real] {
        let chosen = at(Place::Nvme(clock));
        if !chosen.is_empty() {
            let devices = vec![CONVENTIONAL];
            let vm = vm("bench", vm::KERNEL, clock, &chosen, args, out);
            let harvest = vm::collect(&Vm { conventional: devices, zns: ZNS.to_vec(), ..vm })?;
            measured.merge(harvest.document);
            others = others.into_iter().chain(harvest.others).reduce(f64::max);
        }
    }
    let mut engine = None;
    if !at(Place::Engine).is_empty() {
        let before = Load::now();
        let costs = engine::measure(args.rounds)?;
        for (figure, number) in costs.numbers() {
            if let Some(number) = number {
                measured.add(figure, number);
            }
        }
        engine = Some(costs);
        let share = before.zip(Load::now()).map(|(before, now)| now.others_since(&before));
        others = others.into_iter().chain(share).reduce(f64::max);
    }
    let chosen = at(Place::Latency);
    let kernels = args.kernels.split([',', ' ']).filter(|k| !k.is_empty() && !chosen.is_empty());
    let mut latency = Vec::new();
    for kernel in kernels {
        let (found, load) = with_latency(kernel, &chosen, args, out);
        let about = |problem: &String| format!("{kernel}, {problem}");
        measured.problems.extend(found.problems.iter().map(about));
        latency.push((kernel.to_string(), found));
        others = others.into_iter().chain(load).reduce(f64::max);
    }
    if !at(Place::Host).is_empty() {
        let simulations = simulator::measure()?;
        measured.add("sim-speed", simulations.speed());
        measured.add("sim-memory", simulations.bytes_a_page());
        measured.add("sim-512g", simulations.large_gib());
    }
    let outcomes = |figure: &Figure| -> Vec<Outcome> {
        match figure.place {
            Place::Latency => {
                latency.iter().map(|(kernel, m)| m.outcome(figure, Some(kernel))).collect()
            }
            _ => vec![measured.outcome(figure, None)],
        }
    };
    let document = Document {
        kernel: measured.kernel.clone(),
        machine: vm::machine(vm::CPUS),
        others_cpu_share: others,
        rounds: args.rounds,
        figures: figures.iter().flat_map(outcomes).collect(),
        measurements: measured,
        engine,
        latency,
    };
    files::write_json(&out.join("result.json"), &document)?;
    show(&to_text(&document), &document.measurements.problems, document.others_cpu_share);
    println!("numbers: {}/result.json; what they mean: bench/README.md", out.display());
    Ok(true)
}

/// What one kernel measures, and the load meanwhile. A kernel that fails does not cost the
/// results of the others.
fn with_latency(
    kernel: &str,
    figures: &[Figure],
    args: &Args,
    out: &Path,
) -> (Measurements, Option<f64>) {
    match vm::collect(&vm("latency", kernel, Clock::Instructions, figures, args, out)) {
        Ok(harvest) => (harvest.document, harvest.others),
        Err(why) => (Measurements { problems: vec![why], ..Measurements::default() }, None),
    }
}

/// A guest without devices that measures these figures.
fn vm<'a>(
    job: &'a str,
    kernel: &'a str,
    clock: Clock,
    figures: &[Figure],
    args: &Args,
    out: &'a Path,
) -> Vm<'a> {
    let names: Vec<String> = figures.iter().map(|f| f.name.clone()).collect();
    Vm {
        kernel,
        cpus: vm::CPUS,
        clock,
        conventional: Vec::new(),
        zns: Vec::new(),
        job,
        arguments: vec![
            format!("--figures={}", names.join(",")),
            format!("--rounds={}", args.rounds),
            format!("--busy={}", args.busy),
        ],
        out,
        timeout: TIMEOUT,
    }
}

fn to_text(document: &Document) -> String {
    let mut table = Table::new(&["figure", "value", "target", "met", "measured"]);
    for figure in &document.figures {
        let target = match figure.target {
            Target::AtLeast(limit) => format!(">= {limit:.2}"),
            Target::AtMost(limit) => format!("<= {limit:.2}"),
        };
        table.row([
            figure.title.clone(),
            figure.value.map_or("-".to_string(), |v| format!("{v:.3}")),
            target,
            if figure.met { "yes" } else { "NO" }.to_string(),
            figure.detail.clone(),
        ]);
    }
    let kernel = match document.kernel.as_str() {
        "" => String::new(),
        kernel => format!("Linux {kernel}; "),
    };
    let engine = document.engine.as_ref().map_or(String::new(), |e| format!("\n{}", e.to_text()));
    format!("{kernel}{}\n\n{}{engine}", document.machine, table.to_text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_shows_which_targets_are_met() {
        let mut measured = Measurements::default();
        measured.add("map", (4.3, "4300 bytes for 1000 pages".to_string()));
        let figures = select(&["map,waf80".to_string()]).unwrap();
        let document = Document {
            kernel: "6.12-test".to_string(),
            machine: "a test".to_string(),
            others_cpu_share: None,
            rounds: 3,
            figures: figures.iter().map(|f| measured.outcome(f, None)).collect(),
            measurements: measured,
            engine: None,
            latency: Vec::new(),
        };
        let text = to_text(&document);
        assert!(text.contains("| 4.300 | <= 5.54 | yes | 4300 bytes for 1000 pages |"), "{text}");
        assert!(text.contains("|     - | <= 2.70 |  NO |"), "{text}");
        let json = serde_json::to_value(&document).unwrap();
        assert_eq!(json["figures"][1]["target"]["at_most"], 5.54);
        assert_eq!(json["figures"][1]["met"], true);
    }
}
