// SPDX-License-Identifier: GPL-2.0-only
//! What the keys do and what the words mean.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{map, put, Look};

const KEYS: [(&str, &str); 12] = [
    ("q", "quit (or Ctrl-C)"),
    ("p", "pause, and go on"),
    ("Tab, 1-9", "another device (or the arrows)"),
    ("t", "streams or cgroups"),
    ("s, S", "sort by the next column, the one before"),
    ("r", "reverse the order"),
    ("j, k", "scroll (or arrows, PageUp, PageDown)"),
    ("+, -", "look less often, more often"),
    ("Ctrl-L", "draw the screen anew"),
    ("Ctrl-Z", "stop; fg goes on"),
    ("?", "this, and back"),
    ("", ""),
];

const WORDS: [(&str, &str); 7] = [
    ("out, in", "50/99: latency, median and 99 %, of the last interval"),
    ("WAF", "written to the device / swapped out"),
    ("free", "empty zones, and at how many GC begins and ends"),
    ("GC", "zones emptied, and what of them was live (is copied)"),
    ("live", "blocks with data, of all blocks"),
    ("stalls", "appends that found no zone and waited"),
    ("PRESSURE", "of 10 s, when a task of it waited for memory"),
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
