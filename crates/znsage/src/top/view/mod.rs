// SPDX-License-Identifier: GPL-2.0-only
//! Draws the state. The size of the terminal determines the parts and their places;
//! each part fills its area.

mod head;
mod help;
mod look;
mod map;
mod meters;
mod tables;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

pub use look::Look;

use super::rows::Which;
use super::state::State;

/// Smallest useful screen.
const LEAST: (u16, u16) = (24, 8);
/// From this width on, numbers stand beside curves.
const WIDE: u16 = 76;
/// From this size on, both tables fit, side by side or one above the other.
const BOTH_WIDTH: u16 = 140;
const BOTH_HEIGHT: u16 = 14;
/// Rows of a curve at most.
const TALLEST: u16 = 5;

#[derive(Debug, PartialEq)]
struct Plan {
    title: Rect,
    facts: Option<Rect>,
    meters: Rect,
    map: Rect,
    tables: Vec<(Which, Rect)>,
    keys: Rect,
}

/// Splits up to `rows` rows off the top of an area.
fn take(area: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    let taken = Rect { height: rows, ..*area };
    area.y += rows;
    area.height -= rows;
    taken
}

/// `zones` and the most rows of a table decide how much room is left for the curves.
fn plan(area: Rect, zones: usize, rows: usize, table: Which) -> Plan {
    let wide = area.width >= WIDE;
    let mut rest = area;
    let title = take(&mut rest, 1);
    let keys = Rect { y: area.bottom() - 1, height: 1, ..area };
    rest.height -= 1;
    let facts = (wide || area.height >= 18).then(|| take(&mut rest, 1));
    let headings = map::headings(area.width);
    let wanted =
        zones.div_ceil(usize::from(area.width.max(1))).min(usize::from(area.height)) as u16;
    let meters = match wide {
        true => {
            let tables = (rows + 2).min(usize::from(area.height)) as u16;
            let tables = if area.width >= BOTH_WIDTH { tables } else { 2 * tables };
            let room = rest.height.saturating_sub(headings + wanted.max(1) + tables);
            let tall = (room / meters::WIDE_ROWS).clamp(1, TALLEST);
            (tall * meters::WIDE_ROWS).min(area.height - 5)
        }
        false => area.height.saturating_sub(10).clamp(4, meters::NARROW_ROWS),
    };
    let meters = take(&mut rest, meters);
    let room = (rest.height / 2).saturating_sub(headings);
    let map = take(&mut rest, headings + wanted.clamp(1, room.max(1)));
    Plan { title, facts, meters, map, tables: tables_in(rest, table), keys }
}

fn tables_in(area: Rect, table: Which) -> Vec<(Which, Rect)> {
    if area.width >= BOTH_WIDTH {
        let half = area.width / 2;
        let right = Rect { x: area.x + half + 1, width: area.width - half - 1, ..area };
        return vec![(Which::Streams, Rect { width: half - 1, ..area }), (Which::Groups, right)];
    }
    if area.height >= BOTH_HEIGHT {
        let mut rest = area;
        let upper = take(&mut rest, area.height - area.height / 2);
        return vec![(Which::Streams, upper), (Which::Groups, rest)];
    }
    vec![(table, area)]
}

/// Draws everything into an empty buffer.
pub fn draw(state: &State, look: Look, area: Rect, buffer: &mut Buffer) {
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!("{} x {} is too small", area.width, area.height);
        put(buffer, area, 0, &Line::raw(text));
        return;
    }
    let device = state.device();
    let rows = state.rows(Which::Streams).len().max(state.rows(Which::Groups).len());
    let plan = plan(area, device.map_or(0, |d| d.map.zones.len()), rows, state.table);
    head::title(state, look, plan.title, buffer);
    head::keys(look, plan.keys, buffer);
    if state.help {
        let height = area.height.saturating_sub(2);
        help::draw(look, Rect { y: area.y + 1, height, ..area }, buffer);
        return;
    }
    if let Some(facts) = plan.facts {
        head::facts(state, look, facts, buffer);
    }
    if let Some(device) = device {
        meters::draw(device, state.page, look, plan.meters, buffer);
        map::draw(device, look, plan.map, buffer);
    }
    for (which, area) in plan.tables {
        tables::draw(state, which, look, area, buffer);
    }
}

/// Writes a line into a row of an area, cut to its width.
fn put(buffer: &mut Buffer, area: Rect, row: u16, line: &Line) {
    if row < area.height {
        buffer.set_line(area.x, area.y + row, line, area.width);
    }
}

/// A horizontal line with a title, and `right` at its right end if there is room.
fn rule(buffer: &mut Buffer, area: Rect, look: Look, title: Span, right: Vec<Span>) {
    if area.height == 0 {
        return;
    }
    let right = Line::from(right);
    let line = Span::styled(look.rule().repeat(area.width.into()), look.faint());
    put(buffer, area, 0, &Line::from(line));
    let len = title.width() as u16 + 1;
    put(buffer, area, 0, &Line::from(vec![title, Span::raw(" ")]));
    let room = area.width.saturating_sub(len + 2);
    let width = right.width() as u16;
    if width > 0 && width < room {
        let x = area.right() - width - 1;
        buffer.set_span(x, area.y, &Span::raw(" "), 1);
        buffer.set_line(x + 1, area.y, &right, width);
    }
}

/// The label of a value.
fn label(text: &str, width: usize, look: Look) -> Span<'static> {
    Span::styled(format!("{text:<width$}"), look.faint())
}

fn value(text: String, style: Style) -> Span<'static> {
    Span::styled(text, style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_within_the_screen_and_do_not_overlap() {
        for width in 24..200 {
            for height in 8..60 {
                let area = Rect::new(0, 0, width, height);
                for (zones, rows) in [(0, 0), (10, 3), (1024, 12), (100_000, 100_000)] {
                    let plan = plan(area, zones, rows, Which::Groups);
                    let mut parts = vec![plan.title, plan.meters, plan.map, plan.keys];
                    parts.extend(plan.facts);
                    parts.extend(plan.tables.iter().map(|t| t.1));
                    for (i, a) in parts.iter().enumerate() {
                        assert_eq!(a.intersection(area), *a, "{width}x{height}: {plan:?}");
                        let free = parts[..i].iter().all(|b| !a.intersects(*b));
                        assert!(free, "{width}x{height}: {plan:?}");
                    }
                    assert!(plan.map.height >= 1, "{width}x{height}");
                }
            }
        }
    }

    #[test]
    fn tables_share_the_room() {
        let which = |w, h| {
            let tables = tables_in(Rect::new(0, 0, w, h), Which::Groups);
            tables.into_iter().map(|t| (t.0, t.1.width, t.1.height)).collect::<Vec<_>>()
        };
        assert_eq!(which(80, 8), [(Which::Groups, 80, 8)]);
        assert_eq!(which(80, 15), [(Which::Streams, 80, 8), (Which::Groups, 80, 7)]);
        assert_eq!(which(160, 8), [(Which::Streams, 79, 8), (Which::Groups, 79, 8)]);
    }
}
