// SPDX-License-Identifier: GPL-2.0-only
//! One system on a modelled SSD. The drive was written over before; the measurement
//! begins when the system has written it over again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::swap::{device, memory, release, Swap};
use super::vmstat::Swapped;
use super::work::{measure, Work};
use crate::files::{read, write_json};
use crate::model::PAGE;
use crate::result::{Context, Result};
use crate::ssd::{Flash, Measured, OnDrive, System, Turn};

const LIMIT: u64 = 64 << 20;
const THREADS: u32 = 16;
/// The part of the limit that the compressed pages of zram or zswap may use.
const PACKED_MEMORY: u64 = 16 << 20;

/// Of the times that the area is written over before the measurement, the last part is at the
/// measurement's speed.
const SLOW_REWRITES: f64 = 0.1;
/// The part of the memory that the fill certainly writes, and with compression.
const FILL: f64 = 0.8;
const COMPRESSED_FILL: f64 = 0.3;
/// The measurement begins after this time in any case.
const PATIENCE_S: u32 = 900;
const SECONDS: u32 = 30;

pub fn run(out: &Path, turn: &Turn) -> Result<()> {
    let (node, drive) = Drive::of(&turn.on)?;
    let swap = on(&turn.on, &node)?;
    let of_zram = if turn.on.system == System::Zram { PACKED_MEMORY } else { 0 };
    let limit = LIMIT - of_zram;
    let mut arguments = vec![
        format!("--memory-limit={limit}"),
        format!("--threads={THREADS}"),
        "--seed=1".to_string(),
        format!("--size={}", memory(turn.used / PAGE, 100, LIMIT)),
        format!("--pattern={}", turn.pattern.name()),
        format!("--rewrites={}", turn.rewrites),
        format!("--compressible={}", turn.compressible),
        format!("--write-ratio={}", turn.write_ratio),
        format!("--warmup={PATIENCE_S}"),
        format!("--seconds={SECONDS}"),
    ];
    arguments.extend(turn.on.zswap.then(|| format!("--zswap-limit={PACKED_MEMORY}")));
    let work = Work { system: swap.system, phase: "ssd", arguments };
    let (measured, series) = drive.watched(&Hurry::of(turn), || measure(&work, out))?;
    let measured = measured?;
    measured.sound()?;
    let run = measured.run(turn.pattern.name(), "ssd")?;
    swap.off()?;
    let flash = window(&series, run.measured.seconds).ok_or("the counters were not renewed")?;
    let series = series.into_iter().map(|(_, flash)| flash).collect();
    let measured = Measured { kernel: release(), phase: run.measured, flash, series };
    write_json(&out.join("runs.json"), &measured)
}

/// Stock swap has the whole drive, with what was written there before.
pub fn on(drive: &OnDrive, device: &str) -> Result<Swap> {
    let zone = format!("--zone-size={}K", drive.zone_kib);
    let swap = match drive.system {
        System::Stock => Swap::stock_whole(device, &[]),
        System::Discard => Swap::stock_whole(device, &["--discard"]),
        System::Zram => Swap::zram(device, drive.drive, PACKED_MEMORY),
        System::Virtual => znsage(drive, device, &[&zone]),
        System::VirtualLz4 => znsage(drive, device, &[&zone, "--compress=lz4"]),
        System::Zones => znsage(drive, device, &[]),
        System::ZonesLz4 => znsage(drive, device, &["--compress=lz4"]),
        System::ZonesZstd => znsage(drive, device, &["--compress=zstd"]),
    }?;
    if drive.zswap {
        swap.behind_zswap()
    } else {
        Ok(swap)
    }
}

fn znsage(drive: &OnDrive, device: &str, options: &[&str]) -> Result<Swap> {
    let settings: Vec<String> = drive.settings.iter().map(|s| format!("--{s}")).collect();
    let settings = settings.iter().map(String::as_str);
    Swap::znsage(device, &options.iter().copied().chain(settings).collect::<Vec<_>>())
}

/// Counters, and when they were read.
type Series = Vec<(Instant, Flash)>;

/// How long the drive is not slowed down.
enum Hurry {
    /// Until so many blocks are written to it.
    Blocks(u64),
    /// Until so many pages are swapped out.
    Pages(u64),
}

