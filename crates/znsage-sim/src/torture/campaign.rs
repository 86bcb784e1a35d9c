// SPDX-License-Identifier: GPL-2.0-only
//! Many seeds on several threads. Results are added in the order of the seeds,
//! so they do not depend on the threads.

use std::ops::ControlFlow;

use rayon::prelude::*;
use serde::Serialize;

use super::counts::Counts;
use super::seed::run;
use super::types::{Failure, Sabotage};

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
    /// # Panics If threads cannot be created.
    pub fn run(&self, mut progress: impl FnMut(&Summary) -> ControlFlow<()>) -> Summary {
        let threads = rayon::ThreadPoolBuilder::new().num_threads(self.jobs).build();
        let threads = threads.expect("threads");
        let mut sum = Summary { first: self.first, ..Summary::default() };
        loop {
            let left = self.seeds.map_or(u64::MAX, |n| n - sum.seeds);
            let from = self.first.saturating_add(sum.seeds);
            let to = from.saturating_add(left.min(AT_A_TIME * self.jobs.max(1) as u64));
            let outcomes: Vec<_> = threads.install(|| {
                (from..to).into_par_iter().map(|seed| run(seed, self.sabotage, None)).collect()
            });
            for outcome in outcomes {
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
}
