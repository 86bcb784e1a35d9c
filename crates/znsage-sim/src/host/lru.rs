// SPDX-License-Identifier: GPL-2.0-only
//! Reclaim of a cgroup's memory, modelled on `mm/vmscan.c` with the classic
//! LRU. A referenced page goes around the inactive list once more, and is
//! activated the second time. A page that refaults soon after its eviction is
//! activated at once (`mm/workingset.c`). Tasks reclaim directly when they
//! reach the cgroup's limit.
//!
//! Each frame is on at most one list. Lists are queues: nothing is removed
//! from their middle.

use super::group::{Group, BATCH};
use super::page::{
    Place, Pte, Shadow, ACTIVE, ISOLATED, NEW, NONE, NO_TASK, READAHEAD, READING, REFERENCED,
    WORKINGSET, WRITEBACK,
};
use super::Host;

impl Host {
    fn group_of(&mut self, frame: u32) -> &mut Group {
        &mut self.groups[self.frames[frame as usize].group as usize]
    }

    /// A free frame of a cgroup.
    pub fn take_frame(&mut self, group: u8) -> Option<u32> {
        self.groups[group as usize].free.pop()
    }

    /// Free frames of a cgroup.
    pub fn free_frames(&self, group: u8) -> usize {
        self.groups[group as usize].free.len()
    }

    /// Frees a frame; the first waiter gets it.
    fn put_frame(&mut self, frame: u32) {
        let f = &mut self.frames[frame as usize];
        debug_assert_eq!(f.waiter, NO_TASK);
        (f.page, f.slot, f.flags) = (NONE, NONE, 0);
        let group = self.group_of(frame);
        match group.waiters.pop_front() {
            Some(task) => {
                self.tasks[task as usize].granted = frame;
                self.wake(task);
            }
            None => group.free.push(frame),
        }
    }

    /// `task` waits for a frame. False: nothing is under writeback.
    pub fn wait_for_memory(&mut self, task: u32) -> bool {
        let group = self.tasks[task as usize].group;
        let g = &mut self.groups[group as usize];
        if g.writeback == 0 {
            return false;
        }
        g.waiters.push_back(task);
        self.count.memory_waits += 1;
        self.block(task);
        true
    }

    pub(super) fn add_inactive(&mut self, frame: u32) {
        let f = &mut self.frames[frame as usize];
        f.flags &= !(ACTIVE | NEW);
        self.group_of(frame).inactive.push_back(frame);
    }

    fn add_active(&mut self, frame: u32) {
        let f = &mut self.frames[frame as usize];
        f.flags = f.flags & !(REFERENCED | NEW) | ACTIVE;
        let group = self.group_of(frame);
        group.age = group.age.wrapping_add(1);
        group.active.push_back(frame);
    }

    /// Maps a page to its first, zeroed frame.
    pub fn map_new(&mut self, page: u32, frame: u32) {
        let f = &mut self.frames[frame as usize];
        (f.page, f.slot, f.flags, f.history) = (page, NONE, 0, 0);
        self.pages[page as usize].pte = Pte::mapped(frame, true);
        self.add_inactive(frame);
    }

    /// A read with a waiter has ended.
    #[cfg(test)]
    pub fn read_done_for_test(&mut self, frame: u32) {
        self.frames[frame as usize].flags &= !READING;
    }

    /// Begins to read the page in `slot` into `frame`.
    pub fn begin_read(&mut self, page: u32, slot: u32, frame: u32, ahead: bool) {
        self.shares(slot, true);
        let f = &mut self.frames[frame as usize];
        (f.page, f.slot, f.history) = (page, slot, 0);
        f.flags = READING | NEW | if ahead { READAHEAD } else { 0 };
        self.pages[page as usize].pte = Pte::cached(frame);
    }

    /// Maps a page in the swap cache. True: it was read ahead.
    pub fn map_cached(&mut self, frame: u32, write: bool, cpu: u32) -> bool {
        let f = &mut self.frames[frame as usize];
        let ahead = f.flags & READAHEAD != 0;
        let new = f.flags & NEW != 0;
        f.flags &= !READAHEAD;
        self.map(frame, write, cpu);
        if new {
            self.add_read(frame);
        }
        ahead
    }

