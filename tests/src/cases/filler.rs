// SPDX-License-Identifier: GPL-2.0-only
//! `--keep-slots`: a second area, which holds nothing, keeps less than half of all slots in use.

use std::fs;
use std::thread;

use super::devices::{MAIN, TIGHT};
use crate::child::GROUPS;
use crate::device::{bench, Device};
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::null_blk::NullBlk;
use crate::outcome::Outcome;

crate::cases![filler: writes_less (full), not_above_half_of_a_cgroup (full), comes_last (more)];

/// The beginning of the name of `znsage bench`'s cgroup.
const BENCH: &str = "znsage-bench-";

/// Pages written for each page read back, of memory that is read much more often than written, with
/// 70 % of the area in use.
fn written(options: &[&str]) -> Outcome<f64> {
    let device = Device::on(&guest::device(MAIN)?, options)?;
    let written = written_to(&device)?;
    device.finish_sound()?;
    Ok(written)
}

fn written_to(device: &Device) -> Outcome<f64> {
    let accesses = ["--pattern", "zipf", "--write-ratio", "0.05", "--utilization", "70"];
    let times = ["--warmup", "5", "--seconds", "10"];
    let bench = guest::without_read_ahead(|| device.bench(&[&accesses[..], &times].concat()))?;
    Ok(bench.swapped_out() as f64 / bench.swapped_in() as f64)
}

fn writes_less(_: &mut Log) -> Outcome {
    let (without, with) = (written(&[])?, written(&["--keep-slots"])?);
    print!("{without:.2} pages written for each read, {with:.2} with a filler ... ");
    ensure!(without > 0.8, "unchanged pages are kept without a filler");
    ensure!(with < without / 3.0, "unchanged pages are written with a filler");
    Ok(())
}

/// Limits the swap of the benchmark's cgroup as soon as that is there. The limit is `memory.swap.high`, because the
/// benchmark sets `memory.swap.max` itself once it has made the cgroup.
fn limit_swap(bytes: u64) -> Outcome {
    let limited = guest::eventually(60.0, || {
        let groups = fs::read_dir(GROUPS).into_iter().flatten().flatten();
        let bench = |group: &fs::DirEntry| group.file_name().to_string_lossy().starts_with(BENCH);
        let found = groups.filter(bench).map(|group| group.path().join("memory.swap.high")).next();
        found.is_some_and(|file| fs::write(file, bytes.to_string()).is_ok())
    });
    ensure!(limited, "the benchmark's cgroup does not appear");
    Ok(())
}

/// A cgroup that uses more than half of its swap limit gives up slots, even so.
fn not_above_half_of_a_cgroup(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(MAIN)?, &["--keep-slots"])?;
    // It will use 70 % of the area, and so of its limit.
    let size = area(&device.node())?;
    let written = thread::scope(|scope| {
        let limit = scope.spawn(move || limit_swap(size));
        let written = written_to(&device);
        limit.join().map_err(|_| "the thread that limits swap died")??;
        written
    })?;
    device.finish_sound()?;
    print!("{written:.2} pages written for each read ... ");
    ensure!(written > 0.8, "unchanged pages are kept above half of the cgroup's limit");
    Ok(())
}

/// The size of a swap area in bytes.
fn area(node: &str) -> Outcome<u64> {
    let text = guest::read("/proc/swaps")?;
    let line = text.lines().find(|l| l.starts_with(&format!("{node} ")));
    let kib = line.and_then(|l| l.split_whitespace().nth(2)?.parse::<u64>().ok());
    Ok(kib.ok_or(format!("/proc/swaps has no size of {node}"))? << 10)
}

/// The kernel fills all of the device, and then another area, before it takes the filler: it would
/// log that it cannot write there, which fails the case.
fn comes_last(_: &mut Log) -> Outcome {
    // What the bench may keep in memory, and what has no room in the device then.
    const MEMORY: u64 = 20 << 20;
    const MORE: u64 = 8 << 20;
    let device = Device::on(&guest::device(TIGHT)?, &["--keep-slots", "--priority", "10"])?;
    let null = NullBlk::conventional(&[("size", "32")])?;
    guest::ok(&["mkswap", &null.node()])?;
    guest::ok(&["swapon", "-p", "0", &null.node()])?;
    let size = area(&device.node())? + MEMORY + MORE;
    bench(&["--fill-only", "--size", &size.to_string()])?;
    guest::ok(&["swapoff", &null.node()])?;
    drop(null);
    device.finish_sound()?;
    refuses()
}

/// The filler keeps the header of a swap area and nothing else.
fn refuses() -> Outcome {
    let backing = guest::device(MAIN)?;
    let device = Device::attach(&backing, &[("keep_slots", "1"), ("force", "1")])?;
    let filler = format!("{}-filler", device.node());
    ensure!(guest::eventually(10.0, || guest::exists(&filler)), "{filler} does not appear");
    guest::ok(&["mkswap", &filler])?;
    let kind = guest::ok(&["blkid", "-p", "-o", "value", "-s", "TYPE", &filler])?;
    ensure!(kind == "swap\n", "{filler} has {kind:?}");
    let into = format!("of={filler}");
    let page = ["dd", "if=/dev/urandom", &into, "bs=4096", "seek=1", "count=1", "oflag=direct"];
    ensure!(guest::run(&page)?.status != 0, "{filler} took a page");
    device.end()
}
