// SPDX-License-Identifier: GPL-2.0-only
//! The settings and their values.

use super::question::AdviceError;
use crate::device::params::Interface;
use crate::device::Params;
use crate::scale::{self, Device};
use crate::spec::{PlacementKind, Spec, SpecError};
use crate::system::znsage::default_chunk;
use crate::time::{BLOCK, MS};

/// A setting.
#[derive(Debug)]
pub struct Setting {
    /// Its key in the spec.
    pub key: &'static str,
    /// The option of `znsage on`.
    pub option: &'static str,
    /// Values worth trying on a device, as in the spec; some may turn out impossible.
    values: fn(&Params) -> Vec<String>,
}

impl PartialEq for Setting {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

/// All settings, in the order tried: the first interact most with the others.
pub const SETTINGS: [Setting; 8] = [
    Setting { key: "znsage.policy", option: "--policy", values: policies },
    Setting { key: "znsage.chunk", option: "--chunk", values: chunks },
    Setting { key: "znsage.stripe", option: "--stripe", values: |_| texts([0, 1, 2, 4]) },
    Setting {
        key: "znsage.over-provisioning",
        option: "--over-provisioning",
        values: |_| texts([7, 12, 20, 28]),
    },
    Setting { key: "znsage.reserve", option: "--reserve", values: |_| texts([1, 2, 4]) },
    // The defaults of the watermarks, 0, are a few zones above the reserve
    // (engine/policy.c).
    Setting { key: "znsage.gc-low", option: "--gc-low", values: |_| texts([0, 5, 8]) },
    Setting { key: "znsage.gc-high", option: "--gc-high", values: |_| texts([0, 6, 12]) },
    Setting {
        key: "znsage.deadline",
        option: "--deadline",
        values: |_| texts([MS, 5 * MS, 20 * MS]),
    },
];

fn texts<T: ToString, const N: usize>(all: [T; N]) -> Vec<String> {
    all.iter().map(T::to_string).collect()
}

/// Those that the module has.
fn policies(_: &Params) -> Vec<String> {
    use PlacementKind::{Cgroup, Cpu, Heat, Single};
    [Single, Cpu, Cgroup, Heat].map(|p| p.to_string()).to_vec()
}

/// Doublings of the write unit, from 16 KiB to the device's limit.
fn chunks(params: &Params) -> Vec<String> {
    const LEAST: u64 = 16 << 10;
    let Some(z) = &params.zoned else { return Vec::new() };
    let doublings = std::iter::successors(Some(z.write_unit), |n| Some(n * 2));
    let most = z.max_append.min(z.zone_capacity);
    doublings
        .skip_while(|n| *n < LEAST.min(most))
        .take_while(|n| *n <= most)
        .map(|n| n.to_string())
        .collect()
}

/// A value for each setting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Choice(Vec<String>);

impl Choice {
    /// The values in a spec; a default chunk is given by its size.
    pub(super) fn of(spec: &Spec) -> Result<Choice, AdviceError> {
        let doc = serde_json::to_value(spec).expect("a spec is JSON");
        let value = |s: &Setting| {
            let found = s.key.split('.').try_fold(&doc, |doc, name| doc.get(name));
            match found.expect("every setting is a key of the spec") {
                serde_json::Value::String(text) => text.clone(),
                other => other.to_string(),
            }
        };
        let mut choice = Choice(SETTINGS.iter().map(value).collect());
        // Show 12.0 as 12.
        for value in &mut choice.0 {
            if let Some(whole) = value.strip_suffix(".0") {
                *value = whole.into();
            }
        }
        let chunk = SETTINGS.iter().position(|s| s.key == "znsage.chunk").expect("it is one");
        if choice.0[chunk] == "0" {
            let params = device(spec)?.params;
            if let Some(z) = &params.zoned {
                let blocks = |bytes: u64| (bytes / BLOCK) as u32;
                let most = blocks(z.max_append.min(z.zone_capacity));
                let default = default_chunk(blocks(z.write_unit), most);
                choice.0[chunk] = (u64::from(default) * BLOCK).to_string();
            }
        }
        Ok(choice)
    }

    /// The value of a setting.
    pub fn value(&self, setting: usize) -> &str {
        &self.0[setting]
    }

    /// A copy with another value.
    pub(super) fn with(&self, setting: usize, value: &str) -> Choice {
        let mut choice = self.clone();
        choice.0[setting] = value.into();
        choice
    }

    /// The spec with these settings and a seed.
    pub(super) fn spec(&self, spec: &Spec, seed: u64) -> Spec {
        let mut spec = Spec { seed, ..spec.clone() };
        for (setting, value) in SETTINGS.iter().zip(&self.0) {
            spec.set(setting.key, value).expect("values are of the setting's kind");
        }
        spec
    }
}

/// The device of a spec, as it is simulated; it must have zones.
pub(super) fn device(spec: &Spec) -> Result<Device, AdviceError> {
    let device = scale::device(spec).map_err(|e| AdviceError::Run(e.into()))?;
    if device.params.interface == Interface::Zoned {
        return Ok(device);
    }
    let what = "advice needs a zoned one".into();
    Err(AdviceError::Run(SpecError { key: "device".into(), what }.into()))
}

/// Values worth trying, for each setting.
pub(super) fn values(spec: &Spec) -> Result<Vec<Vec<String>>, AdviceError> {
    let params = device(spec)?.params;
    Ok(SETTINGS.iter().map(|s| (s.values)(&params)).collect())
}