    /// Puts a refaulted page on the active list if its refault distance is within the
    /// length of the active list.
    fn add_read(&mut self, frame: u32) {
        let page = self.frames[frame as usize].page;
        let shadow = self.pages[page as usize].shadow;
        let group = self.group_of(frame);
        let distance = shadow.distance(group.age) as usize;
        if distance <= group.active.len() {
            self.add_active(frame);
            if shadow.workingset() {
                self.frames[frame as usize].flags |= WORKINGSET;
            }
        } else {
            self.add_inactive(frame);
        }
    }

    /// Maps a page. Frees its slot if the access is a write
    /// (`should_try_to_free_swap()`) or if more than half of swap is in use.
    fn map(&mut self, frame: u32, write: bool, cpu: u32) {
        let f = self.frames[frame as usize];
        debug_assert!(f.flags & READING == 0);
        let mut dirty = write || f.slot == NONE;
        if f.slot != NONE && (write || (!self.keeps_slots && self.slots.half_full())) {
            dirty |= self.free_slot_of(frame, cpu);
        }
        self.pages[f.page as usize].pte = Pte::mapped(frame, dirty);
    }

    /// Frees the slot of a page in memory. False: writeback has to end first.
    pub fn free_slot_of(&mut self, frame: u32, cpu: u32) -> bool {
        let f = &mut self.frames[frame as usize];
        if f.flags & WRITEBACK != 0 {
            return false;
        }
        let slot = std::mem::replace(&mut f.slot, NONE);
        debug_assert_ne!(slot, NONE);
        self.shares(slot, false);
        self.count.slots_freed += 1;
        self.slots.give_back(cpu as usize, slot, &mut self.freed);
        true
    }

    /// Drops the slot's copy of a page in memory and marks the page dirty. The caller
    /// frees the slot.
    pub fn forget_slot(&mut self, page: u32) {
        let p = &mut self.pages[page as usize];
        let frame = p.pte.frame();
        match p.pte.place() {
            Place::Mapped(_) => p.pte = p.pte.with_dirty(true),
            // Reclaim must write it again, so treat it as mapped, not accessed.
            Place::Cached(_) => p.pte = Pte::mapped(frame, true).aged(),
            _ => debug_assert!(false, "the page is not in memory"),
        }
        let slot = std::mem::replace(&mut self.frames[frame as usize].slot, NONE);
        self.shares(slot, false);
    }

    // ---- reclaim

    /// Frees up to `most` frames whose writeback has ended; returns the number.
    pub fn reap(&mut self, group: u8, most: usize) -> usize {
        let mut freed = 0;
        while freed < most {
            let Some(frame) = self.groups[group as usize].clean.pop_front() else { break };
            let page = self.frames[frame as usize].page;
            match self.pages[page as usize].pte.place() {
                // A fault found it in the swap cache meanwhile.
                Place::Mapped(_) => self.add_inactive(frame),
                _ => {
                    self.evict(frame);
                    freed += 1;
                }
            }
        }
        freed
    }

    /// Isolates a batch of unreferenced pages from the inactive list into `out`; returns
    /// the number scanned.
    pub fn isolate(&mut self, group: u8, out: &mut Vec<u32>) -> usize {
        let g = &mut self.groups[group as usize];
        // Each page is met at most three times: referenced on the active list, then
        // twice on the inactive one.
        let limit = 3 * g.limit as usize;
        let mut scanned = 0;
        while out.len() < BATCH && scanned < limit {
            scanned += self.balance(group);
            let n = self.look_at(group, BATCH - out.len(), out);
            if n == 0 {
                break;
            }
            scanned += n;
        }
        self.count.scanned += scanned as u64;
        scanned
    }

    /// Moves a batch of active pages to the inactive list if that is low.
    fn balance(&mut self, group: u8) -> usize {
        let g = &mut self.groups[group as usize];
        if g.inactive.len() * g.ratio >= g.active.len() {
            return 0;
        }
        let n = g.active.len().min(BATCH);
        for _ in 0..n {
            let frame = g.active.pop_front().expect("n of them");
            let f = &mut self.frames[frame as usize];
            f.flags = f.flags & !ACTIVE | WORKINGSET;
            let pte = &mut self.pages[f.page as usize].pte;
            *pte = pte.aged();
            g.inactive.push_back(frame);
        }
        n
    }

