// SPDX-License-Identifier: GPL-2.0-only
//! The size at which advice is searched.

use super::question::AdviceError;
use super::setting::device;
use crate::spec::{HostSpec, Spec};

/// Simulated capacity, bytes: a run takes a second or two.
const SIZE: u64 = 4 << 30;
/// Ratio of device size to memory, as by default: 64 GiB to 256 MiB.
const MEMORY: u64 = 256;

/// Gives a spec the size of a quick run, if its device is larger, and the memory that
/// belongs to it, unless the spec has one.
///
/// # Errors
/// If there is no such device, or it has no zones.
pub fn quick(spec: &mut Spec) -> Result<(), AdviceError> {
    let whole = Spec { size: None, ..spec.clone() };
    let Some(z) = device(&whole)?.params.zoned else { return Ok(()) };
    let whole = u64::from(z.zones) * z.zone_capacity;
    spec.size = (whole > SIZE).then_some(SIZE);
    if spec.size.is_some() && spec.host.memory == HostSpec::default().memory {
        spec.host.memory = SIZE / MEMORY;
    }
    Ok(())
}
