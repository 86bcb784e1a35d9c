// SPDX-License-Identifier: GPL-2.0-only
//! How a run went: rate and write amplification over time, and how its latencies are
//! distributed. A result has the numbers of the measured phase alone.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::result;
use crate::sim::Snapshot;
use crate::time::US;

/// Parts of a device's size after each of which a moment is kept.
pub const PARTS: u64 = 16;
/// Latencies from 10 us to 1 s at which the distribution is taken, for each decade.
const DECADE: u32 = 24;

/// The course of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// Moments since memory was filled, from the first one on.
    pub moments: Vec<Moment>,
    /// Of the page faults that read from the device while it was measured: a latency in
    /// microseconds, and the percentage that took no longer.
    pub faults: Vec<(f64, f64)>,
}

/// What happened since the previous moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Swapped out since memory was filled, in device sizes.
    pub written: f64,
    /// Swapped out, 10^6 bytes a second.
    pub swap_out_mb_s: f64,
    /// Blocks programmed for each page swapped out.
    pub waf: f64,
}

impl Course {
    /// Of snapshots, the first of them when memory was filled and then one after each
    /// part of the device's size, and of the latencies of each cgroup.
    pub(crate) fn of(snapshots: &[Snapshot], latencies: &[Histogram<u64>]) -> Course {
        let moments = snapshots.windows(2).zip(1u32..).map(|(pair, i)| {
            let grown = pair[1].since(&pair[0]);
            Moment {
                written: f64::from(i) / PARTS as f64,
                swap_out_mb_s: result::mb_s(grown.count.swapped_out, grown.at),
                waf: result::waf(&grown).total,
            }
        });
        let all: u64 = latencies.iter().map(Histogram::len).sum();
        let share = |us: f64| {
            let to = (us * US as f64) as u64;
            let below: u64 = latencies.iter().map(|h| h.count_between(0, to)).sum();
            (us, 100.0 * below as f64 / all.max(1) as f64)
        };
        let at = |i: u32| 10.0 * libm::pow(10.0, f64::from(i) / f64::from(DECADE));
        let faults = (0..=5 * DECADE).filter(|_| all > 0).map(|i| share(at(i))).collect();
        Course { moments: moments.collect(), faults }
    }
}
