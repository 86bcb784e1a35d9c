// SPDX-License-Identifier: GPL-2.0-only
//! Errors are sentences for the person at the terminal.

use std::fmt::Display;

pub type Result<T> = std::result::Result<T, String>;

/// Puts what failed in front of an error.
pub trait Context<T> {
    fn context(self, what: impl Display) -> Result<T>;
}

impl<T, E: Display> Context<T> for std::result::Result<T, E> {
    fn context(self, what: impl Display) -> Result<T> {
        self.map_err(|e| format!("{what}: {e}"))
    }
}
