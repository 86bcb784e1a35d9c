// SPDX-License-Identifier: GPL-2.0-only
//! Everything at once. MINUTES and SEED in the environment say how long, and what.

use std::env::var;
use std::time::Duration;

use crate::kmsg::Log;
use crate::outcome::{Context, Outcome};
use crate::torture::torture;

crate::cases![torture: everything_at_once];

/// A number from the environment.
fn setting(name: &str, usual: u64) -> Outcome<u64> {
    match var(name) {
        Ok(text) if !text.is_empty() => text.parse().context(format!("{name} is `{text}`")),
        _ => Ok(usual),
    }
}

fn everything_at_once(_: &mut Log) -> Outcome {
    let minutes = setting("MINUTES", 2)?;
    torture(setting("SEED", 1)?, Duration::from_secs(60 * minutes))
}
