// SPDX-License-Identifier: GPL-2.0-only
//! The units that the generator makes from znsage.conf, compared with files and, if
//! installed, checked by systemd.

use std::path::PathBuf;
use std::process::Command as Program;

use super::machine::*;
use super::printed::compare_text;
use crate::cli::GeneratorArgs;
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
    let directories = [OUT, "/early", "/late"].map(str::to_string).to_vec();
    generator::run(fake, &GeneratorArgs { directories }, program)
}

/// All files in the directory, sorted by name.
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
fn every_section_is_a_service() {
    let fake = machine();
    fake.put("/etc/znsage.conf", TWO);
    generate(&fake, "/usr/sbin/znsage").unwrap();
    compare_text(&made(&fake), "generator");
}

#[test]
fn section_with_a_fault_is_a_service_that_fails() {
    let fake = machine();
    fake.put(
        "/usr/lib/znsage.conf",
        "[fast]\ndevice = /dev/sdb\nprio = 5\n[good]\ndevice=/dev/sdc\n",
    );
    fake.put("/dev/kmsg", "");
    let e = generate(&fake, "/opt/with space/znsage").unwrap_err();
    assert_eq!(e.message, "/usr/lib/znsage.conf:3: there is no key `prio`");
    assert_eq!(fake.read("/dev/kmsg").unwrap(), "", "not started by systemd");
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
fn no_units_without_sections_in_containers_and_initrds() {
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
fn failing_write_is_reported() {
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

#[test]
fn systemd_accepts_the_units() {
    if !installed("systemd-analyze") {
        return;
    }
    let fake = machine();
    fake.put("/etc/znsage.conf", &(TWO.to_string() + "[broken]\ndevice = somewhere\n"));
    // systemd checks that the program exists.
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
        // Before the units of the machine, as in operation.
        .env("SYSTEMD_UNIT_PATH", format!("{}:", directory.display()))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{text}");
    // It reports other units of the machine, too.
    let ours: Vec<&str> =
        text.lines().filter(|l| l.contains("znsage") || l.contains("cycle")).collect();
    assert!(ours.is_empty(), "{ours:#?}");
}

#[test]
fn device_units_have_the_names_of_systemd() {
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
                // `exists` is false for a dangling link.
                fake.list(&format!("{OUT}/{}.wants", unit.trim())) == ["znsage@a.service"]
            },
            "{path}: {unit}"
        );
    }
}
