// SPDX-License-Identifier: GPL-2.0-only
//! Cgroups with a limit on what they write, and garbage collection charged to
//! the one that causes it.
//!
//! ZNSwap submits GC's commands in the name of the cgroup whose page is moved
//! (`zns_cgroup_account`), so the kernel's I/O controller counts them against
//! its limit (`io.max`). Here a cgroup that has used up its limit does not swap
//! out until time has made up for it. With policy `cgroup` each cgroup has
//! streams of its own, so victims hold pages of one.

use super::state::{ZoneLog, PAID};
use crate::event::Event;
use crate::host::Host;
use crate::time::{transfer, BLOCK};

impl ZoneLog {
    fn charge(&mut self, h: &Host, group: u8, pages: u64) {
        let limit = self.set.cgroup_mb_s * 1_000_000;
        if limit == 0 {
            return;
        }
        let until = &mut self.limits.until;
        if until.len() <= usize::from(group) {
            until.resize(usize::from(group) + 1, 0);
        }
        let until = &mut until[usize::from(group)];
        *until = h.now.max(*until) + transfer(pages * BLOCK, limit);
    }

    /// A cgroup swaps out.
    pub(super) fn charge_pages(&mut self, h: &Host, group: u8, pages: usize) {
        self.charge(h, group, pages as u64);
    }

    /// Garbage collection moves a page.
    pub(super) fn charge_moved(&mut self, h: &Host, page: u32) {
        if self.set.isolate && self.set.cgroup_mb_s > 0 {
            self.charge(h, h.group_of_page(page), 1);
        }
    }

    /// Has the cgroup to wait before it swaps out? It will be woken.
    pub(super) fn over_limit(&mut self, h: &mut Host, group: u8) -> bool {
        let until = self.limits.until.get(usize::from(group)).copied().unwrap_or(0);
        if until <= h.now {
            return false;
        }
        // One timer for all: each time it wakes all of them.
        if self.limits.timer.is_none_or(|at| until < at) {
            self.limits.timer = Some(until);
            h.queue.push(until, Event::System(PAID));
        }
        true
    }

    /// Whoever waits looks again.
    pub(super) fn limit_timer(&mut self, h: &mut Host) {
        if self.limits.timer.is_some_and(|at| at <= h.now) {
            self.limits.timer = None;
            h.has_room();
        }
    }
}
