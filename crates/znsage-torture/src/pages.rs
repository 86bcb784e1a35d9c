// SPDX-License-Identifier: GPL-2.0-only
//! The state of the kernel above the disk: pages, slots, tasks.

use std::collections::VecDeque;

use super::chunks::Plug;
use super::content::Token;
use super::draw::Scenario;

pub(super) const NONE: u32 = u32::MAX;

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// Never touched.
    Nowhere,
    Memory,
    /// Being written to its slot.
    Writeback,
    Slot,
    /// Being read from its slot.
    Reading,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    pub at: At,
    pub token: Token,
    /// The slot that has or gets the content, or [`NONE`].
    pub slot: u32,
    /// The slot lacks the current content.
    pub dirty: bool,
    /// In writeback, but mapped again.
    pub mapped: bool,
    /// Given up by its process while its I/O is in flight.
    pub dying: bool,
    /// Index among the pages in memory.
    pub(super) index: u32,
}

/// What a task is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Run,
    /// Reclaims; this many pages are left.
    Reclaim(u32),
    WaitRead,
    WaitMemory,
    /// Waits for a chunk; this many pages are left to reclaim.
    WaitFed(u32),
}

#[derive(Clone, Debug)]
pub(super) struct Task {
    pub process: u32,
    /// The page being accessed, and whether it is a write.
    pub goal: Option<(u32, bool)>,
    pub doing: Doing,
    pub plug: Option<Plug>,
    pub failures: u32,
}

pub(super) struct Kernel {
    pub pages: Vec<Page>,
    pub tasks: Vec<Task>,
    /// Pages in memory that reclaim may take.
    pub(super) resident: Vec<u32>,
    pub frames_used: u32,
    pub frames: u32,
    pub(super) free: VecDeque<u32>,
    /// Freed, but the disk has not been told.
    pub(super) returned: Vec<u32>,
    /// The page of each kernel slot.
    pub(super) owner: Vec<u32>,
    pub(super) writeback: u32,
    pub steps: u32,
    /// During swapoff: the next page to look at.
    pub drain: Option<u32>,
    pub drain_reads: u32,
    /// First slot of the raw user; the kernel has those below.
    pub raw_from: u32,
    pub raw_bios: u32,
}

impl Kernel {
    pub fn new(plan: &Scenario) -> Kernel {
        let load = &plan.load;
        let raw_from = plan.cfg.nr_slots - load.raw_slots;
        let page = Page {
            at: At::Nowhere,
            token: 0,
            slot: NONE,
            dirty: false,
            mapped: false,
            dying: false,
            index: NONE,
        };
        let task = |i| Task {
            process: i % load.processes,
            goal: None,
            doing: Doing::Run,
            plug: None,
            failures: 0,
        };
        Kernel {
            pages: vec![page; load.pages as usize],
            tasks: (0..load.tasks).map(task).collect(),
            resident: Vec::new(),
            frames_used: 0,
            frames: load.frames,
            free: (0..raw_from).collect(),
            returned: Vec::new(),
            owner: vec![NONE; raw_from as usize],
            writeback: 0,
            steps: 0,
            drain: None,
            drain_reads: 0,
            raw_from,
            raw_bios: 0,
        }
    }

    /// Pages of a process.
    pub fn range(&self, process: u32, processes: u32) -> std::ops::Range<u32> {
        let n = self.pages.len() as u64;
        let edge = |p: u32| (n * u64::from(p) / u64::from(processes)) as u32;
        edge(process)..edge(process + 1)
    }

    pub fn add_resident(&mut self, page: u32) {
        let p = &mut self.pages[page as usize];
        p.at = At::Memory;
        p.index = self.resident.len() as u32;
        self.resident.push(page);
    }

    pub fn remove_resident(&mut self, page: u32) {
        let i = std::mem::replace(&mut self.pages[page as usize].index, NONE);
        self.resident.swap_remove(i as usize);
        if let Some(&moved) = self.resident.get(i as usize) {
            self.pages[moved as usize].index = i;
        }
    }

    pub fn resident(&self) -> &[u32] {
        &self.resident
    }

    pub fn anything_in_writeback(&self) -> bool {
        self.writeback > 0
    }

    /// Threads, then the raw user, then swapoff.
    pub fn actors(&self) -> u32 {
        self.tasks.len() as u32 + 2
    }
}
