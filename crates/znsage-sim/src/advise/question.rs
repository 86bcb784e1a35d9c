// SPDX-License-Identifier: GPL-2.0-only
//! Questions, measurements, errors.

use std::fmt;

use crate::result::RunResult;
use crate::run::RunError;
use crate::spec::Spec;
use crate::stats;

/// What to optimize.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Accesses or requests of the workload a second.
    Speed,
    /// The 99th percentile of page faults.
    Latency,
    /// Write amplification: how long the flash lasts.
    Wear,
}

/// A request for advice.
#[derive(Clone, Debug)]
pub struct Question {
    /// Device, workload, machine; its znsage settings are the baseline.
    pub spec: Spec,
    /// What to optimize.
    pub goal: Goal,
    /// Runs of the search at most; the proof takes some dozens more.
    pub budget: usize,
    /// Runs at a time.
    pub jobs: usize,
}

/// Results of a run, or means of several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Accesses or requests a second.
    pub operations_s: f64,
    /// Swapped in and out, 10^6 bytes a second.
    pub bandwidth_mb_s: f64,
    /// Write amplification.
    pub waf: f64,
    /// 99th percentile of page faults, microseconds.
    pub p99_us: f64,
    /// Times swap-out had no zone to write to.
    pub stalls: f64,
    /// Swap space, percent of the device.
    pub space_percent: f64,
}

/// A value that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// The value, as the spec has it.
    pub value: String,
    /// Gain in percent over the advised value, by one seed; or why it cannot run.
    pub gain: Result<f64, String>,
}

/// Why there is no advice.
#[derive(Debug)]
pub enum AdviceError {
    /// The question cannot be run.
    Run(RunError),
    /// It was stopped.
    Stopped,
    /// The simulator panicked with these settings.
    Panicked(String),
}

impl fmt::Display for AdviceError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            AdviceError::Run(e) => e.fmt(f),
            AdviceError::Stopped => f.write_str("interrupted"),
            AdviceError::Panicked(what) => write!(f, "the simulator failed with {what}"),
        }
    }
}

impl std::error::Error for AdviceError {}

impl From<RunError> for AdviceError {
    fn from(e: RunError) -> Self {
        AdviceError::Run(e)
    }
}

impl Measured {
    pub(super) fn of(r: &RunResult) -> Self {
        Measured {
            operations_s: r.operations_s,
            bandwidth_mb_s: r.bandwidth_mb_s,
            waf: r.waf.total,
            p99_us: r.fault_latency.p99_us,
            stalls: r.counts.system.stalls as f64,
            space_percent: r.slots as f64 / r.capacity_blocks as f64 * 100.0,
        }
    }

    pub(super) fn mean(all: &[Measured]) -> Self {
        let mean = |of: fn(&Measured) -> f64| {
            stats::mean(&all.iter().map(of).collect::<Vec<_>>()).unwrap_or(f64::NAN)
        };
        Measured {
            operations_s: mean(|m| m.operations_s),
            bandwidth_mb_s: mean(|m| m.bandwidth_mb_s),
            waf: mean(|m| m.waf),
            p99_us: mean(|m| m.p99_us),
            stalls: mean(|m| m.stalls),
            space_percent: mean(|m| m.space_percent),
        }
    }
}

/// What faster or longer-lived swap may cost of the 99th percentile of page faults.
const MOST_LATENCY: f64 = 1.1;

impl Goal {
    /// May settings with the result `m` be advised, where the baseline has `base`? Not if
    /// the 99th percentile of page faults is longer by more than a tenth.
    pub(super) fn allows(self, m: &Measured, base: &Measured) -> bool {
        m.p99_us <= base.p99_us * MOST_LATENCY
    }

    /// Score: higher is better.
    pub(super) fn score(self, m: &Measured) -> f64 {
        // Avoids 0, as a run may have no faults.
        const LEAST: f64 = 1e-3;
        match self {
            Goal::Speed => m.operations_s.max(LEAST),
            Goal::Latency => 1.0 / m.p99_us.max(LEAST),
            Goal::Wear => 1.0 / m.waf.max(LEAST),
        }
    }
}
