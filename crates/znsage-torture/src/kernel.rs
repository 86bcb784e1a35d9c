// SPDX-License-Identifier: GPL-2.0-only
//! The kernel above the disk: pages, slots, ends of bios. It handles errors as
//! `mm/` does.
//!
//! - Failed swap-out (`end_swap_bio_write()`): the page stays in memory,
//!   dirty, and keeps its slot for the next attempt.
//! - Failed swap-in (`do_swap_page()`): the process gets SIGBUS. It exits,
//!   which frees all its slots, or it handles the signal and gives up the page.
//!   Failed readahead is ignored.
//! - No slot, or no page to swap out: the OOM killer.

use super::bio::{Bio, User};
use super::chunks::Plug;
use super::content::name;
use super::draw::Reuse;
use super::model::Slot;
use super::pages::{At, Doing, Page, NONE};
use super::state::Run;
use super::types::{trace, Sabotage};

impl Run {
    pub(super) fn page(&mut self, page: u32) -> &mut Page {
        &mut self.k.pages[page as usize]
    }

    // ---- slots

    fn alloc_slot(&mut self, page: u32) -> Option<u32> {
        if self.k.drain.is_some() {
            return None;
        }
        if self.k.free.is_empty() {
            self.give_back();
        }
        let slot = match self.plan.load.reuse {
            Reuse::First => self.k.free.pop_front(),
            Reuse::Last => self.k.free.pop_back(),
            Reuse::Any if self.k.free.is_empty() => None,
            Reuse::Any => {
                let i = self.draw(self.k.free.len() as u32);
                self.k.free.swap_remove_back(i as usize)
            }
        }?;
        self.k.owner[slot as usize] = page;
        Some(slot)
    }

    /// Frees a slot; the disk is told in batches.
    pub(super) fn free_slot(&mut self, page: u32) {
        let slot = std::mem::replace(&mut self.page(page).slot, NONE);
        if slot == NONE {
            return;
        }
        self.k.owner[slot as usize] = NONE;
        self.k.returned.push(slot);
        if self.k.returned.len() as u32 >= self.plan.load.free_batch {
            self.give_back();
        }
    }

    /// Tells the disk about free slots.
    pub(super) fn give_back(&mut self) {
        for slot in std::mem::take(&mut self.k.returned) {
            self.disk_free(slot);
            self.k.free.push_back(slot);
        }
    }

    /// swap_slot_free_notify() or a discard.
    pub(super) fn disk_free(&mut self, slot: u32) {
        trace!(self, "free of slot {slot}");
        self.n.frees += 1;
        self.model.free(slot);
        if self.sabotage == Sabotage::ForgetFree && self.spoil(100) {
            return;
        }
        self.e.free(slot);
    }

    // ---- pages

    /// Writes new content to a page.
    pub(super) fn dirty(&mut self, page: u32) {
        let token = self.model.token();
        let p = self.page(page);
        (p.token, p.dirty) = (token, true);
        if p.at == At::Memory {
            self.free_slot(page);
        }
    }

    /// First touch of a page.
    pub(super) fn fill(&mut self, page: u32) {
        self.k.frames_used += 1;
        self.k.add_resident(page);
        self.dirty(page);
    }

    /// The process gives up a page.
    pub(super) fn release(&mut self, page: u32) {
        match self.page(page).at {
            At::Nowhere => return,
            At::Writeback | At::Reading => {
                self.page(page).dying = true;
                return;
            }
            At::Memory => {
                self.k.remove_resident(page);
                self.k.frames_used -= 1;
            }
            At::Slot => (),
        }
        self.free_slot(page);
        self.page(page).at = At::Nowhere;
    }

    /// Frees a page that was given up during its I/O.
    fn bury(&mut self, page: u32) {
        self.page(page).dying = false;
        self.k.frames_used -= 1;
        self.free_slot(page);
        self.page(page).at = At::Nowhere;
    }

    /// Exit: gives up all pages of a process.
    pub(super) fn exit(&mut self, process: u32) {
        trace!(self, "process {process} ends");
        for page in self.k.range(process, self.plan.load.processes) {
            self.release(page);
        }
    }

    /// Reads a page from its slot, into a frame taken now.
    pub(super) fn swap_in(&mut self, page: u32, user: User) {
        let p = self.page(page);
        p.at = At::Reading;
        let (slot, token) = (p.slot, p.token);
        self.k.frames_used += 1;
        let bio = self.bio(user, false, vec![slot], vec![token]);
        self.n.read += 1;
        self.read(bio);
    }

    // ---- reclaim

    /// Reclaims a page: drops it or begins to write it. False: it has to stay.
    pub(super) fn reclaim_page(&mut self, page: u32, cpu: u32, plug: Option<&mut Plug>) -> bool {
        let Page { dirty, slot, token, .. } = *self.page(page);
        if !dirty && slot != NONE {
            self.k.remove_resident(page);
            self.k.frames_used -= 1;
            self.page(page).at = At::Slot;
            return true;
        }
        let slot = match slot {
            NONE => match self.alloc_slot(page) {
                Some(slot) => slot,
                None => {
                    self.n.no_slot += 1;
                    return false;
                }
            },
            slot => slot,
        };
        self.k.remove_resident(page);
        let p = self.page(page);
        (p.at, p.slot, p.dirty, p.mapped) = (At::Writeback, slot, false, false);
        self.k.writeback += 1;
        self.n.swapped_out += 1;
        let bio = self.bio(User::Page(page), true, vec![slot], vec![token]);
        self.write(bio, cpu, plug);
        true
    }

    // ---- the ends of bios

