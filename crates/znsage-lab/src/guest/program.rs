// SPDX-License-Identifier: GPL-2.0-only
//! Runs programs.

use std::process::Command;

use crate::result::{Context, Result};

/// Runs a program and returns what it prints.
pub fn call(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .context(format_args!("cannot run {program}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!(
            "{program} {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}
