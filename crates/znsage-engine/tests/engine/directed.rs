// SPDX-License-Identifier: GPL-2.0-only
//! Named cases, step by step, with the reference model's checks.

use znsage_engine::{Config, Policy};

use crate::device::Fate;
use crate::host::{Host, Slot};
use crate::refusals::plain;

pub fn host(change: impl FnOnce(&mut Config)) -> Host {
    let mut cfg = plain();
    change(&mut cfg);
    Host::new(&cfg)
}

/// A device of 8 zones on which GC runs when 3 zones are not empty.
pub fn eager(c: &mut Config) {
    (c.nr_zones, c.nr_slots) = (8, 154);
    (c.gc_low, c.gc_high) = (6, 7);
}

/// Fills two zones with pages that stay, so that GC runs.
pub fn fill_two_zones(h: &mut Host) {
    write(h, 70..134);
}

pub fn write(h: &mut Host, slots: std::ops::Range<u32>) {
    for slot in slots {
        assert!(h.write(0, slot), "no chunk for slot {slot}");
        h.end_appends();
    }
}

/// Tries of a command: one, and three retries.
const TRIES: u32 = 4;

pub fn finish(mut h: Host) {
    h.run_idle();
    h.check_at_rest();
}

#[test]
fn padding_is_counted() {
    let mut h = host(|c| (c.write_unit, c.chunk_pages) = (4, 8));
    assert!(h.write(0, 1));
    h.end_batch(0); // stays: it would need padding
    assert!(h.appends.is_empty());
    h.take(0, u64::MAX);
    assert_eq!((h.appends[0].nr, h.appends[0].padding), (1, 3));
    h.end_appends();
    let st = h.e.stats();
    assert_eq!((st.host_blocks, st.padding_blocks, st.live_blocks), (1, 3, 1));
    finish(h);
}

#[test]
fn chunk_ends_where_its_zone_does() {
    let mut h = host(|c| c.zone_blocks = 10);
    write(&mut h, 0..10);
    assert_eq!(h.e.stats().chunks, 3, "4 + 4 + 2");
    assert_eq!(h.e.zone(0).state, "full");
    finish(h);
}

#[test]
fn gc_chunk_is_split_at_the_end_of_a_zone() {
    let mut h = host(|c| {
        c.zone_blocks = 10;
        (c.gc_low, c.gc_high) = (14, 15);
    });
    h.set_gc(false);
    write(&mut h, 0..80);
    // A page of each zone dies: 9 survivors of each, 4 to a chunk.
    (0..8).for_each(|zone| h.free(zone * 10));
    h.set_gc(true);
    h.run_idle();
    assert!(h.splits > 0);
    finish(h);
}

#[test]
fn overlapping_writes_end_in_any_order() {
    for newest_first in [true, false] {
        let mut h = host(|c| c.chunk_pages = 1);
        assert!(h.write(0, 5) && h.write(0, 5));
        let i = usize::from(newest_first);
        let one = h.appends.swap_remove(i);
        h.end_append(one, Fate::Done);
        assert_eq!(matches!(h.slots[5], Slot::Stored { .. }), newest_first);
        h.end_appends();
        h.begin_read(5, 1);
        h.end_read(0);
        assert_eq!(h.e.stats().live_blocks, 1);
        finish(h);
    }
}

#[test]
fn slot_freed_during_its_append_stays_free() {
    let mut h = host(|c| c.chunk_pages = 1);
    assert!(h.write(0, 5));
    h.free(5);
    h.end_appends();
    assert_eq!((h.e.stats().slots_used, h.e.stats().live_blocks), (0, 0));
    finish(h);
}

#[test]
fn failed_append_moves_to_another_zone() {
    for fate in [Fate::Refused, Fate::Garbled] {
        let mut h = host(eager);
        for slot in 0..4 {
            assert!(h.write(0, slot));
        }
        let append = h.appends.pop().expect("a full chunk");
        let zone = append.zone;
        h.end_append(append, fate);
        h.pump();
        assert_eq!(h.finishes.len(), 1, "no longer active on the device");
        assert_eq!(h.finishes[0].zone(), zone);
        assert_ne!(h.appends[0].zone, zone);
        h.end_appends();
        fill_two_zones(&mut h);
        h.run_idle();
        assert_eq!(h.e.zone(zone).state, "empty", "the reset worked");
        assert_eq!(h.e.stats().live_blocks, 4 + 64);
        finish(h);
    }
}

