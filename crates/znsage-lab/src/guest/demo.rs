// SPDX-License-Identifier: GPL-2.0-only
//! The demo: on each system the fill, then random access at 40 % and at 80 %.

use std::path::Path;

use super::swap::{self, memory, Swap};
use super::work::{measure, Work};
use crate::files::write_json;
use crate::model::{Demo, System, PAGE, PHASES};
use crate::result::Result;

const LIMIT: u64 = 64 << 20;
const THREADS: u32 = 4;

/// Seconds of random access: the warm-up, and the measurement. At 80 % the warm-up uses
/// up the empty zones, so that GC runs throughout the measurement.
const SECONDS_40: (u32, u32) = (5, 20);
const SECONDS_80: (u32, u32) = (12, 30);

pub fn run(out: &Path) -> Result<()> {
    // Both systems get swap areas and memory of one size.
    let offered = swap::offered(&swap::device("ZNS0")?)?;
    let number = offered.blocks_total;
    let mut demo = Demo { device_bytes: number * PAGE, ..Demo::default() };
    let steps = System::BOTH.len() * PHASES.len();
    for system in System::BOTH {
        let swap = Swap::on(system, offered.size_bytes)?;
        for (phase, title) in PHASES {
            eprintln!("[{}/{steps}] {}: {title}", demo.runs.len() + 1, system.name());
            let work = Work { system, phase, arguments: arguments(phase, number) };
            let name = if phase == "fill" { "fill" } else { "random" };
            let measured = measure(&work, out)?;
            let mut run = measured.run(name, phase)?;
            // Corrupt pages of the phases that are not shown count, too.
            run.measured.corrupt_pages = measured.report.corrupt_pages;
            demo.kernel = measured.report.kernel;
            demo.runs.push(run);
        }
        swap.off()?;
    }
    write_json(&out.join("runs.json"), &demo)
}

fn arguments(phase: &str, blocks: u64) -> Vec<String> {
    let percent = if phase == "random40" { 40 } else { 80 };
    let size = memory(blocks, percent, LIMIT);
    let mut list = vec!["--size".to_string(), size.to_string()];
    let mut add = |option: &str, value: String| list.extend([option.to_string(), value]);
    add("--memory-limit", LIMIT.to_string());
    add("--threads", THREADS.to_string());
    add("--seed", "1".to_string());
    let (warmup, seconds) = if percent == 40 { SECONDS_40 } else { SECONDS_80 };
    add("--warmup", warmup.to_string());
    add("--seconds", seconds.to_string());
    if phase == "fill" {
        list.push("--fill-only".to_string());
    }
    if phase == "random80" {
        list.push("--verify".to_string());
    }
    list
}
