// SPDX-License-Identifier: GPL-2.0-only
//! Chooses the next page, and whether to write it.

use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};

use znsage_sim::workload::store::{Mix, Requests, Store, StoreShape};

use crate::cli::Pattern;

/// The skew of YCSB and of most papers with Zipf workloads.
const ZIPF_EXPONENT: f64 = 0.99;

/// A prime that divides no number of pages: rank times this, modulo the number of
/// pages, visits every page once.
const SCATTER: u64 = 2_654_435_761;

/// Items that determine the layout of a store. Every thread lays one out before every
/// phase, which takes an emulated CPU seconds if there are many.
const ETC_SAMPLE: u64 = 1 << 14;

enum Order {
    Random,
    Sequential {
        next: usize,
    },
    Zipf(Zipf<f64>),
    /// The store of the simulator, for the same requests; and whether the last access
    /// writes.
    Etc {
        store: Box<Requests>,
        write: bool,
    },
}

/// The sequence of accesses of one thread.
pub struct Chooser {
    rng: SmallRng,
    pages: usize,
    order: Order,
    /// A random 32-bit number below this means: write.
    write_below: u64,
}

impl Chooser {
    /// `pages` is at least 1.
    pub fn new(pattern: Pattern, write_ratio: f64, pages: usize, seed: u64) -> Self {
        let order = match pattern {
            Pattern::Random => Order::Random,
            Pattern::Sequential => Order::Sequential { next: 0 },
            Pattern::Zipf => Order::Zipf(
                Zipf::new(pages as f64, ZIPF_EXPONENT).expect("at least one page, exponent > 0"),
            ),
            Pattern::Etc => Order::Etc { store: Box::new(etc(pages, seed)), write: false },
        };
        Chooser {
            rng: SmallRng::seed_from_u64(seed),
            pages,
            order,
            write_below: (write_ratio * (1u64 << 32) as f64) as u64,
        }
    }

    pub fn next_page(&mut self) -> usize {
        match &mut self.order {
            Order::Random => self.rng.random_range(0..self.pages),
            Order::Sequential { next } => {
                let page = *next;
                *next = (page + 1) % self.pages;
                page
            }
            Order::Zipf(zipf) => {
                let rank = zipf.sample(&mut self.rng) as u64 - 1;
                // Hot pages must not be neighbours.
                (u128::from(rank) * u128::from(SCATTER) % self.pages as u128) as usize
            }
            Order::Etc { store, write } => {
                let access = store.access();
                *write = access.write;
                access.page as usize
            }
        }
    }

    /// Whether to write the page that was chosen last.
    pub fn is_write(&mut self) -> bool {
        if let Order::Etc { write, .. } = self.order {
            return write;
        }
        u64::from(self.rng.next_u32()) < self.write_below
    }
}

/// A store of one thread that fills `pages` pages. Sizes have the distributions of
/// leverich/mutilate (see `znsage_sim::workload::dist::etc`), and keys are equally
/// likely, as in mutilate. A GET writes, too: memcached counts references in the
/// header of an item.
fn etc(pages: usize, seed: u64) -> Requests {
    let shape = StoreShape {
        mix: Mix::Etc,
        pages: u32::try_from(pages).unwrap_or(u32::MAX),
        threads: 1,
        zipf: None,
        get_writes: true,
        service: 0,
        seed,
    };
    Requests::new(Store::sampled(&shape, ETC_SAMPLE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(pattern: Pattern, pages: usize, draws: usize) -> Vec<usize> {
        let mut chooser = Chooser::new(pattern, 0.5, pages, 42);
        let mut count = vec![0; pages];
        for _ in 0..draws {
            count[chooser.next_page()] += 1;
        }
        count
    }

    #[test]
    fn sequential_visits_each_in_turn() {
        let mut chooser = Chooser::new(Pattern::Sequential, 0.0, 3, 1);
        let seen: Vec<usize> = (0..7).map(|_| chooser.next_page()).collect();
        assert_eq!(seen, [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn random_is_even() {
        let count = histogram(Pattern::Random, 100, 100_000);
        assert!(count.iter().all(|&n| (800..1200).contains(&n)));
    }

    #[test]
    fn zipf_is_skewed_and_scattered() {
        let mut count = histogram(Pattern::Zipf, 1000, 100_000);
        let hottest = count[0];
        assert!(count[1] < hottest / 2, "the second rank is elsewhere");
        count.sort_unstable();
        assert_eq!(count[999], hottest);
        // 1 / H(1000, 0.99) is about 0.13.
        assert!((12_000..15_000).contains(&hottest), "{hottest}");
    }

    /// Items are equally likely, so pages with many small items are accessed more often.
    #[test]
    fn etc_prefers_the_pages_of_small_items_and_the_hash_table() {
        let count = histogram(Pattern::Etc, 1000, 400_000);
        let (front, back) = (&count[..100], &count[900..]);
        let sum = |part: &[usize]| part.iter().sum::<usize>();
        assert!(sum(front) > 10 * sum(back), "{} {}", sum(front), sum(back));
        assert!(count.iter().filter(|&&n| n > 0).count() > 900);
    }

    #[test]
    fn etc_writes_what_memcached_writes() {
        let mut chooser = Chooser::new(Pattern::Etc, 0.0, 1000, 7);
        let mut writes = 0;
        for _ in 0..100_000 {
            chooser.next_page();
            writes += usize::from(chooser.is_write());
        }
        // A GET reads the bucket and writes the item's header; of an item on two pages
        // it reads the second.
        assert!((45_000..55_000).contains(&writes), "{writes}");
    }

    #[test]
    fn one_page_is_enough() {
        for pattern in [Pattern::Random, Pattern::Sequential, Pattern::Zipf, Pattern::Etc] {
            assert_eq!(Chooser::new(pattern, 0.5, 1, 1).next_page(), 0);
        }
    }

    #[test]
    fn write_ratio_is_kept() {
        for (ratio, range) in [(0.0, 0..1), (0.3, 2800..3200), (1.0, 10_000..10_001)] {
            let mut chooser = Chooser::new(Pattern::Random, ratio, 10, 7);
            let writes = (0..10_000).filter(|_| chooser.is_write()).count();
            assert!(range.contains(&writes), "{ratio}: {writes}");
        }
    }
}
