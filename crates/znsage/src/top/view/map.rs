// SPDX-License-Identifier: GPL-2.0-only
//! The map of the zones and its legend.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{put, rule, Look};
use crate::top::map::{self, State, Zone};
use crate::top::state::Watched;

/// From this width on, the legend fits into the title line.
const LEGEND_BESIDE: u16 = 78;
const LEGEND_LONG: u16 = 100;

/// Rows for title and legend.
pub fn headings(width: u16) -> u16 {
    if width >= LEGEND_BESIDE {
        1
    } else {
        2
    }
}

pub fn draw(device: &Watched, look: Look, area: Rect, buffer: &mut Buffer) {
    let headings = headings(area.width).min(area.height);
    let rows = area.height - headings;
    let (each, cells) = map::cells(&device.map.zones, usize::from(area.width) * usize::from(rows));
    let mut title = format!("{} zones", device.map.zones.len());
    if each > 1 {
        title += &format!(", {each} a cell");
    }
    if let Some(why) = &device.map.why_sorted {
        title += &format!(", sorted: {why}");
    }
    let title = Span::styled(title, look.bold());
    match headings {
        2 => {
            rule(buffer, area, look, title, Vec::new());
            put(buffer, area, 1, &Line::from(legend(look, false)));
        }
        _ => rule(buffer, area, look, title, legend(look, area.width >= LEGEND_LONG)),
    }
    for (i, cell) in cells.iter().enumerate() {
        let (x, y) = (i % usize::from(area.width), i / usize::from(area.width));
        let (sign, style) = look.zone(*cell);
        let at = (area.x + x as u16, area.y + headings + y as u16);
        if let Some(cell) = buffer.cell_mut(at) {
            cell.set_symbol(sign).set_style(style);
        }
    }
}

/// Explains the characters; `long` explains all.
pub fn legend(look: Look, long: bool) -> Vec<Span<'static>> {
    let sign = |state, live| {
        let (sign, style) = look.zone(Zone { state, live });
        Span::styled(sign, style)
    };
    let mut list = vec![
        (vec![sign(State::Empty, 0.0)], "empty"),
        (
            vec![sign(State::Full, 0.0), sign(State::Full, 0.5), sign(State::Full, 1.0)],
            if long { "full, by what is live" } else { "live" },
        ),
        (vec![sign(State::Open, 0.0)], "open"),
    ];
    if long {
        list.push((vec![sign(State::Closing, 0.0)], "closing"));
    }
    list.push((vec![sign(State::Victim, 0.0)], "GC"));
    if long {
        list.push((vec![sign(State::Reset, 0.0)], "reset"));
    }
    list.push((vec![sign(State::Retired, 0.0)], "bad"));
    let mut spans = Vec::new();
    for (i, (signs, what)) in list.into_iter().enumerate() {
        spans.extend((i > 0).then(|| Span::raw(if long { "  " } else { " " })));
        spans.extend(signs);
        spans.push(Span::styled(format!(" {what}"), look.faint()));
    }
    spans
}
