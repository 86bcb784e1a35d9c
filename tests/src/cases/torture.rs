// SPDX-License-Identifier: GPL-2.0-only
//! Random actions of every kind at once. MINUTES and SEED in the environment set the duration
//! (without it, 10 s) and the seed.

use std::time::Duration;

use super::devices::{CONVENTIONAL, MAIN};
use crate::guest::{self, asked_for};
use crate::kmsg::Log;
use crate::outcome::Outcome;
use crate::torture::torture;

crate::cases![torture: everything_at_once (each)];

fn everything_at_once(_: &mut Log) -> Outcome {
    let (main, rest) = (guest::device(MAIN)?, guest::device(CONVENTIONAL)?);
    for_minutes(&main, &rest)
}

pub fn for_minutes(main: &str, rest: &str) -> Outcome {
    let minutes = asked_for("MINUTES", 0)?;
    torture(main, rest, asked_for("SEED", 1)?, Duration::from_secs((60 * minutes).max(10)))
}
