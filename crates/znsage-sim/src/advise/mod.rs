// SPDX-License-Identifier: GPL-2.0-only
//! Which settings of znsage suit a device and a workload.
//!
//! Each setting in turn is given every value that the system accepts, the
//! others staying; the best one is kept, and so on until none is better
//! (`search`). What was found runs again with several seeds, beside the default
//! settings and beside itself with one setting taken back; a setting whose gain
//! is not clear of the noise is taken back for good (`proof`). At last swap is
//! filled to the brim with less and more over-provisioning (`full`): that
//! decides how full it can get, and so how slow.

mod full;
mod proof;
mod runs;
mod scale;
mod search;
mod setting;

use std::fmt;

use crate::result::RunResult;
use crate::run::RunError;
use crate::spec::Spec;

pub use full::Full;
pub use proof::{Gain, SEEDS};
pub use runs::Progress;
pub use scale::Scaled;
pub use setting::{Choice, Setting, Where, SETTINGS};

/// What is to be best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Accesses or requests of the workload a second.
    Speed,
    /// The 99th percentile of page faults.
    Latency,
    /// Write amplification: how long the flash lasts.
    Wear,
}

/// What advice is wanted on.
#[derive(Clone, Debug)]
pub struct Question {
    /// Device, workload, machine; its settings of znsage are what is compared
    /// with.
    pub spec: Spec,
    /// What is to be best.
    pub goal: Goal,
    /// Runs that the search may take; the proof takes some dozens more.
    pub budget: usize,
    /// Runs at a time.
    pub jobs: usize,
}

/// What a run, or the mean of several, says about settings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Accesses or requests a second.
    pub operations_s: f64,
    /// Swapped in and out, 10^6 bytes a second.
    pub bandwidth_mb_s: f64,
    /// Write amplification.
    pub waf: f64,
    /// 99th percentile of page faults, microseconds.
    pub p99_us: f64,
    /// Times swap-out had no zone.
    pub stalls: f64,
    /// Swap space, percent of the device.
    pub space_percent: f64,
}

/// A value that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// The value, as the spec has it.
    pub value: String,
    /// By how many percent the goal is better or (negative) worse with it than
    /// with the advised one, by one seed; or why it cannot be.
    pub gain: Result<f64, String>,
}

/// What is advised for a setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Advised {
    /// Which one.
    pub setting: &'static Setting,
    /// Its value without advice.
    pub default: String,
    /// Its value with it.
    pub value: String,
    /// If it differs: what it brings, everything else being as advised; None
    /// if the default cannot be.
    pub gain: Option<Gain>,
    /// Mean of the runs with the default instead, everything else being as
    /// advised.
    pub without: Option<Measured>,
    /// The other values.
    pub tried: Vec<Tried>,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Advice {
    /// Why the default settings could not be compared with, and what was
    /// instead.
    pub instead: Option<String>,
    /// Each setting.
    pub settings: Vec<Advised>,
    /// As advised, but full, with several amounts of over-provisioning.
    pub full: Vec<Full>,
    /// With the default settings.
    pub before: Measured,
    /// With what is advised.
    pub after: Measured,
    /// What it brings; None if nothing is changed.
    pub gain: Option<Gain>,
    /// Standard deviation of the goal among seeds, percent of it.
    pub noise_percent: f64,
    /// Runs that were made.
    pub runs: usize,
    /// Seeds of the comparisons.
    pub seeds: Vec<u64>,
    /// The search ended with its budget; something better may not be seen.
    pub cut_short: bool,
}

/// Why there is no advice.
#[derive(Debug)]
pub enum AdviceError {
    /// What is asked about cannot be run.
    Run(RunError),
    /// It was stopped.
    Stopped,
    /// The simulator failed; the settings that did it.
    Panicked(String),
}

impl fmt::Display for AdviceError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            AdviceError::Run(e) => e.fmt(f),
            AdviceError::Stopped => f.write_str("interrupted"),
            AdviceError::Panicked(what) => write!(f, "the simulator failed with {what}"),
        }
    }
}

impl std::error::Error for AdviceError {}

impl From<RunError> for AdviceError {
    fn from(e: RunError) -> Self {
        AdviceError::Run(e)
    }
}

impl Measured {
    fn of(r: &RunResult) -> Self {
        Measured {
            operations_s: r.operations_s,
            bandwidth_mb_s: r.bandwidth_mb_s,
            waf: r.waf.total,
            p99_us: r.fault_latency.p99_us,
            stalls: r.counts.stalls as f64,
            space_percent: r.slots as f64 / r.capacity_blocks as f64 * 100.0,
        }
    }

    fn mean(all: &[Measured]) -> Self {
        let mean = |of: fn(&Measured) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        Measured {
            operations_s: mean(|m| m.operations_s),
            bandwidth_mb_s: mean(|m| m.bandwidth_mb_s),
            waf: mean(|m| m.waf),
            p99_us: mean(|m| m.p99_us),
            stalls: mean(|m| m.stalls),
            space_percent: mean(|m| m.space_percent),
        }
    }
}

impl Goal {
    /// The more the better.
    fn score(self, m: &Measured) -> f64 {
        // Nothing may have happened that takes time.
        const LEAST: f64 = 1e-3;
        match self {
            Goal::Speed => m.operations_s.max(LEAST),
            Goal::Latency => 1.0 / m.p99_us.max(LEAST),
            Goal::Wear => 1.0 / m.waf.max(LEAST),
        }
    }
}

/// Answers. Asks `stop` now and then whether to give up; `show` learns how far
/// it is.
///
/// # Errors
/// If what is asked about cannot be run, whatever the over-provisioning.
pub fn advise(
    question: &Question,
    stop: &mut dyn FnMut() -> bool,
    show: &mut dyn FnMut(Progress),
) -> Result<Advice, AdviceError> {
    let spec = &question.spec;
    let default = Choice::of(spec)?;
    let (start, instead) = search::start(spec, &default)?;
    let mut runs = runs::Runs::new(question, stop, show);
    let found = search::search(&mut runs, &start)?;
    let cut_short = found.cut_short;
    let proven = proof::prove(&mut runs, &start, found.best)?;
    if !cut_short {
        search::look_around(&mut runs, &proven.best)?;
    }
    let full = full::full(&mut runs, &proven.best)?;
    let settings = SETTINGS.iter().enumerate().map(|(i, setting)| {
        let without = proven.without.iter().find(|w| w.setting == i);
        Advised {
            setting,
            default: default.value(i).into(),
            value: proven.best.value(i).into(),
            gain: without.and_then(|w| w.gain),
            without: without.and_then(|w| w.mean),
            tried: runs.neighbours(&proven.best, i),
        }
    });
    Ok(Advice {
        instead,
        settings: settings.collect(),
        full,
        before: proven.before,
        after: proven.after,
        gain: proven.gain,
        noise_percent: proven.noise_percent,
        runs: runs.made(),
        seeds: runs.seeds().to_vec(),
        cut_short,
    })
}
