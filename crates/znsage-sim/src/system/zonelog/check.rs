// SPDX-License-Identifier: GPL-2.0-only
//! Invariants when nothing is in flight.

use super::state::{State, ZoneLog};
use crate::host::page::NONE;
use crate::host::{Holds, Host};
use crate::system::Wrong;

impl ZoneLog {
    pub(super) fn check_all(&self, h: &Host) -> Vec<Wrong> {
        let mut wrong = self.media.shadow.wrong().to_vec();
        self.check_owners(h, &mut wrong);
        self.check_zones(h, &mut wrong);
        let written = self.count.host_blocks
            + self.count.gc_blocks
            + self.count.padding_blocks
            + self.count.metadata_blocks;
        let mut must = |what: &str, is: u64, want: u64| {
            if is != want {
                wrong.push(Wrong(format!("{what}: is {is}, should be {want}")));
            }
        };
        must("blocks on the device", self.media.dev.counters().written_blocks, written);
        must("commands under way", (self.writes.len() + self.upkeep.reads()) as u64, 0);
        must("garbage collection at rest", u64::from(self.gc.at_rest()), 1);
        wrong
    }

    /// Each slot in use belongs to a page that names it.
    fn check_owners(&self, h: &Host, wrong: &mut Vec<Wrong>) {
        let mut live = vec![0; self.zones.len()];
        for (slot, &page) in self.owner.iter().enumerate() {
            if page == NONE {
                continue;
            }
            live[self.zone_of(slot as u32) as usize] += 1;
            if h.holds(page, slot as u32) == Holds::No {
                wrong.push(Wrong(format!("slot {slot} is not of page {page}")));
            }
        }
        let used: u32 = live.iter().sum();
        if used != h.slots.used() {
            wrong.push(Wrong(format!("{used} slots have pages, {} are in use", h.slots.used())));
        }
        for (zone, (z, live)) in self.zones.iter().zip(live).enumerate() {
            if z.live != live {
                wrong.push(Wrong(format!("zone {zone}: {} live, should be {live}", z.live)));
            }
        }
    }

    fn check_zones(&self, h: &Host, wrong: &mut Vec<Wrong>) {
        let count = |state| self.zones.iter().filter(|z| z.state == state).count() as u32;
        let mut must = |what: &str, is: u32, want: u32| {
            if is != want {
                wrong.push(Wrong(format!("{what}: is {is}, should be {want}")));
            }
        };
        must("free zones", self.free, count(State::Free));
        must("open zones", self.open, count(State::Open));
        must("zones kept for GC", u32::from(self.emergency.is_some()), count(State::Emergency));
        must("zones under reset", count(State::Resetting), 0);
        for (i, z) in self.zones.iter().enumerate() {
            let i = i as u32;
            must(&format!("blocks written of zone {i}"), z.done, z.given);
            must(&format!("readers of zone {i}"), self.upkeep.readers(i), 0);
            let info = self.media.dev.zone(i);
            if z.state != State::Full {
                must(&format!("write pointer of zone {i}"), info.write_pointer, z.given);
            }
            let cap = self.media.zone_blocks;
            let slots = i * cap..(i + 1) * cap;
            let cached = slots.filter(|&s| {
                let page = self.owner[s as usize];
                page != NONE && matches!(h.holds(page, s), Holds::Cached | Holds::Busy)
            });
            must(
                &format!("slots of zone {i} in memory too"),
                h.cached_in(i),
                cached.count() as u32,
            );
        }
    }
}
