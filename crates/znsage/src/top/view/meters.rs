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

/// Height with curves of one row.
pub const WIDE_ROWS: u16 = 6;
/// Height with all rows; without room, the last ones are omitted.
pub const NARROW_ROWS: u16 = 13;

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

/// On a wide screen, curves fill the height, and numbers stand beside them.
pub fn draw(device: &Watched, page: u64, look: Look, area: Rect, buffer: &mut Buffer) {
    let (curves, [used, facts @ ..]) = (curves(device), facts(device, page, look));
    if area.width >= WIDE {
        let tall = (area.height / WIDE_ROWS).max(1);
        let left = Rect { width: area.width - FACTS_WIDTH - 2, ..area };
        let right = Rect { x: left.right() + 2, width: FACTS_WIDTH, ..area };
        let rows = || (0..area.height).step_by(usize::from(tall));
        rows().zip(&curves).for_each(|(row, c)| draw_curve(c, look, left, row, tall, buffer));
        rows().zip(facts).for_each(|(row, f)| draw_fact(f, look, right, row, buffer));
        return;
    }
    let ([free, facts @ ..], [rates @ .., _, _], [.., out, inward]) = (facts, &curves, &curves);
    draw_fact(used, look, area, 0, buffer);
    draw_fact(free, look, area, 1, buffer);
    let mut row = 2;
    for curve in rates {
        draw_curve(curve, look, area, row, 1, buffer);
        row += 1;
    }
    for fact in facts {
        draw_fact(fact, look, area, row, buffer);
        row += 1;
    }
    for curve in [out, inward] {
        draw_curve(curve, look, area, row, 1, buffer);
        row += 1;
    }
}

fn curves(device: &Watched) -> [Curve<'_>; 6] {
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
            label: "written",
            text: bytes(|r| Some(r.written_bytes)),
            course: &history.written,
            color: Color::Blue,
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

fn draw_curve(curve: &Curve, look: Look, area: Rect, row: u16, tall: u16, buffer: &mut Buffer) {
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
    let height = tall.min(area.height - row);
    let area = Rect { x, y: area.y + row, width: room, height };
    let bars = curve.course.newest().take(room.into());
    Sparkline::default()
        .data(bars.map(|n| n.map(|n| n as u64)))
        .direction(RenderDirection::RightToLeft)
        .bar_set(look.bars())
        .style(look.fg(curve.color))
        .render(area, buffer);
}

fn facts(device: &Watched, page: u64, look: Look) -> [Fact; 7] {
    let (d, details) = (&device.seen.device, &device.seen.details);
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
    let used = units::size(d.slots_used.saturating_mul(page));
    let share =
        details.share_written(d).map_or(String::new(), |n| format!(" to {:.0} %", 100.0 * n));
    let refused = device.seen.number("refused_pages").unwrap_or(0);
    let refused = match refused > 0 {
        true => value(format!(", {refused} refused"), look.bad()),
        false => Span::raw(""),
    };
    let how =
        details.compresses().map_or("not compressed".to_string(), |how| how.to_string() + &share);
    [
        Fact {
            label: "used",
            spans: vec![
                value(used, look.bold()),
                value(format!(" of {}", units::size(d.size_bytes)), Style::new()),
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
        Fact {
            label: "WAF",
            spans: vec![
                value(show(rates.waf), look.bold()),
                value(format!(" now, {} since on", show(d.waf)), Style::new()),
            ],
        },
        Fact { label: "GC", spans: plain(format!("{:.1} zones/s{live}", rates.gc_zones)) },
        Fact { label: "live", spans: gauge(d.utilization, look) },
        Fact { label: "pages", spans: vec![value(how, Style::new()), refused] },
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
