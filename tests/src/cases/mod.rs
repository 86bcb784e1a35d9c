// SPDX-License-Identifier: GPL-2.0-only
//! The cases, in the order in which they run: what everything else needs
//! first.

mod block;
mod control;
mod errors;
mod faults;
mod hibernation;
mod isolation;
mod kernel;
mod lifecycle;
mod policy;
mod privacy;
mod process;
mod refusals;
mod shapes;
mod statistics;
mod trace;
mod utilization;

use crate::runner::Case;

/// Devices that tests/run asks vm/run for.
mod devices {
    /// 128 MiB, zones of 128 KiB, no limits. With 1024 zones, as many as large
    /// devices have, those that are kept empty or open take little of it.
    pub const MAIN: &str = "ZNS0";
    /// 64 MiB, blocks of 512 bytes, zones of 1 MiB of which 896 KiB can be
    /// used, 4 open and active.
    pub const TIGHT: &str = "ZNS1";
    /// 256 MiB, zones of 4 MiB.
    pub const MEDIUM: &str = "ZNS2";
    /// 1 GiB, zones of 64 MiB.
    pub const LARGE: &str = "ZNS3";
    /// 64 MiB, zones of 512 KiB, of which one can be open or active.
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
        privacy::CASES,
        statistics::CASES,
        control::CASES,
        errors::CASES,
        faults::CASES,
        hibernation::CASES,
        refusals::CASES,
        kernel::CASES,
    ]
    .concat()
}
