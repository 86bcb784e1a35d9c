// SPDX-License-Identifier: GPL-2.0-only
//! A device that is about to be measured.

use std::any::Any;

use super::plan::{Layout, Plan};
use crate::device::Backing;
use crate::error::{Error, Kind, Result};
use crate::queue;
use crate::sys::Sys;

/// Everything is checked and the user agreed; nothing has changed yet.
pub struct Ready {
    pub backing: Backing,
    /// Number of zones that can be used.
    pub zones: u64,
    pub layout: Layout,
    pub plan: Plan,
    pub fio: String,
    pub profile: Option<String>,
    pub save: Option<String>,
    /// Keeps the device open exclusively.
    pub _held: Box<dyn Any>,
}

impl Ready {
    /// Empties the device. A device without zones is discarded, if it supports that. In a file,
    /// nothing is written any more, as the file system sees it.
    pub fn reset(&self, sys: &dyn Sys) -> Result<()> {
        let (path, (start, length)) = (&self.backing.path, self.layout.all());
        if self.backing.file.is_some() {
            return sys.clear_file(path).map_err(|e| Error::io("clear", &sys.at(path), e));
        }
        if self.backing.zones.is_none() {
            return match queue::discards(sys, &self.backing.name) {
                true => discard(sys, path),
                false => Ok(()),
            };
        }
        sys.reset_zones(path, start, length).map_err(|e| {
            Error::io("reset the zones of", &sys.at(path), e)
                .hint(format!("`blkzone reset {path}` empties it"))
        })
    }
}

fn discard(sys: &dyn Sys, path: &str) -> Result<()> {
    let failed = |why: String| {
        Error::new(Kind::Kernel, format!("cannot discard {path}: {why}"))
            .hint(format!("`blkdiscard {path}` tries again"))
    };
    // Without --force it refuses a device that is held open exclusively, as here.
    let ran = sys.run(&["blkdiscard", "--force", path], &mut || ());
    match ran.map_err(|e| failed(crate::error::reason(&e)))? {
        ran if ran.ok() => Ok(()),
        ran => Err(failed(ran.complaint())),
    }
}
