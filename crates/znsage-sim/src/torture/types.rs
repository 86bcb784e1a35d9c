// SPDX-License-Identifier: GPL-2.0-only
//! What a run is asked for, and what it answers.

use std::fmt;

use serde::Serialize;

use super::counts::Counts;
use crate::time::Ns;

/// Where a trace goes: a moment, and what happens then.
pub type Trace = fn(Ns, fmt::Arguments);

/// Writes a line if somebody listens.
macro_rules! trace {
    ($run:expr, $($arg:tt)*) => {
        if let Some(trace) = $run.trace {
            trace($run.now, format_args!($($arg)*));
        }
    };
}
pub(super) use trace;

/// What is broken on purpose, to see that it is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    /// Nothing.
    #[default]
    None,
    /// Some frees do not reach the engine.
    ForgetFree,
    /// An append that failed is reported as done.
    TrustFailedAppend,
    /// An append is reported a block beside where it is.
    WrongPlace,
    /// The block behind the one that was asked for is read.
    NextBlock,
    /// A block that GC could not read is not reported.
    KeepLost,
    /// Pages of a chunk that was given up end without an error.
    HideFailure,
    /// Nobody is told that the chunk of a swap-out that failed is free again.
    FailSilently,
    /// The worker is not told of some work.
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
    /// What the seed had drawn.
    pub scenario: String,
    /// The zones then, as the engine and the device see them.
    pub zones: Vec<String>,
}

/// What became of a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What it did and met.
    pub counts: Counts,
    /// If something was wrong.
    pub failure: Option<Failure>,
}
