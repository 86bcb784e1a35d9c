// SPDX-License-Identifier: GPL-2.0-only
//! `--compress`: pages of any length in the log, and a swap area that promises more than fits if
//! no page shrinks.

use std::ops::Range;

use super::devices::{MAIN, TIGHT};
use crate::device::{bench_within, Device};
use crate::direct::Disk;
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::memory::Memory;
use crate::null_blk::NullBlk;
use crate::outcome::{Context, Outcome};
use crate::pattern::{Random, PAGE};

crate::cases![compress:
    shrinks, gc (full), zstd (full), refuses_in_time (more), whole_pages (more), changes (more), damaged (more)];

/// The benchmark's memory limit. Pages in flight hold memory for longer, because compression
/// takes CPU time.
const LIMIT: u64 = 40;

const SECTOR: usize = 512;

/// The benchmark's memory if this many bytes are to be swapped out.
fn swapped_out(bytes: u64) -> String {
    (bytes + (LIMIT << 20)).to_string()
}

fn run(arguments: &[&str]) -> Outcome {
    bench_within(&format!("{LIMIT}M"), arguments).map(drop)
}

/// Blocks written for each page swapped out.
fn written(device: &Device) -> Outcome<f64> {
    Ok(device.counter("host_blocks")? as f64 / device.counter("host_pages")? as f64)
}

/// Pages that compression shrinks by 60 % use less than half of the flash, and more of them fit
/// than the device has blocks.
fn shrink_by(how: &str) -> Outcome {
    let backing = guest::device(TIGHT)?;
    let plain = Device::attach(&backing, &[("force", "1")])?;
    let size = plain.counter("size_bytes")?;
    plain.end()?;
    let promised = (size * 3 / 2).to_string();
    let device = Device::on(&backing, &["--compress", how, "--size", &promised])?;
    let memory = swapped_out(size * 9 / 8);
    run(&["--compressible", "0.6", "--size", &memory, "--fill-only"])?;
    let written = written(&device)?;
    print!("{written:.2} blocks a page ... ");
    ensure!(written < 0.5, "{how} writes {written} blocks a page");
    ensure!(device.counter("refused_pages")? == 0, "pages that fit were refused");
    // An entry, the past, and a record for each zone.
    let (map, zones) = (device.counter("map_bytes")?, device.counter("zones_total")?);
    let slots = size * 3 / 2 / PAGE as u64;
    ensure!(map <= 9 * slots + 160 * zones, "the map takes {map} bytes for {slots} slots");
    device.finish_sound()
}

fn shrinks(_: &mut Log) -> Outcome {
    shrink_by("lz4")
}

fn zstd(_: &mut Log) -> Outcome {
    shrink_by("zstd")
}

/// The algorithm changes. Pages that another algorithm wrote can still be read, also after GC has
/// moved them.
fn changes(_: &mut Log) -> Outcome {
    let backing = guest::device(MAIN)?;
    let plain = Device::attach(&backing, &[("force", "1")])?;
    let node = plain.node();
    let refused = guest::run(&["znsage", "set", &node, "compress=zstd"])?;
    ensure!(
        refused.status != 0 && refused.stderr.contains("without compression"),
        "{}",
        refused.said()
    );
    plain.end()?;

    let device = Device::attach(&backing, &[("compress", "lz4"), ("force", "1")])?;
    let disk = device.disk()?;
    let slots = disk.slots();
    let part = slots / 4;
    let mut memory = Memory::new(slots * PAGE)?;
    memory.fill(0..slots, 1);
    // Three quarters of each page compress to nothing.
    memory.bytes_mut().chunks_mut(PAGE).for_each(|page| page[PAGE / 4..].fill(7));
    let want = memory.bytes().to_vec();
    let mut written = Vec::new();
    for (nth, how) in ["lz4", "zstd", "off", "lz4"].into_iter().enumerate() {
        guest::ok(&["znsage", "set", &device.node(), &format!("compress={how}")])?;
        let before = device.counter("host_blocks")?;
        disk.write_slots(&memory, nth * part..(nth + 1) * part).context("write")?;
        written.push((device.counter("host_blocks")? - before) as f64 / part as f64);
    }
    print!("{written:.2?} blocks a page ... ");
    ensure!(written[2] > 1.0 && written[3] < 0.5, "{written:?} blocks a page");
    ensure!(written[0] < 0.5 && written[1] < 0.5, "{written:?} blocks a page");
    // Most slots again and again, as they are, so that GC moves the others, which share their zones:
    // those that were written first still take a third of the device, the new ones 0.7.
    guest::ok(&["znsage", "set", &device.node(), "compress=off"])?;
    for run in (0..4).flat_map(|_| (0..4 * part - 14).step_by(16)) {
        disk.write_slots(&memory, run..run + 14).context("write again")?;
    }
    ensure!(device.counter("gc_blocks")? > 0, "GC moved nothing");
    memory.bytes_mut().fill(0);
    disk.read_slots(&mut memory, 0..4 * part).context("read")?;
    let read = &memory.bytes()[..4 * part * PAGE];
    let wrong = read.chunks(PAGE).zip(want.chunks(PAGE)).position(|(is, was)| is != was);
    ensure!(wrong.is_none(), "slot {wrong:?} is wrong");
    drop(disk);
    device.check()?;
    device.end()
}

