// SPDX-License-Identifier: GPL-2.0-only
//! `znsage`: swap on zoned block devices. Sets up the kernel module's devices,
//! takes them down, shows and checks them, and measures swapping.
//!
//! The modules form layers, listed below from the lowest up and separated by empty
//! lines: basics, access to the machine and the command line, parts of the machine,
//! their combinations, commands. A module uses only lower layers; tests/layers.rs
//! checks this. Commands reach the machine only through [`sys::Sys`], which tests
//! replace.

// Basics.
mod error;
mod interrupt;
mod outcome;
mod progress;
mod systemd;
mod units;
mod zones;

// The machine and the command line.
mod cli;
mod lock;
mod sys;

// Parts of the machine.
mod cgroups;
mod configfs;
mod contents;
mod counters;
mod machine;
mod module;
mod queue;
mod resume;
mod swaps;
mod undo;

// Combinations of parts.
mod choices;
mod details;
mod device;
mod scheduler;

mod record;

// What several commands need.
mod conf;
mod examine;
mod prometheus;

mod section;

// Commands.
mod bench;
mod check;
mod dry_run;
mod estimate;
mod generator;
mod list;
mod off;
mod on;
mod set;
mod sim;
mod status;
mod top;

// Commands that use results of other commands.
mod doctor;
mod policy;
mod probe;

mod report;

// For other crates.
#[doc(hidden)]
pub mod parsers;

#[cfg(test)]
mod setup_tests;

use std::fs::File;
use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use nix::fcntl::Flock;

use cli::{Cli, Command, OnCommand};
use error::{Error, Kind, Result};
use outcome::{print, Outcome};
use sys::Sys;

/// Runs the command line of this process. Returns the exit status.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse_from(generator::words(std::env::args_os())) {
        Ok(cli) => cli,
        Err(e) => return usage(&e),
    };
    if matches!(cli.command, Command::BenchWorker) {
        return bench::worker::main();
    }
    let outcome = prepare(&cli.command)
        .and_then(|_lock| run(&sys::Real, &cli.command, page_size(), cli.json, interrupt::catch));
    match outcome {
        Ok(outcome) => {
            match cli.json {
                true => print(&format!("{:#}\n", outcome.json)),
                false => print(&outcome.text),
            }
            ExitCode::from(u8::from(outcome.damage))
        }
        Err(e) => {
            complain(&e, cli.json);
            ExitCode::from(e.kind as u8)
        }
    }
}

/// Catches signals and takes the lock, for commands that need them. The lock
/// lasts until it is dropped.
fn prepare(command: &Command) -> Result<Option<Flock<File>>> {
    match command {
        Command::On(_) | Command::Off(_) | Command::Bench(_) | Command::Estimate(_) => {
            interrupt::catch()
        }
        Command::Sim { command } if command.checks_interrupts() => interrupt::catch(),
        _ => {}
    }
    match command {
        // systemd starts and stops services of several sections at once.
        Command::On(OnCommand::Section(_)) => lock::wait(),
        Command::Off(args) if args.config.is_some() => lock::wait(),
        Command::On(_) | Command::Off(_) | Command::Set(_) | Command::Policy { .. } => lock::take(),
        _ => Ok(None),
    }
}

/// `catch` catches signals from now on; `probe` does so after its question, which
/// Ctrl-C ends.
fn run(sys: &dyn Sys, command: &Command, page: u64, json: bool, catch: fn()) -> Result<Outcome> {
    /// Every report has these two methods.
    macro_rules! outcome {
        ($report:expr) => {
            outcome!($report, |_| false)
        };
        ($report:expr, $damage:expr) => {{
            let report = $report;
            #[allow(clippy::redundant_closure_call)]
            Outcome::new(report.to_text(), report.to_json(), $damage(&report))
        }};
    }
    Ok(match command {
        Command::On(what @ OnCommand::DryRun(_)) => outcome!(dry_run::run(sys, what, page)?),
        Command::On(what) => outcome!(on::run(sys, what, page)?),
        Command::Off(args) => outcome!(off::run(sys, args)?),
        Command::List(args) => outcome!(list::run(sys, args.all, page)?),
        Command::Doctor => {
            outcome!(doctor::run(sys, page), |r: &doctor::Report| r.problems() > 0)
        }
        Command::Status(args) if args.prometheus && json => {
            return Err(Error::new(Kind::Usage, "--prometheus cannot be used with --json"));
        }
        Command::Status(args) => outcome!(status::run(sys, args, page)?),
        Command::Top(args) => {
            top::run(sys, args, page, json)?;
            Outcome::fine(String::new(), serde_json::Value::Null)
        }
        Command::Set(args) => outcome!(set::run(sys, args)?),
        Command::Policy { command } => outcome!(policy::run(sys, command)?),
        Command::Check(args) => outcome!(check::run(sys, args)?, |r: &check::Report| !r.clean()),
        Command::Bench(args) => {
            outcome!(bench::run(sys, args, page)?, |r: &bench::Report| r.corrupt_pages > 0)
        }
        Command::Estimate(args) => outcome!(estimate::run(sys, args, page)?),
        Command::Probe(args) => {
            let ready = probe::prepare(sys, args, page)?;
            catch();
            outcome!(probe::run(sys, &ready)?, |r: &probe::Report| !r.unsaved.is_empty())
        }
        Command::Report(args) => outcome!(report::run(sys, args)?),
        Command::Sim { command } => sim::run(command, json)?,
        Command::Generator(args) => {
            let program = std::env::current_exe()
                .map_err(|e| Error::io("find", std::path::Path::new("/proc/self/exe"), e))?;
            generator::run(sys, args, &program.to_string_lossy())?;
            Outcome::fine(String::new(), serde_json::Value::Null)
        }
        Command::BenchWorker => unreachable!("main handles it"),
    })
}

fn page_size() -> u64 {
    match nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE) {
        Ok(Some(n)) => n as u64,
        _ => 4096,
    }
}

/// Prints clap's message, with --json as a document. Help and version are no errors.
fn usage(e: &clap::Error) -> ExitCode {
    let json = std::env::args().any(|a| a == "--json");
    if !json || !e.use_stderr() {
        let _ = e.print();
        return ExitCode::from(e.exit_code() as u8);
    }
    let text = e.render().to_string();
    let text = text.trim_start_matches("error: ");
    let message = text.split("\n\nUsage:").next().unwrap_or(text).trim_end();
    complain(&Error::new(Kind::Usage, message), true);
    ExitCode::from(Kind::Usage as u8)
}

fn complain(e: &Error, json: bool) {
    match json {
        true => print(&format!("{:#}\n", e.to_json())),
        false => {
            let _ = std::io::stderr().write_all(e.to_text().as_bytes());
        }
    }
}
