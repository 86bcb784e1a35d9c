// SPDX-License-Identifier: GPL-2.0-only
//! `on`: what it does, and that it takes everything back.

use std::io;

use clap::Parser;

use super::machine::*;
use crate::cli::Cli;
use crate::error::{Error, Kind};
use crate::sys::{LogLine, Sys};
use crate::zones::{State, Zone};

#[test]
fn on_and_off_leave_the_machine_as_it_was() {
    let fake = machine();
    let before = fake.snapshot();
    let report = turn_on(&fake, &[]).unwrap();
    assert_eq!(report.device.name, "znsage0");
    assert_eq!(report.priority, Some(-2));
    assert!(report.to_text().starts_with("znsage0 on /dev/nvme1n1: 225 MiB of swap"));
    assert!(!report.to_text().contains("encrypted"), "{}", report.to_text());
    assert!(fake.read("/proc/swaps").unwrap().contains("/dev/znsage0"));

    let report = turn_off(&fake, &[]).unwrap();
    assert!(report.module_unloaded);
    let off: Vec<_> = report.off.iter().map(|off| (&off.name[..], &off.backing[..])).collect();
    assert_eq!(off, [("znsage0", "nvme1n1")]);
    assert_eq!(fake.snapshot(), before);
}

/// The kernel promises what a zone holds; the path takes less.
#[test]
fn paths_to_a_device_limit_its_chunks() {
    let fake = machine();
    fake.put("/sys/block/nvme1n1/queue/zone_append_max_bytes", "4194304\n");
    fake.put("/sys/block/nvme1c0n1/hidden", "1\n");
    for (limit, chunk) in [("524288\n", "0"), ("204800\n", "204800"), ("131072\n", "131072")] {
        fake.put("/sys/block/nvme1c0n1/queue/zone_append_max_bytes", limit);
        turn_on(&fake, &[]).unwrap();
        let set = fake.read(&format!("{CONFIG}/nvme1n1/chunk")).unwrap();
        assert_eq!(set.trim(), chunk, "of a path that takes {limit}");
        turn_off(&fake, &[]).unwrap();
    }
    let e = turn_on(&fake, &["--chunk", "132K"]).unwrap_err();
    assert_eq!(e.message, "--chunk: 132 KiB do not fit in one append");
    assert!(e.hint.unwrap().contains("appends of up to 128 KiB"));
    turn_on(&fake, &["--write-unit", "96K"]).unwrap();
    assert_eq!(fake.read(&format!("{CONFIG}/nvme1n1/chunk")).unwrap().trim(), "98304");
}

#[test]
fn settings_reach_the_module() {
    let fake = machine();
    let options = "--size 100M --over-provisioning 7 --policy my-own --victim age --chunk 64K \
                   --write-unit 32K --priority 5 --deadline-us 500 --reserve 3 --stripe 2 --pace 40 \
                   --encrypt aes-xts --force";
    turn_on(&fake, &options.split_whitespace().collect::<Vec<_>>()).unwrap();
    for (file, value) in [
        ("backing", "/dev/nvme1n1"),
        ("size", "104857600"),
        ("over_provisioning", "7"),
        ("policy", "my-own"),
        ("victim", "age"),
        ("chunk", "65536"),
        ("write_unit", "32768"),
        ("deadline_us", "500"),
        ("reserve", "3"),
        ("stripe", "2"),
        ("pace", "40"),
        ("encrypt", "aes-xts"),
        ("force", "1"),
    ] {
        let text = fake.read(&format!("{CONFIG}/nvme1n1/{file}")).unwrap();
        assert_eq!(text.trim(), value, "{file}");
    }
    assert!(fake.effects.borrow().contains(&"run swapon -p 5 /dev/znsage0".to_string()));
}

#[test]
fn on_tells_whether_pages_are_encrypted() {
    for (how, shown) in [("aes-xts", true), ("off", false)] {
        let report = turn_on(&machine(), &["--encrypt", how]).unwrap();
        assert_eq!(report.to_json()["encrypt"], how);
        assert_eq!(report.to_text().contains(", encrypted\n"), shown, "{}", report.to_text());
    }
    let e = Cli::try_parse_from(["znsage", "on", "/dev/x", "--encrypt", "rot13"]).unwrap_err();
    assert!(e.to_string().contains("aes-xts"), "{e}");
}

#[test]
fn what_is_not_given_is_the_modules() {
    let fake = machine();
    turn_on(&fake, &[]).unwrap();
    let effects = fake.effects.borrow();
    for file in ["/policy ", "/victim ", "/encrypt "] {
        assert!(!effects.iter().any(|e| e.contains(file)), "{file}");
    }
}

