// SPDX-License-Identifier: GPL-2.0-only
//! `probe` with a fake fio that computes plausible numbers, and the use of its result
//! by `on`.

use clap::Parser;

use super::machine::*;
use super::printed::{compare_json, compare_text};
use crate::cli::{Cli, Command};
use crate::error::{Kind, Result};
use crate::probe::{self, Report};
use crate::sys::fake::Fake;
use crate::sys::{Ran, Sys};

const PROFILE: &str = "/root/fast.conf";
const SAVED: &str = "/root/probe.json";

fn with_fio() -> Fake {
    let fake = well();
    add_fio(&fake);
    fake
}

/// Adds a fio and a CPU model.
pub fn add_fio(fake: &Fake) {
    fake.put_dir("/root");
    let cpu = "processor : 0\nmodel name : Test 9000\nflags : fpu hypervisor\n";
    fake.put("/proc/cpuinfo", &(cpu.to_string() + "processor : 1\n"));
    fake.on_run(|fake, argv| match argv {
        ["fio", "--version"] => Ran { stdout: "fio-3.33\n".into(), ..ended(0, "") },
        ["fio", ..] => Ran { stdout: fio(argv), ..ended(0, "") },
        _ => program(fake, argv),
    });
}

fn value<'a>(words: &[&'a str], key: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

/// The output of fio. A request takes 10 us plus 1 us per KiB; two threads or
/// requests at once are twice as fast, more are no faster.
fn fio(argv: &[&str]) -> String {
    let begins: Vec<usize> = (0..argv.len()).filter(|i| argv[*i].starts_with("--name=")).collect();
    let ends = begins.iter().skip(1).copied().chain([argv.len()]);
    let jobs = begins.iter().zip(ends).map(|(&from, to)| job(&argv[from..to])).collect::<Vec<_>>();
    format!("fio: a warning\n{{\"fio version\": \"fio-3.33\", \"jobs\": [{}]}}", jobs.join(","))
}

fn job(words: &[&str]) -> String {
    let number = |key: &str| value(words, key).unwrap().parse::<u64>().unwrap();
    let small = value(words, "--blockalign").is_some_and(|zone| zone == "1048576");
    let ns = (10_000 + number("--bs") / 1024 * 1000) * if small { 2 } else { 1 };
    let at_once = (number("--numjobs") * number("--iodepth")).min(2);
    let iops = at_once * 1_000_000_000 / ns;
    format!(
        "{{\"error\": 0, \"write\": {{\"bw_bytes\": {}, \"iops\": {iops}.5, \
         \"clat_ns\": {{\"mean\": {ns}.25, \"max\": {}, \"percentile\": {{\"50.000000\": {ns}, \"99.000000\": {}, \"99.900000\": {}}}}}}}}}",
        iops * number("--bs"),
        4 * ns,
        2 * ns,
        3 * ns
    )
}

fn run_probe(fake: &Fake, options: &[&str]) -> Result<Report> {
    let words = [&["znsage", "probe", "/dev/nvme1n1"], options].concat();
    let Command::Probe(args) = Cli::try_parse_from(words).unwrap().command else { unreachable!() };
    let ready = probe::prepare(fake, &args, PAGE)?;
    probe::run(fake, &ready)
}

fn last_effect(fake: &Fake) -> String {
    fake.effects.borrow().last().cloned().unwrap_or_default()
}

/// The effect of resetting all zones.
const RESET: &str = "reset /dev/nvme1n1 0+268435456";

#[test]
fn probe_result_is_printed_saved_and_used_by_on() {
    let fake = with_fio();
    let mut report = run_probe(&fake, &["--yes", "--profile", PROFILE, "--save", SAVED]).unwrap();
    assert!(report.unsaved.is_empty());
    let saved: serde_json::Value = serde_json::from_str(&fake.read(SAVED).unwrap()).unwrap();
    assert_eq!(saved, report.to_json());
    report.probe.seconds = 12.0;
    compare_json(&report.to_json(), "probe");
    compare_text(&report.to_text(), "probe");
    compare_text(&fake.read(PROFILE).unwrap(), "probe-profile");

    let value = |key: &str| {
        let of_key = report.probe.recommended.iter().find(|s| s.key == key);
        of_key.map(|s| s.value.clone()).unwrap()
    };
    run(&fake, &format!("on --profile {PROFILE} /dev/nvme1n1 --reserve=5")).unwrap();
    let set =
        |file: &str| fake.read(&format!("{CONFIG}/nvme1n1/{file}")).unwrap().trim().to_string();
    assert_eq!(set("stripe"), value("stripe"));
    assert_eq!(Ok(set("chunk").parse().unwrap()), crate::units::parse_size(&value("chunk")));
    assert_eq!(set("reserve"), "5");
}

#[test]
fn device_is_left_empty_after_any_failure() {
    let count = {
        let fake = with_fio();
        run_probe(&fake, &["--yes", "--quick"]).unwrap();
        assert_eq!(last_effect(&fake), RESET);
        let count = fake.effects.borrow().len();
        count
    };
    assert!(count > 4, "{count}");
    for index in 0..count - 1 {
        let fake = with_fio();
        fake.signal_effect.set(Some(index));
        let e = run_probe(&fake, &["--yes", "--quick"]).err().unwrap();
        assert_eq!(e.kind, Kind::Interrupted, "{index}: {e:?}");
        assert_eq!(last_effect(&fake), RESET, "{index}");
        assert!(e.hint.unwrap().contains("is empty"), "{index}");

        let fake = with_fio();
        fake.fail_effect.set(Some(index));
        let failed = run_probe(&fake, &["--yes", "--quick"]).err();
        let begun = fake.effects.borrow().iter().any(|effect| effect.starts_with("reset"));
        assert!(failed.is_some() && (!begun || last_effect(&fake) == RESET), "{index}");
    }
    let fake = with_fio();
    fake.fail_effect.set(Some(count - 1));
    let e = run_probe(&fake, &["--yes", "--quick"]).err().unwrap();
    assert!(e.hint.unwrap().contains("`blkzone reset /dev/nvme1n1`"));
}

/// Small zones are written at half the speed.
#[test]
fn device_without_zones() {
    let fake = with_fio();
    for (file, text) in [("queue/zoned", "none"), ("size", "524288")] {
        fake.put(&format!("/sys/block/nvme1n1/{file}"), text);
    }
    fake.put("/sys/block/nvme1n1/queue/discard_max_bytes", "2147483648");
    let mut report = run_probe(&fake, &["--yes", "--profile", PROFILE]).unwrap();
    let discards = |effect: &String| effect == "run blkdiscard --force /dev/nvme1n1";
    assert!(fake.effects.borrow().iter().any(discards));
    report.probe.seconds = 12.0;
    compare_json(&report.to_json(), "probe-conventional");
    compare_text(&report.to_text(), "probe-conventional");
    compare_text(&fake.read(PROFILE).unwrap(), "probe-conventional-profile");
    run(&fake, &format!("on --profile {PROFILE} /dev/nvme1n1")).unwrap();
    let set = fake.read(&format!("{CONFIG}/nvme1n1/zone_size")).unwrap();
    assert_eq!(set.trim(), (2 << 20).to_string());
}
