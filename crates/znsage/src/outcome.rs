// SPDX-License-Identifier: GPL-2.0-only
//! The result of a command.

use std::io::{self, Write};

use crate::error::{reason, Error, Kind, Result};

/// What a command prints, and whether it found damage.
#[derive(Debug)]
pub struct Outcome {
    pub text: String,
    pub json: serde_json::Value,
    pub damage: bool,
}

impl Outcome {
    pub fn new(text: String, json: serde_json::Value, damage: bool) -> Self {
        Outcome { text, json, damage }
    }

    pub fn fine(text: String, json: serde_json::Value) -> Self {
        Self::new(text, json, false)
    }
}

/// Prints to standard output.
pub fn print(text: &str) -> Result<()> {
    written(io::stdout().write_all(text.as_bytes()))
}

/// The result of writing to standard output, once its buffer is empty. A closed pipe
/// (`| head`) is no error.
pub fn written(done: io::Result<()>) -> Result<()> {
    match done.and_then(|()| io::stdout().flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            let message = format!("cannot write to standard output: {}", reason(&e));
            Err(Error::new(Kind::Kernel, message))
        }
        _ => Ok(()),
    }
}
