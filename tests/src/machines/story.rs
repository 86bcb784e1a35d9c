// SPDX-License-Identifier: GPL-2.0-only
//! What is checked one after the other: each check is told with its time, and
//! those that fail do not keep the others from being made.

use std::time::Instant;

use znsage_tests::outcome::Outcome;

use crate::machine::Machine;

/// Lines of the console that are shown after a failure.
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

    /// A check; what it returns is worth telling.
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

    /// The last words; whether all was well.
    pub fn end(self, name: &str) -> bool {
        println!("{name}: {} passed, {} failed", self.passed, self.failed);
        self.failed == 0
    }

    /// After an end that nobody wanted.
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

/// What a check may have to say when all is well.
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
