// SPDX-License-Identifier: GPL-2.0-only
//! What reads texts from outside, for those who fuzz it (crates/znsage-fuzz) or
//! make a manual of it (examples/pages.rs). No interface for anybody else: it changes as the command does.

use clap::Parser;
use serde_json::Value;

pub use crate::sys::{Appends, Lane, LogLine, Ran, Sys, ZoneCommand};
pub use crate::units::{micros, parse_micros, parse_name, parse_size, size};
pub use crate::zones::{State, Zone};

use crate::cli::{Cli, Command};
use crate::error::Error;
use crate::{
    bench, check, conf, configfs, doctor, generator, list, off, on, probe, report, scheduler, set,
    sim, status, swaps, sys, top,
};

/// What a command says, as text and as JSON; or why it does not.
pub type Said = Result<(String, Value), (String, Value)>;

/// Does what a command line asks for on `sys`, which stands for a machine. Of a
/// simulation only the spec is made.
pub fn obey(sys: &dyn Sys, words: &[&str], page: u64) -> Said {
    let cli = Cli::try_parse_from(std::iter::once(&"znsage").chain(words))
        .map_err(|e| (e.render().to_string(), Value::Null))?;
    let said = match &cli.command {
        Command::On(args) => on::run(sys, args, page).map(|r| (r.to_text(), r.to_json())),
        Command::Off(args) => off::run(sys, args).map(|r| (r.to_text(), r.to_json())),
        Command::List => list::run(sys, page).map(|r| (r.to_text(), r.to_json())),
        Command::Doctor => {
            let report = doctor::run(sys, page);
            Ok((report.to_text(), report.to_json()))
        }
        Command::Status(args) => status::run(sys, args, page).map(|r| (r.to_text(), r.to_json())),
        Command::Top(args) => top::once(sys, args, page).map(|text| (text, Value::Null)),
        Command::Set(args) => set::run(sys, args).map(|r| (r.to_text(), r.to_json())),
        Command::Check(args) => check::run(sys, args).map(|r| (r.to_text(), r.to_json())),
        Command::Probe(args) => probe::prepare(sys, args, page)
            .and_then(|ready| probe::run(sys, &ready))
            .map(|r| (r.to_text(), r.to_json())),
        Command::Report(args) => report::run(sys, args).map(|r| (r.to_text(), r.to_json())),
        Command::Sim { command } => sim::look(command).map(|spec| (spec, Value::Null)),
        Command::Generator(args) => {
            generator::run(sys, args, "/usr/sbin/znsage").map(|()| Default::default())
        }
        Command::Bench(_) | Command::BenchWorker => Ok(Default::default()),
    };
    said.map_err(|e: Error| (e.to_string(), e.to_json()))
}

/// The command line's grammar, for its manual and its tests.
pub fn grammar() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

/// Reads what is not in the way of [`obey`].
pub fn look_around(sys: &dyn Sys) {
    let _ = swaps::available_memory(sys);
    for area in swaps::areas(sys) {
        let _ = (area.name(), area.free_bytes());
    }
    for name in configfs::items(sys) {
        let _ = (configfs::powered(sys, &name), configfs::index(sys, &name));
    }
}

/// What is made of a file of settings.
pub struct Settings {
    /// Lines that make no sense, as far as there is one to blame, and why.
    pub faults: Vec<(Option<usize>, String)>,
    /// Services: name, text, and what wants it.
    pub units: Vec<(String, String, Vec<String>)>,
}

/// A file of settings such as /etc/znsage.conf.
pub fn settings(text: &str) -> Settings {
    let conf = conf::of_texts(&[("/etc/znsage.conf".to_string(), text.to_string())]);
    let units = generator::units(&conf, "/usr/sbin/znsage");
    let _ = conf::complaint(conf.faults.iter());
    Settings {
        faults: conf.faults.iter().map(|fault| (fault.line, fault.to_string())).collect(),
        units: units.into_iter().map(|unit| (unit.name, unit.text, unit.wanted_by)).collect(),
    }
}

/// All that is said against a file of settings.
pub fn complaint(text: &str) -> Option<String> {
    let conf = conf::of_texts(&[("/etc/znsage.conf".to_string(), text.to_string())]);
    let e = conf::complaint(conf.faults.iter())?;
    Some(format!("{e}\n{}", e.hint.as_deref().unwrap_or_default()))
}

/// The keys of a section of settings, as arguments.
pub fn section() -> clap::Command {
    conf::grammar()
}

/// The page of a result, if it is one.
///
/// # Errors
/// If it is none.
pub fn page(result: &str) -> Result<String, String> {
    report::page_of(result).map_err(|e| e.to_string())
}

/// The chosen I/O scheduler of a list of them.
pub fn scheduler(list: &str) -> Option<String> {
    scheduler::chosen(list)
}

/// A record of the kernel's log.
pub fn log_record(record: &str) -> Option<LogLine> {
    sys::parse_record(record)
}

/// A value in a table such as memory.stat.
pub fn lookup(table: &str, key: &str) -> Option<u64> {
    bench::lookup(table, key)
}

/// The trace that `znsage bench` makes of the lines of trace_pipe.
///
/// # Errors
/// If a line has an unknown form.
pub fn recorded(lines: &str, slots: u32) -> Result<Vec<u8>, String> {
    bench::recorded(lines, slots)
}
