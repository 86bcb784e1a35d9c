// SPDX-License-Identifier: GPL-2.0-only
//! The parameters of `devices/zn540.toml` against measurements of a ZN540.
//!
//! The published values are from Doekemeijer, Tehrany et al., CLUSTER 2023,
//! and its raw data (github.com/stonet-research/NVMeBenchmarks @01f40f1c; fio
//! and SPDK, 4 KiB LBA format unless said). Each value must be within 10 %;
//! rows with a larger tolerance say why. Run with `--nocapture` to see the
//! tables.

use crate::common;

use common::{fill_zone, random_reads, run, stream, zns, By, Table};
use znsage_sim::device::ZnsSsd;
use znsage_sim::time::{to_us, Ns, MS, SEC};

/// Latency at depth 1: data/spdk/zns-a/lbaf2/{write,append}/*/1zone/1.json.
#[test]
fn one_write_at_a_time() {
    let mut t = Table::new("Depth 1, one zone: mean us");
    for (kib, write, append) in [
        (4, 11.36, 14.83),
        (8, 11.24, 14.02),
        (16, 16.25, 20.11),
        (32, 26.42, 27.91),
        (64, 53.23, 53.12),
        (128, 106.55, 106.67),
    ] {
        for (by, name, published) in [(By::Write, "write", write), (By::Append, "append", append)] {
            let (mut ssd, start) = zns("zn540", 4, 0);
            let seen = run(&mut ssd, start, 300 * MS, &mut [stream(1, kib / 4, 0, 2, by)]);
            t.row(format!("{name} {kib} KiB"), published, seen[0].mean_us());
        }
    }
    t.check();
}

/// data/spdk/zns-a/lbaf2/{randread,write}/*/1zone/1.json. The model has no firmware that
/// pauses: its slowest writes are too quick.
#[test]
fn percentiles_of_one_command_at_a_time() {
    let mut t = Table::new("Depth 1, one zone: percentiles, us");
    let (mut ssd, mut start) = zns("zn540", 6, 3);
    for (kib, rows) in [
        (4, [(1.0, 67.1), (50.0, 69.1), (90.0, 80.4), (99.0, 81.4)]),
        (8, [(1.0, 78.3), (50.0, 80.4), (90.0, 92.7), (99.0, 93.7)]),
    ] {
        let seen = run(&mut ssd, start, 400 * MS, &mut [random_reads(1, kib / 4, 3)]);
        start += SEC;
        for (percent, us) in rows {
            t.row(format!("read {kib} KiB, {percent} %"), us, seen[0].percentile_us(percent));
        }
    }
    for (kib, rows) in [
        (4, [(10.0, 10.3), (50.0, 10.7), (90.0, 11.2), (99.0, 13.5)]),
        (128, [(10.0, 60.2), (50.0, 64.3), (95.0, 268.3), (99.0, 626.7)]),
    ] {
        let (mut ssd, start) = zns("zn540", 4, 0);
        let seen = run(&mut ssd, start, SEC, &mut [stream(1, kib / 4, 0, 2, By::Write)]);
        for (percent, us) in rows {
            let within = if us > 600.0 { 45.0 } else { 10.0 };
            let what = format!("write {kib} KiB, {percent} %");
            t.within(within, what, us, seen[0].percentile_us(percent));
        }
    }
    t.check();
}

/// Thousands of commands a second from one zone at a depth.
fn deep(depth: u32, kib: u32) -> f64 {
    let (mut ssd, start) = zns("zn540", 4, 0);
    run(&mut ssd, start, 200 * MS, &mut [stream(depth, kib / 4, 0, 2, By::Append)])[0].kiops()
}

/// The same from several zones at depth 1 each.
fn wide(zones: u32, kib: u32, by: By) -> f64 {
    let (mut ssd, start) = zns("zn540", 20, 0);
    let mut jobs: Vec<_> = (0..zones).map(|z| stream(1, kib / 4, z, 1, by)).collect();
    run(&mut ssd, start, 200 * MS, &mut jobs).iter().map(|s| s.kiops()).sum()
}

