// SPDX-License-Identifier: GPL-2.0-only
//! Threads that touch pages of an array: uniformly, in order, or by a Zipf
//! distribution.

use rand::Rng as _;

use super::dist::{Scatter, Zipf};
use super::step::{Access, Step};
use crate::rng::{self, Rng};
use crate::time::Ns;

/// Order of the accesses.
#[derive(Clone, Debug)]
pub enum Order {
    /// Every page is equally likely.
    Uniform,
    /// One page after the other, again and again.
    Sequential,
    /// A few pages often, most rarely.
    Zipf(Zipf, Scatter),
}

/// A thread.
#[derive(Clone, Debug)]
pub struct Part {
    /// The pages it accesses: the first, and how many.
    pub first: u32,
    /// How many.
    pub pages: u32,
    /// The pages it fills.
    pub fill: std::ops::Range<u32>,
    /// The mapping.
    pub vma: u16,
    /// Order of the accesses.
    pub order: Order,
    /// Share of the accesses that are writes, of 2^64.
    pub writes: u64,
    /// Time between two accesses.
    pub think: Ns,
    next: u32,
    filled: bool,
    rng: Rng,
}

impl Part {
    /// A thread that accesses and fills the same pages.
    pub fn new(first: u32, pages: u32, vma: u16, order: Order, rng: Rng) -> Self {
        assert!(pages > 0);
        Part {
            first,
            pages,
            fill: first..first + pages,
            vma,
            order,
            writes: u64::MAX,
            think: 0,
            next: 0,
            filled: false,
            rng,
        }
    }

    #[inline]
    pub(super) fn next(&mut self) -> Step {
        if !self.filled {
            return self.next_fill();
        }
        let page = match &self.order {
            Order::Uniform => rng::below(&mut self.rng, self.pages),
            Order::Sequential => {
                let page = self.next;
                self.next = if page + 1 == self.pages { 0 } else { page + 1 };
                page
            }
            Order::Zipf(zipf, scatter) => {
                let rank = zipf.rank(|| rng::unit(self.rng.next_u64()));
                scatter.item(rank - 1) as u32
            }
        };
        let write = match self.writes {
            u64::MAX => true,
            0 => false,
            writes => self.rng.next_u64() < writes,
        };
        Step::Access(Access {
            page: self.first + page,
            vma: self.vma,
            write,
            last: true,
            think: self.think,
        })
    }

    /// Adds to the rate of each page what this thread, which makes `share` of the accesses,
    /// contributes.
    pub(super) fn add_rates(&self, share: f64, rates: &mut [f64]) {
        let pages = u64::from(self.pages);
        match &self.order {
            Order::Uniform | Order::Sequential => {
                let part = &mut rates[self.first as usize..][..pages as usize];
                part.iter_mut().for_each(|rate| *rate += share / pages as f64);
            }
            Order::Zipf(zipf, scatter) => {
                let all: f64 = (1..=pages).map(|rank| zipf.weight(rank)).sum();
                for rank in 1..=pages {
                    let page = u64::from(self.first) + scatter.item(rank - 1);
                    rates[page as usize] += share * zipf.weight(rank) / all;
                }
            }
        }
    }

    fn next_fill(&mut self) -> Step {
        match self.fill.next() {
            Some(page) => {
                Step::Access(Access { page, vma: self.vma, write: true, last: false, think: 0 })
            }
            None => {
                self.filled = true;
                Step::Filled
            }
        }
    }
}

/// A share as a threshold for 64-bit random numbers; 1 gives `u64::MAX`.
pub fn threshold(share: f64) -> u64 {
    (share * 2f64.powi(64)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(order: Order) -> Part {
        let mut part = Part::new(100, 50, 0, order, rng::stream(5, 0));
        for page in 100..150 {
            assert_eq!(page_of(part.next()), page);
        }
        assert_eq!(part.next(), Step::Filled);
        part
    }

    fn page_of(step: Step) -> u32 {
        match step {
            Step::Access(a) => a.page,
            Step::Filled => panic!("filled"),
        }
    }

    #[test]
    fn sequential_goes_round() {
        let mut part = filled(Order::Sequential);
        let pages: Vec<u32> = (0..120).map(|_| page_of(part.next())).collect();
        let want: Vec<u32> = (100..150).chain(100..150).chain(100..120).collect();
        assert_eq!(pages, want);
    }

    #[test]
    fn uniform_is_uniform() {
        let mut part = filled(Order::Uniform);
        let (n, mut hits) = (500_000, [0u32; 50]);
        (0..n).for_each(|_| hits[(page_of(part.next()) - 100) as usize] += 1);
        // Chi-square with 49 degrees of freedom: 99.99 % are below 94.
        let want = f64::from(n) / 50.0;
        let chi: f64 = hits.iter().map(|&h| (f64::from(h) - want).powi(2) / want).sum();
        assert!(chi < 94.0, "{chi}");
    }

    #[test]
    fn writes_have_their_share() {
        for share in [0.0, 0.25, 0.5, 1.0] {
            let mut part = filled(Order::Uniform);
            part.writes = threshold(share);
            let writes =
                (0..100_000).filter(|_| matches!(part.next(), Step::Access(a) if a.write)).count();
            assert!((writes as f64 / 1e5 - share).abs() < 0.006, "{share}: {writes}");
        }
    }
}
