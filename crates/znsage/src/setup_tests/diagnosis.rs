// SPDX-License-Identifier: GPL-2.0-only
//! `doctor`: for each thing that can be wrong, what it says.

use super::machine::*;
use crate::doctor::Level::{self, Note, Ok, Problem};
use crate::sys::fake::Fake;
use crate::sys::Sys;

fn healthy() -> Fake {
    let fake = machine();
    well(&fake);
    fake
}

fn healthy_on() -> Fake {
    let fake = healthy();
    turn_on(&fake, &["--priority", "10"]).unwrap();
    fake.put("/sys/module/znsage/version", concat!(env!("CARGO_PKG_VERSION"), "\n"));
    fake
}

#[test]
fn a_machine_in_good_order_is_well() {
    for fake in [healthy(), healthy_on()] {
        let report = run_doctor(&fake);
        let text = report.to_text();
        assert_eq!(report.problems(), 0, "{text}");
        assert!(report.findings.iter().all(|f| f.level == Ok), "{text}");
        assert!(text.ends_with("all is well\n"), "{text}");
        assert_eq!(report.to_json()["ok"], true);
    }
}

/// A way in which a machine is not well: what is found, and a part of what is
/// said about it. `hint` is a part of what to do.
struct Case {
    on: bool,
    spoil: fn(&Fake),
    check: &'static str,
    level: Level,
    says: &'static str,
    hint: &'static str,
}

const fn case(
    on: bool,
    spoil: fn(&Fake),
    check: &'static str,
    level: Level,
    says: &'static str,
    hint: &'static str,
) -> Case {
    Case { on, spoil, check, level, says, hint }
}

