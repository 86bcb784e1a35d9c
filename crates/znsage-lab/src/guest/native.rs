// SPDX-License-Identifier: GPL-2.0-only
//! One system on a null_blk in memory: fills memory, then accesses it at random.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use znsage_guest::null_blk::NullBlk;

use super::swap::{self, memory, Status, Swap};
use super::work::{measure, threads, Work};
use crate::files::write_json;
use crate::model::{System, MIB, PAGE};
use crate::native::{Turn, SYMBOLS};
use crate::result::{Context, Result};

const ZONE_MIB: &str = "4";
const LIMIT: u64 = 64 << 20;
const FULL_DEVICE_MIB: &str = "512";
const DEVICE_MIB: &str = "2048";
/// Less than half of the device, so that pages that are only read stay on it.
const SIZE_MIB: u64 = 900;
const SECONDS: u32 = 6;

pub fn run(out: &Path, system: System, full: Option<u64>) -> Result<()> {
    let size = if full.is_some() { FULL_DEVICE_MIB } else { DEVICE_MIB };
    let zoned = NullBlk::zoned(&[("size", size), ("zone_size", ZONE_MIB)])?;
    let Status { size_bytes, .. } = swap::offered(&zoned.node())?;
    let device;
    let swap = match system {
        System::Znsage => Swap::znsage(&zoned.node(), &[])?,
        System::Stock => {
            device = NullBlk::new(&[("size", size)])?;
            Swap::stock(&device.node(), size_bytes)?
        }
    };
    let mut arguments = threads(LIMIT, 1);
    // With writes, a full device collects garbage once its empty zones are used up.
    let (bytes, writes, warmup) = match full {
        Some(percent) => (memory(size_bytes / PAGE, percent, LIMIT), 0.5, 30),
        None => (SIZE_MIB * MIB as u64, 0.0, 2),
    };
    arguments.extend([format!("--size={bytes}"), format!("--write-ratio={writes}")]);
    arguments.extend([format!("--warmup={warmup}"), format!("--seconds={SECONDS}")]);
    let began = SystemTime::UNIX_EPOCH.elapsed().context("the clock")?.as_secs_f64();
    let measured = measure(&Work { system, phase: "native", arguments }, out)?;
    measured.sound()?;
    // Before the module goes.
    fs::copy("/proc/kallsyms", out.join(SYMBOLS)).context("/proc/kallsyms")?;
    swap.off()?;
    write_json(&out.join("runs.json"), &Turn { began, samples: measured.samples })
}
