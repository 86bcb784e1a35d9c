// SPDX-License-Identifier: GPL-2.0-only
//! The demo's picture: the drives' flash writes as they are written over, and what it
//! costs in speed.

mod bars;
mod panel;
pub mod png;
mod scale;
mod svg;

use crate::demo::Demo;
use crate::model::PAGE;
use crate::ssd::{Flash, Record, System, SIZE_MIB};
use crate::table::{size, thousands};
use bars::{Bar, Bars};
use panel::{Panel, Series, FAINT, INK, LABEL_SIZE};
use scale::{round_up, Scale};
use svg::{Anchor, Stroke, Style, Svg};

const WIDTH: f64 = 1240.0;
const HEIGHT: f64 = 620.0;

const LEFT: f64 = 92.0;
const MIDDLE: f64 = 690.0;
const RIGHT: f64 = 28.0;
const TOP: f64 = 158.0;
const BOTTOM: f64 = 500.0;
/// Of the lower one of the two bar charts.
const LOWER: f64 = 346.0;
/// Room for the systems' names at the bars.
const NAMES: f64 = 176.0;

/// Each point of a line is the mean of so many bytes swapped out.
const WINDOW: u64 = 64 << 20;

fn color(system: System) -> &'static str {
    match system {
        System::Stock => "#6b7785",
        System::Discard => "#9a7d4f",
        System::Virtual => "#0a6ebd",
        System::Zones => "#1a8f6e",
        System::Zswap => "#b5532a",
        System::Zram => "#d99a3c",
        System::VirtualLz4 => "#6aa9dc",
        System::ZonesLz4 => "#6fc4aa",
        System::ZonesZstd => "#a9dccb",
    }
}

/// The picture as SVG.
pub fn draw(document: &Demo) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT);
    heading(&mut svg, document);
    flash_writes(&mut svg, &document.runs);
    let bars = |value: fn(&Record) -> f64, label: fn(f64) -> String| -> Vec<Bar> {
        let bar = |r: &Record| Bar {
            name: r.turn.on.system.title(),
            color: color(r.turn.on.system),
            value: value(r),
            label: label(value(r)),
        };
        document.runs.iter().map(bar).collect()
    };
    let chart = |title, top| Bars { title, left: MIDDLE, names: NAMES, right: WIDTH - RIGHT, top };
    let speed = bars(Record::swap_out_mb_per_s, |v| format!("{} MB/s", thousands(v)));
    chart("Swap-out (more is better)", TOP).draw(&mut svg, &speed);
    let latency = bars(Record::p99_ms, |v| format!("{v:.1} ms"));
    let title = "99 % of the accesses take at most (less is better)";
    chart(title, LOWER).draw(&mut svg, &latency);
    footer(&mut svg, document);
    svg.finish("Flash writes, swap-out rate and latency of stock swap and of znsage")
}

fn heading(svg: &mut Svg, document: &Demo) {
    let text = "The same memory on the same flash, swapped by stock Linux and by znsage";
    svg.text(28.0, 44.0, Style::new(24.0, INK).bold(), text);
    let Some(run) = document.runs.first() else {
        return;
    };
    let text = format!(
        "Unmodified Debian kernel {}. A modelled SSD of {} that collects garbage, and a zoned one of the same \
         flash, both written over before.",
        run.measured.kernel,
        size(SIZE_MIB << 20),
    );
    svg.text(28.0, 70.0, Style::new(14.0, FAINT), &text);
    let text = format!(
        "The swap area is {} % full; programs access all pages alike, and every page is verified when it comes back.",
        run.percent
    );
    svg.text(28.0, 91.0, Style::new(14.0, FAINT), &text);
}

/// Flash writes for each page over the pages swapped out so far, GiB.
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

fn flash_writes(svg: &mut Svg, runs: &[Record]) {
    let title = "Flash writes for each page swapped out (less is better)";
    svg.text(LEFT - 56.0, TOP - 22.0, Style::new(16.0, INK).bold(), title);
    let lines: Vec<_> = runs.iter().map(|r| flash_line(&r.measured.series)).collect();
    let most = |of: fn(&(f64, f64)) -> f64| lines.iter().flatten().map(of).fold(1.0, f64::max);
    let high = round_up(0.0, most(|p| p.1) * 1.1, 5);
    let x = Scale { low: 0.0, high: most(|p| p.0), from: LEFT, to: MIDDLE - 60.0 };
    let y = Scale { low: 0.0, high, from: BOTTOM, to: TOP };
    let panel = Panel { x, y, x_ticks: 6, y_ticks: 5 };
    panel.frame(svg);
    let series: Vec<Series> = runs
        .iter()
        .zip(lines)
        .map(|(r, points)| Series {
            points,
            color: color(r.turn.on.system),
            label: format!("{} {:.2}", r.turn.on.system.title(), r.measured.flash.a_page()),
            above: !r.turn.on.system.is_zoned(),
        })
        .collect();
    panel.draw(svg, &series);
    let style = Style::new(LABEL_SIZE, INK).anchor(Anchor::Middle);
    svg.text((x.from + x.to) / 2.0, BOTTOM + 44.0, style, "swapped out so far, GiB");
}

fn footer(svg: &mut Svg, document: &Demo) {
    let top = HEIGHT - 52.0;
    let rule = Stroke { color: "#e4e8ed", width: 1.0 };
    svg.line((28.0, top), (WIDTH - 28.0, top), rule);
    let lines = [
        "Flash writes: the drive's own copies and znsage's included. Figures at the lines and bars: of the last \
         seconds, in the drive's time."
            .to_string(),
        format!("Machine: {}.", document.machine),
    ];
    for (i, text) in lines.iter().enumerate() {
        svg.text(28.0, top + 20.0 + 17.0 * i as f64, Style::new(12.0, FAINT), text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{self, tests::phase};
    use crate::ssd::{Measured, OnDrive, Pattern, Turn};

    fn run(system: System, factor: u64) -> Record {
        let flash = |i: u64| Flash {
            swapped_out: 10_000 * i,
            written: 12_000 * i,
            programmed: 12_000 * factor * i,
        };
        let on = OnDrive::new(system);
        let turn = Turn {
            on,
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
    fn picture_names_systems_and_figures() {
        let svg = draw(&demo());
        for text in ["stock swap 3.60", "znsage, virtual zones 1.20", "336 MB/s", "GiB", "80 %"] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn empty_result_can_be_drawn() {
        let svg = draw(&Demo { runs: Vec::new(), ..demo() });
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn picture_renders_as_png() {
        let png = png::render(&draw(&demo())).unwrap();
        assert!(png.starts_with(b"\x89PNG"));
        assert!(png.len() > 10_000);
    }

    #[test]
    fn result_can_be_read_again() {
        let text = serde_json::to_string(&demo()).unwrap();
        let again: Demo = serde_json::from_str(&text).unwrap();
        assert_eq!(draw(&again), draw(&demo()));
    }

    #[test]
    fn line_is_means_of_windows() {
        let line = flash_line(&run(System::Stock, 3).measured.series);
        assert_eq!(line.len(), 9);
        assert!(line.iter().all(|p| (p.1 - 3.6).abs() < 1e-9), "{line:?}");
    }
}
