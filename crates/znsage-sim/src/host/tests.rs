// SPDX-License-Identifier: GPL-2.0-only
//! Reclaim, step by step.

use super::costs::Costs;
use super::page::{Place, ACTIVE, NONE, REFERENCED};
use super::slots::Slots;
use super::{Holds, Host, Shape};

const PAGES: u32 = 1000;

/// A host with this many frames, and this many of them in use.
fn host(frames: u32, slots: u32) -> Host {
    let shape = Shape {
        cpus: 1,
        groups: vec![frames],
        threads: vec![0],
        vmas: std::iter::once(0..PAGES).collect(),
        vma_groups: vec![0],
        costs: Costs::default(),
    };
    let mut h = Host::new(&shape, Slots::new(slots, 1, 1, false), true);
    for page in 0..frames {
        let frame = h.take_frame(0).expect("memory is empty");
        h.map_new(page, frame);
    }
    assert_eq!(h.take_frame(0), None);
    h
}

fn touch(h: &mut Host, page: u32, write: bool) {
    let p = &mut h.pages[page as usize];
    assert!(p.pte.is_mapped());
    p.pte = p.pte.touched(write);
}

fn place(h: &Host, page: u32) -> Place {
    h.pages[page as usize].pte.place()
}

/// Isolates until there are `n`; the frames' pages.
fn isolate(h: &mut Host, n: usize) -> Vec<u32> {
    let mut out = Vec::new();
    h.isolate(0, &mut out);
    assert!(out.len() >= n, "{} of {n}", out.len());
    out.iter().map(|&f| h.frame(f).page).collect()
}

/// Swaps out the pages that reclaim isolates next; the writes are in flight.
fn begin_out(h: &mut Host) -> Vec<u32> {
    let mut out = Vec::new();
    h.isolate(0, &mut out);
    out.retain(|&frame| !h.drop_clean(frame));
    for &frame in &out {
        let slot = h.slots.alloc(0).expect("a slot");
        h.begin_write(frame, slot);
    }
    out
}

/// Swaps a batch out and frees its frames; the pages.
fn out(h: &mut Host) -> Vec<u32> {
    let frames = begin_out(h);
    let pages = frames.iter().map(|&f| h.frame(f).page).collect();
    frames.iter().for_each(|&f| h.write_done(f, 0));
    h.reap(0, frames.len());
    pages
}

/// Reads a page that was swapped out.
fn fault(h: &mut Host, page: u32, write: bool) {
    let Place::Slot(slot) = place(h, page) else { panic!("page {page} is {:?}", place(h, page)) };
    let frame = h.take_frame(0).expect("a frame");
    h.begin_read(page, slot, frame, false);
    h.read_done_for_test(frame);
    h.map_cached(frame, write, 0);
    release(h);
}

/// What the run does with freed slots.
fn release(h: &mut Host) {
    for slot in std::mem::take(&mut h.freed) {
        h.slots.release(slot);
    }
}

fn sound(h: &Host) {
    assert_eq!(h.check_memory(), [""; 0]);
    assert_eq!(h.check_slots(), [""; 0]);
}

#[test]
fn a_page_is_spared_once_for_its_first_touch() {
    let mut h = host(100, 1000);
    // All were touched when they were mapped: the first trip clears that.
    let pages = isolate(&mut h, 32);
    assert_eq!(pages, (0..32).collect::<Vec<_>>(), "oldest first, a batch of 32");
    assert_eq!(h.count.scanned, 132);
}

#[test]
fn page_touched_twice_is_activated() {
    let mut h = host(100, 1000);
    isolate(&mut h, 32);
    let frame = h.pages[50].pte.frame();
    assert_eq!(h.frame(frame).flags & (REFERENCED | ACTIVE), REFERENCED);
    touch(&mut h, 50, false);
    let next = isolate(&mut h, 32);
    assert!(!next.contains(&50), "{next:?}");
    assert_eq!(h.frame(frame).flags & (REFERENCED | ACTIVE), ACTIVE);
    assert_eq!(h.heat(frame), 2);
}

#[test]
fn active_pages_come_back_when_inactive_ones_are_few() {
    let mut h = host(100, 1000);
    for _ in 0..2 {
        let all = isolate(&mut h, 32);
        // Put back as active, all of them.
        all.iter().for_each(|&p| h.put_back(h.pages[p as usize].pte.frame()));
    }
    // 64 active, 36 inactive: a batch is moved, and its touches are forgotten.
    let pages = isolate(&mut h, 32);
    assert_eq!(pages.len(), 32);
    sound_isolated(&h, &pages);
}

fn sound_isolated(h: &Host, pages: &[u32]) {
    for &p in pages {
        let f = h.frame(h.pages[p as usize].pte.frame());
        assert_eq!(f.page, p);
        assert_eq!(f.flags & ACTIVE, 0);
    }
}

#[test]
fn a_page_goes_out_and_comes_back() {
    let mut h = host(100, 1000);
    let pages = out(&mut h);
    assert_eq!(pages.len(), 32);
    for (i, &p) in pages.iter().enumerate() {
        assert_eq!(place(&h, p), Place::Slot(i as u32));
    }
    assert_eq!((h.free_frames(0), h.slots.used()), (32, 32));
    fault(&mut h, pages[3], true);
    assert_eq!(h.slots.used(), 31, "a write frees the slot");
    assert!(h.pages[pages[3] as usize].pte.is_dirty());
    sound(&h);
}

