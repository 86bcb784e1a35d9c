// SPDX-License-Identifier: GPL-2.0-only
//! What zse_create() refuses, and why; the largest values that it accepts.

use znsage_engine::{Config, Engine, Policy, Refusal, MAX_BLOCKS, MAX_ENTRIES};

/// A valid device of 16 zones of 32 blocks.
pub fn plain() -> Config {
    Config {
        nr_zones: 16,
        zone_blocks: 32,
        nr_slots: 100,
        chunk_pages: 4,
        write_unit: 1,
        nr_chunks: 4,
        nr_gc_chunks: 2,
        reserve: 1,
        nr_cpus: 1,
        ..Config::default()
    }
}

fn refusal(change: impl FnOnce(&mut Config)) -> Option<Refusal> {
    let mut cfg = plain();
    change(&mut cfg);
    Engine::new(&cfg).err()
}

#[test]
fn plain_is_accepted() {
    assert_eq!(refusal(|_| ()), None);
}

#[test]
fn bad_chunk() {
    let bad: [fn(&mut Config); 6] = [
        |c| c.chunk_pages = 0,
        |c| c.write_unit = 0,
        |c| c.write_unit = 8,                        // above the chunk
        |c| (c.chunk_pages, c.write_unit) = (6, 4),  // no multiple
        |c| c.chunk_pages = 33,                      // above a zone
        |c| (c.zone_blocks, c.write_unit) = (30, 4), // a zone in no units
    ];
    for (i, change) in bad.into_iter().enumerate() {
        assert_eq!(refusal(change), Some(Refusal::BadChunk), "case {i}");
    }
    assert_eq!(refusal(|c| c.chunk_pages = 32), None);
}

#[test]
fn too_few_zones() {
    // The reserve, a zone for the stream, one for GC; data needs a fourth.
    for nr_zones in [0, 1, 3] {
        assert_eq!(refusal(|c| c.nr_zones = nr_zones), Some(Refusal::TooFewZones));
    }
    let small = |c: &mut Config| (c.nr_zones, c.nr_slots) = (4, 30);
    assert_eq!(refusal(small), None, "default watermarks must fit");
    assert_eq!(refusal(|c| c.reserve = 14), Some(Refusal::TooFewZones));
    // A unit of every zone is held back, which leaves nothing here.
    let units = |c: &mut Config| (c.chunk_pages, c.write_unit) = (32, 32);
    assert_eq!(refusal(units), Some(Refusal::TooFewZones));
}

#[test]
fn few_open() {
    // If swap-out and GC share a zone, one more can hold data.
    let most = |max_active| Config { max_active, ..plain() }.max_slots();
    assert_eq!(most(1), (16 - 2) * 31 - 1);
    assert_eq!(most(2), (16 - 3) * 31 - 1);
    for max_active in [1, 2] {
        assert_eq!(refusal(|c| c.max_active = max_active), None);
        let few = |c: &mut Config| (c.max_active, c.nr_zones, c.nr_slots) = (max_active, 3, 30);
        assert_eq!(refusal(few), Some(Refusal::TooFewZones));
        let least = |c: &mut Config| (c.max_active, c.nr_zones, c.nr_slots) = (max_active, 4, 30);
        assert_eq!(refusal(least), None, "default watermarks must fit");
    }
}

#[test]
fn too_many_blocks() {
    let blocks = |c: &mut Config| (c.nr_zones, c.zone_blocks) = (MAX_BLOCKS / 32 + 1, 32);
    assert_eq!(refusal(blocks), Some(Refusal::TooManyBlocks));
    let wraps = |c: &mut Config| (c.nr_zones, c.zone_blocks) = (1 << 16, 1 << 16);
    assert_eq!(refusal(wraps), Some(Refusal::TooManyBlocks));
}

#[test]
fn too_many_slots() {
    let most = plain().max_slots();
    // 16 zones without reserve, stream and GC, a block less of each, and one for the
    // CPU in the middle of a free.
    assert_eq!(most, (16 - 3) * 31 - 1);
    assert_eq!(refusal(|c| c.nr_slots = most), None);
    assert_eq!(refusal(|c| c.nr_slots = most + 1), Some(Refusal::TooManySlots));
    assert_eq!(refusal(|c| c.nr_slots = 0), Some(Refusal::TooManySlots));
}

#[test]
fn too_many_chunks() {
    let most = MAX_ENTRIES / 4 - 2;
    assert_eq!(refusal(|c| c.nr_chunks = most), None);
    assert_eq!(refusal(|c| c.nr_chunks = most + 1), Some(Refusal::TooManyChunks));
    let wraps = |c: &mut Config| (c.nr_chunks, c.nr_gc_chunks) = (u32::MAX, 2);
    assert_eq!(refusal(wraps), Some(Refusal::TooManyChunks));
}

#[test]
fn bad_setting() {
    let bad: [fn(&mut Config); 8] = [
        |c| c.reserve = 0,
        |c| c.nr_cpus = 0,
        |c| c.nr_chunks = 0,
        |c| c.nr_gc_chunks = 0,
        |c| c.gc_low = 1,                   // not above the reserve
        |c| (c.gc_low, c.gc_high) = (4, 4), // not above gc_low
        |c| c.gc_high = 16,                 // all zones
        |c| c.gc_low = u32::MAX,
    ];
    for (i, change) in bad.into_iter().enumerate() {
        assert_eq!(refusal(change), Some(Refusal::BadSetting), "case {i}");
    }
    assert_eq!(refusal(|c| (c.gc_low, c.gc_high) = (2, 15)), None);
}

#[test]
fn watermarks() {
    let mut e = Engine::new(&plain()).unwrap();
    assert_eq!(e.watermarks(), (3, 4));
    for (low, high, ok) in [
        (2, 3, true),
        (14, 15, true),
        (1, 5, false),
        (5, 5, false),
        (5, 4, false),
        (5, 16, false),
        (u32::MAX, 0, false),
    ] {
        let before = e.watermarks();
        assert_eq!(e.set_watermarks(low, high), ok, "{low} {high}");
        assert_eq!(e.watermarks(), if ok { (low, high) } else { before });
    }
    assert!(e.set_watermarks(0, 0));
    assert_eq!(e.watermarks(), (3, 4));
    assert!(e.set_watermarks(5, 0));
    assert_eq!(e.watermarks(), (5, 6));
}

#[test]
fn streams() {
    let streams = |change: fn(&mut Config)| {
        let mut cfg = plain();
        (cfg.policy, cfg.nr_cpus, cfg.nr_zones) = (Policy::cpu(), 8, 80);
        change(&mut cfg);
        cfg.nr_streams()
    };
    assert_eq!(streams(|_| ()), 8);
    assert_eq!(streams(|c| c.policy = Policy::single()), 1);
    assert_eq!(streams(|c| c.nr_zones = 16), 2);
    assert_eq!(streams(|c| c.max_active = 4), 2);
    assert_eq!(streams(|c| c.max_active = 2), 1);
    assert_eq!(streams(|c| c.max_active = 1), 1);
}
