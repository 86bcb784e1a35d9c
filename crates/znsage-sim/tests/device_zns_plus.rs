// SPDX-License-Identifier: GPL-2.0-only
//! The commands of ZNS+: copyback and its gain, threaded logging.

use crate::common;

use common::{fill_zone, rng, run, set, stream};
use rand::RngExt;
use znsage_sim::device::{Extent, FaultKind, Params, ZnsSsd, ZoneState};
use znsage_sim::time::{to_us, Ns, SEC};

fn device(pairs: &[(&str, &str)]) -> ZnsSsd {
    let params = Params::load("zns-plus", &set(pairs)).unwrap();
    ZnsSsd::new(&params, None, 1).unwrap()
}

/// A device with zone 0 full, some time later.
fn full(pairs: &[(&str, &str)]) -> (ZnsSsd, Ns) {
    let mut ssd = device(pairs);
    let now = fill_zone(&mut ssd, 0, 0, 1.0);
    (ssd, now + SEC)
}

/// The first whole unit of zone 0 on the same chip as the write pointer of
/// zone 1.
fn unit_on_the_chip(ssd: &ZnsSsd, from: u32) -> Extent {
    let chip = ssd.die(1, ssd.zone(1).write_pointer);
    let offset = (from..).step_by(4).find(|b| ssd.die(0, *b) == chip).unwrap();
    Extent { zone: 0, offset, blocks: 4 }
}

/// A zone lies across all chips, so `znsage probe` would recommend to write one at a time.
#[test]
fn one_zone_is_as_fast_as_several() {
    let mb_s = |zones: u32| {
        let mut jobs: Vec<_> =
            (0..zones).map(|z| stream(1, 16, z, 1, common::By::Append)).collect();
        run(&mut device(&[]), 0, SEC, &mut jobs).iter().map(|seen| seen.mb_s(16)).sum::<f64>()
    };
    let (one, several) = (mb_s(1), [2, 4, 8].map(mb_s));
    assert!(several.iter().all(|&s| one >= 0.9 * s), "{one}, {several:?} MB/s");
}

/// 40 us to read, 800 to program, 40 for the transfer of 16 KiB: as
/// SSD_PAGE_COPYBACK has it (github.com/eslab-skku/ZNSplus @6dfeb44e).
#[test]
fn copyback_does_not_use_the_channel() {
    let (mut ssd, now) = full(&[("controller.early_completion", "false")]);
    let e = unit_on_the_chip(&ssd, 0);
    let took = ssd.zone_compaction(now, &[e], 1).unwrap().done - now;
    let command = 10.0 + 8.0;
    assert!((to_us(took) - command - 840.0).abs() < 1.0, "{} us", to_us(took));
    assert_eq!(ssd.counters().copyback_blocks, 4);
    // Unaligned: read, to the controller, back to the chip, programmed.
    let (mut ssd, now) = full(&[("controller.early_completion", "false")]);
    let took = ssd.zone_compaction(now, &[Extent { offset: e.offset + 16 * 4 + 1, ..e }], 1);
    let took = took.unwrap().done - now;
    assert!((to_us(took) - command - 920.0).abs() < 20.0, "{} us", to_us(took));
    assert_eq!(ssd.counters().copyback_blocks, 0);
}

#[test]
fn only_whole_units_on_the_chip_are_copied_back() {
    let (mut ssd, now) = full(&[]);
    let right = unit_on_the_chip(&ssd, 0);
    let wrong_chip = Extent { offset: right.offset + 4, ..right };
    assert_ne!(ssd.die(0, wrong_chip.offset), ssd.die(0, right.offset));
    let copied_back = |ssd: &mut ZnsSsd, from: &[Extent]| {
        let before = ssd.counters().copyback_blocks;
        ssd.zone_compaction(now, from, 1).unwrap();
        ssd.counters().copyback_blocks - before
    };
    assert_eq!(copied_back(&mut ssd, &[wrong_chip]), 0);
    // One block moves the write pointer off its unit.
    assert_eq!(copied_back(&mut ssd, &[Extent { blocks: 1, ..right }]), 0);
    assert_eq!(copied_back(&mut ssd, &[right]), 0);
    assert_eq!(copied_back(&mut ssd, &[Extent { blocks: 3, ..right }]), 0);
    let right = unit_on_the_chip(&ssd, 0);
    let next = Extent { blocks: 8, ..right };
    ssd.zone_compaction(now, &[next], 1).unwrap();
    assert_eq!(ssd.counters().copyback_blocks, 8);
    // Contiguous at the destination, but not one unit at the source.
    let right = unit_on_the_chip(&ssd, 0);
    let halves =
        [Extent { blocks: 2, ..right }, Extent { offset: right.offset + 2, blocks: 2, ..right }];
    ssd.zone_compaction(now, &halves, 1).unwrap();
    assert_eq!(ssd.counters().copyback_blocks, 8);
    let (mut ssd, now) = full(&[("zns_plus.copyback", "false")]);
    let right = unit_on_the_chip(&ssd, 0);
    ssd.zone_compaction(now, &[right], 1).unwrap();
    assert_eq!(ssd.counters().copyback_blocks, 0);
}

