// SPDX-License-Identifier: GPL-2.0-only
//! Sleep of the whole machine, which returns once all tasks are frozen: nothing could wake the
//! guest, and its root file system does not survive hibernation.

use crate::guest::{self, Setting};
use crate::outcome::{Context, Outcome};

/// Writing here puts the machine to sleep: `freeze`, `disk`.
pub const STATE: &str = "/sys/power/state";
/// How far the kernel goes before it returns.
const TEST: &str = "/sys/power/pm_test";
/// Seconds until it returns.
const DELAY: &str = "/sys/module/suspend/parameters/pm_test_delay";

/// While this value lives, the machine wakes up a second after all tasks are frozen.
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
        // If this fails, so does the next case that sleeps.
        let _ = guest::write(TEST, "none");
    }
}

/// Suspend to idle, which needs no support by the machine.
pub fn to_idle() -> Outcome {
    let _awake = NoFurther::than_freezing()?;
    guest::write(STATE, "freeze").context("suspend to idle")
}
