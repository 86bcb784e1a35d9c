// SPDX-License-Identifier: GPL-2.0-only
//! `set`: what it changes, what it refuses, and that it does nothing by halves.

use std::io;

use super::machine::*;
use crate::error::Kind;
use crate::sys::fake::Fake;
use crate::sys::Sys;

const DIR: &str = "/sys/block/znsage0/znsage";

/// A device with what can be set: gc_low 2, gc_high 4, 64 zones.
fn running() -> Fake {
    let fake = machine();
    turn_on(&fake, &[]).unwrap();
    fake.put(&format!("{DIR}/victim"), "greedy\n");
    fake.put(&format!("{DIR}/pace"), "0\n");
    fake.put(&format!("{CONFIG}/policies"), "single\ncpu\nmy-own\n");
    fake.effects.borrow_mut().clear();
    fake
}

fn value(fake: &Fake, file: &str) -> String {
    fake.read(&format!("{DIR}/{file}")).unwrap().trim().to_string()
}

/// The files written, in order.
fn written(fake: &Fake) -> Vec<String> {
    let short = |e: &String| e.strip_prefix(&format!("write {DIR}/")).map(str::to_string);
    fake.effects.borrow().iter().filter_map(short).collect()
}

#[test]
fn settings_are_set_and_told() {
    let fake = running();
    let words = "policy=my-own victim=age gc-low=3 gc_high=6 pace=60 deadline=2ms";
    let report = run_set(&fake, &words.split(' ').collect::<Vec<_>>()).unwrap();
    for (file, is) in [
        ("policy", "my-own"),
        ("victim", "age"),
        ("gc_low", "3"),
        ("gc_high", "6"),
        ("pace", "60"),
        ("deadline_us", "2000"),
    ] {
        assert_eq!(value(&fake, file), is, "{file}");
    }
    assert!(report.to_text().starts_with("znsage0: policy was cpu, is my-own\n"));
    assert!(report.to_text().contains("znsage0: deadline was 1000 us, is 2000 us\n"));
    let json = report.to_json();
    assert_eq!(json["device"], "znsage0");
    assert_eq!(json["changed"][0]["key"], "policy");
    assert_eq!(json["changed"][0]["before"], "cpu");
    assert_eq!(json["changed"][0]["after"], "my-own");
}

#[test]
fn a_device_goes_by_any_name_or_by_none() {
    for words in [
        &["deadline=900us"][..],
        &["znsage0", "deadline=900us"],
        &["/dev/znsage0", "deadline=900us"],
        &["nvme1n1", "deadline=900us"],
    ] {
        let fake = running();
        run_set(&fake, words).unwrap();
        assert_eq!(value(&fake, "deadline_us"), "900", "{words:?}");
    }
    let e = run_set(&running(), &["znsage7", "deadline=900us"]).unwrap_err();
    assert_eq!(e.kind, Kind::Device);
    let e = run_set(&machine(), &["deadline=900us"]).unwrap_err();
    assert_eq!((e.kind, e.message.as_str()), (Kind::Device, "no znsage device is on"));
}

#[test]
fn several_devices_have_to_be_told_apart() {
    let fake = running();
    fake.put("/sys/block/znsage1/znsage/policy", "cpu\n");
    let e = run_set(&fake, &["deadline=900us"]).unwrap_err();
    assert_eq!(e.kind, Kind::Usage);
    assert_eq!(e.hint.unwrap(), "there is: znsage0, znsage1");
}

