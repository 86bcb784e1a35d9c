// SPDX-License-Identifier: GPL-2.0-only
//! What commands print, whole, compared with the files in tests/printed/. To
//! renew these after a change: SNAPSHOTS=overwrite cargo test -p znsage

use snapbox::{assert_data_eq, Data, IntoData};

use super::machine::*;
use crate::sys::fake::Fake;

/// `name` is the file below tests/printed. A new version prints nothing new.
fn compare(printed: &str, name: &str) {
    let version = concat!("version ", env!("CARGO_PKG_VERSION"));
    let printed = printed.replace(version, "version VERSION");
    let path = format!("{}/tests/printed/{name}", env!("CARGO_MANIFEST_DIR"));
    assert_data_eq!(printed.into_data().raw(), Data::read_from(path.as_ref(), None).raw());
}

pub fn compare_text(text: &str, name: &str) {
    compare(text, &format!("text/{name}.txt"));
}

pub fn compare_json(json: &serde_json::Value, name: &str) {
    compare(&format!("{json:#}\n"), &format!("json/{name}.json"));
}

/// The machine of the snapshots, with one device on.
fn on() -> Fake {
    let fake = machine();
    well(&fake);
    turn_on(&fake, &["--priority", "10", "--policy", "cpu"]).unwrap();
    tell_more(&fake);
    fake.put("/sys/module/znsage/version", concat!(env!("CARGO_PKG_VERSION"), "\n"));
    fake
}

/// A machine that has seen better days.
fn ailing() -> Fake {
    let fake = machine();
    well(&fake);
    fake.put("/dev/nvme2n1", "");
    fake.blocks.borrow_mut().insert("/dev/nvme2n1".into(), (259, 2));
    fake.put_link("/sys/dev/block/259:2", "/sys/block/nvme2n1");
    fake.put("/sys/block/nvme2n1/queue/zoned", "host-aware\n");
    fake.put("/proc/mounts", "/dev/nvme1n1 /data zonefs rw 0 0\n");
    fake.put("/proc/sys/vm/swappiness", "0\n");
    fake.put("/proc/swaps", &format!("{NO_SWAP}/dev/sda2 partition 1000 0 -2\n"));
    fake.remove("/lib/modules/6.12.0-test");
    fake
}

#[test]
fn on_and_off() {
    let fake = machine();
    well(&fake);
    let report = turn_on(&fake, &["--priority", "10"]).unwrap();
    compare_text(&report.to_text(), "on");
    compare_json(&report.to_json(), "on");
    let report = turn_off(&fake, &[]).unwrap();
    compare_text(&report.to_text(), "off");
    compare_json(&report.to_json(), "off");
}

#[test]
fn refusal() {
    let fake = machine();
    fake.put("/proc/mounts", "/dev/nvme1n1 /data zonefs rw 0 0\n");
    compare_json(&turn_on(&fake, &[]).unwrap_err().to_json(), "error");
}

#[test]
fn status() {
    let fake = on();
    let report = run_status(&fake, &["--streams"]).unwrap();
    compare_text(&report.to_text(), "status");
    compare_json(&report.to_json(), "status");
    compare_json(&run_status(&machine(), &[]).unwrap().to_json(), "status-none");
}

#[test]
fn prometheus() {
    let fake = on();
    fake.put("/sys/block/znsage0/znsage/policy", "cgroup\n");
    fake.put("/sys/block/znsage0/znsage/encrypt", "aes-xts\n");
    let report = run_status(&fake, &["--prometheus"]).unwrap();
    compare_text(&report.to_text(), "status-prometheus");
}

#[test]
fn set() {
    let fake = on();
    let report = run_set(&fake, &["pace=75", "deadline=5ms"]).unwrap();
    compare_text(&report.to_text(), "set");
    compare_json(&report.to_json(), "set");
}

#[test]
fn check() {
    let fake = on();
    let report = run_check(&fake).unwrap();
    compare_text(&report.to_text(), "check");
    compare_json(&report.to_json(), "check");
    fake.put(CHECK_FINDS, "zone 3: live 5, counted 4\n");
    let report = run_check(&fake).unwrap();
    compare_text(&report.to_text(), "check-violated");
    compare_json(&report.to_json(), "check-violated");
}

#[test]
fn list() {
    let (usable, user) = (machine(), machine());
    well(&usable);
    well(&user);
    user.root_user.set(false);
    let machines =
        [(usable, "list"), (on(), "list-on"), (ailing(), "list-unusable"), (user, "list-user")];
    for (fake, name) in machines {
        let report = run_list(&fake);
        compare_text(&report.to_text(), name);
        compare_json(&report.to_json(), name);
    }
}

#[test]
fn doctor() {
    for (fake, name) in [(on(), "doctor-well"), (ailing(), "doctor")] {
        let report = run_doctor(&fake);
        compare_text(&report.to_text(), name);
        compare_json(&report.to_json(), name);
    }
}
