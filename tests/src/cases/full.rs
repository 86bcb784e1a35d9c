// SPDX-License-Identifier: GPL-2.0-only
//! A swap area that is full, of a device that promises more than it certainly holds, or has a
//! filler: the kernel kills as soon as with stock swap, with a quiet log, and goes on to another
//! area. And a machine short of memory, where checks end.

use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::mman::{mlockall, MlockAllFlags};
use nix::sys::signal::Signal;

use super::devices::{CONVENTIONAL, TIGHT};
use crate::child::{spawn, Group};
use crate::device::{znsage, Device};
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::memory::Memory;
use crate::outcome::{Context, Outcome};
use crate::pattern::PAGE;

crate::cases![full: whole_machine (full), checks_end (full), cgroup (more), next_area (more), guard_is_missed];

const MIB: usize = 1 << 20;
/// Memory of the machine that is not locked.
const LEFT: u64 = 80 << 20;
/// With so little room, a device is full.
const LAST: u64 = 3 << 20;
/// The memory limit of a cgroup.
const LIMIT: u64 = 32 << 20;
/// An area about three times as large as what the device certainly holds.
const PROMISE: [&str; 4] = ["--compress", "lz4", "--size", "150M"];
/// Messages that the kernel and the module log only if the device is full.
const COMPLAINTS: [&str; 3] = ["on swap-device", "refused", "callbacks suppressed"];
/// What the log may have of one refused chunk: ten lines of the kernel, which logs no more in
/// five seconds, its line on those that it left out, and the module's line. The guard is a process
/// and can be late by a chunk.
const MOST_COMPLAINTS: usize = 12;
/// A chunk of each CPU.
const LATE_PAGES: u64 = 2 * 64;

fn score(score: &str) -> Outcome {
    guest::write("/proc/self/oom_score_adj", score).context("oom_score_adj")
}

/// Locks all memory but LEFT until it is dropped.
fn shortage() -> Outcome<Memory> {
    let size = guest::memory("MemAvailable")?.saturating_sub(LEFT) as usize;
    let mut memory = Memory::new(size / PAGE * PAGE)?;
    memory.bytes_mut().fill(1);
    mlockall(MlockAllFlags::MCL_CURRENT).context("mlockall")?;
    Ok(memory)
}

/// The free bytes of a swap area; none if it is off.
fn free(node: &str) -> u64 {
    let text = guest::read("/proc/swaps").unwrap_or_default();
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(node));
    let kib = |line: &str, nth| line.split_whitespace().nth(nth)?.parse::<u64>().ok();
    line.and_then(|line| Some((kib(line, 2)? - kib(line, 3)?) << 10)).unwrap_or(0)
}

/// Fills memory with pages that do not shrink until the kernel kills it. Returns the time between
/// the moment when `left` is less than LAST and its death, and how many MiB it got.
fn glut(group: Option<&Group>, left: &dyn Fn() -> u64) -> Outcome<(Duration, u64)> {
    let child = spawn(group, |_| {
        score("1000")?;
        let mut parts = Vec::new();
        loop {
            let mut part = Memory::new(MIB)?;
            part.huge_pages(false)?;
            part.fill(0..MIB / PAGE, 2);
            parts.push(part);
        }
    })?;
    let status = format!("/proc/{}/status", child.pid());
    let usual = guest::table("/proc/self/status", "VmData")?;
    let (begin, mut full, mut most) = (Instant::now(), None, 0);
    while !child.has_spoken() {
        if left() < LAST {
            full.get_or_insert(begin.elapsed());
        }
        most = guest::table(&status, "VmData").map_or(most, |now| most.max(now));
        sleep(Duration::from_millis(20));
    }
    let end = begin.elapsed();
    child.dies_of(Signal::SIGKILL)?;
    Ok((end - full.unwrap_or(end), most.saturating_sub(usual) >> 10))
}

/// The size of stock swap that is compared: what the device holds.
fn stock(bytes: u64, group: Option<&Group>) -> Outcome<(Duration, u64)> {
    let device = guest::device(CONVENTIONAL)?;
    guest::ok(&["mkswap", &device, &(bytes >> 10).to_string()])?;
    guest::ok(&["swapon", &device])?;
    let got = glut(group, &|| free(&device))?;
    guest::ok(&["swapoff", &device])?;
    guest::ok(&["blkdiscard", &device])?;
    Ok(got)
}

/// Compares stock swap, an area that promises too much, and one with a filler.
fn compare(log: &mut Log, group: Option<&Group>) -> Outcome {
    for words in
        ["Out of memory", "out of memory", "oom-kill", "Call Trace", "page allocation failure"]
    {
        log.allow(words);
    }
    COMPLAINTS.iter().for_each(|words| log.allow(words));
    let backing = guest::device(TIGHT)?;
    let device = Device::on(&backing, &PROMISE)?;
    let certain = device.counter("certain_bytes")?;
    ensure!(certain < device.counter("size_bytes")? / 2, "{certain} bytes are certain");
    device.finish_sound()?;
    let (usual, most) = stock(certain, group)?;
    print!("stock swap {:.1} s, {most} MiB ... ", usual.as_secs_f64());
    for options in [&PROMISE[..], &["--keep-slots"]] {
        let device = Device::on(&backing, options)?;
        let before = log.count(&COMPLAINTS);
        let room = || device.counter("room_bytes").unwrap_or(0);
        let (took, got) = glut(group, &|| room().min(free(&device.node())))?;
        let said = log.count(&COMPLAINTS) - before;
        print!("{} {:.1} s, {got} MiB, {said} lines ... ", options[0], took.as_secs_f64());
        let bound = 2 * usual + Duration::from_secs(2) * guest::slowness();
        ensure!(took <= bound, "from full to the kill: {took:?}, stock swap {usual:?}");
        ensure!(said <= MOST_COMPLAINTS, "{said} lines of log");
        // More of the memory is in buffers than with stock swap, so less is swapped out at first.
        let written = device.counter("host_pages")? * PAGE as u64;
        ensure!(written * 10 >= certain * 9, "{written} bytes were swapped out, {certain} fit");
        device.finish_sound()?;
    }
    Ok(())
}

