// SPDX-License-Identifier: GPL-2.0-only
//! Many seeds on several threads. Results are added in the order of the seeds,
//! so they do not depend on the threads.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

use serde::Serialize;

use super::counts::Counts;
use super::seed::run;
use super::types::{Failure, Outcome, Sabotage};
use crate::pool;

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
            for outcome in self.outcomes((from..to).collect()).into_values() {
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
    fn outcomes(&self, seeds: Vec<u64>) -> BTreeMap<u64, Outcome> {
        let (mut all, sabotage) = (BTreeMap::new(), self.sabotage);
        let one = move |seed: &u64| run(*seed, sabotage, None);
        let _ = pool::each(
            self.jobs,
            seeds,
            one,
            || false,
            |seed, outcome| {
                let outcome = outcome.unwrap_or_else(|| panic!("seed {seed} panicked"));
                all.insert(seed, outcome);
                Ok::<_, Infallible>(())
            },
        );
        all
    }
}
