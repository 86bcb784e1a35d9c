// SPDX-License-Identifier: GPL-2.0-only
//! A device that opens one zone at a time: swap-out and GC write the same zone. The device
//! of these tests enforces the limit.

use std::collections::BTreeMap;

use znsage_engine::Config;

use crate::device::Fate;
use crate::host::Host;
use crate::refusals::plain;
use crate::rng::Rng;

/// With the most slots possible.
fn config(change: impl FnOnce(&mut Config)) -> Config {
    let mut cfg = Config { max_active: 1, ..plain() };
    change(&mut cfg);
    cfg.nr_slots = cfg.max_slots();
    cfg
}

/// Writes all slots once.
fn full(cfg: &Config) -> Host {
    let mut h = Host::new(cfg);
    for slot in 0..cfg.nr_slots {
        write(&mut h, slot);
    }
    h
}

fn write(h: &mut Host, slot: u32) {
    while !h.write(0, slot) {
        h.run_device();
    }
    h.run_device();
}

/// Blocks that can be written before a zone has to be reset.
fn room(h: &Host) -> u32 {
    let left = |zone| match h.e.zone(zone) {
        z if z.state == "empty" => z.capacity,
        z if z.state == "open" => z.capacity - z.written,
        _ => 0,
    };
    (0..h.cfg.nr_zones).map(left).sum()
}

/// Of these, blocks that victims do not need.
fn left_over(h: &Host) -> u32 {
    let victims = (0..h.cfg.nr_zones).map(|zone| h.e.zone(zone)).filter(|z| z.state == "victim");
    let live: u32 = victims.map(|z| z.live).sum();
    assert!(room(h) >= live, "no room for what GC has begun");
    room(h) - live
}

#[test]
fn survivors_and_fresh_pages_share_zones() {
    let cfg = config(|_| ());
    let mut h = full(&cfg);
    let mut rng = Rng::new(1);
    // Appends of swap-out and of GC to each zone since its reset.
    let mut written: BTreeMap<u32, [u32; 2]> = BTreeMap::new();
    let mut shared = 0;
    for _ in 0..3 * cfg.nr_slots {
        while !h.write(0, rng.below(cfg.nr_slots)) {
            h.run_device();
        }
        loop {
            h.pump();
            for append in &h.appends {
                let of = written.entry(append.zone).or_default();
                of[usize::from(append.gc(&h.e))] += 1;
            }
            if h.appends.is_empty() && h.gc_reads.is_empty() && h.resets.is_empty() {
                break;
            }
            h.end_appends();
            while let Some(read) = h.gc_reads.pop() {
                h.end_gc_read(read, || false);
            }
            while let Some(reset) = h.resets.pop() {
                let [host, gc] = written.remove(&reset.zone()).unwrap_or_default();
                shared += u32::from(host > 0 && gc > 0);
                h.end_zone(reset, true);
            }
        }
    }
    assert!(shared > 10, "{shared} zones had pages of both");
    let st = h.e.stats();
    assert!(st.gc_blocks > 0 && st.host_blocks >= u64::from(3 * cfg.nr_slots));
    assert_eq!((st.streams, st.stripe, st.gc_stripe, st.survivors), (1, 1, 1, 1));
    h.run_idle();
    h.check_at_rest();
}

#[test]
fn swap_out_leaves_gc_what_it_needs() {
    for (reserve, unit) in [(1, 1), (2, 1), (1, 4)] {
        let cfg = config(|c| (c.reserve, c.write_unit) = (reserve, unit));
        let mut h = full(&cfg);
        // GC has begun a victim, and its read does not end.
        let mut rng = Rng::new(2);
        while h.gc_reads.is_empty() {
            assert!(h.write(0, rng.below(cfg.nr_slots)));
            h.end_appends();
            h.pump();
        }
        h.end_appends();
        let begun = left_over(&h);
        // Swap-out goes on until it has to wait with all its chunks.
        while h.write(0, rng.below(cfg.nr_slots)) {
            h.pump();
            h.end_appends();
        }
        assert!(!h.gc_reads.is_empty() && h.want.stalls > 0);
        // GC may have taken from the reserve; swap-out has not.
        let kept = begun.min(reserve * cfg.zone_blocks);
        assert!(left_over(&h) >= kept, "{} left, {begun} before", left_over(&h));
        h.run_idle();
        assert_eq!(h.failed_chunks, 0);
        h.check_at_rest();
    }
}

#[test]
fn full_swap_area_can_be_rewritten_again_and_again() {
    for finish in [false, true] {
        let cfg = config(|c| (c.nr_zones, c.finish, c.pace) = (6, finish, 50));
        let mut h = full(&cfg);
        let mut rng = Rng::new(3);
        for _ in 0..20 * cfg.nr_slots {
            write(&mut h, rng.below(cfg.nr_slots));
        }
        h.run_idle();
        assert_eq!((h.failed_chunks, h.errors), (0, 0));
        h.check_at_rest();
    }
}

/// While the last append to a zone is in flight, the next page waits if the device counts that
/// zone as active; a virtual zone has its place only while it takes appends. Neither is a
/// stall: GC has nothing to do.
#[test]
fn virtual_zone_is_opened_before_the_last_one_is_written() {
    for wide in [false, true] {
        let mut h = Host::new(&config(|c| c.wide = wide));
        let zone = h.cfg.zone_blocks;
        (0..zone - h.cfg.chunk_pages).for_each(|slot| write(&mut h, slot));
        for slot in zone - h.cfg.chunk_pages..zone + h.cfg.chunk_pages {
            assert!(h.write(0, slot));
        }
        assert_eq!((h.appends.len(), h.e.stats().stalls), (1 + usize::from(wide), 0));
        h.run_idle();
        h.check_at_rest();
    }
}

#[test]
fn failed_zone_gives_its_place_to_the_next() {
    let mut h = Host::new(&config(|_| ()));
    for slot in 0..4 {
        assert!(h.write(0, slot));
    }
    h.end_appends();
    for slot in 4..8 {
        assert!(h.write(0, slot));
    }
    let append = h.appends.pop().expect("a full chunk");
    let failed = append.zone;
    h.dev.turn_read_only(failed);
    h.end_append(append, Fate::Refused);
    h.pump();
    assert!(h.appends.is_empty(), "the zone is still active");
    h.run_idle();
    assert!(h.e.zone(failed).failed);
    assert_eq!((h.e.stats().live_blocks, h.failed_chunks), (8, 0));
    h.check_at_rest();
}

#[test]
fn a_reserve_of_two_survives_the_loss_of_the_open_zone() {
    let cfg = config(|c| c.reserve = 2);
    let mut h = full(&cfg);
    let mut rng = Rng::new(4);
    // Until GC's append is the only one in flight.
    while !matches!(&h.appends[..], [append] if append.gc(&h.e)) {
        h.end_appends();
        while let Some(read) = h.gc_reads.pop() {
            h.end_gc_read(read, || false);
        }
        while let Some(reset) = h.resets.pop() {
            h.end_zone(reset, true);
        }
        if h.chunks_left() > 0 {
            h.write(0, rng.below(cfg.nr_slots));
        }
        h.pump();
    }
    let append = h.appends.pop().expect("GC's");
    h.dev.turn_read_only(append.zone);
    h.end_append(append, Fate::Refused);
    h.run_idle();
    assert_eq!((h.failed_chunks, h.e.stats().zones_retired), (0, 1));
    h.check_at_rest();
}
