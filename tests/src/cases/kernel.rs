// SPDX-License-Identifier: GPL-2.0-only
//! The last cases: the state of the kernel after all others.

use std::path::Path;

use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::outcome::{Context, Outcome};

pub const KMEMLEAK: &str = "/sys/kernel/debug/kmemleak";

crate::cases![kernel: is_not_tainted (each), has_no_leaks (each), still_proves_locks (each)];

/// Bits of /proc/sys/kernel/tainted that mean damage. Other bits are set because the module is
/// out of tree and unsigned.
const DAMAGE: &[(u32, &str)] =
    &[(4, "machine check"), (5, "bad page"), (7, "oops"), (9, "warning"), (14, "soft lockup")];

/// The log was checked after each case. This flag remembers even if the log was overwritten.
fn is_not_tainted(_: &mut Log) -> Outcome {
    let taint = guest::read_number("/proc/sys/kernel/tainted")?;
    let found: Vec<_> =
        DAMAGE.iter().filter(|(bit, _)| taint >> bit & 1 == 1).map(|(_, what)| *what).collect();
    ensure!(found.is_empty(), "the kernel is tainted: {}", found.join(", "));
    Ok(())
}

/// Functions that leak memory themselves: when sysfs_slab_add() of 6.12 fails to allocate, as
/// in `shortage::attach`, it leaks the name of the cache.
const KNOWN_LEAKS: &[&str] = &["sysfs_slab_add"];

/// The reports of kmemleak without those of known leaks.
fn unknown_leaks(reports: &str) -> String {
    const BEGINS: &str = "unreferenced object";
    let each = reports.split(BEGINS).filter(|report| !report.trim().is_empty());
    let unknown = each.filter(|report| !KNOWN_LEAKS.iter().any(|known| report.contains(known)));
    unknown.map(|report| format!("{BEGINS}{report}")).collect()
}

/// On kernels with kmemleak (make test-debug).
fn has_no_leaks(log: &mut Log) -> Outcome {
    if !Path::new(KMEMLEAK).exists() {
        return Ok(());
    }
    // It logs a number that includes known leaks.
    log.allow("kmemleak");
    // Memory that RCU has just freed, or whose address is in a register, looks like a leak to
    // one scan but not to the next.
    for _ in 0..3 {
        guest::write(KMEMLEAK, "scan").context(KMEMLEAK)?;
    }
    let leaks = unknown_leaks(&guest::read(KMEMLEAK)?);
    ensure!(leaks.is_empty(), "kmemleak found:\n{leaks}");
    Ok(())
}

/// Lockdep turns itself off at its first complaint and when it runs out of memory, and checks
/// nothing afterwards.
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
