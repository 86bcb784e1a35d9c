// SPDX-License-Identifier: GPL-2.0-only
//! Which pages share zones, and which cgroup pays for I/O.

use std::fs;
use std::time::{Duration, Instant};

use super::devices::MAIN;
use crate::child::{spawn, Child, Group, Link};
use crate::device::Device;
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::memory::Memory;
use crate::null_blk::NullBlk;
use crate::outcome::{Context, Outcome};
use crate::pattern::{self, PAGE};
use crate::table::Row;

crate::cases![isolation:
    zones_of_cgroups (each), gone_cgroups (full), nested_cgroups (full), many_cgroups (more),
    reader_beside_writer (full), limited (each)];

const MIB: usize = 1 << 20;

fn number(row: &Row, column: &str) -> Outcome<u64> {
    let word = row.get(column).ok_or(format!("{column} is missing"))?;
    let (digits, radix) = match word.strip_prefix("0x") {
        Some(hex) => (hex, 16),
        None => (word.as_str(), 10),
    };
    u64::from_str_radix(digits, radix).context(format!("{column}: {word}"))
}

/// The zones that are not empty.
fn zones(device: &Device) -> Outcome<Vec<Row>> {
    let mut rows = device.zones()?;
    rows.retain(|row| row.get("live").is_some_and(|live| live != "0"));
    ensure!(!rows.is_empty(), "all zones are empty");
    Ok(rows)
}

/// The keys of the zones, and the number of zones with several keys.
fn keys(device: &Device) -> Outcome<(Vec<u64>, usize)> {
    let rows = zones(device)?;
    let mixed = rows.iter().filter(|row| row.get("mixed").is_some_and(|m| m == "1")).count();
    let mut keys = rows.iter().map(|row| number(row, "key")).collect::<Outcome<Vec<u64>>>()?;
    keys.sort_unstable();
    keys.dedup();
    Ok((keys, mixed))
}

/// Writes pages of several mappings in turn, more than fit in memory.
fn in_turn(memories: &mut [Memory], rounds: u64) -> Outcome {
    let mut random = pattern::Random::new(rounds);
    let mut kept: Vec<Vec<u64>> = memories.iter().map(|m| vec![0; m.pages()]).collect();
    for key in 1..rounds {
        for (memory, kept) in memories.iter_mut().zip(&mut kept) {
            let page = match (key as usize) < memory.pages() {
                true => key as usize,
                false => random.below(memory.pages()),
            };
            if kept[page] != 0 {
                memory.verify(page..page + 1, kept[page])?;
            }
            memory.fill(page..page + 1, key);
            kept[page] = key;
        }
    }
    for (memory, kept) in memories.iter().zip(&kept) {
        for (page, &key) in kept.iter().enumerate().filter(|(_, &key)| key != 0) {
            memory.verify(page..page + 1, key)?;
        }
    }
    Ok(())
}

/// Two groups write at random while `body` runs.
fn two_writers(names: [&str; 2], body: impl FnOnce(&[Group; 2]) -> Outcome) -> Outcome {
    let groups = [Group::new(names[0], 12 << 20)?, Group::new(names[1], 12 << 20)?];
    let mut children = groups
        .iter()
        .map(|group| {
            spawn(Some(group), |link| {
                in_turn(&mut [Memory::new(28 * MIB)?], 16_000)?;
                link.point()
            })
        })
        .collect::<Outcome<Vec<Child>>>()?;
    for child in &mut children {
        child.reach()?;
    }
    body(&groups)?;
    for mut child in children {
        child.go_on()?;
        child.join()?;
    }
    Ok(())
}

/// With policy cgroup no zone holds pages of two cgroups, and keys are cgroup IDs.
fn zones_of_cgroups(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(MAIN)?, &["--policy", "cgroup"])?;
    two_writers(["left", "right"], |groups| {
        let (keys, mixed) = keys(&device)?;
        ensure!(mixed == 0, "{mixed} zones hold pages of several cgroups");
        for group in groups {
            let id = group.id()?;
            ensure!(keys.contains(&id), "no zone is of cgroup {id}, but of {keys:?}");
        }
        Ok(())
    })?;
    device.finish_sound()
}

