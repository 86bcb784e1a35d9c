// SPDX-License-Identifier: GPL-2.0-only
//! Samples of the machine: the data of `znsage status`, the zones of the displayed
//! device, and the cgroups.

use std::time::Duration;

use super::groups::{Group, Tree};
use super::map::{Map, Reader};
use super::rates::Seen;
use crate::details;
use crate::error::Result;
use crate::sys::Sys;

#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Time since the start.
    pub at: Duration,
    pub devices: Vec<Seen>,
    /// Zones of the displayed device.
    pub map: Map,
    /// None without cgroup v2.
    pub groups: Option<Vec<Group>>,
}

/// Takes samples, and caches what need not be read every time.
pub struct Eye<'a> {
    sys: &'a dyn Sys,
    zones: Reader,
    tree: Tree,
}

impl<'a> Eye<'a> {
    pub fn new(sys: &'a dyn Sys) -> Self {
        Eye { sys, zones: Reader::default(), tree: Tree::default() }
    }

    /// Samples all devices, with the details of one.
    pub fn look(&mut self, device: &str, at: Duration) -> Result<Sample> {
        let devices: Vec<Seen> = details::all(self.sys)?
            .into_iter()
            .map(|(device, details)| Seen { device, details })
            .collect();
        let close = devices.iter().find(|d| d.device.name == device);
        let mut sample = Sample { at, ..Sample::default() };
        if let Some(Seen { device, .. }) = close {
            sample.map = self.zones.read(self.sys, device, at);
            sample.groups = self.tree.read(self.sys, &device.name);
        }
        sample.devices = devices;
        Ok(sample)
    }
}
