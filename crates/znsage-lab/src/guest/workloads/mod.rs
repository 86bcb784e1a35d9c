// SPDX-License-Identifier: GPL-2.0-only
//! Real programs: each in memory, on stock swap and on znsage, in turns.

mod compile;
mod etc;
mod group;
mod memcached;
mod redis;
mod resp;
mod sort;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

use super::say;
use super::swap::{self, Swap};
use crate::vm::write_json;
use crate::workloads::model::{
    select, Comparison, Measured, Metric, Run, Setting, Sizes, Workload,
};
use crate::Result;
use group::Disk;

/// One measurement, before it is known to which round it belongs.
pub struct Outcome {
    seconds: f64,
    pages_in: u64,
    pages_out: u64,
    values: BTreeMap<String, f64>,
    verified: String,
}

/// What a program, or a mix of its requests, is called and measured by.
pub struct Part {
    name: &'static str,
    title: &'static str,
    metrics: Vec<Metric>,
}

/// A program that is made ready once and then measured in every setting.
trait Load {
    fn parts(&self) -> Vec<Part>;

    /// An outcome for each part. The swap of the setting is on.
    fn measure(&mut self, setting: Setting) -> Result<Vec<Outcome>>;

    /// Known once it was measured in memory.
    fn sizes(&self) -> Sizes;
}

pub fn run(out: &Path, workloads: &[String], rounds: u32) -> Result<()> {
    let chosen = select(workloads)?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut measured = Measured { kernel: kernel.trim().to_string(), ..Measured::default() };
    let area = swap::offered()?.size_bytes;
    let _disk = Disk::mount()?;
    for (i, &workload) in chosen.iter().enumerate() {
        say(&format!("[{} of {}] {}", i + 1, chosen.len(), workload.name()));
        let start = Instant::now();
        // What goes wrong with one is no reason not to measure the others.
        match one(workload, out, area, rounds) {
            Ok(found) => measured.comparisons.extend(found),
            Err(message) => {
                say(&format!("  {message}"));
                measured.problems.push(format!("{}: {message}", workload.name()));
            }
        }
        say(&format!("  {} took {:.0} s", workload.name(), start.elapsed().as_secs_f64()));
    }
    write_json(&out.join("runs.json"), &measured)
}

fn one(workload: Workload, out: &Path, area: u64, rounds: u32) -> Result<Vec<Comparison>> {
    let mut load: Box<dyn Load> = match workload {
        Workload::Memcached => Box::new(memcached::Memcached::start(out)?),
        Workload::Etc => Box::new(etc::Etc::new(out)),
        Workload::Redis => Box::new(redis::Redis::start()?),
        Workload::Compile => Box::new(compile::Compile::new(out)?),
        Workload::Sort => Box::new(sort::Sort::new()?),
    };
    let parts = load.parts();
    let mut runs: Vec<Vec<Run>> = parts.iter().map(|_| Vec::new()).collect();
    for round in 1..=rounds {
        for setting in order(round) {
            let outcomes = measure(load.as_mut(), setting, area)?;
            for ((part, outcome), runs) in parts.iter().zip(outcomes).zip(&mut runs) {
                say(&format!(
                    "  round {round} of {rounds}, {}: {}: {}",
                    setting.name(),
                    part.title,
                    summary(part, &outcome)
                ));
                runs.push(outcome.run(setting, round)?);
            }
        }
    }
    let sizes = load.sizes();
    let comparison = |(part, runs): (Part, Vec<Run>)| Comparison {
        name: part.name.to_string(),
        title: part.title.to_string(),
        sizes,
        metrics: part.metrics,
        runs,
    };
    Ok(parts.into_iter().zip(runs).map(comparison).collect())
}

/// In memory once, and first, because some workloads learn from that; then
/// both systems, each of them first in its turn.
fn order(round: u32) -> Vec<Setting> {
    match round {
        1 => vec![Setting::Memory, Setting::Stock, Setting::Znsage],
        n if n % 2 == 0 => vec![Setting::Znsage, Setting::Stock],
        _ => vec![Setting::Stock, Setting::Znsage],
    }
}

