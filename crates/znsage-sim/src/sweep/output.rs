// SPDX-License-Identifier: GPL-2.0-only
//! The files of a finished sweep.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::error::SweepError;
use super::store::Entry;
use super::table::Table;
use super::{parquet, report};

/// Comma-separated values.
pub const CSV: &str = "results.csv";
/// The same as Parquet.
pub const PARQUET: &str = "results.parquet";
/// Charts and a table, for a browser.
pub const REPORT: &str = "report.html";

/// Writes the tables and the report into a directory, each file atomically.
/// Their content depends on the points alone.
///
/// # Errors
/// If a file cannot be written.
pub fn write(dir: &Path, entries: &BTreeMap<usize, Entry>) -> Result<Vec<PathBuf>, SweepError> {
    let table = Table::of(entries.values());
    let files = [
        (CSV, table.to_csv()),
        (PARQUET, parquet::file(&table)),
        (REPORT, report::page(&table).render().into_bytes()),
    ];
    let mut paths = Vec::new();
    for (name, bytes) in files {
        let path = dir.join(name);
        replace(&path, &bytes)?;
        paths.push(path);
    }
    Ok(paths)
}

/// Creates or replaces a file atomically.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), SweepError> {
    let new = path.with_extension("new");
    File::create(&new)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .map_err(SweepError::io("write", &new))?;
    fs::rename(&new, path).map_err(SweepError::io("replace", path))
}
