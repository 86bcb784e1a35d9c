// SPDX-License-Identifier: GPL-2.0-only
//! znsage with and without compression, on a device that answers at once.

use std::path::Path;

use super::swap::{device, memory, status, Swap};
use super::work::{measure, threads, Work};
use crate::compress::{Algorithm, Measured};
use crate::model::System;
use crate::result::Result;

/// Seconds of random reads: the warm-up, and the measurement.
const SECONDS: (u32, u32) = (1, 4);

/// Of the device, without compression: less than half, so that pages that are only read stay on it.
const PERCENT: u64 = 25;

/// So many that one always has its page.
const THREADS: u32 = 16;

/// The share of a page that compression takes away, unless pages are noise.
const COMPRESSIBLE: f64 = 0.6;

pub fn measure_one(out: &Path, limit: u64, algorithm: Algorithm, noise: bool) -> Result<Measured> {
    let option = format!("--compress={}", algorithm.name());
    let swap = Swap::znsage(&device("ZNS0")?, &[&option])?;
    let mut arguments = threads(limit, THREADS);
    arguments.push(format!("--size={}", memory(status()?.blocks_total, PERCENT, limit)));
    arguments.push(format!("--compressible={}", if noise { 0.0 } else { COMPRESSIBLE }));
    arguments.push("--write-ratio=0".to_string());
    arguments.push(format!("--warmup={}", SECONDS.0));
    arguments.push(format!("--seconds={}", SECONDS.1));
    let phase = format!("{}{}", algorithm.name(), if noise { "-noise" } else { "" });
    let measured = measure(&Work { system: System::Znsage, phase: &phase, arguments }, out)?;
    measured.sound()?;
    swap.off()?;
    Ok(Measured {
        algorithm,
        noise,
        fill: measured.run("fill", &phase)?,
        random: measured.run("random", &phase)?,
    })
}
