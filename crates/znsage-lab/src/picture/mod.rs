// SPDX-License-Identifier: GPL-2.0-only
//! The demo's picture: swap traffic and WAF over time, a column for each phase.

mod panel;
pub mod png;
mod scale;
mod svg;

use crate::course::{bandwidth, waf};
use crate::model::{Demo, Run, System, PHASES};
use crate::table::{size, thousands};
use panel::{Panel, Series, FAINT, INK, LABEL_SIZE};
use scale::{round_up, Scale};
use svg::{Anchor, Stroke, Style, Svg};

const WIDTH: f64 = 1240.0;
const HEIGHT: f64 = 748.0;

const LEFT: f64 = 92.0;
const RIGHT: f64 = 28.0;
/// Between columns, room for the labels of the next axis.
const GAP: f64 = 66.0;
/// The share of each phase in the width.
const SHARES: [f64; 3] = [0.24, 0.36, 0.40];

const TRAFFIC_TOP: f64 = 150.0;
const TRAFFIC_BOTTOM: f64 = 440.0;
const WAF_TOP: f64 = 490.0;
const WAF_BOTTOM: f64 = 640.0;

/// Each point of a line is the mean of this many seconds.
const TRAFFIC_WINDOW: f64 = 2.0;
const FILL_WINDOW: f64 = 1.0;
const WAF_WINDOW: f64 = 4.0;

fn color(system: System) -> &'static str {
    match system {
        System::Stock => "#6b7785",
        System::Znsage => "#0a6ebd",
    }
}

/// The picture as SVG.
pub fn draw(document: &Demo) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT);
    heading(&mut svg, document);
    let columns = columns();
    for (i, (phase, title)) in PHASES.iter().enumerate() {
        let (from, to) = columns[i];
        svg.text(from, TRAFFIC_TOP - 22.0, Style::new(16.0, INK).bold(), title);
        let x = Scale { low: 0.0, high: longest(document, phase), from, to };
        traffic(&mut svg, document, i, x);
        amplification(&mut svg, document, i, x);
    }
    axis_titles(&mut svg, columns[0].0);
    footer(&mut svg, document);
    svg.finish("Swap traffic and write amplification over time, stock swap and znsage")
}

fn heading(svg: &mut Svg, document: &Demo) {
    let text = "The same memory, swapped by stock Linux and by znsage";
    svg.text(28.0, 44.0, Style::new(24.0, INK).bold(), text);
    let config = document.runs.last().map(|r| &r.config);
    let memory = config.and_then(|c| c.memory_limit_bytes).map_or("no limit".to_string(), size);
    let text = format!(
        "Unmodified Debian kernel {}. Two {} NVMe SSDs emulated by QEMU: stock swap on the conventional one, \
         znsage on the zoned one.",
        document.kernel,
        size(document.device_bytes),
    );
    svg.text(28.0, 70.0, Style::new(14.0, FAINT), &text);
    let threads = config.map_or(0, |c| c.threads);
    let text = format!(
        "{threads} threads access more than the {memory} of memory that they may keep; \
         every page is verified when it comes back."
    );
    svg.text(28.0, 91.0, Style::new(14.0, FAINT), &text);
}

fn columns() -> [(f64, f64); 3] {
    let width = WIDTH - LEFT - RIGHT - 2.0 * GAP;
    let mut from = LEFT;
    SHARES.map(|share| {
        let column = (from, from + share * width);
        from = column.1 + GAP;
        column
    })
}

fn runs<'a>(document: &'a Demo, phase: &'a str) -> impl Iterator<Item = &'a Run> {
    document.runs.iter().filter(move |r| r.phase == phase)
}

fn longest(document: &Demo, phase: &str) -> f64 {
    let ends = runs(document, phase).filter_map(|r| r.course.last()).map(|p| p.t);
    ends.fold(0.0, f64::max).max(1.0)
}

fn traffic_lines(document: &Demo, phase: &str) -> Vec<(System, Vec<(f64, f64)>)> {
    let window = if phase == "fill" { FILL_WINDOW } else { TRAFFIC_WINDOW };
    runs(document, phase).map(|r| (r.system, bandwidth(&r.course, window))).collect()
}

