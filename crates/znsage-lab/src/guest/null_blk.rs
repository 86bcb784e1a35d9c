// SPDX-License-Identifier: GPL-2.0-only
//! Devices of the null_blk driver, which store data in memory.

use std::fs;

use super::program::{call, set};
use crate::result::{Context, Result};

/// Kernels name the disk after the directory or by its index: this name is both. There is
/// one device at a time.
const NAME: &str = "nullb0";
const NODE: &str = "/dev/nullb0";

/// A device that is removed when dropped.
pub struct NullBlk {
    directory: String,
}

impl NullBlk {
    /// `settings` as in Documentation/block/null_blk.rst, sizes in MiB.
    pub fn new(settings: &[(&str, u64)]) -> Result<NullBlk> {
        call("modprobe", &["null_blk", "nr_devices=0"])?;
        let directory = format!("/sys/kernel/config/nullb/{NAME}");
        fs::create_dir(&directory).context(format_args!("cannot make {directory}"))?;
        let device = NullBlk { directory };
        let common = [("blocksize", 4096), ("memory_backed", 1)];
        for (attribute, value) in [&common, settings, &[("power", 1)]].concat() {
            device.set(attribute, value)?;
        }
        Ok(device)
    }

    pub fn node(&self) -> &str {
        NODE
    }

    fn set(&self, attribute: &str, value: u64) -> Result<()> {
        set(&format!("{}/{attribute}", self.directory), &value.to_string())
    }
}

impl Drop for NullBlk {
    fn drop(&mut self) {
        let _ = self.set("power", 0);
        let _ = fs::remove_dir(&self.directory);
    }
}
