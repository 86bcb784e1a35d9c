// SPDX-License-Identifier: GPL-2.0-only
//! Swap filled to the brim with different over-provisioning. At the same
//! number of pages over-provisioning changes little; but the less of it, the
//! fuller swap can get.

use super::question::{AdviceError, Measured};
use super::runs::Runs;
use super::setting::{values, Choice, SETTINGS};
use crate::run::check;
use crate::spec::Spec;

/// Swap space that is full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Full {
    /// Over-provisioning, percent of the device.
    pub over_provisioning: u32,
    /// Pages on the device, percent of its capacity.
    pub utilization: u32,
    /// Results.
    pub measured: Measured,
}

/// Fills swap with each over-provisioning worth trying. Not for a recording,
/// which determines how full swap gets.
pub(super) fn full(runs: &mut Runs, best: &Choice) -> Result<Vec<Full>, AdviceError> {
    if runs.spec().workload.is_from_file() {
        return Ok(Vec::new());
    }
    let key = "znsage.over-provisioning";
    let setting = SETTINGS.iter().position(|s| s.key == key).expect("it is one");
    let mut percents = values(runs.spec())?.swap_remove(setting);
    percents.push(best.value(setting).into());
    let mut percents: Vec<u32> = percents.iter().filter_map(|p| p.parse().ok()).collect();
    percents.sort_unstable();
    percents.dedup();
    let specs = percents.into_iter().filter_map(|percent| {
        let spec = best.with(setting, &percent.to_string()).spec(runs.spec(), runs.seed());
        fill(spec).map(|(utilization, spec)| ((percent, utilization), spec))
    });
    let specs = specs.collect();
    runs.doing = "filling swap";
    let measured = runs.others(specs)?;
    let full = |((over_provisioning, utilization), measured)| Full {
        over_provisioning,
        utilization,
        measured,
    };
    Ok(measured.into_iter().map(full).collect())
}

/// The spec with as many pages as there are slots.
fn fill(spec: Spec) -> Option<(u32, Spec)> {
    let full = |percent| Spec { utilization: f64::from(percent), ..spec.clone() };
    (1..=99).rev().map(|p| (p, full(p))).find(|(_, spec)| check(spec).is_ok())
}
