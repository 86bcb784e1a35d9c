// SPDX-License-Identifier: GPL-2.0-only
//! The tables: the columns that fit, and the rows from the scroll position on.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::{put, rule, Look};
use crate::top::rows::{Column, Which};
use crate::top::state::State;
use crate::units::counted;

pub fn draw(state: &State, which: Which, look: Look, area: Rect, buffer: &mut Buffer) {
    let (rows, place) = (state.rows(which), state.place(which));
    let columns = which.columns();
    let mut title = counted(rows.len() as u64, which.name());
    if let Some(column) = columns.get(place.order.column) {
        let reverse = if place.order.reverse { ", reversed" } else { "" };
        title += &format!(" by {}{reverse}", column.title);
    }
    let first = place.scroll.min(rows.len().saturating_sub(1));
    if first > 0 {
        title += &format!(", from the {}.", first + 1);
    }
    let style = if state.table == which { look.bold() } else { look.faint() };
    let why = match which == Which::Groups && state.lacks_io() {
        true => vec![Span::styled("-: io controller is off (? for help)", look.faint())],
        false => Vec::new(),
    };
    rule(buffer, area, look, Span::styled(title, style), why);
    if let Some(why) = nothing(state, which) {
        put(buffer, area, 1, &Line::styled(why, look.faint()));
        return;
    }
    let shown = fit(columns, area.width);
    let headings = shown.iter().map(|&(i, width)| {
        let style = if i == place.order.column { look.chosen() } else { look.faint() };
        (set(columns[i].title, &columns[i], width, look), style)
    });
    line(headings, area, 1, buffer);
    for (y, row) in (2..area.height).zip(&rows[first..]) {
        let cells = shown.iter().filter_map(|&(i, width)| {
            Some((set(&row.get(i)?.text, &columns[i], width, look), Style::new()))
        });
        line(cells, area, y, buffer);
    }
}

/// The reason for an empty table.
fn nothing(state: &State, which: Which) -> Option<&'static str> {
    match which {
        Which::Streams if state.rows(which).is_empty() => {
            Some("this module has no statistics of streams")
        }
        Which::Groups if !state.has_groups() => Some("cgroup v2 is not mounted"),
        Which::Groups if state.rows(which).is_empty() => Some("no cgroup has anything on swap"),
        _ => None,
    }
}

/// Index and width of the columns that fit.
fn fit(columns: &[Column], width: u16) -> Vec<(usize, u16)> {
    let mut by_rank: Vec<usize> = (0..columns.len()).collect();
    by_rank.sort_by_key(|&i| columns[i].rank);
    let mut rest = width + 1;
    let mut shown: Vec<(usize, u16)> = Vec::new();
    for i in by_rank {
        let Some(left) = rest.checked_sub(columns[i].width + 1) else {
            break;
        };
        rest = left;
        shown.push((i, columns[i].width));
    }
    shown.sort_unstable();
    if let Some((_, width)) = shown.iter_mut().find(|(i, _)| columns[*i].words) {
        *width += rest;
    }
    shown
}

/// A cell of a given width. Words lose their beginning: the end of a path matters
/// most.
fn set(text: &str, column: &Column, width: u16, look: Look) -> String {
    let width = usize::from(width);
    let len = text.chars().count();
    let text: String = match len > width {
        true if column.words => {
            let end: String = text.chars().skip(len + 1 - width).collect();
            format!("{}{end}", look.cut())
        }
        _ => text.chars().take(width).collect(),
    };
    match column.words {
        true => format!("{text:<width$}"),
        false => format!("{text:>width$}"),
    }
}

fn line(cells: impl Iterator<Item = (String, Style)>, area: Rect, row: u16, buffer: &mut Buffer) {
    let mut spans = Vec::new();
    for (text, style) in cells {
        spans.extend((!spans.is_empty()).then(|| Span::raw(" ")));
        spans.push(Span::styled(text, style));
    }
    put(buffer, area, row, &Line::from(spans));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::rows::{GROUPS, STREAMS};

    fn titles(columns: &'static [Column], width: u16) -> String {
        let shown = fit(columns, width);
        assert!(shown.iter().map(|c| c.1 + 1).sum::<u16>() <= width + 1, "{width}");
        shown.iter().map(|&(i, _)| columns[i].title).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn columns_are_chosen_by_rank_and_keep_their_order() {
        assert_eq!(titles(&STREAMS, 40), "STREAM WRITTEN/s IN/s GC/s");
        assert_eq!(titles(&STREAMS, 80), "STREAM WRITTEN/s IN/s GC/s WAF STALL/s ZONES LAST KEY");
        assert_eq!(titles(&STREAMS, 120).split(' ').count(), STREAMS.len() + 1);
        assert_eq!(titles(&GROUPS, 40), "SWAP OUT/s CGROUP");
        assert_eq!(titles(&GROUPS, 3), "");
        (0..200).for_each(|width| drop(titles(&STREAMS, width)));
    }

    #[test]
    fn long_words_lose_their_beginning() {
        let look = Look::default();
        let path = &GROUPS[4];
        assert_eq!(set("system.slice/a", path, 6, look), "…ice/a");
        assert_eq!(set("a", path, 3, look), "a  ");
        assert_eq!(set("12345", &GROUPS[0], 3, look), "123");
        assert_eq!(set("1", &GROUPS[0], 3, look), "  1");
    }
}
