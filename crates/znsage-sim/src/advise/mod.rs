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
mod question;
mod runs;
mod scale;
mod search;
mod setting;

pub use full::Full;
pub use proof::Gain;
pub use question::{AdviceError, Goal, Measured, Question, Tried};
pub use runs::{Progress, SEEDS};
pub use scale::Scaled;
pub use setting::{Choice, Setting, Where, SETTINGS};

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
