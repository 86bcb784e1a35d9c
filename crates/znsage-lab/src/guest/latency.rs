// SPDX-License-Identifier: GPL-2.0-only
//! Stock swap and znsage in turns, on devices with latency of the same kind;
//! bench/README.md explains the figures.

use std::path::Path;

use znsage_guest::null_blk::{self, NullBlk};
use znsage_guest::scsi_debug::{self, ScsiDebug};

use super::nvme_tcp::NvmeTcp;
use super::swap::{self, memory, release, status, Status, Swap};
use super::work::{common, measure, Work};
use crate::figures::{select, Measurements, DEVICES};
use crate::files::write_json;
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
    let figures = select(figures)?;
    let mut measured = Measurements { kernel: release(), ..Measurements::default() };
    for (device, title) in DEVICES {
        let needed = |level: &u64| figures.iter().any(|f| f.needs(device, *level));
        let levels: Vec<u64> = LEVELS.into_iter().filter(needed).collect();
        // A device that fails does not keep the others from being measured.
        if let Err(message) = compare(out, device, &levels, rounds, &mut measured) {
            eprintln!("  {message}");
            measured.problems.push(format!("{title}: {message}"));
        }
    }
    write_json(&out.join("runs.json"), &measured)
}

fn compare(
    out: &Path,
    device: &str,
    levels: &[u64],
    rounds: u32,
    measured: &mut Measurements,
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
            eprintln!("[{device}, round {} of {rounds}] {percent} % full", round + 1);
            for system in systems {
                turn(out, device, percent, system, &offered, measured)?;
            }
        }
    }
    Ok(())
}

/// One system on an empty device, which it fills and then accesses.
fn turn(
    out: &Path,
    device: &str,
    percent: u64,
    system: System,
    offered: &Status,
    measured: &mut Measurements,
) -> Result<()> {
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
    let phase = format!("{device}-{percent}");
    let done = measure(&Work { system, phase: &phase, arguments }, out);
    let of = |aspect: &str| format!("latency-{device}-{aspect}");
    if system == System::Znsage {
        // Appends, resets and finishes that failed. The run may have failed because of them.
        let errors = status()?.write_errors;
        measured.of(&of("errors")).ours.push(errors as f64);
        eprintln!("  {errors} write errors");
    }
    let done = done?;
    done.sound()?;
    swap.off()?;
    let (fill, random) = (done.run("fill", "fill")?.measured, done.run("random", &phase)?.measured);
    let mut add = |aspect: &str, number: f64, note: String| {
        let numbers = measured.of(&of(aspect));
        match system {
            System::Znsage => numbers.ours.push(number),
            System::Stock => numbers.others.push(number),
        }
        numbers.notes.push(note);
    };
    if percent == 80 {
        add("fill", fill.mib_per_s, String::new());
    }
    let waf = random.waf.map_or(String::new(), |waf| format!("WAF {waf:.2}"));
    add(&format!("random{percent}"), random.ops_per_s, waf);
    let us = random.latency_us.ok_or("no latencies")?;
    add(&format!("tail{percent}"), us.p99_9, format!("{} p99 {:.0}", system.name(), us.p99));
    Ok(())
}

/// Seconds of random access before the measurement. At 80 % they use up the empty zones,
/// so that GC runs.
fn warmup(device: &str, percent: u64) -> u32 {
    match (device, percent) {
        (_, 40) => 1,
        ("scsi-4ms", _) => 25,
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
    fn new(device: &str, system: System) -> Result<Made> {
        null_blk::remove_all();
        scsi_debug::remove_all();
        match device {
            "scsi-4ms" => scsi("delay=1", system),
            "scsi-200us" => scsi("ndelay=200000", system),
            "null-80us" => {
                let timers = [("irqmode", "2"), ("completion_nsec", "80000")];
                memory_disk(&timers, system).map(Made::NullBlk)
            }
            _ => NvmeTcp::new(memory_disk(&[], system)?).map(Made::NvmeTcp),
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
