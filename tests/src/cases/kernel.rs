// SPDX-License-Identifier: GPL-2.0-only
//! The last cases: what all the others have done to the kernel.

use std::path::Path;

use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::outcome::{Context, Outcome};

pub const KMEMLEAK: &str = "/sys/kernel/debug/kmemleak";

crate::cases![kernel: is_not_tainted, has_no_leaks, still_proves_locks];

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

/// Functions that lose memory by themselves: the kernel's (6.12) forgets the name of
/// a cache that it has no memory to show in sysfs, as when `shortage::attach` has such an
/// allocation fail.
const KNOWN_LEAKS: &[&str] = &["sysfs_slab_add"];

/// The reports of kmemleak but for those of what is known.
fn unknown_leaks(reports: &str) -> String {
    const BEGINS: &str = "unreferenced object";
    let each = reports.split(BEGINS).filter(|report| !report.trim().is_empty());
    let unknown = each.filter(|report| !KNOWN_LEAKS.iter().any(|known| report.contains(known)));
    unknown.map(|report| format!("{BEGINS}{report}")).collect()
}

/// Of kernels that search for memory to which nothing points (make test-debug).
fn has_no_leaks(log: &mut Log) -> Outcome {
    if !Path::new(KMEMLEAK).exists() {
        return Ok(());
    }
    // It says how many there are, known ones, too.
    log.allow("kmemleak");
    // What was freed by RCU a moment ago, or is in a register, looks like a
    // leak to one scan, and not to the next.
    for _ in 0..3 {
        guest::write(KMEMLEAK, "scan").context(KMEMLEAK)?;
    }
    let leaks = unknown_leaks(&guest::read(KMEMLEAK)?);
    ensure!(leaks.is_empty(), "kmemleak found:\n{leaks}");
    Ok(())
}

/// Lockdep gives up for good at its first complaint, and when it runs out of
/// room: what came later was not checked.
fn still_proves_locks(_: &mut Log) -> Outcome {
    const STATISTICS: &str = "/proc/lockdep_stats";
    if !Path::new(STATISTICS).exists() {
        return Ok(());
    }
    let statistics = guest::read(STATISTICS)?;
    let on = statistics
        .lines()
        .find_map(|line| line.trim().strip_prefix("debug_locks:"))
        .is_some_and(|value| value.trim() == "1");
    ensure!(on, "lockdep has given up:\n{statistics}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_leaks_hide_no_others() {
        let known = "unreferenced object 0x1:\n  bioset_init\n  sysfs_slab_add+0x1\n";
        let other = "unreferenced object 0x2:\n  bioset_init+0x1\n";
        assert_eq!(unknown_leaks(known), "");
        assert_eq!(unknown_leaks(&format!("{known}{other}{known}")), other);
        assert_eq!(unknown_leaks(""), "");
    }
}
