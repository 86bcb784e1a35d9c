// SPDX-License-Identifier: GPL-2.0-only
//! `znsage-lab density`: how many idle processes fit before their wake-up takes too long,
//! on SSDs that collect garbage; bench/README.md explains it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::files::write_json;
use crate::result::Result;
use crate::ssd::{self, Flash, OnDrive, System};
use crate::table::Table;
use crate::vm;

const OUT: &str = "build/density";

/// Everything is a tenth of its usual size: 20 MiB stand for a process of 200 MiB, and
/// 0.2 s for its 2 s.
const SCALE: f64 = 10.0;
/// The wake-up time that people accept for a browser tab or a sandbox.
const LIMIT_S: f64 = 2.0;

/// How many idle processes fit on SSDs that collect garbage
#[derive(clap::Args)]
pub struct Args {
    #[arg(long, value_delimiter = ',', default_value = "stock,virtual,zones")]
    systems: Vec<System>,
    /// Numbers of processes, measured one after the other
    #[arg(long, value_delimiter = ',', default_value = "16,20,24,25,26")]
    processes: Vec<usize>,
    /// Real time for each unit of the drive's
    #[arg(long, default_value_t = 32)]
    slowdown: u64,
}

/// What the guest measures, in real time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    pub processes: usize,
    /// The used share of the swap area, 0 to 1.
    pub used: f64,
    pub wakes: usize,
    pub wakes_per_s: f64,
    pub p50_s: f64,
    pub p99_s: f64,
    pub flash: Flash,
}

#[derive(Serialize)]
struct Record {
    system: System,
    slowdown: u64,
    accelerator: String,
    steps: Vec<Step>,
}

impl Record {
    /// In the drive's time, for a process of full size.
    fn seconds(&self, real: f64) -> f64 {
        real / self.slowdown as f64 * SCALE
    }

    /// The most processes whose wake-up is within the limit.
    fn fit(&self) -> Option<usize> {
        let within = self.steps.iter().take_while(|s| self.seconds(s.p99_s) <= LIMIT_S);
        within.last().map(|s| s.processes)
    }
}

pub fn run(args: &Args) -> Result<bool> {
    let out = Path::new(OUT);
    let (conventional, zns) = ssd::drives(ssd::MODEL, args.slowdown);
    let mut records = Vec::new();
    for &system in &args.systems {
        eprintln!("[{}]", system.title());
        let (conventional, zns) = match system {
            system if system.is_zoned() => (vec![], vec![zns.as_str()]),
            _ => (vec![conventional.as_str()], vec![]),
        };
        let mut arguments = OnDrive::new(system).arguments();
        arguments.extend(args.processes.iter().map(|n| format!("--processes={n}")));
        let boot = vm::Vm { arguments, conventional, zns, ..ssd::guest("density", out) };
        let steps = vm::collect::<Vec<Step>>(&boot)?.document;
        records.push(Record {
            system,
            slowdown: args.slowdown,
            accelerator: vm::accelerator(),
            steps,
        });
        write_json(&out.join("result.json"), &records)?;
    }
    print!("{}", table(&records));
    Ok(true)
}

fn table(records: &[Record]) -> String {
    let mut table = Table::new(&[
        "system",
        "processes",
        "area used",
        "wake-ups a second",
        "median, s",
        "p99, s",
        "flash writes a page",
    ]);
    for r in records {
        for s in &r.steps {
            table.row([
                r.system.title().to_string(),
                s.processes.to_string(),
                format!("{:.0} %", s.used * 100.0),
                // As many as of processes of full size.
                format!("{:.1}", s.wakes_per_s * r.slowdown as f64 / SCALE),
                format!("{:.2}", r.seconds(s.p50_s)),
                format!("{:.2}", r.seconds(s.p99_s)),
                format!("{:.2}", s.flash.a_page()),
            ]);
        }
    }
    let mut text = table.to_text() + "\n";
    for r in records {
        let fit = r.fit().map_or("none of these".to_string(), |n| n.to_string());
        text += &format!("{}: {fit} fit within {LIMIT_S} s\n", r.system.title());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(latencies: &[f64]) -> Record {
        let step = |(i, &p99_s): (usize, &f64)| Step {
            processes: 10 * (i + 1),
            used: 0.5,
            wakes: 100,
            wakes_per_s: 10.0,
            p50_s: p99_s / 2.0,
            p99_s,
            flash: Flash::default(),
        };
        let steps = latencies.iter().enumerate().map(step).collect();
        Record { system: System::Stock, slowdown: 32, accelerator: "tcg".into(), steps }
    }

    #[test]
    fn processes_fit_up_to_the_first_that_is_too_slow() {
        // The limit is 6.4 s of real time.
        assert_eq!(record(&[3.0, 6.0, 7.0, 5.0]).fit(), Some(20));
        assert_eq!(record(&[7.0]).fit(), None);
    }

    #[test]
    fn table_has_times_of_full_size() {
        let text = table(&[record(&[3.2, 6.4, 12.8])]);
        assert!(text.contains("4.00") && text.contains("20 fit within 2 s"), "{text}");
    }
}
