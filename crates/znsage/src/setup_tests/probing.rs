// SPDX-License-Identifier: GPL-2.0-only
//! `probe` with a fio that makes its numbers of what it is asked, and what `on`
//! and `report` make of the result.

use super::machine::*;
use super::printed::{compare_json, compare_text};
use crate::cli::{Command, OnArgs, OnCommand};
use crate::conf;
use crate::error::{Kind, Result};
use crate::probe::{self, Report};
use crate::report;
use crate::sys::fake::Fake;
use crate::sys::{Ran, Sys};
use crate::zones::State;

const PROFILE: &str = "/root/fast.conf";
const SAVED: &str = "/root/probe.json";

/// The machine with a fio, and a processor to tell of.
fn with_fio() -> Fake {
    let fake = machine();
    well(&fake);
    fake.put_dir("/root");
    let cpu = "processor : 0\nmodel name : Test 9000\nflags : fpu hypervisor\n";
    fake.put("/proc/cpuinfo", &(cpu.to_string() + "processor : 1\n"));
    fake.on_run(|fake, argv| match argv {
        ["fio", "--version"] => Ran { stdout: "fio-3.33\n".into(), ..ended(0, "") },
        ["fio", ..] => Ran { stdout: fio(fake, argv), ..ended(0, "") },
        _ => program(fake, argv),
    });
    fake
}

fn value<'a>(words: &[&'a str], key: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

/// What fio prints: a request takes 10 us and 1 us for each KiB; two threads or
/// requests at once are twice as fast, more are not.
fn fio(fake: &Fake, argv: &[&str]) -> String {
    if let Some(log) = value(argv, "--write_bw_log") {
        fake.put(&format!("{log}_bw.1.log"), "500, 102400, 1, 0, 0\n1000, 81920, 1, 0, 0\n");
    }
    let begins: Vec<usize> = (0..argv.len()).filter(|i| argv[*i].starts_with("--name=")).collect();
    let ends = begins.iter().skip(1).copied().chain([argv.len()]);
    let jobs = begins.iter().zip(ends).map(|(&from, to)| job(&argv[from..to])).collect::<Vec<_>>();
    format!("fio: a warning\n{{\"fio version\": \"fio-3.33\", \"jobs\": [{}]}}", jobs.join(","))
}

fn job(words: &[&str]) -> String {
    let number = |key: &str| value(words, key).unwrap().parse::<u64>().unwrap();
    let ns = 10_000 + number("--bs") / 1024 * 1000;
    let at_once = (number("--numjobs") * number("--iodepth")).min(2);
    let iops = at_once * 1_000_000_000 / ns;
    let (busy, idle) = match value(words, "--rw").unwrap() {
        "write" => ("write", "read"),
        _ => ("read", "write"),
    };
    format!(
        "{{\"error\": 0, \"{idle}\": {{}}, \"{busy}\": {{\"io_bytes\": 67108864, \
         \"bw_bytes\": {}, \"iops\": {iops}.5, \"clat_ns\": {{\"mean\": {ns}.25, \"max\": {}, \
         \"percentile\": {{\"50.000000\": {ns}, \"99.000000\": {}, \"99.900000\": {}}}}}}}}}",
        iops * number("--bs"),
        4 * ns,
        2 * ns,
        3 * ns
    )
}

fn run_probe(fake: &Fake, options: &[&str]) -> Result<Report> {
    match parse(&[&["probe", "/dev/nvme1n1"], options].concat()) {
        Command::Probe(args) => {
            let ready = probe::prepare(fake, &args, PAGE)?;
            probe::run(fake, &ready)
        }
        _ => unreachable!(),
    }
}

fn last_effect(fake: &Fake) -> String {
    fake.effects.borrow().last().cloned().unwrap_or_default()
}

/// All of its zones, as the machine has them.
const RESET: &str = "Reset /dev/nvme1n1 0+268435456";

