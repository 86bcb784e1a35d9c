// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's allocator of swap slots for an SSD (`mm/swapfile.c`).
//!
//! Each CPU allocates upwards through a cluster of its own, then takes a free
//! cluster. If there is none, kernels from 6.12 on take the cluster that has
//! had free slots for longest; older kernels scan on from the CPU's position,
//! and jump to a random place after 64 MiB ([`Search`]). Each CPU returns
//! slots in batches; only then does the device learn that they are free.
//!
//! One bit per slot: 16 MiB for 2^27 slots (512 GiB).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::page::NONE;
use crate::rng;

/// Slots of a cluster: `SWAPFILE_CLUSTER`, which is a huge page with
/// `CONFIG_THP_SWAP` (x86-64); 2 MiB.
pub const CLUSTER: u32 = 512;
const WORD: u32 = 64;
const WORDS: u32 = CLUSTER / WORD;

/// Slots between random jumps: `SWAP_ADDRESS_SPACE_PAGES`.
const TRUNK: u32 = 1 << 14;

/// Where slots come from when no cluster is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Search {
    /// Clusters with free slots, in FIFO order (kernels from 6.12 on).
    #[default]
    Clusters,
    /// A scan from the CPU's position, with a random jump after each 64 MiB (older
    /// kernels; ZNSwap's evaluation ran 5.12).
    Scan,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum On {
    Free,
    Partly,
    /// A CPU allocates from it.
    Cpu,
    /// Full, or held for its discard.
    None,
}

#[derive(Clone)]
struct Cluster {
    free: u16,
    on: On,
}

#[derive(Clone)]
struct PerCpu {
    cluster: u32,
    next: u32,
    returned: Vec<u32>,
}

/// Result of releasing a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// The cluster still has slots in use.
    Slot,
    /// This cluster has become free.
    Cluster(u32),
}

/// The slots of a swap area.
pub struct Slots {
    /// A set bit is a slot in use.
    used_map: Vec<u64>,
    clusters: Vec<Cluster>,
    free: VecDeque<u32>,
    partly: VecDeque<u32>,
    cpus: Vec<PerCpu>,
    total: u32,
    used: u32,
    batch: usize,
    hold_free: bool,
    search: Search,
    /// Random jumps so far.
    jumps: u64,
}

impl Slots {
    /// `total` slots, returned in batches of `batch` by each of `cpus` CPUs. With
    /// `hold_free`, a free cluster is held back until [`Slots::discarded`].
    pub fn new(total: u32, cpus: usize, batch: usize, hold_free: bool) -> Self {
        let nr = total.div_ceil(CLUSTER);
        let mut used_map = vec![0; (nr * WORDS) as usize];
        for slot in total..nr * CLUSTER {
            used_map[(slot / WORD) as usize] |= 1 << (slot % WORD);
        }
        let in_cluster = |c: u32| (total - c * CLUSTER).min(CLUSTER) as u16;
        let cpu = PerCpu { cluster: NONE, next: 0, returned: Vec::with_capacity(batch) };
        Slots {
            used_map,
            clusters: (0..nr).map(|c| Cluster { free: in_cluster(c), on: On::Free }).collect(),
            free: (0..nr).collect(),
            partly: VecDeque::new(),
            cpus: vec![cpu; cpus],
            total,
            used: 0,
            batch: batch.max(1),
            hold_free,
            search: Search::Clusters,
            jumps: 0,
        }
    }

    /// Sets how to find slots when no cluster is free.
    pub fn with_search(mut self, search: Search) -> Self {
        self.search = search;
        self
    }

    /// `total` slots that the system hands out: they are only counted, and return at
    /// once.
    pub fn counted(total: u32, cpus: usize) -> Self {
        let mut slots = Slots::new(0, cpus, 1, false);
        slots.total = total;
        slots
    }

    /// The system has handed out a slot.
    pub fn handed_out(&mut self) {
        debug_assert!(self.used_map.is_empty());
        self.used += 1;
    }

    /// Slots in all.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Slots in use, including those given back but not released.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Is more than half of the swap area in use (`vm_swap_full()`)?
    pub fn half_full(&self) -> bool {
        (self.total - self.used) * 2 < self.total
    }

