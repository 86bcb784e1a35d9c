// SPDX-License-Identifier: GPL-2.0-only
//! `znsage sim`: swap in virtual time, by the simulator in crates/znsage-sim.

mod advise;
mod figures;
mod run;
mod sweep;
mod torture;

use clap::Subcommand;
use serde_json::json;
use znsage_sim::device::Params;

use crate::error::{Error, Kind, Result};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// One system on one device under one workload
    Run(Box<run::RunArgs>),
    /// All combinations of lists of values, into tables and a report
    Sweep(sweep::SweepArgs),
    /// Join the parts of a sweep that ran in several places
    Merge(sweep::MergeArgs),
    /// Try settings of znsage for a device and a workload, and recommend some
    Advise(Box<advise::AdviseArgs>),
    /// The engine under errors, late completions, frees at the worst moment:
    /// random seeds until told to stop
    Torture(torture::TortureArgs),
    /// Published figures, simulated: pictures, tables, and a page with all
    Figures(figures::FiguresArgs),
    /// The built-in devices, or one of them as the file to copy and edit
    Devices {
        /// Which one to print
        name: Option<String>,
    },
}

impl Command {
    /// Does it look whether Ctrl-C was pressed? Others are ended by it.
    pub fn heeds_interrupts(&self) -> bool {
        matches!(self, Command::Sweep(_) | Command::Advise(_))
    }
}

pub struct Report {
    pub text: String,
    pub json: serde_json::Value,
    /// The state at the end violates an invariant.
    pub damage: bool,
}

pub fn run(command: &Command, json: bool) -> Result<Report> {
    match command {
        Command::Run(args) => run::simulate(args),
        Command::Sweep(args) => sweep::sweep(args),
        Command::Merge(args) => sweep::merge(args),
        Command::Advise(args) => advise::advise(args),
        Command::Torture(args) => torture::torture(args, json),
        Command::Figures(args) => figures::make(args),
        Command::Devices { name: None } => Ok(list()),
        Command::Devices { name: Some(name) } => print(name),
    }
}

/// Only makes the spec of what would be simulated, and says it.
pub fn look(command: &Command) -> Result<String> {
    let spec = match command {
        Command::Run(args) => args.what.spec(args.system.as_deref(), args.policy.as_deref())?,
        Command::Advise(args) => args.what.spec(None, None)?,
        _ => return Ok(String::new()),
    };
    Ok(format!("{spec:?}"))
}

fn list() -> Report {
    let names: Vec<&str> = Params::names().collect();
    Report {
        text: names.join("\n") + "\n",
        json: json!({"version": 1, "devices": names}),
        damage: false,
    }
}

fn print(name: &str) -> Result<Report> {
    let Some(text) = Params::text(name) else {
        let known: Vec<&str> = Params::names().collect();
        return Err(Error::new(Kind::Usage, format!("no device is called `{name}`"))
            .hint(format!("there are {}", known.join(", "))));
    };
    let json = json!({"version": 1, "name": name, "toml": text});
    Ok(Report { text: text.to_string(), json, damage: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    pub fn sim(words: &[&str]) -> Result<Report> {
        let words = ["znsage", "sim"].iter().chain(words);
        match crate::cli::Cli::try_parse_from(words).unwrap().command {
            crate::cli::Command::Sim { command } => run(&command, false),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_run_has_a_result() {
        for system in ["znsage", "stock", "zns-plus"] {
            let words = format!("run --system {system} --size 2G --utilization 40 --seed 7");
            let report = sim(&words.split(' ').collect::<Vec<_>>()).unwrap();
            assert!(!report.damage, "{}", report.text);
            assert!(report.text.contains("\nWAF         1."), "{}", report.text);
            assert!(report.json["result"]["waf"]["total"].as_f64().unwrap() >= 1.0);
        }
    }

    #[test]
    fn devices_are_files_to_copy() {
        let names = sim(&["devices"]).unwrap().text;
        for name in names.lines() {
            let text = sim(&["devices", name]).unwrap().text;
            Params::parse(name, &text, &[]).unwrap();
        }
        let e = sim(&["devices", "floppy"]).err().unwrap();
        assert!(e.hint.unwrap().contains("zn540"));
    }

    #[test]
    fn wrong_values_are_named() {
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
