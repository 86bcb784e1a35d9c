// SPDX-License-Identifier: GPL-2.0-only
//! Disks and partitions without zones, on which the module makes virtual ones.

use std::fs;

use super::devices::CONVENTIONAL;
use super::refusals::{on_refused, BUSY, DATA};
use crate::device::{load_module, znsage_json, Device, CONFIG};
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::null_blk::NullBlk;
use crate::outcome::{Context, Outcome};
use crate::scsi_debug::ScsiDebug;

crate::cases![conventional:
    disk (each), swap_on_a_disk (full), partition_without_discard (full), failed_writes (more), what_holds_data, own_data (more),
    force_is_needed, write_streams];

/// At 60 % with zones that are a 64th of the device each.
const MOST_WAF: f64 = 2.0;

/// Rewrites the device until GC has emptied zones.
fn swap(device: &Device) -> Outcome {
    let much = ["--utilization", "60", "--rewrites", "1"];
    let rest = ["--seconds", "60", "--write-ratio", "1"];
    let bench = guest::without_read_ahead(|| device.bench(&[much, rest].concat()))?;
    let waf = bench.waf();
    print!("{:.1} % full, WAF {waf:.2} ... ", 100.0 * bench.utilization());
    ensure!(device.counter("zone_resets")? > 0, "no zone was emptied");
    ensure!(waf <= MOST_WAF, "WAF {waf:.3}, at most {MOST_WAF} is allowed");
    Ok(())
}

fn no_errors(device: &Device) -> Outcome {
    for file in ["write_errors", "read_errors", "zones_retired"] {
        let n = device.counter(file)?;
        ensure!(n == 0, "{file} is {n}");
    }
    Ok(())
}

fn sum(what: &str) -> Outcome<String> {
    guest::ok(&["sh", "-c", &format!("md5sum < {what}")])
}

/// All that was written is discarded: a disk that forgets it reads as zeroes.
fn disk(_: &mut Log) -> Outcome {
    let null = NullBlk::conventional(&[("size", "64")])?;
    let device = Device::on(&null.node(), &["--zone-size", "1M"])?;
    let zones = device.counter("zones_total")?;
    ensure!(zones == 64, "{zones} zones");
    device.swapoff()?;
    // A quarter of the device each time, until zones are used again.
    device.rewrite(4096, 5)?;
    ensure!(device.counter("zone_resets")? > 0, "no zone was emptied");
    no_errors(&device)?;
    device.end()?;
    let (bytes, node) = (64 << 20, null.node());
    guest::ok(&["cmp", "-n", &bytes.to_string(), &node, "/dev/zero"])?;
    without_discards(&node)
}

fn without_discards(node: &str) -> Outcome {
    let discards =
        || -> Outcome<u64> { Ok(guest::block_stat(node.trim_start_matches("/dev/"))?[11]) };
    let device = Device::on(node, &["--zone-size", "1M", "--no-discard"])?;
    device.swapoff()?;
    let before = discards()?;
    device.rewrite(4096, 5)?;
    ensure!(device.counter("zone_resets")? > 0, "no zone was emptied");
    let sent = discards()? - before;
    ensure!(sent == 0, "{sent} discards");
    no_errors(&device)?;
    device.end()
}

fn swap_on_a_disk(_: &mut Log) -> Outcome {
    let null = NullBlk::conventional(&[("size", "64")])?;
    let device = Device::on(&null.node(), &["--zone-size", "1M"])?;
    swap(&device)?;
    no_errors(&device)?;
    device.end()
}

/// Nothing is written beside the partition, whose beginning is not aligned to a page.
fn partition_without_discard(_: &mut Log) -> Outcome {
    let settings = ["num_parts=2", "ndelay=200000"];
    let Some(disk) = ScsiDebug::conventional(128, &settings)? else { return Ok(()) };
    let (node, ours, other) = (disk.node(), disk.partition(1), disk.partition(2));
    ensure!(guest::eventually(10.0, || guest::exists(&other)), "{other} does not appear");
    let into = format!("of={other}");
    guest::ok(&["dd", "if=/dev/urandom", &into, "bs=1M", "count=32", "oflag=direct"])?;
    let head = format!("head -c 512 {node} | md5sum");
    let before = (sum(&other)?, guest::ok(&["sh", "-c", &head])?);
    let scheduler = disk.scheduler()?;

    let device = Device::on(&ours, &["--zone-size", "1M", "--encrypt", "aes-xts"])?;
    ensure!(disk.scheduler()? == scheduler, "the scheduler has changed");
    swap(&device)?;
    no_errors(&device)?;
    device.check()?;
    device.swapoff()?;
    let off = znsage_json(&["off", &device.node()])?;
    ensure!(off["off"][0]["discarded"] == false, "off: {off}");
    let after = (sum(&other)?, guest::ok(&["sh", "-c", &head])?);
    ensure!(before == after, "something beside the partition was written");
    Ok(())
}

