// SPDX-License-Identifier: GPL-2.0-only
//! A device that loses zones or disappears while processes swap: no page is wrong, nothing
//! hangs, and swap continues with the remaining zones.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use super::devices::{MAIN, MEDIUM, TIGHT};
use crate::device::Device;
use crate::direct::Disk;
use crate::ensure;
use crate::guest;
use crate::inject::Injection;
use crate::kmsg::Log;
use crate::load::{Load, Tally};
use crate::mapper::Mapped;
use crate::memory::Memory;
use crate::null_blk::NullBlk;
use crate::outcome::{Context, Outcome};
use crate::pattern::{self, Random, PAGE};
use crate::table::DEBUGFS;
use crate::zones;

crate::cases![
    faults: zones_turn_read_only (more),
    zones_go_offline (more),
    nothing_works_for_a_while (each),
    a_part_fails_for_a_while (full),
    somebody_else_writes (full),
    somebody_else_resets,
    slow (full),
    commands_fail,
    commands_time_out,
    controller_resets (each),
    unplugged (each),
];

const MIB: u64 = 1 << 20;
/// Each case causes this many faults.
const FAULTS: u64 = 50;
/// Sectors of 512 bytes in a zone of 1 MiB.
const ZONE: u64 = 2048;

/// Messages of the kernel and the module about these faults.
fn allow(log: &mut Log) {
    for words in ["failed (-5)", "on swap-device", "I/O error", "swap-out of"] {
        log.allow(words);
    }
}

/// Swaps out enough to keep GC busy on a device of 64 MiB.
fn start_load() -> Outcome<Load> {
    Load::start(2, 28 << 20, 16 * MIB)
}

fn more(device: &Device, file: &str, than: u64) -> Outcome {
    let so = guest::eventually(40.0, || device.counter(file).is_ok_and(|n| n >= than));
    ensure!(so, "{file} stays at {}, below {than}", device.counter(file)?);
    Ok(())
}

/// Swap continues: pages come in and go out.
fn goes_on(device: &Device, load: &mut Load) -> Outcome {
    for file in ["host_blocks", "read_blocks"] {
        let than = device.counter(file)? + 500;
        more(device, file, than).map_err(|e| {
            format!("{e}; {}\n{}\n{}", load.complaints(), device.condition(), load.whereabouts())
        })?;
    }
    Ok(())
}

fn no_page_lost(tally: Tally) -> Outcome {
    let Tally { accesses, failed, lost } = tally;
    ensure!(
        lost == 0 && failed == 0,
        "{failed} accesses failed, {accesses} did not, {lost} pages are lost"
    );
    Ok(())
}

/// Zones of a device with 128 of 1 MiB turn bad, one after the other.
fn zones_turn(log: &mut Log, condition: &str) -> Outcome<(Device, Load)> {
    const ZONES: u64 = 128;
    allow(log);
    let null = NullBlk::zoned(&[("size", "128"), ("zone_size", "1")])?;
    let device = Device::on(&null.node(), &[])?;
    let mut load = start_load()?;
    goes_on(&device, &mut load)?;
    for i in 0..FAULTS {
        // Coprime to the number of zones.
        null.set_zone(condition, i * 37 % ZONES * ZONE)?;
        sleep(Duration::from_millis(20));
    }
    goes_on(&device, &mut load)?;
    Ok((device, load))
}

/// Older kernels have no such zones.
fn cannot_turn() -> Outcome<bool> {
    Ok(!NullBlk::zoned(&[("size", "4"), ("zone_size", "1")])?.has_zone_conditions())
}

/// Their data can still be read, and is moved.
fn zones_turn_read_only(log: &mut Log) -> Outcome {
    if cannot_turn()? {
        return Ok(());
    }
    let (device, load) = zones_turn(log, "readonly")?;
    no_page_lost(load.stop()?)?;
    let (errors, retired) = (device.counter("write_errors")?, device.counter("zones_retired")?);
    print!("{errors} errors, {retired} zones retired ... ");
    ensure!(errors >= FAULTS, "write_errors is {errors}");
    ensure!(retired > 0, "no zone retired");
    device.end()
}

/// Their data is lost and reads fail; nothing else is lost.
fn zones_go_offline(log: &mut Log) -> Outcome {
    if cannot_turn()? {
        return Ok(());
    }
    let (device, load) = zones_turn(log, "offline")?;
    let tally = load.stop()?;
    let (errors, retired) = (device.counter("read_errors")?, device.counter("zones_retired")?);
    print!("{errors} read errors, {retired} zones retired, {} pages lost ... ", tally.lost);
    ensure!(errors >= FAULTS, "read_errors is {errors}");
    ensure!(retired > 0, "no zone retired");
    ensure!(tally.lost <= FAULTS * MIB / PAGE as u64, "more is lost than the zones held");
    device.end()
}

