// SPDX-License-Identifier: GPL-2.0-only
//! Failed allocations, of the module and of code that it calls. Only debug kernels can
//! inject them (tests/src/inject.rs).

use std::fs;

use super::devices::MEDIUM;
use crate::device::{load_module, Device, CONFIG};
use crate::ensure;
use crate::guest;
use crate::inject::{Injection, Nth};
use crate::kmsg::Log;
use crate::load::Load;
use crate::null_blk::NullBlk;
use crate::outcome::{Context, Outcome};
use crate::pattern::PAGE;
use crate::runner;

crate::cases![shortage: attach, maps_larger_than_memory (each), under_load];

/// Turns a device on by configfs.
fn attach_once(item: &str, settings: &[(&str, &str)]) -> Outcome {
    fs::create_dir(item).context(item)?;
    for (attribute, value) in settings {
        let path = format!("{item}/{attribute}");
        guest::write(&path, value).context(format!("{path} := {value}"))?;
    }
    guest::write(&format!("{item}/power"), "1").context("power := 1")
}

fn take_down(item: &str) -> Outcome {
    if !guest::exists(item) {
        return Ok(());
    }
    let power = format!("{item}/power");
    // A program that scans new disks may have it open for a moment.
    let off = guest::eventually(5.0, || {
        guest::read(&power).is_ok_and(|on| on == "0") || guest::write(&power, "0").is_ok()
    });
    ensure!(off, "it does not go");
    fs::remove_dir(item).context(item)
}

/// Only the first allocation fails, then only the second, and so on: either the attach
/// fails and leaves nothing behind, or the device works.
fn attach(log: &mut Log) -> Outcome {
    let Some(slab) = Injection::of_memory("failslab")? else { return Ok(()) };
    let Some(pages) = Injection::of_memory("fail_page_alloc")? else { return Ok(()) };
    let null = NullBlk::zoned(&[("size", "8"), ("zone_size", "1")])?;
    let backing = null.node();
    let settings = [
        ("backing", backing.as_str()),
        ("policy", "cgroup"),
        ("encrypt", "aes-xts"),
        ("chunk", "16384"),
    ];
    let item = format!("{CONFIG}/suite");
    load_module()?;
    for injection in [&slab, &pages] {
        injection.only_of_module()?;
    }
    // The kernel logs where vmalloc() failed.
    for words in ["Call Trace", "vmalloc error", "znsage: suite"] {
        log.allow(words);
    }
    let (mut n, mut refused, mut did_without) = (1, 0, 0);
    loop {
        runner::still_alive();
        Nth::set(n)?;
        let outcome = attach_once(&item, &settings);
        if !Nth::met()? {
            outcome.context("without a failure")?;
            break;
        }
        match outcome {
            Ok(()) => did_without += 1,
            Err(e) if e.contains("os error 12") => refused += 1,
            Err(e) => return Err(format!("allocation {n}: {e}")),
        }
        take_down(&item).context(format!("after allocation {n} failed"))?;
        // Many allocations are alike; trying all would take too long.
        n += 1 + n / 25;
    }
    print!("{refused} of {n} allocations refused it, it did without {did_without} ... ");
    ensure!(refused >= 50, "only {refused} allocations are needed");
    take_down(&item)?;
    drop((slab, pages));
    Device::attach(&backing, &settings[1..])?.finish()
}

/// A device whose map needs more memory than is free: attach fails, and no process is killed.
fn maps_larger_than_memory(log: &mut Log) -> Outcome {
    // The map has 4 bytes for each slot, and there are slots for 88 % of the pages: it takes 95 %
    // of memory. The kernel tries that, as it does not for more than all memory.
    let map = guest::memory("MemTotal")? / 100 * 108;
    let mib = (map / 4 * PAGE as u64) >> 20;
    let null = NullBlk::zoned(&[
        ("memory_backed", "0"),
        ("size", &(mib / 1024 * 1024).to_string()),
        ("zone_size", "1024"),
    ])?;
    let killed = || guest::table("/proc/vmstat", "oom_kill");
    let before = killed()?;
    load_module()?;
    log.allow("not enough memory for the maps");
    let item = format!("{CONFIG}/suite");
    fs::create_dir(&item).context(&item)?;
    guest::write(&format!("{item}/backing"), &null.node()).context(&item)?;
    guest::refuses(&format!("{item}/power"), "1", libc::ENOMEM)?;
    ensure!(killed()? == before, "a process was killed");
    fs::remove_dir(&item).context(&item)?;
    guest::ok(&["rmmod", "znsage"]).map(drop)
}

/// A third of all allocations fail while processes swap: no process sees an error.
fn under_load(_: &mut Log) -> Outcome {
    const FAULTS: u64 = 500;
    let Some(slab) = Injection::of_memory("failslab")? else { return Ok(()) };
    let Some(pages) = Injection::of_memory("fail_page_alloc")? else { return Ok(()) };
    for encrypt in [&[][..], &["--encrypt", "aes-xts"]] {
        let device = Device::on(&guest::device(MEDIUM)?, encrypt)?;
        let load = Load::start(2, 96 << 20, 16 << 20)?;
        let before = slab.count()? + pages.count()?;
        for injection in [&slab, &pages] {
            injection.only_of_module()?;
            injection.percent(33)?;
        }
        let failed = || Ok::<u64, String>(slab.count()? + pages.count()? - before);
        let goes_on = guest::eventually(60.0, || {
            failed().is_ok_and(|n| n >= FAULTS)
                && device.counter("gc_blocks").is_ok_and(|n| n > 1000)
        });
        let n = failed()?;
        for injection in [&slab, &pages] {
            injection.percent(0)?;
        }
        let tally = load.stop()?;
        let gc = device.counter("gc_blocks")?;
        print!("{n} failed, {gc} blocks moved by GC ... ");
        ensure!(goes_on, "{n} allocations failed, GC moved {gc} blocks");
        ensure!(tally.failed == 0 && tally.lost == 0, "of the processes' {tally:?}");
        device.finish_sound()?;
    }
    Ok(())
}
