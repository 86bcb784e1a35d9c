// SPDX-License-Identifier: GPL-2.0-only
//! `on` and `off` by a section of znsage.conf, and what files of settings say.

use super::machine::*;
use crate::cli::{Command, OnArgs, OnCommand};
use crate::conf;
use crate::error::Kind;
use crate::sys::fake::Fake;
use crate::sys::Sys;
use crate::zones::State;

const FILE: &str = "/etc/znsage.conf";
const PLAIN: &str = "[fast]\ndevice = /dev/nvme1n1\n";

fn with_file(text: &str) -> Fake {
    let fake = machine();
    fake.put(FILE, text);
    fake
}

/// A name of nvme1n1 that stays.
fn add_link(fake: &Fake, path: &str) {
    fake.put(path, "");
    fake.blocks.borrow_mut().insert(path.into(), (259, 1));
}

#[test]
fn a_section_is_turned_on_and_off_without_a_trace() {
    let fake = with_file(PLAIN);
    let before = fake.snapshot();
    let report = run_on(&fake, &["--config", "fast"]).unwrap();
    assert!(report.to_text().starts_with("znsage0 on /dev/nvme1n1: "), "{}", report.to_text());
    let report = turn_off(&fake, &["--config", "fast"]).unwrap();
    let off: Vec<_> = report.off.iter().map(|off| (&off.name[..], &off.backing[..])).collect();
    assert_eq!(off, [("znsage0", "nvme1n1")]);
    assert_eq!(fake.snapshot(), before);
}

/// `on` with each option that it has.
fn every_option() -> &'static str {
    "--size 100M --over-provisioning 7 --policy my-own --victim age --chunk 64K \
     --write-unit 32K --priority 5 --deadline-us 500 --reserve 3 --stripe 2 --pace 40 \
     --encrypt aes-xts --force"
}

#[test]
fn keys_are_the_options_of_on() {
    let mut text = "[all]\ndevice = /dev/disk/by-id/nvme-x\n".to_string();
    for option in every_option().split("--").filter(|o| !o.is_empty()) {
        let (key, value) = option.trim().split_once(' ').unwrap_or((option.trim(), "yes"));
        text += &format!("{key}={value}\n");
    }
    let words = [
        &["on", "/dev/disk/by-id/nvme-x"],
        &every_option().split_whitespace().collect::<Vec<_>>()[..],
    ];
    let Command::On(OnCommand::Device(want)) = parse(&words.concat()) else { unreachable!() };
    let fake = with_file(&text);
    let conf = conf::read(&fake);
    assert_eq!(format!("{:?}", conf.section("all").unwrap()), format!("{want:?}"), "{conf:?}");

    // None is forgotten above.
    let debug = format!("{want:?}");
    assert!(!debug.contains("None") && !debug.contains("false"), "{debug}");
    let plain = with_file("[a]\ndevice=/dev//nvme1n1/\nforce = no\n");
    let args = conf::read(&plain);
    let want = format!("{:?}", OnArgs::plain("/dev/nvme1n1"));
    assert_eq!(format!("{:?}", args.section("a").unwrap()), want);
}

/// A file, where its fault is, and a part of what is said and of the hint.
#[rustfmt::skip]
const FAULTS: &[(&str, usize, &str, &str)] = &[
    ("device = /dev/nvme1n1", 1, "`device` belongs to no section", "[swap]"),
    ("[fast]\ndevice=/dev/x\npolicy heat", 3, "`policy heat` is no setting", "KEY = VALUE"),
    ("[fast]\ndevice=/dev/x\nprio = 5", 3, "there is no key `prio`", "the nearest is `priority`"),
    ("[fast]\ndevice=/dev/x\nOver_Provisioning=5", 3, "no key `Over_", "`over-provisioning`"),
    ("[fast]\ndevice=/dev/x\njson = yes", 3, "there is no key `json`", "of device, size"),
    ("[fast]\ndevice=/dev/x\nconfig = a", 3, "there is no key `config`", "nearest"),
    ("[fast]\ndevice=/dev/x\nsize = 12Q", 3, "size: `12Q` is no size; write for example", "size = SIZE: Swap space"),
    ("[fast]\ndevice=/dev/x\nsize = 8G # half", 3, "size: `8G # half` is no size", "a line of its own"),
    ("[fast]\ndevice=/dev/x\nover-provisioning = 91", 3, "over-provisioning: 91 is not in 0..=90", "PERCENT"),
    ("[fast]\ndevice=/dev/x\nreserve = few", 3, "reserve: `few` is no whole number", "only garbage"),
    ("[fast]\ndevice=/dev/x\nreserve = 99999999999999999999", 3, "far too large", "N: "),
    ("[fast]\ndevice=/dev/x\npriority = -1", 3, "priority: ", "0 to 32767"),
    ("[fast]\ndevice=/dev/x\nencrypt = rot13", 3, "encrypt: `rot13` is none of off, aes-xts", "random key"),
    ("[fast]\ndevice=/dev/x\nforce = perhaps", 3, "force: `perhaps` is neither yes nor no", "lost"),
    ("[fast]\ndevice=/dev/x\nsize=1G\nsize=2G", 4, "`size` is already in line 3", "one of them"),
    ("\n[fast]\nsize = 1G", 2, "section fast has no device", "device = /dev/disk"),
    ("[fast]\ndevice =", 1, "section fast has no device", "device = /dev/disk"),
    ("[fast]\ndevice = nvme1n1", 2, "device: `nvme1n1` is no path below /dev", "by-id"),
    ("[fast]\ndevice = /dev/../etc/passwd", 2, "no path below /dev", "by-id"),
    ("[fast]\ndevice = /dev/x\nforce = yes", 2, "may be another disk after the next start", "stays"),
    ("[slow]\ndevice=/dev/x\n[fast]\ndevice = /dev//x", 4, "section slow has /dev/x already", "one section"),
    ("[fast\ndevice=/dev/x", 1, "`[fast` is no section", "[NAME]"),
];

