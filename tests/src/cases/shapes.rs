// SPDX-License-Identifier: GPL-2.0-only
//! Devices of many shapes. Each swaps with GC at about 70 % utilization, within its limits
//! on open and active zones: a write beyond them would fail and be counted.

use super::devices::{LARGE, MEDIUM, ONE_OPEN, TIGHT};
use crate::device::{Bench, Device};
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::memory::Memory;
use crate::null_blk::NullBlk;
use crate::outcome::{Context, Outcome};
use crate::pattern::PAGE;

crate::cases![shapes:
    tight_limits_512_byte_blocks (full), zones_of_4_mib (full), large_zones (full),
    write_unit_192k (full), large_chunks (full), stripes (full), policy_single (full),
    one_open (full), null_blk_capacity (full), null_blk_conventional_zones (full),
    null_blk_three_open (full), null_blk_one_open (full), null_blk_smaller_last_zone (each)];

/// For the device with one open zone, 80 % full.
const MOST_WAF_SHARED: f64 = 3.2;

/// Swaps until GC has emptied several zones: the fill takes 70 % of them.
fn swap_on(device: &Device, utilization: &str) -> Outcome<Bench> {
    swap_for(device, utilization, "0.8")
}

fn swap_for(device: &Device, utilization: &str, rewrites: &str) -> Outcome<Bench> {
    let bench = guest::without_read_ahead(|| {
        device.bench(&[
            "--utilization",
            utilization,
            "--rewrites",
            rewrites,
            "--seconds",
            "60",
            "--write-ratio",
            "1",
        ])
    })?;
    for counter in ["zone_resets", "gc_blocks"] {
        ensure!(device.counter(counter)? > 0, "GC did not run: {counter} is 0");
    }
    Ok(bench)
}

fn equal(device: &Device, file: &str, wanted: u64) -> Outcome {
    let is = device.counter(file)?;
    ensure!(is == wanted, "{file} is {is}, not {wanted}");
    Ok(())
}

/// Capacity below the zone's size, and four open zones: two are for streams.
fn tight_limits_512_byte_blocks(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(TIGHT)?, &["--policy", "cpu"])?;
    equal(&device, "zone_bytes", 896 << 10)?;
    equal(&device, "streams", 2)?;
    swap_on(&device, "70")?;
    device.finish_sound()
}

fn zones_of_4_mib(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(MEDIUM)?, &["--size", "48M"])?;
    equal(&device, "zone_bytes", 4 << 20)?;
    let (used, unused) = (device.counter("zones_total")?, device.counter("zones_unused")?);
    ensure!(used + unused == 64 && unused > 0, "{used} zones used, {unused} unused");
    // Of the zones; that is 94 % of the 48 MiB.
    swap_on(&device, "60")?;
    device.finish_sound()
}

/// Few large zones: one stream; GC begins when two of five are written.
fn large_zones(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(LARGE)?, &["--size", "120M"])?;
    equal(&device, "zone_bytes", 64 << 20)?;
    swap_for(&device, "25", "0.6")?;
    device.finish_sound()
}

/// Units that do not divide the zone: the rest of each zone stays empty, and
/// the zone is finished. Short batches are padded, which the WAF shows.
fn write_unit_192k(_: &mut Log) -> Outcome {
    let options = ["--write-unit", "192K", "--chunk", "192K", "--size", "48M"];
    let device = Device::on(&guest::device(MEDIUM)?, &options)?;
    equal(&device, "write_unit_bytes", 192 << 10)?;
    equal(&device, "zone_bytes", 21 * (192 << 10))?;
    let bench = swap_on(&device, "55")?;
    let (host, gc) = (device.counter("host_blocks")?, device.counter("gc_blocks")?);
    let padding = device.counter("padding_blocks")?;
    ensure!(padding > 0, "nothing was padded");
    let all = host + gc + padding;
    ensure!(all % 48 == 0, "{host} + {gc} + {padding} blocks are no whole units");
    ensure!(bench.waf() > 1.0, "the WAF leaves padding out");
    device.finish_sound()
}

/// Two zones at a time for each stream, and four for GC.
fn stripes(_: &mut Log) -> Outcome {
    let options = ["--stripe", "2", "--chunk", "64K"];
    let device = Device::on(&guest::device(MEDIUM)?, &options)?;
    equal(&device, "streams", 2)?;
    equal(&device, "stripe", 2)?;
    swap_for(&device, "60", "1.1")?;
    device.finish_sound()
}

/// Reclaim submits 32 pages at a time; here a chunk holds 96.
fn large_chunks(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(MEDIUM)?, &["--size", "48M", "--chunk", "384K"])?;
    equal(&device, "chunk_bytes", 384 << 10)?;
    swap_on(&device, "60")?;
    device.finish_sound()
}

fn policy_single(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(TIGHT)?, &["--policy", "single", "--chunk", "64K"])?;
    equal(&device, "streams", 1)?;
    swap_on(&device, "70")?;
    device.finish_sound()
}

