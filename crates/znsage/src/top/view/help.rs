// SPDX-License-Identifier: GPL-2.0-only
//! Explains keys and words.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{map, put, Look};

const KEYS: [(&str, &str); 12] = [
    ("q", "quit (or Ctrl-C)"),
    ("p", "pause, resume"),
    ("Tab, 1-9", "next device (or arrows), device by position"),
    ("t", "switch between streams and cgroups"),
    ("s, S", "sort by the next or previous column"),
    ("r", "reverse the order"),
    ("j, k", "scroll (or arrows, PageUp, PageDown)"),
    ("+, -", "longer, shorter interval"),
    ("Ctrl-L", "redraw the screen"),
    ("Ctrl-Z", "suspend; fg continues"),
    ("?", "show or leave this help"),
    ("", ""),
];

const WORDS: [(&str, &str); 7] = [
    ("out, in", "50/99: median and 99th percentile of latency, last interval"),
    ("WAF", "written to the device / swapped out"),
    ("free", "empty zones, and the numbers at which GC starts and stops"),
    ("GC", "zones emptied, and their share of live blocks (copied)"),
    ("live", "share of blocks with valid data"),
    ("stalls", "appends that waited for GC to empty a zone"),
    ("PRESSURE", "share of 10 s in which a task waited for memory"),
];

pub fn draw(look: Look, area: Rect, buffer: &mut Buffer) {
    let mut row = 0;
    for (word, means) in KEYS.iter().chain(&WORDS) {
        let word = Span::styled(format!("{word:<10}"), look.bold());
        put(buffer, area, row, &Line::from(vec![word, Span::raw(*means)]));
        row += 1;
    }
    put(buffer, area, row + 1, &Line::from(map::legend(look, area.width >= 78)));
}