/// One after the other, more cgroups than streams: each ends and leaves its zones to the next.
fn gone_cgroups(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(MAIN)?, &["--policy", "cgroup"])?;
    for i in 0..14 {
        let group = Group::new(&format!("gone-{i}"), 4 << 20)?;
        let work = |_: &mut Link| in_turn(&mut [Memory::new(8 * MIB)?], 2_500);
        spawn(Some(&group), work)?.join()?;
    }
    // Idle keys are dropped.
    let keys = device.counter("keys")?;
    let streams = device.counter("streams")?;
    print!("{keys} keys in {streams} streams ... ");
    ensure!(keys > 1 && keys < 14, "{keys} keys of 14 are known");
    device.finish_sound()
}

/// Nested cgroups, one of them threaded.
fn nested_cgroups(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(MAIN)?, &["--policy", "cgroup"])?;
    let outer = Group::new("outer", 24 << 20)?;
    outer.set("cgroup.subtree_control", "+memory +io")?;
    let inner = [Group::within(&outer, "one")?, Group::within(&outer, "two")?];
    let threaded = Group::within(&inner[1], "threads")?;
    threaded.set("cgroup.type", "threaded")?;
    let children = inner
        .iter()
        .map(|group| spawn(Some(group), |_| in_turn(&mut [Memory::new(24 * MIB)?], 8_000)))
        .collect::<Outcome<Vec<Child>>>()?;
    children.into_iter().try_for_each(Child::join)?;
    drop(threaded);
    drop(inner);
    device.finish_sound()
}

const TENANTS: usize = 16;

/// Swaps a little out and in, until `end`.
fn write_little(link: &mut Link, end: Duration) -> Outcome {
    let mut memory = Memory::new(MIB)?;
    memory.huge_pages(false)?;
    memory.fill(0..MIB / PAGE, 1);
    memory.page_out()?;
    link.point()?;
    let (start, mut key) = (Instant::now(), 1);
    while start.elapsed() < end {
        memory.verify(0..32, key)?;
        key += 1;
        memory.fill(0..32, key);
        memory.page_out()?;
        std::thread::sleep(Duration::from_millis(100));
    }
    link.point()?;
    memory.verify(0..32, key)?;
    memory.verify(32..MIB / PAGE, 1)
}

/// A disk sets no limit on open zones: 16 cgroups that write little have a stream each, and so has
/// one that writes much. The 16 do not wait for zones.
fn many_cgroups(_: &mut Log) -> Outcome {
    /// On a slow machine, too: two thirds of these pages are swapped out, and GC begins when 350
    /// zones of 64 pages are written.
    const AT_LEAST: u64 = 42_000;
    let end = Duration::from_secs(5);
    let null = NullBlk::conventional(&[("size", "320")])?;
    let device = Device::on(&null.node(), &["--policy", "cgroup", "--zone-size", "256K"])?;
    // Shares of zones are small, so that GC works although the device is nearly empty.
    let zones = device.counter("zones_total")?;
    for (file, value) in [("gc_high", zones - 350), ("gc_low", zones - 351)] {
        guest::write(&device.attribute(file), &value.to_string()).context(file)?;
    }
    let mut groups = (0..TENANTS)
        .map(|i| Group::new(&format!("light-{i}"), 8 << 20))
        .collect::<Outcome<Vec<Group>>>()?;
    let mut children = groups
        .iter()
        .map(|group| spawn(Some(group), move |link| write_little(link, end)))
        .collect::<Outcome<Vec<Child>>>()?;
    groups.push(Group::new("writer", 8 << 20)?);
    children.push(spawn(Some(&groups[TENANTS]), move |link| {
        let mut memory = Memory::new(24 * MIB)?;
        memory.huge_pages(false)?;
        memory.fill(0..24 * MIB / PAGE, 1);
        link.point()?;
        let (start, mut random, mut filled) = (Instant::now(), pattern::Random::new(3), 0);
        while start.elapsed() < end || filled < AT_LEAST {
            let page = random.below(memory.pages());
            memory.fill(page..page + 1, 2);
            filled += 1;
        }
        link.point()
    })?);
    children.iter_mut().try_for_each(Child::reach)?;
    children.iter_mut().try_for_each(Child::go_on)?;
    children.iter_mut().try_for_each(Child::reach)?;

    let sharing = device.counter("keys_sharing")?;
    ensure!(sharing == 0, "{sharing} cgroups share a stream");
    let (_, mixed) = keys(&device)?;
    ensure!(mixed == 0, "{mixed} zones hold pages of several cgroups");
    let rows = device.table("stream_table")?;
    for (i, group) in groups.iter().enumerate() {
        let id = group.id()?;
        let of_group = |row: &&Row| number(row, "key").is_ok_and(|key| key == id);
        let row = rows.iter().find(of_group).ok_or(format!("cgroup {id} has no stream"))?;
        let (stalls, gc) = (number(row, "stalls")?, number(row, "gc_blocks")?);
        ensure!(i == TENANTS || stalls == 0, "cgroup {id} waited {stalls} times for a zone");
        if i == TENANTS {
            print!("GC moved {gc} pages of the writer, which waited {stalls} times ... ");
            ensure!(gc > 0, "GC had nothing to do");
        }
    }
    for mut child in children {
        child.go_on()?;
        child.join()?;
    }
    device.end()
}

