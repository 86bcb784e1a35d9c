// SPDX-License-Identifier: GPL-2.0-only
//! `znsage set`: change settings of a running device. All are checked before
//! the first is written; should the kernel refuse one all the same, those
//! written before it are put back.

use std::io;

use serde::Serialize;
use serde_json::json;

use crate::cli::SetArgs;
use crate::configfs;
use crate::counters::{self, directory};
use crate::error::{Error, Kind, Result};
use crate::on::require_root;
use crate::sys::Sys;
use crate::undo::Undo;
use crate::units;

/// What the module has built in; it tells itself what else there is.
const POLICIES: [&str; 6] = ["single", "cpu", "process", "vma", "cgroup", "heat"];
const VICTIMS: [&str; 3] = ["greedy", "cost-benefit", "age"];

const MIN_DEADLINE_US: u64 = 100;
const MAX_DEADLINE_US: u64 = 1_000_000;

/// Settings by the names that people use, and the module's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Policy,
    Victim,
    GcLow,
    GcHigh,
    Pace,
    Deadline,
}

const KEYS: [Key; 6] =
    [Key::Policy, Key::Victim, Key::GcLow, Key::GcHigh, Key::Pace, Key::Deadline];

impl Key {
    fn name(self) -> &'static str {
        match self {
            Key::Policy => "policy",
            Key::Victim => "victim",
            Key::GcLow => "gc-low",
            Key::GcHigh => "gc-high",
            Key::Pace => "pace",
            Key::Deadline => "deadline",
        }
    }

    fn file(self) -> &'static str {
        match self {
            Key::GcLow => "gc_low",
            Key::GcHigh => "gc_high",
            Key::Deadline => "deadline_us",
            other => other.name(),
        }
    }

    /// A value of the module's file, for people.
    fn show(self, value: &str) -> String {
        match self {
            Key::Deadline => format!("{value} us"),
            Key::Pace => format!("{value} %"),
            _ => value.to_string(),
        }
    }
}

/// A setting and what is to be written to its file.
#[derive(Clone, Debug)]
struct Wanted {
    key: Key,
    value: String,
}

impl Wanted {
    fn number(&self) -> u64 {
        self.value.parse().expect("it was made from one")
    }
}

#[derive(Debug, Serialize)]
pub struct Changed {
    pub key: &'static str,
    pub before: String,
    pub after: String,
}

#[derive(Debug)]
pub struct Report {
    pub device: String,
    pub changed: Vec<Changed>,
}

pub fn run(sys: &dyn Sys, args: &SetArgs) -> Result<Report> {
    let (device, pairs) = match args.words.split_first() {
        Some((first, rest)) if !first.contains('=') => (Some(first.as_str()), rest),
        _ => (None, args.words.as_slice()),
    };
    let wanted = parse(pairs)?;
    require_root(sys, "change settings")?;
    let name = pick(sys, device)?;
    check_names(sys, &wanted)?;
    let wanted = check_watermarks(sys, &name, wanted)?;
    check_ranges(&wanted)?;
    Ok(Report { changed: apply(sys, &name, &wanted)?, device: name })
}

fn usage(message: String) -> Error {
    Error::new(Kind::Usage, message)
}

/// What can be told without a device.
fn parse(pairs: &[String]) -> Result<Vec<Wanted>> {
    let known = KEYS.map(Key::name).join(", ");
    if pairs.is_empty() {
        return Err(
            usage("nothing to set: KEY=VALUE is missing".into()).hint(format!("settings: {known}"))
        );
    }
    let mut wanted: Vec<Wanted> = Vec::new();
    for pair in pairs {
        let (name, text) = pair.split_once('=').ok_or_else(|| {
            usage(format!("`{pair}` is no KEY=VALUE")).hint(format!("settings: {known}"))
        })?;
        let key =
            KEYS.into_iter().find(|k| k.name() == name.replace('_', "-")).ok_or_else(|| {
                usage(format!("there is no setting `{name}`")).hint(format!("settings: {known}"))
            })?;
        if wanted.iter().any(|w| w.key == key) {
            return Err(usage(format!("{} is given twice", key.name())));
        }
        wanted.push(Wanted { key, value: parse_value(key, text)? });
    }
    Ok(wanted)
}

