// SPDX-License-Identifier: GPL-2.0-only
//! The cases, in the order in which they run: what everything else needs
//! first.

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
mod shapes;
mod shortage;
mod statistics;
mod torture;
mod trace;
mod utilization;

use crate::runner::Case;

/// Devices that tests/run asks vm/run for.
pub mod devices {
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

/// What the names begin with of cases that say more of the engine and the
/// command, which are the same everywhere, than of the kernel. One of each kind
/// is not here.
const OF_NO_KERNEL: &[&str] = &[
    "utilization::percent_20",
    "utilization::percent_40",
    "utilization::percent_60",
    "utilization::percent_90",
    "trace::",
    "shapes::zones_of_4_mib",
    "shapes::large",
    "shapes::write_unit_192k",
    "shapes::policy_single",
    "shapes::one_open",
    "shapes::null_blk_capacity",
    "shapes::null_blk_conventional_zones",
    "shapes::null_blk_three_open",
    "privacy::padding",
    "privacy::on_the_device",
    "probe::one_open",
    "statistics::numbers_add_up",
    "command::",
    "faults::slow",
    "faults::somebody_else_writes",
    "errors::failed_appends",
];

/// For a kernel beside another one that has all of them.
pub fn brief() -> Vec<Case> {
    let mut cases = all();
    cases.retain(|case| !OF_NO_KERNEL.iter().any(|name| case.name.starts_with(name)));
    cases
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_left_out_are_of_cases() {
        for name in OF_NO_KERNEL {
            assert!(all().iter().any(|case| case.name.starts_with(name)), "{name}");
        }
        assert!(brief().len() > all().len() / 2);
    }
}