/// All reads and writes fail for half a second, several times: accesses fail then, but no page
/// is lost, and nearly all zones come back.
fn nothing_works_for_a_while(log: &mut Log) -> Outcome {
    const SECTORS: u64 = 96 * ZONE;
    const OUTAGES: u32 = 3;
    allow(log);
    let null = NullBlk::zoned(&[("size", "96"), ("zone_size", "1")])?;
    let node = null.node();
    let works = format!("0 {SECTORS} linear {node} 0\n");
    let fails = format!("0 {SECTORS} flakey {node} 0 0 3600\n");
    let mapped = Mapped::new(&works)?;
    let device = Device::on(mapped.node(), &[])?;
    let mut load = start_load()?;
    for _ in 0..OUTAGES {
        goes_on(&device, &mut load)?;
        mapped.becomes(&fails)?;
        sleep(Duration::from_millis(500));
        mapped.becomes(&works)?;
    }
    goes_on(&device, &mut load)?;
    let Tally { accesses, failed, lost } = load.stop()?;
    let (errors, retired) = (device.counter("write_errors")?, device.counter("zones_retired")?);
    print!(
        "{failed} accesses failed, {accesses} did not; {errors} writes failed, {retired} zones retired ... "
    );
    ensure!(failed > 0 && errors > 0, "{failed} accesses and {errors} writes failed");
    ensure!(lost == 0, "{lost} pages are lost");
    // Zones that fail a second time stay retired until they are needed. In an outage, one append
    // in 64 counts against its zone.
    ensure!(retired <= 48, "{retired} of 96 zones are retired");
    device.finish()?;
    mapped.remove()
}

/// Two thirds of a device-mapper device fail for one second in four.
fn a_part_fails_for_a_while(log: &mut Log) -> Outcome {
    const ZONES: u64 = 96;
    const SOUND: u64 = 32 * ZONE;
    const OUTAGES: u64 = 8;
    const EVERY: u64 = 4;
    allow(log);
    let null = NullBlk::zoned(&[("size", "96"), ("zone_size", "1")])?;
    let node = null.node();
    let mapped = Mapped::new(&format!(
        "0 {SOUND} linear {node} 0\n{SOUND} {} flakey {node} {SOUND} {} 1\n",
        ZONES * ZONE - SOUND,
        EVERY - 1
    ))?;
    let device = Device::on(mapped.node(), &[])?;
    let mut load = start_load()?;
    sleep(Duration::from_secs(EVERY * OUTAGES));
    // The final checks need a working device.
    mapped.becomes(&format!("0 {} linear {node} 0\n", ZONES * ZONE))?;
    goes_on(&device, &mut load)?;
    let Tally { accesses, failed, lost } = load.stop()?;
    let errors = device.counter("write_errors")? + device.counter("read_errors")?;
    print!("{failed} accesses failed, {accesses} did not, {errors} errors ... ");
    ensure!(errors >= FAULTS, "{errors} errors");
    ensure!(lost == 0, "{lost} pages are lost");
    device.end()?;
    mapped.remove()
}

/// Another process writes to the open zones: appends land at other places than expected, and
/// zones fill up early.
fn somebody_else_writes(log: &mut Log) -> Outcome {
    allow(log);
    let null = NullBlk::zoned(&[("size", "96"), ("zone_size", "1")])?;
    let device = Device::on(&null.node(), &[])?;
    let mut load = start_load()?;
    goes_on(&device, &mut load)?;
    let below = Disk::open(&null.node())?;
    let page = Memory::new(PAGE)?;
    let mut written = 0;
    let so = guest::eventually(60.0, || {
        for at in zones::write_pointers(&null.node()).unwrap_or_default() {
            written += u64::from(below.write_at(page.bytes(), at * 512).is_ok());
        }
        written >= FAULTS
    });
    ensure!(so, "only {written} blocks could be written");
    drop(below);
    goes_on(&device, &mut load)?;
    no_page_lost(load.stop()?)?;
    print!("{written} blocks, {} writes failed ... ", device.counter("write_errors")?);
    device.finish()
}

