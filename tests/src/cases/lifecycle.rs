// SPDX-License-Identifier: GPL-2.0-only
//! Turning on and off, which must leave nothing behind.

use std::fs::{self, File};

use super::devices::{MAIN, MEDIUM};
use crate::child::{spawn, Group};
use crate::cleanup;
use crate::device::{module_path, Device, CONFIG};
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::memory::{Memory, STAYING};
use crate::outcome::{Context, Outcome};
use crate::pattern::PAGE;

crate::cases![lifecycle:
    on_and_off (each), status_tells, detach_in_use_is_refused (each), two_devices (full),
    twenty_times_without_a_leak (full)];

/// Swaps out some pages of a process, and in again.
fn use_it(bytes: usize) -> Outcome {
    let group = Group::new("use", 256 << 20)?;
    let child = spawn(Some(&group), |_| {
        let mut memory = Memory::new(bytes)?;
        memory.fill(0..bytes / PAGE, 1);
        memory.page_out()?;
        memory.verify(0..bytes / PAGE, 1)
    })?;
    child.join()
}

fn on_and_off(_: &mut Log) -> Outcome {
    let before = cleanup::traces();
    ensure!(before.is_empty(), "already there: {}", before.join(", "));
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    use_it(8 << 20)?;
    let out = device.counter("host_blocks")?;
    ensure!(out + STAYING as u64 >= 2048, "only {out} of 2048 pages were swapped out");
    let below = guest::run(&["blkid", "-p", &device.backing])?.stdout;
    ensure!(below.is_empty(), "the device below shows {below}");
    device.finish_sound()?;
    // `znsage off` has unloaded the module.
    let after = cleanup::traces();
    ensure!(after.is_empty(), "left behind: {}", after.join(", "));
    Ok(())
}

fn status_tells(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(MEDIUM)?, &["--policy", "single"])?;
    use_it(4 << 20)?;
    let status = crate::device::znsage_json(&["status"])?;
    let shown = &status["devices"][0];
    for key in [
        "size_bytes",
        "slots_used",
        "live_blocks",
        "host_blocks",
        "gc_blocks",
        "padding_blocks",
        "waf",
        "chunks",
        "zone_resets",
        "slots_freed",
        "read_errors",
        "write_errors",
        "map_bytes",
    ] {
        ensure!(shown[key].is_number(), "status --json shows {key} as {}", shown[key]);
    }
    ensure!(shown["policy"] == "single", "policy is {}", shown["policy"]);
    ensure!(shown["name"] == device.name.as_str(), "name is {}", shown["name"]);
    ensure!(device.backing.ends_with(shown["backing"].as_str().unwrap_or("?")), "backing");
    // iostat's view of the disk: sectors written (also mkswap's header, which stays in
    // memory), time of writes, time in use.
    let stat = guest::block_stat(&device.name)?;
    let blocks = device.counter("host_blocks")?;
    ensure!(stat[6] == 8 * (blocks + 1), "{} sectors in stat, {blocks} blocks written", stat[6]);
    ensure!(stat[7] > 0 && stat[9] > 0, "no time in stat: {stat:?}");
    let zones = &shown["zones"];
    let sum: u64 =
        ["empty", "open", "full", "retired"].iter().filter_map(|k| zones[k].as_u64()).sum();
    ensure!(zones["total"] == 64 && sum == 64, "64 zones are shown as {zones}");
    // 8 bytes a page of the device and a percent.
    let most = 8 * device.counter("blocks_total")? * 101 / 100;
    ensure!(device.counter("map_bytes")? <= most, "maps take more than {most} bytes");
    device.finish_sound()
}

fn detach_in_use_is_refused(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    let item = format!("{CONFIG}/{}", guest::read(&device.attribute("config"))?);
    let power = format!("{item}/power");
    let busy = |when: &str| -> Outcome {
        guest::refuses(&power, "0", libc::EBUSY).context(when)?;
        let removed = fs::remove_dir(&item).map_err(|e| e.raw_os_error());
        ensure!(removed == Err(Some(libc::EBUSY)), "{when}: rmdir: {removed:?}");
        let unloaded = guest::run(&["rmmod", "znsage"])?;
        ensure!(unloaded.status != 0, "{when}: rmmod works");
        ensure!(unloaded.stderr.contains("in use"), "{when}: rmmod: {}", unloaded.said());
        Ok(())
    };
    busy("as swap")?;
    for setting in ["backing", "policy", "size"] {
        guest::refuses(&format!("{item}/{setting}"), "1", libc::EBUSY)?;
    }
    use_it(4 << 20)?;
    device.swapoff()?;
    let open = File::open(device.node()).context("open the disk")?;
    busy("as an open file")?;
    drop(open);
    guest::refuses(&format!("{item}/over_provisioning"), "20", libc::EBUSY)?;
    device.nothing_lives()?;
    device.finish_sound()
}

fn two_devices(_: &mut Log) -> Outcome {
    let one = Device::on(&guest::device(MAIN)?, &["--priority", "5"])?;
    let two = Device::on(&guest::device(MEDIUM)?, &["--priority", "5", "--size", "64M"])?;
    ensure!(one.name != two.name, "both are {}", one.name);
    use_it(16 << 20)?;
    for device in [&one, &two] {
        ensure!(device.counter("host_blocks")? > 100, "{} was not used", device.name);
    }
    one.finish_sound()?;
    use_it(4 << 20)?;
    two.finish_sound()
}

/// Growth that is not a leak: the kernel's caches, per-CPU pages and slabs.
const SLACK: u64 = 3 << 20;

/// Kernel memory that is not freed by itself.
fn kernel_memory() -> Outcome<Vec<(&'static str, u64)>> {
    guest::write("/proc/sys/vm/drop_caches", "3").context("drop_caches")?;
    // Freed by RCU and by workers a moment later.
    std::thread::sleep(std::time::Duration::from_millis(500));
    ["SUnreclaim", "VmallocUsed", "Percpu", "KernelStack"]
        .into_iter()
        .map(|key| Ok((key, guest::memory(key)?)))
        .collect()
}

/// Loads and unloads the module, with disk and swap. Each round would leak megabytes if a
/// map, a chunk or a pool were not freed.
fn twenty_times_without_a_leak(_: &mut Log) -> Outcome {
    let backing = guest::device(MAIN)?;
    let module = module_path()?;
    let round = |by_command: bool| -> Outcome {
        let device = match by_command {
            true => Device::on(&backing, &[])?,
            false => {
                let device = Device::attach(&backing, &[])?;
                guest::ok(&["mkswap", &device.node()])?;
                guest::ok(&["swapon", &device.node()])?;
                device
            }
        };
        use_it(1 << 20)?;
        device.swapoff()?;
        guest::ok(&["znsage", "off"]).map(drop)
    };
    round(true)?;
    round(false)?;
    let before = kernel_memory()?;
    for i in 0..20 {
        round(i % 4 == 0).context(format!("round {i}"))?;
    }
    for ((key, was), (_, is)) in before.iter().zip(kernel_memory()?) {
        ensure!(is <= was + SLACK, "{key} grew from {was} to {is} bytes");
    }
    ensure!(guest::exists(&module), "{module} is gone");
    crate::zones::all_empty(&backing)
}