#[test]
fn what_is_found_is_printed_saved_and_taken_by_on() {
    let fake = with_fio();
    let mut report = run_probe(&fake, &["--yes", "--profile", PROFILE, "--save", SAVED]).unwrap();
    assert!(report.unsaved.is_empty());
    let saved: serde_json::Value = serde_json::from_str(&fake.read(SAVED).unwrap()).unwrap();
    assert_eq!(saved, report.to_json());
    report.probe.seconds = 12.0;
    compare_json(&report.to_json(), "probe");
    compare_text(&report.to_text(), "probe");
    compare_text(&fake.read(PROFILE).unwrap(), "probe-profile");
    assert!(!fake.exists("/run/znsage/probe-nvme1n1_bw.1.log"));

    let value = |key: &str| {
        let of_key = report.probe.recommended.iter().find(|s| s.key == key);
        of_key.map(|s| s.value.clone()).unwrap()
    };
    let report = run_on(&fake, &["--profile", PROFILE, "/dev/nvme1n1", "--reserve=5"]).unwrap();
    assert!(report.to_text().contains("znsage0 on /dev/nvme1n1"), "{}", report.to_text());
    let set =
        |file: &str| fake.read(&format!("{CONFIG}/nvme1n1/{file}")).unwrap().trim().to_string();
    assert_eq!(set("policy"), value("policy"));
    assert_eq!(set("stripe"), value("stripe"));
    assert_eq!(Ok(set("chunk").parse().unwrap()), crate::units::parse_size(&value("chunk")));
    assert_eq!(set("reserve"), "5");
}

#[test]
fn the_device_is_left_empty_whatever_goes_wrong() {
    let count = {
        let fake = with_fio();
        run_probe(&fake, &["--yes", "--quick"]).unwrap();
        assert_eq!(last_effect(&fake), RESET);
        let count = fake.effects.borrow().len();
        count
    };
    assert!(count > 30, "{count}");
    // Every third, and the last: they are many.
    for index in (0..count - 1).rev().step_by(3) {
        let fake = with_fio();
        fake.signal_effect.set(Some(index));
        let e = run_probe(&fake, &["--yes", "--quick"]).err().unwrap();
        assert_eq!(e.kind, Kind::Interrupted, "{index}: {e:?}");
        assert_eq!(last_effect(&fake), RESET, "{index}");
        assert!(e.hint.unwrap().contains("is empty"), "{index}");

        let fake = with_fio();
        fake.fail_effect.set(Some(index));
        let failed = run_probe(&fake, &["--yes", "--quick"]).err();
        let begun = fake.effects.borrow().iter().any(|effect| effect.starts_with("Reset"));
        assert!(failed.is_some() && (!begun || last_effect(&fake) == RESET), "{index}");
    }
    let fake = with_fio();
    fake.fail_effect.set(Some(count - 1));
    let e = run_probe(&fake, &["--yes", "--quick"]).err().unwrap();
    assert!(e.hint.unwrap().contains("`blkzone reset /dev/nvme1n1`"));
}

#[test]
fn nothing_is_overwritten_without_a_yes() {
    for (answer, kind) in [(None, Kind::Usage), (Some(""), Kind::Interrupted)] {
        let fake = with_fio();
        *fake.answer.borrow_mut() = answer.map(str::to_string);
        let e = run_probe(&fake, &["--quick"]).err().unwrap();
        assert_eq!(e.kind, kind);
        assert!(last_effect(&fake).contains("(256 MiB) will be lost; it takes about"));
    }
    let fake = with_fio();
    *fake.answer.borrow_mut() = Some("yes".to_string());
    run_probe(&fake, &["--quick"]).unwrap();
}

