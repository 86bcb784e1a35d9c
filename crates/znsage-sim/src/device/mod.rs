// SPDX-License-Identifier: GPL-2.0-only
//! The devices: flash media, and the SSDs that are built on it.
//!
//! A device is a *reservation model*. A command is submitted at a virtual time
//! that is never earlier than that of the command before, and the call answers
//! at once with the time at which the command completes: every resource it
//! needs (the controller, a die, a channel, the link to the host, room in the
//! write buffer) knows until when it is taken. Devices have no events of their
//! own, which makes a command cheap: some tens of nanoseconds.
//!
//! All sizes are in blocks of a page, 4 KiB.

mod check;
mod conventional;
mod curve;
mod faults;
mod flash;
mod lane;
mod load;
pub mod params;
mod threaded;
mod types;
mod zns;
mod zns_plus;

pub use conventional::ConventionalSsd;
pub use faults::FaultPlan;
pub use load::ParamError;
pub use params::Params;
pub use types::{
    Appended, DeviceCounters, Extent, Fault, FaultKind, ZoneInfo, ZoneState, ZonedGeometry,
};
pub use zns::ZnsSsd;
