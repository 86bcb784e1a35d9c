// SPDX-License-Identifier: GPL-2.0-only
//! The first and last lines: devices and keys; and the properties of the device.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{put, Look};
use crate::top::state::{State, Watched};
use crate::units;

/// The devices, with the displayed one marked, and the interval.
pub fn title(state: &State, look: Look, area: Rect, buffer: &mut Buffer) {
    let mut spans = vec![Span::styled("znsage top ", look.bold())];
    let tabs = tabs(state, look);
    let right = interval(state);
    let room = usize::from(area.width).saturating_sub(right.width() + 13);
    match tabs.iter().map(Span::width).sum::<usize>() <= room {
        true => spans.extend(tabs),
        false => {
            let selected = state.selected().unwrap_or(0);
            let of = format!(" {} of {}", selected + 1, state.devices.len());
            spans.extend(tabs.into_iter().nth(selected));
            spans.push(Span::styled(of, look.faint()));
        }
    }
    put(buffer, area, 0, &Line::from(spans));
    let x = area.right().saturating_sub(right.width() as u16).max(area.x);
    let style = if state.paused { look.chosen() } else { look.faint() };
    buffer.set_span(x, area.y, &right.style(style), area.right() - x);
}

fn tabs(state: &State, look: Look) -> Vec<Span<'static>> {
    let tab = |(i, device): (usize, &Watched)| {
        let gone = if device.gone { " is gone" } else { "" };
        let style = if device.gone { look.bad() } else { look.bold() };
        match Some(i) == state.selected() {
            true => Span::styled(format!("[{}{gone}]", device.name), style.patch(look.chosen())),
            false => Span::styled(format!(" {}{gone} ", device.name), style),
        }
    };
    state.devices.iter().enumerate().map(tab).collect()
}

fn interval(state: &State) -> Span<'static> {
    let seconds = state.interval.as_secs_f64();
    match state.paused {
        true => Span::raw(" paused "),
        false => Span::raw(format!("every {seconds} s")),
    }
}

/// Properties and settings of the device, or its errors.
pub fn facts(state: &State, look: Look, area: Rect, buffer: &mut Buffer) {
    let line = match (&state.problem, state.device()) {
        (Some(problem), _) => Span::styled(problem.clone(), look.bad()),
        (None, None) => Span::raw("no znsage device is on; it appears here when turned on"),
        (None, Some(device)) if device.gone => {
            let text =
                format!("{} is off; these are its last values, until it is back", device.name);
            Span::styled(text, look.bad())
        }
        (None, Some(device)) if !device.seen.device.troubles().is_empty() => {
            Span::styled(device.seen.device.troubles().join(", "), look.bad())
        }
        (None, Some(device)) => {
            let d = &device.seen.device;
            let used = d.slots_used.saturating_mul(state.page);
            let details = &device.seen.details;
            let list = [
                Some(d.backing.clone()),
                Some(format!("{} of {} used", units::size(used), units::size(d.size_bytes))),
                Some(format!("policy {}", d.policy)),
                details.compresses().map(str::to_string),
                details.encrypt.clone().filter(|e| e != "off"),
                details.victim.as_ref().map(|v| format!("victim {v}")),
                device.seen.number("pace").map(|n| format!("pace {n} %")),
            ];
            // What has no room is left out.
            let mut text = String::new();
            for part in list.into_iter().flatten() {
                let comma = if text.is_empty() { "" } else { ", " };
                if text.len() + comma.len() + part.len() <= usize::from(area.width) {
                    text += comma;
                    text += &part;
                }
            }
            Span::raw(text)
        }
    };
    put(buffer, area, 0, &Line::from(line));
}

const KEYS: [(&str, &str); 9] = [
    ("q", "quit"),
    ("?", "help"),
    ("p", "pause"),
    ("t", "table"),
    ("s", "sort"),
    ("r", "reverse"),
    ("Tab", "device"),
    ("+-", "speed"),
    ("jk", "scroll"),
];

pub fn keys(look: Look, area: Rect, buffer: &mut Buffer) {
    let mut spans: Vec<Span> = Vec::new();
    let mut width = 0;
    for (key, what) in KEYS {
        width += key.len() + what.len() + 3;
        if width > usize::from(area.width) {
            break;
        }
        spans.push(Span::styled(key, look.bold()));
        spans.push(Span::styled(format!(" {what}  "), look.faint()));
    }
    put(buffer, area, 0, &Line::from(spans));
}