    fn next_cluster(&mut self) -> Option<u32> {
        if let Some(c) = self.free.pop_front() {
            return Some(c);
        }
        while let Some(c) = self.partly.pop_front() {
            // Skip a cluster that has become free: it is on the other list, or held.
            if self.clusters[c as usize].on == On::Partly {
                return Some(c);
            }
        }
        None
    }

    /// First free slot in `from..end`; `end` is at a cluster boundary.
    fn scan(&self, from: u32, end: u32) -> Option<u32> {
        let end = end / WORD;
        let mut word = from / WORD;
        let mut mask = !0u64 << (from % WORD);
        while word < end {
            let free = !self.used_map[word as usize] & mask;
            if free != 0 {
                return Some(word * WORD + free.trailing_zeros());
            }
            mask = !0;
            word += 1;
        }
        None
    }

    /// A CPU leaves its cluster; slots behind it may have been freed.
    fn leave(&mut self, c: u32) {
        let cluster = &mut self.clusters[c as usize];
        if cluster.free > 0 && self.search == Search::Clusters {
            cluster.on = On::Partly;
            self.partly.push_back(c);
        } else {
            cluster.on = On::None;
        }
    }

    /// Allocates a slot on `cpu`.
    pub fn alloc(&mut self, cpu: usize) -> Option<u32> {
        // A partly used cluster may have its free slots only behind the scanned place,
        // so try more than once.
        for _ in 0..=2 * self.clusters.len() {
            let PerCpu { cluster, next, .. } = self.cpus[cpu];
            if cluster != NONE {
                if next < (cluster + 1) * CLUSTER {
                    if let Some(slot) = self.scan(next, (cluster + 1) * CLUSTER) {
                        return Some(self.take(cpu, slot));
                    }
                }
                self.cpus[cpu].cluster = NONE;
                self.leave(cluster);
            }
            if self.search == Search::Scan && self.free.is_empty() {
                return self.scan_on(cpu);
            }
            let c = self.next_cluster().or_else(|| self.steal(cpu))?;
            self.clusters[c as usize].on = On::Cpu;
            self.cpus[cpu].cluster = c;
            self.cpus[cpu].next = c * CLUSTER;
        }
        None
    }

    fn take(&mut self, cpu: usize, slot: u32) -> u32 {
        self.used_map[(slot / WORD) as usize] |= 1 << (slot % WORD);
        self.clusters[(slot / CLUSTER) as usize].free -= 1;
        self.used += 1;
        self.cpus[cpu].next = slot + 1;
        slot
    }

    /// The next free slot from the CPU's position, in any cluster.
    fn scan_on(&mut self, cpu: usize) -> Option<u32> {
        let end = self.clusters.len() as u32 * CLUSTER;
        let from = self.cpus[cpu].next % end;
        let slot = self.scan(from, end).or_else(|| self.scan(0, end))?;
        self.take(cpu, slot);
        if (slot + 1) / TRUNK != from / TRUNK {
            self.jumps += 1;
            let trunks = self.total.div_ceil(TRUNK);
            let trunk = rng::scale(rng::mix(self.jumps), trunks.into()) as u32;
            self.cpus[cpu].next = trunk * TRUNK;
        }
        Some(slot)
    }

    /// Takes over another CPU's cluster that has free slots.
    fn steal(&mut self, cpu: usize) -> Option<u32> {
        let other = (0..self.cpus.len()).find(|&i| {
            let c = self.cpus[i].cluster;
            i != cpu && c != NONE && self.clusters[c as usize].free > 0
        })?;
        Some(std::mem::replace(&mut self.cpus[other].cluster, NONE))
    }

    /// Gives back a slot. A full batch of `cpu` moves to `out`, for the caller to
    /// release.
    pub fn give_back(&mut self, cpu: usize, slot: u32, out: &mut Vec<u32>) {
        let returned = &mut self.cpus[cpu].returned;
        returned.push(slot);
        if returned.len() >= self.batch {
            out.append(returned);
        }
    }

    /// Moves all batches to `out`.
    pub fn flush(&mut self, out: &mut Vec<u32>) {
        for cpu in &mut self.cpus {
            out.append(&mut cpu.returned);
        }
    }

