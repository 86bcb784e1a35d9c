// SPDX-License-Identifier: GPL-2.0-only
//! The units that the generator makes from znsage.conf, checked by systemd if that is
//! installed. tests/cases/generator.txt has their text.

use std::path::PathBuf;
use std::process::Command as Program;

use super::machine::*;
use crate::cli::GeneratorArgs;
use crate::error::Result;
use crate::generator;
use crate::sys::fake::Fake;
use crate::sys::Sys;

const OUT: &str = "/run/systemd/generator";

const SECTIONS: &str = "\
[fast]
device = /dev/disk/by-id/nvme-100%_fast
size = 64G
[big-one]
device = /dev/sdb
priority = 5
[broken]
device = somewhere
";

pub fn generate(fake: &Fake, program: &str) -> Result<()> {
    let directories = [OUT, "/early", "/late"].map(str::to_string).to_vec();
    generator::run(fake, &GeneratorArgs { directories }, program)
}

/// All files that it made, sorted by name.
pub fn made(fake: &Fake) -> String {
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
    fake.put("/etc/znsage.conf", SECTIONS);
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
