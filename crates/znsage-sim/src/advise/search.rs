// SPDX-License-Identifier: GPL-2.0-only
//! Coordinate descent: a setting at a time.

use super::question::AdviceError;
use super::runs::Runs;
use super::setting::{values, Choice, SETTINGS};
use crate::run::{check, RunError};
use crate::spec::Spec;

/// Minimum improvement; below it the search would follow noise.
const STEP: f64 = 1.003;
/// Most rounds through all settings. Usually the second changes nothing.
const ROUNDS: usize = 4;

/// Where the search ended.
pub(super) struct Found {
    pub best: Choice,
    pub cut_short: bool,
}

/// The start of the search: the default settings; or, if their
/// over-provisioning leaves too few slots, the largest possible one, and why.
pub(super) fn start(
    spec: &Spec,
    default: &Choice,
) -> Result<(Choice, Option<String>), AdviceError> {
    let possible = |c: &Choice| check(&c.spec(spec, spec.seed));
    let why = match possible(default) {
        Ok(()) => return Ok((default.clone(), None)),
        Err(RunError::Spec(e)) if e.key == "utilization" => e,
        Err(e) => return Err(e.into()),
    };
    let key = "znsage.over-provisioning";
    let setting = SETTINGS.iter().position(|s| s.key == key).expect("it is one");
    let percents = (0..=90).rev().map(|percent: u32| default.with(setting, &percent.to_string()));
    let most = percents.into_iter().find(|c| possible(c).is_ok());
    let Some(most) = most else { return Err(RunError::Spec(why).into()) };
    let instead = format!(
        "over-provisioning of {} % does not leave enough slots; compared with {} %",
        default.value(setting),
        most.value(setting)
    );
    Ok((most, Some(instead)))
}

/// Searches from `start`.
pub(super) fn search(runs: &mut Runs, start: &Choice) -> Result<Found, AdviceError> {
    let values = values(runs.spec())?;
    let mut best = start.clone();
    runs.look(vec![best.clone()])?;
    if let Some(Err(why)) = runs.get(&best, runs.seed()) {
        let what = format!("it cannot be run with the default settings: {why}");
        let key = "workload".into();
        return Err(RunError::Spec(crate::spec::SpecError { key, what }).into());
    }
    for _ in 0..ROUNDS {
        let before = best.clone();
        for (setting, values) in values.iter().enumerate() {
            let others: Vec<Choice> = values.iter().map(|v| best.with(setting, v)).collect();
            if !runs.affords(runs.unknown(&others)) {
                return Ok(Found { best, cut_short: true });
            }
            runs.look(others.clone())?;
            let now = runs.score(&best).expect("it ran");
            let scores =
                others.into_iter().filter_map(|c| Some((runs.allowed_score(&c, start)?, c)));
            let top = scores.max_by(|a, b| a.0.total_cmp(&b.0));
            if let Some((_, choice)) = top.filter(|(score, _)| *score > now * STEP) {
                best = choice;
            }
        }
        if best == before {
            break;
        }
    }
    Ok(Found { best, cut_short: false })
}

/// Measures every value of each setting around the advice, as the proof may
/// have reverted settings.
pub(super) fn look_around(runs: &mut Runs, best: &Choice) -> Result<(), AdviceError> {
    let values = values(runs.spec())?;
    let others =
        values.iter().enumerate().flat_map(|(i, values)| values.iter().map(move |v| (i, v)));
    let mut wanted: Vec<Choice> = others.map(|(i, value)| best.with(i, value)).collect();
    wanted.push(best.clone());
    runs.doing = "looking at what is next to it";
    runs.look(wanted)
}
