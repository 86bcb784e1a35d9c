// SPDX-License-Identifier: GPL-2.0-only
//! Explains keys and words.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{map, put, Look};

const KEYS: [(&str, &str); 11] = [
    ("q", "quit (or Ctrl-C)"),
    ("p", "pause, resume"),
    ("Tab, 1-9", "next device (or arrows), device by position"),
    ("t", "switch between streams and cgroups"),
    ("s, S", "sort by the next or previous column"),
    ("r", "reverse the order"),
    ("j, k", "scroll (or arrows, PageUp, PageDown)"),
    ("+, -", "longer, shorter interval"),
    ("Ctrl-L, Z", "redraw the screen; suspend, until fg"),
    ("?", "show or leave this help"),
    ("", ""),
];

const WORDS: [(&str, &str); 10] = [
    ("swap-out", "pages, as programs see them; written: what the device got for them"),
    ("50/99", "median and 99th percentile of latency, last interval"),
    ("WAF", "all that was written to the device / what swap-out wrote"),
    ("free", "empty zones, and the numbers at which GC starts and stops"),
    ("GC", "zones emptied, and their share of live blocks (copied)"),
    ("live", "share of the device's blocks with valid data"),
    ("pages", "compressor, size of pages on the device, pages refused"),
    ("stalls", "appends that waited for GC to empty a zone"),
    ("PRESSURE", "share of 10 s in which a task waited for memory"),
    ("OUT, IN", "of a cgroup: need `+io` in cgroup.subtree_control above it"),
];

pub fn draw(look: Look, area: Rect, buffer: &mut Buffer) {
    let mut row = 0;
    for (word, means) in KEYS.iter().chain(&WORDS) {
        let word = Span::styled(format!("{word:<10}"), look.bold());
        put(buffer, area, row, &Line::from(vec![word, Span::raw(*means)]));
        row += 1;
    }
    put(buffer, area, row, &Line::from(map::legend(look, area.width >= 78)));
}
