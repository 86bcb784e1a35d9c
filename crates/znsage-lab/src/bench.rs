// SPDX-License-Identifier: GPL-2.0-only
//! `znsage-lab bench`: measures the figures and tells which targets are met. Speeds are
//! compared in a boot of their own whose clock counts instructions.

use std::path::Path;

use serde::Serialize;

use crate::figures::{outcome, select, Figure, Measurements, Outcome, Target};
use crate::load::{show, Load};
use crate::result::Result;
use crate::table::Table;
use crate::vm::{self, Clock, Harvest, Vm};
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
}

pub fn run(args: &Args) -> Result<bool> {
    let figures = select(&args.figures)?;
    let out = Path::new("build/bench");
    let mut measured = Measurements::default();
    let mut others = None;
    for clock in [Clock::Instructions, Clock::Real] {
        let chosen: Vec<Figure> =
            figures.iter().copied().filter(|f| f.clock() == Some(clock)).collect();
        if !chosen.is_empty() {
            let harvest = boot(&chosen, clock, args.rounds, out)?;
            measured.merge(harvest.document);
            others = others.into_iter().chain(harvest.others).reduce(f64::max);
        }
    }
    if figures.iter().any(|f| f.is_engine()) {
        let before = Load::now();
        measured.engine = Some(engine::measure(args.rounds)?);
        let share = before.zip(Load::now()).map(|(before, now)| now.others_since(&before));
        others = others.into_iter().chain(share).reduce(f64::max);
    }
    if figures.iter().any(|f| f.clock().is_none() && !f.is_engine()) {
        measured.simulator = Some(simulator::measure()?);
    }
    let document = Document {
        kernel: measured.kernel.clone(),
        machine: vm::machine(),
        others_cpu_share: others,
        rounds: args.rounds,
        figures: figures.iter().map(|&f: &Figure| outcome(f, &measured)).collect(),
        measurements: measured,
    };
    files::write_json(&out.join("result.json"), &document)?;
    show(&to_text(&document), &document.measurements.problems, document.others_cpu_share);
    println!("numbers: {}/result.json; what they mean: bench/README.md", out.display());
    Ok(true)
}

fn boot(
    figures: &[Figure],
    clock: Clock,
    rounds: u32,
    out: &Path,
) -> Result<Harvest<Measurements>> {
    let names: Vec<&str> = figures.iter().map(|f| f.name()).collect();
    vm::collect(&Vm {
        clock,
        conventional: vec![CONVENTIONAL],
        zns: ZNS.to_vec(),
        forward: None,
        job: "bench",
        arguments: vec![format!("--figures={}", names.join(",")), format!("--rounds={rounds}")],
        out,
        timeout: TIMEOUT,
    })
}

fn to_text(document: &Document) -> String {
    let mut table = Table::new(&["figure", "value", "target", "met", "measured"]);
    for figure in &document.figures {
        let target = match figure.target {
            Target::AtLeast(limit) => format!(">= {limit:.2}"),
            Target::AtMost(limit) => format!("<= {limit:.2}"),
        };
        table.row([
            figure.title.to_string(),
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
    let engine = document.measurements.engine.as_ref();
    let engine = engine.map_or(String::new(), |e| format!("\n{}", e.to_text()));
    format!("{kernel}{}\n\n{}{engine}", document.machine, table.to_text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Maps;

    #[test]
    fn table_shows_which_targets_are_met() {
        let measured = Measurements {
            map: Some(Maps { map_bytes: 7900, blocks_total: 1000 }),
            ..Measurements::default()
        };
        let document = Document {
            kernel: "6.12-test".to_string(),
            machine: "a test".to_string(),
            others_cpu_share: None,
            rounds: 3,
            figures: [Figure::Map, Figure::Waf80].map(|f| outcome(f, &measured)).into(),
            measurements: measured,
        };
        let text = to_text(&document);
        assert!(text.contains("| 7.900 | <= 8.08 | yes | 7900 bytes for 1000 pages |"), "{text}");
        assert!(text.contains("|     - | <= 2.70 |  NO |"), "{text}");
        let json = serde_json::to_value(&document).unwrap();
        assert_eq!(json["figures"][0]["target"]["at_most"], 8.08);
        assert_eq!(json["figures"][0]["met"], true);
    }
}