/// data/spdk/zns-a/lbaf2/{write,append}. Rows where a host scheduler merges
/// (io_uring with mq-deadline) say nothing about the device.
#[test]
fn many_writes_at_a_time() {
    let mut t = Table::new("Writes and appends in parallel: 1000/s");
    for (kib, rows) in [
        (4, [(1, 65.7), (2, 111.7), (4, 132.2), (8, 132.3), (16, 132.2), (32, 132.2)]),
        (8, [(1, 69.0), (2, 114.9), (4, 146.5), (8, 146.0), (16, 146.3), (32, 146.5)]),
    ] {
        for (depth, published) in rows {
            t.row(format!("append {kib} KiB, 1 zone, depth {depth}"), published, deep(depth, kib));
        }
    }
    for (kib, by, name, rows) in [
        (4, By::Append, "append", [65.7, 107.2, 137.7, 134.3, 133.2]),
        (4, By::Write, "write", [85.1, 141.6, 180.1, 185.9, 182.4]),
        (8, By::Write, "write", [85.4, 145.1, 147.0, 146.9, 147.8]),
        (16, By::Write, "write", [59.4, 72.9, 73.7, 73.8, 73.6]),
    ] {
        for (zones, published) in [1, 2, 4, 8, 14].into_iter().zip(rows) {
            t.row(format!("{name} {kib} KiB, {zones} zones"), published, wide(zones, kib, by));
        }
    }
    t.check();
}

/// data/custom/zns-a/long2: four jobs of 1 MiB at depth 32 cycle through their
/// zones, with a reset each; plus the latency of concurrent 4 KiB reads.
#[test]
fn saturated_with_appends() {
    let mut t = Table::new("Four jobs of 1 MiB at depth 32");
    let (mut ssd, start) = zns("zn540", 26, 14);
    let mut jobs: Vec<_> = (0..4).map(|j| stream(32, 256, 14 + 2 * j, 2, By::Append)).collect();
    let seen = run(&mut ssd, start, 10 * SEC, &mut jobs);
    let mb_s: f64 = seen.iter().map(|s| s.mb_s(256)).sum();
    t.row("MiB/s", 1155.0, mb_s / 1.048576);
    for (depth, ms) in [(1, 92.0), (128, 92.8)] {
        let (mut ssd, start) = zns("zn540", 26, 14);
        let mut jobs: Vec<_> = (0..4).map(|j| stream(32, 256, 14 + 2 * j, 2, By::Append)).collect();
        jobs.push(random_reads(depth, 1, 14));
        let seen = run(&mut ssd, start, 10 * SEC, &mut jobs);
        t.row(format!("read of 4 KiB at depth {depth}, ms"), ms, seen[4].mean_us() / 1e3);
    }
    t.check();
}

/// data/spdk/zns-a/lbaf2/randread.
#[test]
fn reads() {
    let mut t = Table::new("Random reads");
    let (mut ssd, mut start) = zns("zn540", 16, 14);
    let of_4k = [
        (1, 72.6, 13.7),
        (2, 73.8, 27.0),
        (4, 76.0, 52.4),
        (8, 80.8, 98.6),
        (16, 91.5, 174.3),
        (32, 116.0, 274.1),
        (64, 175.0, 365.0),
        (128, 301.0, 424.0),
        (256, 585.0, 437.0),
    ];
    let of_8k = [(1, 84.2, 11.8), (32, 144.0, 221.1), (64, 225.0, 283.6), (256, 865.0, 296.0)];
    let of_16k = [(1, 101.6, 9.8), (32, 200.0, 160.1), (64, 399.0, 160.4)];
    for (kib, rows) in [(4, &of_4k[..]), (8, &of_8k[..]), (16, &of_16k[..])] {
        for (depth, us, kiops) in rows {
            let seen = run(&mut ssd, start, 400 * MS, &mut [random_reads(*depth, kib / 4, 14)]);
            start += SEC;
            t.row(format!("{kib} KiB, depth {depth}: us"), *us, seen[0].mean_us());
            t.row(format!("{kib} KiB, depth {depth}: 1000/s"), *kiops, seen[0].kiops());
        }
    }
    t.check();
}

