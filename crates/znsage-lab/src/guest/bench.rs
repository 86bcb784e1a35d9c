// SPDX-License-Identifier: GPL-2.0-only
//! The measurements behind the figures; bench/README.md explains each.

use std::path::Path;

use super::program::call;
use super::swap::{self, memory, release, status, Status, Swap};
use super::work::{common, measure, Work};
use super::{bound, compress};
use crate::compress::Algorithm;
use crate::figures::{select, Amplification, Collection, Figure, Maps, Measurements};
use crate::files::write_json;
use crate::model::{Run, System};
use crate::result::Result;

const LIMIT: u64 = 64 << 20;

/// Seconds of random access: the warm-up, at 80 % until GC runs, and the measurement.
const SECONDS_40: (u32, u32) = (2, 5);
const SECONDS_80: (u32, u32) = (5, 5);

/// Without GC: the measurement must end before the larger device is full.
const SECONDS_WITHOUT_GC: (u32, u32) = (1, 3);

/// The over-provisioning, in percent, that makes znsage use all zones of the larger
/// device for a swap area of the smaller one's size.
const LARGE_OVER_PROVISIONING: u32 = 55;

/// Attempts at a measurement that the emulator disturbs.
const ATTEMPTS: u32 = 8;

/// The device is rewritten this many times before the WAF is measured, and again while it
/// is. A slow machine stops after `PATIENCE` seconds.
const REWRITES: f64 = 2.5;
const PATIENCE: u32 = 180;

pub fn run(out: &Path, figures: &[String], rounds: u32) -> Result<()> {
    let figures = select(figures)?;
    let offered = swap::offered(&swap::device("ZNS0")?)?;
    let mut lab = Lab { out, area: offered.size_bytes, measured: Measurements::default() };
    lab.maps(&offered);
    // A figure that fails does not keep the others from being measured.
    let done = lab.compare(&figures, rounds);
    lab.note("the comparison with stock swap", done);
    for &figure in &figures {
        if let Some((utilization, over_provisioning)) = figure.waf_setting() {
            let done = lab.amplification(utilization, over_provisioning);
            lab.note(&figure.title(), done);
        }
    }
    let done = lab.compressed(&figures);
    lab.note("compression", done);
    if figures.contains(&Figure::GcCost) {
        let done = lab.collections(rounds);
        lab.note(&Figure::GcCost.title(), done);
    }
    if figures.contains(&Figure::DeviceBound) {
        let done = bound::measure(out, rounds, &mut lab.measured.bound);
        lab.note(&Figure::DeviceBound.title(), done);
    }
    if figures.contains(&Figure::CompressedBound) {
        let done = bound::measure_compressed(out, rounds, &mut lab.measured.bound);
        lab.note(&Figure::CompressedBound.title(), done);
    }
    write_json(&out.join("runs.json"), &lab.measured)
}

struct Lab<'a> {
    out: &'a Path,
    /// Bytes of the swap area of either system.
    area: u64,
    measured: Measurements,
}

