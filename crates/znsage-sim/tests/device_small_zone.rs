// SPDX-License-Identifier: GPL-2.0-only
//! The small-zone device, `devices/hynix.toml`, against what its source, the
//! emulator NVMeVirt, computes for the same operations (ssd_config.h,
//! ZNS_PROTOTYPE, github.com/snu-csl/nvmevirt @61c90f77; its MiB/s are called
//! MB/s there).

use crate::common;

use common::{random_reads, run, set, stream, zns, By, Table};
use znsage_sim::device::{FaultKind, Params, ZnsSsd};
use znsage_sim::time::{to_us, MS, SEC};

/// 96 MiB zones on one die each: 48 blocks a write, no power of two.
#[test]
fn shape() {
    let (ssd, _) = zns("hynix", 32, 0);
    let g = ssd.geometry();
    assert_eq!((g.zone_blocks, g.zone_size_blocks, g.write_unit), (24_576, 24_576, 48));
    assert!(!g.zone_size_blocks.is_power_of_two());
    assert_eq!(g.zones, 341);
    for zone in [0, 1, 127, 200] {
        assert!((0..g.zone_blocks).all(|b| ssd.die(zone, b) == zone % 128));
    }
}

#[test]
fn writes() {
    let mut t = Table::new("Writes of 192 KiB");
    // 0.06 ms on PCIe, 0.23 on the channel, 1.91 programming.
    let (mut ssd, now) = zns("hynix", 32, 0);
    let done = ssd.append(now, 0, 48).unwrap().done;
    t.row("one: ms", 2.2, to_us(done - now) / 1e3);
    // 1.914 + 0.234 ms per 192 KiB: both occupy the die.
    for depth in [2, 8] {
        let (mut ssd, start) = zns("hynix", 32, 0);
        let seen = run(&mut ssd, start, SEC, &mut [stream(depth, 48, 0, 1, By::Append)]);
        t.row(format!("one zone, depth {depth}: MB/s"), 91.0, seen[0].mb_s(48));
    }
    // Zones on different dies do not disturb each other, up to the link's
    // 3200 MiB/s, which 37 of them fill. Zones 0 and 128 are on the same die.
    for (zones, published) in [(8, 8.0 * 91.0), (32, 32.0 * 91.0), (64, 3355.0), (128, 3355.0)] {
        let (mut ssd, start) = zns("hynix", 32, 0);
        let mut jobs: Vec<_> = (0..zones).map(|z| stream(2, 48, z, 1, By::Append)).collect();
        let mb_s: f64 = run(&mut ssd, start, 500 * MS, &mut jobs).iter().map(|s| s.mb_s(48)).sum();
        t.row(format!("{zones} zones: MB/s"), published, mb_s);
    }
    let (mut ssd, start) = zns("hynix", 32, 0);
    let mut jobs: Vec<_> = [0, 128].map(|z| stream(2, 48, z, 1, By::Append)).into();
    let mb_s: f64 = run(&mut ssd, start, SEC, &mut jobs).iter().map(|s| s.mb_s(48)).sum();
    t.row("two zones on one die: MB/s", 91.0, mb_s);
    // 16 dies on a channel: the bus (800 MiB/s) limits, not the dies (1.46 GB/s).
    let (mut ssd, start) = zns("hynix", 32, 0);
    let mut jobs: Vec<_> = (0..16).map(|i| stream(2, 48, 8 * i, 1, By::Append)).collect();
    let mb_s: f64 = run(&mut ssd, start, SEC, &mut jobs).iter().map(|s| s.mb_s(48)).sum();
    t.row("16 zones on one channel: MB/s", 839.0, mb_s);
    t.check();
}

#[test]
fn reads() {
    let mut t = Table::new("Random reads of 4 KiB");
    let (mut ssd, start) = zns("hynix", 32, 128);
    // 25.5 the cells, 32.2 firmware, 0.4 + 4.9 the channel, 1.2 PCIe.
    let seen = run(&mut ssd, start, 100 * MS, &mut [random_reads(1, 1, 128)]);
    t.row("depth 1: us", 64.2, seen[0].mean_us());
    // Submitted 0.3 ms into a write of 2.206 ms, it waits for the rest, as programs are
    // not suspended.
    let now = start + SEC;
    ssd.reset(now, 0).unwrap();
    let now = now + SEC;
    ssd.append(now, 0, 48).unwrap();
    let now = now + SEC;
    ssd.append(now, 0, 48).unwrap();
    let now = now + 300_000;
    t.row("behind a write: us", 64.2 + 1906.0, to_us(ssd.read(now, 0, 0, 1).unwrap() - now));
    t.check();
}

#[test]
fn only_whole_units_are_written() {
    let (mut ssd, now) = zns("hynix", 32, 0);
    for blocks in [1, 47, 49] {
        let kind = ssd.append(now, 0, blocks).unwrap_err().kind;
        let expected = if blocks > 48 { FaultKind::TooLong } else { FaultKind::NotAUnit };
        assert_eq!(kind, expected, "{blocks} blocks");
    }
    ssd.append(now, 0, 48).unwrap();
    assert_eq!(ssd.zone(0).write_pointer, 48);
}

/// The erase time is unknown (see the file); this shows its effect.
#[test]
fn a_reset_takes_the_die() {
    for erase_us in [2000u64, 5000] {
        let erase = erase_us.to_string();
        let params = Params::load("hynix", &set(&[("media.erase_us", &erase)])).unwrap();
        let mut ssd = ZnsSsd::new(&params, None, 1).unwrap();
        let mut now = SEC;
        for _ in 0..2 {
            now = ssd.append(now, 0, 48).unwrap().done;
            ssd.append(now, 128, 48).unwrap();
        }
        let now = now + SEC;
        let reset = ssd.reset(now, 0).unwrap();
        assert!(reset >= now + erase_us * 1000);
        // Zone 128 is on the same die, zone 1 is not.
        assert!(ssd.read(now, 128, 0, 1).unwrap() > now + erase_us * 1000);
        let other = ssd.append(now, 1, 48).unwrap().done;
        assert!(other < now + 3 * MS, "{}", other - now);
    }
}
