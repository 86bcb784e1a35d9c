// SPDX-License-Identifier: GPL-2.0-only
//! Statistics of a device: they add up, tracepoints fire, and settings change all together
//! or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use super::devices::MAIN;
use crate::child::{spawn, Group, Link};
use crate::device::{znsage, znsage_json, Device};
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::load::Load;
use crate::memory::Memory;
use crate::outcome::{Context, Outcome};
use crate::pattern::PAGE;
use crate::table::{mounted, sum};

crate::cases![statistics:
    numbers_add_up (full), events_come (full), settings_change (full), scripts_answer (full),
    swap_in_is_accounted_below (each), reading_all_files_checks_nothing (each)];

const TRACEFS: &str = "/sys/kernel/tracing";

/// Full enough that GC has to work.
fn work(device: &Device) -> Outcome {
    let busy = "--utilization 75 --rewrites 0.5 --seconds 40 --warmup 1 --write-ratio 0.9";
    let arguments: Vec<&str> = busy.split(' ').collect();
    guest::without_read_ahead(|| device.bench(&arguments))?;
    ensure!(device.counter("gc_blocks")? > 0, "GC had nothing to do");
    Ok(())
}

/// Compares numbers that are read one after the other, while GC may be at work.
fn near(a: u64, b: u64) -> bool {
    a.abs_diff(b) <= 64
}

fn numbers_add_up(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    work(&device)?;
    let (appends, chunks) = (device.timed("swap_out")?, device.counter("chunks")?);
    ensure!(0 < appends && appends < chunks, "{appends} of {chunks} appends were timed");
    let (cleaned, resets) = (device.timed("gc")?, device.counter("zone_resets")?);
    ensure!(0 < cleaned && cleaned <= resets, "{cleaned} victims were timed, {resets} zones reset");

    // A read covers one block or more.
    let (reads, read) = (device.timed("swap_in")?, device.counter("read_blocks")?);
    ensure!(reads > 0, "no swap-in was timed");
    ensure!(read + 64 >= reads, "{reads} swap-ins, of {read} blocks");
    zones_add_up(&device)?;
    shown_by_status(&device)?;
    not_timed(&device)?;
    device.finish_sound()
}

fn zones_add_up(device: &Device) -> Outcome {
    let zones = device.zones()?;
    let total = device.counter("zones_total")?;
    ensure!(zones.len() as u64 == total, "{} of {total} zones are listed", zones.len());
    let (live, all) = (sum(&zones, "live")?, device.counter("live_blocks")?);
    ensure!(live.abs_diff(all) <= all / 10 + 64, "{live} live blocks in zones, {all} in all");
    let streams = device.table("stream_table")?;
    for column in ["host_blocks", "gc_blocks", "padding_blocks", "read_blocks"] {
        let (by_stream, all) = (sum(&streams, column)?, device.counter(column)?);
        ensure!(near(by_stream, all), "{column}: {by_stream} by streams, {all} in all");
    }
    Ok(())
}

fn shown_by_status(device: &Device) -> Outcome {
    let status = znsage_json(&["status", "--streams"])?;
    let shown = &status["devices"][0];
    let swap_in = &shown["latency"]["swap_in"];
    let times = ["p50_us", "p99_us", "p999_us"].map(|k| swap_in[k].as_f64().unwrap_or(0.0));
    ensure!(0.0 < times[0] && times[0] <= times[1] && times[1] <= times[2], "{swap_in}");
    let streams = shown["stream_table"].as_array().map_or(0, Vec::len) as u64;
    ensure!(streams >= device.counter("streams")?, "{streams} streams are shown");
    let zones = shown["zone_states"].as_object().ok_or("no states of zones")?;
    let zones: u64 = zones.values().filter_map(|n| n.as_u64()).sum();
    let total = device.counter("zones_total")?;
    ensure!(zones == total, "the states of {zones} zones of {total} are shown");
    let full = shown["live_histogram"].as_array().ok_or("no full zones")?;
    let full: u64 = full.iter().filter_map(|share| share["zones"].as_u64()).sum();
    ensure!(near(full, device.counter("zones_full")?), "{full} full zones in the histogram");
    let text = guest::ok(&["znsage", "status", "--streams"])?;
    for word in ["LATENCY", "swap-in", "zones:", "SWAPPED", "WRITTEN", "PADDING"] {
        ensure!(text.contains(word), "status does not tell {word}: {text}");
    }
    Ok(())
}