fn add_swap(fake: &Fake, line: &str) {
    let areas = fake.read("/proc/swaps").unwrap();
    fake.put("/proc/swaps", &format!("{areas}{line}\n"));
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    case(false, |f| f.put("/boot/config-6.12.0-test", "# CONFIG_BLK_DEV_ZONED is not set\n"),
        "kernel", Problem, "without CONFIG_BLK_DEV_ZONED", "Debian's"),
    case(false, |f| f.remove("/lib/modules/6.12.0-test/modules.dep"),
        "module", Problem, "is not installed for kernel 6.12.0-test", "build it for"),
    case(true, |f| f.put("/sys/module/znsage/version", "0.0.9\n"),
        "module", Problem, "loaded, version 0.0.9; the command is", "`znsage off` and"),
    case(true, |f| f.remove("/sys/module/znsage/version"),
        "module", Note, "tells no version", "of version"),
    case(false, |f| f.remove("/lib/modules/6.12.0-test/build"),
        "headers", Note, "no kernel headers for 6.12.0-test", "linux-headers-6.12.0-test"),
    case(false, |f| f.remove("/usr/sbin/mkswap"),
        "tools", Problem, "there is no mkswap", "util-linux"),
    case(false, |f| f.put("/proc/mounts", ""),
        "cgroup", Note, "cgroup v2 is not mounted", "unified_cgroup_hierarchy"),
    case(true, |f| {
            f.put("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
            f.put("/sys/block/znsage0/znsage/policy", "cgroup\n");
        },
        "cgroup", Problem, "no controller io; znsage0 has the policy cgroup", "boot with"),
    case(false, |f| f.put("/sys/block/nvme1n1/queue/zoned", "none\n"),
        "device", Problem, "no zoned block device", "null_blk"),
    case(false, |f| f.put("/sys/block/nvme1n1/ro", "1\n"),
        "device", Problem, "/dev/nvme1n1 is read-only", ""),
    case(false, |f| f.root_user.set(false),
        "device", Note, "/dev/nvme1n1: only root can tell", "sudo"),
    case(false, |f| f.put("/sys/devices/system/cpu/possible", "0-63\n"),
        "limits", Note, "up to 12 streams for 64 CPUs", "share"),
    case(false, |f| f.put("/sys/block/nvme1n1/queue/zone_append_max_bytes", "65536\n"),
        "limits", Note, "appends of 64 KiB: less than", "128 KiB are best"),
    case(false, |f| f.put("/etc/znsage.conf", "[a]\ndevice = /dev/nvme1n1\nsise = 8G\n"),
        "settings", Problem, "/etc/znsage.conf:3: there is no key `sise`", "the nearest is `size`"),
    case(false, |f| f.put("/proc/sys/vm/swappiness", "0\n"),
        "swappiness", Note, "vm.swappiness is 0", "sysctl vm.swappiness=60"),
    case(false, |f| f.remove("/proc/sys/vm/swappiness"),
        "swappiness", Problem, "does not swap", "CONFIG_SWAP"),
    case(false, |f| {
            f.put("/sys/module/zswap/parameters/enabled", "Y\n");
            f.put("/sys/module/zswap/parameters/max_pool_percent", "20\n");
        },
        "zswap", Note, "up to 20 % of memory", "echo N"),
    case(false, |f| add_swap(f, "/dev/sda2 partition 1000 0 -2"),
        "swap", Note, "/dev/sda2 has priority -2", "fills first"),
    case(true, |f| add_swap(f, "/dev/zram0 partition 1000 0 100"),
        "swap", Note, "/dev/zram0 has priority 100: fills before /dev/znsage0", "--priority"),
    case(true, |f| add_swap(f, "/dev/sda2 partition 1000 0 10"),
        "swap", Note, "in turn", "--priority"),
    case(true, |f| f.put("/proc/swaps", NO_SWAP),
        "swap", Problem, "/dev/znsage0 is on but not used as swap", "swapon /dev/znsage0"),
    case(false, |f| {
            f.put_link("/sys/dev/block/8:2", "/sys/block/sda2");
            f.put_dir("/sys/block/sda2");
            f.put("/sys/power/resume", "8:2\n");
        },
        "hibernation", Note, "/sys/power/resume is 8:2", "before hibernating"),
    case(false, |f| f.put("/sys/power/resume", "259:1\n"),
        "hibernation", Problem, "looks for a hibernated system", "name a swap area"),
    case(true, |f| f.put("/sys/block/nvme1n1/queue/scheduler", SCHEDULERS),
        "scheduler", Note, "nvme1n1 has mq-deadline", "echo none"),
    case(true, |f| f.put("/sys/block/znsage0/znsage/write_errors", "2\n"),
        "health", Problem, "znsage0: write errors: 2", "smartctl"),
    case(true, |f| f.put("/sys/block/znsage0/znsage/chunks", "many\n"),
        "health", Problem, "chunks holds `many`", "same version"),
];

#[test]
fn every_ailment_is_found_and_told_what_to_do_about() {
    for case in CASES {
        let fake = if case.on { healthy_on() } else { healthy() };
        (case.spoil)(&fake);
        let report = run_doctor(&fake);
        let text = report.to_text();
        let found = report.findings.iter().find(|f| f.check == case.check && f.level != Ok);
        let found = found.unwrap_or_else(|| panic!("{}, {}:\n{text}", case.check, case.says));
        assert_eq!(found.level, case.level, "{text}");
        assert!(found.message.contains(case.says), "{}:\n{text}", case.says);
        let hint = found.hint.as_deref().unwrap_or_default();
        assert!(hint.contains(case.hint), "{}:\n{text}", case.hint);
        let problems = usize::from(case.level == Problem);
        assert!(report.problems() >= problems, "{text}");
        assert_eq!(report.to_json()["ok"], report.problems() == 0);
        let last = text.lines().last().unwrap();
        assert!(last.contains("problem"), "{text}");
    }
}

/// Each check has a case above, or it is not known whether it sees anything.
#[test]
fn no_check_is_blind() {
    for finding in run_doctor(&healthy_on()).findings {
        assert!(CASES.iter().any(|c| c.check == finding.check), "{}", finding.check);
    }
}

#[test]
fn settings_that_make_sense_are_no_news() {
    let fake = healthy();
    fake.put("/etc/znsage.conf", "[a]\ndevice = /dev/nvme1n1\n");
    let report = run_doctor(&fake);
    let text = report.to_text();
    assert!(text.contains("section a of /etc/znsage.conf makes sense"), "{text}");
    assert_eq!(report.problems(), 0, "{text}");
}

#[test]
fn one_device_that_works_is_enough() {
    let fake = healthy();
    fake.put("/dev/nvme2n1", "");
    fake.blocks.borrow_mut().insert("/dev/nvme2n1".into(), (259, 2));
    fake.put_link("/sys/dev/block/259:2", "/sys/block/nvme2n1");
    fake.put("/sys/block/nvme2n1/queue/zoned", "host-aware\n");
    let report = run_doctor(&fake);
    assert_eq!(report.problems(), 0, "{}", report.to_text());
    let bad = report.findings.iter().find(|f| f.message.contains("host-aware")).unwrap();
    assert_eq!(bad.level, Note);
}

#[test]
fn headers_are_needed_where_the_module_is_not() {
    let fake = healthy();
    fake.remove("/lib/modules/6.12.0-test/build");
    fake.remove("/lib/modules/6.12.0-test/modules.dep");
    let report = run_doctor(&fake);
    let headers = report.findings.iter().find(|f| f.check == "headers").unwrap();
    assert_eq!(headers.level, Problem);
}
