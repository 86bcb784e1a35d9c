// SPDX-License-Identifier: GPL-2.0-only
//! A sequence of checks: each prints its result and its time, and a failure does not stop the
//! others.

use std::time::Instant;

use znsage_tests::outcome::Outcome;

use crate::machine::Machine;

/// Lines of the console to print after a failure.
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

    /// Makes a check; the text it returns is printed.
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

    /// Prints the summary; returns whether all checks passed.
    pub fn end(self, name: &str) -> bool {
        println!("{name}: {} passed, {} failed", self.passed, self.failed);
        self.failed == 0
    }

    /// Prints the end of the console, after an error that ends the sequence.
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

/// What a check prints when it passes.
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