fn not_timed(device: &Device) -> Outcome {
    let path = device.attribute("time_reads");
    guest::write(&path, "0").context(&path)?;
    guest::refuses(&path, "perhaps", libc::EINVAL)?;
    let times =
        || -> Outcome<(u64, u64)> { Ok((device.timed("swap_in")?, device.timed("swap_out")?)) };
    let before = times()?;
    work(device)?;
    let after = times()?;
    // Reads may have been under way.
    ensure!(near(after.0, before.0), "{} reads were timed in spite of it", after.0 - before.0);
    ensure!(after.1 > before.1, "time_reads turned swap_out off, too");
    guest::write(&path, "1").context(&path)
}

/// An instance of tracefs for one event, with a small buffer; removed on drop.
pub(super) struct Listener {
    directory: String,
}

impl Listener {
    pub(super) fn new(event: &str) -> Outcome<Listener> {
        mounted("tracefs", TRACEFS, "instances")?;
        // Instances inherit this. To record the names of tasks, the kernel patches the
        // scheduler's code, and QEMU's emulation sometimes loops forever on that.
        let _nameless = guest::Setting::set(&format!("{TRACEFS}/options/record-cmd"), "0")?;
        let of = event.split('_').next().unwrap_or_default();
        let directory = format!("{TRACEFS}/instances/vm-suite-{event}");
        fs::create_dir(&directory).context(&directory)?;
        let listener = Listener { directory };
        listener.set("buffer_size_kb", "64")?;
        listener.set(&format!("events/{of}/{event}/enable"), "1")?;
        Ok(listener)
    }

    fn set(&self, file: &str, text: &str) -> Outcome {
        let path = format!("{}/{file}", self.directory);
        guest::write(&path, text).context(path)
    }

    /// The number of events, and the last one.
    pub(super) fn heard(&self) -> Outcome<(u64, String)> {
        let text = guest::read(&format!("{}/trace", self.directory))?;
        let written = text
            .lines()
            .find_map(|l| l.split("entries-written: ").nth(1)?.split('/').nth(1))
            .and_then(|l| l.split_whitespace().next()?.parse().ok());
        let last = text.lines().last().unwrap_or("").to_string();
        written.map(|n| (n, last)).ok_or(format!("no number of events in {}", self.directory))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.directory);
    }
}

fn events_come(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    let events = [
        ("znsage_swap_out", "slot="),
        ("znsage_swap_in", "slot="),
        ("znsage_swap_in_end", "error=0"),
        ("znsage_slot_free", "nr="),
        ("znsage_chunk_submit", "padding="),
        ("znsage_chunk_complete", "error=0"),
        ("znsage_gc_start", "capacity="),
        ("znsage_gc_move", "from="),
        ("znsage_gc_finish", "us="),
        ("znsage_zone_state", "to="),
        // Of the block layer: a read of the disk is one of the device below.
        ("block_bio_remap", " <- ("),
        // This event may be missing.
        ("znsage_wait", ""),
    ];
    let listeners =
        events.iter().map(|(name, _)| Listener::new(name)).collect::<Outcome<Vec<_>>>()?;
    work(&device)?;
    let mut heard = BTreeMap::new();
    for ((name, has), listener) in events.iter().zip(&listeners) {
        let (n, last) = listener.heard()?;
        ensure!(n > 0 || has.is_empty(), "{name} never came");
        ensure!(last.contains(has), "{name} says: {last}");
        heard.insert(*name, n);
    }
    let (begun, ended) = (heard["znsage_gc_start"], heard["znsage_gc_finish"]);
    ensure!(near(begun, ended), "{begun} victims begun, {ended} finished");
    let (out, back) = (heard["znsage_chunk_submit"], heard["znsage_chunk_complete"]);
    ensure!(near(out, back), "{out} appends went out, {back} came back");
    drop(listeners);
    device.finish_sound()
}

