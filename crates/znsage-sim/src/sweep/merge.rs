// SPDX-License-Identifier: GPL-2.0-only
//! Parts of a sweep into one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::error::SweepError;
use super::output::replace;
use super::shard::Shard;
use super::store::{insert, same_sweep, Entry, Header, Store};

/// The union of the parts.
#[derive(Debug)]
pub struct Merged {
    /// Their sweep.
    pub header: Header,
    /// All finished points.
    pub entries: BTreeMap<usize, Entry>,
    /// The stores that were read.
    pub files: Vec<PathBuf>,
}

impl Merged {
    /// Reads stores: files, or all in a directory.
    ///
    /// # Errors If there are none, one is damaged or of another sweep, or two differ in
    /// a point.
    pub fn read(paths: &[PathBuf]) -> Result<Merged, SweepError> {
        let mut files = Vec::new();
        for path in paths {
            match path.is_dir() {
                true => files.extend(stores_in(path)?),
                false => files.push(path.clone()),
            }
        }
        let Some(first) = files.first() else {
            return Err(refuse(&paths[0], "there is no store of a sweep in it", NO_STORE));
        };
        let (header, _) = Store::read(first)?;
        let mut entries = BTreeMap::new();
        for path in &files {
            let (found, more) = Store::read(path)?;
            same_sweep(path, &header, &found)?;
            for entry in more.into_values() {
                insert(&mut entries, entry).map_err(|index| {
                    refuse(path, &format!("point {index} differs from another part's"), TWO_RESULTS)
                })?;
            }
        }
        Ok(Merged { header, entries, files })
    }

    /// Points that no part holds.
    pub fn missing(&self) -> Vec<usize> {
        (0..self.header.points).filter(|index| !self.entries.contains_key(index)).collect()
    }

    /// The shards of the missing points, if the store names tell how many shards there
    /// are.
    pub fn missing_shards(&self) -> Vec<Shard> {
        let of = self.files.iter().filter_map(|path| {
            let name = path.file_name()?.to_str()?;
            let (_, of) = name.strip_prefix("runs-")?.strip_suffix(".jsonl")?.split_once("-of-")?;
            format!("1/{of}").parse::<Shard>().ok()
        });
        let of: BTreeSet<String> = of.map(|shard| shard.to_string()).collect();
        let [one] = &Vec::from_iter(of)[..] else { return Vec::new() };
        let one: Shard = one.parse().expect("it was one");
        let mut shards: Vec<Shard> = Vec::new();
        for index in self.missing() {
            let shard = one.of_index(index);
            if !shards.contains(&shard) {
                shards.push(shard);
            }
        }
        shards
    }

    /// Writes one store of all into a directory.
    ///
    /// # Errors If it holds another sweep, or cannot be written.
    pub fn write(&mut self, dir: &Path) -> Result<(), SweepError> {
        fs::create_dir_all(dir).map_err(SweepError::io("make", dir))?;
        let path = dir.join(Shard::WHOLE.file_name());
        // Locks the store, and keeps what it holds.
        let store = Store::open(&path, &self.header)?;
        for entry in store.entries().values() {
            insert(&mut self.entries, entry.clone()).map_err(|index| {
                refuse(&path, &format!("point {index} differs from a part's"), TWO_RESULTS)
            })?;
        }
        let mut text = serde_json::to_string(&self.header).expect("it is plain data") + "\n";
        for entry in self.entries.values() {
            text += &serde_json::to_string(entry).expect("it is plain data");
            text.push('\n');
        }
        replace(&path, text.as_bytes())
    }
}

const NO_STORE: &str = "give directories that `znsage sim sweep` wrote, or their runs*.jsonl";
const TWO_RESULTS: &str =
    "the same point has one result on every machine; see which of them runs another simulator";

fn refuse(path: &Path, what: &str, hint: &str) -> SweepError {
    SweepError::Store { path: path.into(), what: what.into(), hint: hint.into() }
}

/// The stores in a directory, by name.
fn stores_in(dir: &Path) -> Result<Vec<PathBuf>, SweepError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(SweepError::io("read", dir))? {
        let entry = entry.map_err(SweepError::io("read", dir))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("runs") && name.ends_with(".jsonl") {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}