    /// Scans `n` pages at the tail of the inactive list.
    fn look_at(&mut self, group: u8, n: usize, out: &mut Vec<u32>) -> usize {
        let mut batch = [(NONE, NONE, Pte::EMPTY); BATCH];
        let g = &mut self.groups[group as usize];
        let n = n.min(g.inactive.len());
        let batch = &mut batch[..n];
        // Loops over one field at a time, so cache misses overlap.
        for (b, frame) in batch.iter_mut().zip(g.inactive.drain(..n)) {
            b.0 = frame;
        }
        for b in batch.iter_mut() {
            b.1 = self.frames[b.0 as usize].page;
        }
        for b in batch.iter_mut() {
            b.2 = self.pages[b.1 as usize].pte;
        }
        for &mut (frame, page, pte) in batch {
            let f = &mut self.frames[frame as usize];
            f.history <<= 1;
            if !(pte.is_mapped() && pte.is_accessed()) {
                f.flags = f.flags & !REFERENCED | ISOLATED;
                out.push(frame);
                continue;
            }
            f.history |= 1;
            self.pages[page as usize].pte = pte.aged();
            if f.flags & REFERENCED == 0 {
                f.flags |= REFERENCED;
                self.add_inactive(frame);
            } else {
                self.add_active(frame);
            }
        }
        n
    }

    /// Puts back an isolated page that could not be swapped out.
    pub fn put_back(&mut self, frame: u32) {
        self.frames[frame as usize].flags &= !ISOLATED;
        self.add_active(frame);
    }

    /// Evicts an isolated page without a write if its slot has the same content.
    pub fn drop_clean(&mut self, frame: u32) -> bool {
        let f = self.frames[frame as usize];
        let pte = self.pages[f.page as usize].pte;
        if f.slot == NONE || (pte.is_mapped() && pte.is_dirty()) {
            return false;
        }
        self.count.dropped_clean += 1;
        self.evict(frame);
        true
    }

    /// Unmaps an isolated page and begins its write to `slot`.
    pub fn begin_write(&mut self, frame: u32, slot: u32) {
        let f = &mut self.frames[frame as usize];
        debug_assert!(f.flags & ISOLATED != 0 && f.slot == NONE);
        self.shares(slot, true);
        let f = &mut self.frames[frame as usize];
        f.slot = slot;
        f.flags = f.flags & WORKINGSET | WRITEBACK;
        self.pages[f.page as usize].pte = Pte::cached(frame);
        self.groups[f.group as usize].writeback += 1;
        self.by_group[f.group as usize].swapped_out += 1;
        self.count.swapped_out += 1;
        if let Some(versions) = &mut self.versions {
            versions[f.page as usize] += 1;
        }
    }

    /// The write of a page has ended.
    pub fn write_done(&mut self, frame: u32, cpu: u32) {
        let f = &mut self.frames[frame as usize];
        debug_assert!(f.flags & WRITEBACK != 0);
        f.flags &= !WRITEBACK;
        let pte = self.pages[f.page as usize].pte;
        let group = f.group;
        self.groups[group as usize].writeback -= 1;
        if pte.is_mapped() {
            if pte.is_dirty() {
                self.free_slot_of(frame, cpu);
            }
            self.add_inactive(frame);
        } else if self.group_of(frame).waiters.is_empty() && !self.keeps_no_pages {
            self.group_of(frame).clean.push_back(frame);
        } else {
            self.evict(frame);
        }
        let g = &mut self.groups[group as usize];
        if g.writeback == 0 {
            // Remapped pages freed no frame, so the remaining waiters must reclaim other
            // pages.
            for task in std::mem::take(&mut g.waiters) {
                self.wake(task);
            }
        }
    }

    /// The write of a page has failed; the page stays in memory.
    pub fn write_failed(&mut self, frame: u32, cpu: u32) {
        let page = self.frames[frame as usize].page;
        let p = &mut self.pages[page as usize];
        p.pte = Pte::mapped(frame, true);
        self.write_done(frame, cpu);
    }

