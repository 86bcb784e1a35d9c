// SPDX-License-Identifier: GPL-2.0-only
//! Runs what a directory of results lacks.

use std::collections::VecDeque;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use super::file::Point;
use super::runs::{Runs, RunsError, Step};
use crate::run::run_with_course;

/// Between looks at a run of another process.
const LOOK: Duration = Duration::from_millis(200);

/// What became of the points.
#[derive(Debug, Default)]
pub struct Driven {
    /// Had a result before, or got one from another process.
    pub before: usize,
    /// Ran.
    pub ran: usize,
    /// Numbers of those in which the simulator panicked. They have no file.
    pub panicked: Vec<usize>,
    failed: Option<RunsError>,
}

impl Driven {
    /// How many points are dealt with.
    pub fn done(&self) -> usize {
        self.before + self.ran + self.panicked.len()
    }
}

/// Returns when every point has a result, whoever ran it. Reports progress to `show`.
///
/// # Errors
/// If the directory cannot be written; no further run begins then.
pub fn drive(
    runs: &Runs,
    points: &[&Point],
    threads: usize,
    show: impl Fn(&Driven) + Sync,
) -> Result<Driven, RunsError> {
    let left: Mutex<VecDeque<usize>> = Mutex::new((0..points.len()).collect());
    let driven = Mutex::new(Driven::default());
    let take = || left.lock().expect("nobody panics with it").pop_front();
    let work = || {
        while let Some(i) = take() {
            let point = points[i];
            let one = || runs.step(&point.spec, || run_with_course(&point.spec));
            let step = catch_unwind(AssertUnwindSafe(one));
            if matches!(step, Ok(Ok(Step::Busy))) {
                left.lock().expect("nobody panics with it").push_back(i);
                thread::sleep(LOOK);
                continue;
            }
            let mut driven = driven.lock().expect("nobody panics with it");
            match step {
                Ok(Ok(Step::Before)) => driven.before += 1,
                Ok(Ok(_)) => driven.ran += 1,
                Ok(Err(e)) => {
                    left.lock().expect("nobody panics with it").clear();
                    driven.failed.get_or_insert(e);
                }
                Err(_) => driven.panicked.push(i),
            }
            show(&driven);
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, points.len().max(1)) {
            scope.spawn(work);
        }
    });
    let mut driven = driven.into_inner().expect("nobody panics with it");
    match driven.failed.take() {
        Some(e) => Err(e),
        None => Ok(driven),
    }
}
