// SPDX-License-Identifier: GPL-2.0-only
//! Drives a sweep: checks all points, runs those that are left.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::error::SweepError;
use super::file::{Point, Sweep};
use super::shard::Shard;
use super::store::{Entry, Outcome, Store};

use crate::pool::{self, End};
use crate::run::{check, run, RunError};
use crate::spec::Spec;

/// What to do, and where to store it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The part of the points to run.
    pub shard: Shard,
    /// Directory of the stores; created if missing.
    pub dir: PathBuf,
    /// Runs at a time.
    pub jobs: usize,
}

/// The current stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Checking all points.
    Checking,
    /// Running them.
    Running,
}

/// Progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The current stage.
    pub stage: Stage,
    /// Points done in this stage.
    pub done: usize,
    /// Points to do in this stage.
    pub todo: usize,
}

/// Result of a drive.
#[derive(Debug)]
pub struct Driven {
    /// Finished points of this part.
    pub entries: BTreeMap<usize, Entry>,
    /// Number of points in this part.
    pub points: usize,
    /// Points finished before.
    pub before: usize,
    /// Descriptions of points whose runs panicked; they do not count as finished.
    pub panicked: Vec<String>,
    /// Was it stopped?
    pub stopped: bool,
}

impl Driven {
    /// Are all points of this part finished?
    pub fn complete(&self) -> bool {
        self.entries.len() == self.points
    }
}

/// Runs the remaining points of a part of a sweep. Polls `stop`, and reports
/// progress to `show`.
///
/// # Errors Before the first run, if a point is impossible and the sweep does
/// not allow that; or if the store is of another sweep, in use, or not
/// writable.
pub fn drive(
    sweep: &Sweep,
    plan: &Plan,
    mut stop: impl FnMut() -> bool,
    mut show: impl FnMut(Progress),
) -> Result<Driven, SweepError> {
    let path = plan.dir.join(plan.shard.file_name());
    let header = sweep.header();
    let finished = Store::finished(&path, &header)?;
    let all: Vec<&Point> = sweep.points.iter().filter(|p| plan.shard.has(p.index)).collect();
    let left = left(&all, &finished);
    let Some(refused) = refused(&left, plan.jobs, &mut stop, &mut show) else {
        return Ok(Driven {
            before: finished.len(),
            entries: finished,
            points: all.len(),
            panicked: Vec::new(),
            stopped: true,
        });
    };
    if let Some((index, e)) = refused.first_key_value().filter(|_| !sweep.skip_impossible) {
        return Err(sweep.locate(&sweep.points[*index], e.clone()));
    }

    fs::create_dir_all(&plan.dir).map_err(SweepError::io("make", &plan.dir))?;
    let mut store = Store::open(&path, &header)?;
    let before = store.entries().len();
    let entry =
        |index: usize, outcome| Entry { index, point: sweep.label(&sweep.points[index]), outcome };
    for (index, e) in refused {
        if !store.entries().contains_key(&index) {
            store.append(entry(index, Outcome::Impossible(e.to_string())))?;
        }
    }
    let todo = self::left(&all, store.entries());
    let mut progress = Progress { stage: Stage::Running, done: 0, todo: todo.len() };
    let mut panicked = Vec::new();
    show(progress);
    let end = run_each(plan.jobs, todo, stop, |index, _, outcome| {
        match outcome {
            None => panicked.push(sweep.describe(&sweep.points[index])),
            Some(outcome) => store.append(entry(index, outcome))?,
        }
        progress.done += 1;
        show(progress);
        Ok(())
    })?;
    Ok(Driven {
        entries: store.entries().clone(),
        points: all.len(),
        before,
        panicked,
        stopped: end == End::Stopped,
    })
}

/// Runs specs, each known by a key, on `jobs` threads. Passes what became of each to
/// `done`; None if the run panicked. Polls `stop`.
///
/// # Errors If `done` fails; no further run begins then.
pub(crate) fn run_each<K: Send + 'static, E>(
    jobs: usize,
    specs: Vec<(K, Spec)>,
    stop: impl FnMut() -> bool,
    mut done: impl FnMut(K, Spec, Option<Outcome>) -> Result<(), E>,
) -> Result<End, E> {
    let one = |(_, spec): &(K, Spec)| match run(spec) {
        Ok(result) => Outcome::Result(Box::new(result)),
        Err(RunError::Stuck(e)) => Outcome::Stuck(e.to_string()),
        Err(e) => Outcome::Impossible(e.to_string()),
    };
    pool::each(jobs, specs, one, stop, |(key, spec), outcome| done(key, spec, outcome))
}

fn left(all: &[&Point], finished: &BTreeMap<usize, Entry>) -> Vec<(usize, Spec)> {
    let left = all.iter().filter(|p| !finished.contains_key(&p.index));
    left.map(|p| (p.index, p.spec.clone())).collect()
}

/// Impossible points, and why; None if stopped. Each point is built as for a
/// run, which takes memory and some milliseconds.
fn refused(
    left: &[(usize, Spec)],
    jobs: usize,
    stop: impl FnMut() -> bool,
    mut show: impl FnMut(Progress),
) -> Option<BTreeMap<usize, RunError>> {
    let mut refused = BTreeMap::new();
    let mut progress = Progress { stage: Stage::Checking, done: 0, todo: left.len() };
    let end = pool::each(
        jobs,
        left.to_vec(),
        |(_, spec)| check(spec),
        stop,
        |(index, _), result| {
            match result {
                Some(Ok(())) => {}
                Some(Err(e)) => drop(refused.insert(index, e)),
                None => panic!("the check of point {index} panicked"),
            }
            progress.done += 1;
            show(progress);
            Ok::<_, std::convert::Infallible>(())
        },
    );
    (end == Ok(End::Done)).then_some(refused)
}

/// Default directory for the results of a sweep file: `NAME.sweep` beside it.
pub fn default_dir(file: &Path) -> PathBuf {
    file.with_extension("sweep")
}
