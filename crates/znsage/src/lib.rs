// SPDX-License-Identifier: GPL-2.0-only
//! `znsage`: swap on zoned block devices. Sets the kernel module's devices
//! up, takes them down, shows and checks them, and measures swapping.

mod bench;
mod cgroups;
mod check;
mod cli;
mod conf;
mod configfs;
mod counters;
mod details;
mod device;
mod doctor;
mod error;
mod generator;
mod interrupt;
mod list;
mod lock;
mod machine;
mod module;
mod off;
mod on;
#[doc(hidden)]
pub mod parsers;
mod paths;
mod probe;
mod progress;
mod prometheus;
mod report;
mod resume;
mod scheduler;
mod section;
mod set;
mod sim;
mod status;
mod swaps;
mod sys;
mod top;
mod undo;
mod units;
mod zones;

#[cfg(test)]
mod setup_tests;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command, OnCommand};
use error::{Error, Kind, Result};

/// What a command has to say, and whether it found damage.
struct Outcome {
    text: String,
    json: serde_json::Value,
    damage: bool,
}

impl Outcome {
    fn fine(text: String, json: serde_json::Value) -> Self {
        Outcome { text, json, damage: false }
    }
}

/// Does what the command line asks for. Returns the status for scripts.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse_from(generator::words(std::env::args_os())) {
        Ok(cli) => cli,
        Err(e) => return usage(&e),
    };
    if matches!(cli.command, Command::BenchWorker) {
        return bench::worker::main();
    }
    match run(&cli.command, cli.json) {
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

fn run(command: &Command, json: bool) -> Result<Outcome> {
    let sys = &sys::Real;
    let page = page_size();
    Ok(match command {
        Command::On(what) => {
            interrupt::catch();
            let _lock = match what {
                OnCommand::Device(_) | OnCommand::Profile(_) => lock::take()?,
                OnCommand::Section(_) => lock::wait()?,
            };
            let report = on::run(sys, what, page)?;
            Outcome::fine(report.to_text(), report.to_json())
        }
        Command::Off(args) => {
            interrupt::catch();
            let _lock = match args.config {
                None => lock::take()?,
                Some(_) => lock::wait()?,
            };
            let report = off::run(sys, args)?;
            Outcome::fine(report.to_text(), report.to_json())
        }
        Command::List => {
            let report = list::run(sys, page)?;
            Outcome::fine(report.to_text(), report.to_json())
        }
        Command::Doctor => {
            let report = doctor::run(sys, page);
            Outcome {
                damage: report.problems() > 0,
                ..Outcome::fine(report.to_text(), report.to_json())
            }
        }
        Command::Status(args) => {
            if args.prometheus && json {
                return Err(Error::new(Kind::Usage, "--prometheus and --json exclude one another"));
            }
            let report = status::run(sys, args, page)?;
            Outcome::fine(report.to_text(), report.to_json())
        }
        Command::Top(args) => {
            top::run(sys, args, page, json)?;
            Outcome::fine(String::new(), serde_json::Value::Null)
        }
        Command::Set(args) => {
            let _lock = lock::take()?;
            let report = set::run(sys, args)?;
            Outcome::fine(report.to_text(), report.to_json())
        }
        Command::Check(args) => {
            let report = check::run(sys, args)?;
            Outcome { damage: !report.clean(), ..Outcome::fine(report.to_text(), report.to_json()) }
        }
        Command::Bench(args) => {
            interrupt::catch();
            let report = bench::run(sys, args, page)?;
            Outcome {
                damage: report.corrupt_pages > 0,
                ..Outcome::fine(report.to_text(), report.to_json())
            }
        }
        Command::Probe(args) => {
            // Ctrl-C ends the question; from there on it is heeded.
            let ready = probe::prepare(sys, args, page)?;
            interrupt::catch();
            let report = probe::run(sys, &ready)?;
            Outcome {
                damage: !report.unsaved.is_empty(),
                ..Outcome::fine(report.to_text(), report.to_json())
            }
        }
        Command::Report(args) => {
            let report = report::run(sys, args)?;
            Outcome::fine(report.to_text(), report.to_json())
        }
        Command::Sim { command } => {
            if command.heeds_interrupts() {
                interrupt::catch();
            }
            let report = sim::run(command, json)?;
            Outcome { damage: report.damage, ..Outcome::fine(report.text, report.json) }
        }
        Command::Generator(args) => {
            let program = std::env::current_exe()
                .map_err(|e| Error::io("find", std::path::Path::new("/proc/self/exe"), e))?;
            generator::run(sys, args, &program.to_string_lossy())?;
            Outcome::fine(String::new(), serde_json::Value::Null)
        }
        Command::BenchWorker => unreachable!("handled in main"),
    })
}

fn page_size() -> u64 {
    match nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE) {
        Ok(Some(n)) => n as u64,
        _ => 4096,
    }
}

/// clap's own message, or its JSON form. Help and version are no errors.
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
    if json {
        print(&format!("{:#}\n", e.to_json()));
        return;
    }
    let mut text = format!("znsage: {}\n", e.message);
    for line in e.hint.iter().flat_map(|h| h.lines()) {
        text += &format!("  {line}\n");
    }
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Standard output may be a pipe that nobody reads any more (`| head`).
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