#[test]
fn what_is_in_the_way_is_told_first() {
    let no_fio = with_fio();
    no_fio.fail_at("run fio --version", libc::ENOENT);
    let user = with_fio();
    user.root_user.set(false);
    let written = with_fio();
    set_zones(&written, vec![zone(State::Written); 64]);
    let few = with_fio();
    set_zones(&few, vec![zone(State::Empty); 7]);
    let held = with_fio();
    held.claim_error.set(Some(libc::EBUSY));
    for (fake, options, kind, part) in [
        (&no_fio, &["--yes"][..], Kind::Environment, "apt-get install fio"),
        (&user, &["--yes"], Kind::Environment, "sudo"),
        (&written, &["--yes"], Kind::Busy, "--force"),
        (&few, &["--yes"], Kind::Device, "conventional"),
        (&held, &["--yes"], Kind::Busy, "fuser"),
        (&with_fio(), &["--yes", "--save", "/no/such/x"], Kind::Usage, "a directory that is there"),
    ] {
        let e = run_probe(fake, options).err().unwrap();
        assert!(e.kind == kind && e.hint.as_ref().unwrap().contains(part), "{e:?}");
        assert!(!fake.effects.borrow().iter().any(|effect| effect.starts_with("Reset")));
    }
    run_probe(&written, &["--yes", "--quick", "--force"]).unwrap();
}

#[test]
fn without_appends_the_writes_have_to_do() {
    let fake = with_fio();
    fake.fail_at("append ", libc::ENOTTY);
    let report = run_probe(&fake, &["--yes", "--quick"]).unwrap();
    assert!(report.probe.notes.iter().any(|note| note.contains("no NVMe device")));
    assert!(report.probe.recommended.iter().any(|s| s.reason.starts_with("one write of ")));
}

fn profile_of(text: &str, words: &[&str]) -> Result<OnArgs> {
    let fake = machine();
    fake.put(PROFILE, text);
    match parse(&[&["on", "--profile", PROFILE, "/dev/nvme1n1"], words].concat()) {
        Command::On(OnCommand::Profile(profile)) => conf::profile(&fake, &profile),
        other => panic!("{other:?}"),
    }
}

#[test]
fn options_count_more_than_a_profile() {
    let text = "[fast]\nchunk = 64K\nreserve = 4\nforce = yes\n";
    let args = profile_of(text, &["--chunk", "32K", "--priority=7"]).unwrap();
    assert_eq!((args.chunk, args.reserve, args.priority), (Some(32 << 10), Some(4), Some(7)));
    assert!(args.force && args.device == "/dev/nvme1n1");
    assert!(profile_of("[fast]\n", &["--force"]).unwrap().force);
}

#[test]
fn faults_of_a_profile_are_told_with_their_line() {
    for (text, part) in [
        ("[fast]\n\nchunks = 1K", "fast.conf:3: there is no key `chunks`"),
        ("[fast]\nstripe = 99", "fast.conf:2: stripe: 99 is not in 1..=16"),
        ("stripe = 1", "belongs to no section"),
        ("", "has 0 sections"),
        ("[a]\n[b]\n", "has 2 sections"),
    ] {
        let e = profile_of(text, &[]).unwrap_err();
        assert!(e.kind == Kind::Usage && e.message.contains(part), "{}", e.message);
    }
    let e = run_on(&machine(), &["--profile", "/no/such", "/dev/nvme1n1"]).unwrap_err();
    assert!(e.message.contains("cannot read /no/such"), "{}", e.message);
}

#[test]
fn a_page_is_made_of_it() {
    let fake = with_fio();
    run_probe(&fake, &["--yes", "--save", SAVED]).unwrap();
    let Command::Report(args) = parse(&["report", SAVED]) else { unreachable!() };
    let written = report::run(&fake, &args).unwrap();
    assert_eq!(written.file.to_str(), Some("/root/probe.html"));
    let html = fake.read("/root/probe.html").unwrap();
    assert_eq!(html.matches("<svg ").count(), written.charts);
    assert!(written.charts >= 10, "{}", written.charts);
    let said = report::Report { bytes: 100 << 10, ..written };
    compare_json(&said.to_json(), "report");
    compare_text(&said.to_text(), "report");
}
