// SPDX-License-Identifier: GPL-2.0-only
//! Runs the cases in tests/cases: each sets up a machine, runs commands and shows
//! what they print. SNAPSHOTS=overwrite cargo test -p znsage renews the files.
//!
//! `== TITLE` begins a case with a new [`machine`]; lines in [`Case::set_up`] change
//! it. `$ WORDS` runs the command; `>` shows its text, hint and exit status.
//! `document NAME` compares what `--json` prints of the last command with the file in
//! tests/printed/json, `generate PROGRAM` shows the units that the generator makes.
//! `undone` says that a failed command acted and undid it; files that it did not
//! restore are listed. `changes` lists those that differ since the set-up.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::rc::Rc;

use snapbox::{assert_data_eq, Data, IntoData};

use super::generating::{generate, made};
use super::machine::*;
use super::printed::compare_json;
use super::probing::add_fio;
use crate::sys::fake::Fake;
use crate::sys::{LogLine, Ran, Sys};
use crate::units::parse_size;
use crate::zones::{State, Zone};

/// The files have the word VERSION instead.
const VERSION: &str = env!("CARGO_PKG_VERSION");

const ERRORS: [(&str, i32); 12] = [
    ("EACCES", libc::EACCES),
    ("EAGAIN", libc::EAGAIN),
    ("EBUSY", libc::EBUSY),
    ("EINVAL", libc::EINVAL),
    ("EIO", libc::EIO),
    ("ENOENT", libc::ENOENT),
    ("ENOPKG", libc::ENOPKG),
    ("ENOSPC", libc::ENOSPC),
    ("ENOTEMPTY", libc::ENOTEMPTY),
    ("ENOTTY", libc::ENOTTY),
    ("EPERM", libc::EPERM),
    ("EROFS", libc::EROFS),
];

fn errno(name: &str) -> i32 {
    let found = ERRORS.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("add {name} to ERRORS")).1
}

/// Programs whose answer a case replaces: the beginning of the command line, exit
/// status, output.
type Answers = Rc<RefCell<Vec<(String, i32, String)>>>;

struct Case {
    fake: Fake,
    start: BTreeMap<String, String>,
    answers: Answers,
    json: serde_json::Value,
    /// Effects before the last command.
    seen: usize,
}

impl Case {
    fn new() -> Case {
        let fake = machine();
        let start = fake.snapshot();
        Case { fake, start, answers: Rc::default(), json: serde_json::Value::Null, seen: 0 }
    }

