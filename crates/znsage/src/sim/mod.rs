// SPDX-License-Identifier: GPL-2.0-only
//! `znsage sim`: swap in virtual time, by the simulator in crates/znsage-sim.

mod figures;
mod run;
mod sweep;
mod torture;

use serde_json::json;
use znsage_sim::device::Params;

use crate::cli::sim::Command;
use crate::error::{Error, Kind, Result};
use crate::outcome::Outcome;

pub fn run(command: &Command, json: bool) -> Result<Outcome> {
    match command {
        Command::Run(args) => run::simulate(args),
        Command::Sweep(args) => sweep::sweep(args),
        Command::Merge(args) => sweep::merge(args),
        Command::Torture(args) => torture::torture(args, json),
        Command::Figures(args) => figures::make(args),
        Command::Devices { name: None } => Ok(list()),
        Command::Devices { name: Some(name) } => print(name),
    }
}

/// Makes the spec of a simulation and returns it as text, without running it.
pub fn look(command: &Command) -> Result<String> {
    let spec = match command {
        Command::Run(args) => args.what.spec(args.system.as_deref(), args.policy.as_deref())?,
        _ => return Ok(String::new()),
    };
    Ok(format!("{spec:?}"))
}

fn list() -> Outcome {
    let names: Vec<&str> = Params::names().collect();
    Outcome {
        text: names.join("\n") + "\n",
        json: json!({"version": 1, "devices": names}),
        damage: false,
    }
}

fn print(name: &str) -> Result<Outcome> {
    let Some(text) = Params::text(name) else {
        let known: Vec<&str> = Params::names().collect();
        return Err(Error::new(Kind::Usage, format!("there is no device `{name}`"))
            .hint(format!("available: {}", known.join(", "))));
    };
    let json = json!({"version": 1, "name": name, "toml": text});
    Ok(Outcome { text: text.to_string(), json, damage: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use znsage_sim::spec::SystemKind;

    pub fn sim(words: &[&str]) -> Result<Outcome> {
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
            assert!(!report.damage, "{system}: {}", report.text);
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
        assert!(e.hint.unwrap().contains("zn540"));
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
