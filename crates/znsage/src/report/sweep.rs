// SPDX-License-Identifier: GPL-2.0-only
//! A sweep of the simulator, which makes its own page.

use std::path::{Path, PathBuf};

use serde_json::Value;
use znsage_sim::html::Page;
use znsage_sim::sweep::merge::Merged;
use znsage_sim::sweep::report;
use znsage_sim::sweep::table::Table;

use crate::error::Result;

/// The directory named in the document of `sim sweep`.
pub fn store(document: &Value) -> Option<PathBuf> {
    document.get("points")?;
    let file = document.get("files")?.get(0)?.as_str()?;
    Path::new(file).parent().map(Path::to_path_buf)
}

pub fn page(directory: &Path) -> Result<Page> {
    let merged = Merged::read(&[directory.to_path_buf()])?;
    Ok(report::page(&Table::of(merged.entries.values())))
}
