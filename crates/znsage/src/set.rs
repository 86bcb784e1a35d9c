// SPDX-License-Identifier: GPL-2.0-only
//! `znsage set`: changes settings of a running device. Checks all before it
//! writes the first; if the kernel refuses one, restores those written before.

use std::io;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;

use crate::choices;
use crate::cli::{Compress, SetArgs};
use crate::configfs;
use crate::counters::{self, directory};
use crate::error::{Error, Kind, Result};
use crate::sys::{require_root, Sys};
use crate::undo::Undo;
use crate::units;

/// A setting. Each has a name for users and a file of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Policy,
    Victim,
    GcLow,
    GcHigh,
    Pace,
    Deadline,
    Compress,
}

const KEYS: [Key; 7] =
    [Key::Policy, Key::Victim, Key::GcLow, Key::GcHigh, Key::Pace, Key::Deadline, Key::Compress];

impl Key {
    fn name(self) -> &'static str {
        match self {
            Key::Policy => "policy",
            Key::Victim => "victim",
            Key::GcLow => "gc-low",
            Key::GcHigh => "gc-high",
            Key::Pace => "pace",
            Key::Deadline => "deadline",
            Key::Compress => "compress",
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

    /// A value of the module's file, with its unit.
    fn show(self, value: &str) -> String {
        match self {
            Key::Deadline => format!("{value} us"),
            Key::Pace => format!("{value} %"),
            _ => value.to_string(),
        }
    }
}

/// A setting and the text for its file.
#[derive(Clone, Debug)]
struct Wanted {
    key: Key,
    value: String,
}

impl Wanted {
    fn number(&self) -> u64 {
        self.value.parse().expect("parse_value made it from a number")
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

/// Parses the settings; looks at no device.
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
            usage(format!("`{pair}` is not KEY=VALUE")).hint(format!("settings: {known}"))
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
        Key::Compress => match Compress::from_str(text, false) {
            Ok(how) => Ok(how.name().to_string()),
            Err(_) => Err(bad(format!("`{text}` is not off, lz4 or zstd"))),
        },
        Key::Deadline => units::parse_micros(text).map(|us| us.to_string()).map_err(bad),
        Key::GcLow | Key::GcHigh => match text.parse::<u32>() {
            Ok(n) => Ok(n.to_string()),
            Err(_) => Err(bad(format!("`{text}` is not a number of zones"))),
        },
        Key::Pace => match text.trim_end_matches('%').parse::<u32>() {
            Ok(n) => Ok(n.to_string()),
            Err(_) => Err(bad(format!("`{text}` is not a percentage"))),
        },
    }
}

/// The device to change; the user may omit it if only one is on.
fn pick(sys: &dyn Sys, device: Option<&str>) -> Result<String> {
    if let Some(wanted) = device {
        return Ok(counters::find(sys, wanted)?.name);
    }
    let mut names = counters::names(sys);
    match names.len() {
        0 => Err(Error::new(Kind::Device, "no znsage device is on")),
        1 => Ok(names.remove(0)),
        _ => Err(usage("several devices are on: name one".into())
            .hint(format!("available: {}", names.join(", ")))),
    }
}

fn check_names(sys: &dyn Sys, wanted: &[Wanted]) -> Result<()> {
    let mut names = wanted.iter().filter(|w| matches!(w.key, Key::Policy | Key::Victim));
    names.try_for_each(|w| choices::check(sys, w.key.file(), &w.value))
}

fn out_of_range(key: Key, value: String, range: String) -> Error {
    Error::new(Kind::Device, format!("{}: {value} is out of range: {range}", key.name()))
}

/// Checks settings whose range is the same for every device.
fn check_ranges(wanted: &[Wanted]) -> Result<()> {
    for w in wanted {
        let (range, says) = match w.key {
            Key::Deadline => (units::DEADLINES, "100 us to 1 s"),
            Key::Pace => (0..=100, "0 % to 100 %"),
            _ => continue,
        };
        if !range.contains(&w.number()) {
            return Err(out_of_range(w.key, w.key.show(&w.value), says.into()));
        }
    }
    Ok(())
}

/// Checks the watermarks: the low one must cover the reserve and GC's own zones.
/// Returns the settings in an order in which each is valid when written.
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
    // To raise both, write the high mark first; to lower both, the low one.
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
            format!("the module has no setting `{}`", w.key.file()),
        )
        .hint("command and module have different versions: install the same version of both"));
    }
    let before: String = counters::value(sys, name, w.key.file())?;
    sys.write(&path, &format!("{}\n", w.value)).map_err(|e| refused(sys, name, w, &e))?;
    undo.push("restore a setting", {
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
    let by_module = || {
        let (name, value) = (key.name(), key.show(&w.value));
        Error::new(Kind::Device, format!("the module refuses {name} = {value}"))
            .hint("the kernel log (`dmesg`) may show why")
    };
    match e.raw_os_error() {
        Some(libc::EINVAL | libc::ENOENT) if matches!(key, Key::Policy | Key::Victim) => {
            let listed = || Error { kind: Kind::Usage, ..by_module() };
            choices::refused(sys, key.file(), &w.value).unwrap_or_else(listed)
        }
        Some(libc::EINVAL | libc::ERANGE) => by_module(),
        Some(libc::EOPNOTSUPP) => {
            Error::new(Kind::Device, format!("{name} was attached without compression"))
                .hint("`znsage off`, then `znsage on --compress`; only then can it be changed")
        }
        Some(libc::ENOPKG) => {
            Error::new(Kind::Environment, format!("the kernel has no compressor {}", w.value))
                .hint("the kernel needs CONFIG_CRYPTO_LZ4 or CONFIG_CRYPTO_ZSTD")
        }
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
            let key = KEYS.into_iter().find(|k| k.name() == c.key).expect("KEYS has all names");
            let (before, after) = (key.show(&c.before), key.show(&c.after));
            text += &format!("{}: {} was {before}, is {after}\n", self.device, c.key);
        }
        text
    }
}
