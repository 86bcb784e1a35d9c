// SPDX-License-Identifier: GPL-2.0-only
//! The ZNS SSD's states and limits against a model; counters, faults, and
//! repeatability.

use crate::common;

use std::collections::BTreeMap;

use common::{fill_zone, random_reads, rng, run, set, zns};
use rand::RngExt;
use znsage_sim::device::{FaultKind, FaultPlan, Params, ZnsSsd, ZoneState};
use znsage_sim::time::{Ns, MS, SEC};

/// A device that often hits its limits: 12 zones of 96 blocks, 3 open and 5
/// active, writes of 2 blocks and more.
fn small(seed: u64) -> ZnsSsd {
    small_with(seed, &[])
}

/// The same with further settings.
fn small_with(seed: u64, more: &[(&str, &str)]) -> ZnsSsd {
    let mut pairs = set(&[
        ("zoned.zones", "12"),
        ("zoned.zone_capacity", "384 KiB"),
        ("zoned.zone_size", "512 KiB"),
        ("zoned.write_unit", "8 KiB"),
        ("zoned.max_append", "128 KiB"),
        ("zoned.max_open", "3"),
        ("zoned.max_active", "5"),
    ]);
    pairs.extend(set(more));
    ZnsSsd::new(&Params::load("zn540", &pairs).unwrap(), None, seed).unwrap()
}

/// Expected state of a zone.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Zone {
    state: ZoneState,
    written: u32,
    explicit: bool,
    /// When it was opened.
    opened: u32,
}

#[derive(Clone, Default)]
struct Model {
    zones: BTreeMap<u32, Zone>,
    step: u32,
}

impl Model {
    fn get(&self, zone: u32) -> Zone {
        let empty = Zone { state: ZoneState::Empty, written: 0, explicit: false, opened: 0 };
        self.zones.get(&zone).copied().unwrap_or(empty)
    }

    fn count(&self, states: &[ZoneState]) -> usize {
        self.zones.values().filter(|z| states.contains(&z.state)).count()
    }

    fn open(&mut self, zone: u32, explicit: bool) -> Result<(), FaultKind> {
        let z = self.get(zone);
        if z.state == ZoneState::Empty && self.count(&[ZoneState::Open, ZoneState::Closed]) == 5 {
            return Err(FaultKind::TooManyActive);
        }
        if z.state != ZoneState::Open && self.count(&[ZoneState::Open]) == 3 {
            let implicit = |z: &&mut Zone| z.state == ZoneState::Open && !z.explicit;
            let oldest = self.zones.values_mut().filter(implicit).min_by_key(|z| z.opened);
            oldest.ok_or(FaultKind::TooManyOpen)?.state = ZoneState::Closed;
        }
        let opened = if z.state == ZoneState::Open { z.opened } else { self.step };
        let explicit = explicit || z.state == ZoneState::Open && z.explicit;
        self.zones.insert(zone, Zone { state: ZoneState::Open, explicit, opened, ..z });
        Ok(())
    }

    fn write(&mut self, zone: u32, blocks: u32) -> Result<u32, FaultKind> {
        let z = self.get(zone);
        if z.state == ZoneState::Full {
            return Err(FaultKind::ZoneFull);
        }
        if !blocks.is_multiple_of(2) {
            return Err(FaultKind::NotAUnit);
        }
        if z.written + blocks > 96 {
            return Err(FaultKind::ZoneFull);
        }
        self.open(zone, false)?;
        let entry = self.zones.get_mut(&zone).unwrap();
        entry.written += blocks;
        if entry.written == 96 {
            (entry.state, entry.explicit) = (ZoneState::Full, false);
        }
        Ok(z.written)
    }
}

