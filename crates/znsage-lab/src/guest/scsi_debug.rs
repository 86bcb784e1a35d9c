// SPDX-License-Identifier: GPL-2.0-only
//! Disks of the scsi_debug driver, which emulates a SCSI host in memory and answers each
//! command late.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::program::{call, eventually};
use crate::result::Result;

const MODULE: &str = "scsi_debug";

/// No other disk of the guest has such a name.
const DISKS: &str = "sd";
const TIMEOUT: Duration = Duration::from_secs(10);

/// The one disk of the driver, which is removed when dropped. Its shape is the module's,
/// so each has the module loaded anew.
pub struct ScsiDebug {
    node: String,
}

impl ScsiDebug {
    /// `parameters` of the module.
    pub fn new(parameters: &[&str]) -> Result<ScsiDebug> {
        // Nothing else loads the driver of disks: udev has no rules here.
        call("modprobe", &["sd_mod"])?;
        call("modprobe", &[&[MODULE], parameters].concat())?;
        // From here on, an error removes the module.
        let mut device = ScsiDebug { node: String::new() };
        device.node = eventually(TIMEOUT, node).ok_or("scsi_debug makes no disk")?;
        Ok(device)
    }

    pub fn node(&self) -> &str {
        &self.node
    }
}

fn node() -> Option<String> {
    let entries = fs::read_dir("/sys/block").ok()?;
    let mut names = entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned());
    let node = format!("/dev/{}", names.find(|name| name.starts_with(DISKS))?);
    Path::new(&node).exists().then_some(node)
}

impl Drop for ScsiDebug {
    fn drop(&mut self) {
        // The last user's close may be under way.
        eventually(TIMEOUT, || call("rmmod", &[MODULE]).ok());
    }
}
