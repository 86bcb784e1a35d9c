// SPDX-License-Identifier: GPL-2.0-only
//! Progress on standard error: one line, rewritten in place on a terminal; a new line every
//! few seconds in a log.

use std::io::{stderr, IsTerminal, Write};
use std::time::{Duration, Instant};

use super::units::duration;

/// A line that says how far something is.
#[derive(Debug)]
pub struct Progress {
    terminal: bool,
    begun: Instant,
    last: Instant,
    shown: bool,
}

impl Progress {
    /// Begins now.
    pub fn new() -> Self {
        let now = Instant::now();
        Progress { terminal: stderr().is_terminal(), begun: now, last: now, shown: false }
    }

    /// Shows the text, but not too often.
    pub fn show(&mut self, text: impl FnOnce() -> String) {
        let interval = Duration::from_millis(if self.terminal { 100 } else { 5000 });
        if self.last.elapsed() < interval {
            return;
        }
        self.last = Instant::now();
        self.shown = true;
        // An error here is not worth stopping for.
        let _ = match self.terminal {
            true => write!(stderr(), "\r\x1b[K{}", text()),
            false => writeln!(stderr(), "{}", text()),
        };
    }

    /// Rate and time left; empty before the first is done.
    pub fn left(&self, done: usize, todo: usize) -> String {
        left(done, todo, self.begun.elapsed().as_secs_f64())
    }
}

fn left(done: usize, todo: usize, took: f64) -> String {
    if done == 0 {
        return String::new();
    }
    let each = took / done as f64;
    format!(", {:.1} per minute, {} left", 60.0 / each, duration(each * todo as f64))
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.terminal && self.shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_short() {
        assert_eq!(super::left(3, 6, 30.0), ", 6.0 per minute, 60 s left");
    }
}
