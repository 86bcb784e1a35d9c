// SPDX-License-Identifier: GPL-2.0-only
//! A device with errors: pages that it cannot write go to other zones, and a page that
//! it cannot read is an error only for the task that reads it.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::devices::TIGHT;
use crate::child::{spawn, Group};
use crate::device::Device;
use crate::direct::Disk;
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::memory::Memory;
use crate::null_blk::NullBlk;
use crate::outcome::{Context, Outcome};
use crate::pattern::{PAGE, WORDS};

crate::cases![
    errors: failed_appends (more),
    others_take_all_places (each),
    failed_read (each),
    failed_read_of_a_process (more),
    failed_read_ahead (more),
    failed_read_of_gc (each),
    lost_by_gc (more),
];

/// Sectors of 512 bytes in a zone of 1 MiB, and in a page.
const ZONE: u64 = 2048;
const BLOCK: u64 = 8;

fn null_blk() -> Outcome<NullBlk> {
    NullBlk::zoned(&[("size", "64"), ("zone_size", "1")])
}

/// Zones with a bad sector: the pages go to other zones, GC moves those already
/// written, the zones retire. No process sees an error.
fn failed_appends(log: &mut Log) -> Outcome {
    let null = null_blk()?;
    // At the start and in the middle of a zone, and in one that GC may write.
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
    ensure!(log.has("append to zone 5 failed"), "the log does not mention zone 5");
    let (errors, retired) = (device.counter("write_errors")?, device.counter("zones_retired")?);
    ensure!(errors >= 3, "write_errors is {errors}");
    ensure!(retired == 3, "zones_retired is {retired}");
    ensure!(device.counter("read_errors")? == 0, "read_errors");
    device.finish()
}

/// While other programs have as many zones open as the device takes, an append waits: its zone
/// is not to blame.
fn others_take_all_places(log: &mut Log) -> Outcome {
    const SLOTS: usize = 256;
    const TAKEN: Duration = Duration::from_millis(500);
    log.allow("I/O error");
    let backing = guest::device(TIGHT)?;
    let device = Device::attach(&backing, &[("size", "25165824"), ("policy", "single")])?;
    let zones = |command: &str| -> Outcome {
        for zone in 60..64 {
            let at = (zone * ZONE).to_string();
            guest::ok(&["blkzone", command, "--force", "--offset", &at, "--count", "1", &backing])?;
        }
        Ok(())
    };
    zones("open")?;
    let disk = device.disk()?;
    let mut memory = Memory::new(SLOTS * PAGE)?;
    memory.fill(0..SLOTS, 1);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let end = scope.spawn(|| {
            std::thread::sleep(TAKEN);
            zones("reset")
        });
        disk.write_slots(&memory, 0..SLOTS).context("write")?;
        end.join().map_err(|_| "the other program panicked".to_string())?
    })?;
    ensure!(begun.elapsed() >= TAKEN, "nothing has waited");
    disk.read_slots(&mut memory, 0..SLOTS).context("read")?;
    memory.verify(0..SLOTS, 1)?;
    drop(disk);
    device.finish_sound()
}

/// A block that cannot be read fails the read that needs it, and no other.
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

/// Readahead reads many pages in one request of the device. A bad block fails the whole
/// request, but only its own page is lost. (A kernel that puts many pages into one bio,
/// as 7.3 does, sees all of them fail or none, even those that were read from elsewhere
/// on the device.)
fn failed_read_ahead(log: &mut Log) -> Outcome {
    const PAGES: usize = 4096;
    const BAD: u64 = 8;
    let null = null_blk()?;
    let device = Device::on(&null.node(), &["--policy", "single"])?;
    let group = Group::new("ahead", 256 << 20)?;
    let mut child = spawn(Some(&group), |link| {
        let mut memory = Memory::new(PAGES * PAGE)?;
        memory.huge_pages(false)?;
        memory.fill(0..PAGES, 1);
        memory.page_out()?;
        link.point()?;
        let mut lost = 0;
        for page in 0..PAGES {
            match memory.peek(page, &mut [0; WORDS]) {
                Ok(()) => memory.verify(page..page + 1, 1)?,
                Err(_) => lost += 1,
            }
        }
        link.report(&[lost])
    })?;
    child.reach()?;
    // Too far from each other for one request. Some may not be read, because their
    // pages have stayed in memory.
    let bad = |i: u64| (2 + i) * ZONE + 64 * BLOCK;
    for i in 0..BAD {
        null.break_sectors(bad(i), bad(i) + BLOCK - 1)?;
    }
    log.allow("I/O error, dev nullb0");
    log.allow("Read-error on swap-device");
    child.go_on()?;
    let [lost] = child.numbers()?;
    child.join()?;

    let (errors, pages) = (device.counter("read_errors")?, device.counter("read_blocks")?);
    let several = device.timed("swap_in")? < pages;
    print!("{BAD} blocks, {lost} pages ... ");
    ensure!(lost > 0 && errors > 0, "{lost} pages are lost, and read_errors is {errors}");
    ensure!(several || errors >= lost, "{lost} pages are lost, and read_errors is {errors}");
    ensure!(several || lost <= BAD, "{BAD} blocks are bad, and {lost} pages are lost");
    for i in 0..BAD {
        null.mend_sectors(bad(i), bad(i) + BLOCK - 1)?;
    }
    device.finish()
}

