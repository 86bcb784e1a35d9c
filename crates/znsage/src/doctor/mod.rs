// SPDX-License-Identifier: GPL-2.0-only
//! `znsage doctor`: checks everything that swap on znsage depends on, and says what to
//! do about problems. Changes nothing. Works without root, but then sees less.

mod boot;
mod machine;
mod swapping;

use serde::Serialize;
use serde_json::json;

use crate::counters::{self, Device};
use crate::error::Error;
use crate::list::{self, Candidate};
use crate::sys::Sys;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    /// Works, but worth knowing.
    Note,
    /// `znsage on` or a device that is on does not work properly.
    Problem,
}

#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Name of the check, which may have several findings.
    pub check: &'static str,
    pub level: Level,
    pub message: String,
    pub hint: Option<String>,
}

impl Finding {
    fn new(check: &'static str, level: Level, message: impl Into<String>) -> Self {
        Finding { check, level, message: message.into(), hint: None }
    }

    fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, Level::Ok, message)
    }

    fn note(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, Level::Note, message)
    }

    fn problem(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, Level::Problem, message)
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// An error of `on`.
    fn of(check: &'static str, level: Level, e: Error) -> Self {
        Finding { check, level, message: e.message, hint: e.hint }
    }
}

/// Shared by several checks.
struct Scene<'a> {
    sys: &'a dyn Sys,
    page: u64,
    on: Vec<Device>,
    zoned: Vec<Candidate>,
}

#[derive(Debug)]
pub struct Report {
    pub findings: Vec<Finding>,
}

pub fn run(sys: &dyn Sys, page: u64) -> Report {
    let mut findings = Vec::new();
    let on = counters::all(sys).unwrap_or_else(|e| {
        findings.push(Finding::of("health", Level::Problem, e));
        Vec::new()
    });
    let zoned = list::zoned(sys, &on, page);
    let scene = Scene { sys, page, on, zoned };
    let checks = [
        machine::kernel,
        machine::module,
        machine::signature,
        machine::headers,
        machine::tools,
        machine::cgroups,
        machine::devices,
        machine::limits,
        boot::settings,
        boot::old_swap,
        swapping::swappiness,
        swapping::zswap,
        swapping::areas,
        swapping::hibernation,
        swapping::scheduler,
        swapping::health,
    ];
    findings.extend(checks.iter().flat_map(|check| check(&scene)));
    Report { findings }
}

impl Report {
    fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|f| f.level == level).count()
    }

    pub fn problems(&self) -> usize {
        self.count(Level::Problem)
    }

    pub fn to_json(&self) -> serde_json::Value {
        json!({"version": 1, "ok": self.problems() == 0, "findings": self.findings})
    }

    pub fn to_text(&self) -> String {
        let width = self.findings.iter().map(|f| f.check.len()).max().unwrap_or(0);
        let mut text = String::new();
        for f in &self.findings {
            let level = match f.level {
                Level::Ok => "ok",
                Level::Note => "note",
                Level::Problem => "PROBLEM",
            };
            text += &format!("{level:<7}  {:<width$}  {}\n", f.check, f.message);
            for line in f.hint.iter().flat_map(|h| h.lines()) {
                text += &format!("{:<7}  {:<width$}    {}\n", "", "", line.trim());
            }
        }
        text + &match (self.problems(), self.count(Level::Note)) {
            (0, 0) => "all is well\n".to_string(),
            (0, notes) => format!("no problem; notes: {notes}\n"),
            (problems, notes) => format!("problems: {problems}; notes: {notes}\n"),
        }
    }
}
