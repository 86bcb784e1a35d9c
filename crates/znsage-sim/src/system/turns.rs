// SPDX-License-Identifier: GPL-2.0-only
//! Writes to zones that take one at a time: where the kernel emulates zone
//! append, further ones wait in the host, in the order in which they came
//! (the kernel's zone write plugs). Devices have no events of their own, so
//! the system says when a write has ended.

use std::collections::VecDeque;

use crate::device::{Appended, Fault};

/// A write to a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The zone.
    pub zone: u32,
    /// First block, counted from the zone's start; None: an append.
    pub offset: Option<u32>,
    /// Blocks.
    pub blocks: u32,
    /// The system's number for it.
    pub id: usize,
}

/// A write that the device has accepted or refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The system's number for it.
    pub id: usize,
    /// Where it goes, and when it completes.
    pub result: Result<Appended, Fault>,
}

#[derive(Clone, Default)]
struct Turn {
    /// Is a write in flight?
    busy: bool,
    waiting: VecDeque<Write>,
}

/// Whose turn it is, for each zone.
pub(super) struct Turns {
    zones: Vec<Turn>,
}

impl Turns {
    /// Turns for this many zones; others take any number of writes at a time.
    pub fn new(zones: u32) -> Turns {
        Turns { zones: vec![Turn::default(); zones as usize] }
    }

    /// Returns the write if it can begin; otherwise it waits.
    pub fn arrive(&mut self, w: Write) -> Option<Write> {
        let Some(turn) = self.zones.get_mut(w.zone as usize) else { return Some(w) };
        if turn.busy {
            turn.waiting.push_back(w);
            return None;
        }
        turn.busy = true;
        Some(w)
    }

    /// A write to `zone` has ended. Returns the one that begins now.
    pub fn ended(&mut self, zone: u32) -> Option<Write> {
        let turn = self.zones.get_mut(zone as usize)?;
        let next = turn.waiting.pop_front();
        turn.busy = next.is_some();
        next
    }
}
