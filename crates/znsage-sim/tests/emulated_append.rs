// SPDX-License-Identifier: GPL-2.0-only
//! Devices for which the kernel emulates zone append: a zone takes one write
//! at a time, and the others wait in the host.

use crate::common;

use std::collections::VecDeque;

use common::{fill_zone, rng, set};
use rand::RngExt;
use znsage_sim::device::{Params, ZnsSsd};
use znsage_sim::event::{Event, Queue};
use znsage_sim::spec::{PlacementKind, PolicyKind, SystemKind};
use znsage_sim::system::media::Zoned;
use znsage_sim::system::turns::Write;
use znsage_sim::time::{Ns, SEC};
use znsage_sim::{run, RunError, RunResult, Spec};

/// A ZN540 of 12 zones of 96 blocks, as many open as you like.
fn media(emulated: bool) -> Zoned {
    let pairs = set(&[
        ("zoned.zones", "12"),
        ("zoned.zone_capacity", "384 KiB"),
        ("zoned.zone_size", "512 KiB"),
        ("zoned.max_append", "128 KiB"),
        ("zoned.max_open", "0"),
        ("zoned.max_active", "0"),
        ("zoned.emulated_append", &emulated.to_string()),
    ]);
    Zoned::new(ZnsSsd::new(&Params::load("zn540", &pairs).unwrap(), None, 1).unwrap(), false)
}

fn append(zone: u32, blocks: u32, id: usize) -> Write {
    Write { zone, offset: None, blocks, id }
}

#[test]
fn appends_to_one_zone_do_not_overlap_and_to_two_zones_they_do() {
    let mut m = media(true);
    let first = m.write(SEC, append(0, 32, 0)).unwrap().result.unwrap();
    assert_eq!(m.write(SEC, append(0, 32, 1)), None, "it waits");
    let other = m.write(SEC, append(1, 32, 2)).unwrap().result.unwrap();
    let alone = first.done - SEC;
    assert!(other.done - SEC < 2 * alone, "{other:?}, {alone} ns alone");
    // The end of the other zone's begins nothing in this one.
    assert_eq!(m.ended(other.done, 1), None);
    let begun = m.ended(first.done, 0).unwrap();
    let second = begun.result.unwrap();
    assert_eq!((begun.id, second.offset), (1, 32));
    assert!(second.done >= first.done + alone * 9 / 10, "{second:?}, {alone} ns alone");
    assert_eq!(m.ended(second.done, 0), None);

    let mut native = media(false);
    let done = |id| native.write(SEC, append(0, 32, id)).unwrap().result.unwrap().done;
    let both: Vec<Ns> = (0..2).map(done).collect();
    assert!(both[1] - SEC < 2 * (both[0] - SEC), "{both:?}");
    assert_eq!(native.ended(both[0], 0), None);
}

/// A write by offset waits like an append: the kernel's queue takes both.
#[test]
fn writes_and_appends_wait_in_one_queue() {
    let mut m = media(true);
    let mut done = m.write(SEC, append(0, 8, 0)).unwrap().result.unwrap().done;
    assert_eq!(m.write(SEC, Write { offset: Some(8), ..append(0, 8, 1) }), None);
    assert_eq!(m.write(SEC, append(0, 8, 2)), None);
    for id in 1..3 {
        let begun = m.ended(done, 0).unwrap();
        let is = begun.result.unwrap();
        assert_eq!((begun.id, is.offset), (id, 8 * id as u32));
        done = is.done;
    }
}

/// The next one begins when a refused one has completed.
#[test]
fn an_error_ends_the_turn() {
    let mut m = media(true);
    let refused = m.write(SEC, append(0, 33, 0)).unwrap().result.unwrap_err();
    assert_eq!(m.write(SEC, append(0, 8, 1)), None);
    let next = m.ended(refused.done, 0).unwrap();
    assert_eq!((next.id, next.result.unwrap().offset), (1, 0));
}

/// What waits in the host holds up neither other zones nor reads.
#[test]
fn waiting_writes_hold_up_no_other_command() {
    let latencies = |waiting| {
        let mut m = media(true);
        let now = fill_zone(&mut m.dev, 0, 2, 1.0) + SEC;
        let first = m.write(now, append(0, 1, 0)).unwrap().result.unwrap();
        for id in 1..=waiting {
            assert_eq!(m.write(now, append(0, 1, id)), None);
        }
        let read = m.dev.read(now, 2, 0, 1).unwrap();
        let other = m.write(now, append(1, 1, 99)).unwrap().result.unwrap();
        (first.done - now, read - now, other.done - now)
    };
    assert_eq!(latencies(0), latencies(40));
}

