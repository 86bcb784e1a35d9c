// SPDX-License-Identifier: GPL-2.0-only
//! The kernel module's part: the same decisions as `kmod/write.c`, `read.c`
//! and `worker.c` take, step by step, so that what is found here is true of
//! the module.

mod read;
mod worker;
mod write;

use super::chunks::Cmd;
use super::media::Ticket;
use super::state::{Ev, Run};
use super::types::Sabotage;

impl Run {
    /// The worker has something to do.
    pub(super) fn kick(&mut self) {
        if self.m.queued || (self.sabotage == Sabotage::LoseKick && self.spoil(200)) {
            return;
        }
        self.m.queued = true;
        if self.m.stage.is_none() {
            let at = self.now + self.delay(self.plan.wake);
            self.queue.push(at, Ev::Work);
        }
    }

    /// A command is in flight until its ticket says.
    fn submit(&mut self, ticket: Ticket, cmd: Cmd) {
        let at = ticket.done.max(self.now);
        let i = self.commands.insert((ticket, cmd));
        self.queue.push(at, Ev::Done(i));
    }
}