impl Hurry {
    fn of(turn: &Turn) -> Hurry {
        let drive = turn.on.drive as f64;
        let slow = SLOW_REWRITES * drive;
        // The fill leaves some pages in memory.
        let fill =
            if turn.on.zswap || turn.on.system.compresses() { COMPRESSED_FILL } else { FILL };
        let pages = (fill * turn.used as f64 + turn.rewrites * drive - slow) as u64 / PAGE;
        // The benchmark counts pages swapped out, which zram and zswap keep in memory for a while.
        if turn.on.zswap || turn.on.system == System::Zram {
            Hurry::Pages(pages)
        } else {
            Hurry::Blocks(pages)
        }
    }

    fn ends(&self, done: &Flash) -> bool {
        match *self {
            Hurry::Blocks(blocks) => done.written >= blocks,
            Hurry::Pages(pages) => done.swapped_out >= pages,
        }
    }
}

pub struct Drive {
    counters: PathBuf,
    /// The drive is not slowed down as long as this file exists.
    hurry: PathBuf,
}

impl Drive {
    /// The node of the device, and the drive.
    pub fn of(on: &OnDrive) -> Result<(String, Drive)> {
        let name = if on.system.is_zoned() { "ZNS0" } else { "CONV0" };
        let drive = Drive {
            counters: device(&format!("{name}_COUNTERS"))?.into(),
            hurry: device(&format!("{name}_HURRY"))?.into(),
        };
        Ok((device(name)?, drive))
    }

    /// Whether the drive is as fast as it can.
    pub fn hurry(&self, wanted: bool) -> Result<()> {
        let hurry = &self.hurry;
        match (wanted, hurry.exists()) {
            (true, false) => fs::write(hurry, "").context(hurry.display()),
            (false, true) => fs::remove_file(hurry).context(hurry.display()),
            _ => Ok(()),
        }
    }

    /// Does the work, and reads the counters twice a second meanwhile.
    fn watched<T>(&self, hurry: &Hurry, work: impl FnOnce() -> T) -> Result<(T, Series)> {
        let done = AtomicBool::new(false);
        self.hurry(true)?;
        let start = self.look()?;
        thread::scope(|scope| {
            let watcher = scope.spawn(|| -> Result<Series> {
                let mut series = Vec::new();
                while !done.load(Ordering::Relaxed) {
                    let flash = self.look()?;
                    if hurry.ends(&flash.since(&start)) {
                        self.hurry(false)?;
                    }
                    series.push((Instant::now(), flash));
                    thread::sleep(Duration::from_millis(500));
                }
                Ok(series)
            });
            let result = work();
            done.store(true, Ordering::Relaxed);
            let series = watcher.join().map_err(|_| "the watcher of the counters died")??;
            Ok((result, series))
        })
    }

    pub fn look(&self) -> Result<Flash> {
        #[derive(serde::Deserialize)]
        struct Counters {
            written: u64,
            programmed: u64,
        }
        let counters = &self.counters;
        let Counters { written, programmed } =
            serde_json::from_str(&read(counters)?).context(counters.display())?;
        let swapped_out = Swapped::now()?.pages_out;
        Ok(Flash { swapped_out, written, programmed })
    }
}

/// The last so many seconds before the work's end.
fn window(series: &[(Instant, Flash)], seconds: f64) -> Option<Flash> {
    let (end, last) = series.last()?;
    let first = series.iter().find(|(at, _)| end.duration_since(*at).as_secs_f64() <= seconds)?;
    (last.swapped_out > first.1.swapped_out).then(|| last.since(&first.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_the_end_of_the_series() {
        let start = Instant::now();
        let at = |s: u64| {
            let flash = Flash { swapped_out: 10 * s, written: 20 * s, programmed: 30 * s };
            (start + Duration::from_secs(s), flash)
        };
        let series: Series = (0..=100).map(at).collect();
        let want = Flash { swapped_out: 400, written: 800, programmed: 1200 };
        assert_eq!(window(&series, 40.0), Some(want));
        assert_eq!(window(&series[..1], 40.0), None);
    }
}
