// SPDX-License-Identifier: GPL-2.0-only
//! The units that are made of znsage.conf, compared with files and held up to
//! systemd, where there is one.

use std::path::PathBuf;
use std::process::Command as Program;

use super::machine::*;
use super::printed::compare_text;
use crate::cli::Command;
use crate::error::Result;
use crate::generator;
use crate::sys::fake::Fake;
use crate::sys::Sys;

const OUT: &str = "/run/systemd/generator";

const TWO: &str = "\
[fast]
device = /dev/disk/by-id/nvme-100%_fast
size = 64G
[big-one]
device = /dev/sdb
priority = 5
";

fn generate(fake: &Fake, program: &str) -> Result<()> {
    match parse(&["generator", OUT, "/early", "/late"]) {
        Command::Generator(args) => generator::run(fake, &args, program),
        _ => unreachable!(),
    }
}

/// All that was made, in the order of the names.
fn made(fake: &Fake) -> String {
    let below = OUT.trim_start_matches('/');
    let mut text = String::new();
    for (name, content) in fake.snapshot() {
        if !name.starts_with(below) || content == "directory" {
            continue;
        }
        match std::fs::read_link(fake.at(&name)) {
            Ok(target) => text += &format!("== {name} -> {}\n", target.display()),
            Err(_) => text += &format!("== {name}\n{content}"),
        }
    }
    text
}

#[test]
fn each_section_is_a_service() {
    let fake = machine();
    fake.put("/etc/znsage.conf", TWO);
    generate(&fake, "/usr/sbin/znsage").unwrap();
    compare_text(&made(&fake), "generator");
}

#[test]
fn a_section_with_a_fault_is_a_service_that_tells_of_it() {
    let fake = machine();
    fake.put(
        "/usr/lib/znsage.conf",
        "[fast]\ndevice = /dev/sdb\nprio = 5\n[good]\ndevice=/dev/sdc\n",
    );
    fake.put("/dev/kmsg", "");
    let e = generate(&fake, "/opt/with space/znsage").unwrap_err();
    assert_eq!(e.message, "/usr/lib/znsage.conf:3: there is no key `prio`");
    assert_eq!(fake.read("/dev/kmsg").unwrap(), "", "it is not systemd that asked");
    compare_text(&made(&fake), "generator-fault");

    let fake = machine();
    fake.put("/etc/znsage.conf", "[fast]\n");
    fake.put("/dev/kmsg", "");
    fake.env.borrow_mut().insert("SYSTEMD_SCOPE".into(), "system".into());
    generate(&fake, "/usr/sbin/znsage").unwrap_err();
    let said = fake.read("/dev/kmsg").unwrap();
    assert_eq!(said, "<3>znsage-generator: /etc/znsage.conf:1: section fast has no device\n");
}

#[test]
fn nothing_is_made_of_nothing() {
    let fake = machine();
    generate(&fake, "/usr/sbin/znsage").unwrap();
    assert_eq!(made(&fake), "");
    fake.put("/etc/znsage.conf", TWO);
    for (name, value) in [("SYSTEMD_VIRTUALIZATION", "container:lxc"), ("SYSTEMD_IN_INITRD", "1")] {
        fake.env.borrow_mut().insert(name.into(), value.into());
        generate(&fake, "/usr/sbin/znsage").unwrap();
        assert_eq!(made(&fake), "", "{name}");
        fake.env.borrow_mut().clear();
    }
}

#[test]
fn what_cannot_be_written_is_told() {
    let fake = machine();
    fake.put("/etc/znsage.conf", TWO);
    fake.fail_at("link", libc::EROFS);
    let e = generate(&fake, "/usr/sbin/znsage").unwrap_err();
    assert!(
        e.message.ends_with("swap.target.wants/znsage@fast.service: Read-only file system"),
        "{}",
        e.message
    );
}

fn installed(program: &str) -> bool {
    let there = Program::new(program).arg("--version").output().is_ok();
    if !there {
        eprintln!("skipped: no {program} on this machine");
    }
    there
}

/// What systemd has to say of the units: nothing.
#[test]
fn systemd_understands_the_units() {
    if !installed("systemd-analyze") {
        return;
    }
    let fake = machine();
    fake.put("/etc/znsage.conf", &(TWO.to_string() + "[broken]\ndevice = somewhere\n"));
    // It is to be there, and to be a program.
    let program = std::env::current_exe().unwrap();
    generate(&fake, program.to_str().unwrap()).unwrap_err();
    let directory = fake.at(OUT);
    let units: Vec<PathBuf> = ["fast", "big-one", "broken"]
        .iter()
        .map(|name| directory.join(format!("znsage@{name}.service")))
        .collect();
    let said = Program::new("systemd-analyze")
        .args(["verify", "--man=no", "--recursive-errors=no"])
        .args(&units)
        // Before those of the machine, as they are at work.
        .env("SYSTEMD_UNIT_PATH", format!("{}:", directory.display()))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{text}");
    // It complains of other units of the machine, too.
    let ours: Vec<&str> =
        text.lines().filter(|l| l.contains("znsage") || l.contains("cycle")).collect();
    assert!(ours.is_empty(), "{ours:#?}");
}

#[test]
fn systemd_names_devices_as_the_units_do() {
    if !installed("systemd-escape") {
        return;
    }
    for path in [
        "/dev/nvme1n1",
        "/dev/disk/by-id/nvme-WD_ZN540:1.x",
        "/dev/disk/by-id/a\\x20b",
        "/dev/mapper/a%b",
        "/dev/.hidden",
        "/dev/ü",
    ] {
        let fake = machine();
        fake.put("/etc/znsage.conf", &format!("[a]\ndevice = {path}\n"));
        generate(&fake, "/usr/sbin/znsage").unwrap();
        let said = Program::new("systemd-escape")
            .args(["--path", "--suffix=device", path])
            .output()
            .unwrap();
        let unit = String::from_utf8(said.stdout).unwrap();
        assert!(
            fake.exists(&format!("{OUT}/{}.wants/znsage@a.service", unit.trim())) || {
                // A link to nothing does not exist, but is there.
                fake.list(&format!("{OUT}/{}.wants", unit.trim())) == ["znsage@a.service"]
            },
            "{path}: {unit}"
        );
    }
}