impl Lab<'_> {
    fn note(&mut self, what: &str, done: Result<()>) {
        if let Err(message) = done {
            eprintln!("  {message}");
            self.measured.problems.push(format!("{what}: {message}"));
        }
    }

    fn maps(&mut self, offered: &Status) {
        self.measured.kernel = release();
        self.measured.map =
            Some(Maps { map_bytes: offered.map_bytes, blocks_total: offered.blocks_total });
    }

    fn compare(&mut self, figures: &[Figure], rounds: u32) -> Result<()> {
        for round in 0..rounds {
            // The systems take turns in being first.
            let mut systems = System::BOTH;
            systems.rotate_left(round as usize % 2);
            for &figure in figures.iter().filter(|f| f.ratio_phase().is_some()) {
                eprintln!("[round {} of {rounds}] {}", round + 1, figure.title());
                for system in systems {
                    let run = self.undisturbed(|lab| lab.one(system, figure))?;
                    self.measured.runs.push(run);
                }
            }
        }
        Ok(())
    }

    /// Measures again if the emulator lost a device's command meanwhile: the guest waited
    /// until that timed out.
    fn undisturbed<T>(&self, work: impl Fn(&Self) -> Result<T>) -> Result<T> {
        for _ in 0..ATTEMPTS {
            let before = timeouts()?;
            let run = work(self)?;
            if timeouts()? == before {
                return Ok(run);
            }
            eprintln!("  the emulator lost a command; once more");
        }
        Err(format!("the emulator lost commands in {ATTEMPTS} attempts"))
    }

    fn one(&self, system: System, figure: Figure) -> Result<Run> {
        let swap = Swap::on(system, self.area)?;
        let mut arguments = common(LIMIT);
        let phase = match figure {
            Figure::Seq => {
                arguments.extend([self.size(80), "--fill-only".to_string()]);
                "fill"
            }
            _ => {
                let (percent, (warmup, seconds)) = match figure {
                    Figure::Random40 => (40, SECONDS_40),
                    _ => (80, SECONDS_80),
                };
                arguments.push(self.size(percent));
                arguments.push(format!("--warmup={warmup}"));
                arguments.push(format!("--seconds={seconds}"));
                "random"
            }
        };
        let work = Work { system, phase: &figure.name(), arguments };
        let measured = measure(&work, self.out)?;
        measured.sound()?;
        swap.off()?;
        measured.run(phase, figure.ratio_phase().unwrap_or(phase))
    }

    /// The cost of GC: the same accesses at 80 % of a device, and in a swap area of the
    /// same size on a device twice as large.
    fn collections(&mut self, rounds: u32) -> Result<()> {
        for round in 0..rounds {
            eprintln!("[round {} of {rounds}] {}", round + 1, Figure::GcCost.title());
            let swap = Swap::znsage(&swap::device("ZNS1")?, &[])?;
            let Status { size_bytes, blocks_total, .. } = status()?;
            swap.off()?;
            let size = memory(blocks_total, 80, LIMIT);
            let area = format!("--size={size_bytes}");
            let over_provisioned = format!("--over-provisioning={LARGE_OVER_PROVISIONING}");
            let with = self.undisturbed(|lab| lab.collect("ZNS1", &[&area], size, SECONDS_80))?;
            let options = [area.as_str(), &over_provisioned];
            let without =
                self.undisturbed(|lab| lab.collect("ZNS0", &options, size, SECONDS_WITHOUT_GC))?;
            self.measured.gc.push(Collection { with, without });
        }
        Ok(())
    }

    fn collect(
        &self,
        device: &str,
        options: &[&str],
        size: u64,
        seconds: (u32, u32),
    ) -> Result<Run> {
        let swap = Swap::znsage(&swap::device(device)?, options)?;
        let mut arguments = common(LIMIT);
        arguments.push(format!("--size={size}"));
        arguments.push(format!("--warmup={}", seconds.0));
        arguments.push(format!("--seconds={}", seconds.1));
        let work = Work { system: System::Znsage, phase: "gc", arguments };
        let measured = measure(&work, self.out)?;
        measured.sound()?;
        swap.off()?;
        let run = measured.run("random", "gc")?;
        let moved = run.measured.device.map_or(0, |d| d.gc_blocks);
        if (moved > 0) != (device == "ZNS1") {
            return Err(format!("GC moved {moved} pages on {device}"));
        }
        Ok(run)
    }

    /// Each setting that a figure compares, and the same without compression.
    fn compressed(&mut self, figures: &[Figure]) -> Result<()> {
        let mut settings: Vec<(Algorithm, bool)> = figures
            .iter()
            .filter_map(|figure| match figure {
                Figure::Compression(compressed) => Some(compressed.setting()),
                _ => None,
            })
            .flat_map(|(algorithm, noise)| [(algorithm, noise), (Algorithm::Off, noise)])
            .collect();
        settings.sort();
        settings.dedup();
        for (algorithm, noise) in settings {
            let pages = if noise { "noise" } else { "pages that shrink" };
            eprintln!("[compression] {}, {pages}", algorithm.name());
            let found =
                self.undisturbed(|lab| compress::measure_one(lab.out, LIMIT, algorithm, noise))?;
            self.measured.compressed.push(found);
        }
        Ok(())
    }

    fn size(&self, percent: u64) -> String {
        let blocks = self.measured.map.map_or(0, |m| m.blocks_total);
        format!("--size={}", memory(blocks, percent, LIMIT))
    }

    fn amplification(&mut self, utilization: u64, over_provisioning: u64) -> Result<()> {
        eprintln!("[WAF at {utilization} %] over-provisioning {over_provisioning} %");
        let device = swap::device("ZNS1")?;
        let swap = Swap::znsage(&device, &[&format!("--over-provisioning={over_provisioning}")])?;
        let mut arguments = common(LIMIT);
        arguments.push(format!("--utilization={utilization}"));
        arguments.push("--write-ratio=1".to_string());
        arguments.push(format!("--rewrites={REWRITES}"));
        arguments.push(format!("--warmup={PATIENCE}"));
        arguments.push(format!("--seconds={PATIENCE}"));
        let phase = format!("waf{utilization}");
        let work = Work { system: System::Znsage, phase: &phase, arguments };
        let measured = measure(&work, self.out)?;
        measured.sound()?;
        self.measured.waf.push(Amplification {
            utilization_percent: utilization,
            over_provisioning_percent: over_provisioning,
            run: measured.run("random", &phase)?,
        });
        swap.off()
    }
}

/// Commands of NVMe devices that timed out since the boot.
fn timeouts() -> Result<usize> {
    let log = call("dmesg", &[])?;
    Ok(log.lines().filter(|l| l.contains(" nvme") && l.contains(" timeout, ")).count())
}
