// SPDX-License-Identifier: GPL-2.0-only
//! One seed, from its scenario to its outcome.

use std::collections::BTreeSet;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

use znsage_engine::last_words;

use super::draw::Scenario;
use super::state::Run;
use super::types::{Failure, Outcome, Sabotage, Trace};

/// The command that replays a seed.
pub fn replay(seed: u64) -> String {
    format!("znsage-torture --seed {seed} --trace")
}

static UNDER_WAY: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// The seeds running now, to name one that hangs.
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
    // The engine's wrapper panics on impossible requests.
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
