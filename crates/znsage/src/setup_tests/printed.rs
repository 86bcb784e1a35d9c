// SPDX-License-Identifier: GPL-2.0-only
//! Whole outputs, compared with the files in tests/printed. To renew them:
//! SNAPSHOTS=overwrite cargo test -p znsage

use snapbox::{assert_data_eq, Data, IntoData};

use super::machine::*;
use crate::outcome::Outcome;
use crate::sys::fake::Fake;

/// `name` is the file below tests/printed. The version is left out.
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

fn compare_both(outcome: &Outcome, name: &str) {
    compare_text(&outcome.text, name);
    compare_json(&outcome.json, name);
}

fn well() -> Fake {
    let fake = machine();
    add_well(&fake);
    fake
}

/// A machine with one device on.
fn on() -> Fake {
    let fake = well();
    run(&fake, "on /dev/nvme1n1 --priority 10 --policy cpu").unwrap();
    add_details(&fake);
    fake.put("/sys/module/znsage/version", concat!(env!("CARGO_PKG_VERSION"), "\n"));
    fake
}

/// A machine with many problems.
fn ailing() -> Fake {
    let fake = well();
    add_block(&fake, "/dev/nvme2n1", 2);
    fake.put("/sys/block/nvme2n1/queue/zoned", "host-aware\n");
    fake.put("/proc/mounts", "/dev/nvme1n1 /data zonefs rw 0 0\n");
    fake.put("/proc/sys/vm/swappiness", "0\n");
    fake.put("/proc/swaps", &format!("{NO_SWAP}/dev/sda2 partition 1000 0 -2\n"));
    fake.remove("/lib/modules/6.12.0-test");
    fake
}

#[test]
fn commands_print_the_files() {
    let fake = well();
    compare_both(&run(&fake, "on /dev/nvme1n1 --priority 10").unwrap(), "on");
    compare_both(&run(&fake, "off").unwrap(), "off");
    fake.put("/proc/mounts", "/dev/nvme1n1 /data zonefs rw 0 0\n");
    compare_json(&run(&fake, "on /dev/nvme1n1").unwrap_err().to_json(), "error");
    compare_json(&run(&machine(), "status").unwrap().json, "status-none");

    let fake = on();
    compare_both(&run(&fake, "status --streams").unwrap(), "status");
    compare_both(&run(&fake, "check").unwrap(), "check");
    compare_both(&run(&fake, "set pace=75 deadline=5ms").unwrap(), "set");
    fake.put(CHECK_FINDS, "zone 3: live 5, counted 4\n");
    compare_both(&run(&fake, "check").unwrap(), "check-violated");
}

#[test]
fn prometheus_prints_the_file() {
    let fake = on();
    fake.put("/sys/block/znsage0/znsage/policy", "cgroup\n");
    fake.put("/sys/block/znsage0/znsage/encrypt", "aes-xts\n");
    compare_text(&run(&fake, "status --prometheus").unwrap().text, "status-prometheus");
}

#[test]
fn list_and_doctor_print_the_files() {
    let user = well();
    user.root_user.set(false);
    for (fake, name) in
        [(well(), "list"), (on(), "list-on"), (ailing(), "list-unusable"), (user, "list-user")]
    {
        compare_both(&run(&fake, "list").unwrap(), name);
    }
    for (fake, name) in [(on(), "doctor-well"), (ailing(), "doctor")] {
        compare_both(&run(&fake, "doctor").unwrap(), name);
    }
}
