// SPDX-License-Identifier: GPL-2.0-only
//! What the system keeps: zones, maps, recycling.

use std::collections::VecDeque;

use slab::Slab;

use crate::host::lock::Lock;
use crate::host::page::NONE;
use crate::spec::PublishedSpec;
use crate::system::media::Zoned;
use crate::system::zones::Zones;
use crate::system::SystemCounters;

// Kinds of events, in the bits above the index of their object; 1 and 3 are those of
// `zones.rs`.
pub(super) const WRITTEN: u64 = 0 << 32;
pub(super) const COMPACTED: u64 = 2 << 32;
pub(super) const OPENED: u64 = 4 << 32;
pub(super) const CLOSED: u64 = 5 << 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Free,
    /// Appended to.
    Open,
    Full,
    /// Its blocks are being copied away.
    Victim,
    /// Open for threaded logging, or being opened or closed.
    Threaded,
    Resetting,
}

pub(super) struct Zone {
    pub(super) state: State,
    /// Blocks allocated to appends.
    pub(super) given: u32,
    /// Live blocks.
    pub(super) live: u32,
    /// Writes in flight.
    pub(super) writes: u32,
}

/// A zone open for threaded logging, with its writable (dead) blocks as
/// ascending runs.
pub(super) struct Threaded {
    pub(super) zone: u32,
    pub(super) runs: VecDeque<(u32, u32)>,
}

pub(super) struct Writing {
    pub(super) zone: u32,
    /// First block, counted from the zone's start.
    pub(super) offset: u32,
    pub(super) frames: Vec<u32>,
    pub(super) cpu: u32,
}

/// The system.
pub struct ZnsPlus {
    pub(super) set: PublishedSpec,
    pub(super) media: Zoned,
    pub(super) zones: Vec<Zone>,
    pub(super) upkeep: Zones,
    /// The block of each slot, and the slot of each block.
    pub(super) map: Vec<u32>,
    pub(super) owner: Vec<u32>,
    /// The zone that swap-out appends to.
    pub(super) head: u32,
    /// Zones open for threaded logging; writes go to the first.
    pub(super) threaded: VecDeque<Threaded>,
    pub(super) free: Vec<u32>,
    pub(super) open: u32,
    pub(super) max_open: u32,
    pub(super) low: u32,
    pub(super) recycler: Recycler,
    pub(super) writes: Slab<Writing>,
    pub(super) slots: Vec<u32>,
    pub(super) lock: Lock,
    pub(super) count: SystemCounters,
}

/// State of recycling: one compaction at a time.
pub(super) struct Recycler {
    /// Does the device have the commands of ZNS+?
    pub(super) commands: bool,
    pub(super) victim: u32,
    /// Next block of the victim to look at.
    pub(super) at: u32,
    /// Where compaction writes.
    pub(super) head: u32,
    /// Slots being moved: slot, from, to.
    pub(super) moves: Vec<(u32, u32, u32)>,
    pub(super) busy: bool,
    /// Zones being opened for threaded logging.
    pub(super) opening: Vec<Threaded>,
}

impl Recycler {
    pub(super) fn new(commands: bool) -> Self {
        Recycler {
            commands,
            victim: NONE,
            at: 0,
            head: NONE,
            moves: Vec::new(),
            busy: false,
            opening: Vec::new(),
        }
    }

    pub(super) fn at_rest(&self) -> bool {
        self.victim == NONE && !self.busy && self.opening.is_empty()
    }

    pub(super) fn head(&self) -> u32 {
        self.head
    }
}