fn parse_value(key: Key, text: &str) -> Result<String> {
    let bad = |why: String| usage(format!("{}: {why}", key.name()));
    match key {
        Key::Policy | Key::Victim => units::parse_name(text).map_err(bad),
        Key::Deadline => units::parse_micros(text).map(|us| us.to_string()).map_err(bad),
        Key::GcLow | Key::GcHigh => match text.parse::<u32>() {
            Ok(n) => Ok(n.to_string()),
            Err(_) => Err(bad(format!("`{text}` is no number of zones"))),
        },
        Key::Pace => match text.trim_end_matches('%').parse::<u32>() {
            Ok(n) => Ok(n.to_string()),
            Err(_) => Err(bad(format!("`{text}` is no percentage"))),
        },
    }
}

/// The device that is meant; none need be named if there is but one.
fn pick(sys: &dyn Sys, device: Option<&str>) -> Result<String> {
    if let Some(wanted) = device {
        return Ok(counters::find(sys, wanted)?.name);
    }
    let mut names = counters::names(sys);
    match names.len() {
        0 => Err(Error::new(Kind::Device, "no znsage device is on")),
        1 => Ok(names.remove(0)),
        _ => Err(usage("which device?".into()).hint(format!("there is: {}", names.join(", ")))),
    }
}

/// All values that `policy` or `victim` may have, and whether the module says
/// so; if it does not, it is what every module has.
fn choices(sys: &dyn Sys, key: Key) -> (Vec<String>, bool) {
    let built_in = |names: &[&str]| (names.iter().map(|s| s.to_string()).collect(), false);
    if key != Key::Policy {
        return built_in(&VICTIMS);
    }
    match sys.read(&configfs::policies()) {
        Ok(text) => (text.split_whitespace().map(str::to_string).collect(), true),
        Err(_) => built_in(&POLICIES),
    }
}

fn unknown_name(key: Key, value: &str, there: &[String]) -> Error {
    let list = there.join(", ");
    let hint = match key {
        Key::Policy => {
            format!(
                "there is: {list}\na policy in a module of its own is there once that is loaded"
            )
        }
        _ => format!("there is: {list}"),
    };
    usage(format!("{}: there is no `{value}`", key.name())).hint(hint)
}

/// For `znsage on`: why the module did not take a policy's or victim's name.
pub fn refused_name(sys: &dyn Sys, attribute: &str, value: &str) -> Option<Error> {
    let key = [Key::Policy, Key::Victim].into_iter().find(|k| k.file() == attribute)?;
    let (there, _) = choices(sys, key);
    (!there.iter().any(|name| name == value)).then(|| unknown_name(key, value, &there))
}

fn check_names(sys: &dyn Sys, wanted: &[Wanted]) -> Result<()> {
    for w in wanted.iter().filter(|w| matches!(w.key, Key::Policy | Key::Victim)) {
        let (there, certain) = choices(sys, w.key);
        // A guess is no reason to refuse: the kernel has the last word.
        if certain && !there.contains(&w.value) {
            return Err(unknown_name(w.key, &w.value, &there));
        }
    }
    Ok(())
}

fn out_of_range(key: Key, value: String, range: String) -> Error {
    Error::new(Kind::Device, format!("{}: {value} is out of range: {range}", key.name()))
}

/// Settings whose range is the same for every device.
fn check_ranges(wanted: &[Wanted]) -> Result<()> {
    for w in wanted {
        let (range, says) = match w.key {
            Key::Deadline => (MIN_DEADLINE_US..=MAX_DEADLINE_US, "100 us to 1 s"),
            Key::Pace => (0..=100, "0 % to 100 %"),
            _ => continue,
        };
        if !range.contains(&w.number()) {
            return Err(out_of_range(w.key, w.key.show(&w.value), says.into()));
        }
    }
    Ok(())
}