/// The module refuses `name`, and tells what there is if it `tells`.
fn refused_policy(name: &str, tells: bool) -> Error {
    let fake = machine();
    let before = fake.snapshot();
    fake.on_write(move |fake, path, text| {
        if path.ends_with("/policy") && text != "cpu" {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        attribute(fake, path, text)
    });
    if tells {
        fake.on_mkdir(|fake, path| {
            for (file, value) in ATTRIBUTES {
                fake.put(&format!("{path}/{file}"), value);
            }
            fake.put(&format!("{CONFIG}/policies"), "single\ncpu\nmy-own\n");
        });
    }
    let e = turn_on(&fake, &["--policy", name]).unwrap_err();
    assert_eq!(fake.snapshot(), before);
    e
}

#[test]
fn an_unknown_policy_is_told_which_there_are() {
    let e = refused_policy("psychic", true);
    assert_eq!((e.kind, e.message.as_str()), (Kind::Usage, "policy: there is no `psychic`"));
    assert!(e.hint.unwrap().starts_with("there is: single, cpu, my-own\n"));

    let e = refused_policy("psychic", false);
    assert!(e.hint.unwrap().starts_with("there is: single, cpu, process, vma, cgroup, heat\n"));

    // It is there, so something else was wrong.
    assert_eq!(refused_policy("my-own", true).kind, Kind::Device);
}

#[test]
fn the_device_has_no_scheduler_while_it_is_on() {
    let fake = machine();
    let attribute = "/sys/block/nvme1n1/queue/scheduler";
    turn_on(&fake, &[]).unwrap();
    assert_eq!(fake.read(attribute).unwrap(), "mq-deadline [none]\n");
    turn_off(&fake, &[]).unwrap();
    assert_eq!(fake.read(attribute).unwrap(), SCHEDULERS);

    // What the user chose stays.
    fake.put(attribute, "mq-deadline [none]\n");
    turn_on(&fake, &[]).unwrap();
    turn_off(&fake, &[]).unwrap();
    assert_eq!(fake.read(attribute).unwrap(), "mq-deadline [none]\n");
}

#[test]
fn a_failure_at_any_step_is_undone() {
    let whole = machine();
    turn_on(&whole, &[]).unwrap();
    let steps = whole.effects.borrow().len();
    for step in 0..steps {
        let fake = machine();
        let before = fake.snapshot();
        fake.fail_effect.set(Some(step));
        let what = whole.effects.borrow()[step].clone();
        assert!(turn_on(&fake, &[]).is_err(), "{what}");
        assert_eq!(fake.snapshot(), before, "{what}");
    }
}

#[test]
fn a_signal_at_any_step_is_undone() {
    let whole = machine();
    turn_on(&whole, &[]).unwrap();
    let steps = whole.effects.borrow().len();
    for step in 0..steps {
        let fake = machine();
        let before = fake.snapshot();
        fake.signal_effect.set(Some(step));
        let what = whole.effects.borrow()[step].clone();
        let e = turn_on(&fake, &[]).expect_err(&what);
        assert_eq!(e.kind, Kind::Interrupted, "{what}");
        assert_eq!(fake.snapshot(), before, "{what}");
    }
}

#[test]
fn what_could_not_be_undone_is_told() {
    let fake = machine();
    fake.fail_at("swapon", libc::EPERM);
    fake.fail_at("rmdir", libc::EBUSY);
    let e = turn_on(&fake, &[]).unwrap_err();
    assert!(e.hint.unwrap().contains("could not remove the configuration"));
}

#[test]
fn force_takes_a_device_that_holds_something() {
    let fake = machine();
    fake.zones.borrow_mut()[3].state = State::Written;
    turn_on(&fake, &["--force"]).unwrap();
    assert!(!fake.effects.borrow().iter().any(|e| e.contains("blkid")));
}

#[test]
fn a_size_makes_a_huge_device_usable() {
    let fake = machine();
    let huge = Zone { capacity: 1 << 40, ..zone(State::Empty) };
    set_zones(&fake, vec![huge; 17]);
    fake.put("/proc/meminfo", "MemAvailable: 99999999999 kB\n");
    turn_on(&fake, &["--size", "8T"]).unwrap();
}

#[test]
fn the_map_of_a_part_needs_no_memory_for_the_rest() {
    let fake = machine();
    let huge = Zone { capacity: 1 << 40, ..zone(State::Empty) };
    set_zones(&fake, vec![huge; 17]);
    fake.put("/proc/meminfo", "MemAvailable: 900000 kB\n");
    turn_on(&fake, &["--size", "64G"]).unwrap();
}

#[test]
fn a_module_file_is_loaded_by_insmod() {
    let fake = machine();
    fake.put("/src/znsage.ko", "vermagic=6.12.0-test SMP\0");
    let env = ("ZNSAGE_MODULE".to_string(), "/src/znsage.ko".to_string());
    fake.env.borrow_mut().extend([env]);
    turn_on(&fake, &[]).unwrap();
    let effects = fake.effects.borrow();
    assert!(effects.contains(&"run modprobe configfs".to_string()));
    assert!(effects.contains(&"run insmod /src/znsage.ko".to_string()));
}

#[test]
fn configfs_is_mounted_if_need_be() {
    let fake = machine();
    fake.put("/proc/mounts", "");
    fake.on_run(|fake, argv| match argv {
        ["modprobe", "znsage"] => {
            fake.put("/sys/module/znsage/refcnt", "0\n");
            ended(0, "")
        }
        _ => program(fake, argv),
    });
    fake.on_mount(|fake, _| fake.put_dir(CONFIG));
    turn_on(&fake, &[]).unwrap();
    assert!(fake.effects.borrow().contains(&"mount configfs /sys/kernel/config".to_string()));
}

/// systemd does, as soon as it sees the module.
#[test]
fn configfs_may_be_mounted_by_others_meanwhile() {
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
    fake.fail_at("mount configfs", libc::EBUSY);
    let e = turn_on(&fake, &[]).unwrap_err();
    assert!(e.message.contains("cannot mount configfs on"), "{}", e.message);
    fake.on_mount(|fake, _| fake.put_dir(CONFIG));
    turn_on(&fake, &[]).unwrap();
}

/// power=1 fails with `errno` after the module logged its reason.
fn refused_by_kernel(errno: i32, log: &'static str, options: &[&str]) -> Error {
    let fake = machine();
    let line = |number, text: &str| LogLine { number, text: text.to_string() };
    let stale = line(5, "znsage: nvme1n1: of yesterday");
    fake.log.borrow_mut().push(stale);
    fake.on_write(move |fake, path, text| {
        if path.ends_with("/power") && text == "1" {
            fake.log.borrow_mut().push(line(6, log));
            return Err(io::Error::from_raw_os_error(errno));
        }
        Ok(())
    });
    turn_on(&fake, options).unwrap_err()
}

#[test]
fn the_modules_refusals_are_passed_on() {
    let e = refused_by_kernel(libc::ENOSPC, "znsage: nvme1n1: 9 zones needed", &[]);
    assert_eq!(e.kind, Kind::Device);
    assert_eq!(e.message, "cannot attach /dev/nvme1n1: 9 zones needed");

    let e = refused_by_kernel(libc::ENOSPC, "znsage: nvme1n1: too large", &["--size", "200M"]);
    assert_eq!(e.kind, Kind::Space);

    let log = "znsage: nvme1n1: the kernel offers no xts(aes) to encrypt with (-2)";
    let e = refused_by_kernel(libc::ENOPKG, log, &["--encrypt", "aes-xts"]);
    assert_eq!(e.kind, Kind::Environment);
    assert!(e.message.contains("offers no xts(aes)") && e.hint.unwrap().contains("modprobe xts"));

    let e = refused_by_kernel(libc::ENOTEMPTY, "znsage: nvme9n9: of another", &[]);
    assert_eq!(e.kind, Kind::Busy);
    assert!(e.message.ends_with("Directory not empty"));
}

#[test]
fn leftovers_of_a_killed_run_are_no_obstacle() {
    let fake = machine();
    program(&fake, &["modprobe", "znsage"]);
    fake.mkdir(&format!("{CONFIG}/nvme1n1")).unwrap();
    turn_on(&fake, &[]).unwrap();
    turn_off(&fake, &[]).unwrap();

    program(&fake, &["modprobe", "znsage"]);
    fake.mkdir(&format!("{CONFIG}/nvme1n1")).unwrap();
    assert!(turn_off(&fake, &["nvme1n1"]).unwrap().module_unloaded);
    assert!(!fake.exists(CONFIG));
}

#[test]
fn a_second_on_is_told_where_the_device_is() {
    let fake = machine();
    turn_on(&fake, &[]).unwrap();
    let e = turn_on(&fake, &[]).unwrap_err();
    assert_eq!(e.kind, Kind::Busy);
    assert!(e.message.contains("backing device of znsage0"));
}

#[test]
fn a_system_that_hibernates_elsewhere_is_left_alone() {
    for (numbers, line) in [
        ("0:0", "quiet"),
        ("8:2", "resume=/dev/sda2 resume_offset=4096"),
        ("8:2", "resume=UUID=2f6d0f4e-5d2c-4a5e-8a51-000000000001"),
        // Only the last counts.
        ("0:0", "resume=/dev/nvme1n1 resume=/dev/sda2"),
    ] {
        let fake = machine();
        fake.put("/dev/sda2", "");
        fake.blocks.borrow_mut().insert("/dev/sda2".into(), (8, 2));
        fake.put_dir("/sys/block/sda/sda2");
        fake.put_link("/sys/dev/block/8:2", "/sys/block/sda/sda2");
        fake.put("/sys/power/resume", &format!("{numbers}\n"));
        fake.put("/proc/cmdline", &format!("{line}\n"));
        turn_on(&fake, &[]).unwrap_or_else(|e| panic!("{numbers}, {line}: {e}"));
    }
}

#[test]
fn a_system_that_hibernates_is_told_to_come_back() {
    let fake = machine();
    fake.fail_at("power 1", libc::EAGAIN);
    let e = turn_on(&fake, &[]).unwrap_err();
    assert_eq!(e.kind, Kind::Busy);
    assert_eq!(e.hint.unwrap(), "try again when the system is back");
}