/// Bursts of writes to random zones, against a model of whose turn it is.
#[test]
fn random_writes_take_turns_in_order() {
    const WRITES: usize = 40_000;
    let (mut m, mut rng, mut q) = (media(true), rng(1), Queue::default());
    // Per zone: is a write in flight, which ones have not begun, and blocks of all.
    let mut busy = [false; 12];
    let mut waiting: [VecDeque<usize>; 12] = Default::default();
    let mut given = [0; 12];
    let mut zone_of = Vec::new();
    let (mut ended, mut waited, mut side_by_side) = (0, 0, 0);
    q.push(0, Event::Task(0));
    while let Some((now, event)) = q.pop() {
        let mut begun = Vec::new();
        if let Event::System(id) = event {
            let z: usize = zone_of[id as usize];
            (busy[z], ended) = (false, ended + 1);
            let next = m.ended(now, z as u32);
            assert_eq!(next.is_some(), !waiting[z].is_empty());
            waited += usize::from(next.is_some());
            begun.extend(next);
        } else if zone_of.len() < WRITES {
            q.push(now + rng.random_range(0..150_000), Event::Task(0));
            let z = rng.random_range(0..12);
            if given[z] == 96 && !busy[z] {
                m.dev.reset(now, z as u32).unwrap();
                given[z] = 0;
            }
            for _ in 0..rng.random_range(0..4).min((96 - given[z]) / 8) {
                let id = zone_of.len();
                zone_of.push(z);
                given[z] += 8;
                let is = m.write(now, append(z as u32, 8, id));
                assert_eq!(is.is_some(), !busy[z], "write {id}");
                waiting[z].push_back(id);
                busy[z] = true;
                begun.extend(is);
            }
        }
        for b in begun {
            let z = zone_of[b.id];
            assert_eq!(waiting[z].pop_front(), Some(b.id), "out of order");
            busy[z] = true;
            q.push(b.result.unwrap().done, Event::System(b.id as u64));
        }
        side_by_side = side_by_side.max(busy.iter().filter(|b| **b).count());
    }
    println!("{ended} writes, {waited} waited, in up to {side_by_side} zones at a time");
    assert_eq!(ended, zone_of.len());
    assert!(waited > WRITES / 4 && ended - waited > WRITES / 4, "{waited} of {ended} waited");
    assert!(side_by_side > 4, "{side_by_side}");
}

/// How long a write takes, however short: a disk's, not that of flash.
const LATENCY: f64 = 4e-3;

/// 136 zones of 15 default chunks, 14 of them open, on a device with latency. GC has
/// almost nothing to do.
fn late(system: SystemKind, emulated: bool) -> Spec {
    let device = if system == SystemKind::ZnsPlus { "zns-plus" } else { "zn540" };
    let mut spec = Spec { system, device: device.into(), utilization: 20.0, ..Spec::default() };
    spec.size = Some(512 << 20);
    spec.host.memory = 16 << 20;
    (spec.host.cpus, spec.host.threads) = (4, 32);
    (spec.run.warmup, spec.run.measure) = (0.3, 0.5);
    spec.run.shadow = true;
    spec.znsage.policy = PlacementKind::Single;
    spec.published.policy = PolicyKind::Single;
    for (key, value) in [
        ("device.controller.write_us", format!("{}", LATENCY * 1e6)),
        ("device.zoned.zone_capacity", "3840 KiB".into()),
        ("device.zoned.reset_us", "[[0, 100], [1, 100]]".into()),
        ("device.zoned.emulated_append", emulated.to_string()),
    ] {
        spec.set(key, &value).unwrap();
    }
    spec
}

fn sound(spec: &Spec) -> RunResult {
    let r = run(spec).unwrap_or_else(|e| panic!("{}: {e}", spec.system));
    assert!(r.wrong.is_empty(), "{}: {:#?}", spec.system, r.wrong);
    r
}

/// The rate over that of one zone that takes one write of `pages` at a time.
fn zones_busy(r: &RunResult, pages: u32) -> f64 {
    let one = f64::from(pages) * 4096.0 / LATENCY / 1e6;
    r.swap_out_mb_s * r.waf.total / one
}

#[test]
fn znsage_writes_several_zones_in_turn() {
    let busy = |stripe| {
        let mut spec = late(SystemKind::ZnSage, true);
        spec.znsage.stripe = stripe;
        let r = sound(&spec);
        assert!(r.waf.total < 1.1, "{:?}", r.waf);
        zones_busy(&r, 64)
    };
    // By default swap-out has 6 of the 14 zones that may be open. Appends grow meanwhile.
    let (one, two, default) = (busy(1), busy(2), busy(0));
    println!(
        "full chunks in {LATENCY} s: {one:.2} by one zone, {two:.2} by two, {default:.2} by six"
    );
    assert!((1.2..2.0).contains(&one), "{one}");
    assert!(two > 1.4 * one, "{two}");
    assert!(default > 4.5 * one, "{default}");
}

