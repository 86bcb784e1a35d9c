// SPDX-License-Identifier: GPL-2.0-only
//! Random actions of every kind at once. MINUTES and SEED in the environment set the duration
//! (without it, 10 s) and the seed.

use std::time::Duration;

use crate::guest::asked_for;
use crate::kmsg::Log;
use crate::outcome::Outcome;
use crate::torture::torture;

crate::cases![torture: everything_at_once (each)];

fn everything_at_once(_: &mut Log) -> Outcome {
    let minutes = asked_for("MINUTES", 0)?;
    torture(asked_for("SEED", 1)?, Duration::from_secs((60 * minutes).max(10)))
}
