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
mod systemd;
mod units;
mod zones;

// The machine and the command line.
mod cli;
mod lock;
mod outcome;
mod sys;

// Parts of the machine.
mod cgroups;
mod configfs;
mod counters;
mod machine;
mod module;
mod oldswap;
mod queue;
mod resume;
mod service;
mod swaps;
mod undo;

// Combinations of parts.
mod choices;
mod details;
mod device;
mod room;
mod scheduler;

mod contents;
mod swapfile;

mod record;

// What several commands need.
mod conf;
mod examine;
mod guard;
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
mod status;
mod top;

// Commands that use results of other commands.
mod doctor;
mod policy;
mod probe;

// For other crates.
#[doc(hidden)]
pub mod parsers;

#[cfg(test)]
mod setup_tests;

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use nix::fcntl::Flock;

use cli::{Cli, Command, On, OnCommand};
use error::{Error, Kind, Result};
use outcome::{print, written, Outcome};
use sys::Sys;

/// Runs the command line of this process. Returns the exit status.
pub fn main() -> ExitCode {
    let words = generator::words(std::env::args_os());
    let json = words.iter().any(|word| word == "--json");
    let done = utf8(words).and_then(|words| match Cli::try_parse_from(words) {
        Ok(cli) => perform(&cli),
        Err(e) => usage(&e, json),
    });
    done.unwrap_or_else(|e| {
        complain(&e, json);
        ExitCode::from(e.kind as u8)
    })
}

/// JSON, znsage.conf and the kernel's lists of devices cannot name other paths.
fn utf8(words: Vec<OsString>) -> Result<Vec<String>> {
    let text = |word: OsString| {
        word.into_string().map_err(|word| {
            let message = format!("`{}` is not valid UTF-8", word.to_string_lossy());
            Error::new(Kind::Usage, message).hint("use a link to it whose name is valid UTF-8")
        })
    };
    words.into_iter().map(text).collect()
}

fn perform(cli: &Cli) -> Result<ExitCode> {
    if matches!(cli.command, Command::BenchWorker) {
        return Ok(bench::worker::main());
    }
    if let Command::GuardWorker { name } = &cli.command {
        return Ok(guard::worker::main(name, page_size()));
    }
    let outcome = {
        let _lock = prepare(&cli.command)?;
        run(&sys::Real, &cli.command, page_size(), cli.json, interrupt::catch)?
    };
    print(&match cli.json {
        true => format!("{:#}\n", outcome.json),
        false => outcome.text,
    })?;
    Ok(ExitCode::from(u8::from(outcome.damage)))
}

/// Catches signals and takes the lock, for commands that need them. The lock
/// lasts until it is dropped.
fn prepare(command: &Command) -> Result<Option<Flock<File>>> {
    match command {
        Command::Off(_) | Command::Bench(_) | Command::Estimate(_) => interrupt::catch(),
        _ => {}
    }
    match command {
        // systemd starts and stops services of several sections at once.
        Command::On(On { command: OnCommand::Section(_), .. }) => lock::wait(),
        Command::Off(args) if args.config.is_some() => lock::wait(),
        Command::On(_)
        | Command::Off(_)
        | Command::Set(_)
        | Command::Guard(_)
        | Command::Policy { .. } => lock::take(),
        _ => Ok(None),
    }
}

/// `catch` catches signals from now on; `on` and `probe` do so after their question,
/// which Ctrl-C ends.
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
        Command::On(on) if on.dry_run => outcome!(dry_run::run(sys, &on.command, page)?),
        Command::On(on) => outcome!(on::run(sys, &on.command, page, catch)?),
        Command::Off(args) => outcome!(off::run(sys, args)?),
        Command::List(args) => {
            args.table.check(json)?;
            outcome!(list::run(sys, args, page)?)
        }
        Command::Doctor => {
            outcome!(doctor::run(sys, page), |r: &doctor::Report| r.problems() > 0)
        }
        Command::Status(args) if args.prometheus && json => {
            return Err(Error::new(Kind::Usage, "--prometheus cannot be used with --json"));
        }
        Command::Status(args) => {
            args.table.check(json)?;
            outcome!(status::run(sys, args, page)?)
        }
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
        Command::Generator(args) => {
            let program = std::env::current_exe()
                .map_err(|e| Error::io("find", std::path::Path::new("/proc/self/exe"), e))?;
            generator::run(sys, args, &program.to_string_lossy())?;
            Outcome::fine(String::new(), serde_json::Value::Null)
        }
        Command::Guard(args) => outcome!(guard::run(sys, &args.device)?),
        Command::BenchWorker | Command::GuardWorker { .. } => unreachable!("main handles it"),
    })
}

fn page_size() -> u64 {
    match nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE) {
        Ok(Some(n)) => n as u64,
        _ => 4096,
    }
}

/// Prints clap's message, with --json as a document. Help and version are no errors.
fn usage(e: &clap::Error, json: bool) -> Result<ExitCode> {
    if !e.use_stderr() {
        written(e.print())?;
    } else if json {
        let text = e.render().to_string();
        let text = text.trim_start_matches("error: ");
        let message = text.split("\n\nUsage:").next().unwrap_or(text).trim_end();
        return Err(Error::new(Kind::Usage, message));
    } else {
        let _ = e.print();
    }
    Ok(ExitCode::from(e.exit_code() as u8))
}

/// On standard error if standard output takes no document.
fn complain(e: &Error, json: bool) {
    if !json || print(&format!("{:#}\n", e.to_json())).is_err() {
        let _ = std::io::stderr().write_all(e.to_text().as_bytes());
    }
}