/// A random half of the units of zone 0.
fn live_units(ssd: &ZnsSsd) -> Vec<Extent> {
    let mut rng = rng(1);
    let units = (0..ssd.geometry().zone_blocks).step_by(4);
    units
        .filter(|_| rng.random_bool(0.5))
        .map(|offset| Extent { zone: 0, offset, blocks: 4 })
        .collect()
}

/// How [`compact`] moves blocks.
#[derive(Clone, Copy, PartialEq)]
enum By {
    /// Read, then append, 64 KiB at a time, eight at a time.
    Host,
    Copy,
    Compaction,
    /// The same, with each source on the chip of its destination.
    ChosenPlaces,
}

/// Time to move half of a zone, and the share moved by copyback.
fn compact(device: &str, by: By) -> (f64, f64) {
    let pairs = set(&[("controller.early_completion", "false")]);
    let params = Params::load(device, &pairs).unwrap();
    let mut ssd = ZnsSsd::new(&params, None, 1).unwrap();
    let start = fill_zone(&mut ssd, 0, 0, 1.0) + SEC;
    let (mut sources, mut now) = (live_units(&ssd), start);
    if by == By::ChosenPlaces {
        // Cycle through the chips as the destination does.
        let (mut left, mut chosen) = (sources, Vec::new());
        while !left.is_empty() {
            let chip = ssd.die(1, 4 * chosen.len() as u32);
            let at = left.iter().position(|e| ssd.die(0, e.offset) == chip).unwrap_or(0);
            chosen.push(left.remove(at));
        }
        sources = chosen;
    }
    for some in sources.chunks(32) {
        now = match by {
            By::Host => {
                let reads = some.iter().map(|e| ssd.read(now, 0, e.offset, e.blocks).unwrap());
                let read = reads.max().unwrap();
                ssd.append(read, 1, 4 * some.len() as u32).unwrap().done
            }
            By::Copy => ssd.copy(now, some, 1).unwrap().done,
            _ => ssd.zone_compaction(now, some, 1).unwrap().done,
        };
    }
    let c = ssd.counters();
    (to_us(now - start) / 1e3, c.copyback_blocks as f64 / c.copied_blocks.max(1) as f64)
}

/// In the paper compaction takes 28 to 52 % less time than by the host, and 74
/// to 87 % moves by copyback. It includes the host's software, which dominates
/// with fast flash; this test has only the device.
#[test]
fn compaction_is_faster_in_the_device() {
    for device in ["zns-plus", "zns-plus-tlc", "zns-plus-mlc", "zns-plus-znand"] {
        let (host, _) = compact(device, By::Host);
        let (copy, none) = compact(device, By::Copy);
        let (chance, some) = compact(device, By::Compaction);
        let (chosen, most) = compact(device, By::ChosenPlaces);
        println!(
            "{device}: 64 MiB by the host {host:.0} ms, by Copy {copy:.0}, zone_compaction \
             {chance:.0} ({:.0} % copied back), with chosen places {chosen:.0} ({:.0} %)",
            some * 100.0,
            most * 100.0
        );
        assert!(copy < host && chance <= copy * 1.02 && chosen < chance, "{device}");
        assert!(none == 0.0 && some < 0.2 && most > 0.9, "{device}");
    }
}

/// The bitmap of a zone in which every fourth block is dead.
fn valid(ssd: &ZnsSsd) -> Vec<u64> {
    vec![0x7777_7777_7777_7777; ssd.geometry().zone_blocks as usize / 64]
}

