// SPDX-License-Identifier: GPL-2.0-only
//! Real programs: each in memory, and on each system in turns.

mod compile;
mod etc;
pub mod group;
mod load;
mod random;
mod redis;
mod resp;
mod script;
mod sort;

use std::path::Path;
use std::time::Instant;

use super::swap::{self, device, Swap};
use crate::files::{read, write_json};
use crate::model::System;
use crate::result::Result;
use crate::workloads::model::{
    select, select_systems, Comparison, Measured, Metric, Run, Setting, Workload, ZRAM_MEMORY,
};
use group::Disk;
use load::{Load, Outcome, Part};

pub fn run(out: &Path, workloads: &[String], systems: &[String], rounds: u32) -> Result<()> {
    let chosen = select(workloads)?;
    let systems = select_systems(systems)?;
    let kernel = read(Path::new("/proc/sys/kernel/osrelease"))?;
    let mut measured = Measured { kernel: kernel.trim().to_string(), ..Measured::default() };
    let area = swap::offered(&swap::device("ZNS0")?)?.size_bytes;
    let _disk = Disk::mount()?;
    for (i, &workload) in chosen.iter().enumerate() {
        eprintln!("[{} of {}] {}", i + 1, chosen.len(), workload.name());
        let start = Instant::now();
        // A workload that fails does not keep the others from being measured.
        match one(workload, out, area, &systems, rounds) {
            Ok(found) => measured.comparisons.extend(found),
            Err(message) => {
                eprintln!("  {message}");
                measured.problems.push(format!("{}: {message}", workload.name()));
            }
        }
        eprintln!("  {} took {:.0} s", workload.name(), start.elapsed().as_secs_f64());
    }
    write_json(&out.join("runs.json"), &measured)
}

fn one(
    workload: Workload,
    out: &Path,
    area: u64,
    systems: &[Setting],
    rounds: u32,
) -> Result<Vec<Comparison>> {
    let mut load: Box<dyn Load> = match workload {
        Workload::Etc => Box::new(etc::Etc::new(out)),
        Workload::Redis => Box::new(redis::Redis::start()?),
        Workload::Compile => Box::new(compile::Compile::new(out)?),
        Workload::Sort => Box::new(sort::Sort::new()?),
        _ => Box::new(script::Script::new(workload)?),
    };
    let parts = load.parts();
    let mut runs: Vec<Vec<Run>> = parts.iter().map(|_| Vec::new()).collect();
    for round in 1..=rounds {
        for setting in order(systems, round) {
            let outcomes = measure(load.as_mut(), setting, area)?;
            for ((part, outcome), runs) in parts.iter().zip(outcomes).zip(&mut runs) {
                eprintln!(
                    "  round {round} of {rounds}, {}: {}: {}",
                    setting.name(),
                    part.title,
                    summary(part, &outcome)
                );
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

/// In memory first and only once, as some workloads take their sizes from it. Every other
/// round has the systems in reverse.
fn order(systems: &[Setting], round: u32) -> Vec<Setting> {
    match round {
        1 => [&[Setting::Memory], systems].concat(),
        n if n % 2 == 0 => systems.iter().rev().copied().collect(),
        _ => systems.to_vec(),
    }
}

/// The setting's swap. Stock swap's area is as large as znsage's.
fn swap_on(setting: Setting, area: u64) -> Result<Option<Swap>> {
    let zns = |options: &[&str]| Swap::znsage(&device("ZNS0")?, options);
    Ok(Some(match setting {
        Setting::Memory => return Ok(None),
        Setting::Stock => Swap::on(System::Stock, area)?,
        Setting::Zswap => Swap::on(System::Stock, area)?.behind_zswap()?,
        Setting::Zram => Swap::zram(&device("CONV0")?, area, ZRAM_MEMORY)?,
        Setting::Znsage => Swap::on(System::Znsage, area)?,
        Setting::ZnsageLz4 => zns(&["--compress=lz4"])?,
        Setting::ZnsageZstd => zns(&["--compress=zstd"])?,
    }))
}

fn measure(load: &mut dyn Load, setting: Setting, area: u64) -> Result<Vec<Outcome>> {
    let swap = swap_on(setting, area)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_take_turns_in_being_first() {
        use Setting::{Memory, Stock, Znsage};
        let systems = [Stock, Znsage];
        let first: Vec<Setting> = (2..6).map(|round| order(&systems, round)[0]).collect();
        assert_eq!(first, [Znsage, Stock, Znsage, Stock]);
        assert_eq!(order(&systems, 1), [Memory, Stock, Znsage]);
    }
}
