// SPDX-License-Identifier: GPL-2.0-only
//! Many seeds on several threads. Results are added in the order of the seeds,
//! so they do not depend on the threads.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::Mutex;
use std::thread;

use serde::Serialize;

use super::counts::Counts;
use super::seed::run;
use super::types::{Failure, Outcome, Sabotage};

/// Seeds per thread between two progress reports.
const AT_A_TIME: u64 = 8;

/// Which seeds.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// The first one.
    pub first: u64,
    /// Number of seeds; None: until stopped.
    pub seeds: Option<u64>,
    /// Threads.
    pub jobs: usize,
    /// Continue after a failure.
    pub keep_going: bool,
    /// Sabotage to apply.
    pub sabotage: Sabotage,
}

/// Result of a campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The first seed.
    pub first: u64,
    /// Seeds that ran.
    pub seeds: u64,
    /// Sum of their counters.
    pub counts: Counts,
    /// Those that failed.
    pub failures: Vec<Failure>,
}

impl Campaign {
    /// Runs the seeds. Calls `progress` regularly, which may stop the campaign.
    ///
    /// # Panics If threads cannot be created, or a seed panics.
    pub fn run(&self, mut progress: impl FnMut(&Summary) -> ControlFlow<()>) -> Summary {
        let mut sum = Summary { first: self.first, ..Summary::default() };
        loop {
            let left = self.seeds.map_or(u64::MAX, |n| n - sum.seeds);
            let from = self.first.saturating_add(sum.seeds);
            let to = from.saturating_add(left.min(AT_A_TIME * self.jobs.max(1) as u64));
            for outcome in self.outcomes(from..to).into_values() {
                sum.seeds += 1;
                sum.counts.add(&outcome.counts);
                sum.failures.extend(outcome.failure);
                if !sum.failures.is_empty() && !self.keep_going {
                    return sum;
                }
            }
            if from == to || progress(&sum).is_break() {
                return sum;
            }
        }
    }

    /// What becomes of each seed.
    fn outcomes(&self, seeds: Range<u64>) -> BTreeMap<u64, Outcome> {
        let left = Mutex::new(seeds);
        let all = Mutex::new(BTreeMap::new());
        let next = || left.lock().expect("nobody panics with it").next();
        let work = || {
            while let Some(seed) = next() {
                let outcome = run(seed, self.sabotage, None);
                all.lock().expect("nobody panics with it").insert(seed, outcome);
            }
        };
        thread::scope(|scope| (0..self.jobs.max(1)).for_each(|_| drop(scope.spawn(work))));
        all.into_inner().expect("nobody panics with it")
    }
}
