// SPDX-License-Identifier: GPL-2.0-only
//! When requests arrive that come at a rate of their own, however long others take.

use libm::log;
use rand::Rng as _;

use crate::rng::{self, Rng};
use crate::time::{Ns, SEC};

/// First random stream; those of the threads end below.
const STREAM: u64 = 2000;

/// A Poisson process for each thread.
pub struct Arrivals {
    /// Nanoseconds between two requests of a thread, on average.
    mean: f64,
    rngs: Vec<Rng>,
}

impl Arrivals {
    /// `rate` requests a second, which `threads` share.
    pub fn new(rate: f64, threads: u32, seed: u64) -> Self {
        let rngs = (0..threads).map(|t| rng::stream(seed, STREAM + u64::from(t))).collect();
        Arrivals { mean: SEC as f64 * f64::from(threads) / rate, rngs }
    }

    /// From the arrival of a thread's request to that of its next one.
    pub fn gap(&mut self, thread: u32) -> Ns {
        let left = 1.0 - rng::unit(self.rngs[thread as usize].next_u64());
        (-log(left) * self.mean) as Ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_the_mean_and_the_spread_of_a_poisson_process() {
        let mut arrivals = Arrivals::new(50_000.0, 2, 1);
        let gaps: Vec<f64> = (0..100_000).map(|i| arrivals.gap(i % 2) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / 1e5;
        // 40 us; a standard deviation of the mean is 0.3 %.
        assert!((mean - 40_000.0).abs() < 500.0, "{mean}");
        let longer = gaps.iter().filter(|&&gap| gap > 40_000.0).count();
        // 1 / e.
        assert!(longer.abs_diff(36_788) < 600, "{longer}");
    }
}