    /// Handles a line of a case; returns the lines to show.
    fn line(&mut self, line: &str) -> String {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "$" => self.command(rest),
            "do" => {
                run(&self.fake, rest).unwrap_or_else(|e| panic!("{line}: {}", e.to_text()));
                String::new()
            }
            "document" => {
                compare_json(&self.json, rest);
                String::new()
            }
            "generate" => {
                let failed = generate(&self.fake, rest).err();
                let said = failed.map_or(String::new(), |e| {
                    format!("{}exit status {}\n", e.to_text(), e.kind as u8)
                });
                said + &made(&self.fake)
            }
            "doctor" => {
                let text = run(&self.fake, "doctor").unwrap().text;
                text.split_inclusive('\n').filter(|l| !l.starts_with("ok ")).collect()
            }
            "cat" => self.fake.read(rest).unwrap_or_else(|e| format!("{e}\n")),
            "json" => format!("{}\n", self.json.pointer(rest).unwrap_or(&serde_json::Value::Null)),
            "effects" => {
                let effects = self.fake.effects.borrow();
                let matching = effects[self.seen..].iter().filter(|effect| effect.contains(rest));
                matching.fold(String::new(), |text, effect| text + effect + "\n")
            }
            "changes" => changes(&self.start, &self.fake.snapshot()),
            _ => {
                self.set_up(verb, rest);
                self.start = self.fake.snapshot();
                String::new()
            }
        }
    }

    fn command(&mut self, words: &str) -> String {
        let before = self.fake.snapshot();
        self.seen = self.fake.effects.borrow().len();
        let outcome = run(&self.fake, words);
        let effects = self.fake.effects.borrow();
        let harmless = [
            "ask ",
            "run wipefs --json",
            "run modprobe --dry-run",
            "run modinfo",
            "run systemctl is-",
            "run fio --version",
        ];
        let acted = |effect: &String| !harmless.iter().any(|look| effect.starts_with(look));
        match outcome {
            Ok(outcome) => {
                self.json = outcome.json;
                outcome.text + if outcome.damage { "exit status 1\n" } else { "" }
            }
            Err(e) => {
                self.json = e.to_json();
                let undone = if effects[self.seen..].iter().any(acted) { ", undone" } else { "" };
                let changed = changes(&before, &self.fake.snapshot()).replace("none\n", "");
                format!("{}exit status {}{undone}\n{changed}", e.to_text(), e.kind as u8)
            }
        }
    }

    /// Changes the machine.
    fn set_up(&self, verb: &str, rest: &str) {
        let fake = &self.fake;
        let (first, more) = rest.split_once(' ').unwrap_or((rest, ""));
        let text = || more.replace("\\n", "\n") + "\n";
        match verb {
            "put" => fake.put(first, &text()),
            "add" => fake.put(first, &(fake.read(first).unwrap() + &text())),
            "remove" => rest.split(' ').for_each(|path| fake.remove(path)),
            // Pages of data behind an empty one.
            "filled" => {
                let data = "x".repeat(more.parse().unwrap());
                fake.put(first, &("\0".repeat(4096) + &data));
            }
            "files" => add_files(fake),
            // `file PATH SIZE KEY=NUMBER...`
            "file" => file(fake, first, more),
            "room" => fake.room.set((parse_size(first).unwrap(), parse_size(more).unwrap())),
            "dir" => fake.put_dir(first),
            "link" => fake.put_link(first, more),
            "block" => add_block(fake, first, more.parse().unwrap()),
            "env" => drop(fake.env.borrow_mut().insert(first.into(), more.into())),
            "user" => fake.root_user.set(false),
            "answer" => *fake.answer.borrow_mut() = Some(rest.to_string()),
            "claimed" => fake.claim_error.set(Some(libc::EBUSY)),
            "second" => add_second(fake),
            "unmount" => unmount_configfs(fake),
            "zones" => set_zones(fake, rest.split(' ').flat_map(zones).collect()),
            "well" => add_well(fake),
            "details" => add_details(fake),
            "fio" => add_fio(fake),
            "fail" => {
                let (what, error) = rest.rsplit_once(' ').unwrap();
                fake.fail_at(what, errno(error));
            }
            "refuse" => self.refuse(first, more),
            "log" => self.log(first, more),
            "program" => {
                let (words, answer) = rest.split_once(": ").unwrap();
                let (status, said) = answer.split_once(' ').unwrap_or((answer, ""));
                let status = status.parse().unwrap();
                self.answers.borrow_mut().push((words.into(), status, said.replace("\\n", "\n")));
                let answers = self.answers.clone();
                fake.on_run(move |fake, argv| answer_of(&answers.borrow(), fake, argv));
            }
            _ => panic!("no such line: {verb} {rest}"),
        }
    }

    /// `log FILE=VALUE TEXT`: the module takes the value, and logs this.
    fn log(&self, which: &str, text: &str) {
        let (file, value) = which.split_once('=').unwrap();
        let (file, value, said) = (format!("/{file}"), value.to_string(), text.to_string());
        self.fake.on_write(move |fake, path, text| {
            if path.ends_with(&file) && text.trim() == value {
                let number = fake.log.borrow().len() as u64 + 1;
                fake.log.borrow_mut().push(LogLine { number, text: said.clone() });
            }
            attribute(fake, path, text)
        });
    }

    /// `refuse FILE ERROR LOG` or `refuse FILE=VALUE ERROR LOG`: the module refuses
    /// to write its attribute, and may log why.
    fn refuse(&self, which: &str, how: &str) {
        let (file, refused) = which.split_once('=').unwrap_or((which, ""));
        let (file, refused) = (format!("/{file}"), refused.to_string());
        let (error, log) = how.split_once(' ').unwrap_or((how, ""));
        let (errno, log) = (errno(error), log.to_string());
        self.fake.on_write(move |fake, path, text| {
            if !path.ends_with(&file) || !(refused.is_empty() || text == refused) {
                return attribute(fake, path, text);
            }
            let number = fake.log.borrow().len() as u64 + 1;
            fake.log.borrow_mut().push(LogLine { number, text: log.clone() });
            Err(io::Error::from_raw_os_error(errno))
        });
    }
}

