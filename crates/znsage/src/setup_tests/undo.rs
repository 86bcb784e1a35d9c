// SPDX-License-Identifier: GPL-2.0-only
//! Commands that fail or are interrupted at any step, and programs whose answers
//! change while a command runs.

use super::machine::*;
use crate::error::Kind;
use crate::sys::fake::Fake;
use crate::sys::Sys;
use crate::zones::State;

#[test]
fn on_undoes_a_failure_or_signal_at_any_step() {
    let guarded = "on --compress lz4 --size 1G --keep-slots /dev/nvme1n1";
    let file = "on /var/lib/znsage.swap --size 64M";
    for line in ["on /dev/nvme1n1", "on --config fast", guarded, file] {
        let new = || {
            let fake = machine();
            add_files(&fake);
            fake.put("/etc/znsage.conf", "[fast]\ndevice = /dev/nvme1n1\n");
            fake
        };
        let whole = new();
        run(&whole, line).unwrap();
        for (step, what) in whole.effects.borrow().iter().enumerate() {
            let (failing, signalled) = (new(), new());
            let before = failing.snapshot();
            failing.fail_effect.set(Some(step));
            let outcome = run(&failing, line);
            if what.starts_with("save /var/lib") {
                assert!(outcome.unwrap().text.contains("after a power failure"), "{what}");
            } else {
                assert!(outcome.is_err(), "{what}");
                assert_eq!(failing.snapshot(), before, "{what} fails");
            }
            signalled.signal_effect.set(Some(step));
            let e = run(&signalled, line).expect_err(what);
            assert_eq!(e.kind, Kind::Interrupted, "{what}");
            assert_eq!(signalled.snapshot(), before, "a signal at {what}");
        }
    }
}

#[test]
fn set_restores_settings_when_one_fails() {
    const DIR: &str = "/sys/block/znsage0/znsage";
    let words = ["policy=single", "victim=age", "gc-low=10", "gc-high=12", "deadline=900us"];
    for step in 0..words.len() {
        let fake = machine();
        turn_on(&fake);
        fake.put(&format!("{DIR}/victim"), "greedy\n");
        fake.effects.borrow_mut().clear();
        let before = fake.snapshot();
        fake.fail_effect.set(Some(step));
        let e = run(&fake, &format!("set {}", words.join(" "))).unwrap_err();
        assert_eq!(e.kind, Kind::Kernel);
        assert_eq!(fake.snapshot(), before, "{step}");
        assert_eq!(fake.effects.borrow().len(), 2 * step + 1, "{step}");
    }
}

/// Another swapoff is running; it ends after the `last` try. swapoff reports EINVAL
/// meanwhile.
fn other_swapoff(last: usize) -> Fake {
    let fake = machine();
    turn_on(&fake);
    fake.on_run(move |fake, argv| {
        if argv[0] != "swapoff" {
            return program(fake, argv);
        }
        let tries = fake.effects.borrow().iter().filter(|e| e.starts_with("run swapoff")).count();
        if tries >= last {
            fake.put("/proc/swaps", NO_SWAP);
        }
        ended(255, "swapoff: /dev/znsage0: swapoff failed: Invalid argument\n")
    });
    fake
}

#[test]
fn off_waits_for_another_swapoff() {
    for last in [1, 2, 30] {
        let fake = other_swapoff(last);
        assert_eq!(run(&fake, "off").unwrap().json["module_unloaded"], true, "{last}");
        assert!(!fake.exists("/sys/block/znsage0"), "{last}");
    }
    let fake = other_swapoff(usize::MAX);
    let e = run(&fake, "off").unwrap_err();
    assert_eq!(e.kind, Kind::Kernel);
    assert!(e.message.ends_with("Invalid argument"), "{}", e.message);
    assert!(fake.exists("/sys/block/znsage0"));
}

/// configfs is not mounted, so that the module's directory does not appear.
fn without_configfs() -> Fake {
    let fake = machine();
    fake.put("/proc/mounts", "");
    fake.on_run(|fake, argv| match argv {
        ["modprobe", "znsage"] => {
            fake.put("/sys/module/znsage/refcnt", "0\n");
            ended(0, "")
        }
        ["rmmod", "znsage"] => {
            fake.remove("/sys/module/znsage");
            ended(0, "")
        }
        _ => program(fake, argv),
    });
    fake
}

#[test]
fn on_mounts_configfs() {
    let fake = without_configfs();
    fake.on_mount(|fake, _| fake.put_dir(CONFIG));
    turn_on(&fake);
    assert!(fake.effects.borrow().contains(&"mount configfs /sys/kernel/config".to_string()));
}

/// systemd mounts it, too, as soon as it sees the module.
#[test]
fn configfs_may_be_mounted_meanwhile() {
    let fake = without_configfs();
    fake.fail_at("mount configfs", libc::EBUSY);
    let e = run(&fake, "on /dev/nvme1n1").unwrap_err();
    assert!(e.message.contains("cannot mount configfs on"), "{}", e.message);
    fake.on_mount(|fake, _| fake.put_dir(CONFIG));
    turn_on(&fake);
}

#[test]
fn list_reports_the_error_of_on() {
    let spoilers: [fn(&Fake); 7] = [
        |f| f.put("/sys/block/nvme1n1/queue/zoned", "host-aware\n"),
        |f| f.put("/sys/block/nvme1n1/queue/zone_append_max_bytes", "0\n"),
        |f| f.put("/sys/block/nvme1n1/ro", "1\n"),
        |f| f.put("/proc/mounts", "/dev/nvme1n1 /data zonefs rw 0 0\n"),
        |f| f.claim_error.set(Some(libc::EBUSY)),
        |f| set_zones(f, vec![zone(State::Written); 64]),
        |f| set_zones(f, vec![zone(State::Empty); 3]),
    ];
    for spoil in spoilers {
        let fake = well();
        spoil(&fake);
        let e = run(&fake, "on /dev/nvme1n1").unwrap_err();
        let listed = run(&fake, "list").unwrap();
        let device = &listed.json["devices"][0];
        assert_eq!(device["usable"], false, "{e}");
        for key in ["kind", "message", "hint"] {
            assert_eq!(device["problem"][key], e.to_json()["error"][key], "{e}");
        }
        for line in e.hint.iter().flat_map(|hint| hint.lines()).chain([e.message.as_str()]) {
            assert!(listed.text.contains(line), "{line} in:\n{}", listed.text);
        }
    }
}