/// Writes chunks of the same few slots until one goes to `zone` and ends with `fate`.
/// Then runs everything until it is idle.
fn append_to(h: &mut Host, zone: u32, fate: Fate) {
    for first in (0..64).step_by(4).cycle().take(1000) {
        (first..first + 4).for_each(|slot| assert!(h.write(0, slot)));
        let append = h.appends.pop().expect("a full chunk");
        let there = append.zone == zone;
        h.end_append(append, if there { fate } else { Fate::Done });
        h.run_idle();
        if there {
            return;
        }
    }
    panic!("zone {zone} is not written");
}

#[test]
fn a_zone_that_fails_twice_is_retired() {
    let mut h = host(|_| ());
    append_to(&mut h, 0, Fate::Refused);
    assert_eq!((h.e.zone(0).state, h.e.zone(0).failed), ("empty", false));
    append_to(&mut h, 0, Fate::Done);
    append_to(&mut h, 0, Fate::Refused);
    write(&mut h, 0..64);
    h.run_idle();
    assert_eq!((h.e.zone(0).state, h.failed_chunks), ("retired", 0));
    finish(h);
}

#[test]
fn failed_zone_that_is_written_to_its_end_is_good_again() {
    let mut h = host(|_| ());
    append_to(&mut h, 0, Fate::Refused);
    for _ in 0..h.cfg.zone_blocks / 4 {
        append_to(&mut h, 0, Fate::Done);
    }
    append_to(&mut h, 0, Fate::Refused);
    assert_eq!(h.e.zone(0).state, "empty");
    append_to(&mut h, 0, Fate::Refused);
    assert_eq!(h.e.zone(0).state, "retired");
    finish(h);
}

#[test]
fn gc_moves_the_pages_of_a_failed_zone() {
    let mut h = host(eager);
    write(&mut h, 0..4);
    for slot in 4..8 {
        assert!(h.write(0, slot));
    }
    let append = h.appends.pop().unwrap();
    let zone = append.zone;
    h.end_append(append, Fate::Refused);
    h.run_idle();
    fill_two_zones(&mut h);
    h.run_idle();
    assert_eq!(h.e.zone(zone).state, "empty");
    assert_eq!((h.e.stats().gc_blocks, h.e.stats().live_blocks), (4, 8 + 64));
    finish(h);
}

#[test]
fn append_that_always_fails_is_given_up() {
    let mut h = host(|_| ());
    for slot in 0..4 {
        assert!(h.write(0, slot));
    }
    let mut tries = 0;
    while let Some(append) = h.appends.pop() {
        h.end_append(append, Fate::Refused);
        h.pump();
        tries += 1;
    }
    assert_eq!((tries, h.failed_chunks), (4, 1), "one try and three more");
    assert!(h.slots[..4].iter().all(|s| *s == Slot::Lost));
    (0..4).for_each(|slot| h.begin_read(slot, 1));
    write(&mut h, 0..4);
    assert!(h.slots[..4].iter().all(|s| *s != Slot::Lost), "written again");
    finish(h);
}

/// The device never sees the chunk, and its zone is as good as before.
#[test]
fn chunk_that_is_not_appended_is_lost() {
    let mut h = host(|_| ());
    write(&mut h, 0..4);
    let before = h.e.stats();
    h.refuses = true;
    (2..6).for_each(|slot| assert!(h.write(0, slot)));
    assert_eq!((h.appends.len(), h.failed_chunks), (0, 1));
    assert!(h.slots[2..6].iter().all(|s| *s == Slot::Lost));
    (0..6).for_each(|slot| h.begin_read(slot, 1));
    while h.reads() > 0 {
        h.end_read(0);
    }
    let after = h.e.stats();
    assert_eq!((after.live_blocks, after.host_blocks, after.write_errors), (2, 4, 0));
    assert_eq!(after.zones_open, before.zones_open);
    h.refuses = false;
    write(&mut h, 2..6);
    assert_eq!(h.e.stats().live_blocks, 6);
    finish(h);
}

#[test]
fn page_freed_during_the_read_of_gc_is_not_copied() {
    let mut h = host(eager);
    write(&mut h, 0..32);
    fill_two_zones(&mut h);
    h.free(0);
    h.pump();
    (1..30).for_each(|slot| h.free(slot));
    h.run_idle();
    assert_eq!(h.e.stats().gc_blocks, 2);
    finish(h);
}