/// Pages that do not shrink, on a device that is nearly full: GC moves them.
fn gc(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(MAIN)?, &["--compress", "lz4"])?;
    let memory = swapped_out(device.counter("size_bytes")? * 80 / 100);
    run(&["--size", &memory, "--seconds", "600", "--rewrites", "0.5"])?;
    let (zones, moved) = (device.counter("gc_zones")?, device.counter("gc_blocks")?);
    ensure!(zones > 10 && moved > 1000, "GC emptied {zones} zones and moved {moved} blocks");
    let written = written(&device)?;
    ensure!(written < 1.2, "pages that do not shrink take {written} blocks");
    device.finish_sound()
}

/// The area promises more than fits if no page shrinks, and none does. Swap-out is refused, and
/// what was written stays.
fn refuses_in_time(log: &mut Log) -> Outcome {
    // Slots of a write.
    const RUN: usize = 64;
    log.allow("refused: device full");
    let backing = guest::device(MAIN)?;
    let plain = Device::attach(&backing, &[("compress", "lz4"), ("force", "1")])?;
    let fit = plain.disk()?.slots();
    plain.end()?;
    let size = (fit * PAGE * 5 / 4).to_string();
    let settings = [("compress", "lz4"), ("size", &size), ("force", "1")];
    let device = Device::attach(&backing, &settings)?;
    let disk = device.disk()?;
    let slots = disk.slots() / RUN * RUN;
    let mut memory = Memory::new(slots * PAGE)?;
    memory.fill(0..slots, 1);
    let mut kept = 0;
    while kept < slots && disk.write_slots(&memory, kept..kept + RUN).is_ok() {
        kept += RUN;
    }
    print!("{kept} of {slots} slots, {fit} fit ... ");
    ensure!(kept + 2 * RUN >= fit, "swap-out was refused too early");
    ensure!(kept < slots, "nothing was refused");
    ensure!(device.counter("refused_pages")? > 0, "no page was refused");
    // There is room again where slots were freed.
    disk.discard_slots(0..2 * RUN)?;
    memory.fill(RUN..2 * RUN, 2);
    disk.write_slots(&memory, RUN..2 * RUN).context("write into what was freed")?;
    memory.bytes_mut().fill(0);
    disk.read_slots(&mut memory, RUN..kept).context("read")?;
    memory.verify(RUN..2 * RUN, 2)?;
    memory.verify(2 * RUN..kept, 1)?;
    drop(disk);
    device.check()?;
    device.end()
}

/// Slots that are being written, of a disk that is not used as swap. Appends are padded.
fn whole_pages(_: &mut Log) -> Outcome {
    let backing = guest::device(MAIN)?;
    let settings = [("compress", "zstd"), ("write_unit", "16384"), ("force", "1")];
    let device = Device::attach(&backing, &settings)?;
    device.rewrite(3000, 4)?;
    device.end()
}

/// Pages of which an eighth compresses to nothing.
fn fill(memory: &mut Memory, slots: Range<usize>, key: u64) {
    memory.fill(slots.clone(), key);
    let bytes = &mut memory.bytes_mut()[slots.start * PAGE..slots.end * PAGE];
    bytes.chunks_mut(PAGE).for_each(|page| page[PAGE - PAGE / 8..].fill(7));
}

/// Reads each slot by itself. Returns how many fail; what is read must be right.
fn unreadable(disk: &Disk, want: &Memory) -> Outcome<usize> {
    let mut page = Memory::new(PAGE)?;
    let mut failed = 0;
    for slot in 0..want.pages() {
        if disk.read_slot(&mut page, slot).is_err() {
            failed += 1;
            continue;
        }
        ensure!(page.page(0) == want.page(slot), "slot {slot} is wrong");
    }
    Ok(failed)
}

/// Foreign data overwrites blocks of the module, as if a drive mixed up blocks. Reads of these
/// pages fail, no read returns wrong data, and GC goes on.
fn damaged(_: &mut Log) -> Outcome {
    let null = NullBlk::conventional(&[("size", "64"), ("blocksize", "512")])?;
    let settings = [("compress", "lz4"), ("zone_size", "1048576"), ("force", "1")];
    let device = Device::attach(&null.node(), &settings)?;
    let (disk, below) = (device.disk()?, Disk::open(&null.node())?);
    let slots = disk.slots() / 16 * 16;
    let mut memory = Memory::new(slots * PAGE)?;
    let write = |memory: &mut Memory, slots: Range<usize>, key| {
        fill(memory, slots.clone(), key);
        disk.write_slots(memory, slots).context("write")
    };
    for run in (0..slots).step_by(16) {
        write(&mut memory, run..run + 16, 1)?;
    }
    let (mut random, mut noise) = (Random::new(1), Memory::new(PAGE)?);
    let sectors = below.bytes() as usize / SECTOR;
    for key in 0..16 {
        noise.fill(0..1, 1000 + key);
        let sector = random.below(sectors - PAGE / SECTOR);
        let bytes = SECTOR * (1 + random.below(PAGE / SECTOR));
        below.write_at(&noise.bytes()[..bytes], (sector * SECTOR) as u64).context("overwrite")?;
    }
    let hit = unreadable(&disk, &memory)?;
    // Three quarters of the slots again and again, so that GC moves the others.
    for key in 2..5 {
        for run in (0..slots).step_by(16) {
            write(&mut memory, run..run + 12, key)?;
        }
    }
    let (left, moved) = (unreadable(&disk, &memory)?, device.counter("gc_blocks")?);
    print!("{hit} slots hit, {left} left; {moved} blocks moved ... ");
    ensure!(hit > 10 && left > 0 && left < hit, "slots that cannot be read");
    ensure!(moved > 0, "GC moved nothing");
    write(&mut memory, 0..slots, 5)?;
    let left = unreadable(&disk, &memory)?;
    ensure!(left == 0, "{left} slots cannot be read after they were written again");
    drop((disk, below));
    device.check()?;
    device.end()
}
