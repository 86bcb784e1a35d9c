// SPDX-License-Identifier: GPL-2.0-only
//! Loading parameter files, with errors that name the line.

use std::fmt;

use toml::de::{DeTable, DeValue};
use toml::Spanned;

use super::check;
use super::params::Params;

macro_rules! built_in {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../devices/", $name, ".toml")))),*]
    };
}

/// The built-in sets: the files of `devices/`.
const BUILT_IN: [(&str, &str); 15] = built_in![
    "zn540" "hynix" "hynix-fitted" "conventional" "conventional-28" "conventional-even" "real-a"
    "real-b" "fast" "fast-conventional" "slow"
    "zns-plus" "zns-plus-tlc" "zns-plus-mlc" "zns-plus-znand"
];

/// Why a parameter set is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamError {
    /// The file, or the name of the built-in set.
    pub file: String,
    /// The line, from 1; None if the value is not in the file.
    pub line: Option<usize>,
    /// The key, with its table; empty for the file as a whole.
    pub key: String,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for ParamError {}

impl Params {
    /// Names of the built-in sets.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The text of a built-in set.
    pub fn text(name: &str) -> Option<&'static str> {
        BUILT_IN.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
    }

    /// A built-in set by name, or a file by path (if `name` contains a `/` or ends in
    /// `.toml`). `set` replaces values by key, such as
    /// `("zoned.zones", "64")` or `("media.page", "16 KiB")`.
    ///
    /// # Errors
    /// If there is no such set, or the file cannot be read, or is refused.
    pub fn load(name: &str, set: &[(String, String)]) -> Result<Params, ParamError> {
        let refuse = |what| ParamError { file: name.into(), line: None, key: String::new(), what };
        if name.contains('/') || name.ends_with(".toml") {
            let text = std::fs::read_to_string(name).map_err(|e| refuse(e.to_string()))?;
            return Params::parse(name, &text, set);
        }
        let text = Params::text(name).ok_or_else(|| {
            refuse(format!("no such device; there are {}, or the path of a file", known()))
        })?;
        Params::parse(name, text, set)
    }

    /// Parses `text`, with values replaced by `set`; `file` is its name in errors.
    ///
    /// # Errors If it is not TOML, or has unknown keys or invalid values.
    pub fn parse(file: &str, text: &str, set: &[(String, String)]) -> Result<Params, ParamError> {
        let mut source = Source { texts: vec![(file, text)], set };
        let mut value = source.read()?;
        while let Some(base) = value.as_table_mut().and_then(|t| t.remove("base")) {
            let (name, text) = base
                .as_str()
                .and_then(|base| BUILT_IN.iter().find(|(name, _)| *name == base))
                .filter(|(name, _)| source.texts.iter().all(|(file, _)| file != name))
                .ok_or_else(|| source.refuse("base", format!("must be one of {}", known())))?;
            source.texts.push((name, text));
            let over = value;
            value = source.read()?;
            merge(&mut value, over);
        }
        for (key, new) in set {
            replace(&mut value, key, new)
                .ok_or_else(|| source.refuse(key, "no such key".into()))?;
        }
        let params: Params = serde_path_to_error::deserialize(value).map_err(|e| {
            let key = e.path().to_string();
            let key = if key == "." { String::new() } else { key };
            source.refuse(&key, e.into_inner().message().into())
        })?;
        check::params(&params).map_err(|(key, what)| source.refuse(key, what))?;
        Ok(params)
    }

    /// An error found while building a device.
    pub(super) fn refuse(&self, key: &str, what: String) -> ParamError {
        ParamError { file: self.name.clone(), line: None, key: key.into(), what }
    }
}

/// The names of the built-in sets, as a list for messages.
fn known() -> String {
    Params::names().collect::<Vec<_>>().join(", ")
}

/// Overrides the values of `value` by those of `over`.
fn merge(value: &mut toml::Value, over: toml::Value) {
    match (value, over) {
        (toml::Value::Table(table), toml::Value::Table(over)) => {
            for (key, new) in over {
                match table.get_mut(&key) {
                    Some(old) => merge(old, new),
                    None => drop(table.insert(key, new)),
                }
            }
        }
        (value, over) => *value = over,
    }
}

/// Replaces a value, or adds it to its table, which must exist.
fn replace(value: &mut toml::Value, key: &str, new: &str) -> Option<()> {
    let (table, name) = match key.rsplit_once('.') {
        Some((table, name)) => (value.get_mut(table)?, name),
        None => (value, key),
    };
    // Text that is not a TOML value is an unquoted string.
    let new = new.parse().unwrap_or_else(|_| toml::Value::String(new.into()));
    table.as_table_mut()?.insert(name.into(), new);
    Some(())
}

/// Where values come from.
struct Source<'a> {
    /// Names and contents of the file and, if it has one, its base.
    texts: Vec<(&'a str, &'a str)>,
    set: &'a [(String, String)],
}

impl Source<'_> {
    /// Parses the last text.
    fn read(&self) -> Result<toml::Value, ParamError> {
        let (file, text) = self.texts[self.texts.len() - 1];
        let table: Result<toml::Table, _> = text.parse();
        table.map(toml::Value::Table).map_err(|e| ParamError {
            file: file.into(),
            line: e.span().map(|span| line(text, span.start)),
            key: String::new(),
            what: e.message().into(),
        })
    }

    /// An error about `key`, with its file and line. A missing or unknown key gets the
    /// line of its table.
    fn refuse(&self, key: &str, what: String) -> ParamError {
        let error = |file: &str, line| ParamError {
            file: file.into(),
            line,
            key: key.into(),
            what: what.clone(),
        };
        if self.set.iter().any(|(k, _)| k == key) {
            return error("set on the command line", None);
        }
        // The first file that has the key provides its value.
        let found = self.texts.iter().map(|(file, text)| (file, text, find(text, key)));
        match found.min_by_key(|(_, _, (missing, _))| *missing) {
            Some((file, text, (_, Some(at)))) => error(file, Some(line(text, at))),
            _ => error(self.texts[0].0, None),
        }
    }
}

fn line(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// How many parts of a key's path the file lacks, and the offset of the key or
/// of its innermost table.
fn find(text: &str, key: &str) -> (usize, Option<usize>) {
    // Errors in an array name the array.
    let key = key.split('[').next().unwrap_or(key);
    let mut path = key.split('.');
    let mut at = None;
    let mut missing = key.split('.').count();
    let Ok(root) = DeTable::parse(text) else { return (missing, None) };
    let mut table = root.get_ref();
    while let Some((key, value)) = path.next().and_then(|name| table.get_key_value(name)) {
        at = Some(Spanned::span(key).start);
        missing -= 1;
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => break,
        }
    }
    (missing, at)
}