#[test]
fn what_makes_no_sense_changes_nothing() {
    for (words, kind, says) in [
        ("speed=9", Kind::Usage, "there is no setting `speed`"),
        ("deadline", Kind::Usage, "KEY=VALUE is missing"),
        ("deadline=900us deadline=800us", Kind::Usage, "deadline is given twice"),
        ("deadline=900us gc-low", Kind::Usage, "`gc-low` is no KEY=VALUE"),
        ("deadline=soon", Kind::Usage, "`soon` is no time"),
        ("pace=quick", Kind::Usage, "`quick` is no percentage"),
        ("deadline=900us pace=101%", Kind::Device, "pace: 101 % is out of range: 0 % to 100 %"),
        ("gc-low=-1", Kind::Usage, "`-1` is no number of zones"),
        ("policy=a/b", Kind::Usage, "`a/b` is no name"),
        ("deadline=900us policy=psychic", Kind::Usage, "policy: there is no `psychic`"),
        ("deadline=0", Kind::Device, "deadline: 0 us is out of range: 100 us to 1 s"),
        ("deadline=99us", Kind::Device, "deadline: 99 us is out of range: 100 us to 1 s"),
        ("victim=age deadline=2s", Kind::Device, "deadline: 2000000 us is out of range"),
        ("gc-low=1", Kind::Device, "gc-low: 1 is out of range: 2 to 3, below gc-high, which is 4"),
        ("gc-low=4", Kind::Device, "gc-low: 4 is out of range: 2 to 3"),
        ("gc-high=2", Kind::Device, "gc-high: 2 is out of range: 3 to 63, above gc-low"),
        ("gc-high=64", Kind::Device, "gc-high: 64 is out of range: 3 to 63"),
        ("gc-low=62 gc-high=63 deadline=0", Kind::Device, "deadline"),
        ("gc-low=63 gc-high=63", Kind::Device, "gc-low: 63 is out of range: 2 to 62"),
        ("gc-low=9 gc-high=9", Kind::Device, "gc-high: 9 is out of range: 10 to 63"),
    ] {
        let fake = running();
        let e = run_set(&fake, &words.split(' ').collect::<Vec<_>>()).unwrap_err();
        assert_eq!(e.kind, kind, "{words}: {}", e.message);
        assert!(e.message.contains(says), "{words}: {}", e.message);
        assert!(fake.effects.borrow().is_empty(), "{words}");
    }
}

#[test]
fn only_root_sets() {
    let fake = running();
    fake.root_user.set(false);
    assert_eq!(run_set(&fake, &["deadline=900us"]).unwrap_err().kind, Kind::Environment);
}

#[test]
fn the_marks_never_cross_on_the_way() {
    let fake = running();
    run_set(&fake, &["gc-low=10", "gc-high=12"]).unwrap();
    assert_eq!(written(&fake), ["gc_high 12", "gc_low 10"]);
    fake.effects.borrow_mut().clear();
    run_set(&fake, &["gc-high=8", "gc-low=7"]).unwrap();
    assert_eq!(written(&fake), ["gc_low 7", "gc_high 8"]);
}

#[test]
fn a_failure_at_any_setting_puts_all_back() {
    let words = ["policy=single", "victim=age", "gc-low=10", "gc-high=12", "deadline=900us"];
    for step in 0..words.len() {
        let fake = running();
        let before = fake.snapshot();
        fake.fail_effect.set(Some(step));
        let e = run_set(&fake, &words).unwrap_err();
        assert_eq!(e.kind, Kind::Kernel);
        assert_eq!(fake.snapshot(), before, "{step}");
        assert_eq!(written(&fake).len(), 2 * step + 1, "{step}");
    }
}

#[test]
fn what_the_module_refuses_is_told() {
    let refuse = |errno| {
        let fake = running();
        fake.remove(&format!("{CONFIG}/policies"));
        fake.on_write(move |_, _, _| Err(io::Error::from_raw_os_error(errno)));
        fake
    };
    let e = run_set(&refuse(libc::ENOENT), &["policy=psychic"]).unwrap_err();
    assert_eq!(e.kind, Kind::Usage);
    assert!(e.hint.unwrap().starts_with("there is: single, cpu, process"));
    let e = run_set(&refuse(libc::EINVAL), &["victim=oldest"]).unwrap_err();
    assert_eq!(e.hint.unwrap(), "there is: greedy, cost-benefit, age");
    let e = run_set(&refuse(libc::EINVAL), &["gc-low=3"]).unwrap_err();
    assert_eq!((e.kind, e.message.as_str()), (Kind::Device, "the module refuses gc-low = 3"));
    let e = run_set(&refuse(libc::EBUSY), &["policy=single"]).unwrap_err();
    assert_eq!(e.kind, Kind::Busy);
}

#[test]
fn a_module_without_a_setting_is_of_another_version() {
    let fake = running();
    fake.remove(&format!("{DIR}/victim"));
    let before = fake.snapshot();
    let e = run_set(&fake, &["deadline=900us", "victim=age"]).unwrap_err();
    assert_eq!(e.kind, Kind::Environment);
    assert_eq!(e.message, "the module knows no setting `victim`");
    assert_eq!(fake.snapshot(), before);
}

/// Whatever the module's files hold, it is said and not computed with.
#[test]
fn marks_beyond_all_numbers_are_refused() {
    let fake = running();
    for file in ["gc_low", "gc_high", "gc_stripe"] {
        fake.put(&format!("{DIR}/{file}"), &format!("{}\n", u64::MAX));
    }
    assert_eq!(run_set(&fake, &["gc-low=5"]).unwrap_err().kind, Kind::Device);
    assert_eq!(run_set(&fake, &["gc-high=5"]).unwrap_err().kind, Kind::Device);
    assert!(written(&fake).is_empty());
}
