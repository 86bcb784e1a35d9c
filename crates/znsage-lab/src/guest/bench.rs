// SPDX-License-Identifier: GPL-2.0-only
//! The measurements behind the figures; bench/README.md tells why each is
//! made as it is.

use std::path::Path;

use super::swap::{self, memory, Swap};
use super::work::{measure, Measured, Work};
use super::{bound, say};
use crate::figures::{select, Amplification, Figure, Maps, Measurements};
use crate::model::System;
use crate::vm::write_json;
use crate::Result;

const LIMIT: u64 = 64 << 20;
const THREADS: u32 = 4;

/// Fills in a round: they are short.
const FILLS: usize = 2;

/// Seconds of random access: not measured at first (at 80 % until GC has
/// taken up its work), then measured.
const SECONDS_40: (u32, u32) = (3, 15);
const SECONDS_80: (u32, u32) = (12, 15);

/// For the WAF: how often the device is written over before, and then while,
/// it is measured; and seconds after which a slow machine need not go on.
const REWRITES: f64 = 2.5;
const PATIENCE: u32 = 180;

pub fn run(out: &Path, figures: &[String], rounds: u32) -> Result<()> {
    let figures = select(figures)?;
    let mut lab = Lab { out, measured: Measurements::default() };
    lab.maps()?;
    // What goes wrong with one figure is no reason not to measure the others.
    let done = lab.compare(&figures, rounds);
    lab.note("the comparison with stock swap", done);
    for &figure in &figures {
        if let Some((utilization, over_provisioning)) = figure.waf_setting() {
            let done = lab.amplification(utilization, over_provisioning);
            lab.note(figure.title(), done);
        }
    }
    if figures.contains(&Figure::DeviceBound) {
        let done = bound::measure(out, rounds, &mut lab.measured.bound);
        lab.note(Figure::DeviceBound.title(), done);
    }
    write_json(&out.join("runs.json"), &lab.measured)
}

struct Lab<'a> {
    out: &'a Path,
    measured: Measurements,
}

impl Lab<'_> {
    fn note(&mut self, what: &str, done: Result<()>) {
        if let Err(message) = done {
            say(&format!("  {message}"));
            self.measured.problems.push(format!("{what}: {message}"));
        }
    }

    /// Also tells the size of memory that both systems get.
    fn maps(&mut self) -> Result<()> {
        let swap = Swap::on(System::Znsage, 0)?;
        let status = swap::status()?;
        swap.off()?;
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        self.measured.kernel = kernel.trim().to_string();
        self.measured.map =
            Some(Maps { map_bytes: status.map_bytes, blocks_total: status.blocks_total });
        Ok(())
    }

    fn compare(&mut self, figures: &[Figure], rounds: u32) -> Result<()> {
        let wants = |f| figures.contains(&f);
        for round in 0..rounds {
            // In turns, and each of them first in its turn.
            let mut systems = System::BOTH;
            systems.rotate_left(round as usize % 2);
            if wants(Figure::Seq) {
                say(&format!("[round {} of {rounds}] sequential", round + 1));
                for system in systems.repeat(FILLS) {
                    self.with(system, |lab| lab.fill(system))?;
                }
            }
            if wants(Figure::Random40) || wants(Figure::Random80) {
                say(&format!("[round {} of {rounds}] random", round + 1));
                for system in systems {
                    self.with(system, |lab| lab.random(system, figures))?;
                }
            }
        }
        Ok(())
    }

    fn with(&mut self, system: System, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let swap = Swap::on(system, 0)?;
        work(self)?;
        swap.off()
    }

    fn size(&self, percent: u64) -> String {
        let blocks = self.measured.map.map_or(0, |m| m.blocks_total);
        format!("--size={}", memory(blocks, percent, LIMIT))
    }

    fn fill(&mut self, system: System) -> Result<()> {
        let mut arguments = common();
        arguments.extend([self.size(80), "--fill-only".to_string()]);
        let work = Work { system, phase: "fill", arguments };
        let measured = measure(&work, self.out)?;
        sound(&measured)?;
        self.measured.runs.push(measured.run("fill", "fill")?);
        Ok(())
    }

    fn random(&mut self, system: System, figures: &[Figure]) -> Result<()> {
        for (figure, percent, (warmup, seconds)) in
            [(Figure::Random40, 40, SECONDS_40), (Figure::Random80, 80, SECONDS_80)]
        {
            if !figures.contains(&figure) {
                continue;
            }
            let mut arguments = common();
            arguments.push(self.size(percent));
            arguments.push(format!("--warmup={warmup}"));
            arguments.push(format!("--seconds={seconds}"));
            let work = Work { system, phase: figure.name(), arguments };
            let measured = measure(&work, self.out)?;
            sound(&measured)?;
            self.measured.runs.push(measured.run("random", figure.name())?);
        }
        Ok(())
    }

    fn amplification(&mut self, utilization: u64, over_provisioning: u64) -> Result<()> {
        say(&format!("[WAF at {utilization} %] over-provisioning {over_provisioning} %"));
        let device = swap::device("ZNS1")?;
        let held_back = over_provisioning.to_string();
        let swap = Swap::znsage(&device, &["--over-provisioning", &held_back])?;
        let mut arguments = common();
        arguments.push(format!("--utilization={utilization}"));
        arguments.push("--write-ratio=1".to_string());
        arguments.push(format!("--rewrites={REWRITES}"));
        arguments.push(format!("--warmup={PATIENCE}"));
        arguments.push(format!("--seconds={PATIENCE}"));
        let phase = format!("waf{utilization}");
        let work = Work { system: System::Znsage, phase: &phase, arguments };
        let measured = measure(&work, self.out)?;
        sound(&measured)?;
        self.measured.waf.push(Amplification {
            utilization_percent: utilization,
            over_provisioning_percent: over_provisioning,
            run: measured.run("random", &phase)?,
        });
        swap.off()
    }
}

fn common() -> Vec<String> {
    vec![format!("--memory-limit={LIMIT}"), format!("--threads={THREADS}"), "--seed=1".to_string()]
}

/// A figure of a system that loses data is worth nothing.
fn sound(measured: &Measured) -> Result<()> {
    match measured.report.corrupt_pages {
        0 => Ok(()),
        n => Err(format!("{n} corrupt pages")),
    }
}
