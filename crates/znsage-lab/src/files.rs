// SPDX-License-Identifier: GPL-2.0-only
//! Files, with errors that name them.

use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::result::{Context, Result};

pub fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).context(format_args!("cannot read {}", path.display()))
}

pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    fs::write(path, bytes).context(format_args!("cannot write {}", path.display()))
}

pub fn make_directory(path: &Path) -> Result<()> {
    fs::create_dir_all(path).context(format_args!("cannot make {}", path.display()))
}

pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    serde_json::from_str(&read(path)?).context(path.display())
}

pub fn write_json(path: &Path, document: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(document).expect("plain data");
    make_directory(path.parent().unwrap_or(Path::new(".")))?;
    write(path, text + "\n")
}