#[test]
fn states_and_limits_are_those_of_the_model() {
    let (mut ssd, mut model, mut rng) = (small(1), Model::default(), rng(1));
    let mut now = 0;
    let mut refused = BTreeMap::new();
    for step in 0..200_000 {
        model.step = step;
        let zone = rng.random_range(0..12);
        let z = model.get(zone);
        let blocks = rng.random_range(1..=16);
        let (got, expected): (Result<Ns, FaultKind>, Result<(), FaultKind>) =
            match rng.random_range(0..100) {
                0..40 => {
                    let expected = model.write(zone, blocks);
                    let got = ssd.append(now, zone, blocks);
                    if let (Ok(got), Ok(offset)) = (&got, &expected) {
                        assert_eq!(got.offset, *offset);
                    }
                    (got.map(|a| a.done).map_err(|f| f.kind), expected.map(drop))
                }
                40..60 => {
                    let expected = model.write(zone, blocks).map(drop);
                    (ssd.write(now, zone, z.written, blocks).map_err(|f| f.kind), expected)
                }
                60..80 => {
                    let offset = rng.random_range(0..100);
                    let expected = match offset + blocks {
                        97.. => Err(FaultKind::OutOfRange),
                        end if end > z.written => Err(FaultKind::BeyondWritePointer),
                        _ => Ok(()),
                    };
                    (ssd.read(now, zone, offset, blocks).map_err(|f| f.kind), expected)
                }
                80..88 => {
                    model.zones.remove(&zone);
                    (ssd.reset(now, zone).map_err(|f| f.kind), Ok(()))
                }
                88..90 => {
                    let full = Zone { state: ZoneState::Full, explicit: false, ..z };
                    model.zones.insert(zone, full);
                    (ssd.finish(now, zone).map_err(|f| f.kind), Ok(()))
                }
                90..95 => {
                    let expected = match z.state {
                        ZoneState::Full => Err(FaultKind::WrongState),
                        _ => model.open(zone, true),
                    };
                    (ssd.open(now, zone).map_err(|f| f.kind), expected)
                }
                _ => {
                    let expected = match z.state {
                        ZoneState::Open if z.written == 0 => {
                            model.zones.remove(&zone);
                            Ok(())
                        }
                        ZoneState::Open => {
                            model.zones.get_mut(&zone).unwrap().state = ZoneState::Closed;
                            Ok(())
                        }
                        _ => Err(FaultKind::WrongState),
                    };
                    (ssd.close(now, zone).map_err(|f| f.kind), expected)
                }
            };
        match (got, expected) {
            (Ok(done), Ok(())) => assert!(done > now, "step {step}"),
            (Err(got), Err(expected)) => {
                assert_eq!(got, expected, "step {step}");
                *refused.entry(got.to_string()).or_insert(0) += 1;
            }
            (got, expected) => panic!("step {step}: {got:?}, {expected:?} expected"),
        }
        for zone in 0..12 {
            let (is, should) = (ssd.zone(zone), model.get(zone));
            assert_eq!(is.state, should.state, "step {step}, zone {zone}");
            let full = should.state == ZoneState::Full;
            assert_eq!(is.write_pointer, if full { 96 } else { should.written });
        }
        let open = model.count(&[ZoneState::Open]) as u32;
        let closed = model.count(&[ZoneState::Closed]) as u32;
        assert_eq!(ssd.open_and_active(), (open, open + closed));
        now += rng.random_range(0..100_000);
    }
    println!("refused: {refused:?}");
    // Every reason came up, and often.
    assert_eq!(refused.len(), 7);
    assert!(refused.values().all(|n| *n > 50), "{refused:?}");
}

#[test]
fn faults_have_kind_and_place() {
    let mut ssd = small(1);
    let fault = ssd.append(SEC, 3, 1).unwrap_err();
    assert_eq!(fault.to_string(), "zone 3, block 0: not in whole write units");
    assert!(fault.done > SEC);
    assert_eq!(ssd.append(SEC, 12, 2).unwrap_err().kind, FaultKind::OutOfRange);
    assert_eq!(ssd.append(SEC, 0, 64).unwrap_err().kind, FaultKind::TooLong);
    assert_eq!(ssd.append(SEC, 0, 0).unwrap_err().kind, FaultKind::OutOfRange);
    assert_eq!(ssd.write(SEC, 0, 2, 2).unwrap_err().kind, FaultKind::NotAtWritePointer);
    assert_eq!(ssd.read(SEC, 0, 0, 0).unwrap_err().kind, FaultKind::OutOfRange);
    assert_eq!(ssd.read(SEC, 0, u32::MAX, 2).unwrap_err().kind, FaultKind::OutOfRange);
    assert_eq!(ssd.reset(SEC, 99).unwrap_err().kind, FaultKind::OutOfRange);
    assert_eq!(ssd.zone_compaction(SEC, &[], 0).unwrap_err().kind, FaultKind::Unsupported);
}

