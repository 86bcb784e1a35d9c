// SPDX-License-Identifier: GPL-2.0-only
//! One system on a null_blk in memory: fills memory, then reads it at random.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use znsage_guest::null_blk::NullBlk;

use super::swap::{self, Status, Swap};
use super::work::{measure, threads, Work};
use crate::files::write_json;
use crate::model::{System, MIB};
use crate::native::{Turn, SYMBOLS};
use crate::result::{Context, Result};

const DEVICE_MIB: &str = "2048";
const ZONE_MIB: &str = "4";
const LIMIT: u64 = 64 << 20;
/// Less than half of the device, so that pages that are only read stay on it.
const SIZE_MIB: u64 = 900;
const SECONDS: u32 = 6;

pub fn run(out: &Path, system: System) -> Result<()> {
    let zoned = NullBlk::zoned(&[("size", DEVICE_MIB), ("zone_size", ZONE_MIB)])?;
    let Status { size_bytes, .. } = swap::offered(&zoned.node())?;
    let device;
    let swap = match system {
        System::Znsage => Swap::znsage(&zoned.node(), &[])?,
        System::Stock => {
            device = NullBlk::new(&[("size", DEVICE_MIB)])?;
            Swap::stock(&device.node(), size_bytes)?
        }
    };
    let mut arguments = threads(LIMIT, 1);
    arguments.extend([format!("--size={}", SIZE_MIB * MIB as u64), "--write-ratio=0".to_string()]);
    arguments.extend(["--warmup=2".to_string(), format!("--seconds={SECONDS}")]);
    let began = SystemTime::UNIX_EPOCH.elapsed().context("the clock")?.as_secs_f64();
    let measured = measure(&Work { system, phase: "native", arguments }, out)?;
    measured.sound()?;
    // Before the module goes.
    fs::copy("/proc/kallsyms", out.join(SYMBOLS)).context("/proc/kallsyms")?;
    swap.off()?;
    write_json(&out.join("runs.json"), &Turn { began, samples: measured.samples })
}