#[test]
fn reader_delays_the_reset() {
    let mut h = host(eager);
    write(&mut h, 0..32);
    fill_two_zones(&mut h);
    h.begin_read(7, 1);
    (0..32).for_each(|slot| h.free(slot));
    h.pump();
    assert_eq!(h.e.zone(0).state, "drained");
    assert!(h.resets.is_empty());
    h.end_read(0);
    assert!(h.kick, "the last reader must kick the worker");
    h.pump();
    assert_eq!(h.resets.len(), 1);
    h.pump();
    assert_eq!(h.resets.len(), 1, "once");
    assert_eq!(h.e.zone(0).state, "resetting");
    finish(h);
}

#[test]
fn zone_that_cannot_be_reset_is_retired() {
    let mut h = host(eager);
    write(&mut h, 0..32);
    fill_two_zones(&mut h);
    (0..32).for_each(|slot| h.free(slot));
    h.pump();
    for _ in 0..TRIES {
        let reset = h.resets.pop().unwrap();
        h.end_zone(reset, false);
        h.pump();
    }
    assert_eq!(h.e.zone(0).state, "retired");
    finish(h);
}

#[test]
fn reset_that_fails_once_is_tried_again() {
    let mut h = host(eager);
    write(&mut h, 0..32);
    fill_two_zones(&mut h);
    (0..32).for_each(|slot| h.free(slot));
    h.pump();
    let reset = h.resets.pop().unwrap();
    h.end_zone(reset, false);
    h.run_idle();
    assert_eq!(h.e.zone(0).state, "empty");
    finish(h);
}

#[test]
fn zone_that_cannot_be_finished_is_emptied() {
    let mut h = host(|c| {
        c.finish = true;
        eager(c);
    });
    write(&mut h, 0..32);
    h.pump();
    never_finish(&mut h);
    fill_two_zones(&mut h);
    h.run_idle();
    assert_eq!(h.e.zone(0).state, "empty");
    assert_eq!(h.e.stats().live_blocks, 32 + 64);
    finish(h);
}

/// All tries to finish a zone fail.
fn never_finish(h: &mut Host) {
    for _ in 0..TRIES {
        let end = h.finishes.pop().expect("the engine tries again");
        h.end_zone(end, false);
        h.pump();
    }
    assert!(h.finishes.is_empty());
}

#[test]
fn unfinished_zone_keeps_its_place_until_its_reset() {
    // One place for swap-out, one for GC. Swap-out's zone fails and is active on the
    // device until its reset. GC empties it at once: nothing else would free the place.
    let mut h = host(|c| c.max_active = 2);
    write(&mut h, 0..4);
    for slot in 4..8 {
        assert!(h.write(0, slot));
    }
    let append = h.appends.pop().unwrap();
    let zone = append.zone;
    h.end_append(append, Fate::Refused);
    h.pump();
    assert!(h.appends.is_empty(), "no place");
    never_finish(&mut h);
    assert!(h.appends.is_empty(), "no place yet");
    h.run_idle();
    assert_eq!(h.e.zone(zone).state, "empty");
    assert_eq!((h.e.stats().live_blocks, h.failed_chunks), (8, 0));
    finish(h);
}

#[test]
fn unfinished_zone_of_gc_is_reset() {
    // GC's zone, which is empty, fails as well: no place is left.
    let mut h = host(|c| c.max_active = 2);
    write(&mut h, 0..4);
    for first in [4, 8] {
        (first..first + 4).for_each(|slot| assert!(h.write(0, slot)));
        h.pump();
        let append = h.appends.pop().expect("swap-out's, then GC's");
        h.end_append(append, Fate::Refused);
        h.pump();
        never_finish(&mut h);
        while let Some(read) = h.gc_reads.pop() {
            h.end_gc_read(read, || false);
            h.pump();
        }
    }
    h.run_idle();
    assert!(h.e.idle());
    assert_eq!((h.e.stats().live_blocks, h.failed_chunks), (12, 0));
    finish(h);
}

#[test]
fn places_of_failed_zones_are_reused_before_swap_out_fails() {
    // Swap-out's zone and GC's become read-only with pages in them. All other
    // zones are empty.
    let mut h = host(|c| c.max_active = 2);
    write(&mut h, 0..8);
    (8..12).for_each(|slot| assert!(h.write(0, slot)));
    for copied in [false, true] {
        if copied {
            copy_once(&mut h);
        }
        h.pump();
        let append = h.appends.pop().expect("swap-out's, then GC's");
        h.dev.turn_read_only(append.zone);
        h.end_append(append, Fate::Refused);
        h.pump();
        never_finish(&mut h);
        end_gc_reads(&mut h);
    }
    h.run_idle();
    assert!(h.e.idle());
    assert_eq!((h.e.stats().live_blocks, h.failed_chunks), (12, 0));
    finish(h);
}

