// SPDX-License-Identifier: GPL-2.0-only
//! The measurements behind the figures; bench/README.md explains each.

use std::path::Path;

use super::program::call;
use super::swap::{self, memory, release, status, Status, Swap};
use super::work::{common, measure, Work};
use super::{bound, compress};
use crate::figures::{select, Figure, Measurements};
use crate::files::write_json;
use crate::model::{Run, System};
use crate::result::Result;
use crate::vm::INSTRUCTIONS_PER_S;

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

/// The over-provisioning, in percent, of the fullest device whose WAF is measured, and of
/// the others.
const SPARE: (u32, u32) = (7, 12);

pub fn run(out: &Path, figures: &[String], rounds: u32) -> Result<()> {
    let figures = select(figures)?;
    let offered = swap::offered(&swap::device("ZNS0")?)?;
    let mut measured = Measurements { kernel: release(), ..Measurements::default() };
    let Status { map_bytes, blocks_total, .. } = offered;
    let note = format!("{map_bytes} bytes for {blocks_total} pages");
    measured.add("map", (map_bytes as f64 / blocks_total as f64, note));
    let mut lab = Lab { out, rounds, offered, measured };
    // A figure that fails does not keep the others from being measured.
    for figure in &figures {
        let done = match figure.name.as_str() {
            "seq" => lab.compare(figure, 80, None),
            "random40" => lab.compare(figure, 40, Some(SECONDS_40)),
            "random80" => lab.compare(figure, 80, Some(SECONDS_80)),
            "gc" => lab.collections(figure),
            "bound" => bound::measure(out, rounds, lab.measured.of("bound")),
            "bound-lz4" => bound::measure_compressed(out, rounds, lab.measured.of("bound-lz4")),
            name => match name.strip_prefix("waf").and_then(|percent| percent.parse().ok()) {
                Some(utilization) => lab.amplification(figure, utilization),
                None => Ok(()),
            },
        };
        lab.note(&figure.title, done);
    }
    let done = lab.compressed(&figures);
    lab.note("compression", done);
    write_json(&out.join("runs.json"), &lab.measured)
}

struct Lab<'a> {
    out: &'a Path,
    rounds: u32,
    /// What znsage offers on ZNS0: stock swap has an area of the same size.
    offered: Status,
    measured: Measurements,
}

