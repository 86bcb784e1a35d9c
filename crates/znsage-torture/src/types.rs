// SPDX-License-Identifier: GPL-2.0-only
//! What a run is asked for, and what it answers.

use std::fmt;

use serde::Serialize;
use znsage_sim::time::Ns;

use super::counts::Counts;

/// Receives trace lines: the time, and what happens.
pub type Trace = fn(Ns, fmt::Arguments);

/// Writes a trace line, if tracing is on.
macro_rules! trace {
    ($run:expr, $($arg:tt)*) => {
        if let Some(trace) = $run.trace {
            trace($run.now, format_args!($($arg)*));
        }
    };
}
pub(super) use trace;

/// Deliberate bugs, to prove that the checks find them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    /// Nothing.
    #[default]
    None,
    /// Some frees do not reach the engine.
    ForgetFree,
    /// A failed append is reported as done.
    TrustFailedAppend,
    /// An append is reported one block off.
    WrongPlace,
    /// A read returns the next block.
    NextBlock,
    /// A block that GC cannot read is not reported.
    KeepLost,
    /// Pages of a failed chunk end without an error.
    HideFailure,
    /// Waiters are not told that a failed chunk is free again.
    FailSilently,
    /// Some kicks of the worker are lost.
    LoseKick,
}

/// A seed that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Which one.
    pub seed: u64,
    /// When, in virtual nanoseconds.
    pub at: Ns,
    /// What was wrong.
    pub wrong: Vec<String>,
    /// The scenario of the seed.
    pub scenario: String,
    /// State of the zones, as the engine and the device see them.
    pub zones: Vec<String>,
}

/// Outcome of a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its counters.
    pub counts: Counts,
    /// Set if the seed failed.
    pub failure: Option<Failure>,
}
