// SPDX-License-Identifier: GPL-2.0-only
//! `znsage-lab demo`: the same work on stock swap and on znsage, on modelled SSDs that
//! collect garbage; a table, and result.json for bench/demo.py.

use std::path::Path;

use serde::Serialize;

use crate::model::PAGE;
use crate::result::Result;
use crate::ssd::{self, Flash, Record, SIZE_MIB};
use crate::table::size;
use crate::{files, vm};

/// Each point of the line is the mean of this many bytes swapped out.
const WINDOW: u64 = 64 << 20;

/// result.json of the demo; bench/demo.py draws it.
#[derive(Serialize)]
struct Demo {
    about: String,
    machine: String,
    systems: Vec<System>,
    runs: Vec<Record>,
}

/// What is drawn of a system.
#[derive(Serialize)]
struct System {
    title: &'static str,
    /// Flash writes for each page, over the GiB swapped out so far.
    flash: Vec<(f64, f64)>,
    /// Least and most: stock swap runs with either pace of the drive's garbage collection.
    swap_out_mb_s: (f64, f64),
    p99_ms: (f64, f64),
}

pub fn run() -> Result<bool> {
    let out = Path::new("build/demo");
    let (runs, sound) = ssd::compare(&ssd::Args::demo(), out)?;
    print!("{}", ssd::table(&runs));
    let document = Demo::new(vm::machine(ssd::CPUS), runs);
    files::write_json(&out.join("result.json"), &document)?;
    Ok(sound)
}

impl Demo {
    fn new(machine: String, runs: Vec<Record>) -> Demo {
        let about = runs.first().map_or(String::new(), |run| {
            format!(
                "Unmodified Debian kernel {}. A modelled SSD of {} that collects garbage, and a \
                 zoned one of the same flash, both written over before. The swap area is {} % \
                 full;\nprograms access all pages alike, and every page is verified when it comes \
                 back. Rates and latencies are in the drive's time. Stock swap: from one to the \
                 other pace\nof the drive's garbage collection (gc_pace = even, burst).",
                run.measured.kernel,
                size(SIZE_MIB << 20),
                run.percent
            )
        });
        let system = |of: &[Record]| {
            let range = |value: fn(&Record) -> f64| {
                let values = of.iter().map(value);
                (values.clone().fold(f64::MAX, f64::min), values.fold(0.0, f64::max))
            };
            System {
                title: of[0].turn.on.system.title(),
                flash: flash_line(&of[0].measured.series),
                swap_out_mb_s: range(Record::swap_out_mb_per_s),
                p99_ms: range(Record::p99_ms),
            }
        };
        let same = |a: &Record, b: &Record| a.turn.on.system == b.turn.on.system;
        let systems = runs.chunk_by(same).map(system).collect();
        Demo { about, machine, systems, runs }
    }
}

/// Flash writes per page over the pages swapped out so far, GiB.
fn flash_line(series: &[Flash]) -> Vec<(f64, f64)> {
    let Some(start) = series.first() else {
        return Vec::new();
    };
    let mut points = Vec::new();
    let mut from = start;
    for flash in series {
        if (flash.swapped_out - from.swapped_out) * PAGE >= WINDOW {
            let gib = flash.since(start).swapped_out * PAGE;
            points.push((gib as f64 / (1u64 << 30) as f64, flash.since(from).a_page()));
            from = flash;
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{self, tests::phase};
    use crate::ssd::{Measured, OnDrive, Pattern, System, Turn};

    fn run(system: System, factor: u64) -> Record {
        let flash = |i: u64| Flash {
            swapped_out: 10_000 * i,
            written: 12_000 * i,
            programmed: 12_000 * factor * i,
        };
        let turn = Turn {
            on: OnDrive::new(system),
            pattern: Pattern::Random,
            used: 300 << 20,
            rewrites: 2.0,
            compressible: 0.0,
            write_ratio: 0.5,
        };
        let phase = phase(model::System::Stock, "random", 4000.0).measured;
        let series = (0..20).map(flash).collect();
        let measured = Measured { kernel: "6.12-test".into(), phase, flash: flash(1), series };
        Record { percent: 80, round: 0, slowdown: 32, accelerator: "tcg".into(), turn, measured }
    }

    #[test]
    fn document_says_what_is_drawn() {
        let mut slow = run(System::Stock, 3);
        slow.measured.phase.swap_out_mib_per_s /= 2.0;
        let runs = vec![run(System::Stock, 3), slow, run(System::Virtual, 1)];
        let demo = Demo::new("a test".into(), runs);
        let json = serde_json::to_value(&demo).unwrap();
        assert!(demo.about.contains("80 %"), "{}", demo.about);
        assert_eq!(json["systems"][0]["title"], "stock swap");
        assert_eq!(json["systems"][1]["flash"].as_array().unwrap().len(), 9);
        let rate = |system: usize, end: usize| {
            json["systems"][system]["swap_out_mb_s"][end].as_f64().unwrap().round()
        };
        assert_eq!([rate(0, 0), rate(0, 1), rate(1, 0), rate(1, 1)], [168.0, 336.0, 336.0, 336.0]);
    }

    #[test]
    fn line_is_means_of_windows() {
        let line = flash_line(&run(System::Stock, 3).measured.series);
        assert_eq!(line.len(), 9);
        assert!(line.iter().all(|p| (p.1 - 3.6).abs() < 1e-9), "{line:?}");
    }
}
