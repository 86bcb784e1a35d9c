// SPDX-License-Identifier: GPL-2.0-only
//! /etc/znsage.conf: a section for each device that is turned on at boot. Its keys
//! are the options of `znsage on`, whose parser also reads the values. See
//! docs/guide.md.

mod fault;
mod files;
mod ini;
mod profile;

use std::collections::{BTreeMap, BTreeSet};

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Args, FromArgMatches};

use crate::cli::OnArgs;
use crate::error::{Error, Kind, Result};
use crate::sys::Sys;
use crate::systemd::device_unit;

pub use fault::{complaint, Fault};
pub use files::{NAME, PLACES};
pub use profile::profile;

/// The only key that is not an option of `on`, but its argument.
const DEVICE: &str = "device";

/// The only key that is for the service alone.
const NOFAIL: &str = "nofail";

/// Longest name of a directory that ends in ".wants", without that ending.
const LONGEST_UNIT: usize = 249;

#[derive(Debug, Default)]
pub struct Conf {
    /// In the order of the files.
    pub sections: Vec<Section>,
    pub faults: Vec<Fault>,
}

#[derive(Debug)]
pub struct Section {
    pub name: String,
    /// The first file with the section.
    pub file: String,
    /// The command line of `znsage on`; None if the section has a fault.
    pub args: Option<OnArgs>,
    /// A missing device is no failure.
    pub nofail: bool,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
struct Setting {
    value: String,
    file: String,
    line: usize,
}

impl Setting {
    fn fault(&self, section: &str, message: String, hint: Option<String>) -> Fault {
        let (file, line) = (self.file.clone(), Some(self.line));
        Fault { file, line, section: Some(section.to_string()), message, hint }
    }
}

/// A section, collected from several files.
struct Draft {
    name: String,
    file: String,
    line: usize,
    settings: BTreeMap<String, Setting>,
}

/// Reads all files. Errors in them are listed as faults.
pub fn read(sys: &dyn Sys) -> Conf {
    let (texts, faults) = files::read(sys);
    let mut conf = parse_texts(&texts);
    conf.faults.splice(0..0, faults);
    conf
}

/// As [`read`], from paths and texts; later ones override earlier ones.
pub fn parse_texts(texts: &[(String, String)]) -> Conf {
    let mut faults = Vec::new();
    let mut drafts: Vec<Draft> = Vec::new();
    let grammar = grammar();
    for (file, text) in texts {
        add_file(&mut drafts, &mut faults, &grammar, file, text);
    }
    let mut conf = Conf { sections: Vec::new(), faults };
    let mut devices = BTreeMap::new();
    for draft in drafts {
        let broken = |fault: &Fault| fault.section.as_ref() == Some(&draft.name);
        let found = check(&draft, &grammar, &mut devices);
        let args = match (found, conf.faults.iter().any(broken)) {
            (Ok(args), false) => Some(args),
            (Ok(_), true) => None,
            (Err(faults), _) => {
                conf.faults.extend(faults);
                None
            }
        };
        let nofail = draft.settings.get(NOFAIL).and_then(|s| flag(&s.value)) == Some(true);
        conf.sections.push(Section { name: draft.name, file: draft.file, args, nofail });
    }
    conf
}

/// Adds the settings of one file.
fn add_file(
    drafts: &mut Vec<Draft>,
    faults: &mut Vec<Fault>,
    grammar: &clap::Command,
    file: &str,
    text: &str,
) {
    let parsed = ini::parse(text);
    faults.extend(parsed.wrong.into_iter().map(|wrong| Fault {
        file: file.to_string(),
        line: Some(wrong.line),
        section: wrong.section,
        message: wrong.message,
        hint: Some(wrong.hint.to_string()),
    }));
    let mut here: BTreeMap<(String, String), usize> = BTreeMap::new();
    for header in parsed.sections {
        let at = drafts.iter().position(|d| d.name == header.name).unwrap_or_else(|| {
            let (name, file) = (header.name.clone(), file.to_string());
            drafts.push(Draft { name, file, line: header.line, settings: BTreeMap::new() });
            drafts.len() - 1
        });
        for entry in header.entries {
            let setting = Setting { value: entry.value, file: file.to_string(), line: entry.line };
            if !known(grammar, &entry.key) {
                faults.push(unknown(grammar, &header.name, &entry.key, &setting));
                continue;
            }
            let first = here.insert((header.name.clone(), entry.key.clone()), entry.line);
            if let Some(line) = first {
                let message = format!("`{}` is already in line {line}", entry.key);
                let hint = Some("remove one of them".to_string());
                faults.push(setting.fault(&header.name, message, hint));
            }
            match setting.value.is_empty() {
                true => drafts[at].settings.remove(&entry.key),
                false => drafts[at].settings.insert(entry.key, setting),
            };
        }
    }
}

/// The arguments and options of `on`, and what is for the service alone.
pub fn grammar() -> clap::Command {
    let nofail = Arg::new(NOFAIL).long(NOFAIL).action(ArgAction::SetTrue).help(
        "Do not wait for a missing device when the machine starts, and do not fail without it",
    );
    OnArgs::augment_args(clap::Command::new("on").disable_help_flag(true)).arg(nofail)
}

fn option<'a>(grammar: &'a clap::Command, key: &str) -> Option<&'a Arg> {
    grammar.get_arguments().find(|arg| arg.get_long() == Some(key))
}