/// Streams that share the lanes have several each: CPUs are not equally busy.
#[test]
fn a_stream_for_each_cpu_does_not_leave_lanes_idle() {
    let rate = |policy| {
        let mut spec = late(SystemKind::ZnSage, true);
        spec.znsage.policy = policy;
        sound(&spec).swap_out_mb_s
    };
    let (single, cpu) = (rate(PlacementKind::Single), rate(PlacementKind::Cpu));
    println!("{single:.0} MB/s with one stream, {cpu:.0} with one for each CPU");
    assert!(cpu > 0.8 * single, "{cpu} and {single} MB/s");
}

#[test]
fn the_waf_is_that_of_native_appends() {
    let waf = |emulated| {
        sound(&Spec { utilization: 70.0, ..late(SystemKind::ZnSage, emulated) }).waf.total
    };
    let (native, emulated) = (waf(false), waf(true));
    println!("WAF {native:.2} with native appends, {emulated:.2} with emulated ones");
    assert!(native > 1.5 && (emulated / native - 1.0).abs() < 0.1, "{native} {emulated}");
}

/// They do not know of the queue. Here they may open three zones, so that more than
/// three of their writes at a time are in flight only where a zone takes several.
#[test]
fn the_published_systems_meet_the_same_queue() {
    for (system, pages) in [
        (SystemKind::SmallZone, 48),
        (SystemKind::ZnSage2025, 48),
        // A batch of reclaim.
        (SystemKind::ZnSwap, 32),
        (SystemKind::ZnsPlus, 32),
    ] {
        let busy = |emulated| {
            let mut spec = late(system, emulated);
            spec.set("device.zoned.max_open", "3").unwrap();
            spec.set("device.zoned.max_active", "3").unwrap();
            zones_busy(&sound(&spec), pages)
        };
        let (native, emulated) = (busy(false), busy(true));
        println!("{system}: {native:.2} writes at a time, emulated {emulated:.2}");
        assert!(native > 4.0, "{system}: {native}");
        assert!((0.5..3.0).contains(&emulated), "{system}: {emulated}");
    }
}

#[test]
fn every_system_keeps_every_page_in_turns() {
    for system in SystemKind::ALL {
        if matches!(system, SystemKind::Stock | SystemKind::StockTrim) {
            continue;
        }
        for utilization in [60.0, 80.0] {
            let mut spec = Spec { utilization, ..late(system, true) };
            spec.published.policy = PolicyKind::Cpu;
            spec.set("device.controller.write_us", "100").unwrap();
            let r = sound(&spec);
            assert!(r.counts.host.swapped_out > 50_000 && r.counts.host.no_slot == 0, "{system}");
            assert!(r.waf.total >= 1.0 && r.waf.total < 8.0, "{system}: {:?}", r.waf);
            assert_eq!(r, sound(&spec), "{system} repeats");
        }
    }
}

/// Whatever an erase takes, no read waits long: the device reads the live blocks of a threaded
/// log when the command begins. When it read them one after the other, reads of 80 us waited
/// for seconds, with some erase times for ever.
#[test]
fn reads_do_not_wait_long_beside_threaded_logs() {
    for erase in ["80", "87.891", "100", "3000"] {
        let mut spec = Spec { utilization: 80.0, ..late(SystemKind::ZnsPlus, true) };
        spec.published.policy = PolicyKind::Cpu;
        spec.set("device.controller.write_us", "100").unwrap();
        spec.set("device.media.erase_us", erase).unwrap();
        let r = sound(&spec);
        let (longest, rate) = (r.fault_latency.max_us / 1e3, r.swap_out_mb_s);
        println!("erase of {erase} us: {rate:.0} MB/s, at most {longest:.0} ms");
        assert!(longest < 100.0 && rate > 60.0, "{erase}: {longest} ms, {rate} MB/s");
    }
}

/// Reads take longer than the measurement may: that is an error, not a result without
/// operations.
#[test]
fn a_run_that_stands_still_is_an_error() {
    let mut spec = late(SystemKind::ZnsPlus, true);
    spec.run.seconds = 1.0;
    for key in ["device.media.read_us", "device.media.read_page_us"] {
        spec.set(key, "5e6").unwrap();
    }
    match run(&spec) {
        Err(RunError::Stuck(e)) => assert!(e.what.contains("without an end"), "{e}"),
        other => panic!("{:?}", other.map(|r| r.operations_s)),
    }
}