fn end_gc_reads(h: &mut Host) {
    while let Some(read) = h.gc_reads.pop() {
        h.end_gc_read(read, || false);
    }
    h.pump();
}

/// GC's reads and its first append end.
fn copy_once(h: &mut Host) {
    end_gc_reads(h);
    let append = h.appends.remove(0);
    h.end_append(append, Fate::Done);
}

#[test]
fn gc_takes_a_streams_zone_when_its_last_one_failed() {
    let mut h = host(|c| {
        (c.policy, c.nr_cpus) = (Policy::cpu(), 2);
        c.nr_slots = c.max_slots();
    });
    // The second stream has a zone with room.
    (0..4).for_each(|slot| assert!(h.write(1, slot)));
    h.end_appends();
    // The first one has a zone that failed, so it does not write zones of others.
    (4..8).for_each(|slot| assert!(h.write(0, slot)));
    let failed = h.appends[0].zone;
    h.end_appends();
    h.dev.turn_read_only(failed);
    let mut next = 8;
    while !h.e.zone(failed).failed {
        (next..next + 4).for_each(|slot| assert!(h.write(0, slot)));
        next += 4;
        while let Some(append) = h.appends.pop() {
            let fate = if append.zone == failed { Fate::Refused } else { Fate::Done };
            h.end_append(append, fate);
            h.pump();
        }
    }
    // It writes until it finds no zone: only the reserve is left. A page in four dies, so
    // that no zone dies as a whole.
    let all = next..h.cfg.nr_slots;
    for slot in all.clone().chain(all.step_by(4)) {
        if h.want.stalls == 0 {
            write(&mut h, slot..slot + 1);
        }
    }
    assert!(h.want.stalls > 0);
    h.pump();
    end_gc_reads(&mut h);
    let append = h.appends.remove(0);
    let zone = append.zone;
    h.dev.turn_read_only(zone);
    h.end_append(append, Fate::Refused);
    assert_eq!(h.e.stats().zones_empty, 0, "that was the reserve");
    h.run_idle();
    assert!(h.e.idle());
    assert_eq!((h.failed_chunks, h.e.zone(zone).failed), (0, true));
    finish(h);
}

/// While only the reserve is empty, a stream without a zone writes that of another one.
#[test]
fn a_stream_without_a_zone_writes_the_zone_of_another() {
    let mut h = host(|c| {
        (c.policy, c.nr_cpus) = (Policy::cpu(), 2);
        c.nr_slots = c.max_slots();
    });
    h.e.set_gc(false);
    (0..4).for_each(|slot| assert!(h.write(1, slot)));
    h.end_appends();
    // Fewer slots than blocks, so that all blocks can be written.
    const SLOTS: u32 = 300;
    let room = (h.cfg.nr_zones - h.cfg.reserve) * h.cfg.zone_blocks;
    (4..room).map(|i| i % SLOTS).for_each(|slot| write(&mut h, slot..slot + 1));
    assert_eq!((h.e.stats().zones_empty, h.want.stalls), (u64::from(h.cfg.reserve), 0));
    h.e.set_gc(true);
    finish(h);
}

/// One stream writes until it waits, with GC off: only the reserve is empty, and the
/// stream has no zone that GC could take over. Then the zone that GC opens fails.
/// Returns failed chunks, and zones that are empty in the end.
fn gcs_zone_fails_when_all_is_full(reserve: u32) -> (u32, u64) {
    let mut h = host(|c| {
        c.reserve = reserve;
        c.nr_slots = c.max_slots();
    });
    h.set_gc(false);
    let slots = h.cfg.nr_slots;
    // A part of each zone dies.
    for slot in (0..slots).chain((0..slots).step_by(4)) {
        if h.want.stalls == 0 {
            write(&mut h, slot..slot + 1);
        }
    }
    assert!(h.want.stalls > 0);
    h.set_gc(true);
    h.pump();
    end_gc_reads(&mut h);
    let append = h.appends.remove(0);
    h.dev.turn_read_only(append.zone);
    h.end_append(append, Fate::Refused);
    h.run_idle();
    let found = (h.failed_chunks, h.e.stats().zones_empty);
    finish(h);
    found
}

#[test]
fn a_reserve_of_two_survives_the_loss_of_one() {
    assert_eq!(gcs_zone_fails_when_all_is_full(1), (1, 0));
    let (failed, empty) = gcs_zone_fails_when_all_is_full(2);
    assert_eq!(failed, 0);
    assert!(empty >= 2, "{empty} zones are empty: the reserve is not whole");
}