    /// Evicts the page of `frame`: only its slot remains.
    pub(super) fn evict(&mut self, frame: u32) {
        let f = self.frames[frame as usize];
        debug_assert!(f.slot != NONE);
        self.shares(f.slot, false);
        let group = &mut self.groups[f.group as usize];
        let shadow = Shadow::new(group.age, f.flags & WORKINGSET != 0);
        group.age = group.age.wrapping_add(1);
        let p = &mut self.pages[f.page as usize];
        p.pte = Pte::slot(f.slot);
        p.shadow = shadow;
        self.put_frame(frame);
    }

    // ---- replay of a trace: no lists, no faults

    /// Pages in memory keep their slots from now on, however many are in use.
    pub fn keep_slots(&mut self) {
        self.keeps_slots = true;
    }

    /// Evicts each page when its read or write ends, from now on.
    pub fn keep_no_pages(&mut self) {
        self.keeps_no_pages = true;
    }

    /// Gives `page`, which is not in memory, new content; returns the isolated frame
    /// that holds it.
    pub fn fill_page(&mut self, page: u32, cpu: u32) -> u32 {
        self.drop_page(page, cpu);
        let frame = self.take_frame(0).expect("there is a frame for each page");
        let f = &mut self.frames[frame as usize];
        (f.page, f.slot, f.flags) = (page, NONE, ISOLATED);
        self.pages[page as usize].pte = Pte::mapped(frame, true);
        frame
    }

    /// Frees the slot of `page`, which is not in memory.
    pub fn drop_page(&mut self, page: u32, cpu: u32) {
        let pte = &mut self.pages[page as usize].pte;
        if let Place::Slot(slot) = pte.place() {
            *pte = Pte::EMPTY;
            self.count.slots_freed += 1;
            self.slots.give_back(cpu as usize, slot, &mut self.freed);
        }
    }

    /// Checks that every frame is in exactly one place.
    pub fn check_memory(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut seen = vec![0u8; self.frames.len()];
        for g in &self.groups {
            let lists = [&g.inactive, &g.active, &g.clean];
            let listed = lists.into_iter().flatten().chain(&g.free);
            listed.for_each(|&f| seen[f as usize] += 1);
        }
        for (frame, (f, seen)) in self.frames.iter().zip(seen).enumerate() {
            let busy = f.flags & (READING | WRITEBACK | ISOLATED | NEW) != 0;
            let granted = self.tasks.iter().any(|t| t.granted == frame as u32);
            let want = u8::from(!busy && !granted);
            if seen != want {
                wrong.push(format!("frame {frame} is on {seen} lists, should be on {want}: {f:?}"));
            }
            if f.page == NONE {
                continue;
            }
            match self.pages[f.page as usize].pte.place() {
                Place::Cached(at) | Place::Mapped(at) if at == frame as u32 => (),
                other => wrong.push(format!("frame {frame}: page {} is {other:?}", f.page)),
            }
        }
        wrong
    }

    /// Checks that no two pages share a slot, and that every slot in use belongs to a
    /// page.
    pub fn check_slots(&self) -> Vec<String> {
        let mut seen = vec![0u64; self.slots.total().div_ceil(64) as usize + 1];
        let (mut held, mut wrong) = (0, Vec::new());
        let mut hold = |slot: u32| {
            let (word, bit) = (slot as usize / 64, 1 << (slot % 64));
            if word >= seen.len() {
                // Slots of a system are blocks, more than the swap area has.
                seen.resize(word + 1, 0);
            }
            if seen[word] & bit != 0 {
                wrong.push(format!("slot {slot} is held twice"));
            }
            seen[word] |= bit;
            held += 1;
        };
        for page in &self.pages {
            if let Place::Slot(slot) = page.pte.place() {
                hold(slot);
            }
        }
        self.frames.iter().map(|f| f.slot).filter(|&s| s != NONE).for_each(&mut hold);
        if held != self.slots.used() {
            wrong.push(format!("{held} slots are held, {} in use", self.slots.used()));
        }
        wrong
    }
}
