// SPDX-License-Identifier: GPL-2.0-only
//! Cost of a command to the simulator, in nanoseconds of one core: `cargo test
//! --release -p znsage-sim --test main device_speed -- --ignored --nocapture`.
//!
//! Asserts nothing, as the cost depends on the machine. A read or an append of
//! 256 KiB should be well below 200 ns.

use crate::common;

use std::time::Instant;

use common::{fill_zone, rng};
use rand::RngExt;
use znsage_sim::device::{ConventionalSsd, Params, ZnsSsd};
use znsage_sim::time::{Ns, SEC};

/// Prints the mean time of `times` calls; the virtual time goes through them.
fn measure(what: &str, times: u64, now: &mut Ns, mut call: impl FnMut(Ns) -> Ns) {
    let start = Instant::now();
    for _ in 0..times {
        *now = call(*now);
    }
    println!("{what:40} {:6.1} ns", start.elapsed().as_nanos() as f64 / times as f64);
}

#[test]
#[ignore = "a measurement"]
fn zoned() {
    for (name, chunk) in [("zn540", 64), ("hynix", 48)] {
        let mut ssd = ZnsSsd::new(&Params::load(name, &[]).unwrap(), Some(64 << 30), 1).unwrap();
        let g = ssd.geometry().clone();
        let (mut now, mut zone, mut rng) = (0, 0, rng(1));
        measure(&format!("{name}: append of {} KiB", 4 * chunk), 2_000_000, &mut now, |now| {
            if g.zone_blocks - ssd.zone(zone).write_pointer < chunk {
                ssd.finish(now, zone).unwrap();
                zone = (zone + 1) % g.zones;
                ssd.reset(now, zone).unwrap();
            }
            ssd.append(now, zone, chunk).unwrap().done
        });
        for zone in 0..g.zones {
            ssd.reset(now, zone).unwrap();
            now = fill_zone(&mut ssd, now, zone, 1.0);
        }
        now += SEC;
        measure(&format!("{name}: random read of 4 KiB"), 10_000_000, &mut now, |now| {
            let (zone, block) = (rng.random_range(0..g.zones), rng.random_range(0..g.zone_blocks));
            ssd.read(now, zone, block, 1).unwrap();
            now + 4000
        });
    }
}

#[test]
#[ignore = "a measurement"]
fn conventional() {
    let params = Params::load("conventional", &[]).unwrap();
    let mut ssd = ConventionalSsd::new(&params, Some(32 << 30), 1).unwrap();
    let (blocks, mut now, mut next, mut rng) = (ssd.blocks(), 0, 0, rng(1));
    measure("conventional: write of 4 KiB in order", blocks, &mut now, |now| {
        next += 1;
        ssd.write(now, next - 1, 1)
    });
    measure("conventional: random overwrite, with GC", 2 * blocks, &mut now, |now| {
        ssd.write(now, rng.random_range(0..blocks), 1)
    });
    println!("conventional: WAF {:.2} in all", ssd.counters().waf());
    measure("conventional: random read of 4 KiB", 10_000_000, &mut now, |now| {
        ssd.read(now, rng.random_range(0..blocks), 1);
        now + 4000
    });
}