#[test]
fn gc_switched_off_makes_room_for_waiting_chunks() {
    let mut h = host(|c| c.nr_slots = c.max_slots());
    h.set_gc(false);
    let slots = h.cfg.nr_slots;
    let mut slot = 0;
    while h.want.stalls == 0 {
        assert!(h.write(0, slot % slots));
        h.end_appends();
        slot += 1;
    }
    assert_eq!(h.e.stats().zones_empty, 1, "the reserve");
    h.run_idle();
    assert!(h.e.idle(), "a check of a live device would wait forever");
    assert!(h.e.stats().zone_resets > 0 && h.failed_chunks == 0);
    let moved = h.e.stats().gc_blocks;
    h.pump();
    assert_eq!(h.e.stats().gc_blocks, moved, "and then it rests");
    h.set_gc(true);
    finish(h);
}

#[test]
fn gc_leaves_reset_zones_to_waiting_chunks() {
    // By its watermarks GC never rests.
    let mut h = host(|c| {
        c.nr_slots = c.max_slots();
        (c.gc_low, c.gc_high) = (14, 15);
    });
    h.set_gc(false);
    let slots = h.cfg.nr_slots;
    for slot in (0..slots).chain((0..slots).step_by(4)) {
        if h.want.stalls == 0 {
            write(&mut h, slot..slot + 1);
        }
    }
    assert!(h.want.stalls > 0);
    // Half of the zones die as a whole: their resets suffice.
    (0..slots / 2).for_each(|slot| h.free(slot));
    h.set_gc(true);
    h.pump();
    assert!(!h.resets.is_empty());
    assert!(h.gc_reads.is_empty(), "GC would use up the zones being reset");
    h.run_idle();
    assert_eq!(h.failed_chunks, 0);
    assert!(h.e.stats().gc_zones > 0, "GC goes on when no chunk waits");
    finish(h);
}

#[test]
fn failed_zone_is_no_victim_while_swap_out_waits() {
    // Zone 0 fails with one page in it. It would be the cheapest victim, but gains
    // nothing.
    let mut h = host(|c| c.nr_slots = c.max_slots());
    h.set_gc(false);
    write(&mut h, 0..4);
    (1..4).for_each(|slot| h.free(slot));
    for slot in 4..8 {
        assert!(h.write(0, slot));
    }
    let append = h.appends.pop().unwrap();
    h.end_append(append, Fate::Refused);
    h.pump();
    h.end_finishes();
    write(&mut h, 8..380);
    for slot in (8..380).step_by(4) {
        if h.want.stalls == 0 {
            write(&mut h, slot..slot + 1);
        }
    }
    assert!(h.want.stalls > 0);
    h.set_gc(true);
    h.pump();
    let entry = h.gc_reads[0].entries(&h.e)[0];
    assert_ne!(h.e.locate(entry.expect).0, 0);
    h.run_idle();
    assert_eq!(h.failed_chunks, 0);
    finish(h);
}

#[test]
fn streams_write_to_zones_of_their_own() {
    let mut h = host(|c| (c.policy, c.nr_cpus, c.chunk_pages) = (Policy::cpu(), 2, 1));
    assert!(h.write(0, 0) && h.write(1, 1) && h.write(2, 2));
    let zones: Vec<u32> = h.appends.iter().map(|a| a.zone).collect();
    assert_ne!(zones[0], zones[1]);
    assert_eq!(zones[0], zones[2], "CPUs share");
    h.end_appends();
    finish(h);
}

#[test]
fn chunks_run_out_and_come_back() {
    let mut h = host(|c| (c.nr_chunks, c.chunk_pages) = (2, 1));
    assert!(h.write(0, 0) && h.write(0, 1) && !h.write(0, 2));
    h.end_appends();
    assert!(h.e.has_chunk(0) && h.write(0, 2));
    h.end_appends();
    finish(h);
}

#[test]
fn pages_of_two_victims_share_a_unit() {
    // 2 survivors of each zone, units of 4: two victims fill a chunk.
    let mut h = host(|c| {
        eager(c);
        (c.chunk_pages, c.write_unit, c.nr_slots) = (4, 4, 139);
    });
    h.set_gc(false);
    write(&mut h, 0..64);
    fill_two_zones(&mut h);
    (0..64).filter(|s| s % 32 > 1).for_each(|slot| h.free(slot));
    h.set_gc(true);
    h.pump();
    assert_eq!(h.gc_reads[0].nr, 4);
    h.run_idle();
    assert_eq!(h.e.stats().padding_blocks, 0);
    finish(h);
}
