// SPDX-License-Identifier: GPL-2.0-only
//! `--keep-slots`: a second area, which holds nothing, keeps less than half of all slots in use.

use super::devices::MAIN;
use crate::device::{bench, Device};
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::null_blk::NullBlk;
use crate::outcome::Outcome;

crate::cases![filler: writes_less (more), comes_last];

/// Pages written for each page read back, of memory that is read much more often than written, with
/// 70 % of the area in use.
fn written(options: &[&str]) -> Outcome<f64> {
    let device = Device::on(&guest::device(MAIN)?, options)?;
    let accesses = ["--pattern", "zipf", "--write-ratio", "0.05", "--utilization", "70"];
    let times = ["--warmup", "5", "--seconds", "10"];
    let bench = guest::without_read_ahead(|| device.bench(&[&accesses[..], &times].concat()))?;
    device.finish_sound()?;
    Ok(bench.swapped_out() as f64 / bench.swapped_in() as f64)
}

fn writes_less(_: &mut Log) -> Outcome {
    let (without, with) = (written(&[])?, written(&["--keep-slots"])?);
    print!("{without:.2} pages written for each read, {with:.2} with a filler ... ");
    ensure!(without > 0.8, "unchanged pages are kept without a filler");
    ensure!(with < without / 3.0, "unchanged pages are written with a filler");
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
    let device = Device::on(&guest::device(MAIN)?, &["--keep-slots", "--priority", "10"])?;
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
