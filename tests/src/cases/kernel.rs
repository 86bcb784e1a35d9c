// SPDX-License-Identifier: GPL-2.0-only
//! The last cases: what all the others have done to the kernel.

use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::outcome::Outcome;

crate::cases![kernel: is_not_tainted];

/// Bits of /proc/sys/kernel/tainted that tell of damage. Others are there
/// because the module is not of the kernel's tree and not signed.
const DAMAGE: &[(u32, &str)] =
    &[(4, "machine check"), (5, "bad page"), (7, "oops"), (9, "warning"), (14, "soft lockup")];

/// The log was looked at after each case; this is what the kernel remembers,
/// even if the log should have been overwritten.
fn is_not_tainted(_: &mut Log) -> Outcome {
    let taint = guest::read_number("/proc/sys/kernel/tainted")?;
    let found: Vec<_> =
        DAMAGE.iter().filter(|(bit, _)| taint >> bit & 1 == 1).map(|(_, what)| *what).collect();
    ensure!(found.is_empty(), "the kernel is tainted: {}", found.join(", "));
    Ok(())
}
