// SPDX-License-Identifier: GPL-2.0-only
//! Runs programs, and writes the kernel's files.

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

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

/// Writes to a file of the kernel.
pub fn set(path: &str, value: &str) -> Result<()> {
    fs::write(path, value).context(format_args!("cannot set {path} to {value}"))
}

/// Asks until there is an answer, or the time is up.
pub fn eventually<T>(time: Duration, ask: impl Fn() -> Option<T>) -> Option<T> {
    const PAUSE: Duration = Duration::from_millis(50);
    let end = Instant::now() + time;
    loop {
        let answer = ask();
        if answer.is_some() || Instant::now() >= end {
            return answer;
        }
        sleep(PAUSE);
    }
}