/// All keys, `device` first.
fn keys(grammar: &clap::Command) -> impl Iterator<Item = &str> {
    std::iter::once(DEVICE).chain(grammar.get_arguments().filter_map(Arg::get_long))
}

fn known(grammar: &clap::Command, key: &str) -> bool {
    keys(grammar).any(|k| k == key)
}

fn unknown(grammar: &clap::Command, section: &str, key: &str, at: &Setting) -> Fault {
    let wanted = key.to_ascii_lowercase();
    // The beginning is enough: a line may be as long as a file.
    let wanted: String = wanted.chars().take(64).collect();
    // This measure favours a common beginning, as in abbreviations.
    let likeness = |key: &str| strsim::jaro_winkler(key, &wanted);
    let nearest = keys(grammar).max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let all = keys(grammar).collect::<Vec<_>>().join(", ");
    at.fault(
        section,
        format!("there is no key `{}`", ini::shown(key)),
        Some(format!("did you mean `{}`? The keys are: {all}", nearest.unwrap_or(DEVICE))),
    )
}

/// The command line of a section, or all its faults.
fn check(
    draft: &Draft,
    grammar: &clap::Command,
    devices: &mut BTreeMap<String, String>,
) -> std::result::Result<OnArgs, Vec<Fault>> {
    let (mut words, mut faults) = options(draft, grammar);
    let device = check_device(draft, devices).map_err(|fault| faults.push(*fault));
    match device {
        Ok(device) if faults.is_empty() => {
            words.extend(["--".to_string(), device]);
            parse(grammar, words).map_err(|e| vec![section_fault(draft, e.to_string(), None)])
        }
        _ => Err(faults),
    }
}

/// A section's options as words of a command line, and the faults of invalid ones.
fn options(draft: &Draft, grammar: &clap::Command) -> (Vec<String>, Vec<Fault>) {
    let (mut words, mut faults) = (vec!["on".to_string()], Vec::new());
    for (key, setting) in draft.settings.iter().filter(|(key, _)| *key != DEVICE) {
        match option_words(grammar, key, &setting.value) {
            Ok(more) => words.extend(more),
            Err((why, hint)) => {
                let why = format!("{key}: {why}");
                faults.push(setting.fault(&draft.name, why, Some(with_comment(setting, hint))));
            }
        }
    }
    (words, faults)
}

/// A fault of the whole section.
fn section_fault(draft: &Draft, message: String, hint: Option<&str>) -> Fault {
    Fault {
        file: draft.file.clone(),
        line: Some(draft.line),
        section: Some(draft.name.clone()),
        message,
        hint: hint.map(str::to_string),
    }
}

/// Adds a hint if the value looks as if a comment followed it.
fn with_comment(setting: &Setting, hint: String) -> String {
    match setting.value.contains(" #") || setting.value.contains(" ;") {
        true => format!("write comments on their own lines\n{hint}"),
        false => hint,
    }
}

fn parse(grammar: &clap::Command, words: Vec<String>) -> std::result::Result<OnArgs, clap::Error> {
    let matches = grammar.clone().try_get_matches_from(words)?;
    OnArgs::from_arg_matches(&matches)
}

/// A setting as a word of a command line; or why it is invalid, and a hint.
fn option_words(
    grammar: &clap::Command,
    key: &str,
    value: &str,
) -> std::result::Result<Option<String>, (String, String)> {
    let option = option(grammar, key).expect("unknown keys were refused");
    let help = option.get_help().map(ToString::to_string).unwrap_or_default();
    if matches!(option.get_action(), ArgAction::SetTrue) {
        return match flag(value) {
            Some(true) => Ok(Some(format!("--{key}"))),
            Some(false) => Ok(None),
            None => Err((
                format!("`{}` is neither yes nor no", ini::shown(value)),
                format!("{key} = yes: {help}"),
            )),
        };
    }
    let word = format!("--{key}={value}");
    // With any device, so that only this option can be wrong.
    let words = ["on", &word, "--", "/dev/null"].map(str::to_string);
    match parse(grammar, words.into()) {
        Ok(_) => Ok(Some(word)),
        Err(e) => Err((why(&e, value), format!("{key} = {}: {help}", value_name(option)))),
    }
}