fn measure(load: &mut dyn Load, setting: Setting, area: u64) -> Result<Vec<Outcome>> {
    let swap = setting.system().map(|system| Swap::on(system, area)).transpose()?;
    let outcomes = load.measure(setting)?;
    swap.map_or(Ok(()), Swap::off)?;
    Ok(outcomes)
}

fn summary(part: &Part, outcome: &Outcome) -> String {
    let value = |m: &Metric| {
        let value = outcome.values.get(&m.name).copied().unwrap_or(f64::NAN);
        format!("{} {value:.0} {}", m.title.to_lowercase(), m.unit)
    };
    let values: Vec<String> = part.metrics.iter().map(value).collect();
    format!(
        "{}; {} pages in, {} out; {}",
        values.join(", "),
        outcome.pages_in,
        outcome.pages_out,
        outcome.verified
    )
}

impl Outcome {
    /// A workload that was to swap and did not says nothing of swap.
    fn run(self, setting: Setting, round: u32) -> Result<Run> {
        let swapped = (self.pages_in > 0, self.pages_out > 0);
        match (setting, swapped) {
            (Setting::Memory, (false, false)) => (),
            (Setting::Memory, _) => return Err("it swapped where it should not".to_string()),
            (_, (true, true)) => (),
            _ => {
                return Err(format!(
                    "it did not swap on {} ({} pages in, {} out): its limit is too large",
                    setting.name(),
                    self.pages_in,
                    self.pages_out
                ))
            }
        }
        Ok(Run {
            setting,
            round,
            seconds: self.seconds,
            pages_swapped_in: self.pages_in,
            pages_swapped_out: self.pages_out,
            values: self.values,
            verified: self.verified,
        })
    }
}

/// Time and pages since some moment.
struct Meter {
    start: Instant,
    pages: (u64, u64),
}

impl Meter {
    fn start() -> Result<Meter> {
        Ok(Meter { start: Instant::now(), pages: swapped()? })
    }

    fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    fn stop<const N: usize>(self, values: [(&str, f64); N], verified: String) -> Result<Outcome> {
        let seconds = self.seconds();
        let now = swapped()?;
        Ok(Outcome {
            seconds,
            pages_in: now.0 - self.pages.0,
            pages_out: now.1 - self.pages.1,
            values: values.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
            verified,
        })
    }
}

/// Pages that were swapped in and out since the boot.
fn swapped() -> Result<(u64, u64)> {
    let text =
        fs::read_to_string("/proc/vmstat").map_err(|e| format!("cannot read /proc/vmstat: {e}"))?;
    let count = |name: &str| {
        let mut values = text.lines().filter_map(|l| l.strip_prefix(name)?.trim().parse().ok());
        values.next().ok_or_else(|| format!("/proc/vmstat has no {name}"))
    };
    Ok((count("pswpin ")?, count("pswpout ")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(pages_in: u64, pages_out: u64) -> Outcome {
        Outcome {
            seconds: 1.0,
            pages_in,
            pages_out,
            values: BTreeMap::new(),
            verified: String::new(),
        }
    }

    #[test]
    fn both_systems_are_first_in_turns() {
        let first: Vec<Setting> = (2..6).map(|round| order(round)[0]).collect();
        use Setting::{Stock, Znsage};
        assert_eq!(first, [Znsage, Stock, Znsage, Stock]);
        assert_eq!(order(1)[0], Setting::Memory);
    }

    #[test]
    fn what_did_not_swap_is_no_result() {
        assert!(outcome(5, 5).run(Setting::Znsage, 1).is_ok());
        assert!(outcome(0, 0).run(Setting::Memory, 1).is_ok());
        for (pages_in, pages_out) in [(0, 0), (0, 9), (9, 0)] {
            let failed = outcome(pages_in, pages_out).run(Setting::Stock, 1).unwrap_err();
            assert!(failed.contains("did not swap on stock swap"), "{failed}");
        }
        assert!(outcome(1, 0).run(Setting::Memory, 1).is_err());
    }
}
