// SPDX-License-Identifier: GPL-2.0-only
//! A process that uses its memory at random, and verifies every page.

use crate::child::{spawn, Link};
use crate::ensure;
use crate::memory::Memory;
use crate::outcome::Outcome;
use crate::pattern::{self, Random, PAGE};

/// Pages of one step.
const STEP: usize = 256;

#[derive(Clone, Copy)]
pub struct Life {
    pub seed: u64,
    pub bytes: usize,
    /// Whether its children share the memory.
    pub shared: bool,
    pub steps: u32,
}

/// Lives until its steps are over or its parent stops it; reports how many pages it has
/// verified.
pub fn live(link: &mut Link, life: &Life) -> Outcome {
    let mut process = Process::new(life)?;
    for _ in 0..life.steps {
        if link.is_told() {
            break;
        }
        process.step()?;
    }
    process.verify(0, process.keys.len())?;
    link.report(&[process.verified])
}

struct Process {
    memory: Memory,
    /// The key each page was written with.
    keys: Vec<u64>,
    next_key: u64,
    random: Random,
    shared: bool,
    verified: u64,
}

impl Process {
    fn new(life: &Life) -> Outcome<Process> {
        let mut process = Process {
            memory: new_memory(life.bytes, life.shared)?,
            keys: vec![pattern::ZERO; life.bytes / PAGE],
            next_key: 1,
            random: Random::new(life.seed),
            shared: life.shared,
            verified: 0,
        };
        process.write(0, life.bytes / PAGE);
        Ok(process)
    }

    fn step(&mut self) -> Outcome {
        let pages = self.keys.len();
        let first = self.random.below(pages - STEP);
        match self.random.below(12) {
            0..=5 => self.access(),
            6 => {
                self.write(first, STEP);
                Ok(())
            }
            7 => self.verify(first, STEP),
            8 => self.memory.start_page_out(),
            9 if !self.shared => self.memory.huge_pages(self.next_key.is_multiple_of(2)),
            10 => self.start_again(),
            _ => self.fork(),
        }
    }

    fn write(&mut self, first: usize, pages: usize) {
        self.memory.fill(first..first + pages, self.next_key);
        self.keys[first..first + pages].fill(self.next_key);
        self.next_key += 1;
    }

    fn verify(&mut self, first: usize, pages: usize) -> Outcome {
        for page in first..first + pages {
            self.memory.verify(page..page + 1, self.keys[page])?;
        }
        self.verified += pages as u64;
        Ok(())
    }

    /// Random pages; half of them are written.
    fn access(&mut self) -> Outcome {
        for _ in 0..STEP {
            let page = self.random.below(self.keys.len());
            self.verify(page, 1)?;
            if self.random.below(2) == 0 {
                self.write(page, 1);
            }
        }
        Ok(())
    }

    /// Frees all memory and starts with zeros.
    fn start_again(&mut self) -> Outcome {
        let bytes = self.keys.len() * PAGE;
        self.memory = new_memory(bytes, self.shared)?;
        self.keys.fill(pattern::ZERO);
        self.access()
    }

    /// The child verifies the same pages. It writes to private copies, and only reads shared
    /// ones; half of the children are killed.
    fn fork(&mut self) -> Outcome {
        let (kills, at) = (self.random.below(2) == 0, self.random.below(self.keys.len() - STEP));
        let mut child = spawn(None, |link| {
            self.verify(at, STEP)?;
            if !self.shared {
                self.write(at, STEP);
                self.memory.start_page_out()?;
                self.verify(at, STEP)?;
            }
            link.point()?;
            self.verify(at, STEP)
        })?;
        if !self.shared {
            self.access()?;
        }
        child.reach()?;
        if kills {
            return child.kill();
        }
        child.go_on()?;
        child.join()
    }
}

fn new_memory(bytes: usize, shared: bool) -> Outcome<Memory> {
    ensure!(bytes / PAGE > 2 * STEP, "{bytes} bytes are too few");
    match shared {
        true => Memory::shared(bytes),
        false => Memory::new(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_without_swap() {
        for shared in [false, true] {
            let life = Life { seed: 3, bytes: 1024 * PAGE, shared, steps: 60 };
            let mut child = spawn(None, |link| live(link, &life)).unwrap();
            let [verified] = child.numbers().unwrap();
            assert!(verified > 1024);
            child.join().unwrap();
        }
    }
}