    /// Makes the slot allocatable again.
    pub fn release(&mut self, slot: u32) -> Released {
        if self.used_map.is_empty() {
            self.used -= 1;
            return Released::Slot;
        }
        let (word, bit) = ((slot / WORD) as usize, 1 << (slot % WORD));
        debug_assert!(self.used_map[word] & bit != 0, "slot {slot} released twice");
        self.used_map[word] &= !bit;
        self.used -= 1;
        let c = slot / CLUSTER;
        let size = (self.total - c * CLUSTER).min(CLUSTER) as u16;
        let cluster = &mut self.clusters[c as usize];
        cluster.free += 1;
        if cluster.on == On::Cpu {
            return Released::Slot;
        }
        if cluster.free == size {
            if self.hold_free {
                cluster.on = On::None;
            } else {
                cluster.on = On::Free;
                self.free.push_back(c);
            }
            return Released::Cluster(c);
        }
        if cluster.on == On::None && self.search == Search::Clusters {
            cluster.on = On::Partly;
            self.partly.push_back(c);
        }
        Released::Slot
    }

    /// Holds `nr` slots from `first`, all in one cluster, until they are released again.
    /// False: one of them is in use.
    pub fn hold(&mut self, first: u32, nr: u32) -> bool {
        let cluster = first / CLUSTER;
        debug_assert_eq!(cluster, (first + nr - 1) / CLUSTER);
        if first + nr > self.total || (first..first + nr).any(|slot| self.is_used(slot)) {
            return false;
        }
        for slot in first..first + nr {
            self.used_map[(slot / WORD) as usize] |= 1 << (slot % WORD);
        }
        self.clusters[cluster as usize].free -= nr as u16;
        self.used += nr;
        true
    }

    /// Ends the hold of a free cluster.
    pub fn discarded(&mut self, c: u32) {
        debug_assert_eq!(self.clusters[c as usize].on, On::None);
        self.clusters[c as usize].on = On::Free;
        self.free.push_back(c);
    }

    /// First slot and number of slots of a cluster.
    pub fn cluster(&self, c: u32) -> (u32, u32) {
        (c * CLUSTER, (self.total - c * CLUSTER).min(CLUSTER))
    }

    /// Is the slot in use?
    pub fn is_used(&self, slot: u32) -> bool {
        self.used_map[(slot / WORD) as usize] & (1 << (slot % WORD)) != 0
    }