/// Booleans as in units of systemd.
fn flag(value: &str) -> Option<bool> {
    match value {
        "yes" | "true" | "on" | "1" => Some(true),
        "no" | "false" | "off" | "0" => Some(false),
        _ => None,
    }
}

fn value_name(option: &Arg) -> String {
    let names = option.get_value_names().unwrap_or_default();
    names.first().map(ToString::to_string).unwrap_or_default()
}

/// Why the parser of an option refused a value.
fn why(e: &clap::Error, value: &str) -> String {
    use std::error::Error as _;
    let shown = ini::shown(value);
    if let Some(ContextValue::Strings(allowed)) = e.get(ContextKind::ValidValue) {
        return format!("`{shown}` is not one of {}", allowed.join(", "));
    }
    match e.source() {
        Some(source) if source.is::<std::num::ParseIntError>() => {
            format!("`{shown}` is not a whole number, or too large")
        }
        Some(source) => ini::shown(&source.to_string()),
        None => format!("`{shown}` is not allowed"),
    }
}

/// The path of the section's device or file. Two sections must not have the same.
fn check_device(
    draft: &Draft,
    devices: &mut BTreeMap<String, String>,
) -> std::result::Result<String, Box<Fault>> {
    let Some(setting) = draft.settings.get(DEVICE) else {
        let message = format!("section {} has no device", draft.name);
        let hint = "add a line such as: device = /dev/disk/by-id/nvme-...";
        return Err(Box::new(section_fault(draft, message, Some(hint))));
    };
    let fault = |message: String, hint: &str| {
        Err(Box::new(setting.fault(&draft.name, message, Some(hint.to_string()))))
    };
    let Some(path) = plain_path(&setting.value) else {
        return fault(
            format!("device: `{}` is not an absolute path", ini::shown(&setting.value)),
            "use a file, or /dev/disk/by-id/nvme-...; `ls -l /dev/disk/by-id` lists the names",
        );
    };
    if device_unit(&path).len() > LONGEST_UNIT {
        return fault(
            format!("device: {} is too long for the name of a systemd unit", ini::shown(&path)),
            "use a shorter link to the device; `udevadm info DEVICE` lists all",
        );
    }
    let force = draft.settings.get("force").and_then(|setting| flag(&setting.value));
    let forced = force == Some(true);
    if forced && path.strip_prefix("/dev/").is_some_and(|name| !name.contains('/')) {
        return fault(
            format!(
                "device: {path} may be another disk after a reboot, and force = yes empties it"
            ),
            "use a name that stays: /dev/disk/by-id/..., by-path or by-uuid",
        );
    }
    if let Some(other) = devices.insert(path.clone(), draft.name.clone()) {
        return fault(
            format!("device: section {other} already has {path}"),
            "a device can have only one section",
        );
    }
    Ok(path)
}

/// Normalizes an absolute path; None for any other.
fn plain_path(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.strip_prefix('/')?.split('/').filter(|p| !p.is_empty()).collect();
    let fits = !parts.is_empty() && !parts.iter().any(|p| matches!(*p, "." | ".."));
    fits.then(|| format!("/{}", parts.join("/")))
}

impl Conf {
    /// The command line of a section, for `znsage on --config`.
    ///
    /// # Errors
    /// If there is no such section, or it has faults.
    pub fn section(&self, name: &str) -> Result<&OnArgs> {
        let of_it = |fault: &&Fault| fault.section.as_deref() == Some(name);
        match self.sections.iter().find(|s| s.name == name) {
            Some(Section { args: Some(args), .. }) => Ok(args),
            Some(_) => Err(complaint(self.faults.iter().filter(of_it))
                .unwrap_or_else(|| Error::new(Kind::Usage, format!("section {name} has errors")))),
            None => Err(self.missing(name)),
        }
    }

    fn missing(&self, name: &str) -> Error {
        let names: BTreeSet<&str> = self.sections.iter().map(|s| s.name.as_str()).collect();
        let there = match names.is_empty() {
            true => {
                format!(
                    "there is no section in {}",
                    PLACES.map(|p| format!("{p}/{NAME}")).join(", ")
                )
            }
            false => format!("available: {}", names.into_iter().collect::<Vec<_>>().join(", ")),
        };
        // The header of the section may be invalid.
        let faults = self.faults.iter().filter(|f| f.section.is_none()).map(ToString::to_string);
        let hint: Vec<String> = std::iter::once(there).chain(faults).collect();
        Error::new(Kind::Usage, format!("there is no section `{}`", ini::shown(name)))
            .hint(hint.join("\n"))
    }
}
