// SPDX-License-Identifier: GPL-2.0-only
//! The devices: flash media, and the SSDs that are built on it.
//!
//! A device is a *reservation model*. The caller submits commands in order of
//! virtual time, and each call returns the completion time at once: every
//! resource a command needs (controller, die, channel, link, write buffer)
//! knows until when it is busy. Devices have no events of their own, so a
//! command costs some tens of nanoseconds.
//!
//! Sizes are in blocks of 4 KiB.

mod check;
mod conventional;
mod curve;
mod faults;
mod flash;
mod jitter;
mod lane;
mod load;
pub mod params;
mod threaded;
mod types;
mod virtual_zones;
mod zns;
mod zns_plus;
mod zone_device;

pub use conventional::{superblock_bytes, ConventionalSsd};
pub use faults::FaultPlan;
pub use load::ParamError;
pub use params::Params;
pub use types::{
    Appended, DeviceCounters, Extent, Fault, FaultKind, ZoneInfo, ZoneState, ZonedGeometry,
};
pub use virtual_zones::VirtualZones;
pub use zns::ZnsSsd;
pub use zone_device::ZoneDevice;
