// SPDX-License-Identifier: GPL-2.0-only
//! The numbers: bandwidth and latencies over time, WAF, GC, zones.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{RenderDirection, Sparkline, Widget};

use super::{label, put, value, Look, WIDE};
use crate::top::rates::{Course, Rates, Times};
use crate::top::state::Watched;
use crate::units;

pub const WIDE_ROWS: u16 = 5;
/// Height with all rows; without room, the last ones are omitted.
pub const NARROW_ROWS: u16 = 10;

/// Width of the right half of a wide screen.
const FACTS_WIDTH: u16 = 35;
const LABEL: u16 = 9;
const VALUE: u16 = 16;

/// A number over time.
struct Curve<'a> {
    label: &'static str,
    text: String,
    course: &'a Course,
    color: Color,
}

/// A single number.
struct Fact {
    label: &'static str,
    spans: Vec<Span<'static>>,
}

pub fn draw(device: &Watched, look: Look, area: Rect, buffer: &mut Buffer) {
    let (curves, facts) = (curves(device), facts(device, look));
    if area.width >= WIDE {
        let left = Rect { width: area.width - FACTS_WIDTH - 2, ..area };
        let right = Rect { x: left.right() + 2, width: FACTS_WIDTH, ..area };
        (0..).zip(&curves).for_each(|(row, c)| draw_curve(c, look, left, row, buffer));
        (0..).zip(facts).for_each(|(row, f)| draw_fact(f, look, right, row, buffer));
        return;
    }
    let [out, inward, gc, latencies @ ..] = &curves;
    let mut row = 0;
    for curve in [out, inward, gc] {
        draw_curve(curve, look, area, row, buffer);
        row += 1;
    }
    for fact in facts {
        draw_fact(fact, look, area, row, buffer);
        row += 1;
    }
    for curve in latencies {
        draw_curve(curve, look, area, row, buffer);
        row += 1;
    }
}

fn curves(device: &Watched) -> [Curve<'_>; 5] {
    let (rates, history) = (device.rates.as_ref(), &device.history);
    let bytes = |of: fn(&Rates) -> Option<f64>| match rates.and_then(of) {
        Some(n) => format!("{}/s", units::size(n as u64)),
        None => "-".to_string(),
    };
    let times = |of: fn(&Rates) -> Option<Times>| match rates.and_then(of) {
        Some(t) => format!("{}/{}", short(t.p50), short(t.p99)),
        None => "-".to_string(),
    };
    [
        Curve {
            label: "swap-out",
            text: bytes(|r| Some(r.out_bytes)),
            course: &history.out,
            color: Color::Cyan,
        },
        Curve {
            label: "swap-in",
            text: bytes(|r| r.in_bytes),
            course: &history.inward,
            color: Color::Green,
        },
        Curve {
            label: "GC copies",
            text: bytes(|r| Some(r.gc_bytes)),
            course: &history.gc,
            color: Color::Magenta,
        },
        Curve {
            label: "out 50/99",
            text: times(|r| r.swap_out),
            course: &history.out_p99,
            color: Color::Cyan,
        },
        Curve {
            label: "in 50/99",
            text: times(|r| r.swap_in),
            course: &history.in_p99,
            color: Color::Green,
        },
    ]
}

/// A time in few characters.
fn short(us: f64) -> String {
    units::micros(us).replace(' ', "")
}

fn draw_curve(curve: &Curve, look: Look, area: Rect, row: u16, buffer: &mut Buffer) {
    if row >= area.height {
        return;
    }
    let width = usize::from(VALUE);
    let text = format!("{:>width$} ", curve.text);
    let label = label(curve.label, LABEL.into(), look);
    put(buffer, area, row, &Line::from(vec![label, value(text, look.bold())]));
    let x = area.x + LABEL + VALUE + 2;
    let Some(room) = area.right().checked_sub(x) else {
        return;
    };
    let area = Rect { x, y: area.y + row, width: room, height: 1 };
    let bars = curve.course.newest().take(room.into());
    Sparkline::default()
        .data(bars.map(|n| n.map(|n| n as u64)))
        .direction(RenderDirection::RightToLeft)
        .bar_set(look.bars())
        .style(look.fg(curve.color))
        .render(area, buffer);
}

fn facts(device: &Watched, look: Look) -> [Fact; 5] {
    let d = &device.seen.device;
    let rates = device.rates.unwrap_or_default();
    let show = |waf: Option<f64>| waf.map_or("-".to_string(), |waf| format!("{waf:.2}"));
    let plain = |text: String| vec![value(text, Style::new())];
    let few = d.zones.empty <= d.gc_low && d.zones.total > 0;
    let free = if few { look.bad() } else { look.bold() };
    let live = rates.gc_live.map_or(String::new(), |n| format!(", {:.0} % live", 100.0 * n));
    let stalled = if rates.stalls > 0.0 { look.fg(Color::Yellow) } else { Style::new() };
    let stalls = match rates.stalls > 0.0 {
        true => format!("{:.1}/s, {:.0} ms/s; ", rates.stalls, rates.waited_ms),
        false => String::new(),
    };
    [
        Fact {
            label: "WAF",
            spans: vec![
                value(show(rates.waf), look.bold()),
                value(format!(" now, {} since on", show(d.waf)), Style::new()),
            ],
        },
        Fact {
            label: "free",
            spans: vec![
                value(d.zones.empty.to_string(), free),
                value(
                    format!(" of {}, GC at {} to {}", d.zones.total, d.gc_low, d.gc_high),
                    Style::new(),
                ),
            ],
        },
        Fact { label: "GC", spans: plain(format!("{:.1} zones/s{live}", rates.gc_zones)) },
        Fact { label: "live", spans: gauge(d.utilization, look) },
        Fact {
            label: "stalls",
            spans: vec![
                value(stalls, stalled),
                value(format!("{} in all", d.stalls), Style::new()),
            ],
        },
    ]
}

/// Width of the bar in cells.
const GAUGE: usize = 18;

fn gauge(share: f64, look: Look) -> Vec<Span<'static>> {
    let filled = ((share * GAUGE as f64).round() as usize).min(GAUGE);
    let [on, off] = look.gauge();
    vec![
        value(on.repeat(filled), look.fg(Color::Green)),
        value(off.repeat(GAUGE - filled), look.faint()),
        value(format!(" {:.1} %", 100.0 * share), look.bold()),
    ]
}

fn draw_fact(fact: Fact, look: Look, area: Rect, row: u16, buffer: &mut Buffer) {
    let mut spans = vec![label(fact.label, 7, look)];
    spans.extend(fact.spans);
    put(buffer, area, row, &Line::from(spans));
}
