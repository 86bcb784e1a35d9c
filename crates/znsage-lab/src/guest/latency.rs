// SPDX-License-Identifier: GPL-2.0-only
//! Stock swap and znsage in turns, on devices with latency of the same kind;
//! bench/README.md explains the figures.

use std::path::Path;

use znsage_guest::null_blk::{self, NullBlk};
use znsage_guest::scsi_debug::{self, ScsiDebug};

use super::nvme_tcp::NvmeTcp;
use super::swap::{self, memory, release, status, Status, Swap};
use super::work::{common, measure, Work};
use crate::figures::{select, Figure};
use crate::files::write_json;
use crate::latency::{Device, Latency, Measured, Turn};
use crate::model::{System, PAGE};
use crate::result::Result;

const SIZE_MIB: u64 = 256;
const ZONE_MIB: u64 = 4;
const LIMIT: u64 = 32 << 20;

/// How full the swap area is, in percent.
const LEVELS: [u64; 2] = [40, 80];

/// Seconds of random access that are measured.
const SECONDS: u32 = 5;

pub fn run(out: &Path, figures: &[String], rounds: u32) -> Result<()> {
    let figures: Vec<Latency> = select(figures)?
        .into_iter()
        .filter_map(|figure| match figure {
            Figure::Timed(latency) => Some(latency),
            _ => None,
        })
        .collect();
    let mut measured = Measured { kernel: release(), ..Measured::default() };
    for device in Device::ALL {
        let needed = |level: &u64| figures.iter().any(|f| f.needs(device, *level));
        let levels: Vec<u64> = LEVELS.into_iter().filter(needed).collect();
        // A device that fails does not keep the others from being measured.
        if let Err(message) = compare(out, device, &levels, rounds, &mut measured.turns) {
            eprintln!("  {message}");
            measured.problems.push(format!("{}: {message}", device.title()));
        }
    }
    write_json(&out.join("runs.json"), &measured)
}

fn compare(
    out: &Path,
    device: Device,
    levels: &[u64],
    rounds: u32,
    turns: &mut Vec<Turn>,
) -> Result<()> {
    if levels.is_empty() {
        return Ok(());
    }
    let offered = swap::offered(&Made::new(device, System::Znsage)?.node())?;
    for round in 0..rounds {
        // The systems take turns in being first.
        let mut systems = System::BOTH;
        systems.rotate_left(round as usize % 2);
        for &percent in levels {
            let title = device.title();
            eprintln!("[{title}, round {} of {rounds}] {percent} % full", round + 1);
            for system in systems {
                turns.push(turn(out, device, percent, system, &offered)?);
            }
        }
    }
    Ok(())
}

fn turn(
    out: &Path,
    device: Device,
    percent: u64,
    system: System,
    offered: &Status,
) -> Result<Turn> {
    let made = Made::new(device, system)?;
    let swap = match system {
        System::Stock => Swap::stock(&made.node(), offered.size_bytes)?,
        System::Znsage => Swap::znsage(&made.node(), &[])?,
    };
    let mut arguments = common(LIMIT);
    // The swap areas of both have this size.
    let pages = offered.size_bytes / PAGE;
    arguments.push(format!("--size={}", memory(pages, percent, LIMIT)));
    arguments.push(format!("--warmup={}", warmup(device, percent)));
    arguments.push(format!("--seconds={SECONDS}"));
    let phase = format!("{device:?}-{percent}");
    let measured = measure(&Work { system, phase: &phase, arguments }, out);
    let write_errors = match system {
        System::Stock => None,
        System::Znsage => Some(status()?.write_errors),
    };
    if let Some(errors) = write_errors.filter(|&n| n > 0) {
        eprintln!("  {}: {errors} write errors", system.name());
    }
    // A run may fail because of them.
    let errors = write_errors.unwrap_or(0);
    let measured = measured.map_err(|e| format!("{e}; {errors} write errors"))?;
    measured.sound()?;
    swap.off()?;
    Ok(Turn {
        device,
        percent,
        fill: measured.run("fill", "fill")?,
        random: measured.run("random", &format!("random{percent}"))?,
        write_errors,
    })
}

/// Seconds of random access before the measurement. At 80 % they use up the empty zones,
/// so that GC runs.
fn warmup(device: Device, percent: u64) -> u32 {
    match (device, percent) {
        (_, 40) => 1,
        (Device::Scsi4ms, _) => 25,
        _ => 6,
    }
}

/// A device with zones or, for stock swap, without. It is made for each turn, so it is
/// empty, and two do not share the guest's memory.
enum Made {
    Scsi(ScsiDebug),
    NullBlk(NullBlk),
    NvmeTcp(NvmeTcp),
}

impl Made {
    fn new(device: Device, system: System) -> Result<Made> {
        null_blk::remove_all();
        scsi_debug::remove_all();
        match device {
            Device::Scsi4ms => scsi("delay=1", system),
            Device::Scsi200us => scsi("ndelay=200000", system),
            Device::NullBlk => {
                let timers = [("irqmode", "2"), ("completion_nsec", "80000")];
                memory_disk(&timers, system).map(Made::NullBlk)
            }
            Device::NvmeTcp => NvmeTcp::new(memory_disk(&[], system)?).map(Made::NvmeTcp),
        }
    }

    fn node(&self) -> String {
        match self {
            Made::Scsi(device) => device.node(),
            Made::NullBlk(device) => device.node(),
            Made::NvmeTcp(device) => device.node().to_string(),
        }
    }
}

/// The driver's own limit for open zones is 8; by default its first zone is conventional.
fn scsi(delay: &str, system: System) -> Result<Made> {
    let settings = ["sector_size=4096", delay, "zone_nr_conv=0", "zone_max_open=8"];
    let disk = match system {
        System::Znsage => ScsiDebug::managed(SIZE_MIB, ZONE_MIB, &settings)?,
        System::Stock => ScsiDebug::conventional(SIZE_MIB, &settings[..2])?,
    };
    disk.map(Made::Scsi).ok_or_else(|| "this kernel has no scsi_debug".to_string())
}

fn memory_disk(timers: &[(&str, &str)], system: System) -> Result<NullBlk> {
    let (size, zone) = (SIZE_MIB.to_string(), ZONE_MIB.to_string());
    let zoned: &[(&str, &str)] = match system {
        System::Znsage => &[("zoned", "1"), ("zone_size", &zone)],
        System::Stock => &[],
    };
    NullBlk::new(&[&[("size", size.as_str())], timers, zoned].concat())
}