/// What reads of slots return.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    own: usize,
    zeros: usize,
    errors: usize,
    another: usize,
    noise: usize,
}

fn look_at(disk: &Disk, slots: std::ops::Range<usize>, key: u64) -> Outcome<Seen> {
    let (mut seen, mut page) = (Seen::default(), Memory::new(PAGE)?);
    for slot in slots {
        if disk.read_slot(&mut page, slot).is_err() {
            seen.errors += 1;
            continue;
        }
        let holds = |key, slot| pattern::holds(page.page(0), key, slot);
        if holds(key, slot) {
            seen.own += 1;
        } else if holds(pattern::ZERO, 0) {
            seen.zeros += 1;
        } else if (0..disk.slots()).any(|s| holds(ONE, s) || holds(OTHER, s)) {
            seen.another += 1;
        } else {
            seen.noise += 1;
        }
    }
    Ok(seen)
}

/// The keys of two users' pages.
const ONE: u64 = 1;
const OTHER: u64 = 2;
/// One has the slots of a zone, and those up to OPEN in the next one; the other the rest.
const FULL: usize = 256;
const OPEN: usize = 384;
const END: usize = 512;

/// Another program resets a full zone and the open one. Reads of their pages fail. Until the
/// module notices the reset, they return no other user's page.
fn somebody_else_resets(log: &mut Log) -> Outcome {
    allow(log);
    for words in ["was reset by another program", "bad record (header or checksum)"] {
        log.allow(words);
    }
    for setting in ["policy=single", "compress=lz4", "encrypt=aes-xts"] {
        resets(setting).map_err(|e| format!("{setting}: {e}"))?;
    }
    gc_sees_a_reset()
}

fn reset_outside(node: &str, condition: &str) -> Outcome {
    let report = zones::report(node)?;
    let line = report.lines().find(|l| l.contains(condition));
    let start = line.and_then(|l| l.split_once("start: ")?.1.split(',').next());
    let start = start.ok_or(format!("no zone is {condition}: {report}"))?;
    guest::ok(&["blkzone", "reset", "--force", "--offset", start, "--count", "1", node]).map(drop)
}

fn resets(setting: &str) -> Outcome {
    let null = NullBlk::zoned(&[("size", "32"), ("zone_size", "1")])?;
    let backing = null.node();
    let settings = [("stripe", "1"), setting.split_once('=').ok_or("no =")?];
    let device = Device::attach(&backing, &settings)?;
    let disk = device.disk()?;
    let mut memory = Memory::new(END * PAGE)?;
    memory.fill(0..OPEN, ONE);
    memory.fill(OPEN..END, OTHER);
    disk.write_slots(&memory, 0..OPEN).context("write")?;
    reset_outside(&backing, "(fu)")?;
    reset_outside(&backing, "(oi)")?;
    disk.write_slots(&memory, OPEN..END).context("write")?;

    let others = look_at(&disk, OPEN..END, OTHER)?;
    ensure!(others.own == END - OPEN, "of the other user's pages: {others:?}");
    // A packed page is longer than a page, so the zones hold a few pages less.
    let open = look_at(&disk, FULL..OPEN, ONE)?;
    ensure!(open.errors == OPEN - FULL, "of the open zone: {open:?}");
    let full = look_at(&disk, 0..FULL, ONE)?;
    ensure!(full.own + full.another == 0, "of the full zone: {full:?}");
    ensure!(setting != "compress=lz4" || full.errors == FULL, "compressed: {full:?}");
    let lost = device.counter("zones_lost")?;
    ensure!(lost == 1, "{lost} zones are found before a check");

    let said = device.check().err().unwrap_or_default();
    ensure!(said.contains("was reset by another program"), "znsage check says: {said}");
    let full = look_at(&disk, 0..FULL, ONE)?;
    ensure!(full.errors == FULL, "after a check, of the full zone: {full:?}");
    let (zones, pages) = (device.counter("zones_lost")?, device.counter("pages_lost")?);
    ensure!((zones, pages) == (2, OPEN as u64), "{zones} zones and {pages} pages are lost");
    let doctor = guest::run(&["znsage", "doctor"])?;
    ensure!(
        doctor.stdout.contains("zones that another program reset: 2, pages lost: "),
        "doctor: {}",
        doctor.stdout
    );
    device.check()?;
    disk.write_slots(&memory, 0..OPEN).context("write again")?;
    let own = look_at(&disk, 0..OPEN, ONE)?;
    ensure!(own.own == OPEN, "written again: {own:?}");
    drop(disk);
    device.end()
}

