// SPDX-License-Identifier: GPL-2.0-only
//! `on`: what it does, and that it takes everything back.

use std::io;

use super::machine::*;
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
    assert!(fake.read("/proc/swaps").unwrap().contains("/dev/znsage0"));

    let report = turn_off(&fake, &[]).unwrap();
    assert!(report.module_unloaded);
    assert_eq!(report.off, [("znsage0".to_string(), "nvme1n1".to_string())]);
    assert_eq!(fake.snapshot(), before);
}

#[test]
fn settings_reach_the_module() {
    let fake = machine();
    let options = "--size 100M --over-provisioning 7 --policy single --chunk 64K \
                   --write-unit 32K --priority 5 --deadline-us 500 --reserve 3 --stripe 2 --force";
    turn_on(&fake, &options.split_whitespace().collect::<Vec<_>>()).unwrap();
    for (file, value) in [
        ("backing", "/dev/nvme1n1"),
        ("size", "104857600"),
        ("over_provisioning", "7"),
        ("policy", "single"),
        ("chunk", "65536"),
        ("write_unit", "32768"),
        ("deadline_us", "500"),
        ("reserve", "3"),
        ("stripe", "2"),
        ("force", "1"),
    ] {
        let text = fake.read(&format!("{CONFIG}/nvme1n1/{file}")).unwrap();
        assert_eq!(text.trim(), value, "{file}");
    }
    assert!(fake.effects.borrow().contains(&"run swapon -p 5 /dev/znsage0".to_string()));
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