/// One zone can be open: swap-out and GC share it, on a device 80 % full. The counters
/// still tell GC's blocks from those of swap-out.
fn one_open(_: &mut Log) -> Outcome {
    let options = ["--policy", "cpu", "--over-provisioning", "12"];
    let device = Device::on(&guest::device(ONE_OPEN)?, &options)?;
    equal(&device, "streams", 1)?;
    equal(&device, "gc_shared", 1)?;
    let bench = swap_for(&device, "80", "1.5")?;
    let waf = bench.waf();
    print!("{:.1} % full, WAF {waf:.2} ... ", 100.0 * bench.utilization());
    ensure!((1.2..=MOST_WAF_SHARED).contains(&waf), "WAF {waf:.3}");
    device.finish_sound()
}

fn null_blk_capacity(_: &mut Log) -> Outcome {
    let null = NullBlk::zoned(&[("size", "64"), ("zone_size", "2"), ("zone_capacity", "1")])?;
    let device = Device::on(&null.node(), &[])?;
    equal(&device, "zone_bytes", 1 << 20)?;
    swap_on(&device, "70")?;
    device.finish_sound()
}

/// Linux lets the last zone be smaller than the others. It stays unused, and costs nothing else.
fn null_blk_smaller_last_zone(_: &mut Log) -> Outcome {
    let slots = |size: &str| -> Outcome<(Device, u64)> {
        let null = NullBlk::zoned(&[("size", size), ("zone_size", "2")])?;
        let device = Device::attach(&null.node(), &[("policy", "single")])?;
        let bytes = device.counter("size_bytes")?;
        Ok((device, bytes))
    };
    let (even, wanted) = slots("64")?;
    even.finish()?;
    let (device, bytes) = slots("65")?;
    ensure!(bytes == wanted, "{bytes} bytes with a smaller last zone, {wanted} without");
    equal(&device, "zones_total", 32)?;
    equal(&device, "zones_unused", 1)?;
    write_all(&device)?;
    device.finish_sound()?;

    let null = NullBlk::zoned(&[("size", "65"), ("zone_size", "2")])?;
    let device = Device::attach(&null.node(), &[("size", &wanted.to_string())])?;
    write_all(&device)?;
    device.finish_sound()?;

    // It has the capacity of the others, and yet a reset of their size does not fit it.
    let shape = [("size", "65"), ("zone_size", "2"), ("zone_capacity", "1")];
    let Ok(null) = NullBlk::zoned(&shape) else {
        print!("null_blk refuses a small last zone of full capacity ... ");
        return Ok(());
    };
    let device = Device::attach(&null.node(), &[("policy", "single")])?;
    equal(&device, "zones_unused", 1)?;
    write_all(&device)?;
    device.finish_sound()
}

/// Twice, so that GC runs.
fn write_all(device: &Device) -> Outcome {
    let disk = device.disk()?;
    let mut memory = Memory::new(disk.slots() * PAGE)?;
    for key in 1..3 {
        memory.fill(0..disk.slots(), key);
        disk.write_slots(&memory, 0..disk.slots()).context("write")?;
    }
    Ok(())
}

/// Conventional zones are left alone, with their contents.
fn null_blk_conventional_zones(_: &mut Log) -> Outcome {
    let null = NullBlk::zoned(&[("size", "64"), ("zone_size", "1"), ("zone_nr_conv", "8")])?;
    guest::ok(&[
        "dd",
        "if=/dev/urandom",
        &format!("of={}", null.node()),
        "bs=64K",
        "count=128",
        "oflag=direct",
        "conv=notrunc",
        "status=none",
    ])?;
    let sum = || guest::ok(&["sh", "-c", &format!("head -c 8M {} | md5sum", null.node())]);
    let before = sum()?;
    let device = Device::on(&null.node(), &[])?;
    equal(&device, "zones_unused", 8)?;
    equal(&device, "zones_total", 56)?;
    swap_on(&device, "70")?;
    device.finish_sound()?;
    ensure!(sum()? == before, "the conventional zones have changed");
    Ok(())
}

/// Three open zones leave one stream, however many CPUs there are.
fn null_blk_three_open(_: &mut Log) -> Outcome {
    let null = NullBlk::zoned(&[
        ("size", "64"),
        ("zone_size", "1"),
        ("zone_max_open", "3"),
        ("zone_max_active", "3"),
    ])?;
    let device = Device::on(&null.node(), &["--policy", "cpu"])?;
    equal(&device, "streams", 1)?;
    swap_on(&device, "70")?;
    device.finish_sound()
}

/// One open zone, with room for four chunks.
fn null_blk_one_open(_: &mut Log) -> Outcome {
    let null = NullBlk::zoned(&[
        ("size", "64"),
        ("zone_size", "1"),
        ("zone_max_open", "1"),
        ("zone_max_active", "1"),
    ])?;
    let device = Device::on(&null.node(), &["--policy", "cgroup"])?;
    equal(&device, "streams", 1)?;
    swap_on(&device, "70")?;
    device.finish_sound()
}
