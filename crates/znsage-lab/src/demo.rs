// SPDX-License-Identifier: GPL-2.0-only
//! `znsage-lab demo`: the same work on stock swap and on znsage, on modelled SSDs that
//! collect garbage; a table, result.json and a page of charts.

use std::path::Path;

use serde::{Deserialize, Serialize};
use znsage_sim::chart::{Axis, Bar, BarChart, BarSeries, Group, LineChart, Look, Series};
use znsage_sim::html::{Block, Page, Section};

use crate::model::PAGE;
use crate::result::Result;
use crate::ssd::{self, Flash, Record, SIZE_MIB};
use crate::table::size;
use crate::{files, vm};

/// Each point of the line is the mean of this many bytes swapped out.
const WINDOW: u64 = 64 << 20;

/// result.json of the demo.
#[derive(Serialize, Deserialize)]
pub struct Demo {
    pub machine: String,
    pub runs: Vec<Record>,
}

pub fn run() -> Result<bool> {
    let out = Path::new("build/demo");
    let (runs, sound) = ssd::compare(&ssd::Args::demo(), out)?;
    let document = Demo { machine: vm::machine(ssd::CPUS), runs };
    files::write_json(&out.join("result.json"), &document)?;
    show(&document, out)?;
    println!("charts: {0}/demo.html; numbers: {0}/result.json", out.display());
    Ok(sound)
}

/// Draws the charts and prints the table of an earlier run.
pub fn redraw(result: &Path) -> Result<bool> {
    show(&files::read_json(result)?, result.parent().unwrap_or(Path::new(".")))?;
    Ok(true)
}

fn show(document: &Demo, out: &Path) -> Result<()> {
    print!("{}", ssd::table(&document.runs));
    files::write(&out.join("demo.html"), page(document).render())
}

fn page(document: &Demo) -> Page {
    let runs = &document.runs;
    let about = runs.first().map_or(String::new(), |run| {
        format!(
            "Unmodified Debian kernel {}. A modelled SSD of {} that collects garbage, and a zoned \
             one of the same flash, both written over before. The swap area is {} % full; programs \
             access all pages alike, and every page is verified when it comes back. Rates and \
             latencies are in the drive's time.",
            run.measured.kernel,
            size(SIZE_MIB << 20),
            run.percent
        )
    });
    let speed = bars("Swap-out rate", "MB/s", runs, Record::swap_out_mb_per_s);
    let latency = bars("p99 access latency", "ms", runs, Record::p99_ms);
    let charts = [flash_writes(runs).svg(), speed.svg(), latency.svg()];
    Page {
        title: "The same memory on the same flash, swapped by stock Linux and by znsage".into(),
        intro: vec![Block::Text(about), Block::Small(format!("Machine: {}.", document.machine))],
        sections: vec![Section {
            id: "charts".into(),
            title: String::new(),
            blocks: charts.map(Block::Svg).to_vec(),
        }],
    }
}

fn flash_writes(runs: &[Record]) -> LineChart {
    let series = runs.iter().enumerate().map(|(i, run)| Series {
        label: run.turn.on.system.title().into(),
        look: Look::other(i),
        published: false,
        line: true,
        points: flash_line(&run.measured.series),
        spread: vec![],
    });
    LineChart {
        title: "Flash writes per page swapped out (less is better)".into(),
        subtitle: "the drive's own copies and znsage's included".into(),
        x: Axis::new("swapped out so far, GiB"),
        y: Axis::from_zero("flash writes per page"),
        series: series.collect(),
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

fn bars(title: &str, unit: &str, runs: &[Record], value: fn(&Record) -> f64) -> BarChart {
    let series = |(i, run): (usize, &Record)| BarSeries {
        label: run.turn.on.system.title().into(),
        look: Look::other(i),
        published: false,
    };
    BarChart {
        title: title.into(),
        subtitle: "of the last seconds".into(),
        x: String::new(),
        y: Axis::from_zero(unit),
        series: runs.iter().enumerate().map(series).collect(),
        groups: vec![Group {
            label: String::new(),
            bars: runs.iter().map(|run| Some(Bar::of(value(run)))).collect(),
        }],
    }
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
        Record { percent: 80, round: 0, slowdown: 32, turn, measured }
    }

    fn demo() -> Demo {
        Demo {
            machine: "a test".into(),
            runs: vec![run(System::Stock, 3), run(System::Virtual, 1)],
        }
    }

    #[test]
    fn page_of_an_earlier_result_names_systems_and_figures() {
        let text = serde_json::to_string(&demo()).unwrap();
        let page = page(&serde_json::from_str(&text).unwrap()).render();
        for text in ["stock swap", "znsage, virtual zones", "336", "GiB", "80 %"] {
            assert!(page.contains(text), "{text}");
        }
        assert_eq!(page.matches("<svg ").count(), 3);
    }

    #[test]
    fn line_is_means_of_windows() {
        let line = flash_line(&run(System::Stock, 3).measured.series);
        assert_eq!(line.len(), 9);
        assert!(line.iter().all(|p| (p.1 - 3.6).abs() < 1e-9), "{line:?}");
    }
}
