// SPDX-License-Identifier: GPL-2.0-only
//! Host-managed SCSI disks. Their appends are emulated by the kernel, one at a time for each
//! zone: each page is right, nothing counts as an error, and no zone is given up.

use std::thread;
use std::time::Duration;

use super::devices::MAIN;
use crate::device::{Bench, Device};
use crate::ensure;
use crate::guest::{self, Setting};
use crate::kmsg::Log;
use crate::outcome::{Context, Outcome};
use crate::scsi_debug::ScsiDebug;
use crate::table::{mounted, DEBUGFS};
use crate::zones;

crate::cases![scsi:
    scheduler (each), shorter_appends (each), blocks_of_4_kib (full), blocks_of_512_bytes (full),
    conventional_zones (full), small_capacity (full), eight_open (full), unused_zones (more)];

/// At 60 % with zones that are a 64th of the device each.
const MOST_WAF: f64 = 2.0;

const BLOCKS_4K: &str = "sector_size=4096";
const NO_CONVENTIONAL: &str = "zone_nr_conv=0";
const NO_LIMIT: &str = "zone_max_open=0";
/// 0.2 ms for each command, in ns.
const FAST: &str = "ndelay=200000";

fn on(disk: &ScsiDebug, options: &[&str]) -> Outcome<Device> {
    mounted("debugfs", DEBUGFS, "block")?;
    Device::on(&disk.node(), options)
}

/// Rewrites the device until GC has emptied zones.
fn swap(device: Device) -> Outcome {
    let bench = rewrite(&device, "60", "1")?;
    let waf = bench.waf();
    print!("{:.1} % full, WAF {waf:.2} ... ", 100.0 * bench.utilization());
    ensure!(device.counter("zone_resets")? > 0, "no zone was reset");
    ensure!(waf <= MOST_WAF, "WAF {waf:.3}, at most {MOST_WAF} is allowed");
    device.finish_sound()
}

fn rewrite(device: &Device, utilization: &str, rewrites: &str) -> Outcome<Bench> {
    let much = ["--utilization", utilization, "--rewrites", rewrites];
    let rest = ["--seconds", "60", "--write-ratio", "1"];
    guest::without_read_ahead(|| device.bench(&[much, rest].concat()))
}

fn equal(device: &Device, file: &str, wanted: u64) -> Outcome {
    let is = device.counter(file)?;
    ensure!(is == wanted, "{file} is {is}, not {wanted}");
    Ok(())
}

/// `znsage on` keeps a scheduler where the kernel needs it to queue appends, and `off` restores
/// what was there. With it, no append fails.
fn scheduler(_: &mut Log) -> Outcome {
    let settings = [BLOCKS_4K, NO_CONVENTIONAL, NO_LIMIT, FAST];
    let Some(disk) = ScsiDebug::managed(64, 1, &settings)? else { return Ok(()) };
    // Both kernels give it to a disk with one queue.
    let usual = disk.scheduler()?;
    ensure!(usual.contains("[mq-deadline]"), "the scheduler is {usual}");
    let device = on(&disk, &[])?;
    let wanted = if guest::kernel() < (6, 10) { "[mq-deadline]" } else { "[none]" };
    let scheduler = disk.scheduler()?;
    ensure!(scheduler.contains(wanted), "the scheduler is {scheduler}, not {wanted}");
    equal(&device, "zones_total", 64)?;
    device.swapoff()?;
    // A quarter of the device each time, until zones are used again.
    device.rewrite(4096, 5)?;
    ensure!(device.counter("zone_resets")? > 0, "no zone was reset");
    device.finish_sound()?;
    let after = disk.scheduler()?;
    ensure!(after == usual, "the scheduler is {after} after off, not {usual}");
    Ok(())
}

/// Writes and verifies pages while root changes `max_sectors_kb` of the disk below, where kernels before
/// 6.12 split appends. `turns` are the values.
fn shortened(device: &Device, turns: &[&str]) -> Outcome {
    let name = device.backing.trim_start_matches("/dev/");
    let path = format!("/sys/block/{name}/queue/max_sectors_kb");
    let usual = Setting::set(&path, turns[0])?;
    thread::scope(|scope| {
        let writer = scope.spawn(|| device.rewrite(1024, 3));
        for value in turns.iter().cycle().take_while(|_| !writer.is_finished()) {
            guest::write(&path, value).context(&path)?;
            thread::sleep(Duration::from_millis(300));
        }
        writer.join().map_err(|_| "the writer panicked".to_string())?
    })?;
    drop(usual);
    device.rewrite(1024, 1)
}

