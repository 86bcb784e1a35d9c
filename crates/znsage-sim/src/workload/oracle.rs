// SPDX-License-Identifier: GPL-2.0-only
//! What nobody can know outside a simulator: how often each page is accessed, and when
//! next. It tells the policies `rate-oracle` and `death-oracle`.
//!
//! The accesses to come are known because each thread draws its own, whatever the others
//! do: a second copy of the workload runs ahead. Threads are closed loops that are alike,
//! so it takes one access of each in turn. (They drift apart, by some thousand accesses of
//! millions.)
//!
//! The block of a page dies when the page is next accessed, as all accesses are writes
//! (others are refused). So its life is the accesses until then. The engine counts lives in blocks
//! swapped out; the blocks for each access so far give one from the other.

use std::collections::VecDeque;

use super::{Step, Workload};
use crate::spec::{PlacementKind, Spec};

/// Accesses that a page's next one is looked for ahead, for each page.
const AHEAD: u64 = 8;

enum Knows {
    /// The accesses from one of a page to its next one, on average.
    Means(Vec<f64>),
    /// The accesses to come.
    Next(Ahead),
}

/// A workload that runs ahead.
struct Ahead {
    w: Workload,
    /// Accesses drawn, of all threads.
    drawn: u64,
    /// Of each page, the numbers of its accesses to come.
    of: Vec<VecDeque<u64>>,
}

impl Ahead {
    fn new(mut w: Workload) -> Self {
        for thread in 0..w.threads.len() as u32 {
            while w.next(thread) != Step::Filled {}
        }
        let of = vec![VecDeque::new(); w.pages as usize];
        Ahead { w, drawn: 0, of }
    }

    /// The accesses from number `now` on until `page` is accessed next, as far as it
    /// looks.
    fn until(&mut self, page: u32, now: u64) -> u64 {
        let threads = self.w.threads.len() as u64;
        let far = now + AHEAD * self.of.len() as u64;
        while self.drawn < far {
            if let Step::Access(a) = self.w.next((self.drawn % threads) as u32) {
                self.of[a.page as usize].push_back(self.drawn);
            }
            self.drawn += 1;
        }
        let next = &mut self.of[page as usize];
        while next.front().is_some_and(|&at| at < now) {
            next.pop_front();
        }
        next.front().unwrap_or(&far) - now
    }
}

/// Knows the future of a workload.
pub struct Oracle {
    knows: Knows,
    /// Accesses that fill the memory.
    fill: u64,
    /// Blocks swapped out when it was full.
    before: Option<u64>,
}

impl Oracle {
    /// The one that the spec's policy asks, if any, for a host with `frames` of memory and
    /// `live` pages on the device.
    pub fn new(spec: &Spec, frames: u32, live: u32) -> Option<Self> {
        if !spec.asks_oracle() {
            return None;
        }
        let w = Workload::new(spec, frames, live);
        let fill = u64::from(w.pages);
        let knows = match spec.znsage.policy {
            PlacementKind::RateOracle => Knows::Means(w.means()),
            _ => Knows::Next(Ahead::new(w)),
        };
        Some(Oracle { knows, fill, before: None })
    }

    /// Blocks swapped out from now on until the block of `page` dies, or on average for a
    /// page of its rate. `accesses` have been made so far, and `blocks` swapped out.
    pub fn life(&mut self, page: u32, accesses: u64, blocks: u64) -> u32 {
        let Some(now) = accesses.checked_sub(self.fill) else { return u32::MAX - 1 };
        let before = *self.before.get_or_insert(blocks);
        // Too few to say at first: nearly every access swaps a page out then.
        let rate = if now < self.fill { 1.0 } else { (blocks - before) as f64 / now as f64 };
        let accesses = match &mut self.knows {
            Knows::Means(means) => means[page as usize],
            Knows::Next(ahead) => ahead.until(page, now) as f64,
        };
        (accesses * rate).min(f64::from(u32::MAX - 1)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::WorkloadKind;

    fn spec(policy: PlacementKind, workload: WorkloadKind) -> Spec {
        let mut spec = Spec { workload, ..Spec::default() };
        spec.znsage.policy = policy;
        spec.host.threads = 4;
        spec
    }

    #[test]
    fn the_next_access_is_the_one_that_comes() {
        let spec = spec(PlacementKind::DeathOracle, WorkloadKind::Zipf);
        let mut ahead = Ahead::new(Workload::new(&spec, 100, 900));
        let mut w = Workload::new(&spec, 100, 900);
        for thread in 0..4 {
            while w.next(thread) != Step::Filled {}
        }
        let mut accesses = vec![];
        for i in 0..6000 {
            let Step::Access(a) = w.next(i % 4) else { panic!("filled twice") };
            accesses.push(a.page);
        }
        for now in (0..5000).step_by(7) {
            let page = accesses[now / 2];
            let next = accesses[now..].iter().position(|&p| p == page);
            if let Some(next) = next.filter(|&n| n < 1000) {
                assert_eq!(ahead.until(page, now as u64), next as u64);
            }
        }
    }

    #[test]
    fn means_are_those_of_the_accesses() {
        let spec = spec(PlacementKind::RateOracle, WorkloadKind::Zipf);
        let mut w = Workload::new(&spec, 10, 90);
        let means = w.means();
        let sum: f64 = means.iter().map(|m| 1.0 / m).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        for thread in 0..4 {
            while w.next(thread) != Step::Filled {}
        }
        let mut hits = [0u32; 100];
        for i in 0..400_000 {
            let Step::Access(a) = w.next(i % 4) else { panic!("filled twice") };
            hits[a.page as usize] += 1;
        }
        for (page, &hits) in hits.iter().enumerate() {
            let want = 400_000.0 / means[page];
            assert!((f64::from(hits) - want).abs() < 6.0 * want.sqrt(), "{page}: {hits} {want}");
        }
    }

    #[test]
    fn stores_keep_their_future_to_themselves() {
        let asks = |workload| spec(PlacementKind::DeathOracle, workload).check();
        assert_eq!(asks(WorkloadKind::Uniform), Ok(()));
        for workload in [WorkloadKind::Etc, WorkloadKind::TwoTenants, WorkloadKind::Trace] {
            assert!(asks(workload).is_err());
        }
        let mut reads = spec(PlacementKind::RateOracle, WorkloadKind::Zipf);
        reads.load.write_ratio = 0.5;
        assert!(reads.check().is_err());
        assert!(Oracle::new(&spec(PlacementKind::Heat, WorkloadKind::Zipf), 10, 90).is_none());
    }
}