fn answer_of(answers: &[(String, i32, String)], fake: &Fake, argv: &[&str]) -> Ran {
    let line = argv.join(" ");
    match answers.iter().rev().find(|(words, ..)| line.starts_with(words)) {
        Some((_, status, said)) => {
            Ran { status: Some(*status), stdout: said.clone(), stderr: String::new() }
        }
        None => program(fake, argv),
    }
}

fn file(fake: &Fake, path: &str, more: &str) {
    let mut words = more.split(' ');
    fake.put_file(path, parse_size(words.next().unwrap()).unwrap());
    let mut files = fake.files.borrow_mut();
    let stat = files.get_mut(path).unwrap();
    for word in words {
        let (key, value) = word.split_once('=').unwrap();
        match key {
            "mode" => stat.mode = u32::from_str_radix(value, 8).unwrap(),
            "owner" => stat.owner = value.parse().unwrap(),
            "flags" => stat.flags = u32::from_str_radix(value, 16).unwrap(),
            "data" => stat.data = value == "1",
            "allocated" => stat.allocated = parse_size(value).unwrap(),
            _ => panic!("no such key: {key}"),
        }
    }
}

/// `3xwritten`, or `17xempty/1T` for zones of 1 TiB.
fn zones(word: &str) -> Vec<Zone> {
    let (count, kind) = word.split_once('x').unwrap();
    let (kind, capacity) = kind.split_once('/').unwrap_or((kind, "4M"));
    let state = match kind {
        "empty" => State::Empty,
        "dead" => State::Dead,
        "written" | "conventional" => State::Written,
        _ => panic!("no such zone: {kind}"),
    };
    let capacity = parse_size(capacity).unwrap();
    vec![Zone { capacity, sequential: kind != "conventional", state }; count.parse().unwrap()]
}

/// The files that differ, `none` if there are none.
fn changes(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for (path, content) in now {
        match before.get(path) {
            None => writeln!(text, "new /{path}").unwrap(),
            Some(old) if old != content => writeln!(text, "changed /{path}").unwrap(),
            Some(_) => {}
        }
    }
    // Of a directory that is gone, its name is enough.
    let gone = |path: &str| before.contains_key(path) && !now.contains_key(path);
    let below = |path: &str| path.rsplit_once('/').is_some_and(|(parent, _)| gone(parent));
    before.keys().filter(|path| gone(path) && !below(path)).for_each(|path| {
        writeln!(text, "gone /{path}").unwrap();
    });
    match text.is_empty() {
        true => "none\n".to_string(),
        false => text,
    }
}

fn compare(name: &str) {
    let path = format!("{}/tests/cases/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let script = std::fs::read_to_string(&path).unwrap();
    let (mut case, mut found) = (Case::new(), String::new());
    for line in script.lines().filter(|line| !line.starts_with('>')) {
        found += &format!("{line}\n");
        if line.starts_with("== ") {
            case = Case::new();
        } else if !line.is_empty() && !line.starts_with('#') {
            let shown = case.line(&line.replace("VERSION", VERSION));
            let root = case.fake.root().display().to_string();
            for line in shown.replace(VERSION, "VERSION").replace(&root, "").lines() {
                found += format!("> {line}").trim_end();
                found.push('\n');
            }
        }
    }
    assert_data_eq!(found.into_data().raw(), Data::read_from(path.as_ref(), None).raw());
}

macro_rules! cases {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            compare(stringify!($name));
        })*
    };
}

cases!(
    on,
    on_refusals,
    conventional,
    files,
    off,
    sections,
    section_faults,
    set,
    status,
    list,
    doctor,
    probe,
    guard,
    keep_slots,
    documents,
    generator
);

/// A check of `doctor` that no case triggers may see nothing at all.
#[test]
fn every_check_of_doctor_has_a_case() {
    let cases = std::fs::read_to_string("tests/cases/doctor.txt").unwrap();
    let fake = well();
    turn_on(&fake);
    let json = run(&fake, "doctor").unwrap().json;
    for finding in json["findings"].as_array().unwrap() {
        let check = finding["check"].as_str().unwrap();
        let found = |level| cases.contains(&format!("> {level:<7}  {check} "));
        assert!(found("note") || found("PROBLEM"), "{check}");
    }
}
