// SPDX-License-Identifier: GPL-2.0-only
//! A device that fails: what it does not take goes elsewhere, what it does
//! not give back is one error, to the one who asked.

use nix::sys::signal::Signal;

use crate::child::{spawn, Group};
use crate::device::Device;
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::memory::Memory;
use crate::null_blk::NullBlk;
use crate::outcome::{Context, Outcome};
use crate::pattern::PAGE;

crate::cases![errors: failed_appends, failed_read, failed_read_of_a_process, failed_read_of_gc];

/// Sectors of 512 bytes in a zone of 1 MiB, and in a page.
const ZONE: u64 = 2048;
const BLOCK: u64 = 8;

fn null_blk() -> Outcome<NullBlk> {
    NullBlk::zoned(&[("size", "64"), ("zone_size", "1")])
}

/// Zones with a bad spot: what was to be written goes elsewhere, what had
/// been written moves, the zones retire. Nobody notices.
fn failed_appends(log: &mut Log) -> Outcome {
    let null = null_blk()?;
    // Early and in the middle of a zone, and in one that GC may write.
    for zone in [5, 20, 40] {
        null.break_sectors(zone * ZONE + 8 * zone, zone * ZONE + 8 * zone + 7)?;
    }
    log.allow("failed (-5)");
    log.allow("I/O error, dev nullb0");
    let device = Device::on(&null.node(), &[])?;
    guest::without_read_ahead(|| {
        device.bench(&[
            "--utilization",
            "60",
            "--rewrites",
            "2.5",
            "--seconds",
            "60",
            "--write-ratio",
            "1",
        ])
    })?;
    ensure!(log.has("append to zone 5 failed"), "the log does not tell of zone 5");
    let (errors, retired) = (device.counter("write_errors")?, device.counter("zones_retired")?);
    ensure!(errors >= 3, "write_errors is {errors}");
    ensure!(retired == 3, "zones_retired is {retired}");
    ensure!(device.counter("read_errors")? == 0, "read_errors");
    device.finish()
}

/// A block that cannot be read is an error of the read that wants it, and of
/// no other.
fn failed_read(log: &mut Log) -> Outcome {
    const SLOTS: usize = 1024;
    let null = null_blk()?;
    let device = Device::attach(&null.node(), &[("policy", "single")])?;
    let disk = device.disk()?;
    let mut memory = Memory::new(SLOTS * PAGE)?;
    memory.fill(0..SLOTS, 1);
    disk.write_slots(&memory, 0..SLOTS).context("write")?;

    log.allow("I/O error, dev nullb0");
    null.break_sectors(100 * BLOCK, 101 * BLOCK - 1)?;
    memory.fill(0..SLOTS, 2);
    let mut lost = Vec::new();
    for slot in 0..SLOTS {
        match disk.read_slots(&mut memory, slot..slot + 1) {
            Ok(()) => memory.verify(slot..slot + 1, 1)?,
            Err(e) if e.raw_os_error() == Some(libc::EIO) => lost.push(slot),
            Err(e) => return Err(format!("slot {slot} gives `{e}`, not an I/O error")),
        }
    }
    ensure!(lost.len() == 1, "one block is bad, and slots {lost:?} cannot be read");
    ensure!(device.counter("read_errors")? > 0, "read_errors is 0");
    // A large read that contains the slot fails too, but does not harm it.
    ensure!(disk.read_slots(&mut memory, 0..SLOTS).is_err(), "a read of all works");
    null.mend_sectors(100 * BLOCK, 101 * BLOCK - 1)?;
    disk.read_slots(&mut memory, 0..SLOTS).context("read after the repair")?;
    memory.verify(0..SLOTS, 1)?;
    drop(disk);
    device.finish()
}

/// The process that needs the page gets SIGBUS; its neighbour goes on.
fn failed_read_of_a_process(log: &mut Log) -> Outcome {
    const SIZE: usize = 8 << 20;
    let null = null_blk()?;
    let device = Device::on(&null.node(), &["--policy", "single"])?;
    let group = Group::new("unlucky", 256 << 20)?;
    let swapped = |key: u64| {
        spawn(Some(&group), move |link| {
            let mut memory = Memory::new(SIZE)?;
            memory.huge_pages(false)?;
            memory.fill(0..SIZE / PAGE, key);
            memory.page_out()?;
            link.point()?;
            memory.verify(0..SIZE / PAGE, key)
        })
    };
    let mut unlucky = swapped(1)?;
    unlucky.reach()?;
    let mut lucky = swapped(2)?;
    lucky.reach()?;

    // In the second zone that was written: pages of the first process.
    log.allow("I/O error, dev nullb0");
    log.allow("Read-error on swap-device");
    null.break_sectors(ZONE + 64 * BLOCK, ZONE + 65 * BLOCK - 1)?;
    unlucky.go_on()?;
    unlucky.dies_of(Signal::SIGBUS)?;
    lucky.go_on()?;
    lucky.join()?;
    ensure!(device.counter("read_errors")? > 0, "read_errors is 0");
    null.mend_sectors(ZONE + 64 * BLOCK, ZONE + 65 * BLOCK - 1)?;
    device.finish()
}

/// GC meets blocks that it cannot read: their slots are lost, and say so; all
/// others move.
fn failed_read_of_gc(log: &mut Log) -> Outcome {
    let null = null_blk()?;
    let device = Device::attach(&null.node(), &[("policy", "single"), ("size", "33554432")])?;
    let disk = device.disk()?;
    let slots = disk.slots();
    let mut memory = Memory::new(slots * PAGE)?;
    let mut keys = vec![1; slots];
    memory.fill(0..slots, 1);
    for start in (0..slots).step_by(256) {
        disk.write_slots(&memory, start..(start + 256).min(slots)).context("write")?;
    }
    let fail = [4 * ZONE + 8 * BLOCK, 4 * ZONE + 10 * BLOCK - 1];
    log.allow("I/O error, dev nullb0");
    log.allow("failed (-5)");
    null.break_sectors(fail[0], fail[1])?;

    // Every other slot anew, again and again: zones get half empty and are
    // cleaned. Slots of the bad blocks that are written anew are not lost.
    for key in 2..8 {
        for slot in (key as usize % 3..slots).step_by(3) {
            memory.fill(slot..slot + 1, key);
            disk.write_slots(&memory, slot..slot + 1).context("write")?;
            keys[slot] = key;
        }
        if device.counter("read_errors")? > 0 {
            break;
        }
    }
    ensure!(device.counter("read_errors")? > 0, "GC did not meet the bad blocks");
    null.mend_sectors(fail[0], fail[1])?;
    let mut lost = 0;
    for (slot, key) in keys.into_iter().enumerate() {
        match disk.read_slots(&mut memory, slot..slot + 1) {
            Ok(()) => memory.verify(slot..slot + 1, key)?,
            Err(_) => lost += 1,
        }
    }
    ensure!((1..=2).contains(&lost), "two blocks were bad, and {lost} slots are lost");
    device.check()?;
    disk.discard(0, disk.bytes())?;
    disk.read_slots(&mut memory, 0..slots.min(256)).context("read after a discard")?;
    ensure!(device.counter("slots_used")? == 0, "slots are used after a discard of all");
    drop(disk);
    guest::ok(&["znsage", "check"])?;
    device.finish()
}