/// GC moves nothing that it reads in such a zone.
fn gc_sees_a_reset() -> Outcome {
    const PIECE: usize = 16;
    let null = NullBlk::zoned(&[("size", "32"), ("zone_size", "1")])?;
    let device = Device::attach(&null.node(), &[("stripe", "1"), ("policy", "single")])?;
    let disk = device.disk()?;
    let slots = disk.slots() / PIECE * PIECE;
    let mut memory = Memory::new(slots * PAGE)?;
    memory.fill(0..FULL, ONE);
    memory.fill(FULL..slots, OTHER);
    disk.write_slots(&memory, 0..FULL).context("write")?;
    reset_outside(&null.node(), "(fu)")?;
    disk.discard_slots(0..FULL / 2)?;
    disk.write_slots(&memory, FULL..slots).context("write")?;
    // In any order, so that zones do not die as a whole.
    let mut random = Random::new(7);
    let found = guest::eventually(60.0, || {
        for _ in 0..100 {
            let at = FULL + random.below((slots - FULL) / PIECE) * PIECE;
            if disk.write_slots(&memory, at..at + PIECE).is_err() {
                return false;
            }
        }
        device.counter("zones_lost").is_ok_and(|n| n > 0)
    });
    ensure!(found, "GC does not see it; {}", device.condition());
    let seen = look_at(&disk, FULL / 2..FULL, ONE)?;
    ensure!(seen.errors == FULL / 2, "after GC: {seen:?}");
    let others = look_at(&disk, FULL..slots, OTHER)?;
    ensure!(others.own == slots - FULL, "of the other user's pages: {others:?}");
    drop(disk);
    device.check()?;
    device.end()
}

/// Each command takes 5 ms. No access fails, and GC keeps up.
fn slow(_: &mut Log) -> Outcome {
    let null = NullBlk::zoned(&[
        ("size", "96"),
        ("zone_size", "1"),
        ("irqmode", "2"),
        ("completion_nsec", "5000000"),
    ])?;
    let device = Device::on(&null.node(), &[])?;
    let mut load = start_load()?;
    goes_on(&device, &mut load)?;
    more(&device, "gc_blocks", FAULTS)?;
    goes_on(&device, &mut load)?;
    no_page_lost(load.stop()?)?;
    device.finish_sound()
}

/// The device executes appends, reads, resets and finishes, but reports errors.
fn commands_fail(log: &mut Log) -> Outcome {
    /// "Internal Error" of the NVMe specification.
    const STATUS: &str = "6";
    let backing = guest::device(MAIN)?;
    let faults = format!("{DEBUGFS}/{}/fault_inject", name_of(&backing));
    let Some(faults) = Injection::at(faults)? else { return Ok(()) };
    faults.set("status", STATUS)?;
    allow(log);
    let device = Device::on(&backing, &[])?;
    let mut load = Load::start(2, 48 << 20, 16 * MIB)?;
    goes_on(&device, &mut load)?;
    faults.percent(5)?;
    // A command may serve several reads: this is the least number that concerned zones.
    let counts = || {
        let (reads, writes) = (device.counter("read_errors")?, device.counter("write_errors")?);
        Ok::<_, String>((reads, writes, faults.count()?.saturating_sub(reads + writes)))
    };
    let all = guest::eventually(90.0, || {
        counts().is_ok_and(|(reads, writes, zones)| reads.min(writes).min(zones) >= FAULTS)
    });
    let (reads, writes, zones) = counts()?;
    print!("{reads} reads, {writes} appends, {zones} resets and finishes failed ... ");
    ensure!(all, "not all of them {FAULTS} times; {}", load.complaints());
    drop(faults);
    goes_on(&device, &mut load)?;
    let tally = load.stop()?;
    ensure!(tally.lost == 0, "{} pages are lost", tally.lost);
    device.finish()
}

/// The device executes commands, but never completes them.
fn commands_time_out(log: &mut Log) -> Outcome {
    let null = NullBlk::zoned(&[("size", "96"), ("zone_size", "1")])?;
    let Some(faults) = null.injection("timeout_inject")? else { return Ok(()) };
    let patience = format!("/sys/block/{}/queue/io_timeout", name_of(&null.node()));
    guest::write(&patience, "200").context(&patience)?;
    allow(log);
    log.allow("failed (-110)");
    let device = Device::on(&null.node(), &[])?;
    let mut load = start_load()?;
    goes_on(&device, &mut load)?;
    faults.percent(2)?;
    let all = guest::eventually(90.0, || faults.count().is_ok_and(|n| n >= 3 * FAULTS));
    let n = faults.count()?;
    drop(faults);
    ensure!(all, "only {n} commands timed out; {}", load.complaints());
    goes_on(&device, &mut load)?;
    let Tally { accesses, failed, lost } = load.stop()?;
    print!("{n} commands timed out, {failed} accesses failed, {accesses} did not ... ");
    ensure!(lost == 0, "{lost} pages are lost");
    device.finish()
}

