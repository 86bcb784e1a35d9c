// SPDX-License-Identifier: GPL-2.0-only
//! Disks of the scsi_debug driver, which emulates a SCSI host in memory. SCSI has no zone
//! append, so the kernel's sd emulates it. A command takes a tick, 4 ms, unless the settings
//! say otherwise.

use crate::guest;
use crate::outcome::Outcome;

const MODULE: &str = "scsi_debug";

/// No other disk of the guest has such a name.
const DISKS: &str = "sd";

pub struct ScsiDebug {
    name: String,
}

impl ScsiDebug {
    /// A host-managed disk of `mib` MiB with zones of `zone_mib`; `settings` are parameters of
    /// the module. None if the kernel has no such driver: the kernels of vm/debug-kernel.
    pub fn managed(mib: u64, zone_mib: u64, settings: &[&str]) -> Outcome<Option<ScsiDebug>> {
        let zones = format!("zone_size_mb={zone_mib}");
        ScsiDebug::new(mib, &[&["zbc=host-managed", &zones], settings].concat())
    }

    /// A disk without zones.
    pub fn conventional(mib: u64, settings: &[&str]) -> Outcome<Option<ScsiDebug>> {
        ScsiDebug::new(mib, settings)
    }

    fn new(mib: u64, settings: &[&str]) -> Outcome<Option<ScsiDebug>> {
        remove_all();
        if guest::run(&["modinfo", MODULE])?.status != 0 {
            print!("no {MODULE} in this kernel ... ");
            return Ok(None);
        }
        let size = format!("dev_size_mb={mib}");
        guest::ok(&["modprobe", "sd_mod"])?;
        guest::ok(&[&["modprobe", MODULE, &size], settings].concat())?;
        // The disk is found in the background.
        let disk = || guest::list("/sys/block").into_iter().find(|name| name.starts_with(DISKS));
        guest::eventually(10.0, || disk().is_some_and(|name| guest::exists(&node(&name))));
        let name = disk().ok_or("scsi_debug makes no disk")?;
        Ok(Some(ScsiDebug { name }))
    }

    pub fn node(&self) -> String {
        node(&self.name)
    }

    pub fn partition(&self, number: u32) -> String {
        format!("{}{number}", self.node())
    }

    pub fn scheduler(&self) -> Outcome<String> {
        guest::read(&format!("/sys/block/{}/queue/scheduler", self.name))
    }
}

fn node(name: &str) -> String {
    format!("/dev/{name}")
}

/// Removes what a case has left; returns whether it is gone. Not done by drop: a failed case
/// leaves a user of the device behind.
pub fn remove_all() -> bool {
    let loaded = || guest::exists(&format!("/sys/module/{MODULE}"));
    !loaded() || guest::eventually(5.0, || guest::ok(&["rmmod", MODULE]).is_ok())
}
