// SPDX-License-Identifier: GPL-2.0-only
//! Scales a large device down, for a quick answer.
//!
//! Zones shrink; dies, speeds and limits stay. Write amplification depends on
//! utilization and on the number of zones, not on their size; a zone of some
//! dozens of MiB still holds many chunks.

use super::question::AdviceError;
use super::setting::params;
use crate::spec::{HostSpec, Spec};

/// Simulated capacity, bytes: a run takes a second or two.
const SIZE: u64 = 4 << 30;
/// Minimum zones, so that streams and watermarks take a small part of them.
const ZONES: u64 = 128;
/// Ratio of device size to memory, as by default: 64 GiB to 256 MiB.
const MEMORY: u64 = 256;

/// A scaled-down device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scaled {
    /// Zones that are simulated.
    pub zones: u64,
    /// Their capacity.
    pub zone_capacity: u64,
    /// Zones of the device.
    pub of_zones: u64,
    /// Their capacity.
    pub of_zone_capacity: u64,
    /// The host's memory.
    pub memory: u64,
}

impl Scaled {
    /// Scales down the device of a spec, and the memory if it has the default size.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn apply(spec: &mut Spec) -> Result<Option<Scaled>, AdviceError> {
        let params = params(spec)?;
        let Some(z) = &params.zoned else { return Ok(None) };
        let whole = u64::from(z.zones) * z.zone_capacity;
        if whole <= SIZE {
            spec.size = None;
            return Ok(None);
        }
        let unit = z.write_unit.max(z.max_append / z.write_unit * z.write_unit);
        let capacity = (SIZE / ZONES / unit * unit).max(unit).min(z.zone_capacity);
        let zones = SIZE / capacity;
        spec.size = Some(zones * capacity);
        if spec.host.memory == HostSpec::default().memory {
            spec.host.memory = SIZE / MEMORY;
        }
        if capacity != z.zone_capacity {
            spec.device_set.push(("zoned.zone_capacity".into(), capacity.to_string()));
        }
        Ok(Some(Scaled {
            zones,
            zone_capacity: capacity,
            of_zones: z.zones.into(),
            of_zone_capacity: z.zone_capacity,
            memory: spec.host.memory,
        }))
    }
}
