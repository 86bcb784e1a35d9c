// SPDX-License-Identifier: GPL-2.0-only
//! Write limits for cgroups, with garbage collection charged to the cgroup
//! that causes it.
//!
//! ZNSwap submits GC's commands on behalf of the cgroup whose page moves
//! (`zns_cgroup_account`), so they count against its `io.max`. Here a cgroup
//! over its limit waits before it swaps out. With policy `cgroup` each cgroup
//! has its own streams, so a victim holds pages of one cgroup.

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

    /// Must the cgroup wait before it swaps out? A timer wakes it.
    pub(super) fn over_limit(&mut self, h: &mut Host, group: u8) -> bool {
        let until = self.limits.until.get(usize::from(group)).copied().unwrap_or(0);
        if until <= h.now {
            return false;
        }
        // One timer for all cgroups; it wakes all waiters.
        if self.limits.timer.is_none_or(|at| until < at) {
            self.limits.timer = Some(until);
            h.queue.push(until, Event::System(PAID));
        }
        true
    }

    /// Wakes the waiters, which check again.
    pub(super) fn limit_timer(&mut self, h: &mut Host) {
        if self.limits.timer.is_some_and(|at| at <= h.now) {
            self.limits.timer = None;
            h.has_room();
        }
    }
}
