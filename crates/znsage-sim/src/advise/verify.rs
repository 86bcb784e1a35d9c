// SPDX-License-Identifier: GPL-2.0-only
//! Does the advice hold on the device's own number of zones?
//!
//! The search simulates a device that is small, and may have fewer zones than the real one.
//! Streams, watermarks, the reserve and open zones take some zones each, so that settings
//! weigh differently on many zones. So what is advised runs once more, against the
//! baseline, on as many zones as the device has.

use super::proof::Gain;
use super::question::{AdviceError, Measured};
use super::runs::Runs;
use super::setting::Choice;
use crate::scale;
use crate::spec::Spec;

/// Seeds of the comparison: such a run takes longer.
const SEEDS: usize = 3;

/// The advice on all zones of the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verified {
    /// How many zones that are.
    pub zones: u64,
    /// Gain over the baseline there; None if a run could not go on.
    pub gain: Option<Gain>,
    /// Does the advice hold there? If not, it is withdrawn.
    pub holds: bool,
}

/// Runs `best` against `start` on all zones of the device. None if the search already did,
/// or there is nothing to compare.
pub(super) fn verify(
    runs: &mut Runs,
    start: &Choice,
    best: &Choice,
) -> Result<Option<Verified>, AdviceError> {
    let Some((zones, whole)) = whole(runs.spec()).filter(|_| best != start) else {
        return Ok(None);
    };
    runs.doing = "verifying on all zones of the device";
    let seeds: Vec<u64> = runs.seeds().iter().copied().take(SEEDS).collect();
    let both = [(false, start), (true, best)];
    let one = |(which, choice): (bool, &Choice)| {
        let spec = &whole;
        seeds.iter().map(|s| ((which, *s), choice.spec(spec, *s))).collect::<Vec<_>>()
    };
    let measured = runs.others(both.into_iter().flat_map(one).collect())?;
    let of = |which: bool| -> Vec<Measured> {
        measured.iter().filter(|m| m.0 .0 == which).map(|m| m.1).collect()
    };
    let (was, is, goal) = (of(false), of(true), runs.goal());
    if was.len() != SEEDS || is.len() != SEEDS {
        return Ok(Some(Verified { zones, gain: None, holds: false }));
    }
    let gain = Gain::of(goal, &was, &is);
    let allowed = goal.allows(&Measured::mean(&is), &Measured::mean(&was));
    Ok(Some(Verified { zones, gain, holds: allowed && gain.is_some_and(|g| g.counts()) }))
}

/// The number of zones of a device that is simulated with fewer, and the spec with all of
/// them: zones stay as small, and memory grows with the device. None for a recording, whose
/// pages are as many on any device.
fn whole(spec: &Spec) -> Option<(u64, Spec)> {
    if spec.workload.is_from_file() {
        return None;
    }
    let scaled = scale::device(spec).ok()?.scaled.filter(|s| s.zones < s.of_zones)?;
    let mut whole = spec.clone();
    whole.size = Some(scaled.of_zones * scaled.zone_bytes);
    let memory = u128::from(spec.host.memory) * u128::from(scaled.of_zones);
    whole.host.memory = (memory / u128::from(scaled.zones)) as u64;
    Some((scaled.of_zones, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_zones_are_those_of_the_device() {
        let mut spec = Spec { device: "hynix".into(), size: Some(512 << 20), ..Spec::default() };
        spec.set("device.zoned.zones", "520").unwrap();
        spec.host.memory = 2 << 20;
        let (zones, all) = whole(&spec).unwrap();
        let scaled = scale::device(&all).unwrap().scaled.unwrap();
        assert_eq!((zones, scaled.zones, scaled.of_zones), (520, 520, 520));
        let few = scale::device(&spec).unwrap().scaled.unwrap();
        assert_eq!(scaled.zone_bytes, few.zone_bytes, "zones are no larger");
        let more = all.host.memory as f64 / spec.host.memory as f64;
        assert!((more - 520.0 / few.zones as f64).abs() < 0.01, "{more}");
        // A ZN540 has all of its zones even on 4 GiB.
        let spec = Spec { device: "zn540".into(), size: Some(4 << 30), ..Spec::default() };
        assert!(whole(&spec).is_none());
    }
}
