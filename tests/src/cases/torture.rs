// SPDX-License-Identifier: GPL-2.0-only
//! Everything at once. MINUTES and SEED in the environment say how long, and what.

use std::time::Duration;

use crate::guest::asked_for;
use crate::kmsg::Log;
use crate::outcome::Outcome;
use crate::torture::torture;

crate::cases![torture: everything_at_once];

fn everything_at_once(_: &mut Log) -> Outcome {
    let minutes = asked_for("MINUTES", 2)?;
    torture(asked_for("SEED", 1)?, Duration::from_secs(60 * minutes))
}