fn whole_machine(log: &mut Log) -> Outcome {
    // The suite itself must survive.
    let _stays = guest::Setting::set("/proc/self/oom_score_adj", "-1000")?;
    let short = shortage()?;
    let compared = compare(log, None);
    drop(short);
    nix::sys::mman::munlockall().context("munlockall")?;
    compared
}

/// A check holds up all I/O of the device while reclaim waits for some: it must not allocate then.
fn checks_end(_: &mut Log) -> Outcome {
    let _stays = guest::Setting::set("/proc/self/oom_score_adj", "-1000")?;
    let device = Device::on(&guest::device(TIGHT)?, &["--compress", "lz4"])?;
    let short = shortage()?;
    let pages = (LEFT + device.counter("certain_bytes")? / 2) as usize / PAGE;
    let mut child = spawn(None, move |parent| {
        let mut memory = Memory::new(pages * PAGE)?;
        memory.huge_pages(false)?;
        let mut round = 0;
        while !parent.is_told() {
            round += 1;
            memory.fill(0..pages, round);
        }
        memory.verify(0..pages, round)
    })?;
    let written = || device.counter("host_pages");
    ensure!(guest::eventually(60.0, || written().is_ok_and(|n| n > 1000)), "no swap-out");
    let before = written()?;
    for _ in 0..10 {
        device.check()?;
    }
    ensure!(written()? > before, "nothing was swapped out meanwhile");
    child.go_on()?;
    child.join()?;
    drop(short);
    nix::sys::mman::munlockall().context("munlockall")?;
    device.finish_sound()
}

fn cgroup(log: &mut Log) -> Outcome {
    let group = Group::new("full", LIMIT)?;
    compare(log, Some(&group))
}

/// More than the device holds, and less than it and an area of lower priority hold.
fn next_area(log: &mut Log) -> Outcome {
    COMPLAINTS.iter().for_each(|words| log.allow(words));
    let device =
        Device::on(&guest::device(TIGHT)?, &[&PROMISE[..], &["--priority", "10"]].concat())?;
    let second = guest::device(CONVENTIONAL)?;
    guest::ok(&["mkswap", &second])?;
    guest::ok(&["swapon", "-p", "1", &second])?;
    let pages = (device.counter("certain_bytes")? * 2 + LIMIT) as usize / PAGE;
    let group = Group::new("full", LIMIT)?;
    spawn(Some(&group), move |_| {
        let mut memory = Memory::new(pages * PAGE)?;
        memory.huge_pages(false)?;
        memory.fill(0..pages, 3);
        memory.verify(0..pages, 3)
    })?
    .join()?;
    let (refused, said) = (device.counter("refused_pages")?, log.count(&COMPLAINTS));
    print!("{refused} pages refused ... ");
    ensure!(refused <= LATE_PAGES && said <= MOST_COMPLAINTS, "{refused} refused, {said} lines");
    guest::ok(&["swapoff", &second])?;
    guest::ok(&["blkdiscard", &second])?;
    device.finish_sound()
}

/// The guard's pid.
fn guard(device: &Device) -> Outcome<u64> {
    guest::read_number(&format!("/run/znsage/{}.guard", device.name))
}

/// `doctor` misses a guard that was killed, and `znsage guard` starts it again. Another program's
/// swapoff gets all of the guard's slots back.
fn guard_is_missed(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(TIGHT)?, &PROMISE)?;
    let first = guard(&device)?;
    guest::ok(&["kill", "-KILL", &first.to_string()])?;
    let doctor = || znsage(&["doctor"]).map_or_else(|e| e, |ran| ran.said());
    let missed = || doctor().contains("its guard does not run");
    ensure!(guest::eventually(10.0, missed), "doctor does not miss the guard: {}", doctor());
    guest::ok(&["znsage", "guard", &device.node()])?;
    ensure!(guard(&device)? != first && !missed(), "the guard does not run again");
    let group = Group::new("full", LIMIT)?;
    let pages = device.counter("certain_bytes")? as usize * 9 / 10 / PAGE;
    let mut child = spawn(Some(&group), move |link| {
        let mut memory = Memory::new(pages * PAGE)?;
        memory.huge_pages(false)?;
        memory.fill(0..pages, 4);
        memory.start_page_out()?;
        link.point()?;
        memory.verify(0..pages, 4)
    })?;
    child.reach()?;
    let status = format!("/proc/{}/status", guard(&device)?);
    let held = || guest::table(&status, "VmSwap").unwrap_or(0) / 4;
    let most = device.counter("size_bytes")? as usize / PAGE - pages;
    ensure!(guest::eventually(10.0, || held() > most as u64 / 3), "{} slots are held", held());
    print!("{} slots held ... ", held());
    group.set("memory.max", "max")?;
    device.swapoff()?;
    ensure!(guest::eventually(10.0, || held() == 0), "{} slots are held", held());
    let resident = guest::table(&status, "RssAnon")?;
    ensure!(resident < 16 << 10, "the guard has {resident} KiB");
    child.go_on()?;
    child.join()?;
    device.end()
}