/// GC needs the reserve and its own zones to be above the low mark. Returns
/// the settings in an order in which each is valid when it is written.
fn check_watermarks(sys: &dyn Sys, name: &str, mut wanted: Vec<Wanted>) -> Result<Vec<Wanted>> {
    let new = |key| wanted.iter().find(|w| w.key == key).map(Wanted::number);
    let (new_low, new_high) = (new(Key::GcLow), new(Key::GcHigh));
    if new_low.is_none() && new_high.is_none() {
        return Ok(wanted);
    }
    let number = |file| counters::value::<u64>(sys, name, file);
    let (low, high) = (number("gc_low")?, number("gc_high")?);
    let (zones, gc_stripe) = (number("zones_total")?, number("gc_stripe")?);
    let config: String = counters::value(sys, name, "config")?;
    let reserve = sys
        .read(&format!("{}/reserve", configfs::item(&config)))
        .ok()
        .and_then(|text| text.trim().parse::<u64>().ok())
        .unwrap_or(1);

    let least = reserve.saturating_add(gc_stripe);
    let most = new_high.map_or(high, |_| zones.saturating_sub(1)).saturating_sub(1);
    let below = match new_high {
        Some(_) => String::new(),
        None => format!(", below gc-high, which is {high}"),
    };
    if let Some(n) = new_low.filter(|n| !(least..=most).contains(n)) {
        return Err(out_of_range(Key::GcLow, n.to_string(), format!("{least} to {most}{below}")));
    }
    let (least, most) = (new_low.unwrap_or(low).saturating_add(1), zones.saturating_sub(1));
    if let Some(n) = new_high.filter(|n| !(least..=most).contains(n)) {
        let range = format!("{least} to {most}, above gc-low, which is {}", least - 1);
        return Err(out_of_range(Key::GcHigh, n.to_string(), range));
    }
    // Up: the high mark first. Down: the low one.
    let high_first = new_high.is_some_and(|n| n > low);
    wanted.sort_by_key(|w| match w.key {
        Key::GcHigh => (1, !high_first),
        Key::GcLow => (1, high_first),
        _ => (0, false),
    });
    Ok(wanted)
}

fn apply(sys: &dyn Sys, name: &str, wanted: &[Wanted]) -> Result<Vec<Changed>> {
    let mut undo = Undo::new(sys);
    let mut changed = Vec::new();
    for w in wanted {
        match change(sys, name, w, &mut undo) {
            Ok(done) => changed.push(done),
            Err(e) => return Err(undo.roll_back(e)),
        }
    }
    Ok(changed)
}

fn change(sys: &dyn Sys, name: &str, w: &Wanted, undo: &mut Undo) -> Result<Changed> {
    let path = format!("{}/{}", directory(name), w.key.file());
    if !sys.exists(&path) {
        return Err(Error::new(
            Kind::Environment,
            format!("the module knows no setting `{}`", w.key.file()),
        )
        .hint("command and module are of different versions: install the same of both"));
    }
    let before: String = counters::value(sys, name, w.key.file())?;
    sys.write(&path, &format!("{}\n", w.value)).map_err(|e| refused(sys, name, w, &e))?;
    undo.push("put a setting back", {
        let (path, before) = (path.clone(), before.clone());
        move |sys| {
            sys.write(&path, &format!("{before}\n"))
                .map_err(|e| Error::io("write", &sys.at(&path), e))
        }
    });
    let after = counters::value(sys, name, w.key.file())?;
    Ok(Changed { key: w.key.name(), before, after })
}

fn refused(sys: &dyn Sys, name: &str, w: &Wanted, e: &io::Error) -> Error {
    let key = w.key;
    match e.raw_os_error() {
        Some(libc::EINVAL | libc::ENOENT) if matches!(key, Key::Policy | Key::Victim) => {
            unknown_name(key, &w.value, &choices(sys, key).0)
        }
        Some(libc::EINVAL | libc::ERANGE) => Error::new(
            Kind::Device,
            format!("the module refuses {} = {}", key.name(), key.show(&w.value)),
        )
        .hint("the kernel log (`dmesg`) may tell more"),
        Some(libc::EBUSY) => {
            Error::new(Kind::Busy, format!("{} cannot be changed now", key.name()))
        }
        _ => {
            let path = sys.at(&format!("{}/{}", directory(name), key.file()));
            Error::io(
                "write",
                &path,
                io::Error::from_raw_os_error(e.raw_os_error().unwrap_or(libc::EIO)),
            )
        }
    }
}

impl Report {
    pub fn to_json(&self) -> serde_json::Value {
        json!({"version": 1, "device": self.device, "changed": self.changed})
    }

    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for c in &self.changed {
            let key = KEYS.into_iter().find(|k| k.name() == c.key).expect("it is one of them");
            let (before, after) = (key.show(&c.before), key.show(&c.after));
            text += &format!("{}: {} was {before}, is {after}\n", self.device, c.key);
        }
        text
    }
}
