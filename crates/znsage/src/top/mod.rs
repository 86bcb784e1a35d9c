// SPDX-License-Identifier: GPL-2.0-only
//! `znsage top`: a live view on a terminal.
//!
//! `sample` reads the machine, `state` combines samples and keys, `view` draws the
//! state, `screen` is the terminal. This module connects them.

mod groups;
mod keys;
mod map;
mod rates;
mod rows;
mod sample;
mod screen;
mod state;
mod view;

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::cli::TopArgs;
use crate::counters;
use crate::error::{Error, Kind, Result};
use crate::interrupt;
use crate::sys::Sys;

use keys::Key;
use sample::Eye;
use screen::{Event, Screen};
use state::{Request, State};

/// Longest delay of a signal that arrives between check and wait.
const SLICE: Duration = Duration::from_millis(500);

/// Shows devices until the user quits. `page` in bytes.
///
/// # Errors
/// Without a terminal, without the requested or any device, on errors of the terminal,
/// and on signals.
pub fn run(sys: &dyn Sys, args: &TopArgs, page: u64, json: bool) -> Result<()> {
    if json {
        return Err(Error::new(Kind::Usage, "`top` shows a screen and has no --json")
            .hint("`znsage status --json` prints the same, once"));
    }
    screen::check()?;
    let (start, mut eye) = (Instant::now(), Eye::new(sys));
    let mut state = begin(sys, args, page, &mut eye)?;
    interrupt::catch_on_terminal();
    let mut screen = Screen::open(screen::look(sys, args.ascii))?;
    let mut changed = true;
    loop {
        if interrupt::seen() {
            return Err(Error::interrupted());
        }
        let now = start.elapsed();
        if state.due(now) == Some(Duration::ZERO) {
            let sample = eye.look(&state.shown, now);
            state.take(sample, now);
            changed = true;
        }
        if changed {
            screen.draw(&state)?;
        }
        let left = state.due(start.elapsed()).unwrap_or(SLICE);
        changed = match screen.wait(left.min(SLICE))? {
            Event::Time => false,
            Event::Signal => true,
            Event::Keys(keys) => match press(&mut screen, &mut state, keys)? {
                true => true,
                false => return Ok(()),
            },
        };
    }
}

/// Finds the first device to display, and takes the first sample.
fn begin(sys: &dyn Sys, args: &TopArgs, page: u64, eye: &mut Eye) -> Result<State> {
    let name = match &args.device {
        Some(wanted) => counters::find(sys, wanted)?.name,
        None => counters::names(sys).into_iter().next().ok_or_else(|| {
            Error::new(Kind::Device, "no znsage device is on")
                .hint("`znsage on DEVICE` turns one on")
        })?,
    };
    let first = eye.look(&name, Duration::ZERO)?;
    let mut state = State::new(page, Duration::from_secs_f64(args.interval), name);
    state.take(Ok(first), Duration::ZERO);
    Ok(state)
}

/// Handles keys; returns false to quit.
fn press(screen: &mut Screen, state: &mut State, keys: Vec<Key>) -> Result<bool> {
    for key in keys {
        match state.press(key) {
            Some(Request::Quit) => return Ok(false),
            Some(Request::Redraw) => screen.forget()?,
            Some(Request::Suspend) => screen.suspend()?,
            None => {}
        }
    }
    Ok(true)
}

/// A screen of 80 columns and 24 rows after two samples, without a terminal, for
/// fuzzing.
pub fn once(sys: &dyn Sys, args: &TopArgs, page: u64) -> Result<String> {
    let mut eye = Eye::new(sys);
    let mut state = begin(sys, args, page, &mut eye)?;
    let now = Duration::from_secs(1);
    let sample = eye.look(&state.shown, now);
    state.take(sample, now);
    let area = Rect::new(0, 0, 80, 24);
    let mut buffer = Buffer::empty(area);
    view::draw(&state, screen::look(sys, args.ascii), area, &mut buffer);
    let rows = buffer.content().chunks(area.width.into());
    Ok(rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>() + "\n").collect())
}