/// Reads pages at random for `time`; returns the sorted latencies in microseconds.
fn read_for(memory: &Memory, time: Duration) -> Outcome<Vec<u64>> {
    let (start, mut random) = (Instant::now(), pattern::Random::new(7));
    let mut took = Vec::new();
    while start.elapsed() < time {
        let page = random.below(memory.pages());
        let begin = Instant::now();
        memory.verify(page..page + 1, 1)?;
        let us = begin.elapsed().as_micros() as u64;
        // Faster ones were in memory.
        if us > 100 {
            took.push(us);
        }
    }
    took.sort_unstable();
    Ok(took)
}

const READER: usize = 16 * MIB;
const TIME: Duration = Duration::from_secs(12);

/// Reports the reader's latencies: median and 99 %, in microseconds.
fn reader(group: &Group, file: &str) -> Outcome<Child> {
    let file = file.to_string();
    spawn(Some(group), move |link| {
        let mut memory = Memory::new(READER)?;
        memory.huge_pages(false)?;
        memory.fill(0..READER / PAGE, 1);
        memory.page_out()?;
        link.point()?;
        let took = read_for(&memory, TIME)?;
        ensure!(took.len() > 100, "only {} pages were swapped in", took.len());
        let at = |percent: usize| took[took.len() * percent / 100];
        fs::write(&file, format!("{} {}", at(50), at(99))).context(&file)?;
        link.point()
    })
}

fn latencies(file: &str) -> Outcome<(u64, u64)> {
    let text = guest::read(file)?;
    let numbers: Vec<u64> = text.split(' ').filter_map(|w| w.parse().ok()).collect();
    ensure!(numbers.len() == 2, "{file}: {text}");
    Ok((numbers[0], numbers[1]))
}

/// One run of the reader, alone or beside a writer; returns its latencies. `then` checks the
/// groups before they end.
fn beside(writer: bool, then: impl FnOnce(&Group, &Group) -> Outcome) -> Outcome<(u64, u64)> {
    const FILE: &str = "/tmp/reader";
    let groups = [Group::new("reader", 8 << 20)?, Group::new("writer", 8 << 20)?];
    let mut reading = reader(&groups[0], FILE)?;
    reading.reach()?;
    let mut writing = spawn(Some(&groups[1]), |link| {
        let mut memory = Memory::new(28 * MIB)?;
        memory.huge_pages(false)?;
        if writer {
            memory.fill(0..28 * MIB / PAGE, 1);
        }
        link.point()?;
        let (start, mut random) = (Instant::now(), pattern::Random::new(3));
        while writer && start.elapsed() < TIME {
            let page = random.below(memory.pages());
            memory.fill(page..page + 1, 2);
        }
        link.point()
    })?;
    writing.reach()?;
    writing.go_on()?;
    reading.go_on()?;
    reading.reach()?;
    writing.reach()?;
    then(&groups[0], &groups[1])?;
    for mut child in [reading, writing] {
        child.go_on()?;
        child.join()?;
    }
    latencies(FILE)
}

