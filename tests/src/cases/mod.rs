// SPDX-License-Identifier: GPL-2.0-only
//! The cases, in the order in which they run: the basics come first.

mod block;
mod command;
mod control;
mod errors;
mod faults;
mod hibernation;
mod isolation;
mod kernel;
mod lifecycle;
mod policy;
mod pressure;
mod privacy;
mod probe;
mod process;
mod refusals;
mod scsi;
mod shapes;
mod shortage;
mod statistics;
mod torture;
mod trace;
mod utilization;

use crate::runner::Case;

/// The devices of the machine that tests/run starts.
pub mod devices {
    /// 128 MiB, zones of 128 KiB, no limits on open zones. Large devices have as many zones
    /// (1024): empty and open ones are a small part of the device.
    pub const MAIN: &str = "ZNS0";
    /// 64 MiB, blocks of 512 bytes, zones of 1 MiB with a capacity of 896 KiB, at most 4
    /// open or active.
    pub const TIGHT: &str = "ZNS1";
    /// 256 MiB, zones of 4 MiB.
    pub const MEDIUM: &str = "ZNS2";
    /// 1 GiB, zones of 64 MiB.
    pub const LARGE: &str = "ZNS3";
    /// 64 MiB, zones of 512 KiB, at most one open or active.
    pub const ONE_OPEN: &str = "ZNS4";
    /// 256 MiB, conventional.
    pub const CONVENTIONAL: &str = "CONV0";
}

pub fn all() -> Vec<Case> {
    [
        lifecycle::CASES,
        utilization::CASES,
        trace::CASES,
        process::CASES,
        policy::CASES,
        isolation::CASES,
        block::CASES,
        shapes::CASES,
        scsi::CASES,
        privacy::CASES,
        probe::CASES,
        statistics::CASES,
        command::CASES,
        control::CASES,
        errors::CASES,
        faults::CASES,
        shortage::CASES,
        pressure::CASES,
        hibernation::CASES,
        torture::CASES,
        refusals::CASES,
        kernel::CASES,
    ]
    .concat()
}