/// data/custom/zns-a/rate_inteference: reads of 4 KiB beside one job that
/// writes 128 KiB at a time, at a given rate. The mean must match. The model
/// has one kind of program suspension, real flash has several, so the 99th
/// percentile may differ by 30 %.
#[test]
fn reads_beside_writes() {
    let mut t = Table::new("Random reads of 4 KiB beside writes");
    for (mib, alone, alone_p99, us, p99, kiops) in [
        (0, 72.9, 82.4, 113.9, 289.0, 279.6),
        (10, 73.9, 88.6, 129.0, 987.0, 246.7),
        (50, 78.3, 218.0, 165.0, 1647.0, 193.1),
        (100, 83.7, 247.0, 187.0, 1614.0, 170.2),
        (250, 100.3, 317.0, 224.0, 1434.0, 142.5),
        (500, 128.5, 379.0, 259.0, 1172.0, 123.1),
        (1000, 186.9, 411.0, 267.0, 1122.0, 119.5),
    ] {
        let one = beside(mib, 1, 4 * SEC);
        t.row(format!("{mib} MiB/s, depth 1: us"), alone, one[0].mean_us());
        t.within(30.0, format!("{mib} MiB/s, depth 1: p99"), alone_p99, one[0].percentile_us(99.0));
        let many = beside(mib, 32, SEC);
        t.row(format!("{mib} MiB/s, depth 32: us"), us, many[0].mean_us());
        t.within(30.0, format!("{mib} MiB/s, depth 32: p99"), p99, many[0].percentile_us(99.0));
        t.row(format!("{mib} MiB/s, depth 32: 1000/s"), kiops, many[0].kiops());
        if mib == 1000 {
            t.row("... of which are written: MB/s", 646.0, many[1].mb_s(32));
        }
    }
    t.check();
}

fn beside(mib: u64, depth: u32, span: Ns) -> Vec<common::Seen> {
    let (mut ssd, start) = zns("zn540", 20, 14);
    let mut jobs = vec![random_reads(depth, 1, 14)];
    if let Some(interval) = (SEC / 8).checked_div(mib) {
        let mut writes = stream(1, 32, 14, 2, By::Write);
        writes.interval = interval;
        jobs.push(writes);
    }
    run(&mut ssd, start, span, &mut jobs)
}

/// A device with zone 0 partly filled, some time later.
fn filled(part: f64) -> (ZnsSsd, Ns) {
    let (mut ssd, _) = zns("zn540", 4, 0);
    let mut now = fill_zone(&mut ssd, 0, 0, part);
    if part > 0.0 && ssd.zone(0).write_pointer == 0 {
        now = ssd.append(now, 0, 1).unwrap().done;
    }
    (ssd, now + SEC)
}

/// artifacts/artifact_plots.ipynb cell 26 and data/custom/zns-a/partial_reset/
/// run4, partial_finish/run2. Reset times are parameters; this only tests
/// which one applies.
#[test]
fn zone_management() {
    let mut t = Table::new("Managing zones");
    let (mut ssd, now) = filled(0.0);
    t.row("open: us", 9.56, to_us(ssd.open(now, 0).unwrap() - now));
    let (mut ssd, now) = filled(0.5);
    t.row("close: us", 11.02, to_us(ssd.close(now, 0).unwrap() - now));
    let (mut ssd, now) = filled(0.0);
    t.row("first write: us", 13.64, to_us(ssd.write(now, 0, 0, 1).unwrap() - now));
    let (mut ssd, now) = filled(0.0);
    t.row("first append: us", 17.49, to_us(ssd.append(now, 0, 1).unwrap().done - now));
    let one_page = 1.0 / 275_712.0;
    for (part, reset, finished, finish) in [
        (0.0, 1.61, 1.58, 0.0135),
        (one_page, 1.70, 1.66, 907.0),
        (0.0625, 5.16, 2.49, 848.0),
        (0.125, 6.05, 3.34, 792.0),
        (0.25, 7.88, 5.05, 681.0),
        (0.5, 11.32, 8.49, 457.0),
        (1.0 - one_page, 15.81, 15.36, 2.6),
    ] {
        let ms = |from: Ns, to: Ns| to_us(to - from) / 1e3;
        let (mut ssd, now) = filled(part);
        t.row(format!("reset, {part:.4} full: ms"), reset, ms(now, ssd.reset(now, 0).unwrap()));
        let (mut ssd, now) = filled(part);
        let done = ssd.finish(now, 0).unwrap();
        t.row(format!("finish, {part:.4} full: ms"), finish, ms(now, done));
        let now = done + SEC;
        let done = ssd.reset(now, 0).unwrap();
        t.row(format!("reset, finished {part:.4} full: ms"), finished, ms(now, done));
    }
    t.check();
}
