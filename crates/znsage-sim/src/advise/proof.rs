// SPDX-License-Identifier: GPL-2.0-only
//! Is the result of the search better than chance?

use super::question::{AdviceError, Goal, Measured};
use super::runs::Runs;
use super::setting::{Choice, SETTINGS};
use crate::stats::{estimate, moments, percent};

/// A gain below this percentage is not worth a setting, however certain.
const WORTH: f64 = 1.0;

/// Gain in percent: the mean over the seeds, and its 95 % confidence interval.
/// Runs are compared seed by seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// The mean.
    pub percent: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Gain {
    /// Of runs over others with the same seeds; None of no runs.
    pub(super) fn of(goal: Goal, over: &[Measured], of: &[Measured]) -> Option<Gain> {
        let ratios = of.iter().zip(over).map(|(a, b)| libm::log(goal.score(a) / goal.score(b)));
        let of = estimate(&ratios.collect::<Vec<_>>())?;
        Some(Gain { percent: percent(of.mean), low: percent(of.low), high: percent(of.high) })
    }

    /// Is it clear of the noise, and large enough to matter?
    pub fn counts(&self) -> bool {
        self.low > 0.0 && self.percent >= WORTH
    }
}

/// The advice with one setting reverted.
pub(super) struct Without {
    pub setting: usize,
    /// None if that cannot run.
    pub gain: Option<Gain>,
    pub mean: Option<Measured>,
}

pub(super) struct Proven {
    pub best: Choice,
    pub before: Measured,
    pub after: Measured,
    pub gain: Option<Gain>,
    pub without: Vec<Without>,
    pub noise_percent: f64,
}

/// Reverts settings that do not help, and measures the gain of the rest.
pub(super) fn prove(
    runs: &mut Runs,
    start: &Choice,
    mut best: Choice,
) -> Result<Proven, AdviceError> {
    runs.doing = "comparing over several seeds";
    let without = loop {
        let changed = changed(start, &best);
        let one_back: Vec<Choice> = changed.iter().map(|&i| best.with(i, start.value(i))).collect();
        let all = [start, &best].into_iter().chain(&one_back);
        let wanted: Vec<_> =
            all.flat_map(|c| runs.seeds().iter().map(move |s| (c.clone(), *s))).collect();
        runs.make(&wanted)?;
        if best != *start && runs.all(&best).is_none() {
            // It gets stuck with some seed, so do not advise it.
            best = start.clone();
            continue;
        }
        let mean = |c: &Choice| runs.all(c).map(|all| Measured::mean(&all));
        if let (Some(was), Some(is)) = (mean(start), mean(&best)) {
            if best != *start && !runs.goal().allows(&is, &was) {
                best = start.clone();
                continue;
            }
        }
        let compare = |(&setting, back): (&usize, &Choice)| Without {
            setting,
            gain: gain(runs, &best, back),
            mean: runs.all(back).map(|all| Measured::mean(&all)),
        };
        let without: Vec<Without> = changed.iter().zip(&one_back).map(compare).collect();
        let idle = without.iter().filter(|w| w.gain.is_some_and(|g| !g.counts()));
        let least = idle.min_by(|a, b| {
            let percent = |w: &Without| w.gain.map_or(0.0, |g| g.percent);
            percent(a).total_cmp(&percent(b))
        });
        match least {
            // One at a time: two settings may have the same effect.
            Some(w) => best = best.with(w.setting, start.value(w.setting)),
            None => break without,
        }
    };
    let mean = |c: &Choice| runs.all(c).map(|all| Measured::mean(&all)).unwrap_or_default();
    Ok(Proven {
        before: mean(start),
        after: mean(&best),
        gain: (best != *start).then(|| gain(runs, &best, start)).flatten(),
        noise_percent: noise(runs, start),
        without,
        best,
    })
}

fn changed(start: &Choice, best: &Choice) -> Vec<usize> {
    (0..SETTINGS.len()).filter(|&i| start.value(i) != best.value(i)).collect()
}

/// Gain of `a` over `b`; None if one of them cannot run.
fn gain(runs: &Runs, a: &Choice, b: &Choice) -> Option<Gain> {
    Gain::of(runs.goal(), &runs.all(b)?, &runs.all(a)?)
}

fn noise(runs: &Runs, choice: &Choice) -> f64 {
    let Some(all) = runs.all(choice) else { return 0.0 };
    let logs: Vec<f64> = all.iter().map(|m| libm::log(runs.goal().score(m))).collect();
    percent(moments(&logs).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_or_doubtful_gains_do_not_count() {
        let gain = |percent, half| Gain { percent, low: percent - half, high: percent + half };
        assert!(gain(3.0, 1.0).counts());
        assert!(!gain(3.0, 4.0).counts(), "doubtful");
        assert!(!gain(0.9, 0.1).counts(), "small");
        assert!(!gain(-3.0, 1.0).counts(), "worse");
    }
}