#[test]
fn clean_page_keeps_its_slot_and_is_dropped() {
    let mut h = host(100, 1000);
    let page = out(&mut h)[0];
    fault(&mut h, page, false);
    assert_eq!(h.slots.used(), 32);
    assert_eq!(h.holds(page, 0), Holds::Cached);
    assert!(!h.pages[page as usize].pte.is_dirty());
    // It is evicted again without a write.
    for _ in 0..6 {
        out(&mut h);
    }
    assert_eq!(place(&h, page), Place::Slot(0));
    assert_eq!(h.count.dropped_clean, 1);
    sound(&h);
}

#[test]
fn slots_of_pages_in_memory_are_freed_when_swap_is_half_full() {
    // 60 slots: 32 in use are more than half.
    let mut h = host(100, 60);
    let page = out(&mut h)[0];
    assert!(h.slots.half_full());
    fault(&mut h, page, false);
    assert_eq!(h.slots.used(), 31);
    assert!(h.pages[page as usize].pte.is_dirty(), "its only copy is in memory");
    sound(&h);
}

#[test]
fn slots_of_pages_in_memory_stay_with_znswap() {
    let mut h = host(100, 60);
    h.keep_slots();
    let page = out(&mut h)[0];
    assert!(h.slots.half_full());
    fault(&mut h, page, false);
    assert_eq!(h.slots.used(), 32);
    assert!(!h.pages[page as usize].pte.is_dirty(), "its slot has the same content");
    sound(&h);
}

#[test]
fn a_fault_finds_a_page_that_is_being_written() {
    let mut h = host(100, 1000);
    let frames = begin_out(&mut h);
    let (read, written) = (frames[0], frames[1]);
    let page = |h: &Host, f: u32| h.frame(f).page;
    let (rp, wp) = (page(&h, read), page(&h, written));
    assert_eq!(place(&h, rp), Place::Cached(read));
    assert!(!h.map_cached(read, false, 0));
    h.map_cached(written, true, 0);
    frames.iter().for_each(|&f| h.write_done(f, 0));
    release(&mut h);
    assert_eq!(h.slots.used(), 31, "what was written meanwhile has no use for its slot");
    assert_eq!(h.frame(written).slot, NONE);
    assert_eq!(h.holds(rp, h.frame(read).slot), Holds::Cached);
    assert!(h.pages[wp as usize].pte.is_dirty());
    assert_eq!(h.reap(0, 100), 30, "two of 32 stay");
    sound(&h);
}

#[test]
fn failed_write_leaves_the_page_in_memory() {
    let mut h = host(100, 1000);
    let frames = begin_out(&mut h);
    let page = h.frame(frames[0]).page;
    h.write_failed(frames[0], 0);
    frames[1..].iter().for_each(|&f| h.write_done(f, 0));
    release(&mut h);
    assert_eq!(place(&h, page), Place::Mapped(frames[0]));
    assert!(h.pages[page as usize].pte.is_dirty());
    h.reap(0, 100);
    sound(&h);
}

#[test]
fn waiter_gets_the_first_written_frame() {
    let mut h = host(100, 1000);
    assert!(!h.wait_for_memory(0), "nothing is on its way");
    let frames = begin_out(&mut h);
    h.wake(0);
    assert_eq!(h.cpus.next_to_run().map(|(task, _)| task), Some(0));
    assert!(h.wait_for_memory(0));
    h.write_done(frames[5], 0);
    assert_eq!(h.tasks[0].granted, frames[5]);
    assert_eq!(h.cpus.next_to_run().map(|(task, _)| task), Some(0));
}

#[test]
fn early_refault_is_activated() {
    let mut h = host(100, 1000);
    // Some active pages: the distance is measured against their number.
    let some = isolate(&mut h, 32);
    some.iter().for_each(|&p| h.put_back(h.pages[p as usize].pte.frame()));
    let pages = out(&mut h);
    let (soon, late) = (pages[31], pages[0]);
    fault(&mut h, soon, true);
    assert_ne!(h.frame(h.pages[soon as usize].pte.frame()).flags & ACTIVE, 0);
    (0..2).for_each(|_| _ = out(&mut h));
    fault(&mut h, late, true);
    assert_eq!(h.frame(h.pages[late as usize].pte.frame()).flags & ACTIVE, 0);
    sound(&h);
}

#[test]
fn a_slot_can_be_dropped_while_its_page_is_in_memory() {
    let mut h = host(100, 1000);
    let page = out(&mut h)[0];
    fault(&mut h, page, false);
    h.forget_slot(page);
    h.slots.release(0);
    assert!(h.pages[page as usize].pte.is_dirty());
    assert_eq!(h.holds(page, 0), Holds::No);
    sound(&h);
}

#[test]
fn versions_tell_writes_apart() {
    let mut h = host(100, 1000);
    let page = out(&mut h)[0];
    let first = h.page_content(page);
    fault(&mut h, page, true);
    for _ in 0..6 {
        out(&mut h);
    }
    assert!(matches!(place(&h, page), Place::Slot(_)));
    assert_eq!(h.page_content(page), first + 1);
}
