// SPDX-License-Identifier: GPL-2.0-only
//! What the module is handed.

use super::media::Token;

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

/// Pages that are written or read together.
pub(super) struct Bio {
    pub user: User,
    pub write: bool,
    pub slots: Vec<u32>,
    /// What is written, or has to arrive.
    pub tokens: Vec<Token>,
    /// What has arrived.
    pub got: Vec<Token>,
    /// How far the module is.
    pub at: usize,
    /// What has to end yet.
    pub left: u32,
    pub failed: bool,
    /// The device refused to read a block of it.
    pub device_error: bool,
    /// Events before it came.
    pub(super) since: u64,
}
