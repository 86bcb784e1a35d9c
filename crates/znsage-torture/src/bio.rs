// SPDX-License-Identifier: GPL-2.0-only
//! What the module is handed.

use super::content::Token;

pub(super) type BioId = usize;

/// Who submitted a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum User {
    /// The kernel, for a page.
    Page(u32),
    /// The same, for swapoff.
    Swapoff(u32),
    /// A user of the disk.
    Raw,
}

/// A request of several pages.
pub(super) struct Bio {
    pub user: User,
    pub write: bool,
    pub slots: Vec<u32>,
    /// Content to write, or expected.
    pub tokens: Vec<Token>,
    /// Content that was read.
    pub got: Vec<Token>,
    /// Pages the module has handled.
    pub at: usize,
    /// Parts that have not ended.
    pub left: u32,
    pub failed: bool,
    /// A block of it failed to read on the device.
    pub device_error: bool,
    /// Event count when it was submitted.
    pub(super) since: u64,
}
