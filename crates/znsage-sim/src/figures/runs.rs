// SPDX-License-Identifier: GPL-2.0-only
//! The runs behind the figures, each made once, in parallel.

use std::collections::BTreeMap;
use std::convert::Infallible;

use super::device::DeviceJob;
use super::model::Figure;
use super::scale::Scale;
use crate::course::Course;
use crate::pool;
use crate::run::run_with_course;
use crate::{RunResult, Spec};

/// The definition of a figure.
#[derive(Clone, Copy)]
pub struct Definition {
    /// Its name.
    pub id: &'static str,
    /// The runs it needs.
    pub jobs: fn(&Scale) -> Vec<Job>,
    /// Makes the figure from the outcomes.
    pub make: fn(&Scale, &Outcomes) -> Figure,
}

/// Something to simulate.
#[derive(Clone, Debug, PartialEq)]
pub enum Job {
    /// A system under a workload.
    Swap(Box<Spec>),
    /// A device by itself.
    Device(DeviceJob),
}

/// The outcome of a job.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Of a system.
    Swap(Box<RunResult>, Box<Course>),
    /// Of a device.
    Device(Vec<f64>),
    /// It failed, or its checks did.
    Failed(String),
}

/// The outcomes of all jobs.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    by_key: BTreeMap<String, Outcome>,
}

impl Job {
    /// Identifies the job: all of its settings.
    fn key(&self) -> String {
        format!("{self:?}")
    }

    /// For people, on one line.
    pub fn text(&self) -> String {
        match self {
            Job::Swap(s) => {
                format!("{} on {}, {}, {} %", s.system, s.device, s.workload, s.utilization)
            }
            Job::Device(d) => d.text(),
        }
    }

    fn run(&self) -> Outcome {
        match self {
            Job::Swap(spec) => match run_with_course(spec) {
                Ok((r, c)) if r.wrong.is_empty() => Outcome::Swap(Box::new(r), Box::new(c)),
                Ok((r, _)) => Outcome::Failed(r.wrong.join("; ")),
                Err(e) => Outcome::Failed(e.to_string()),
            },
            Job::Device(d) => match d.run() {
                Ok(values) => Outcome::Device(values),
                Err(e) => Outcome::Failed(e),
            },
        }
    }
}

impl Outcomes {
    /// Runs every job once, `threads` at a time. Reports done jobs, all jobs and the
    /// last job to `progress`.
    pub fn of(
        jobs: Vec<Job>,
        threads: usize,
        progress: &mut dyn FnMut(usize, usize, &str),
    ) -> Outcomes {
        let unique: BTreeMap<String, Job> = jobs.into_iter().map(|j| (j.key(), j)).collect();
        let all = unique.len();
        let mut by_key = BTreeMap::new();
        let done = |(key, job): (String, Job), outcome: Option<Outcome>| {
            let panicked = || Outcome::Failed("the simulator panicked".into());
            by_key.insert(key, outcome.unwrap_or_else(panicked));
            progress(by_key.len(), all, &job.text());
            Ok::<_, Infallible>(())
        };
        let unique = unique.into_iter().collect();
        let _ = pool::each(threads, unique, |(_, job): &(String, Job)| job.run(), || false, done);
        Outcomes { by_key }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    fn get(&self, job: &Job) -> &Outcome {
        self.by_key.get(&job.key()).unwrap_or_else(|| panic!("was not run: {}", job.text()))
    }

    /// Of a system; None if it failed.
    ///
    /// # Panics
    /// If it is not one of the jobs.
    pub fn swap(&self, spec: &Spec) -> Option<&RunResult> {
        match self.get(&Job::Swap(Box::new(spec.clone()))) {
            Outcome::Swap(r, _) => Some(r),
            _ => None,
        }
    }

    /// How the run of a system went; None if it failed.
    ///
    /// # Panics
    /// If it is not one of the jobs.
    pub fn course(&self, spec: &Spec) -> Option<&Course> {
        match self.get(&Job::Swap(Box::new(spec.clone()))) {
            Outcome::Swap(_, course) => Some(course),
            _ => None,
        }
    }

    /// One value of a device; None if it failed.
    ///
    /// # Panics
    /// If it is not one of the jobs.
    pub fn device(&self, job: &DeviceJob, value: usize) -> Option<f64> {
        self.values(job).get(value).copied()
    }

    /// The values of a device; none if it failed.
    ///
    /// # Panics
    /// If it is not one of the jobs.
    pub fn values(&self, job: &DeviceJob) -> &[f64] {
        match self.get(&Job::Device(job.clone())) {
            Outcome::Device(values) => values,
            _ => &[],
        }
    }

    /// Why jobs failed.
    pub fn failures(&self, jobs: &[Job]) -> Vec<String> {
        let failed = jobs.iter().filter_map(|j| match self.get(j) {
            Outcome::Failed(why) => Some(format!("{}: {why}", j.text())),
            _ => None,
        });
        failed.collect()
    }
}
