// SPDX-License-Identifier: GPL-2.0-only
//! The swap cache: GC drops the blocks of clean pages in memory, which keep
//! their slots (`kmod/cached.c`).

use super::state::Znsage;
use crate::device::ZoneDevice;
use crate::host::page::NONE;
use crate::host::task::By;
use crate::host::Host;
use crate::time::Ns;

impl<D: ZoneDevice> Znsage<D> {
    /// Finds slots for pages being swapped out: the ones they have, else new ones.
    /// Returns how many pages have one.
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

    /// Marks pages whose blocks GC dropped, so that reclaim writes them again.
    /// Returns the CPU time that this takes.
    pub(super) fn write_again(&mut self, h: &mut Host) -> Ns {
        let Some(cached) = &self.cached else { return 0 };
        let dropped = cached.memory.take_dropped();
        for &slot in &dropped {
            self.packing.take(slot, 0);
            h.write_again(cached.owner[slot as usize], slot);
        }
        dropped.len() as Ns * self.set.drop_cost
    }
}