/// A page that cannot be written goes to another zone; no process sees an error.
fn failed_writes(log: &mut Log) -> Outcome {
    let null = NullBlk::conventional(&[("size", "64")])?;
    log.allow("failed (-5)");
    log.allow("I/O error, dev nullb0");
    let device = Device::on(&null.node(), &["--zone-size", "1M"])?;
    for zone in [5u64, 20, 40] {
        null.break_sectors(zone * 2048 + 8 * zone, zone * 2048 + 8 * zone + 7)?;
    }
    swap(&device)?;
    let (errors, unread) = (device.counter("write_errors")?, device.counter("read_errors")?);
    ensure!(errors >= 3 && unread == 0, "{errors} write errors, {unread} read errors");
    device.end()
}

/// Blocks that may still be written to the present reclaim unit of each placement handle.
fn room_of_handles(node: &str) -> Outcome<Vec<u64>> {
    let printed = guest::ok(&["nvme", "fdp", "status", node])?;
    let values = printed.lines().filter_map(|line| line.split_once("(RUAMW): "));
    values.map(|(_, n)| n.trim().parse().context(&printed)).collect()
}

/// Swap-out and GC have placement handles of their own.
fn write_streams(_: &mut Log) -> Outcome {
    let node = guest::device(CONVENTIONAL)?;
    let queue = node.replace("/dev/", "/sys/block/") + "/queue/max_write_streams";
    if !guest::exists(&queue) || guest::read(&queue)?.trim() == "0" {
        print!("no write streams ... ");
        return Ok(());
    }
    let whole = room_of_handles(&node)?;
    let device = Device::on(&node, &["--force", "--zone-size", "1M"])?;
    // A handle may be at the end of a unit by chance.
    let mut written = vec![false; whole.len()];
    for _ in 0..3 {
        swap(&device)?;
        for (handle, room) in room_of_handles(&node)?.into_iter().enumerate() {
            written[handle] |= room != whole[handle];
        }
        if written[0] && written[whole.len() - 1] {
            ensure!(device.counter("gc_blocks")? > 0, "GC has moved nothing");
            return device.end();
        }
    }
    Err(format!("placement handles that were written: {written:?}"))
}

/// Swap areas and partition tables are not overwritten, nor what is in use.
fn what_holds_data(_: &mut Log) -> Outcome {
    let null = NullBlk::conventional(&[("size", "64")])?;
    let node = null.node();
    guest::ok(&["mkswap", &node])?;
    on_refused(&node, &[], DATA, &["signature of `swap`", "--yes"])?;
    guest::ok(&["swapon", &node])?;
    on_refused(&node, &["--force"], BUSY, &["in use as swap", "swapoff"])?;
    guest::ok(&["swapoff", &node])?;
    let report = znsage_json(&["on", &node, "--force", "--zone-size", "1M"])?;
    ensure!(report["lost"] == "a signature of `swap`", "on: {report}");
    ensure!(report["keeps_pages_after_off"] == false, "on: {report}");
    let off = znsage_json(&["off"])?;
    ensure!(off["off"][0]["discarded"] == true, "off: {off}");
    fs::write(&node, table_of_one_partition()).context(&node)?;
    on_refused(&node, &[], DATA, &["signature of `dos`", "--yes"])?;
    fs::write(&node, [b'x'; 512]).context(&node)?;
    on_refused(&node, &[], DATA, &["data of no known format", "--yes"])
}

/// A drive that keeps what was swapped out has a record.
fn own_data(_: &mut Log) -> Outcome {
    let node = guest::device(CONVENTIONAL)?;
    let device = Device::on(&node, &["--force", "--no-discard", "--zone-size", "1M"])?;
    let found = guest::run(&["blkid", "-p", &node])?;
    ensure!(!found.stdout.contains("swap"), "it has the header of znsage0: {}", found.stdout);
    device.swapoff()?;
    device.rewrite(4096, 1)?;
    device.end()?;
    Device::on(&node, &["--no-discard"])?.end()?;
    guest::ok(&["rm", "-r", "/var/lib/znsage"])?;
    on_refused(&node, &[], DATA, &["data of no known format"])
}

/// A DOS partition table: 32 MiB from the first MiB on.
fn table_of_one_partition() -> [u8; 512] {
    let mut sector = [0; 512];
    sector[450] = 0x83;
    sector[454..458].copy_from_slice(&2048u32.to_le_bytes());
    sector[458..462].copy_from_slice(&65536u32.to_le_bytes());
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

/// The module itself cannot see what is on such a device.
fn force_is_needed(log: &mut Log) -> Outcome {
    load_module()?;
    log.allow("cannot tell whether it is in use");
    let item = format!("{CONFIG}/suite");
    fs::create_dir(&item).context(&item)?;
    guest::write(&format!("{item}/backing"), &guest::device(CONVENTIONAL)?).context(&item)?;
    guest::refuses(&format!("{item}/power"), "1", libc::ENOTEMPTY)?;
    fs::remove_dir(&item).context(&item)?;
    guest::ok(&["rmmod", "znsage"]).map(drop)
}
