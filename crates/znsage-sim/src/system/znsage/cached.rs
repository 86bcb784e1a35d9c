// SPDX-License-Identifier: GPL-2.0-only
//! The swap cache: pages in memory that keep their slots, and whose blocks GC
//! drops (`kmod/cached.c`).

use std::sync::Arc;

use znsage_engine::InMemory;

use super::Znsage;
use crate::host::page::NONE;
use crate::host::task::By;
use crate::host::Host;

/// What is known of slots whose pages are in memory.
pub(super) struct Cached {
    /// Slots whose page is in memory, unchanged.
    pub(super) memory: Arc<InMemory>,
    /// Of each slot, its page.
    owner: Vec<u32>,
}

impl Cached {
    /// For so many slots, none of which has a page.
    pub(super) fn new(memory: Arc<InMemory>, slots: u32) -> Self {
        Cached { memory, owner: vec![NONE; slots as usize] }
    }

    /// `page` is swapped out to `slot`.
    pub(super) fn note(&mut self, slot: u32, page: u32) {
        self.owner[slot as usize] = page;
    }
}

impl Znsage {
    /// Slots for pages that are swapped out: those that they have already, and
    /// new ones, as long as there are any. Returns for how many there are.
    pub(super) fn find_slots(&mut self, h: &mut Host, by: By, frames: &[u32]) -> usize {
        let has = |h: &Host, frame: &u32| h.frame(*frame).slot != NONE;
        let new = frames.iter().filter(|f| !has(h, f)).count();
        self.slots.clear();
        h.alloc_slots(by.cpu, new, &mut self.slots);
        if new == frames.len() {
            return self.slots.len();
        }
        let mut found = std::mem::take(&mut self.slots).into_iter();
        for frame in frames {
            let slot = if has(h, frame) { Some(h.frame(*frame).slot) } else { found.next() };
            let Some(slot) = slot else { break };
            self.slots.push(slot);
        }
        self.slots.len()
    }

    /// Pages that GC left to be written again.
    pub(super) fn write_again(&mut self, h: &mut Host) {
        let Some(cached) = &self.cached else { return };
        for slot in cached.memory.take_dropped() {
            h.spent += self.set.drop_cost;
            h.write_again(cached.owner[slot as usize], slot);
        }
    }
}
