// SPDX-License-Identifier: GPL-2.0-only
//! Machines, devices and settings that `on` refuses without touching them.

use super::machine::*;
use crate::error::Kind;
use crate::sys::fake::Fake;
use crate::sys::Ran;
use crate::zones::{State, Zone};

/// A way in which a machine is not fit, and how `on` says so.
struct Refusal {
    case: &'static str,
    spoil: fn(&Fake),
    options: &'static [&'static str],
    kind: Kind,
    says: &'static str,
}

const fn refusal(
    case: &'static str,
    spoil: fn(&Fake),
    options: &'static [&'static str],
    kind: Kind,
    says: &'static str,
) -> Refusal {
    Refusal { case, spoil, options, kind, says }
}

const REFUSALS: &[Refusal] = &[
    refusal("not root", |f| f.root_user.set(false), &[], Kind::Environment, "only root"),
    refusal("no device", |f| f.remove("/dev/nvme1n1"), &[], Kind::Device, "No such file"),
    refusal(
        "not a block device",
        |f| f.blocks.borrow_mut().clear(),
        &[],
        Kind::Device,
        "is not a block device",
    ),
    refusal(
        "not zoned",
        |f| f.put("/sys/block/nvme1n1/queue/zoned", "none\n"),
        &[],
        Kind::Device,
        "is not a zoned device",
    ),
    refusal(
        "host-aware",
        |f| f.put("/sys/block/nvme1n1/queue/zoned", "host-aware\n"),
        &[],
        Kind::Device,
        "is host-aware",
    ),
    refusal(
        "no zone append",
        |f| f.put("/sys/block/nvme1n1/queue/zone_append_max_bytes", "0\n"),
        &[],
        Kind::Device,
        "has no zone append",
    ),
    refusal("read-only", |f| f.put("/sys/block/nvme1n1/ro", "1\n"), &[], Kind::Device, "read-only"),
    refusal(
        "mounted",
        |f| f.put("/proc/mounts", "/dev/nvme1n1 /data zonefs rw 0 0\n"),
        &["--force"],
        Kind::Busy,
        "is mounted on /data",
    ),
    refusal(
        "held by another device",
        |f| f.put_dir("/sys/block/nvme1n1/holders/dm-0"),
        &["--force"],
        Kind::Busy,
        "in use by dm-0",
    ),
    refusal(
        "open elsewhere",
        |f| f.claim_error.set(Some(libc::EBUSY)),
        &["--force"],
        Kind::Busy,
        "in use by another program",
    ),
    refusal(
        "signature",
        |f| {
            f.on_run(|fake, argv| match argv[0] {
                "blkid" => Ran {
                    status: Some(0),
                    stdout: "DEVNAME=/dev/nvme1n1\nTYPE=btrfs\n".into(),
                    stderr: String::new(),
                },
                _ => program(fake, argv),
            });
        },
        &[],
        Kind::Busy,
        "carries a signature of `btrfs`",
    ),
    refusal(
        "zones written",
        |f| f.zones.borrow_mut()[3].state = State::Written,
        &[],
        Kind::Busy,
        "1 of 64 zones are not empty",
    ),
    refusal(
        "resumed from",
        |f| f.put("/sys/power/resume", "259:1\n"),
        &["--force"],
        Kind::Busy,
        "/dev/nvme1n1 is where the kernel looks for a hibernated system (/sys/power/resume is 259:1)",
    ),
    refusal(
        "resumed from a partition",
        |f| {
            f.put_dir("/sys/block/nvme1n1/nvme1n1p2");
            f.put_link("/sys/dev/block/259:3", "/sys/block/nvme1n1/nvme1n1p2");
            f.put("/proc/cmdline", "quiet resume=259:3\n");
        },
        &[],
        Kind::Busy,
        "a hibernated system (resume=259:3)",
    ),
    refusal(
        "resumed from by its path",
        |f| f.put("/proc/cmdline", "root=/dev/sda1 resume=/dev/nvme1n1 ro\n"),
        &[],
        Kind::Busy,
        "a hibernated system (resume=/dev/nvme1n1)",
    ),
    refusal(
        "resumed from znsage",
        |f| f.put("/proc/cmdline", "resume=/dev/sda2 resume=/dev/znsage0\n"),
        &[],
        Kind::Busy,
        "cannot resume from znsage0, as it is told to (resume=/dev/znsage0)",
    ),
    refusal(
        "too few zones",
        |f| set_zones(f, vec![zone(State::Empty); 4]),
        &["--reserve", "3"],
        Kind::Device,
        "has 4 zones that can be used; at least 6 are needed",
    ),
    refusal(
        "dead and conventional zones only",
        |f| {
            let conventional = Zone { sequential: false, ..zone(State::Written) };
            set_zones(f, vec![zone(State::Dead), conventional]);
        },
        &[],
        Kind::Device,
        "has 0 zones",
    ),
    refusal(
        "larger than 16 TiB",
        |f| {
            let huge = Zone { capacity: 1 << 40, ..zone(State::Empty) };
            set_zones(f, vec![huge; 17]);
        },
        &[],
        Kind::Device,
        "has 17 TiB; znsage can address 16 TiB",
    ),
    refusal(
        "chunk above the append limit",
        |_| (),
        &["--chunk", "192K"],
        Kind::Device,
        "one append",
    ),
    refusal(
        "chunk above the zone",
        |f| {
            f.put("/sys/block/nvme1n1/queue/zone_append_max_bytes", "8388608\n");
        },
        &["--chunk", "8M"],
        Kind::Device,
        "do not fit in a zone",
    ),
    refusal(
        "chunk of half pages",
        |_| (),
        &["--chunk", "6K"],
        Kind::Device,
        "multiple of the page",
    ),
    refusal(
        "chunk of half units",
        |_| (),
        &["--chunk", "48K", "--write-unit", "32K"],
        Kind::Device,
        "multiple of the write unit",
    ),
    refusal(
        "size above what over-provisioning leaves",
        |_| (),
        &["--size", "240M"],
        Kind::Space,
        "240 MiB do not fit on /dev/nvme1n1: with 12 % over-provisioning it holds 225 MiB",
    ),
    refusal("size of nothing", |_| (), &["--size", "4K"], Kind::Device, "too small"),
    refusal(
        "no memory for the map",
        |f| f.put("/proc/meminfo", "MemAvailable: 100 kB\n"),
        &[],
        Kind::Space,
        "of memory",
    ),
    refusal(
        "module missing",
        |f| f.remove("/lib/modules/6.12.0-test"),
        &[],
        Kind::Environment,
        "not installed for kernel 6.12.0-test",
    ),
    refusal(
        "module for another kernel installed",
        |f| {
            f.remove("/lib/modules/6.12.0-test");
            f.put("/lib/modules/6.1.0-old/modules.dep", "extra/znsage.ko:\n");
        },
        &[],
        Kind::Environment,
        "installed for 6.1.0-old, but kernel 6.12.0-test is running",
    ),
    refusal(
        "module file for another kernel",
        |f| {
            f.put("/src/znsage.ko", "vermagic=6.1.0-old SMP\0");
            f.env.borrow_mut().insert("ZNSAGE_MODULE".into(), "/src/znsage.ko".into());
        },
        &[],
        Kind::Environment,
        "is built for kernel 6.1.0-old, but 6.12.0-test is running",
    ),
];

#[test]
fn unfit_machines_are_refused_untouched() {
    for refusal in REFUSALS {
        let fake = machine();
        (refusal.spoil)(&fake);
        let before = fake.snapshot();
        let e = turn_on(&fake, refusal.options).expect_err(refusal.case);
        assert_eq!(e.kind, refusal.kind, "{}: {e}", refusal.case);
        assert!(e.message.contains(refusal.says), "{}: {e}", refusal.case);
        assert_eq!(fake.snapshot(), before, "{}", refusal.case);
        let touched = fake.effects.borrow().iter().any(|effect| {
            !effect.starts_with("run blkid") && !effect.starts_with("run modprobe --dry-run")
        });
        assert!(!touched, "{}: {:?}", refusal.case, fake.effects.borrow());
    }
}
