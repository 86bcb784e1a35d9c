// SPDX-License-Identifier: GPL-2.0-only
//! One look at the machine: what `znsage status` reads, the zones of the
//! device that is shown, and the cgroups.

use std::time::Duration;

use super::groups::{Group, Tree};
use super::map::{Map, Reader};
use super::rates::Seen;
use crate::error::Result;
use crate::status;
use crate::sys::Sys;

#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Since the start.
    pub at: Duration,
    pub devices: Vec<Seen>,
    /// Of the device that is looked at.
    pub map: Map,
    /// None without cgroup v2.
    pub groups: Option<Vec<Group>>,
}

/// Looks, and remembers what need not be looked at every time.
pub struct Eye<'a> {
    sys: &'a dyn Sys,
    zones: Reader,
    tree: Tree,
}

impl<'a> Eye<'a> {
    pub fn new(sys: &'a dyn Sys) -> Self {
        Eye { sys, zones: Reader::default(), tree: Tree::default() }
    }

    /// Looks at all devices, and more closely at one of them, if it is there.
    pub fn look(&mut self, device: &str, at: Duration) -> Result<Sample> {
        let devices: Vec<Seen> = status::devices(self.sys)?
            .into_iter()
            .map(|(device, details)| Seen { device, details })
            .collect();
        let close = devices.iter().find(|d| d.device.name == device);
        let mut sample = Sample { at, ..Sample::default() };
        if let Some(Seen { device, details }) = close {
            sample.map = self.zones.read(self.sys, &device.name, details, at);
            sample.groups = self.tree.read(self.sys, &device.name);
        }
        sample.devices = devices;
        Ok(sample)
    }
}