#[test]
fn every_fault_is_told_with_its_line_and_what_is_allowed() {
    for (text, line, says, hint) in FAULTS {
        let fake = with_file(text);
        let faults = conf::read(&fake).faults;
        assert_eq!(faults.len(), 1, "{text}: {faults:?}");
        assert_eq!(faults[0].line, Some(*line), "{text}");
        let e = run_on(&fake, &["--config", "fast"]).unwrap_err();
        assert_eq!(e.kind, Kind::Usage, "{text}");
        // If even the section is not to be seen, the fault is in the hint.
        let all = format!("{}\n{}", e.message, e.hint.unwrap_or_default());
        assert!(all.contains(&format!("{FILE}:{line}: ")) && all.contains(says), "{text}: {all}");
        let allowed = faults[0].hint.clone().unwrap_or_default();
        assert!(allowed.contains(hint), "{text}: {allowed}");
        assert!(fake.effects.borrow().is_empty(), "{text}");
    }
}

#[test]
fn all_faults_of_a_section_are_told_at_once_and_others_are_left_alone() {
    let fake = with_file("[fast]\nprio = 1\nsize = x\n[slow]\ndevice = /dev/nvme1n1\n");
    let e = run_on(&fake, &["--config", "fast"]).unwrap_err();
    assert!(e.message.contains(":2: there is no key `prio`"), "{}", e.message);
    let hint = e.hint.unwrap();
    assert!(
        hint.contains(":3: size: ") && hint.contains(":1: section fast has no device"),
        "{hint}"
    );
    run_on(&fake, &["--config", "slow"]).unwrap();
}

/// Or the units of all others could not be written.
#[test]
fn a_path_fits_into_the_name_of_a_unit() {
    let faults = |length: usize| {
        let name = "x".repeat(length);
        conf::read(&with_file(&format!("[a]\ndevice = /dev/{name}\n"))).faults
    };
    assert_eq!(faults(249 - "dev-.device".len()), []);
    let faults = faults(250 - "dev-.device".len());
    assert!(faults[0].to_string().contains(":2: device: /dev/xxx"), "{faults:?}");
}

#[test]
fn an_unknown_section_is_told_which_there_are() {
    let e = run_on(&with_file(PLAIN), &["--config", "fats"]).unwrap_err();
    assert_eq!((e.kind, e.message.as_str()), (Kind::Usage, "there is no section `fats`"));
    assert_eq!(e.hint.unwrap(), "there is: fast");
    let e = run_on(&machine(), &["--config", "fast"]).unwrap_err();
    assert!(e.hint.unwrap().contains("none in /etc/znsage.conf, /run/"));
}

#[test]
fn drop_ins_have_the_last_word() {
    let fake = with_file("[fast]\ndevice = /dev/nvme1n1\nsize = 100M\npolicy = heat\n");
    fake.put("/usr/lib/znsage.conf.d/10-a.conf", "[fast]\nsize = 50M\nchunk = nonsense\n");
    fake.put("/etc/znsage.conf.d/20-b.conf", "[fast]\npolicy =\nchunk = 64K\n");
    fake.put("/usr/lib/znsage.conf.d/20-b.conf", "[fast]\nsize = 1M\n");
    let conf = conf::read(&fake);
    assert_eq!(conf.faults, []);
    let args = conf.section("fast").unwrap();
    assert_eq!((args.size, args.chunk), (Some(50 << 20), Some(64 << 10)));
    assert_eq!(args.policy, None);

    // A fault is told where it is.
    fake.put("/etc/znsage.conf.d/30-c.conf", "\n[fast]\nsize = much\n");
    let e = run_on(&fake, &["--config", "fast"]).unwrap_err();
    assert!(e.message.starts_with("/etc/znsage.conf.d/30-c.conf:3: size: "), "{}", e.message);
}

