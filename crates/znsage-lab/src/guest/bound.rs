// SPDX-License-Identifier: GPL-2.0-only
//! Devices that are slower than the CPU: null_blk with a fixed bandwidth. fio measures the
//! bandwidth, and znsage should reach it. With compression, znsage gets half of the bandwidth.

use std::path::Path;

use serde::Deserialize;
use znsage_guest::null_blk::{self, NullBlk};

use super::program::call;
use super::swap::{self, Swap};
use super::work::{measure as bench, Work};
use crate::course::steady_written;
use crate::figures::Numbers;
use crate::model::{Run, MIB};
use crate::result::{Context, Result};

const SIZE_MIB: u64 = 384;
const ZONE_MIB: u64 = 4;

/// The throttle hands out a fiftieth of this every 20 ms: two appends of 256 KiB with
/// little left over, 25 MiB/s.
const MBPS: u64 = 26;

/// About eight seconds' worth.
const WRITE_MIB: u64 = 200;
const LIMIT_MIB: u64 = 64;

/// fio writes to as many zones at a time as znsage has streams, one a CPU.
const JOBS: u64 = 1;

/// One append every 20 ms, so that the CPU has time to compress more than the device takes.
const COMPRESSED_MBPS: u64 = MBPS / 2;

/// The share of each page that repeats: the page shrinks to 0.32, as pages of gcc do.
const COMPRESSIBLE: &str = "0.69";

fn device(zoned: bool, mbps: u64) -> Result<NullBlk> {
    let [size, zone, jobs, mbps] = [SIZE_MIB, ZONE_MIB, JOBS, mbps].map(|n| n.to_string());
    let zones = [("zoned", "1"), ("zone_size", zone.as_str())];
    let common = [("size", size.as_str()), ("submit_queues", &jobs), ("mbps", &mbps)];
    NullBlk::new(&[&common[..], if zoned { &zones } else { &[] }].concat())
}

pub fn measure(out: &Path, rounds: u32, numbers: &mut Numbers) -> Result<()> {
    let device = device(true, MBPS)?;
    // fio's requests are as large as znsage's appends.
    let swap = Swap::znsage(&device.node(), &[])?;
    let chunk = swap::status()?.chunk_bytes;
    swap.off()?;
    for round in 0..rounds {
        eprintln!("[throttled device, round {} of {rounds}]", round + 1);
        numbers.others.push(fio(&device.node(), chunk)?);
        let run = fill(Swap::znsage(&device.node(), &[])?, &[], out)?;
        // While the device was always busy, what it acknowledged.
        numbers.ours.push(steady_written(&run.course).ok_or("too short to measure")?);
        eprintln!("  MiB/s written: {numbers:.2?}");
    }
    // Its data is memory of the guest.
    null_blk::remove_all();
    Ok(())
}

/// The pages that are swapped out, to devices of the same bandwidth.
pub fn measure_compressed(out: &Path, rounds: u32, numbers: &mut Numbers) -> Result<()> {
    for round in 0..rounds {
        eprintln!("[throttled device, compressed, round {} of {rounds}]", round + 1);
        for (zoned, to) in [(false, &mut numbers.others), (true, &mut numbers.ours)] {
            let device = device(zoned, COMPRESSED_MBPS)?;
            let swap = match zoned {
                false => Swap::stock_whole(&device.node(), &[])?,
                true => Swap::znsage(&device.node(), &["--compress=lz4"])?,
            };
            let run = fill(swap, &["--compressible", COMPRESSIBLE], out)?;
            to.push(run.measured.swap_out_mib_per_s);
        }
        eprintln!("  MiB/s swapped out: {numbers:.2?}");
    }
    // Its data is memory of the guest.
    null_blk::remove_all();
    Ok(())
}

/// Fills memory, so that pages go out in sequence.
fn fill(swap: Swap, options: &[&str], out: &Path) -> Result<Run> {
    let mut arguments = vec![
        "--fill-only".to_string(),
        "--threads=4".to_string(),
        format!("--memory-limit={LIMIT_MIB}M"),
        format!("--size={}M", LIMIT_MIB + WRITE_MIB),
    ];
    arguments.extend(options.iter().map(ToString::to_string));
    let work = Work { system: swap.system, phase: "bound", arguments };
    let run = bench(&work, out)?.run("fill", "bound")?;
    swap.off()?;
    Ok(run)
}

/// Writes to the zones in sequence with O_DIRECT.
fn fio(device: &str, chunk: u64) -> Result<f64> {
    let share = WRITE_MIB / JOBS / ZONE_MIB * ZONE_MIB;
    let text = call(
        "fio",
        &[
            "--name=zones",
            &format!("--filename={device}"),
            "--rw=write",
            "--direct=1",
            "--zonemode=zbd",
            "--ioengine=psync",
            &format!("--bs={chunk}"),
            &format!("--numjobs={JOBS}"),
            &format!("--size={share}M"),
            &format!("--offset_increment={share}M"),
            "--group_reporting",
            "--output-format=json",
        ],
    )?;
    parse_fio(&text)
}

fn parse_fio(text: &str) -> Result<f64> {
    #[derive(Deserialize)]
    struct Document {
        jobs: Vec<Job>,
    }
    #[derive(Deserialize)]
    struct Job {
        write: Write,
    }
    #[derive(Deserialize)]
    struct Write {
        bw_bytes: f64,
    }
    // fio may print notes before the document.
    let json = text.find('{').map_or("", |at| &text[at..]);
    let document: Document = serde_json::from_str(json).context("fio")?;
    let job = document.jobs.first().ok_or("fio reports no job")?;
    Ok(job.write.bw_bytes / MIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fio_output_is_parsed() {
        let text = "note: something\n{\"jobs\": [{\"write\": {\"bw_bytes\": 26214400, \"x\": 1}}]}";
        assert_eq!(parse_fio(text), Ok(25.0));
        assert!(parse_fio("no document").is_err());
    }
}