#[test]
fn where_append_is_emulated_a_zone_takes_one_write_at_a_time() {
    let ssd = |emulated| {
        let pairs = set(&[("zoned.emulated_append", emulated)]);
        ZnsSsd::new(&Params::load("zn540", &pairs).unwrap(), Some(4 << 30), 1).unwrap()
    };
    let mut emulated = ssd("true");
    let first = emulated.append(SEC, 0, 64).unwrap().done;
    for at in [SEC, first - 1] {
        let fault = emulated.append(at, 0, 64).unwrap_err();
        assert_eq!((fault.kind, fault.offset), (FaultKind::Busy, 64));
        assert_eq!(emulated.write(at, 0, 64, 64).unwrap_err().kind, FaultKind::Busy);
    }
    assert_eq!(emulated.zone(0).write_pointer, 64, "a refused write changes nothing");
    // In another zone, a write overlaps. In this one, reads and a finish may.
    let alone = first - SEC;
    let other = emulated.append(SEC, 1, 64).unwrap().done;
    assert!(other < SEC + 2 * alone, "{} ns, {alone} alone", other - SEC);
    emulated.read(SEC, 0, 0, 64).unwrap();
    emulated.finish(SEC, 1).unwrap();
    let second = emulated.append(first, 0, 64).unwrap();
    assert_eq!(second.offset, 64);
    let third = emulated.write(second.done, 0, 128, 64).unwrap();
    assert_eq!(emulated.append(second.done, 0, 64).unwrap_err().kind, FaultKind::Busy);
    emulated.append(third, 0, 64).unwrap();

    let mut native = ssd("false");
    let first = native.append(SEC, 0, 64).unwrap().done;
    let second = native.append(SEC, 0, 64).unwrap().done;
    assert!(second < first + (first - SEC), "they overlap");
    // An emulated append is a write, and takes as long as one.
    let mut written = ssd("false");
    assert_eq!(written.write(SEC, 0, 0, 64).unwrap() - SEC, alone);
    assert!(first - SEC > alone);
}

#[test]
fn buffered_blocks_are_read_from_the_buffer() {
    let (mut ssd, now) = zns("zn540", 4, 0);
    let done = ssd.append(now, 0, 30).unwrap().done;
    // The first unit, 24 blocks, is being programmed; the rest is in the buffer.
    for offset in [0, 23, 24, 29] {
        let took = ssd.read(done, 0, offset, 1).unwrap() - done;
        assert!(took < 20_000, "block {offset}: {took} ns");
    }
    let later = done + 10 * MS;
    assert!(ssd.read(later, 0, 0, 1).unwrap() - later > 60_000);
    assert!(ssd.read(later + MS, 0, 29, 1).unwrap() - later - MS < 20_000);
}

#[test]
fn a_burst_is_acknowledged_from_the_buffer() {
    let (mut ssd, now) = zns("zn540", 4, 0);
    // 4 MiB fit the buffer and arrive at link speed; 40 MiB do not.
    let burst = |ssd: &mut ZnsSsd, zone, mib: u64| {
        let start = now + u64::from(zone) * SEC;
        let done = (0..mib).map(|_| ssd.append(start, zone, 256).unwrap().done).max().unwrap();
        (mib << 20) as f64 / (done - start) as f64 * 1e3
    };
    let (short, long) = (burst(&mut ssd, 0, 4), burst(&mut ssd, 1, 40));
    assert!((2200.0..2330.0).contains(&short), "{short} MB/s");
    assert!((1200.0..1500.0).contains(&long), "{long} MB/s");
}

#[test]
fn queue_depth_limits_commands_in_flight() {
    let rate = |depth: &str| {
        let params = Params::load("zn540", &set(&[("controller.queue_depth", depth)])).unwrap();
        let mut ssd = ZnsSsd::new(&params, Some(4 << 30), 1).unwrap();
        let start = fill_zone(&mut ssd, 0, 0, 1.0) + SEC;
        run(&mut ssd, start, 100 * MS, &mut [random_reads(64, 1, 1)])[0].kiops()
    };
    let (one, eight, all) = (rate("1"), rate("8"), rate("0"));
    // 72 us each, one after the other; 80 us, 8 at a time; the host's 64.
    assert!((13.0..14.5).contains(&one), "{one}");
    assert!((95.0..105.0).contains(&eight), "{eight}");
    assert!(all > 350.0, "{all}");
}

