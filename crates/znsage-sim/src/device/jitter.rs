// SPDX-License-Identifier: GPL-2.0-only
//! Times that vary from operation to operation.
//!
//! A parameter set gives the distribution of what an operation takes more, or less, than
//! its time: points (share of the operations, microseconds), straight lines in between.
//! It becomes a table of equally likely values, in integers, so that a draw is a random
//! index and no float decides the order of events. Without points nothing varies, and
//! nothing is drawn.

use crate::rng::{self, Rng};
use crate::time::{Ns, US};

/// Values of the table: each stands for a thousandth of the operations.
const VALUES: u32 = 1000;
/// Generators of a device, apart from those of the workload's threads.
const STREAM: u64 = 1 << 32;

/// A distribution, and the generator that draws from it.
#[derive(Clone, Debug)]
pub(super) struct Jitter {
    /// Nanoseconds to add; empty: none.
    table: Vec<i64>,
    rng: Rng,
}

impl Jitter {
    /// Of points from share 0 to share 1, in order. `which` tells the generators of one
    /// device apart.
    pub fn new(points: &[(f64, f64)], seed: u64, which: u64) -> Jitter {
        let value = |i: u32| {
            let share = (f64::from(i) + 0.5) / f64::from(VALUES);
            let after = points.partition_point(|p| p.0 < share).clamp(1, points.len() - 1);
            let ((x0, y0), (x1, y1)) = (points[after - 1], points[after]);
            ((y0 + (y1 - y0) * (share - x0) / (x1 - x0)) * US as f64).round() as i64
        };
        let some = if points.len() > 1 { VALUES } else { 0 };
        Jitter { table: (0..some).map(value).collect(), rng: rng::stream(seed, STREAM + which) }
    }

    /// The time of an operation that takes `time` on average; at least 0.
    #[inline]
    pub fn of(&mut self, time: Ns) -> Ns {
        if self.table.is_empty() {
            return time;
        }
        let more = self.table[rng::below(&mut self.rng, VALUES) as usize];
        time.saturating_add_signed(more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_distribution_of_the_points() {
        // Half of them 2 us less to exact, the others 1 to 5 us more.
        let points = [(0.0, -2.0), (0.5, 0.0), (0.501, 1.0), (1.0, 5.0)];
        let mut jitter = Jitter::new(&points, 1, 0);
        let mut all: Vec<Ns> = (0..100_000).map(|_| jitter.of(10_000)).collect();
        all.sort_unstable();
        for (share, us) in [(0.001, 8.0), (0.25, 9.0), (0.49, 10.0), (0.75, 13.0), (0.999, 15.0)] {
            let at = all[(share * 100_000.0) as usize] as f64 / 1e3;
            assert!((at - us).abs() < 0.1, "{share}: {at} {us}");
        }
        // It never takes less than no time.
        assert!((0..1000).all(|_| jitter.of(1000) <= 6000));
    }

    #[test]
    fn seeds_differ_and_repeat() {
        let draw = |seed, which| {
            let mut jitter = Jitter::new(&[(0.0, 0.0), (1.0, 1000.0)], seed, which);
            [jitter.of(0), jitter.of(0), jitter.of(0)]
        };
        assert_eq!(draw(1, 0), draw(1, 0));
        assert!(draw(1, 0) != draw(2, 0) && draw(1, 0) != draw(1, 1));
    }

    #[test]
    fn without_points_nothing_varies() {
        let mut none = Jitter::new(&[], 1, 0);
        assert!((0..100).all(|_| none.of(1234) == 1234));
    }
}
