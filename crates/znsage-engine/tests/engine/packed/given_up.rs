// SPDX-License-Identifier: GPL-2.0-only
//! Pages that GC cannot read, or finds other data in place of, are given up, and the others move.

use super::*;

/// Blocks that GC can never read do not keep their zones for ever, however many there are: the
/// live pages in them are given up, and no other, and swap-out goes on.
#[test]
fn unreadable_pages_are_given_up() {
    pages_are_given_up(false);
}

/// Nor do blocks that hold something else: the pages that began in them are given up.
#[test]
fn overwritten_pages_are_given_up() {
    pages_are_given_up(true);
}

fn pages_are_given_up(overwritten: bool) {
    // All slots have room, and fill so much of the device that GC comes to each zone.
    let full = |run: &Run| {
        let cfg = &run.cfg;
        let pages = u64::from(cfg.nr_zones * (cfg.zone_blocks / cfg.pack));
        cfg.nr_slots == cfg.max_slots() && u64::from(cfg.nr_slots) * 10 > 6 * pages
    };
    for (mut run, percent) in (3..).map(Run::new).filter(full).zip([0, 2, 10, 40]) {
        run.raw = 100;
        run.bad.clear();
        run.most_errors = 0;
        while run.slots.contains(&Slot::Zero) {
            write_other(&mut run, &BTreeSet::new());
        }
        run.settle();
        damage(&mut run, overwritten, percent);
    }
}

/// Damages the block of a page and `percent` of the others, and writes what is not damaged
/// until all that is damaged is given up.
fn damage(run: &mut Run, overwritten: bool, percent: u32) {
    let pack = run.cfg.pack;
    let zone_pages = run.cfg.zone_blocks / pack;
    let full = |page: u32| run.e.zone(page / zone_pages).state == "full";
    let stored = run.slots.iter().find_map(|slot| match *slot {
        Slot::Stored { block, .. } if full(block / pack) => Some(block / pack),
        _ => None,
    });
    let mut bad: BTreeSet<u32> = (0..run.cfg.nr_zones * zone_pages)
        .filter(|page| full(*page) && run.rng.percent(percent))
        .collect();
    bad.insert(stored.expect("most slots are"));
    let hit = |slot: &Slot| match *slot {
        Slot::Stored { block, .. } if overwritten => bad.contains(&(block / pack)),
        Slot::Stored { block, len, .. } => {
            bad.range(block / pack..=(block + len - 1) / pack).next().is_some()
        }
        _ => false,
    };
    let mut left: BTreeSet<u32> =
        (0..run.cfg.nr_slots).filter(|slot| hit(&run.slots[*slot as usize])).collect();
    let there = left.clone();
    *(if overwritten { &mut run.overwritten } else { &mut run.bad }) = bad;
    run.errors = 1;
    // Eight devices, as documented, and until GC has had its turn with each zone.
    let written = |run: &Run| run.e.stats().host_blocks * u64::from(pack);
    let device = u64::from(run.cfg.nr_zones * run.cfg.zone_blocks);
    let most = written(run) + 16 * device;
    while !left.is_empty() {
        assert!(
            written(run) < most,
            "{percent} %: {} of {} pages are not given up",
            left.len(),
            there.len()
        );
        write_other(run, &there);
        left.retain(|slot| run.slots[*slot as usize] != Slot::Lost);
    }
    assert_eq!(run.lost, there.len() as u64, "others are given up");
    let failed = run.failed;
    for _ in 0..4 * run.cfg.nr_slots {
        write_other(run, &there);
    }
    assert_eq!(run.failed, failed, "swap-out does not go on");
    run.settle();
}

/// Writes a page that is not damaged, and lets everything go on.
fn write_other(run: &mut Run, damaged: &BTreeSet<u32>) {
    let slot = run.rng.below(run.cfg.nr_slots);
    if !damaged.contains(&slot) {
        run.write_slot(slot);
    }
    run.now += 1;
    run.take();
    while run.next_op() {}
    run.end_append();
    run.end_gc_read();
    run.end_reset();
    run.end_finish();
    if run.rng.percent(10) {
        // That the device works is known from reads.
        run.e.read_worked();
    }
}
