// SPDX-License-Identifier: GPL-2.0-only
//! What the measurements of a probe share: the device, and the time left.

use std::time::Instant;

use super::fio::{self, Job, Output, Run};
use super::ready::Ready;
use crate::error::{Error, Kind, Result};
use crate::sys::Sys;
use crate::units;
use znsage_sim::cli::progress::Progress;

pub struct Work<'a> {
    pub sys: &'a dyn Sys,
    pub ready: &'a Ready,
    pub engine: String,
    progress: Progress,
    begun: Instant,
    /// Planned seconds, in total and done.
    planned: f64,
    done: f64,
    step: (&'static str, f64),
}

impl<'a> Work<'a> {
    /// `planned`: seconds that all steps together should take.
    pub fn new(sys: &'a dyn Sys, ready: &'a Ready, engine: &str, planned: f64) -> Self {
        let (progress, begun) = (Progress::new(), Instant::now());
        let engine = engine.to_string();
        Work { sys, ready, engine, progress, begun, planned, done: 0.0, step: ("", 0.0) }
    }

    /// A step begins, which should take this many seconds.
    pub fn begin(&mut self, name: &'static str, seconds: f64) {
        self.done += self.step.1;
        self.step = (name, seconds);
        self.show();
    }

    /// Shows the current step and the time left, extrapolated from the past steps.
    fn show(&mut self) {
        let (step, took) = (self.step, self.begun.elapsed().as_secs_f64());
        let slower = if self.done > 0.0 { (took / (self.done + step.1)).max(1.0) } else { 1.0 };
        let left = (self.planned * slower - took).max(0.0);
        let percent = 100.0 * self.done / self.planned;
        self.progress
            .show(|| format!("{percent:.0} %: {}, about {} left", step.0, units::duration(left)));
    }

    /// Empties all zones.
    pub fn reset(&self) -> Result<()> {
        self.ready.reset(self.sys)
    }

    /// Runs jobs one after the other, each for the time of the plan.
    pub fn fio(&mut self, jobs: Vec<Job>) -> Result<Output> {
        let seconds = self.ready.plan.seconds;
        let zoned = self.ready.backing.zones.is_some();
        let run = Run { jobs, seconds, zoned };
        let words = run.words(&self.ready.backing.path, &self.engine);
        let sys = self.sys;
        let output = fio::run(sys, &words, &mut || self.show())?;
        match output.jobs.len() == run.jobs.len() {
            true => Ok(output),
            false => {
                let (got, want) = (output.jobs.len(), run.jobs.len());
                let what = format!("fio failed: it reports {got} jobs instead of {want}");
                Err(Error::new(Kind::Kernel, what).hint("check the version: 3.33 works"))
            }
        }
    }
}
