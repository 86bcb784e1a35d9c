// SPDX-License-Identifier: GPL-2.0-only
//! A sequence of checks. Each is printed with its time, and the rest runs even if one
//! fails.

use std::time::Instant;

use znsage_guest::outcome::Outcome;

use crate::machine::Machine;

/// Lines of the console to show after a failure.
const CONSOLE: usize = 30;

pub struct Story {
    start: Instant,
    passed: u32,
    failed: u32,
}

impl Story {
    pub fn new() -> Story {
        Story { start: Instant::now(), passed: 0, failed: 0 }
    }

    pub fn tell(&self, text: &str) {
        println!("{:>5}  {text}", self.start.elapsed().as_secs());
    }

    /// Prints the outcome of a check.
    pub fn check(&mut self, what: &str, outcome: Outcome<impl Remark>) {
        match outcome {
            Ok(remark) => {
                self.passed += 1;
                self.tell(&format!("ok      {what}{}", remark.words()));
            }
            Err(why) => {
                self.failed += 1;
                self.tell(&format!("FAILED  {what}: {why}"));
            }
        }
    }

    /// Prints the totals; true if all checks passed.
    pub fn end(self, name: &str) -> bool {
        println!("{name}: {} passed, {} failed", self.passed, self.failed);
        self.failed == 0
    }

    /// Prints the end of a machine's console.
    pub fn console(machine: &Machine) {
        let text = std::fs::read(machine.console()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        for line in &lines[lines.len().saturating_sub(CONSOLE)..] {
            println!("       | {line}");
        }
        println!("       the whole console: {}", machine.console().display());
    }
}

/// A remark of a check that passed.
pub trait Remark {
    fn words(&self) -> String;
}

impl Remark for () {
    fn words(&self) -> String {
        String::new()
    }
}

impl Remark for String {
    fn words(&self) -> String {
        format!(" ({self})")
    }
}

impl Remark for std::time::Duration {
    fn words(&self) -> String {
        format!(" ({:.1} s)", self.as_secs_f64())
    }
}