#[test]
fn finish_fills_the_zone_and_slows_others() {
    let (mut ssd, now) = zns("zn540", 6, 2);
    let before = *ssd.counters();
    let done = ssd.append(now, 2, 1).unwrap().done;
    let finished = ssd.finish(done, 2).unwrap();
    let capacity = u64::from(ssd.geometry().zone_blocks);
    let c = ssd.counters();
    assert_eq!(c.padding_blocks, capacity - 1);
    assert!(c.waf() > before.waf());
    // Reads hit programming dies.
    let (mut rng, mut total) = (rng(1), 0);
    for i in 0..1000 {
        let at = done + MS + i * 500_000;
        total +=
            ssd.read(at, rng.random_range(0..2), rng.random_range(0..200_000), 1).unwrap() - at;
    }
    assert!((130_000..200_000).contains(&(total / 1000)), "{} ns", total / 1000);
    // In the end all is in the flash, and a read takes as long as before.
    let at = finished + SEC;
    assert!(ssd.read(at, 0, 0, 1).unwrap() - at < 75_000);
    let c = ssd.counters();
    let all = c.written_blocks + c.padding_blocks;
    assert_eq!(c.programmed_blocks, all);
    // The curve of a finished zone, by the one block that was written.
    assert_eq!((ssd.reset(at, 2).unwrap() - at) / 1000, 1580);
}

#[test]
fn a_reset_ends_the_filling_of_a_zone() {
    let (mut ssd, now) = zns("zn540", 4, 0);
    let done = ssd.append(now, 0, 1).unwrap().done;
    ssd.finish(done, 0).unwrap();
    ssd.reset(done + MS, 0).unwrap();
    let programmed = ssd.counters().programmed_blocks;
    assert!((24..2400).contains(&programmed), "{programmed}");
    ssd.append(done + 2 * SEC, 0, 1).unwrap();
    assert_eq!(ssd.counters().programmed_blocks, programmed);
}

#[test]
fn resets_are_done_one_after_another() {
    let (mut ssd, now) = zns("zn540", 4, 2);
    let one = ssd.reset(now, 0).unwrap() - now;
    assert_eq!(ssd.reset(now, 1).unwrap() - now, 2 * one);
    assert!(ssd.reset(now, 2).unwrap() - now > 2 * one);
    assert_eq!(ssd.reset(now + SEC, 2).unwrap() - now - SEC, 1_610_000);
}

#[test]
fn the_drain_limits_what_the_dies_could_take() {
    let set = set(&[("controller.drain_mb_s", "600")]);
    let mut ssd = ZnsSsd::new(&Params::load("zn540", &set).unwrap(), Some(4 << 30), 1).unwrap();
    let took = fill_zone(&mut ssd, 0, 0, 1.0);
    let rate = f64::from(ssd.geometry().zone_blocks) * 4096.0 / took as f64 * 1e3;
    assert!((595.0..610.0).contains(&rate), "{rate}");
}

#[test]
fn copy_moves_without_the_link() {
    let (mut ssd, now) = zns("zn540", 4, 1);
    let extents: Vec<_> = (0..64)
        .map(|i| znsage_sim::device::Extent { zone: 0, offset: i * 1000, blocks: 3 })
        .collect();
    let before = *ssd.counters();
    let copied = ssd.copy(now, &extents, 1).unwrap();
    assert_eq!((copied.offset, ssd.zone(1).write_pointer), (0, 192));
    let c = ssd.counters();
    assert_eq!(c.copied_blocks - before.copied_blocks, 192);
    assert_eq!((c.written_blocks, c.reads), (before.written_blocks, before.reads));
    assert_eq!(c.programmed_blocks - before.programmed_blocks, 192);
    // It reads and queues for dies, but does not program.
    let took = copied.done - now;
    assert!((100_000..1_500_000).contains(&took), "{took} ns");
    // An unwritten source, and a full destination.
    let beyond = [znsage_sim::device::Extent { zone: 2, offset: 0, blocks: 1 }];
    assert_eq!(ssd.copy(now, &beyond, 1).unwrap_err().kind, FaultKind::BeyondWritePointer);
    assert_eq!(ssd.copy(now, &extents, 0).unwrap_err().kind, FaultKind::ZoneFull);
}

/// Runs random commands; returns all results.
fn history(seed: u64, plan: Option<FaultPlan>) -> (Vec<String>, ZnsSsd) {
    let mut ssd = small(seed);
    if let Some(plan) = plan {
        ssd.inject(plan);
    }
    let all = random_commands(&mut ssd);
    (all, ssd)
}

fn random_commands(ssd: &mut ZnsSsd) -> Vec<String> {
    let (mut rng, mut now, mut all) = (rng(99), 0, Vec::new());
    for _ in 0..20_000 {
        let zone = rng.random_range(0..12);
        let blocks = rng.random_range(1..=8) * 2;
        all.push(match rng.random_range(0..10) {
            0..=5 => format!("{:?}", ssd.append(now, zone, blocks)),
            6..=7 => format!("{:?}", ssd.read(now, zone, 0, blocks)),
            8 => format!("{:?}", ssd.finish(now, zone)),
            _ => format!("{:?}", ssd.reset(now, zone)),
        });
        now += rng.random_range(0..100_000);
    }
    all
}

