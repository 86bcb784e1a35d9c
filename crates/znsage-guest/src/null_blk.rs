// SPDX-License-Identifier: GPL-2.0-only
//! Devices of the null_blk driver: of any shape, with errors on demand.

use std::fs;

use crate::guest;
use crate::inject::Injection;
use crate::outcome::{Context, Outcome};

const GROUP: &str = "/sys/kernel/config/nullb";

/// Kernels name the disk after the directory or by its index: this name is both. There is one
/// device at a time.
const NAME: &str = "nullb0";

pub struct NullBlk {
    path: String,
}

impl NullBlk {
    /// A zoned device that stores data; `settings` as in Documentation/block/null_blk.rst,
    /// sizes in MiB.
    pub fn zoned(settings: &[(&str, &str)]) -> Outcome<NullBlk> {
        NullBlk::new(&[&[("zoned", "1")], settings].concat())
    }

    /// A device without zones that supports discard.
    pub fn conventional(settings: &[(&str, &str)]) -> Outcome<NullBlk> {
        NullBlk::new(&[&[("discard", "1")], settings].concat())
    }

    /// A device with these settings.
    pub fn new(settings: &[(&str, &str)]) -> Outcome<NullBlk> {
        remove_all();
        if !guest::exists(GROUP) {
            guest::ok(&["modprobe", "null_blk", "nr_devices=0"])?;
        }
        let path = format!("{GROUP}/{NAME}");
        fs::create_dir(&path).context(&path)?;
        let device = NullBlk { path };
        let common = [("blocksize", "4096"), ("memory_backed", "1")];
        for (attribute, value) in [&common, settings, &[("power", "1")]].concat() {
            device.set(attribute, value)?;
        }
        Ok(device)
    }

    fn set(&self, attribute: &str, value: &str) -> Outcome {
        let path = format!("{}/{attribute}", self.path);
        guest::write(&path, value).context(format!("{path} := {value}"))
    }

    pub fn node(&self) -> String {
        format!("/dev/{NAME}")
    }

    /// Its fault injection, if the kernel has it.
    pub fn injection(&self, what: &str) -> Outcome<Option<Injection>> {
        Injection::at(format!("{}/{what}", self.path))
    }

    /// Accesses to these sectors fail from now on.
    pub fn break_sectors(&self, first: u64, last: u64) -> Outcome {
        self.set("badblocks", &format!("+{first}-{last}"))
    }

    /// The zone with this sector becomes "readonly" or "offline".
    pub fn set_zone(&self, condition: &str, sector: u64) -> Outcome {
        self.set(&format!("zone_{condition}"), &sector.to_string())
    }

    /// Whether zones can change their condition; not on older kernels.
    pub fn has_zone_conditions(&self) -> bool {
        guest::exists(&format!("{}/zone_offline", self.path))
    }

    pub fn mend_sectors(&self, first: u64, last: u64) -> Outcome {
        self.set("badblocks", &format!("-{first}-{last}"))
    }
}

/// Removes what a case has left; returns whether it is gone. Not done by drop: a failed case
/// leaves a user of the device behind.
pub fn remove_all() -> bool {
    guest::list(GROUP).iter().filter(|name| *name != "features").all(|name| {
        let path = format!("{GROUP}/{name}");
        let _ = guest::write(&format!("{path}/power"), "0");
        fs::remove_dir(&path).is_ok()
    })
}
