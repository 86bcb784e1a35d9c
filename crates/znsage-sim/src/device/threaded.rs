// SPDX-License-Identifier: GPL-2.0-only
//! Zones open for threaded logging, and what a copy within the device is made of.

use super::params::ZnsPlus;
use crate::time::Ns;

/// The part of a device that has the commands.
#[derive(Clone, Debug)]
pub(super) struct Plus {
    pub params: ZnsPlus,
    /// Zones open for threaded logging.
    pub logs: Vec<Log>,
}

/// A zone open for threaded logging.
#[derive(Clone, Debug)]
pub(super) struct Log {
    pub zone: u32,
    /// Blocks live when it was opened, a bit each.
    pub valid: Vec<u64>,
    /// Blocks before this one are in their new place.
    pub at: u32,
    /// Has the host written a block of the current unit?
    pub written: bool,
}

/// A part of a copy, within one unit at the source and at the destination.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub blocks: u32,
    /// When its data are in the controller.
    pub ready: Ns,
    pub copyback: bool,
}

impl Plus {
    pub fn new(params: ZnsPlus) -> Plus {
        Plus { params, logs: Vec::new() }
    }
}

impl Log {
    /// Live blocks from `from` to `end`.
    pub fn live(&self, from: u32, end: u32) -> u32 {
        (from..end).filter(|b| self.valid[*b as usize / 64] >> (b % 64) & 1 == 1).count() as u32
    }
}