/// A disk of 32 MiB on zones of 1 MiB, written once. Two blocks of one zone are bad; the
/// two slots in them are not written again.
struct Worn {
    null: NullBlk,
    device: Device,
    disk: Disk,
    memory: Memory,
    keys: Vec<u64>,
    bad: Vec<usize>,
}

impl Worn {
    const ZONE: u64 = 4;
    const FIRST: u64 = Self::ZONE * ZONE + 8 * BLOCK;
    const LAST: u64 = Self::FIRST + 2 * BLOCK - 1;

    fn new(log: &mut Log) -> Outcome<Worn> {
        let null = null_blk()?;
        let device = Device::attach(&null.node(), &[("policy", "single"), ("size", "33554432")])?;
        let disk = device.disk()?;
        let slots = disk.slots();
        let mut memory = Memory::new(slots * PAGE)?;
        memory.fill(0..slots, 1);
        for start in (0..slots).step_by(256) {
            disk.write_slots(&memory, start..(start + 256).min(slots)).context("write")?;
        }
        log.allow("I/O error, dev nullb0");
        log.allow("failed (-5)");
        null.break_sectors(Self::FIRST, Self::LAST)?;
        let fails = |slot: &usize| disk.read_slots(&mut memory, *slot..slot + 1).is_err();
        let bad: Vec<usize> = (0..slots).filter(fails).collect();
        ensure!(bad.len() == 2, "two blocks are bad, and slots {bad:?} cannot be read");
        Ok(Worn { null, device, disk, memory, keys: vec![1; slots], bad })
    }

    /// Rewrites a third of the slots, except those near the bad ones. Zones get more stale
    /// blocks, and GC cleans them.
    fn write_anew(&mut self, key: u64) -> Outcome {
        const TOGETHER: usize = 8;
        let first = key as usize % 3 * TOGETHER;
        for start in (first..self.keys.len()).step_by(3 * TOGETHER) {
            let slots = start..(start + TOGETHER).min(self.keys.len());
            if self.bad.iter().any(|slot| slots.contains(slot)) {
                continue;
            }
            self.memory.fill(slots.clone(), key);
            self.disk.write_slots(&self.memory, slots.clone()).context("write")?;
            self.keys[slots].fill(key);
        }
        Ok(())
    }

    /// Writes until a condition holds.
    fn write_until(&mut self, what: &str, so: impl Fn(&Worn) -> Outcome<bool>) -> Outcome {
        const ROUNDS: u64 = 100;
        let next = self.keys.iter().max().map_or(2, |key| key + 1);
        for key in next..next + ROUNDS {
            self.write_anew(key)?;
            if so(self)? {
                return Ok(());
            }
        }
        Err(format!("it never happened that {what}"))
    }

    /// Does GC leave the bad zone alone for now?
    fn is_deferred(&self) -> Outcome<bool> {
        let rows = self.device.zones()?;
        let row = rows.get(Self::ZONE as usize).ok_or("no such zone")?;
        Ok(row.get("deferred").is_some_and(|deferred| deferred == "1"))
    }

    /// Verifies all slots; returns those that cannot be read.
    fn verify(&mut self) -> Outcome<Vec<usize>> {
        let mut lost = Vec::new();
        for slot in 0..self.keys.len() {
            match self.disk.read_slots(&mut self.memory, slot..slot + 1) {
                Ok(()) => self.memory.verify(slot..slot + 1, self.keys[slot])?,
                Err(_) => lost.push(slot),
            }
        }
        Ok(lost)
    }

    fn finish(mut self) -> Outcome {
        self.device.check()?;
        self.disk.discard(0, self.disk.bytes())?;
        let some = 0..self.keys.len().min(256);
        self.disk.read_slots(&mut self.memory, some).context("read after a discard")?;
        let used = self.device.counter("slots_used")?;
        ensure!(used == 0, "{used} slots are used after a discard of all");
        drop(self.disk);
        guest::ok(&["znsage", "check"])?;
        self.device.finish()
    }
}

/// GC finds blocks that it cannot read. It moves all others, and leaves these in place
/// until it can read them.
fn failed_read_of_gc(log: &mut Log) -> Outcome {
    let mut worn = Worn::new(log)?;
    let before = worn.device.counter("read_errors")?;
    worn.write_until("GC meets the bad blocks", |worn| {
        Ok(worn.device.counter("read_errors")? > before)
    })?;
    worn.null.mend_sectors(Worn::FIRST, Worn::LAST)?;
    let lost = worn.verify()?;
    ensure!(lost.is_empty(), "slots {lost:?} are lost, though they can be read");
    worn.write_until("the zone is cleaned", |worn| Ok(!worn.is_deferred()?))?;
    let lost = worn.verify()?;
    ensure!(lost.is_empty(), "slots {lost:?} are lost, though GC could read them");
    worn.finish()
}

/// Blocks that GC fails to read each time are lost in the end, and the log says so.
fn lost_by_gc(log: &mut Log) -> Outcome {
    let mut worn = Worn::new(log)?;
    let before = worn.device.counter("read_errors")?;
    worn.write_until("GC gives up the bad blocks", |worn| {
        Ok(worn.device.counter("read_errors")? >= before + 2 * 7 && !worn.is_deferred()?)
    })?;
    worn.null.mend_sectors(Worn::FIRST, Worn::LAST)?;
    let lost = worn.verify()?;
    ensure!(lost == worn.bad, "slots {:?} were bad, and {lost:?} are lost", worn.bad);
    ensure!(log.has("a page is lost"), "the log does not tell");
    worn.finish()
}
