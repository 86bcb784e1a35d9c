// SPDX-License-Identifier: GPL-2.0-only
//! A device that fails for a while, and blocks that it can no longer read.

use znsage_engine::Append;

use crate::device::Fate;
use crate::directed::{eager, fill_two_zones, finish, host, write};
use crate::host::{Host, Slot};

fn lost(h: &Host) -> usize {
    h.slots.iter().filter(|s| **s == Slot::Lost).count()
}

/// A device of 8 zones, the first one with slots 1 to 31 of which GC cannot
/// read slot 1.
fn unreadable_slot() -> Host {
    let mut h = host(eager);
    h.unreadable = vec![1];
    write(&mut h, 0..32);
    fill_two_zones(&mut h);
    h.free(0);
    h.run_idle();
    h
}

/// As much as has to be written before GC looks again at what it could not read.
fn write_an_eighth(h: &mut Host) {
    for slot in 34..66 {
        assert!(h.write(0, slot));
        h.run_device();
    }
}

#[test]
fn unreadable_block_stays_and_the_others_move() {
    let mut h = unreadable_slot();
    let st = h.e.stats();
    assert_eq!((lost(&h), st.read_errors, st.gc_blocks), (0, 1, 30));
    let zone = h.e.zone(0);
    assert_eq!((zone.state, zone.live), ("full", 1));
    // Who wants it may be luckier.
    (0..32).for_each(|slot| h.begin_read(slot, 1));
    (0..h.reads()).rev().for_each(|i| h.end_read(i));
    finish(h);
}

#[test]
fn what_could_not_be_read_is_moved_when_it_can() {
    let mut h = unreadable_slot();
    h.unreadable.clear();
    write_an_eighth(&mut h);
    h.run_idle();
    assert_eq!((lost(&h), h.e.stats().read_errors), (0, 1));
    assert_ne!(h.e.zone(0).state, "full");
    finish(h);
}

#[test]
fn what_can_never_be_read_is_lost_at_last() {
    let mut h = unreadable_slot();
    for tries in 1..=6 {
        assert_eq!((lost(&h), h.e.stats().read_errors), (0, tries));
        for eighth in 0..1 << (tries - 1) {
            assert_eq!(h.e.stats().read_errors, tries, "{eighth} eighths later");
            write_an_eighth(&mut h);
        }
        h.run_idle();
    }
    assert_eq!((lost(&h), h.e.stats().read_errors), (1, 7));
    assert_eq!(h.slots[1], Slot::Lost);
    finish(h);
}

/// Every command fails while there is much to write and to clean. What was
/// written before is there afterwards, and so are all zones.
#[test]
fn a_device_that_is_away_loses_no_page_and_no_zone() {
    let mut h = host(eager);
    write(&mut h, 0..100);
    (0..100).step_by(2).for_each(|slot| h.free(slot));
    h.away = true;
    for _ in 0..5 {
        for slot in 100..140 {
            assert!(h.write(0, slot));
            h.run_device();
        }
    }
    h.run_idle();
    let st = h.e.stats();
    assert!(h.failed_chunks > 40, "{} chunks failed", h.failed_chunks);
    assert_eq!(lost(&h), 40, "what was to be written");
    assert!(st.zones_empty <= 1, "but for the reserve, {} zones are empty", st.zones_empty);
    assert!(st.zones_retired > 0);
    assert!((1..100).step_by(2).all(|slot| matches!(h.slots[slot], Slot::Stored { .. })));

    h.away = false;
    for round in 0..3 {
        for slot in 100..140 {
            assert!(h.write(0, slot), "round {round}");
            h.run_device();
        }
    }
    h.run_idle();
    assert_eq!((lost(&h), h.e.stats().zones_retired), (0, 0));
    assert!((1..100).step_by(2).all(|slot| matches!(h.slots[slot], Slot::Stored { .. })));
    finish(h);
}

