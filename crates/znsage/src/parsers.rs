// SPDX-License-Identifier: GPL-2.0-only
//! Parsers and the grammar, for the fuzz targets (crates/znsage-fuzz), the manual
//! (examples/pages), benchmarks (crates/znsage-lab) and tests. Not a stable interface.

use clap::Parser;
use serde_json::Value;

pub use crate::bench::{Config, Latency, Phase, Report, Totals};
pub use crate::sys::{FileKind, LogLine, Ran, Stat, Sys};
pub use crate::units::{micros, parse_micros, parse_name, parse_size, size};
pub use crate::zones::{State, Zone};

use crate::cli::{Cli, Command};
use crate::outcome::Outcome;
use crate::{bench, conf, configfs, generator, scheduler, swaps, sys, top};

/// What a command prints, or its error: as text and as JSON.
pub type Printed = Result<(String, Value), (String, Value)>;

/// Runs a command line on `sys`, which stands for a machine.
pub fn run_line(sys: &dyn Sys, words: &[&str], page: u64) -> Printed {
    let cli = Cli::try_parse_from(std::iter::once(&"znsage").chain(words))
        .map_err(|e| (e.render().to_string(), Value::Null))?;
    let text = |text| Outcome::fine(text, Value::Null);
    let said = match &cli.command {
        Command::Top(args) => top::once(sys, args, page).map(text),
        Command::Generator(args) => {
            generator::run(sys, args, "/usr/sbin/znsage").map(|()| text(String::new()))
        }
        Command::Bench(_) | Command::BenchWorker => Ok(text(String::new())),
        command => crate::run(sys, command, page, false, || ()),
    };
    match said {
        Ok(outcome) => Ok((outcome.text, outcome.json)),
        Err(e) => Err((e.to_string(), e.to_json())),
    }
}

/// The command line's grammar, for its manual and its tests.
pub fn grammar() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

/// Runs parsers that [`run_line`] does not reach.
pub fn read_rest(sys: &dyn Sys) {
    let _ = swaps::available_memory(sys);
    for area in swaps::areas(sys) {
        let _ = (area.name(), area.free_bytes());
    }
    for name in configfs::items(sys) {
        let _ = (configfs::powered(sys, &name), configfs::index(sys, &name));
    }
}

/// The meaning of a file of settings.
pub struct Settings {
    /// What is wrong, with the line if there is one.
    pub faults: Vec<(Option<usize>, String)>,
    /// Services: name, text, and the units that want it.
    pub units: Vec<(String, String, Vec<String>)>,
}

/// A file of settings such as /etc/znsage.conf.
pub fn settings(text: &str) -> Settings {
    let conf = conf::parse_texts(&[("/etc/znsage.conf".to_string(), text.to_string())]);
    let units = generator::units(&conf, "/usr/sbin/znsage", "systemd-remount-fs.service");
    let _ = conf::complaint(conf.faults.iter());
    Settings {
        faults: conf.faults.iter().map(|fault| (fault.line, fault.to_string())).collect(),
        units: units.into_iter().map(|unit| (unit.name, unit.text, unit.wanted_by)).collect(),
    }
}

/// The error for a file of settings, with all faults.
pub fn complaint(text: &str) -> Option<String> {
    let conf = conf::parse_texts(&[("/etc/znsage.conf".to_string(), text.to_string())]);
    let e = conf::complaint(conf.faults.iter())?;
    Some(format!("{e}\n{}", e.hint.as_deref().unwrap_or_default()))
}

/// The keys of a section of settings, as arguments.
pub fn section() -> clap::Command {
    conf::grammar()
}

/// The active I/O scheduler in a list of schedulers.
pub fn scheduler(list: &str) -> Option<String> {
    scheduler::chosen(list)
}

/// A record of the kernel log.
pub fn log_record(record: &str) -> Option<LogLine> {
    sys::parse_record(record)
}

/// A value in a table such as memory.stat.
pub fn lookup(table: &str, key: &str) -> Option<u64> {
    bench::lookup(table, key)
}

/// The trace that `znsage bench` makes from the lines of trace_pipe.
///
/// # Errors
/// If a line has an unknown form.
pub fn recorded(lines: &str, slots: u32) -> Result<Vec<u8>, String> {
    bench::recorded(lines, slots)
}