/// The number of the device below in `io.stat`.
fn number_of(device: &Device) -> Outcome<String> {
    let name = device.backing.trim_start_matches("/dev/");
    Ok(guest::read(&format!("/sys/block/{name}/dev"))?.trim().to_string())
}

/// GC's writes are charged to the writer, none of them to the reader.
fn reader_beside_writer(_: &mut Log) -> Outcome {
    for policy in ["cpu", "cgroup"] {
        let device = Device::on(&guest::device(MAIN)?, &["--policy", policy])?;
        // GC works although the device is not half full, so that the reader's pages keep their
        // slots.
        let zones = device.counter("zones_total")?;
        for (file, value) in [("gc_high", zones / 2 + 1), ("gc_low", zones / 2)] {
            guest::write(&device.attribute(file), &value.to_string()).context(file)?;
        }
        let number = number_of(&device)?;
        let alone = beside(false, |_, _| Ok(()))?;
        let both = beside(true, |reader, writer| {
            if policy == "cpu" {
                return Ok(());
            }
            let gc = device.counter("gc_blocks")? * PAGE as u64;
            let all = gc + device.counter("host_blocks")? * PAGE as u64;
            let (r, w) = (reader.io(&number, "wbytes")?, writer.io(&number, "wbytes")?);
            print!(
                "reader wrote {} MiB, writer {} of {} MiB, GC {} MiB ... ",
                r >> 20,
                w >> 20,
                all >> 20,
                gc >> 20
            );
            ensure!(gc > 0, "GC had nothing to do");
            // Its own pages once, and its memory.
            ensure!(r <= 2 * READER as u64, "the reader wrote {r} bytes");
            ensure!(w >= gc, "the writer wrote {w} bytes, GC {gc}");
            Ok(())
        })?;
        print!(
            "{policy}: swap-in median {} us, beside a writer {}; 99 % {}, {} ... ",
            alone.0, both.0, alone.1, both.1
        );
        device.finish_sound()?;
    }
    Ok(())
}

/// A group with a low write limit on the device below. Kernels from 6.12 on do not throttle its
/// swap-out, which reclaim waits for; with a policy that does not isolate, none does, because
/// chunks hold pages of other groups, too.
fn limited(_: &mut Log) -> Outcome {
    const BYTES: usize = 4 * MIB;
    for policy in ["cpu", "cgroup"] {
        if policy == "cgroup" && guest::kernel() < (6, 12) {
            continue;
        }
        let device = Device::on(&guest::device(MAIN)?, &["--policy", policy])?;
        let number = number_of(&device)?;
        let group = Group::new("limited", 64 << 20)?;
        group.set("io.max", &format!("{number} wbps=4096"))?;
        let mut child = spawn(Some(&group), |link| {
            let mut memory = Memory::new(BYTES)?;
            memory.fill(0..BYTES / PAGE, 1);
            let start = Instant::now();
            memory.page_out()?;
            link.report(&[start.elapsed().as_millis() as u64])?;
            memory.verify(0..BYTES / PAGE, 1)
        })?;
        let [took] = child.numbers()?;
        let written = group.io(&number, "wbytes")?;
        print!("{policy}: {took} ms, {} KiB charged ... ", written >> 10);
        ensure!(took < 100_000, "its swap-out was throttled");
        let charged = if policy == "cpu" { 0 } else { BYTES as u64 };
        ensure!(written >= charged, "only {written} bytes are charged to it");
        ensure!(policy != "cpu" || written == 0, "{written} bytes are charged to it");
        child.join()?;
        device.finish_sound()?;
    }
    Ok(())
}