#[test]
fn what_is_on_is_on() {
    let fake = with_file(PLAIN);
    let first = run_on(&fake, &["--config", "fast"]).unwrap();
    let effects = fake.effects.borrow().len();
    let again = run_on(&fake, &["--config", "fast"]).unwrap();
    assert_eq!(first.to_text(), again.to_text());
    assert_eq!(fake.effects.borrow().len(), effects, "nothing was done");

    // By hand, without its section.
    let fake = with_file(PLAIN);
    turn_on(&fake, &[]).unwrap();
    run_on(&fake, &["--config", "fast"]).unwrap();
    turn_off(&fake, &["--config", "fast"]).unwrap();
    assert!(!fake.exists(CONFIG));

    turn_on(&fake, &[]).unwrap();
    fake.put("/proc/swaps", NO_SWAP);
    let e = run_on(&fake, &["--config", "fast"]).unwrap_err();
    assert_eq!(e.kind, Kind::Busy);
    assert!(e.message.contains("behind znsage0, which is not used as swap"), "{}", e.message);
}

#[test]
fn what_is_off_is_off() {
    let fake = with_file(PLAIN);
    let report = turn_off(&fake, &["--config", "fast"]).unwrap();
    assert_eq!(report.to_text(), "fast is off already\n");
    fake.remove("/dev/nvme1n1");
    turn_off(&fake, &["--config", "fast"]).unwrap();
    assert!(turn_off(&fake, &["--config", "slow"]).is_err());
}

#[test]
fn off_knows_what_on_took() {
    for text in ["[fast]\ndevice = /dev/nvme7n1\n", "nonsense", "[slow]\ndevice = /dev/nvme1n1\n"] {
        let fake = with_file(PLAIN);
        run_on(&fake, &["--config", "fast"]).unwrap();
        fake.put(FILE, text);
        let report = turn_off(&fake, &["--config", "fast"]).unwrap();
        assert_eq!(report.off.len(), 1, "{text}");
        assert_eq!(fake.list("/run/znsage"), [""; 0], "{text}");
    }
    // Whoever turns it off, the section has it no more.
    let fake = with_file(PLAIN);
    run_on(&fake, &["--config", "fast"]).unwrap();
    turn_off(&fake, &["nvme1n1"]).unwrap();
    assert_eq!(fake.list("/run/znsage"), [""; 0]);
}

#[test]
fn off_of_a_section_leaves_the_others_on() {
    let fake = with_file("[fast]\ndevice = /dev/nvme1n1\n[slow]\ndevice = /dev/nvme2n1\n");
    run_on(&fake, &["--config", "fast"]).unwrap();
    fake.put("/dev/nvme2n1", "");
    fake.blocks.borrow_mut().insert("/dev/nvme2n1".into(), (259, 2));
    fake.put_link("/sys/dev/block/259:2", "/sys/block/nvme2n1");
    fake.put_dir("/sys/block/nvme2n1");
    let report = turn_off(&fake, &["--config", "slow"]).unwrap();
    assert!(report.off.is_empty() && !report.module_unloaded);
    assert!(fake.read("/proc/swaps").unwrap().contains("znsage0"));
}

#[test]
fn a_failure_or_signal_at_any_step_is_undone() {
    let whole = with_file(PLAIN);
    run_on(&whole, &["--config", "fast"]).unwrap();
    let steps = whole.effects.borrow().len();
    for (step, signal) in (0..steps).flat_map(|step| [(step, false), (step, true)]) {
        let fake = with_file(PLAIN);
        let before = fake.snapshot();
        match signal {
            true => fake.signal_effect.set(Some(step)),
            false => fake.fail_effect.set(Some(step)),
        }
        let what = whole.effects.borrow()[step].clone();
        assert!(run_on(&fake, &["--config", "fast"]).is_err(), "{what}");
        assert_eq!(fake.snapshot(), before, "{what}, signal: {signal}");
    }
}

/// The power went while the device was on.
#[test]
fn what_a_power_failure_leaves_is_taken_with_force_only() {
    let path = "/dev/disk/by-id/nvme-x";
    let text = format!("[fast]\ndevice = {path}\n");
    let fake = with_file(&text);
    add_link(&fake, path);
    fake.zones.borrow_mut()[3].state = State::Written;
    let e = run_on(&fake, &["--config", "fast"]).unwrap_err();
    assert_eq!(e.kind, Kind::Busy);
    let hint = e.hint.unwrap();
    assert!(hint.contains("`force = yes` in section fast"), "{hint}");
    fake.put(FILE, &(text + "force = yes\n"));
    run_on(&fake, &["--config", "fast"]).unwrap();
}

/// It has all keys, and makes sense once the marks of comments are gone.
#[test]
fn the_example_makes_sense() {
    let text = include_str!("../../../../dist/znsage.conf");
    assert!(conf::read(&with_file(text)).sections.is_empty(), "it is for people to fill in");
    let text: String = (text.lines())
        .map(|line| line.strip_prefix('#').filter(|l| !l.starts_with(' ')).unwrap_or(line))
        .fold(String::new(), |text, line| text + line + "\n");
    let conf = conf::read(&with_file(&text));
    assert_eq!(conf.faults, []);
    let args = format!("{:?}", conf.section("swap").unwrap());
    assert!(!args.contains("None") && !args.contains("false"), "{args}");
}
