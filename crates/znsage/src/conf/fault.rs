// SPDX-License-Identifier: GPL-2.0-only
//! Errors in files of settings.

use std::fmt;

use crate::error::{Error, Kind};

/// An error in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub file: String,
    pub line: Option<usize>,
    /// The section that the fault makes invalid, if known.
    pub section: Option<String>,
    pub message: String,
    pub hint: Option<String>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

/// The first fault as an error, with the others in its hint.
pub fn complaint<'a>(mut faults: impl Iterator<Item = &'a Fault>) -> Option<Error> {
    let first = faults.next()?;
    let others = faults.map(|fault| match &fault.hint {
        Some(hint) => format!("{fault}\n  {hint}"),
        None => fault.to_string(),
    });
    let below: Vec<String> = first.hint.clone().into_iter().chain(others).collect();
    let e = Error::new(Kind::Usage, first.to_string());
    Some(if below.is_empty() { e } else { e.hint(below.join("\n")) })
}
