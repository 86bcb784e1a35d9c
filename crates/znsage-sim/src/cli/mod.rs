// SPDX-License-Identifier: GPL-2.0-only
//! The command `znsage-sim`.

mod args;
mod calibrate;
mod import;
pub mod progress;
mod run;
mod sweep;
mod units;

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;

use clap::{CommandFactory, Parser};
use serde_json::{json, Value};

use crate::alone;
use crate::device::Params;
use crate::spec;

use args::{Cli, Command};

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match perform(&cli.command) {
        Ok(outcome) => {
            let printed = match cli.json {
                true => print(&format!("{:#}\n", outcome.json)),
                false => print(&outcome.text),
            };
            ExitCode::from(printed.map_or(Status::Io, |()| outcome.status) as u8)
        }
        Err(e) => {
            eprintln!("znsage-sim: {}", e.message);
            e.status.into()
        }
    }
}

/// The command line's grammar, to check documents.
pub fn grammar() -> clap::Command {
    Cli::command()
}

/// The exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done, and nothing wrong.
    Fine = 0,
    /// An invariant was violated, or a run failed.
    Wrong = 1,
    /// The command line, a file or a device is invalid.
    Usage = 2,
    /// A file cannot be read or written.
    Io = 3,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        ExitCode::from(status as u8)
    }
}

#[derive(Debug)]
struct Error {
    status: Status,
    message: String,
}

type Result<T> = std::result::Result<T, Error>;

fn usage(message: impl fmt::Display) -> Error {
    Error { status: Status::Usage, message: message.to_string() }
}

/// What a command prints.
#[derive(Debug)]
struct Outcome {
    text: String,
    json: Value,
    status: Status,
}

impl Outcome {
    fn fine(text: String, json: Value) -> Self {
        Outcome { text, json, status: Status::Fine }
    }
}

/// Prints to standard output. A closed pipe (`| head`) is no error.
///
/// # Errors
/// If standard output cannot be written; a message was printed.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("cannot write to standard output: {e}");
            Err(e)
        }
        _ => Ok(()),
    }
}

/// One per CPU, if nothing else is said.
pub fn threads(given: Option<u16>) -> usize {
    let cpus = || thread::available_parallelism().map_or(1, usize::from);
    given.map_or_else(cpus, usize::from)
}

fn perform(command: &Command) -> Result<Outcome> {
    match command {
        Command::Run(args) => run::simulate(args),
        Command::Sweep(args) => sweep::sweep(args),
        Command::Calibrate(args) => calibrate::calibrate(args),
        Command::Import(args) => import::import(args),
        Command::Spec => Ok(Outcome::fine(spec::describe(), json!(spec::Spec::default()))),
        Command::Devices { name: None } => Ok(list()),
        Command::Devices { name: Some(name) } => text_of(name),
        Command::Device { name } => device(name),
    }
}

fn list() -> Outcome {
    let names: Vec<&str> = Params::names().collect();
    Outcome::fine(names.join("\n") + "\n", json!({ "devices": names }))
}

fn text_of(name: &str) -> Result<Outcome> {
    let Some(text) = Params::text(name) else {
        let known: Vec<&str> = Params::names().collect();
        return Err(usage(format!("there is no device `{name}`; there are {}", known.join(", "))));
    };
    Ok(Outcome::fine(text.to_string(), json!({"name": name, "toml": text})))
}

fn device(name: &str) -> Result<Outcome> {
    let report = alone::measure(name).map_err(usage)?;
    let json = serde_json::to_value(&report).expect("a report is JSON");
    Ok(Outcome::fine(report.to_string(), json))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::SystemKind;

    pub fn sim(words: &[&str]) -> Result<Outcome> {
        let words = ["znsage-sim"].iter().chain(words);
        let cli = Cli::try_parse_from(words).unwrap();
        perform(&cli.command)
    }

    #[test]
    fn a_run_has_a_result() {
        for system in ["znsage", "stock", "zns-plus"] {
            let words = format!("run --system {system} --size 2G --utilization 40 --seed 7");
            let report = sim(&words.split(' ').collect::<Vec<_>>()).unwrap();
            assert!(report.status == Status::Fine, "{}", report.text);
            assert!(report.text.contains("\nWAF         1."), "{}", report.text);
            assert!(report.json["result"]["waf"]["total"].as_f64().unwrap() >= 1.0);
        }
    }

    /// All slots of the area are in use, by a machine with fewer CPUs than the simulator's default.
    #[test]
    fn a_full_trace_finds_a_device_of_its_size() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("own.trace");
        let mut text = String::from("znsage-trace 1\nslots 20000\n");
        for round in 0..2 {
            for slot in (0..20_000).step_by(32) {
                let time = 20 * (20_000 * round + slot);
                text += &format!("{time} {} W {slot} 32\n", slot / 32 % 4);
            }
        }
        std::fs::write(&path, text).unwrap();
        for system in SystemKind::ALL {
            let words = ["run", "--system", system.name(), "--trace", path.to_str().unwrap()];
            let report = sim(&words).unwrap_or_else(|e| panic!("{system}: {e:?}"));
            assert!(report.status == Status::Fine, "{system}: {}", report.text);
            assert!(report.json["result"]["utilization"].as_f64().unwrap() > 5.0, "{system}");
        }
    }

    #[test]
    fn built_in_devices_are_valid_files() {
        let names = sim(&["devices"]).unwrap().text;
        for name in names.lines() {
            let text = sim(&["devices", name]).unwrap().text;
            Params::parse(name, &text, &[]).unwrap();
        }
        let e = sim(&["devices", "floppy"]).err().unwrap();
        assert!(e.message.contains("zn540"));
    }

    #[test]
    fn invalid_values_are_named() {
        for (words, part) in [
            ("run --system swapfile", "--system: "),
            ("run --workload idle", "--workload: "),
            ("run --set size", "--set size: KEY=VALUE"),
            ("run --set host.mood=good", "--set host.mood: "),
            ("run --device floppy", "no such device; there are"),
            ("run --spec /no/such/file", "/no/such/file: No such file"),
        ] {
            let e = sim(&words.split(' ').collect::<Vec<_>>()).err().unwrap();
            assert!(e.message.contains(part), "{words}: {}", e.message);
        }
    }
}
