// SPDX-License-Identifier: GPL-2.0-only
//! Reclaim by a task that needs a frame.
//!
//! It frees the pages that an earlier batch wrote, isolates the next batch and
//! swaps it out under a plug. Each reclaiming task has one batch in flight; a
//! task whose batch freed nothing waits for a write to end.

use super::Sim;
use crate::host::group::BATCH;
use crate::host::task::Next;
use crate::system::{System, Taken};
use crate::time::Ns;

impl<S: System> Sim<S> {
    pub(super) fn reclaim(&mut self, task: u32, begun: Ns) {
        let t = &mut self.h.tasks[task as usize];
        t.fault.reclaimed += 1;
        let group = t.group;
        let mut batch = std::mem::take(&mut t.batch);
        debug_assert!(batch.is_empty());

        let freed = self.h.reap(group, BATCH);
        let scanned = self.h.isolate(group, &mut batch);
        self.h.count.reclaims += 1;

        let c = &self.h.costs;
        let cost =
            freed as Ns * c.free + scanned as Ns * c.scan + batch.len() as Ns * (c.unmap + c.slot);
        let t = &mut self.h.tasks[task as usize];
        (t.batch, t.done) = (batch, 0);
        self.h.go_on(task, begun, begun + cost, Next::SwapOut);
    }

    /// Swaps out the batch of a task.
    pub(super) fn swap_out(&mut self, task: u32, begun: Ns) {
        let by = self.h.by(task);
        let t = &mut self.h.tasks[task as usize];
        let (mut batch, done) = (std::mem::take(&mut t.batch), t.done);
        if done == 0 {
            batch.retain(|&frame| !self.h.drop_clean(frame));
        }
        let taken = self.s.swap_out(&mut self.h, by, &batch[done..]);
        self.s.unplug(&mut self.h, by);
        let spent = self.h.take_spent();
        self.check_phase();
        match taken {
            Taken::All => (),
            Taken::Wait(n) => {
                let t = &mut self.h.tasks[task as usize];
                (t.batch, t.done, t.next) = (batch, done + n, Next::SwapOut);
                self.h.uses(task, spent);
                return self.h.wait_for_room(task);
            }
            Taken::NoSlot(n) => {
                for &frame in &batch[done + n..] {
                    self.h.count.no_slot += 1;
                    self.h.put_back(frame);
                }
            }
        }
        batch.clear();
        self.h.tasks[task as usize].batch = batch;
        self.h.go_on(task, begun, begun + spent, Next::Fault);
    }
}