/// The highest value times `room`, for the label above it.
fn top(lines: &[Vec<(f64, f64)>], room: f64) -> f64 {
    lines.iter().flatten().map(|p| p.1).fold(0.0, f64::max) * room
}

fn traffic(svg: &mut Svg, document: &Demo, column: usize, x: Scale) {
    // The random phases share a scale. The fill is far above them.
    let together = if column == 0 { &PHASES[..1] } else { &PHASES[1..] };
    let all: Vec<_> = together
        .iter()
        .flat_map(|(phase, _)| traffic_lines(document, phase))
        .map(|(_, line)| line)
        .collect();
    let high = round_up(0.0, top(&all, 1.12).max(1.0), 5);
    let y = Scale { low: 0.0, high, from: TRAFFIC_BOTTOM, to: TRAFFIC_TOP };
    let panel = Panel { x, y, x_ticks: if column == 0 { 4 } else { 6 }, y_ticks: 5 };
    panel.frame(svg, false);

    let phase = PHASES[column].0;
    let mean = |system| {
        let run = runs(document, phase).find(|r| r.system == system);
        run.map_or(0.0, |r| r.measured.swap_in_mib_per_s + r.measured.swap_out_mib_per_s)
    };
    let znsage_first = mean(System::Znsage) >= mean(System::Stock);
    let series: Vec<Series> = traffic_lines(document, phase)
        .into_iter()
        .map(|(system, points)| Series {
            points,
            color: color(system),
            label: format!("{} {} MiB/s", system.name(), thousands(mean(system))),
            above: znsage_first == (system == System::Znsage),
        })
        .collect();
    panel.draw(svg, &series);
}

fn amplification(svg: &mut Svg, document: &Demo, column: usize, x: Scale) {
    let lines: Vec<_> = PHASES
        .iter()
        .flat_map(|(phase, _)| runs(document, phase))
        .map(|r| waf(&r.course, WAF_WINDOW))
        .collect();
    let high = round_up(1.0, top(&lines, 1.1).max(2.0), 4);
    let y = Scale { low: 1.0, high, from: WAF_BOTTOM, to: WAF_TOP };
    let panel = Panel { x, y, x_ticks: if column == 0 { 4 } else { 6 }, y_ticks: 4 };
    panel.frame(svg, true);
    let phase = PHASES[column].0;
    let series: Vec<Series> = runs(document, phase)
        .filter_map(|r| Some((r, r.measured.waf?)))
        .map(|(r, mean)| Series {
            points: waf(&r.course, WAF_WINDOW),
            color: color(r.system),
            label: format!("{} {mean:.2}", r.system.name()),
            above: true,
        })
        .collect();
    panel.draw(svg, &series);
}

fn axis_titles(svg: &mut Svg, left: f64) {
    let style = Style::new(LABEL_SIZE, INK).anchor(Anchor::Middle);
    let x = left - 56.0;
    svg.text_upwards(x, (TRAFFIC_TOP + TRAFFIC_BOTTOM) / 2.0, style, "swap traffic, MiB/s");
    svg.text_upwards(x, (WAF_TOP + WAF_BOTTOM) / 2.0, style, "WAF");
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    svg.text(middle, WAF_BOTTOM + 44.0, style, "seconds since the phase began");
}

fn footer(svg: &mut Svg, document: &Demo) {
    let top = HEIGHT - 52.0;
    let rule = Stroke { color: "#e4e8ed", width: 1.0 };
    svg.line((28.0, top), (WIDTH - 28.0, top), rule);
    let lines = [
        "Swap traffic: pages in and out together. WAF: pages written to the device for one page swapped out \
         (QEMU's conventional SSD has no garbage collection of its own)."
            .to_string(),
        format!("At the lines: means of the phase. Machine: {}.", document.machine),
    ];
    for (i, text) in lines.iter().enumerate() {
        svg.text(28.0, top + 20.0 + 17.0 * i as f64, Style::new(12.0, FAINT), text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::demo;

    #[test]
    fn picture_names_axes_phases_and_systems() {
        let svg = draw(&demo());
        for text in ["swap traffic, MiB/s", "WAF", "seconds since", "stock swap 15 MiB/s"] {
            assert!(svg.contains(text), "{text}");
        }
        for (_, title) in PHASES {
            assert!(svg.contains(title));
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
}