/// No append is split when the longest transfer of the disk below is lowered while the device is on:
/// neither that of an NVMe drive nor an emulated one. If it is less than a write unit, swap-out waits until
/// it is raised.
fn shorter_appends(log: &mut Log) -> Outcome {
    // A limit that drops between the engine's look and the block layer's fails an append.
    log.allow("append to zone");
    log.allow("too low for an append");
    let device = Device::attach(&guest::device(MAIN)?, &[])?;
    shortened(&device, &["16", "4", "64", "128"])?;
    device.end()?;
    let settings = [BLOCKS_4K, NO_CONVENTIONAL, NO_LIMIT, FAST];
    let Some(disk) = ScsiDebug::managed(64, 1, &settings)? else { return Ok(()) };
    let device = Device::attach(&disk.node(), &[("write_unit", "16384")])?;
    shortened(&device, &["16", "64", "4", "512"])?;
    device.end()
}

fn blocks_of_4_kib(_: &mut Log) -> Outcome {
    let settings = [BLOCKS_4K, NO_CONVENTIONAL, NO_LIMIT, FAST];
    let Some(disk) = ScsiDebug::managed(64, 1, &settings)? else { return Ok(()) };
    swap(on(&disk, &[])?)
}

fn blocks_of_512_bytes(_: &mut Log) -> Outcome {
    let Some(disk) = ScsiDebug::managed(64, 1, &[NO_CONVENTIONAL, NO_LIMIT, FAST])? else {
        return Ok(());
    };
    swap(on(&disk, &[])?)
}

/// Conventional zones stay unused and keep their contents.
fn conventional_zones(_: &mut Log) -> Outcome {
    let settings = [BLOCKS_4K, "zone_nr_conv=8", NO_LIMIT, FAST];
    let Some(disk) = ScsiDebug::managed(64, 1, &settings)? else { return Ok(()) };
    let into = format!("of={}", disk.node());
    let random = ["if=/dev/urandom", "bs=64K", "count=128", "oflag=direct", "conv=notrunc"];
    guest::ok(&[&["dd", &into, "status=none"], &random[..]].concat())?;
    let sum = || guest::ok(&["sh", "-c", &format!("head -c 8M {} | md5sum", disk.node())]);
    let before = sum()?;
    let device = on(&disk, &[])?;
    equal(&device, "zones_unused", 8)?;
    equal(&device, "zones_total", 56)?;
    swap(device)?;
    ensure!(sum()? == before, "the conventional zones have changed");
    Ok(())
}

/// A disk reports what is behind a zone's capacity as a gap.
fn small_capacity(_: &mut Log) -> Outcome {
    let settings = [BLOCKS_4K, NO_CONVENTIONAL, NO_LIMIT, "zone_cap_mb=1", FAST];
    let Some(disk) = ScsiDebug::managed(128, 2, &settings)? else { return Ok(()) };
    let device = on(&disk, &[])?;
    equal(&device, "zone_bytes", 1 << 20)?;
    equal(&device, "zones_total", 64)?;
    swap(device)
}

fn eight_open(_: &mut Log) -> Outcome {
    let settings = [BLOCKS_4K, NO_CONVENTIONAL, "zone_max_open=8", FAST];
    let Some(disk) = ScsiDebug::managed(64, 1, &settings)? else { return Ok(()) };
    swap(on(&disk, &["--policy", "cgroup"])?)
}

/// Attach empties the zones it uses and no other: not those beyond `size`, which hold
/// something, nor conventional ones. If it uses all, one command empties all.
fn unused_zones(_: &mut Log) -> Outcome {
    let Some(disk) = ScsiDebug::managed(64, 1, &[BLOCKS_4K, "zone_nr_conv=4", NO_LIMIT])? else {
        return Ok(());
    };
    let node = disk.node();
    let fill = || guest::ok(&["blkzone", "finish", "--offset", "8192", &node]);
    let full = || -> Outcome<u64> { Ok(zones::report(&node)?.matches("(fu)").count() as u64) };
    fill()?;
    let sequential = full()?;
    ensure!(sequential == 60, "{sequential} of 60 zones are full");
    let device = Device::attach(&node, &[("size", "16777216"), ("force", "1")])?;
    let unused = device.counter("zones_unused")? - 4;
    let left = full()?;
    ensure!(unused > 10 && left == unused, "{unused} zones are unused, {left} still full");
    device.end()?;
    let left = full()?;
    ensure!(left == unused, "{unused} zones were unused, after off {left} are full");
    // The first of those that were used.
    fill()?;
    let device = Device::attach(&node, &[("force", "1")])?;
    equal(&device, "zones_total", 60)?;
    zones::all_empty(&node)?;
    device.finish()
}
