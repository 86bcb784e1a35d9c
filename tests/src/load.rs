// SPDX-License-Identifier: GPL-2.0-only
//! Processes that swap while something goes wrong below. They read and write
//! pages at random, through calls that return an error where a touch would be
//! the end of the process, and know what each page must hold.

use nix::sys::mman::{mlockall, MlockAllFlags};

use crate::child::{self, spawn, Child, Group, Link};
use crate::ensure;
use crate::guest;
use crate::memory::Memory;
use crate::outcome::{Context, Outcome};
use crate::pattern::{self, Random, PAGE, WORDS};

/// Accesses from one look at the parent to the next.
const BATCH: u64 = 32;
/// How often a page is tried that cannot be read. What failed once is an error
/// until it has left memory, which it does not as long as a CPU keeps it for itself.
const TRIES: u32 = 4;

/// What the workers did and met, all together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Pages read, and written, and right.
    pub accesses: u64,
    /// Accesses that ended with an error.
    pub failed: u64,
    /// Pages that cannot be read any more, though nothing fails now.
    pub lost: u64,
}

pub struct Load {
    _group: Group,
    workers: Vec<Child>,
}

impl Load {
    /// So many processes, each with `size` bytes of its own. Of what all have,
    /// they swap out what is above `limit` bytes; of these each needs 4 MiB
    /// beside. They ask for that themselves: where swap fails, `memory.max`
    /// would have them killed, and `memory.high` would have them sleep.
    pub fn start(workers: u64, size: usize, limit: u64) -> Outcome<Load> {
        let group = Group::new("load", limit + workers * (size as u64 + (16 << 20)))?;
        let start = |seed| spawn(Some(&group), move |link| work(link, size, limit, seed));
        let mut workers = (0..workers).map(start).collect::<Outcome<Vec<Child>>>()?;
        for worker in &mut workers {
            worker.reach()?;
            worker.go_on()?;
        }
        Ok(Load { _group: group, workers })
    }

    /// What ended those that have ended before they were told to.
    pub fn complaints(&mut self) -> String {
        let ended = self.workers.iter_mut().filter(|worker| worker.has_spoken());
        let words: Vec<String> = ended.filter_map(|w| w.numbers::<3>().err()).collect();
        words.join("; ")
    }

    /// When nothing fails any more: all pages are looked at once more. It is an
    /// error if one is wrong; one that cannot be read is counted.
    pub fn stop(mut self) -> Outcome<Tally> {
        let mut sum = Tally::default();
        for worker in &mut self.workers {
            worker.go_on()?;
        }
        for mut worker in self.workers {
            let [accesses, failed, lost] = worker.numbers()?;
            worker.join()?;
            sum.accesses += accesses;
            sum.failed += failed;
            sum.lost += lost;
        }
        Ok(sum)
    }
}

struct Pages {
    memory: Memory,
    keys: Vec<u64>,
    tally: Tally,
}

impl Pages {
    /// The pages alone are to be swapped out, not what looks after them.
    fn new(size: usize) -> Outcome<Pages> {
        let keys = vec![1; size / PAGE];
        mlockall(MlockAllFlags::MCL_CURRENT).context("mlockall")?;
        let mut memory = Memory::new(size)?;
        memory.huge_pages(false)?;
        memory.fill(0..size / PAGE, 1);
        // A kernel may be without that call.
        memory.peek(0, &mut [0; WORDS]).context("process_vm_readv")?;
        Ok(Pages { memory, keys, tally: Tally::default() })
    }

    /// False if the page cannot be read now.
    fn verify(&self, page: usize) -> Outcome<bool> {
        let mut copy = [0; WORDS];
        if self.memory.peek(page, &mut copy).is_err() {
            return Ok(false);
        }
        ensure!(
            pattern::holds(&copy, self.keys[page], page),
            "corrupt: page {page} of key {} holds {}",
            self.keys[page],
            pattern::describe(&copy)
        );
        Ok(true)
    }

    fn access(&mut self, page: usize, key: u64) -> Outcome {
        let mut copy = [0; WORDS];
        pattern::write(&mut copy, key, page);
        if self.verify(page)? && self.memory.poke(page, &copy).is_ok() {
            self.keys[page] = key;
            self.tally.accesses += 1;
        } else {
            self.tally.failed += 1;
        }
        Ok(())
    }

    /// Counts the pages that cannot be read even when they have left memory.
    fn verify_all(&mut self) -> Outcome {
        let mut left: Vec<usize> = (0..self.keys.len()).collect();
        for _ in 0..TRIES {
            let mut unread = Vec::new();
            for page in left {
                if !self.verify(page)? {
                    unread.push(page);
                }
            }
            left = unread;
            if left.is_empty() {
                break;
            }
            guest::compact()?;
            child::reclaim((self.keys.len() * PAGE) as u64)?;
        }
        self.tally.lost = left.len() as u64;
        Ok(())
    }
}

fn work(link: &mut Link, size: usize, limit: u64, seed: u64) -> Outcome {
    let mut pages = Pages::new(size)?;
    let mut random = Random::new(seed);
    let mut key = 2;
    link.point()?;
    while !link.is_told() {
        for _ in 0..BATCH {
            pages.access(random.below(size / PAGE), key)?;
            key += 1;
        }
        child::reclaim_above(limit)?;
    }
    pages.verify_all()?;
    let Tally { accesses, failed, lost } = pages.tally;
    link.report(&[accesses, failed, lost])
}
