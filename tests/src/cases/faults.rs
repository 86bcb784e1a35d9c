// SPDX-License-Identifier: GPL-2.0-only
//! A device that loses zones, or goes away, while processes swap: no page is wrong,
//! nobody hangs, and swap goes on with what is left.

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
use crate::pattern::PAGE;
use crate::table::DEBUGFS;
use crate::zones;

crate::cases![
    faults: zones_turn_read_only,
    zones_go_offline,
    nothing_works_for_a_while,
    a_part_fails_for_a_while,
    somebody_else_writes,
    slow,
    commands_fail,
    commands_time_out,
    controller_resets,
    unplugged,
];

const MIB: u64 = 1 << 20;
/// Faults of a kind that each case makes happen.
const FAULTS: u64 = 50;
/// Sectors of 512 bytes in a zone of 1 MiB.
const ZONE: u64 = 2048;

/// What the kernel and the module may say of them.
fn allow(log: &mut Log) {
    for words in ["failed (-5)", "on swap-device", "I/O error", "swap-out of"] {
        log.allow(words);
    }
}

/// As much swapped out as makes GC work on a device of 64 MiB.
fn start_load() -> Outcome<Load> {
    Load::start(2, 28 << 20, 16 * MIB)
}

fn more(device: &Device, file: &str, than: u64) -> Outcome {
    let so = guest::eventually(40.0, || device.counter(file).is_ok_and(|n| n >= than));
    ensure!(so, "{file} is {}, and never {than}", device.counter(file)?);
    Ok(())
}

/// Swap goes on: pages come in and go out.
fn goes_on(device: &Device, load: &mut Load) -> Outcome {
    for file in ["host_blocks", "read_blocks"] {
        let than = device.counter(file)? + 500;
        more(device, file, than).map_err(|e| format!("{e}; {}", load.complaints()))?;
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
        // 37 and the number of zones have no divisor in common.
        null.set_zone(condition, i * 37 % ZONES * ZONE)?;
        sleep(Duration::from_millis(20));
    }
    goes_on(&device, &mut load)?;
    Ok((device, load))
}

/// Older kernels have no zones that turn.
fn cannot_turn() -> Outcome<bool> {
    Ok(!NullBlk::zoned(&[("size", "4"), ("zone_size", "1")])?.has_zone_conditions())
}

/// What is in them can still be read, and moves.
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

/// What was in them is lost, and says so; nothing else is.
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

/// Every read and write fails, again and again for a while: who needs a page just
/// then does not get it, but none is lost, and all zones come back.
fn nothing_works_for_a_while(log: &mut Log) -> Outcome {
    const ZONES: u64 = 96;
    // For older kernels one range of all is too much; with one after the other,
    // some work while others do not.
    let at_once = guest::kernel() >= (6, 12);
    let ranges: Vec<(u64, u64)> = match at_once {
        true => vec![(0, ZONES * ZONE - 1)],
        false => (0..ZONES).map(|zone| (zone * ZONE, (zone + 1) * ZONE - 1)).collect(),
    };
    const OUTAGES: u32 = 6;
    allow(log);
    let null = NullBlk::zoned(&[("size", "96"), ("zone_size", "1")])?;
    let device = Device::on(&null.node(), &[])?;
    let mut load = start_load()?;
    for _ in 0..OUTAGES {
        goes_on(&device, &mut load)?;
        ranges.iter().try_for_each(|(first, last)| null.break_sectors(*first, *last))?;
        sleep(Duration::from_millis(500));
        ranges.iter().try_for_each(|(first, last)| null.mend_sectors(*first, *last))?;
    }
    goes_on(&device, &mut load)?;
    let Tally { accesses, failed, lost } = load.stop()?;
    let (errors, retired) = (device.counter("write_errors")?, device.counter("zones_retired")?);
    print!(
        "{failed} accesses failed, {accesses} did not; {errors} writes failed, {retired} zones retired ... "
    );
    ensure!(failed > 0 && errors > 0, "{failed} accesses and {errors} writes failed");
    ensure!(lost == 0, "{lost} pages are lost");
    // Those that fail a second time when all is over wait until they are needed.
    ensure!(retired <= 12 || !at_once, "{retired} zones are retired");
    device.finish()
}

