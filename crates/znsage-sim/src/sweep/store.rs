// SPDX-License-Identifier: GPL-2.0-only
//! The finished points of a sweep: an append-only file of JSON lines.
//!
//! The first line is the [`Header`], each other an [`Entry`]. Each line is
//! synced before it counts, so no finished run is lost whatever ends the
//! process. A truncated last line is dropped.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::SweepError;
use crate::result::RunResult;

/// Most points of a sweep; more are probably a mistake.
pub const MAX_POINTS: usize = 20_000;

/// Version of the line format.
const FORMAT: u32 = 1;

/// The first line: identifies the sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Header {
    /// The layout of the lines.
    znsage_sweep: u32,
    /// The simulator's version; results may differ between versions.
    version: String,
    /// Digest of all specs and parameter sets.
    digest: String,
    /// Points of the sweep.
    pub points: usize,
}

impl Header {
    pub(super) fn new(digest: &str, points: usize) -> Self {
        let version = env!("CARGO_PKG_VERSION").into();
        Header { znsage_sweep: FORMAT, version, digest: digest.into(), points }
    }
}

/// How a point ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It ran.
    Result(Box<RunResult>),
    /// It cannot be run, and why.
    Impossible(String),
    /// It began but could not finish, and why.
    Stuck(String),
}

/// A point that is finished.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its number.
    pub index: usize,
    /// Its label, by keys of the spec.
    pub point: Map<String, Value>,
    /// Result of a drive.
    pub outcome: Outcome,
}

/// A file of finished points.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: Flock<File>,
    entries: BTreeMap<usize, Entry>,
}

/// Content of a file, and how many of its bytes are whole lines.
struct Content {
    header: Option<Header>,
    entries: BTreeMap<usize, Entry>,
    whole: usize,
}

impl Store {
    /// Opens or creates the store of a sweep, and locks it until it is dropped.
    ///
    /// # Errors If the file is damaged, of another sweep, or in use.
    pub fn open(path: &Path, header: &Header) -> Result<Store, SweepError> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.map_err(SweepError::io("open", path))?;
        let file =
            Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, e)| match e {
                Errno::EWOULDBLOCK => SweepError::Busy(path.into()),
                e => SweepError::io("lock", path)(e.into()),
            })?;
        let content = read(path)?;
        if let Some(found) = &content.header {
            same_sweep(path, header, found)?;
        }
        file.set_len(content.whole as u64).map_err(SweepError::io("write", path))?;
        let mut store = Store { path: path.into(), file, entries: content.entries };
        if content.header.is_none() {
            store.line(header)?;
            // Sync the directory, so that the name persists too.
            if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
                File::open(dir).and_then(|d| d.sync_all()).map_err(SweepError::io("write", dir))?;
            }
        }
        Ok(store)
    }

    /// Reads the store of a sweep without locking; empty if there is none.
    ///
    /// # Errors
    /// If the file is damaged, or of another sweep.
    pub fn finished(path: &Path, header: &Header) -> Result<BTreeMap<usize, Entry>, SweepError> {
        if !path.exists() {
            return Ok(BTreeMap::new());
        }
        let content = read(path)?;
        if let Some(found) = &content.header {
            same_sweep(path, header, found)?;
        }
        Ok(content.entries)
    }

    /// Reads a store of any sweep.
    ///
    /// # Errors
    /// If the file is no store, or damaged.
    pub fn read(path: &Path) -> Result<(Header, BTreeMap<usize, Entry>), SweepError> {
        Store::parse(path, &fs::read(path).map_err(SweepError::io("read", path))?)
    }

    /// Parses a store of any sweep; `path` is for messages.
    ///
    /// # Errors
    /// If it is no store, or damaged.
    pub fn parse(
        path: &Path,
        bytes: &[u8],
    ) -> Result<(Header, BTreeMap<usize, Entry>), SweepError> {
        let content = parse(path, bytes)?;
        let header = content.header.ok_or_else(|| {
            damaged(path, "there is no first line".into(), "the sweep has not begun; leave it out")
        })?;
        Ok((header, content.entries))
    }

    /// Adds a finished point, synced to disk.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn append(&mut self, entry: Entry) -> Result<(), SweepError> {
        self.line(&entry)?;
        self.entries.insert(entry.index, entry);
        Ok(())
    }

    /// All finished points.
    pub fn entries(&self) -> &BTreeMap<usize, Entry> {
        &self.entries
    }

    fn line(&mut self, what: &impl Serialize) -> Result<(), SweepError> {
        let mut line = serde_json::to_vec(what).expect("it is plain data");
        line.push(b'\n');
        self.file
            .write_all(&line)
            .and_then(|()| self.file.sync_data())
            .map_err(SweepError::io("write", &self.path))
    }
}

fn damaged(path: &Path, what: String, hint: &str) -> SweepError {
    SweepError::Store { path: path.into(), what, hint: hint.into() }
}

/// Refuses a store of another sweep.
pub(super) fn same_sweep(path: &Path, want: &Header, found: &Header) -> Result<(), SweepError> {
    if want == found {
        return Ok(());
    }
    let what = if (want.znsage_sweep, &want.version) != (found.znsage_sweep, &found.version) {
        format!("written by znsage {}, this is {}", found.version, want.version)
    } else {
        format!("holds results of another sweep, of {} points", found.points)
    };
    let hint = "the sweep file or a device's file was changed since; take it back, or give another --out, or remove the results";
    Err(damaged(path, what, hint))
}

fn read(path: &Path) -> Result<Content, SweepError> {
    parse(path, &fs::read(path).map_err(SweepError::io("read", path))?)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Content, SweepError> {
    let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let mut content = Content { header: None, entries: BTreeMap::new(), whole };
    let lines = bytes[..whole].split_inclusive(|b| *b == b'\n');
    for (i, line) in lines.enumerate() {
        let wrong = |what: &dyn std::fmt::Display| {
            let hint =
                "it is damaged, or no store of a sweep; remove it and what it holds runs again";
            damaged(path, format!("line {}: {what}", i + 1), hint)
        };
        let Some(header) = &content.header else {
            let header: Header = serde_json::from_slice(line).map_err(|e| wrong(&e))?;
            // Missing points are listed, so bound their number.
            if header.points > MAX_POINTS {
                return Err(wrong(&format!("{} points, {MAX_POINTS} is the most", header.points)));
            }
            content.header = Some(header);
            continue;
        };
        let entry: Entry = serde_json::from_slice(line).map_err(|e| wrong(&e))?;
        if entry.index >= header.points {
            return Err(wrong(&format!("point {} of {}", entry.index, header.points)));
        }
        insert(&mut content.entries, entry)
            .map_err(|index| wrong(&format!("a second, different result for point {index}")))?;
    }
    Ok(content)
}

/// Adds an entry; an existing one must be equal.
pub(super) fn insert(all: &mut BTreeMap<usize, Entry>, entry: Entry) -> Result<(), usize> {
    match all.get(&entry.index) {
        Some(old) if *old != entry => Err(entry.index),
        Some(_) => Ok(()),
        None => {
            all.insert(entry.index, entry);
            Ok(())
        }
    }
}
