// SPDX-License-Identifier: GPL-2.0-only
//! `list`: what is shown of a device, and that `on` says the same.

use super::machine::*;
use crate::sys::fake::Fake;
use crate::sys::Sys;
use crate::zones::State;

#[test]
fn a_device_in_good_order_is_shown_whole() {
    let fake = machine();
    well(&fake);
    let json = run_list(&fake).to_json();
    let device = &json["devices"][0];
    assert_eq!(device["path"], "/dev/nvme1n1");
    assert_eq!(device["model"], "ZN540 (made up)");
    assert_eq!(device["size_bytes"], 256 * MIB);
    assert_eq!(device["zone_bytes"], 4 * MIB);
    assert_eq!(device["zones"]["total"], 64);
    assert_eq!(device["zones"]["capacity_bytes"], 4 * MIB);
    assert_eq!(device["write_unit_bytes"], 4096);
    assert_eq!(device["append_max_bytes"], 131_072);
    assert_eq!(device["max_open_zones"], 14);
    assert_eq!(device["usable"], true);
    assert!(device["problem"].is_null() && device["on"].is_null());
}

#[test]
fn only_zoned_devices_are_listed() {
    let fake = machine();
    fake.put("/sys/block/sda/queue/zoned", "none\n");
    fake.put_dir("/sys/block/loop0");
    fake.put("/sys/block/nvme1c0n1/queue/zoned", "host-managed\n");
    fake.put("/sys/block/nvme1c0n1/hidden", "1\n");
    assert_eq!(run_list(&fake).devices.len(), 1);
    fake.put("/sys/block/nvme1n1/queue/zoned", "none\n");
    assert_eq!(run_list(&fake).to_text(), "there is no zoned device\n");
}

#[test]
fn a_device_that_is_on_is_shown_as_such() {
    let fake = machine();
    well(&fake);
    turn_on(&fake, &[]).unwrap();
    let report = run_list(&fake);
    let json = report.to_json();
    let device = &json["devices"][0];
    assert_eq!(device["on"], "znsage0");
    assert_eq!(device["usable"], false, "it cannot be turned on once more");
    assert_eq!(device["problem"]["kind"], "busy");
    let text = report.to_text();
    assert!(text.contains("on: znsage0"), "{text}");
    assert!(!text.contains("backing device"), "that is no trouble:\n{text}");
}

/// Whatever is wrong with a device, `list` has the words of `on`.
#[test]
fn list_says_what_on_says() {
    type Way = (&'static str, fn(&Fake));
    let ways: [Way; 7] = [
        ("host-aware", |f| f.put("/sys/block/nvme1n1/queue/zoned", "host-aware\n")),
        ("append", |f| f.put("/sys/block/nvme1n1/queue/zone_append_max_bytes", "0\n")),
        ("read-only", |f| f.put("/sys/block/nvme1n1/ro", "1\n")),
        ("mounted", |f| f.put("/proc/mounts", "/dev/nvme1n1 /data zonefs rw 0 0\n")),
        ("open", |f| f.claim_error.set(Some(libc::EBUSY))),
        ("written", |f| set_zones(f, vec![zone(State::Written); 64])),
        ("zones", |f| set_zones(f, vec![zone(State::Empty); 3])),
    ];
    for (case, spoil) in ways {
        let fake = machine();
        well(&fake);
        spoil(&fake);
        let listed = run_list(&fake).devices.remove(0);
        let said = turn_on(&fake, &[]).unwrap_err();
        assert_eq!(listed.usable, Some(false), "{case}");
        let problem = listed.problem.expect(case);
        assert_eq!((problem.kind, &problem.message), (said.kind, &said.message), "{case}");
        assert_eq!(problem.hint, said.hint, "{case}");
        let text = run_list(&fake).to_text();
        assert!(text.contains(&said.message), "{case}:\n{text}");
        for line in said.hint.iter().flat_map(|h| h.lines()) {
            assert!(text.contains(line), "{case}:\n{text}");
        }
    }
}

/// Who is not root sees what sysfs tells, and is told what is missing.
#[test]
fn others_than_root_get_no_verdict() {
    let fake = machine();
    well(&fake);
    fake.root_user.set(false);
    let device = run_list(&fake).devices.remove(0);
    assert_eq!(device.usable, None);
    assert_eq!(device.max_open_zones, Some(14));
    assert!(device.zones.is_none());
    let text = run_list(&fake).to_text();
    assert!(text.contains("only root can tell whether it is in use"), "{text}");
    // What is certain without a look into the device.
    fake.put("/sys/block/nvme1n1/queue/zone_append_max_bytes", "0\n");
    assert_eq!(run_list(&fake).devices[0].usable, Some(false));
}

#[test]
fn nothing_is_changed() {
    let fake = machine();
    well(&fake);
    let before = fake.snapshot();
    run_list(&fake);
    run_doctor(&fake);
    assert_eq!(fake.snapshot(), before);
    let effects = fake.effects.borrow();
    let looks = ["run blkid -p", "run modprobe --dry-run", "run modinfo"];
    for effect in effects.iter() {
        assert!(looks.iter().any(|look| effect.starts_with(look)), "{effect}");
    }
    assert!(fake.exists("/dev/nvme1n1"));
}
