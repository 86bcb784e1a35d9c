// SPDX-License-Identifier: GPL-2.0-only
//! Tables of the kernel, whose first line names the columns.

use std::collections::BTreeMap;
use std::path::Path;

use crate::ensure;
use crate::guest;
use crate::outcome::Outcome;

pub use znsage_guest::inject::DEBUGFS;

/// Mounts a file system of the kernel unless `holds` is there already.
pub fn mounted(fstype: &str, path: &str, holds: &str) -> Outcome {
    match Path::new(path).join(holds).exists() {
        true => Ok(()),
        false => guest::ok(&["mount", "-t", fstype, "nodev", path]).map(drop),
    }
}

pub type Row = BTreeMap<String, String>;

/// The rows of a table, with the names of the first line.
pub fn table(path: &str) -> Outcome<Vec<Row>> {
    let text = guest::read(path)?;
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or("").split_whitespace().collect();
    lines
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            ensure!(words.len() == names.len(), "{path}: `{line}` under `{}`", names.join(" "));
            Ok(names.iter().zip(words).map(|(n, w)| (n.to_string(), w.to_string())).collect())
        })
        .collect()
}

/// The sum of a column.
pub fn sum(rows: &[Row], column: &str) -> Outcome<u64> {
    let numbers = rows.iter().map(|r| r.get(column).and_then(|w| w.parse::<u64>().ok()));
    numbers.sum::<Option<u64>>().ok_or(format!("{column} is missing, or no number"))
}