    pub(super) fn bio_ended(&mut self, bio: Bio) {
        match bio.user {
            User::Page(page) if bio.write => self.write_ended(page, &bio),
            User::Page(page) | User::Swapoff(page) => self.page_read(page, &bio),
            User::Raw => self.raw_ended(bio),
        }
    }

    fn write_ended(&mut self, page: u32, bio: &Bio) {
        self.k.writeback -= 1;
        let p = *self.page(page);
        trace!(self, "page {page} written to slot {}: {}", p.slot, !bio.failed);
        let held = self.model.get(p.slot);
        let as_it_should = match bio.failed {
            true => held == Slot::Lost,
            false => self.model.holds(p.slot, bio.tokens[0]),
        };
        if p.at != At::Writeback || !as_it_should {
            self.wrong.push(format!(
                "the write of page {page} ended ({}), it is {p:?}, its slot {held:?}",
                if bio.failed { "failed" } else { "fine" }
            ));
            return;
        }
        if p.dying {
            self.bury(page);
        } else if bio.failed || p.dirty || p.mapped {
            let p = self.page(page);
            p.dirty |= bio.failed;
            p.mapped = false;
            self.k.add_resident(page);
        } else {
            self.k.frames_used -= 1;
            self.page(page).at = At::Slot;
        }
        self.n.kept += u64::from(bio.failed);
        self.wake_waiting(Doing::WaitMemory);
    }

    fn page_read(&mut self, page: u32, bio: &Bio) {
        let p = *self.page(page);
        trace!(self, "page {page} read from slot {}: {}", p.slot, !bio.failed);
        if !bio.failed && bio.got[0] != p.token {
            self.wrong.push(format!(
                "page {page} came back from slot {} with {}, should have {}",
                p.slot,
                name(bio.got[0]),
                name(p.token)
            ));
        }
        if bio.failed && !bio.device_error && self.model.get(p.slot) != Slot::Lost {
            self.wrong.push(format!("the read of slot {} failed for no reason", p.slot));
        }
        let waited = self.is_waited_for(page);
        if bio.user == User::Swapoff(page) {
            self.drained(page, bio.failed);
        } else if p.dying {
            self.bury(page);
        } else if !bio.failed {
            self.page(page).dirty = false;
            self.k.add_resident(page);
        } else {
            self.k.frames_used -= 1;
            self.page(page).at = At::Slot;
            if waited {
                self.sigbus(page);
            } else {
                self.n.readahead_failed += 1;
            }
        }
        self.wake_readers(page);
    }

    fn sigbus(&mut self, page: u32) {
        self.n.sigbus += 1;
        if self.plan.load.kill {
            let processes = self.plan.load.processes;
            let of = (0..processes).find(|&p| self.k.range(p, processes).contains(&page));
            self.exit(of.expect("every page is some process's"));
        } else {
            self.release(page);
        }
    }

    /// Swapoff has read a page.
    fn drained(&mut self, page: u32, failed: bool) {
        self.k.drain_reads -= 1;
        if self.page(page).dying {
            return self.bury(page);
        }
        self.k.add_resident(page);
        self.page(page).dirty = true;
        self.free_slot(page);
        if failed {
            self.n.poisoned += 1;
            self.release(page);
        }
    }

    // ---- the worst moment

    /// Strikes a slot with an unexpected action; returns which.
    pub(super) fn strike(&mut self, slot: u32) -> Option<&'static str> {
        if slot >= self.k.raw_from {
            return self.strike_raw(slot);
        }
        let page = self.k.owner[slot as usize];
        if page == NONE || self.page(page).slot != slot {
            return None;
        }
        let at = self.page(page).at;
        match at {
            At::Slot if !self.frozen && self.percent(30) && self.k.drain.is_none() => {
                self.swap_in(page, User::Page(page));
                Some("is read")
            }
            At::Slot => {
                self.release(page);
                self.give_back();
                Some("is freed")
            }
            At::Memory => {
                self.dirty(page);
                self.give_back();
                Some("is freed")
            }
            At::Writeback if self.percent(50) => {
                let token = self.model.token();
                let p = self.page(page);
                (p.token, p.dirty) = (token, true);
                Some("is dirtied")
            }
            At::Writeback | At::Reading => {
                self.release(page);
                Some("is given up")
            }
            At::Nowhere => None,
        }
    }

    // ---- checks

    /// Checks pages, frames and slots against each other and the model.
    pub(super) fn check_kernel(&mut self) {
        let (mut frames, mut held) = (0, 0);
        for (i, p) in self.k.pages.iter().enumerate() {
            frames += u32::from(!matches!(p.at, At::Nowhere | At::Slot));
            held += usize::from(p.slot != NONE);
            if p.slot != NONE && self.k.owner[p.slot as usize] != i as u32 {
                self.wrong.push(format!("page {i}: slot {} is another's", p.slot));
            }
            let stored = match p.at {
                At::Slot | At::Reading => true,
                At::Memory => p.slot != NONE && !p.dirty,
                _ => false,
            };
            if stored {
                let is = self.model.get(p.slot);
                if !self.model.holds(p.slot, p.token) && is != Slot::Lost {
                    self.wrong.push(format!("page {i} is in slot {}, which is {is:?}", p.slot));
                }
            }
        }
        let out = self.k.free.len() + self.k.returned.len() + held;
        if out != self.k.owner.len() || frames != self.k.frames_used {
            self.wrong.push(format!(
                "{out} of {} slots, {frames} of {} frames accounted for",
                self.k.owner.len(),
                self.k.frames_used
            ));
        }
    }
}
