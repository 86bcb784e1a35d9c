// SPDX-License-Identifier: GPL-2.0-only
//! The result of a case: the reason if it failed.

use std::fmt::Display;

pub type Outcome<T = ()> = Result<T, String>;

/// Adds what was tried to an error.
pub trait Context<T> {
    fn context(self, what: impl Display) -> Outcome<T>;
}

impl<T, E: Display> Context<T> for Result<T, E> {
    fn context(self, what: impl Display) -> Outcome<T> {
        self.map_err(|e| format!("{what}: {e}"))
    }
}

/// Returns an error unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($reason:tt)+) => {
        // Named, so that a comparison with NaN fails, too.
        let holds: bool = $condition;
        if !holds {
            return Err(format!($($reason)+));
        }
    };
}
