// SPDX-License-Identifier: GPL-2.0-only
//! Invariants when nothing is in flight.

use super::state::{State, ZnsPlus, Zone};
use crate::host::page::NONE;
use crate::host::Host;
use crate::system::Wrong;

impl ZnsPlus {
    pub(super) fn check_all(&self, h: &Host) -> Vec<Wrong> {
        let mut wrong = self.media.shadow.wrong().to_vec();
        let mut must = |what: String, is: u64, want: u64| {
            if is != want {
                wrong.push(Wrong(format!("{what}: is {is}, should be {want}")));
            }
        };
        let mut live = vec![0u32; self.zones.len()];
        for (block, &slot) in self.owner.iter().enumerate() {
            if slot != NONE {
                live[self.zone_of(block as u32) as usize] += 1;
                let at = self.map[slot as usize];
                must(format!("block of slot {slot}"), at.into(), block as u64);
            }
        }
        let mapped = self.map.iter().filter(|&&b| b != NONE).count() as u64;
        must("slots with a block".into(), mapped, h.slots.used().into());
        must("live blocks".into(), live.iter().map(|&n| u64::from(n)).sum(), mapped);
        let active = |z: &Zone| matches!(z.state, State::Open | State::Threaded);
        let open = self.zones.iter().filter(|z| active(z)).count() as u64;
        must("open zones".into(), self.open.into(), open);
        for (i, (z, live)) in self.zones.iter().zip(live).enumerate() {
            must(format!("live blocks of zone {i}"), z.live.into(), live.into());
            must(
                format!("commands to zone {i}"),
                (z.writes + self.upkeep.readers(i as u32)).into(),
                0,
            );
            let fits = match z.state {
                State::Free => self.free.contains(&(i as u32)) && z.given == 0 && live == 0,
                State::Open => self.head == i as u32 || self.recycler.head() == i as u32,
                State::Full => z.given == self.media.zone_blocks && live > 0,
                State::Threaded => self.threaded.iter().any(|t| t.zone == i as u32),
                State::Victim | State::Resetting => false,
            };
            must(format!("zone {i}, {:?}, is as it should be", z.state), fits.into(), 1);
        }
        let c = self.media.dev.counters();
        must("blocks on the device".into(), c.written_blocks, self.count.host_blocks);
        must("recycling at rest".into(), self.recycler.at_rest().into(), 1);
        wrong
    }
}
