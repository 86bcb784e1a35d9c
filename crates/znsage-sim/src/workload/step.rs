// SPDX-License-Identifier: GPL-2.0-only
//! What a thread does next.

use crate::time::Ns;

/// What a thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It touches a page.
    Access(Access),
    /// It has filled its part.
    Filled,
}

/// An access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The page.
    pub page: u32,
    /// The mapping it is in.
    pub vma: u16,
    /// Does it change the page?
    pub write: bool,
    /// Is it the last of its request?
    pub last: bool,
    /// Compute time before it.
    pub think: Ns,
}
