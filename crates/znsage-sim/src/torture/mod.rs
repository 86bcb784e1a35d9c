// SPDX-License-Identifier: GPL-2.0-only
//! Deterministic simulation testing of the engine: `znsage sim torture`.
//!
//! From one seed everything is drawn: the shape of the device, the settings,
//! the load, which errors there are and how often, how late commands complete.
//! The engine is driven step by step as the kernel module drives it, under a
//! kernel that swaps pages, and a user of the raw disk. What every page must
//! hold is known all the time, and whatever the engine says is compared with
//! that. A seed gives the same run on every machine.

mod actors;
mod campaign;
mod counts;
mod draw;
mod kernel;
mod media;
mod model;
mod module;
mod run;

use std::collections::BTreeSet;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

pub use campaign::{Campaign, Summary};
pub use counts::Counts;
use draw::Scenario;
use run::Run;
use serde::Serialize;
use znsage_engine::last_words;

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
use trace;

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

/// How to see a seed again.
pub fn replay(seed: u64) -> String {
    format!("znsage sim torture --seed {seed} --trace")
}

static UNDER_WAY: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// The seeds that run now: should one of them never end, it can be named.
pub fn under_way() -> Vec<u64> {
    UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
}

fn note(change: impl FnOnce(&mut BTreeSet<u64>)) {
    change(&mut UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Runs a seed.
pub fn run(seed: u64, sabotage: Sabotage, trace: Option<Trace>) -> Outcome {
    note(|seeds| {
        seeds.insert(seed);
    });
    let plan = Scenario::draw(seed);
    let scenario = plan.to_string();
    let words = format!("seed {seed} failed; again: {}\n{scenario}\n", replay(seed));
    last_words::set(&words);
    let mut run = Run::new(plan, sabotage, trace);
    // The engine's wrapper panics when it is asked for what cannot be.
    let panic = panic::catch_unwind(AssertUnwindSafe(|| run.run())).err();
    last_words::set("");
    note(|seeds| {
        seeds.remove(&seed);
    });
    let mut wrong = std::mem::take(&mut run.wrong);
    if let Some(panic) = panic {
        let what = panic.downcast_ref::<String>().map(String::as_str);
        let what = what.or_else(|| panic.downcast_ref::<&str>().copied());
        wrong.push(format!("panic: {}", what.unwrap_or("of an unknown kind")));
    }
    let failure = (!wrong.is_empty()).then(|| Failure {
        seed,
        at: run.now,
        wrong,
        scenario,
        zones: run.zone_table(),
    });
    Outcome { counts: run.n, failure }
}
