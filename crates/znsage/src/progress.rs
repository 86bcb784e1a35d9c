// SPDX-License-Identifier: GPL-2.0-only
//! Progress on standard error: one line, rewritten in place on a terminal; a new line
//! every few seconds in a log.

use std::io::{stderr, IsTerminal, Write};
use std::time::{Duration, Instant};

const ON_TERMINAL: Duration = Duration::from_millis(100);
const IN_LOG: Duration = Duration::from_secs(5);

pub struct Progress {
    terminal: bool,
    last: Instant,
    shown: bool,
}

impl Progress {
    pub fn new() -> Self {
        Progress { terminal: stderr().is_terminal(), last: Instant::now(), shown: false }
    }

    /// Shows the text, but not too often.
    pub fn show(&mut self, text: impl FnOnce() -> String) {
        let interval = if self.terminal { ON_TERMINAL } else { IN_LOG };
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
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.terminal && self.shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
