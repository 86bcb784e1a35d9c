// SPDX-License-Identifier: GPL-2.0-only
//! How a case ends: with the reason if it fails.

use std::fmt::Display;

pub type Outcome<T = ()> = Result<T, String>;

/// Names what was tried.
pub trait Context<T> {
    fn context(self, what: impl Display) -> Outcome<T>;
}

impl<T, E: Display> Context<T> for Result<T, E> {
    fn context(self, what: impl Display) -> Outcome<T> {
        self.map_err(|e| format!("{what}: {e}"))
    }
}

/// Ends the function with a reason unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($reason:tt)+) => {
        // By name: a comparison with NaN does not hold either.
        let holds: bool = $condition;
        if !holds {
            return Err(format!($($reason)+));
        }
    };
}