/// Most of a device that the device mapper made fails for a second in every four.
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
    // What is looked at in the end may not be away just then.
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

/// Somebody writes to the zones that are being written: nothing lies where the device
/// would have put it otherwise, and zones are full before their time.
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

/// Each command takes 5 ms. Nobody fails for it, and GC keeps up.
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

/// Appends, reads, resets and finishes that the device has done, but whose end is
/// reported as an error.
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
    // One command may be that of several reads: at least so many were of zones.
    let counts = || {
        let (reads, writes) = (device.counter("read_errors")?, device.counter("write_errors")?);
        Ok::<_, String>((reads, writes, faults.count()?.saturating_sub(reads + writes)))
    };
    let all = guest::eventually(90.0, || {
        counts().is_ok_and(|(reads, writes, zones)| reads.min(writes).min(zones) >= FAULTS)
    });
    let (reads, writes, zones) = counts()?;
    print!("{reads} reads, {writes} appends, {zones} resets and finishes failed ... ");
    ensure!(all, "some of them not {FAULTS} times; {}", load.complaints());
    drop(faults);
    goes_on(&device, &mut load)?;
    let tally = load.stop()?;
    ensure!(tally.lost == 0, "{} pages are lost", tally.lost);
    device.finish()
}

/// The device does what it is told, and never says so.
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

/// The driver starts the controller anew, TIMES times, and brings what was under way to its end.
fn controller_resets(log: &mut Log) -> Outcome {
    // QEMU 7.2 then loses a command now and then, again and again, when 6.1 does it.
    if guest::kernel() < (6, 12) {
        return Ok(());
    }
    let backing = guest::device(TIGHT)?;
    let reset = format!("/sys/block/{}/device/reset_controller", name_of(&backing));
    for words in ["nvme", "resetting controller", "failed (-5)", "I/O error"] {
        log.allow(words);
    }
    let device = Device::on(&backing, &[])?;
    let mut load = Load::start(2, 14 << 20, 12 * MIB)?;
    for _ in 0..guest::asked_for("TIMES", 10)? {
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

/// The device is taken out under load, TIMES times. What was on it is lost to who
/// needs it; all ends, and when it is back it can be used.
fn unplugged(log: &mut Log) -> Outcome {
    let backing = guest::device(MEDIUM)?;
    let controller = format!("/sys/block/{}/device/device", name_of(&backing));
    let remove = format!("{controller}/remove");
    allow(log);
    for words in ["nvme", "Buffer I/O error", "pci ", "failed (-19)", "failed (-6)"] {
        log.allow(words);
    }
    let times = guest::asked_for("TIMES", 3)?;
    let mut lost = 0;
    for _ in 0..times {
        let device = Device::on(&backing, &["--force"])?;
        let mut load = Load::start(1, 12 << 20, 4 * MIB)?;
        more(&device, "read_blocks", 500)?;
        guest::write(&remove, "1").context(&remove)?;
        let so = guest::eventually(40.0, || device.counter("read_errors").is_ok_and(|n| n > 50));
        ensure!(so, "nobody has read in vain; {}", load.complaints());
        lost += load.stop()?.lost;
        device.check()?;
        device.swapoff()?;
        guest::run(&["znsage", "off", &device.node()])?;
        guest::write("/sys/bus/pci/rescan", "1").context("rescan")?;
        let so = guest::eventually(20.0, || guest::exists(&backing));
        ensure!(so, "{backing} has not come back");
        log.keep_up();
    }
    print!("{times} times, {lost} pages lost ... ");
    ensure!(lost >= times, "only {lost} pages are lost");
    Device::on(&backing, &["--force"])?.finish_sound()
}