#[test]
fn threaded_logging_fills_the_holes() {
    let (mut ssd, now) = full(&[]);
    let before = *ssd.counters();
    let valid = valid(&ssd);
    ssd.tl_open(now, 0, &valid).unwrap();
    assert_eq!(ssd.zone(0).state, ZoneState::Open);
    // Only dead blocks, in ascending order.
    assert_eq!(ssd.write(now, 0, 2, 1).unwrap_err().kind, FaultKind::Overwrite);
    ssd.write(now, 0, 3, 1).unwrap();
    assert_eq!(ssd.write(now, 0, 3, 1).unwrap_err().kind, FaultKind::NotAtWritePointer);
    ssd.write(now, 0, 43, 1).unwrap();
    // The unit of block 3 took along 3 live blocks; the nine units in between, and the
    // unit of block 43, moved 3 live blocks each.
    let c = ssd.counters();
    assert_eq!(c.written_blocks - before.written_blocks, 2);
    assert_eq!(c.copied_blocks - before.copied_blocks, 11 * 3);
    assert_eq!(c.copyback_blocks, 9 * 3);
    assert_eq!(c.programmed_blocks - before.programmed_blocks, 11 * 4);
    // All blocks stay readable.
    for offset in [0, 3, 43, 44, 30_000] {
        ssd.read(now, 0, offset, 1).unwrap();
    }
    assert_eq!(ssd.append(now, 0, 1).unwrap_err().kind, FaultKind::WrongState);
    let done = ssd.tl_close(now, 0).unwrap();
    assert!(done > now);
    assert_eq!(ssd.zone(0).state, ZoneState::Full);
    let blocks = u64::from(ssd.geometry().zone_blocks);
    let c = ssd.counters();
    assert_eq!(c.programmed_blocks - before.programmed_blocks, blocks);
    assert_eq!(c.copied_blocks - before.copied_blocks, blocks / 4 * 3);
    assert_eq!(ssd.append(done, 0, 1).unwrap_err().kind, FaultKind::ZoneFull);
    assert_eq!(ssd.tl_close(done, 0).unwrap_err().kind, FaultKind::WrongState);
}

#[test]
fn written_blocks_are_not_copied_back() {
    let (mut ssd, now) = full(&[]);
    // The first block of each unit is dead, and one is written: its unit gets one block
    // from the host and three old ones.
    let valid = vec![0xeeee_eeee_eeee_eeee; valid(&ssd).len()];
    ssd.tl_open(now, 0, &valid).unwrap();
    ssd.write(now, 0, 400, 1).unwrap();
    ssd.tl_close(now, 0).unwrap();
    let c = ssd.counters();
    assert_eq!(c.copied_blocks - c.copyback_blocks, 3);
}

#[test]
fn a_log_takes_one_write_at_a_time_where_append_is_emulated() {
    let (mut ssd, now) = full(&[("zoned.emulated_append", "true")]);
    let valid = valid(&ssd);
    ssd.tl_open(now, 0, &valid).unwrap();
    let done = ssd.write(now, 0, 3, 1).unwrap();
    assert_eq!(ssd.write(done - 1, 0, 43, 1).unwrap_err().kind, FaultKind::Busy);
    ssd.write(done, 0, 43, 1).unwrap();
}

#[test]
fn a_dead_unit_that_is_not_written_costs_nothing() {
    let (mut ssd, now) = full(&[]);
    let before = ssd.counters().programmed_blocks;
    let dead = vec![0; valid(&ssd).len()];
    ssd.tl_open(now, 0, &dead).unwrap();
    ssd.write(now, 0, 4000, 4).unwrap();
    ssd.tl_close(now, 0).unwrap();
    assert_eq!(ssd.counters().programmed_blocks - before, 4);
    assert_eq!(ssd.counters().copied_blocks, 0);
}

#[test]
fn impossible_logs_are_refused() {
    let (mut ssd, now) = full(&[("zoned.max_open", "2"), ("zoned.max_active", "2")]);
    let valid = valid(&ssd);
    assert_eq!(ssd.tl_open(now, 1, &valid).unwrap_err().kind, FaultKind::WrongState);
    assert_eq!(ssd.tl_open(now, 0, &valid[1..]).unwrap_err().kind, FaultKind::OutOfRange);
    assert_eq!(ssd.tl_open(now, 200, &valid).unwrap_err().kind, FaultKind::OutOfRange);
    ssd.append(now, 1, 1).unwrap();
    ssd.tl_open(now, 0, &valid).unwrap();
    assert_eq!(ssd.open_and_active(), (2, 2));
    // It counts as active, and the device does not close it implicitly.
    assert_eq!(ssd.append(now, 2, 1).unwrap_err().kind, FaultKind::TooManyActive);
    assert_eq!(ssd.close(now, 0).unwrap_err().kind, FaultKind::WrongState);
    assert_eq!(ssd.finish(now, 0).unwrap_err().kind, FaultKind::WrongState);
    let end = ssd.geometry().zone_blocks;
    assert_eq!(ssd.write(now, 0, end, 1).unwrap_err().kind, FaultKind::OutOfRange);
    // A reset ends it.
    ssd.reset(now, 0).unwrap();
    assert_eq!(ssd.tl_close(now, 0).unwrap_err().kind, FaultKind::WrongState);
    assert_eq!(ssd.open_and_active(), (1, 1));
    ssd.append(now, 0, 1).unwrap();
}
