// SPDX-License-Identifier: GPL-2.0-only
//! The kernel module's part: takes the same decisions as `kmod/write.c`,
//! `read.c` and `worker.c`, step by step, so that findings hold for the
//! module.

mod packed;
mod read;
mod worker;
mod write;

use super::chunks::Cmd;
use super::media::Ticket;
use super::state::{Ev, Run};
use super::types::Sabotage;

impl Run {
    /// Kicks the worker.
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

    /// Puts a command in flight until its ticket's completion time.
    fn submit(&mut self, ticket: Ticket, cmd: Cmd) {
        let at = ticket.done.max(self.now);
        let i = self.commands.insert((ticket, cmd));
        self.queue.push(at, Ev::Done(i));
    }
}
