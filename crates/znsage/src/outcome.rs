// SPDX-License-Identifier: GPL-2.0-only
//! The result of a command.

use std::io::Write;

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

/// Prints to standard output, which may be a closed pipe (`| head`).
pub fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
