// SPDX-License-Identifier: GPL-2.0-only
//! Page faults: `do_swap_page()` and `do_anonymous_page()` in the main.

use super::{Phase, Sim};
use crate::host::page::{Place, NONE, READING};
use crate::host::task::{Fault, Next};
use crate::system::{In, System};
use crate::time::Ns;
use crate::workload::Access;

/// Reclaims without a frame before the run is out of memory.
const MAX_RECLAIMS: u32 = 100;

impl<S: System> Sim<S> {
    /// A thread touches a page that is not mapped.
    pub(super) fn enter_fault(&mut self, task: u32, begun: Ns, at: Ns, a: Access) {
        let c = &self.h.costs;
        let cost = match self.h.pages[a.page as usize].pte.place() {
            Place::Empty => c.zero,
            Place::Slot(_) => c.fault + c.charge + c.read,
            Place::Cached(_) | Place::Mapped(_) => c.minor,
        };
        self.h.tasks[task as usize].fault = Fault { begun: at, ..a.into() };
        self.h.go_on(task, begun, at + cost, Next::Fault);
    }

    /// Handles a fault by the state of the page.
    pub(super) fn fault(&mut self, task: u32, begun: Ns) {
        let f = self.h.tasks[task as usize].fault;
        match self.h.pages[f.page as usize].pte.place() {
            Place::Mapped(_) => self.end_fault(task, begun, begun, false),
            Place::Cached(frame) if self.h.frame(frame).flags & READING != 0 => {
                self.h.tasks[task as usize].next = Next::Map;
                self.h.wait_for_read(task, frame);
            }
            Place::Cached(frame) => {
                self.h.count.cache_faults += 1;
                self.map_frame(task, frame, f);
                self.end_fault(task, begun, begun, false);
            }
            Place::Empty => {
                let Some(frame) = self.frame_for(task, begun) else { return };
                self.h.count.zeroed += 1;
                self.h.map_new(f.page, frame);
                self.end_fault(task, begun, begun, false);
            }
            Place::Slot(slot) => {
                let Some(frame) = self.frame_for(task, begun) else { return };
                self.h.count.major_faults += 1;
                let group = self.h.tasks[task as usize].group;
                self.h.by_group[group as usize].major_faults += 1;
                self.h.begin_read(f.page, slot, frame, false);
                self.read(task, f, In { slot, frame });
                self.h.tasks[task as usize].next = Next::Map;
                self.h.wait_for_read(task, frame);
            }
        }
    }

    /// Takes a frame, or reclaims or waits for one.
    fn frame_for(&mut self, task: u32, begun: Ns) -> Option<u32> {
        let t = &mut self.h.tasks[task as usize];
        let granted = std::mem::replace(&mut t.granted, NONE);
        if granted != NONE {
            return Some(granted);
        }
        let group = t.group;
        if let Some(frame) = self.h.take_frame(group) {
            return Some(frame);
        }
        let t = &mut self.h.tasks[task as usize];
        t.next = Next::Fault;
        if t.fault.reclaimed > MAX_RECLAIMS {
            let refused = self.s.stats().count.refused_pages;
            let why = match refused {
                0 => String::new(),
                n => format!("; the log was full and refused {n}, as they do not shrink enough"),
            };
            self.failed = Some(format!("out of memory: no page can be swapped out{why}"));
        } else if t.fault.reclaimed == 0 || !self.h.wait_for_memory(task) {
            self.reclaim(task, begun);
        }
        None
    }

    /// Reads the page of a fault, with readahead.
    fn read(&mut self, task: u32, f: Fault, page: In) {
        let by = self.h.by(task);
        let vma = &self.w.vmas[f.vma as usize];
        let cluster = self.limits.page_cluster;
        let (first, end) = self.readahead[f.vma as usize].window(f.page, cluster);
        if end - first == 1 {
            self.s.swap_in(&mut self.h, by, &[page]);
            return self.read_cost(task, 0);
        }
        let mut pages = Vec::with_capacity((end - first) as usize);
        for p in first.max(vma.start)..end.min(vma.end) {
            if p == f.page {
                pages.push(page);
                continue;
            }
            let Place::Slot(slot) = self.h.pages[p as usize].pte.place() else { continue };
            // Readahead does not reclaim.
            let Some(frame) = self.h.take_frame(by.group) else { continue };
            self.h.begin_read(p, slot, frame, true);
            self.h.count.readahead += 1;
            pages.push(In { slot, frame });
        }
        self.s.swap_in(&mut self.h, by, &pages);
        self.read_cost(task, pages.len() as Ns - 1);
    }

    /// Charges a read with `more` extra frames. `enter_fault()` has paid for the first
    /// command.
    fn read_cost(&mut self, task: u32, more: Ns) {
        let c = &self.h.costs;
        let (read, charge) = (c.read, c.charge);
        let spent = (self.h.take_spent() + more * charge).saturating_sub(read);
        self.h.uses(task, spent);
    }

    /// Maps a page that is in the swap cache.
    fn map_frame(&mut self, task: u32, frame: u32, f: Fault) {
        let cpu = self.h.tasks[task as usize].cpu;
        if self.h.map_cached(frame, f.write, cpu) {
            self.h.count.readahead_hits += 1;
            self.readahead[f.vma as usize].hit(f.page);
        }
    }

    /// What a thread waited for has been read.
    pub(super) fn map(&mut self, task: u32, begun: Ns) {
        let f = self.h.tasks[task as usize].fault;
        match self.h.pages[f.page as usize].pte.place() {
            Place::Cached(frame) if self.h.frame(frame).flags & READING == 0 => {
                self.map_frame(task, frame, f);
            }
            // Another thread that waited has mapped it.
            Place::Mapped(_) => (),
            // It has even been swapped out again.
            _ => {
                self.h.tasks[task as usize].next = Next::Fault;
                return self.step(task, begun);
            }
        }
        self.end_fault(task, begun, begun + self.h.costs.map, true);
    }

    /// Completes the faulting access at `at`, and continues with others.
    fn end_fault(&mut self, task: u32, begun: Ns, at: Ns, major: bool) {
        let f = self.h.tasks[task as usize].fault;
        if major && self.phase == Phase::Measure {
            let group = self.h.tasks[task as usize].group;
            self.latencies.major[group as usize].saturating_record(at - f.begun);
        }
        let mut at = at + self.h.costs.touch;
        if f.write && !self.h.pages[f.page as usize].pte.is_dirty() {
            at += self.reuse(task, f.page);
        }
        let page = &mut self.h.pages[f.page as usize];
        page.pte = page.pte.touched(f.write);
        let requests = self.w.has_requests();
        self.accessed(task, at, f.last, requests);
        if self.phase == Phase::Wind {
            self.h.tasks[task as usize].next = Next::Run;
            self.h.block(task);
        } else {
            self.access(task, begun, at);
        }
    }
}
