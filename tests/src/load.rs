// SPDX-License-Identifier: GPL-2.0-only
//! Processes that swap while the device below fails. They access pages at random and verify
//! them, through system calls that return an error where a plain access would raise SIGBUS.

use nix::sys::mman::{mlockall, MlockAllFlags};

use crate::child::{self, spawn, Child, Group, Link};
use crate::ensure;
use crate::guest;
use crate::memory::Memory;
use crate::outcome::{Context, Outcome};
use crate::pattern::{self, Random, PAGE, WORDS};

/// Accesses between two checks for messages from the parent.
const BATCH: u64 = 32;
/// Attempts at a page that cannot be read. After an error the page stays unreadable until it
/// has left memory, which it cannot while it is in a per-CPU batch.
const TRIES: u32 = 4;

/// The sum over all workers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Pages that were read, verified and written.
    pub accesses: u64,
    /// Accesses that returned an error.
    pub failed: u64,
    /// Pages that still cannot be read after all faults have ended.
    pub lost: u64,
}

pub struct Load {
    group: Group,
    workers: Vec<Child>,
}

impl Load {
    /// Starts `workers` processes of `size` bytes each. They swap out what all of them have above
    /// `limit` bytes, plus 4 MiB for each. They reclaim it themselves: where swap fails,
    /// `memory.max` would kill them and `memory.high` would put them to sleep.
    pub fn start(workers: u64, size: usize, limit: u64) -> Outcome<Load> {
        let group = Group::new("load", limit + workers * (size as u64 + (16 << 20)))?;
        let start = |seed| spawn(Some(&group), move |link| work(link, size, limit, seed));
        let mut workers = (0..workers).map(start).collect::<Outcome<Vec<Child>>>()?;
        for worker in &mut workers {
            worker.reach()?;
            worker.go_on()?;
        }
        Ok(Load { group, workers })
    }

    /// The errors of workers that ended before they were told to.
    pub fn complaints(&mut self) -> String {
        let ended = self.workers.iter_mut().filter(|worker| worker.has_spoken());
        let words: Vec<String> = ended.filter_map(|w| w.numbers::<3>().err()).collect();
        words.join("; ")
    }

    /// What each worker waits for in the kernel, for the message of a failed test.
    pub fn whereabouts(&self) -> String {
        let show = |worker: &Child| {
            let stack = guest::read(&format!("/proc/{}/stack", worker.pid()));
            let stack = stack.unwrap_or_else(|e| e).replace('\n', " ");
            format!("worker {}: {stack}", worker.pid())
        };
        let workers: Vec<String> = self.workers.iter().map(show).collect();
        format!("memory.current {}\n{}", self.group.current().unwrap_or(0), workers.join("\n"))
    }

    /// Stops the workers after all faults have ended. Each verifies all its pages: a wrong
    /// page is an error, an unreadable one is counted.
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
    /// Only the pages may be swapped out, not the bookkeeping.
    fn new(size: usize) -> Outcome<Pages> {
        let keys = vec![1; size / PAGE];
        mlockall(MlockAllFlags::MCL_CURRENT).context("mlockall")?;
        let mut memory = Memory::new(size)?;
        memory.huge_pages(false)?;
        memory.fill(0..size / PAGE, 1);
        // Some kernels do not have this call.
        memory.peek(0, &mut [0; WORDS]).context("process_vm_readv")?;
        Ok(Pages { memory, keys, tally: Tally::default() })
    }

    /// False if the page cannot be read at present.
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

    /// Counts the pages that stay unreadable after they have left memory.
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
