// SPDX-License-Identifier: GPL-2.0-only
//! znsage with and without compression, on a device that answers at once.

use std::path::Path;

use znsage::parsers::Phase;

use super::swap::{device, memory, status, Swap};
use super::work::{measure, threads, Work};
use crate::model::System;
use crate::result::Result;
use crate::vm::INSTRUCTIONS_PER_S;

/// Seconds of random reads: the warm-up, in which the pages that filling left in memory are
/// written once, and the measurement.
const SECONDS: (u32, u32) = (4, 4);

/// The share of the device that is filled without compression, in percent: less than half, so
/// that pages that are only read stay on it.
const PERCENT: u64 = 25;

/// Enough threads that one always has its page.
const THREADS: u32 = 16;

/// The share of a page that compression saves, unless pages are noise.
const COMPRESSIBLE: f64 = 0.6;

/// Memory is filled, then read at random. The numbers by the names of their figures.
pub fn measure_one(
    out: &Path,
    limit: u64,
    algorithm: &str,
    noise: bool,
) -> Result<Vec<(&'static str, f64)>> {
    let pages = if noise { "noise" } else { "pages that shrink" };
    eprintln!("[compression] {algorithm}, {pages}");
    let option = format!("--compress={algorithm}");
    let swap = Swap::znsage(&device("ZNS0")?, &[&option])?;
    let mut arguments = threads(limit, THREADS);
    arguments.push(format!("--size={}", memory(status()?.blocks_total, PERCENT, limit)));
    arguments.push(format!("--compressible={}", if noise { 0.0 } else { COMPRESSIBLE }));
    arguments.push("--write-ratio=0".to_string());
    arguments.push(format!("--warmup={}", SECONDS.0));
    arguments.push(format!("--seconds={}", SECONDS.1));
    let phase = format!("{algorithm}{}", if noise { "-noise" } else { "" });
    let measured = measure(&Work { system: System::Znsage, phase: &phase, arguments }, out)?;
    measured.sound()?;
    swap.off()?;
    let (fill, random) = (measured.run("fill", &phase)?, measured.run("random", &phase)?);
    let (read, written) = (random.measured.pages_swapped_in, random.measured.pages_swapped_out);
    if written * 50 > read {
        return Err(format!("{written} pages were swapped out beside {read} swapped in"));
    }
    numbers(&fill.measured, &random.measured, noise).ok_or_else(|| "no latencies".to_string())
}

/// Instructions are those of the guest's CPU: the program that fills the pages is among
/// them. While pages are read, the page that leaves memory is unchanged and is not written,
/// and the CPU is never idle, as many threads wait for their pages.
fn numbers(fill: &Phase, random: &Phase, noise: bool) -> Option<Vec<(&'static str, f64)>> {
    if noise {
        let device = fill.device?;
        let written = (device.host_blocks + device.padding_blocks) as f64;
        return Some(vec![("noise", written / fill.pages_swapped_out as f64)]);
    }
    Some(vec![
        ("out", fill.seconds * INSTRUCTIONS_PER_S / fill.pages_swapped_out as f64),
        ("in", random.seconds * INSTRUCTIONS_PER_S / random.pages_swapped_in as f64),
        ("tail", random.latency_us?.p99),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::phase;
    use znsage::parsers::Totals;

    #[test]
    fn numbers_are_for_each_page() {
        let mut fill = phase(System::Znsage, "fill", 0.0).measured;
        (fill.seconds, fill.pages_swapped_out) = (2.0, 1000);
        let mut random = phase(System::Znsage, "random", 1000.0).measured;
        (random.seconds, random.pages_swapped_in) = (1.0, 500);
        let want = [("out", 1e6), ("in", 1e6), ("tail", 7930.0)];
        assert_eq!(numbers(&fill, &random, false).unwrap(), want);
        fill.device = Some(Totals { host_blocks: 1200, padding_blocks: 50, ..Totals::default() });
        assert_eq!(numbers(&fill, &random, true).unwrap(), [("noise", 1.25)]);
    }
}
