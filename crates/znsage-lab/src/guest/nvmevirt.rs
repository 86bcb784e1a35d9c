// SPDX-License-Identifier: GPL-2.0-only
//! A drive of NVMeVirt, and what its flash is written: a probe on the function that all
//! commands to its flash go through counts them.

use std::path::Path;
use std::time::Duration;

use super::program::{call, eventually, set};
use crate::files::read;
use crate::result::{Context, Result};

const DEVICE: &str = "/dev/nvme0n1";
const TRACING: &str = "/sys/kernel/tracing";

/// Pages that its flash programs at once.
const PROGRAM: u64 = 8;

/// Its kinds of commands: by whom, and what. A copied page is a "no operation" unless it
/// fills what is programmed at once.
const HOST: u64 = 0;
const GC: u64 = 1;
const WRITE: u64 = 1;
const NOTHING: u64 = 3;

/// Makes the drive and writes it over once. Returns its node.
pub fn start(module: &str) -> Result<String> {
    let cpus = std::thread::available_parallelism().context("how many CPUs")?.get();
    let cpus = format!("cpus={},{}", cpus, cpus + 1);
    call("insmod", &[module, "memmap_start=4G", "memmap_size=513M", &cpus])?;
    let there = || Path::new(DEVICE).exists().then_some(());
    eventually(Duration::from_secs(30), there).ok_or("NVMeVirt has not made a device")?;
    if !Path::new(&format!("{TRACING}/kprobe_events")).exists() {
        call("mount", &["-t", "tracefs", "tracefs", TRACING])?;
    }
    let probe = "p:flash ssd_advance_nand by=+0(%si):s32 what=+4(%si):s32";
    set(&format!("{TRACING}/kprobe_events"), probe)?;
    set(&format!("{TRACING}/events/kprobes/flash/trigger"), "hist:keys=by,what")?;
    let into = format!("of={DEVICE}");
    // It ends at the end of the device, with an error.
    let _ = call("dd", &["if=/dev/zero", &into, "bs=1M", "oflag=direct"]);
    Ok(DEVICE.to_string())
}

/// Blocks that the host wrote, and that the flash was written, since the start.
pub fn counters() -> Result<(u64, u64)> {
    let counts = read(Path::new(&format!("{TRACING}/events/kprobes/flash/hist")))?;
    let stat = read(Path::new("/sys/block/nvme0n1/stat"))?;
    let sectors: u64 =
        stat.split_whitespace().nth(6).and_then(|n| n.parse().ok()).ok_or("no sectors written")?;
    Ok((sectors / 8, programmed(&counts)))
}

/// Lines such as `{ by:          0, what:          1 } hitcount:       8431`.
fn programmed(counts: &str) -> u64 {
    let number = |line: &str, key: &str| -> Option<u64> {
        let rest = line.split_once(key)?.1.trim_start();
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    let pages = |line: &str| {
        let n = number(line, "hitcount:")?;
        match (number(line, "by:")?, number(line, "what:")?) {
            (HOST, WRITE) => Some(n * PROGRAM),
            (GC, WRITE | NOTHING) => Some(n),
            _ => None,
        }
    };
    counts.lines().filter_map(pages).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_erasures_do_not_count() {
        let counts = "# event histogram\n\
            { by:          0, what:          0 } hitcount:       1000\n\
            { by:          0, what:          1 } hitcount:         10\n\
            { by:          1, what:          1 } hitcount:          3\n\
            { by:          1, what:          2 } hitcount:        500\n\
            { by:          1, what:          3 } hitcount:         21\n\nTotals:\n    Hits: 1534\n";
        assert_eq!(programmed(counts), 80 + 24);
    }
}
