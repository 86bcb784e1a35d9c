// SPDX-License-Identifier: GPL-2.0-only
//! A small device instead of a large one, so that there is an answer soon.
//!
//! Zones become smaller, the number of dies, the speeds, and the limits stay.
//! Write amplification depends on which share of the device is in use and on
//! how many zones there are to choose from, not on its size; a zone of some
//! dozens of MiB still holds many chunks.

use super::question::AdviceError;
use super::setting::params;
use crate::spec::{HostSpec, Spec};

/// What is simulated, in bytes of capacity: a run takes a second or two.
const SIZE: u64 = 4 << 30;
/// So many zones there are at least: a few streams and the watermarks must not
/// take a large part of them.
const ZONES: u64 = 128;
/// The host's memory is that part of the device, as by default: 256 MiB of
/// 64 GiB.
const MEMORY: u64 = 256;

/// A device that is smaller than the one it stands for.
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
    /// Makes the device of a spec smaller, and the memory with it unless another
    /// than the default was asked for.
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