/// GC can read nothing at all, though the device works else: in the end nothing can
/// be written, and nothing is given up for that.
#[test]
fn swap_out_fails_before_pages_are_given_up() {
    let mut h = host(eager);
    write(&mut h, 0..154);
    h.unreadable = (0..154).collect();
    let mut random = 1_u32;
    while h.failed_chunks == 0 {
        random = random.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        assert!(h.write(0, (random >> 16) % 154));
        h.run_device();
    }
    // What was to be written is in memory, a chunk; the rest can be had.
    assert!((1..=4).contains(&lost(&h)));
    h.unreadable.clear();
    for slot in 0..154 {
        assert!(h.write(0, slot));
        h.run_device();
    }
    assert_eq!((h.failed_chunks, lost(&h)), (1, 0));
    finish(h);
}

/// A page in every zone that cannot be read, and that nobody frees, holds all the room
/// there is. What is refused meanwhile counts as much as what is written, if the device
/// can be seen to work: they are lost at last, and swap-out goes on.
#[test]
fn what_holds_the_room_is_lost_at_last() {
    let mut h = host(eager);
    write(&mut h, 0..154);
    h.unreadable = (0..154).step_by(7).collect();
    let mut random = 1_u32;
    let mut rounds = |h: &mut Host, rounds: usize, reads: bool| {
        let before = h.failed_chunks;
        for _ in 0..rounds * 154 {
            random = random.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            let slot = (random >> 16) % 154;
            if slot % 7 > 1 {
                assert!(h.write(0, slot));
                h.run_device();
                if reads && slot.is_multiple_of(8) {
                    h.begin_read(1, 1);
                    h.run_idle();
                }
            }
        }
        h.failed_chunks - before
    };
    let of_those = |h: &Host| (0..154).step_by(7).filter(|s| h.slots[*s] == Slot::Lost).count();

    assert!(rounds(&mut h, 16, false) > 0, "there is room");
    assert_eq!(of_those(&h), 0, "it may be an outage, nothing else is done");
    rounds(&mut h, 80, true);
    assert_eq!(of_those(&h), 22);
    assert_eq!(rounds(&mut h, 4, true), 0, "swap-out does not go on");
    finish(h);
}

/// Does this append fail?
type Fails = fn(&Host, &Append) -> bool;

/// GC's appends to a zone that already holds something fail.
fn another_of_gc(h: &Host, append: &Append) -> bool {
    append.gc(&h.e) && h.e.zone(append.zone).written > 0
}

/// Runs until nothing is left to do.
fn run(h: &mut Host, fails: Fails) {
    while h.kick || !h.nothing_outstanding() {
        h.pump();
        if let Some(append) = h.appends.pop() {
            let fate = if fails(h, &append) { Fate::Refused } else { Fate::Done };
            h.end_append(append, fate);
        } else if let Some(read) = h.gc_reads.pop() {
            h.end_gc_read(read, || false);
        } else {
            h.end_finishes();
            h.end_resets();
        }
    }
}

/// Errors used up the reserve: every zone is full, though most blocks are dead. Swap-out is
/// refused, nothing is lost, and swap-out works again once the pages of one zone are freed.
#[test]
fn without_a_zone_swap_out_is_refused_until_one_dies() {
    let mut h = host(eager);
    write(&mut h, 0..100);
    let mut random = 1_u32;
    while h.failed_chunks == 0 {
        random = random.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        assert!(h.write(0, (random >> 16) % 100));
        run(&mut h, another_of_gc);
    }
    let st = h.e.stats();
    assert_eq!((st.zones_full, st.zones_empty, st.zones_open), (8, 0, 0));
    let stored = |h: &Host| (0..100).filter(|s| matches!(h.slots[*s], Slot::Stored { .. })).count();
    let before = stored(&h);
    for slot in 100..140 {
        assert!(h.write(0, slot));
        h.run_device();
    }
    assert_eq!(stored(&h), before);
    let zone = |h: &Host, slot: u32| match h.slots[slot as usize] {
        Slot::Stored { block, .. } => Some(h.e.locate(block).0),
        _ => None,
    };
    let first = (0..100).find_map(|slot| zone(&h, slot)).expect("some are stored");
    (0..100)
        .filter(|s| zone(&h, *s) == Some(first))
        .collect::<Vec<_>>()
        .into_iter()
        .for_each(|s| h.free(s));
    let failed = h.failed_chunks;
    for slot in (0..100).cycle().take(400) {
        assert!(h.write(0, slot));
        h.run_device();
    }
    assert_eq!(h.failed_chunks, failed);
    finish(h);
}

