// SPDX-License-Identifier: GPL-2.0-only
//! Outages, and blocks that cannot be read.

use znsage_engine::Append;

use crate::device::Fate;
use crate::directed::{eager, fill_two_zones, finish, host, write};
use crate::host::{Host, Slot};

fn lost(h: &Host) -> usize {
    h.slots.iter().filter(|s| **s == Slot::Lost).count()
}

/// A device of 8 zones. The first one has slots 1 to 31, of which GC cannot read slot 1.
fn unreadable_slot() -> Host {
    let mut h = host(eager);
    h.unreadable = vec![1];
    write(&mut h, 0..32);
    fill_two_zones(&mut h);
    h.free(0);
    h.run_idle();
    h
}

/// Writes as much as a deferred zone waits for after its first failure.
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
    // Swap-in may succeed where GC failed.
    (0..32).for_each(|slot| h.begin_read(slot, 1));
    (0..h.reads()).rev().for_each(|i| h.end_read(i));
    finish(h);
}

#[test]
fn unreadable_block_is_moved_once_it_can_be_read() {
    let mut h = unreadable_slot();
    h.unreadable.clear();
    write_an_eighth(&mut h);
    h.run_idle();
    assert_eq!((lost(&h), h.e.stats().read_errors), (0, 1));
    assert_ne!(h.e.zone(0).state, "full");
    finish(h);
}

#[test]
fn unreadable_block_is_lost_after_seven_tries() {
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

/// Every command fails while there is much to write and to clean. Afterwards all pages
/// written before can be read, and no zone is retired.
#[test]
fn outage_loses_no_page_and_no_zone() {
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
    assert_eq!(lost(&h), 40, "the pages that could not be written");
    assert!(st.zones_empty <= 1, "{} zones are empty", st.zones_empty);
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

/// GC can read nothing, though writes work. In the end swap-out fails; the engine gives
/// up no page for it.
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
    // A chunk of pages stays in memory; all others can be read.
    assert!((1..=4).contains(&lost(&h)));
    h.unreadable.clear();
    for slot in 0..154 {
        assert!(h.write(0, slot));
        h.run_device();
    }
    assert_eq!((h.failed_chunks, lost(&h)), (1, 0));
    finish(h);
}

/// An unreadable page in every zone, which nobody frees, holds all the room. If the device
/// is seen to work, refused pages count as written: the unreadable ones are lost, and
/// swap-out goes on.
#[test]
fn unreadable_pages_that_hold_all_room_are_lost() {
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
    assert_eq!(of_those(&h), 0, "lost although nothing shows that the device works");
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

/// Each zone failed when it was half full. Moving one may gain nothing, and its pages exceed
/// GC's chunks, but GC does so before swap-out fails.
#[test]
fn gc_empties_a_failed_zone_before_swap_out_fails() {
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

/// GC may lose lanes in an outage, and has them again after it.
#[test]
fn gc_has_all_its_lanes_after_an_outage() {
    let mut h = host(|c| {
        (c.nr_zones, c.nr_slots, c.stripe) = (40, 700, 3);
        (c.nr_gc_chunks, c.max_active) = (4, 9);
    });
    let lanes = h.e.stats().gc_stripe;
    assert!(lanes > 1);
    // The engine may count a zone that it could not finish as inactive too early.
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
    assert!(h.e.stats().gc_stripe < lanes, "GC lost no lane");
    h.away = false;
    write_all(&mut h);
    assert_eq!(h.e.stats().gc_stripe, lanes);
    finish(h);
}

/// GC may lose lanes because it cannot read zones, and has them again once these are empty.
#[test]
fn gc_has_all_its_lanes_after_it_could_not_read() {
    let mut h = host(|c| {
        (c.nr_zones, c.nr_slots, c.stripe) = (40, 900, 3);
        (c.nr_gc_chunks, c.max_active) = (4, 9);
    });
    let lanes = h.e.stats().gc_stripe;
    write_slots(&mut h, 0..900);
    h.unreadable = (0..900).step_by(7).collect();
    for slot in (0..900).filter(|slot| slot % 7 > 0).cycle().take(9000) {
        write_slots(&mut h, slot..slot + 1);
        if h.e.stats().gc_stripe < lanes {
            break;
        }
    }
    assert!(h.e.stats().gc_stripe < lanes, "GC lost no lane");
    assert_eq!(h.e.stats().write_errors, 0);
    h.unreadable.clear();
    (0..4).for_each(|_| write_slots(&mut h, 0..900));
    assert_eq!(h.e.stats().gc_stripe, lanes);
    finish(h);
}

fn write_slots(h: &mut Host, slots: std::ops::Range<u32>) {
    for slot in slots {
        assert!(h.write(0, slot));
        h.run_device();
    }
}

/// Appends of GC to zones that hold something fail, each after ten seconds. The chunks that
/// wait for GC do not wait until as many have failed as there are zones.
#[test]
fn chunks_do_not_wait_for_slow_failures() {
    let mut h = host(|c| (c.nr_zones, c.nr_slots) = (64, 1500));
    let (mut random, mut since) = (1_u32, 0);
    write_slots(&mut h, 0..1500);
    while h.failed_chunks == 0 {
        random = random.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        assert!(h.write(0, (random >> 16) % 1500));
        since = h.now;
        run_slowly(&mut h, another_of_gc);
    }
    assert!(h.now - since < 100 * SECOND, "{} s", (h.now - since) / SECOND);
    finish(h);
}

const SECOND: u64 = 1_000_000_000;

/// As [`run`], with ten seconds for each append that fails.
fn run_slowly(h: &mut Host, fails: Fails) {
    while h.kick || !h.nothing_outstanding() {
        h.pump();
        if let Some(append) = h.appends.pop() {
            let fails = fails(h, &append);
            h.now += if fails { 10 * SECOND } else { 1 };
            h.end_append(append, if fails { Fate::Refused } else { Fate::Done });
        } else if let Some(read) = h.gc_reads.pop() {
            h.end_gc_read(read, || false);
        } else {
            h.end_finishes();
            h.end_resets();
        }
    }
}

/// A failed reset may mean a broken zone or an outage, so a round tries others, too.
#[test]
fn broken_zones_do_not_keep_others_from_their_reset() {
    let mut h = host(eager);
    write(&mut h, 0..96);
    // These are retired first, and tried first.
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

/// A device that is gone for good gets a round of four resets now and then.
#[test]
fn device_that_is_gone_is_not_tried_with_each_chunk() {
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