#[test]
fn the_same_seed_gives_the_same() {
    let plan = FaultPlan {
        append: 20_000,
        read: 20_000,
        reset: 20_000,
        finish: 20_000,
        read_only: 50,
        offline: 50,
        delay: 100_000,
        delay_max: MS,
    };
    let (one, _) = history(1, Some(plan.clone()));
    assert!(one == history(1, Some(plan.clone())).0);
    assert!(one != history(2, Some(plan)).0);
    // Without faults, the seed decides how times vary; if they do not, nothing is random.
    assert!(history(1, None).0 != history(2, None).0);
    let constant = |seed| {
        let keys = ["media.read", "media.program", "controller.write"];
        let keys = keys.map(|key| format!("{key}_jitter_us"));
        let none: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), "[]")).collect();
        random_commands(&mut small_with(seed, &none))
    };
    assert!(constant(1) == constant(2));
}

#[test]
fn fault_rates_match_the_plan() {
    let share = |plan: FaultPlan, text: &str| {
        let (all, _) = history(1, Some(plan));
        all.iter().filter(|line| line.contains(text)).count()
    };
    let media = |plan| share(plan, "Media");
    let none = FaultPlan::default();
    assert_eq!(media(none.clone()), 0);
    let few = media(FaultPlan { append: 10_000, ..none.clone() });
    let many = media(FaultPlan { append: 100_000, ..none.clone() });
    assert!(few > 10 && (5..20).contains(&(many / few)), "{few} and {many}");
    for plan in [
        FaultPlan { read: 100_000, ..none.clone() },
        FaultPlan { reset: 100_000, ..none.clone() },
        FaultPlan { finish: 100_000, ..none.clone() },
    ] {
        assert!(media(plan.clone()) > 20, "{plan:?}");
    }
    // Failed zones stay failed; eventually all have failed.
    for (plan, text, state) in [
        (FaultPlan { read_only: 10_000, ..none.clone() }, "ReadOnly", ZoneState::ReadOnly),
        (FaultPlan { offline: 10_000, ..none }, "Offline", ZoneState::Offline),
    ] {
        let (all, ssd) = history(1, Some(plan));
        assert!(all.iter().filter(|line| line.contains(text)).count() > 1000);
        assert!((0..12).all(|zone| ssd.zone(zone).state == state));
        assert_eq!(ssd.open_and_active(), (0, 0));
    }
}

#[test]
fn a_failed_append_may_move_the_write_pointer() {
    let mut moved = BTreeMap::new();
    for seed in 0..200 {
        let mut ssd = small(seed);
        ssd.inject(FaultPlan { append: 1_000_000, ..FaultPlan::default() });
        let fault = ssd.append(0, 0, 8).unwrap_err();
        assert_eq!((fault.kind, fault.zone, fault.offset), (FaultKind::Media, 0, 0));
        *moved.entry(ssd.zone(0).write_pointer).or_insert(0) += 1;
    }
    assert_eq!(moved.keys().copied().collect::<Vec<_>>(), [0, 2, 4, 6, 8], "{moved:?}");
}

#[test]
fn a_read_only_zone_can_be_read() {
    let mut ssd = small(1);
    let done = ssd.append(0, 0, 8).unwrap().done;
    ssd.fail_zone(0, ZoneState::ReadOnly);
    ssd.read(done, 0, 0, 8).unwrap();
    assert_eq!(ssd.append(done, 0, 2).unwrap_err().kind, FaultKind::ReadOnly);
    assert_eq!(ssd.reset(done, 0).unwrap_err().kind, FaultKind::ReadOnly);
    ssd.fail_zone(0, ZoneState::Offline);
    assert_eq!(ssd.read(done, 0, 0, 8).unwrap_err().kind, FaultKind::Offline);
}

#[test]
fn delays_let_commands_pass_each_other() {
    let run = |plan| {
        let (mut ssd, now) = zns("zn540", 4, 1);
        ssd.inject(plan);
        let done: Vec<Ns> =
            (0..1000).map(|i| ssd.read(now + i * 100_000, 0, i as u32, 1).unwrap()).collect();
        done.windows(2).filter(|w| w[1] < w[0]).count()
    };
    assert_eq!(run(FaultPlan::default()), 0);
    let passed = run(FaultPlan { delay: 200_000, delay_max: 5 * MS, ..FaultPlan::default() });
    assert!((50..250).contains(&passed), "{passed}");
}