fn settings_change(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(MAIN)?, &["--policy", "cpu"])?;
    let high = device.counter("gc_high")? + 2;
    let words = ["policy=single", "victim=greedy", "deadline=2ms", &format!("gc-high={high}")];
    let changed = znsage_json(&[&["set", &device.name], &words[..]].concat())?;
    ensure!(changed["changed"].as_array().map_or(0, Vec::len) == 4, "changed: {changed}");
    let shown = znsage_json(&["status"])?["devices"][0].clone();
    ensure!(shown["policy"] == "single" && shown["victim"] == "greedy", "status: {shown}");
    ensure!(shown["deadline_us"] == 2000 && shown["gc_high"] == high, "status: {shown}");

    for (words, status, says) in [
        (["deadline=3ms", "policy=psychic"], 2, "single"),
        (["deadline=3ms", "victim=oldest"], 2, "greedy"),
        (["deadline=3ms", "gc-low=0"], 14, "gc-low: 0 is out of range"),
        (["policy=cpu", "gc-high=100000"], 14, "gc-high: 100000 is out of range"),
        (["policy=cpu", "deadline=2s"], 14, "100 us to 1 s"),
    ] {
        let ran = znsage(&[&["set"], &words[..]].concat())?;
        ensure!(ran.status == status, "{}: status {}: {}", words[1], ran.status, ran.said());
        ensure!(ran.stderr.contains(says), "{}: {}", words[1], ran.said());
        let now = znsage_json(&["status"])?["devices"][0].clone();
        for key in ["policy", "victim", "deadline_us", "gc_low", "gc_high"] {
            ensure!(now[key] == shown[key], "{}: {key} is {}", words[1], now[key]);
        }
    }
    device.finish_sound()
}

/// The scripts of trace/, while the device is at work.
fn scripts_answer(_: &mut Log) -> Outcome {
    // Debug kernels lack it, and without it bpftrace knows no types.
    if !guest::exists("/sys/kernel/btf/vmlinux") {
        print!("no type information ... ");
        return Ok(());
    }
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace");
    // Wait until the scripts have started, which takes a while, and have seen enough.
    let load = Load::start(2, 48 << 20, 16 << 20)?;
    let mut running = Vec::new();
    for (script, says) in [("who-waits", "Waited for swap-in"), ("gc-cost", "PER FREE")] {
        let script = trace.join(script).display().to_string();
        let child = guest::command(&[&script, &device.name, "10"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context(&script)?;
        running.push((script, says, child));
    }
    for (script, says, child) in running {
        let ran = guest::Ran::from(child.wait_with_output().context(&script)?);
        ensure!(ran.status == 0, "{script}: status {}: {}", ran.status, ran.said());
        ensure!(ran.stdout.contains(says), "{script}: {}", ran.said());
    }
    let tally = load.stop()?;
    ensure!(tally.failed == 0 && tally.lost == 0, "{tally:?}");
    device.finish_sound()
}

/// `io.stat` of the device below has both the number and the bytes of the reads.
fn swap_in_is_accounted_below(_: &mut Log) -> Outcome {
    const PAGES: usize = 256;
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    let below = device.backing.replace("/dev", "/sys/class/block");
    let number = guest::read(&format!("{below}/dev"))?;
    let group = Group::new("reader", 64 << 20)?;
    let swap_in = |_: &mut Link| {
        let mut memory = Memory::new(PAGES * PAGE)?;
        memory.fill(0..PAGES, 1);
        memory.page_out()?;
        memory.verify(0..PAGES, 1)
    };
    guest::without_read_ahead(|| spawn(Some(&group), swap_in)?.join())?;
    let (reads, bytes) = (group.io(&number, "rios")?, group.io(&number, "rbytes")?);
    ensure!(reads >= PAGES as u64 / 2, "{reads} reads of {number}");
    ensure!(bytes >= reads * PAGE as u64, "{reads} reads of {number}, and {bytes} bytes");
    device.finish_sound()
}

/// A check holds back all I/O: only a write to `check` begins one.
fn reading_all_files_checks_nothing(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    let directory = device.attribute("");
    let all = guest::ok(&["grep", "-r", ".", &directory])?;
    ensure!(all.lines().count() > 50, "too few files: {all}");
    ensure!(all.lines().any(|line| line.ends_with("/check:never")), "a check ran");
    let check = device.attribute("check");
    guest::refuses(&check, "0", libc::EINVAL)?;
    guest::write(&check, "1").context(&check)?;
    let found = guest::read(&check)?;
    ensure!(found == "ok", "the check found {found}");
    device.finish_sound()
}