/// The driver resets the controller TIMES times, and retries the commands in flight.
fn controller_resets(log: &mut Log) -> Outcome {
    // With 6.1, QEMU 7.2 then keeps losing commands.
    if guest::kernel() < (6, 12) {
        return Ok(());
    }
    let backing = guest::device(TIGHT)?;
    let reset = format!("{}/reset_controller", controller_of(&backing)?);
    for words in ["nvme", "resetting controller", "failed (-5)", "I/O error"] {
        log.allow(words);
    }
    let device = Device::on(&backing, &[])?;
    let mut load = Load::start(2, 14 << 20, 12 * MIB)?;
    for _ in 0..guest::asked_for("TIMES", 3)? {
        goes_on(&device, &mut load)?;
        guest::write(&reset, "1").context(&reset)?;
        log.keep_up();
    }
    goes_on(&device, &mut load)?;
    no_page_lost(load.stop()?)?;
    print!("{} writes failed ... ", device.counter("write_errors")?);
    device.finish()
}

fn name_of(node: &str) -> &str {
    node.rsplit('/').next().unwrap_or(node)
}

/// The directory of a drive's NVMe controller. With native multipath, as on 7.3, a namespace is one of a
/// subsystem, which has links to its controllers.
fn controller_of(node: &str) -> Outcome<String> {
    let device = format!("/sys/block/{}/device", name_of(node));
    let is_controller = |path: &str| guest::exists(&format!("{path}/reset_controller"));
    if is_controller(&device) {
        return Ok(device);
    }
    let entries = fs::read_dir(&device).context(&device)?.flatten();
    let below = entries.map(|entry| format!("{device}/{}", entry.file_name().to_string_lossy()));
    below.filter(|path| is_controller(path)).min().ok_or(format!("{node} has no controller"))
}

/// The device is unplugged under load, TIMES times. Its pages are lost, all processes end, and
/// once plugged in again the device can be used.
fn unplugged(log: &mut Log) -> Outcome {
    let backing = guest::device(MEDIUM)?;
    let remove = format!("{}/device/remove", controller_of(&backing)?);
    allow(log);
    let words = ["nvme", "Buffer I/O error", "pci ", "failed (-19)", "failed (-6)", "disk is gone"];
    words.iter().for_each(|words| log.allow(words));
    // `on` changes it, and `off` finds no file to restore it.
    let scheduler = format!("/sys/block/{}/queue/scheduler", backing.trim_start_matches("/dev/"));
    let times = guest::asked_for("TIMES", 1)?;
    let mut lost = 0;
    for _ in 0..times {
        guest::write(&scheduler, "mq-deadline").context(&scheduler)?;
        let device = Device::on(&backing, &["--force"])?;
        let mut load = Load::start(1, 12 << 20, 4 * MIB)?;
        more(&device, "read_blocks", 500)?;
        guest::write(&remove, "1").context(&remove)?;
        let so = guest::eventually(40.0, || device.counter("read_errors").is_ok_and(|n| n > 50));
        ensure!(so, "no read has failed; {}", load.complaints());
        lost += load.stop()?.lost;
        device.check()?;
        let doctor = guest::run(&["znsage", "doctor"])?.stdout;
        ensure!(doctor.contains("is gone"), "doctor does not say that it is gone: {doctor}");
        device.swapoff()?;
        let said = guest::ok(&["znsage", "off", &device.node()])?;
        ensure!(said.contains("was removed while in use"), "{said}");
        let left = guest::list("/run/znsage");
        ensure!(left.is_empty(), "left in /run/znsage: {left:?}");
        guest::write("/sys/bus/pci/rescan", "1").context("rescan")?;
        let so = guest::eventually(20.0, || guest::exists(&backing));
        ensure!(so, "{backing} has not come back");
        log.keep_up();
    }
    print!("{times} times, {lost} pages lost ... ");
    ensure!(lost >= times, "only {lost} pages are lost");
    Device::on(&backing, &["--force"])?.finish_sound()
}
