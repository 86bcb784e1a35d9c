// SPDX-License-Identifier: GPL-2.0-only
//! Records which device a section of znsage.conf turned on. They stay valid when
//! the file changes or the device gets another name.

use crate::conf;
use crate::device;
use crate::error::{Error, Result};
use crate::sys::Sys;
use crate::undo::Undo;

const DIRECTORY: &str = "/run/znsage";
const ENDING: &str = ".section";

fn record(section: &str) -> String {
    format!("{DIRECTORY}/{section}{ENDING}")
}

/// Records the kernel's name of the device.
pub fn remember(sys: &dyn Sys, section: &str, backing: &str, undo: &mut Undo) -> Result<()> {
    let path = record(section);
    undo.push("forget the section", {
        let path = path.clone();
        move |sys| sys.forget(&path).map_err(|e| Error::io("remove", &sys.at(&path), e))
    });
    sys.save(&path, backing).map_err(|e| Error::io("write", &sys.at(&path), e))
}

/// Removes the record of a device that is off; returns the section.
pub fn forget(sys: &dyn Sys, backing: &str) -> Result<Option<String>> {
    let mut section = None;
    for name in sys.list(DIRECTORY) {
        let path = format!("{DIRECTORY}/{name}");
        let Some(of) = name.strip_suffix(ENDING) else { continue };
        if sys.read(&path).is_ok_and(|text| text.trim() == backing) {
            sys.forget(&path).map_err(|e| Error::io("remove", &sys.at(&path), e))?;
            section = Some(of.to_string());
        }
    }
    Ok(section)
}

/// The kernel's name of a section's device: the recorded one, otherwise that in
/// the file. None if the device does not exist.
pub fn backing(sys: &dyn Sys, section: &str) -> Result<Option<String>> {
    if let Ok(name) = sys.read(&record(section)) {
        return Ok(Some(name.trim().to_string()));
    }
    let conf = conf::read(sys);
    let path = &conf.section(section)?.device;
    match sys.exists(path) {
        true => device::locate(sys, path).map(|(_, name)| Some(name)),
        false => Ok(None),
    }
}
