// SPDX-License-Identifier: GPL-2.0-only
//! Sleep of the whole machine, which turns round when all tasks are frozen: a guest
//! has nothing that would wake it, and its root is on a device that does not come back.

use crate::guest::{self, Setting};
use crate::outcome::{Context, Outcome};

/// What is written here is how the machine goes to sleep: `freeze`, `disk`.
pub const STATE: &str = "/sys/power/state";
/// How far the kernel goes to sleep before it turns round.
const TEST: &str = "/sys/power/pm_test";
/// Seconds until it does.
const DELAY: &str = "/sys/module/suspend/parameters/pm_test_delay";

/// As long as it lives, sleep ends a second after all tasks are frozen: if hibernation
/// is not refused after all, the machine is still there to tell.
pub struct NoFurther {
    _delay: Setting,
}

impl NoFurther {
    pub fn than_freezing() -> Outcome<NoFurther> {
        let delay = Setting::set(DELAY, "1")?;
        guest::write(TEST, "freezer").context(TEST)?;
        Ok(NoFurther { _delay: delay })
    }
}

impl Drop for NoFurther {
    fn drop(&mut self) {
        // If this does not work, the next case that sleeps will not, either.
        let _ = guest::write(TEST, "none");
    }
}

/// Suspend to idle, which needs nothing of the machine.
pub fn to_idle() -> Outcome {
    let _awake = NoFurther::than_freezing()?;
    guest::write(STATE, "freeze").context("suspend to idle")
}