    /// Recounts (used slots, free slots of all clusters), for checks. Not for
    /// [`Slots::counted`].
    pub fn count(&self) -> (u64, u64) {
        let used: u64 = self.used_map.iter().map(|w| u64::from(w.count_ones())).sum();
        let tail = self.clusters.len() as u64 * u64::from(CLUSTER) - u64::from(self.total);
        let free = self.clusters.iter().map(|c| u64::from(c.free)).sum();
        (used - tail, free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    #[test]
    fn cpus_fill_clusters_of_their_own_in_order() {
        let mut s = Slots::new(4 * CLUSTER, 2, 64, false);
        for i in 0..CLUSTER {
            assert_eq!(s.alloc(0), Some(i));
            assert_eq!(s.alloc(1), Some(CLUSTER + i));
        }
        assert_eq!(s.alloc(1), Some(2 * CLUSTER));
        assert_eq!(s.used(), 2 * CLUSTER + 1);
    }

    #[test]
    fn every_slot_is_allocated_once() {
        let total = 3 * CLUSTER + 77;
        let mut s = Slots::new(total, 4, 64, false);
        let mut seen = vec![false; total as usize];
        for i in 0..total {
            let slot = s.alloc((i % 4) as usize).expect("a slot");
            assert!(!std::mem::replace(&mut seen[slot as usize], true));
        }
        assert_eq!(s.alloc(0), None);
        assert_eq!(s.release(5), Released::Slot);
        assert_eq!(s.alloc(3), Some(5));
    }

    #[test]
    fn half_full_is_more_than_half() {
        let mut s = Slots::new(1000, 1, 1, false);
        (0..500).for_each(|_| assert!(!s.half_full() && s.alloc(0).is_some()));
        assert!(!s.half_full());
        s.alloc(0);
        assert!(s.half_full());
    }

    #[test]
    fn slots_come_back_in_batches() {
        let mut s = Slots::new(1000, 2, 4, false);
        let slots: Vec<u32> = (0..6).map(|_| s.alloc(0).unwrap()).collect();
        let mut out = Vec::new();
        for &slot in &slots[..3] {
            s.give_back(0, slot, &mut out);
        }
        s.give_back(1, slots[3], &mut out);
        assert!(out.is_empty(), "two CPUs, two batches");
        s.give_back(0, slots[4], &mut out);
        assert_eq!(out, [0, 1, 2, 4]);
        s.flush(&mut out);
        assert_eq!(out.len(), 5);
    }

    #[test]
    fn a_free_cluster_can_be_held_for_its_discard() {
        let mut s = Slots::new(2 * CLUSTER, 1, 1, true);
        (0..2 * CLUSTER).for_each(|_| _ = s.alloc(0));
        for slot in 0..CLUSTER - 1 {
            assert_eq!(s.release(slot), Released::Slot);
        }
        assert_eq!(s.release(CLUSTER - 1), Released::Cluster(0));
        assert_eq!(s.alloc(0), None);
        s.discarded(0);
        assert_eq!(s.alloc(0), Some(0));
    }

    #[test]
    fn held_slots_are_not_given_out() {
        let mut s = Slots::new(CLUSTER, 1, 1, true);
        (0..CLUSTER).for_each(|_| _ = s.alloc(0));
        (8..12).for_each(|slot| _ = s.release(slot));
        assert!(!s.hold(6, 4), "6 is in use");
        assert!(s.hold(8, 4) && !s.hold(8, 4));
        assert_eq!(s.alloc(0), None);
        (8..12).for_each(|slot| _ = s.release(slot));
        assert_eq!((s.alloc(0), s.used()), (Some(8), CLUSTER - 3));
    }

    #[test]
    fn scanning_goes_on_from_where_it_was() {
        let mut s = Slots::new(2 * CLUSTER, 1, 1, false).with_search(Search::Scan);
        (0..2 * CLUSTER).for_each(|slot| assert_eq!(s.alloc(0), Some(slot)));
        for slot in [700, 20, 710, 900] {
            s.release(slot);
        }
        let next: Vec<_> = (0..5).map(|_| s.alloc(0)).collect();
        assert_eq!(next, [Some(20), Some(700), Some(710), Some(900), None]);
        // A cluster that is wholly free comes first.
        s.release(3);
        (CLUSTER..2 * CLUSTER).for_each(|slot| _ = s.release(slot));
        assert_eq!((s.alloc(0), s.alloc(0)), (Some(CLUSTER), Some(CLUSTER + 1)));
    }

    #[test]
    fn scanning_jumps_from_trunk_to_trunk() {
        let total = 20 * TRUNK;
        let mut s = Slots::new(total, 1, 1, false).with_search(Search::Scan);
        (0..total).for_each(|_| _ = s.alloc(0));
        (0..total).step_by(16).for_each(|slot| _ = s.release(slot));
        let mut trunks: Vec<u32> =
            (0..5 * TRUNK / 16).map(|_| s.alloc(0).unwrap() / TRUNK).collect();
        // The first slot of the next trunk is taken before the jump.
        trunks.dedup();
        let jumps = trunks.windows(2).filter(|w| w[1] != w[0] + 1).count();
        assert!((3..=5).contains(&jumps), "{trunks:?}");
    }

    #[test]
    fn random_use_loses_nothing() {
        random_use(Search::Clusters);
        random_use(Search::Scan);
    }

    fn random_use(search: Search) {
        let (total, cpus) = (5 * CLUSTER - 3, 3);
        let mut s = Slots::new(total, cpus, 64, false).with_search(search);
        let mut rng = rng::stream(3, 0);
        let mut live = Vec::new();
        for _ in 0..200_000 {
            let grow = rng::below(&mut rng, 100) < 52;
            if grow && live.len() < total as usize {
                let cpu = rng::below(&mut rng, cpus as u32) as usize;
                live.push(s.alloc(cpu).expect("there is one"));
            } else if !live.is_empty() {
                let at = rng::below(&mut rng, live.len() as u32) as usize;
                s.release(live.swap_remove(at));
            }
            assert_eq!(s.used() as usize, live.len());
        }
        let (used, free) = s.count();
        assert_eq!((used, free), (live.len() as u64, u64::from(total) - live.len() as u64));
        live.sort_unstable();
        live.dedup();
        assert_eq!(live.len() as u64, used, "a slot was given twice");
        assert!(live.iter().all(|&slot| s.is_used(slot)));
    }
}