impl Lab<'_> {
    fn note(&mut self, what: &str, done: Result<()>) {
        if let Err(message) = done {
            eprintln!("  {message}");
            self.measured.problems.push(format!("{what}: {message}"));
        }
    }

    /// Memory is filled, and then accessed for these seconds.
    fn compare(
        &mut self,
        figure: &Figure,
        percent: u64,
        seconds: Option<(u32, u32)>,
    ) -> Result<()> {
        for round in 0..self.rounds {
            eprintln!("[round {} of {}] {}", round + 1, self.rounds, figure.title);
            // The systems take turns in being first.
            let mut systems = System::BOTH;
            systems.rotate_left(round as usize % 2);
            for system in systems {
                let run = self.undisturbed(|lab| lab.one(system, figure, percent, seconds))?;
                let numbers = self.measured.of(&figure.name);
                let to = match system {
                    System::Znsage => &mut numbers.ours,
                    System::Stock => &mut numbers.others,
                };
                to.push(match seconds {
                    None => run.measured.mib_per_s,
                    Some(_) => run.measured.ops_per_s,
                });
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

    fn one(
        &self,
        system: System,
        figure: &Figure,
        percent: u64,
        seconds: Option<(u32, u32)>,
    ) -> Result<Run> {
        let swap = Swap::on(system, self.offered.size_bytes)?;
        let mut arguments = common(LIMIT);
        arguments.push(format!("--size={}", memory(self.offered.blocks_total, percent, LIMIT)));
        arguments.extend(match seconds {
            None => vec!["--fill-only".to_string()],
            Some((warmup, seconds)) => {
                vec![format!("--warmup={warmup}"), format!("--seconds={seconds}")]
            }
        });
        let measured = measure(&Work { system, phase: &figure.name, arguments }, self.out)?;
        measured.sound()?;
        swap.off()?;
        measured.run(if seconds.is_none() { "fill" } else { "random" }, &figure.name)
    }

    /// The cost of GC: the same accesses at 80 % of a device, and in a swap area of the
    /// same size on a device twice as large, where GC is not at work.
    fn collections(&mut self, figure: &Figure) -> Result<()> {
        for round in 0..self.rounds {
            eprintln!("[round {} of {}] {}", round + 1, self.rounds, figure.title);
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
            let (with, without) = (with.measured, without.measured);
            // All accesses together, for each page that GC moved.
            let seconds = with.ops as f64 * (1.0 / with.ops_per_s - 1.0 / without.ops_per_s);
            let moved = with.device.map_or(f64::NAN, |d| d.gc_blocks as f64);
            let share = 100.0 * (1.0 - with.ops_per_s / without.ops_per_s);
            let note = format!("{share:.1} % of all instructions");
            self.measured.add("gc", (seconds * INSTRUCTIONS_PER_S / moved, note));
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
        let compared = |noise: bool, algorithm: &str| {
            let mut names = figures.iter().filter_map(|f| f.name.strip_prefix("compress-"));
            names.any(|name| if noise { name == "noise" } else { name.ends_with(algorithm) })
        };
        for noise in [false, true] {
            let algorithms = if noise { &["lz4"][..] } else { &["lz4", "zstd"] };
            let one = |lab: &Self, algorithm: &str| {
                lab.undisturbed(|lab| compress::measure_one(lab.out, LIMIT, algorithm, noise))
            };
            let mut off = None;
            for algorithm in algorithms.iter().filter(|a| compared(noise, a)) {
                let found = one(self, algorithm)?;
                let without = match &off {
                    Some(without) => without,
                    None => off.insert(one(self, "off")?),
                };
                for (what, number) in found {
                    let figure = match noise {
                        true => "compress-noise".to_string(),
                        false => format!("compress-{what}-{algorithm}"),
                    };
                    let numbers = self.measured.of(&figure);
                    numbers.ours.push(number);
                    numbers.others.extend(without.iter().filter(|o| o.0 == what).map(|o| o.1));
                }
            }
        }
        Ok(())
    }

    fn amplification(&mut self, figure: &Figure, utilization: u64) -> Result<()> {
        let spare = if utilization == 90 { SPARE.0 } else { SPARE.1 };
        eprintln!("[WAF at {utilization} %] over-provisioning {spare} %");
        let device = swap::device("ZNS1")?;
        let swap = Swap::znsage(&device, &[&format!("--over-provisioning={spare}")])?;
        let mut arguments = common(LIMIT);
        arguments.push(format!("--utilization={utilization}"));
        arguments.push("--write-ratio=1".to_string());
        arguments.push(format!("--rewrites={REWRITES}"));
        arguments.push(format!("--warmup={PATIENCE}"));
        arguments.push(format!("--seconds={PATIENCE}"));
        let work = Work { system: System::Znsage, phase: &figure.name, arguments };
        let measured = measure(&work, self.out)?;
        measured.sound()?;
        let run = measured.run("random", &figure.name)?.measured;
        let (waf, device) = run.waf.zip(run.device).ok_or("nothing was written")?;
        let written = device.host_blocks + device.gc_blocks + device.padding_blocks;
        let note = format!(
            "{:.1} % live, {:.1} times rewritten, {} resets",
            100.0 * run.utilization.map_or(f64::NAN, |u| u.mean),
            written as f64 / device.blocks_total as f64,
            device.zone_resets,
        );
        self.measured.add(&figure.name, (waf, note));
        swap.off()
    }
}

/// Commands of NVMe devices that timed out since the boot.
fn timeouts() -> Result<usize> {
    let log = call("dmesg", &[])?;
    Ok(log.lines().filter(|l| l.contains(" nvme") && l.contains(" timeout, ")).count())
}