/// Each zone failed when it was half full, so that none gains anything for sure, and holds
/// more than GC's memory; one is moved all the same before swap-out fails.
#[test]
fn a_zone_that_failed_is_the_last_resort() {
    let mut h = host(eager);
    h.set_gc(false);
    let half_full = |h: &Host, append: &Append| h.e.zone(append.zone).written == 16;
    for slot in (0..112).step_by(4) {
        (slot..slot + 4).for_each(|slot| assert!(h.write(0, slot)));
        run(&mut h, half_full);
    }
    let st = h.e.stats();
    assert_eq!((st.write_errors, st.zones_full, st.zones_empty), (6, 6, 1));
    h.set_gc(true);
    for slot in (112..154).chain(0..112) {
        assert!(h.write(0, slot));
        h.run_device();
    }
    assert_eq!(h.failed_chunks, 0);
    finish(h);
}

/// GC makes do with fewer zones in an outage, not after it.
#[test]
fn gc_has_its_lanes_again() {
    let mut h = host(|c| {
        (c.nr_zones, c.nr_slots, c.stripe) = (40, 700, 3);
        (c.nr_gc_chunks, c.max_active) = (4, 9);
    });
    let lanes = h.e.stats().gc_stripe;
    assert!(lanes > 1);
    // A zone that could not be finished may be taken for inactive before it is.
    h.dev.max_active = 0;
    let write_all = |h: &mut Host| {
        for slot in 0..700 {
            assert!(h.write(0, slot));
            h.run_device();
        }
    };
    write_all(&mut h);
    h.away = true;
    write_all(&mut h);
    assert!(h.e.stats().gc_stripe < lanes, "it never came to its end");
    h.away = false;
    write_all(&mut h);
    assert_eq!(h.e.stats().gc_stripe, lanes);
    finish(h);
}

/// Whether a zone is dead for good or the device was away is not known before others are
/// tried as well.
#[test]
fn zones_that_cannot_be_reset_do_not_keep_others_from_it() {
    let mut h = host(eager);
    write(&mut h, 0..96);
    // First these, then others.
    h.dead = vec![0, 1];
    (0..64).for_each(|slot| h.free(slot));
    h.run_idle();
    assert_eq!(h.e.stats().zones_retired, 2);
    h.away = true;
    write(&mut h, 100..104);
    (64..96).for_each(|slot| h.free(slot));
    h.run_idle();
    assert!(h.e.stats().zones_retired > 2);
    h.away = false;
    for slot in 104..130 {
        assert!(h.write(0, slot));
        h.run_device();
    }
    assert_eq!(h.e.stats().zones_retired, 2);
    finish(h);
}

/// One that is gone for good is asked now and then, by resets of four zones.
#[test]
fn a_device_that_is_gone_is_not_asked_for_each_chunk() {
    let mut h = host(eager);
    write(&mut h, 0..8);
    h.away = true;
    for slot in 0..64 {
        assert!(h.write(0, slot));
        h.run_device();
    }
    let (errors, chunks) = (h.e.stats().write_errors, h.failed_chunks);
    for slot in 0..1024 {
        assert!(h.write(0, slot % 128));
        h.run_device();
    }
    assert_eq!(h.failed_chunks - chunks, 256);
    let tries = h.e.stats().write_errors - errors;
    assert!((16..40).contains(&tries), "{tries} resets for 256 chunks");
    h.away = false;
    finish(h);
}
