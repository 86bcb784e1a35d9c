// SPDX-License-Identifier: GPL-2.0-only
//! Which settings of znsage suit a device and a workload.
//!
//! `search` tries every accepted value of each setting in turn and keeps the
//! best, until none is better. `proof` runs the result with several seeds,
//! against the defaults and against itself with one setting reverted, and
//! reverts settings whose gain is not clear of the noise. `verify` runs what is left on as
//! many zones as the device has, and withdraws it if it does not hold there. `full` fills swap to
//! the brim with less and more over-provisioning, which decides how full, and
//! so how slow, swap can get.

mod full;
mod proof;
mod question;
mod runs;
mod scale;
mod search;
mod setting;
mod verify;

pub use full::Full;
pub use proof::Gain;
pub use question::{AdviceError, Goal, Measured, Question, Tried};
pub use runs::{Progress, SEEDS};
pub use scale::quick;
pub use setting::{Choice, Setting, SETTINGS};
pub use verify::Verified;

/// Advice for one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Advised {
    /// Which one.
    pub setting: &'static Setting,
    /// Its default.
    pub default: String,
    /// The advised value.
    pub value: String,
    /// Gain over the default if it differs, everything else as advised; None if the
    /// default cannot run.
    pub gain: Option<Gain>,
    /// Mean with the default instead, everything else as advised.
    pub without: Option<Measured>,
    /// The other values.
    pub tried: Vec<Tried>,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Advice {
    /// Set if the default settings cannot run: why, and the baseline used instead.
    pub instead: Option<String>,
    /// Each setting.
    pub settings: Vec<Advised>,
    /// Full swap, with several amounts of over-provisioning.
    pub full: Vec<Full>,
    /// With the default settings.
    pub before: Measured,
    /// With what is advised.
    pub after: Measured,
    /// Gain over the baseline; None if nothing changes.
    pub gain: Option<Gain>,
    /// The advice on all zones of the device; None if nothing changes, or the search had
    /// all of them.
    pub verified: Option<Verified>,
    /// Standard deviation of the goal among seeds, percent of it.
    pub noise_percent: f64,
    /// Runs that were made.
    pub runs: usize,
    /// Seeds of the comparisons.
    pub seeds: Vec<u64>,
    /// The search ran out of budget and may have missed better settings.
    pub cut_short: bool,
}

/// Answers a question. Polls `stop`, and reports progress to `show`.
///
/// # Errors If the question cannot be run with any over-provisioning.
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
    let mut proven = proof::prove(&mut runs, &start, found.best)?;
    let verified = verify::verify(&mut runs, &start, &proven.best)?;
    if verified.is_some_and(|v| !v.holds) {
        proven = proof::prove(&mut runs, &start, start.clone())?;
    }
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
        verified,
        noise_percent: proven.noise_percent,
        runs: runs.made(),
        seeds: runs.seeds().to_vec(),
        cut_short,
    })
}
