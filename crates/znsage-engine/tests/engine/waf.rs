// SPDX-License-Identifier: GPL-2.0-only
//! Write amplification under uniform random overwrites, against the bounds that the project
//! promises; and with the largest swap area.

use znsage_engine::{Config, Stats};

use crate::host::Host;
use crate::refusals::plain;
use crate::rng::Rng;

fn large() -> Config {
    Config {
        nr_zones: 512,
        zone_blocks: 64,
        chunk_pages: 8,
        nr_chunks: 16,
        nr_gc_chunks: 4,
        ..plain()
    }
}

/// Fills the slots, then overwrites `rounds` times as many at random. Returns the WAF of the
/// second half.
fn overwrite(cfg: &Config, rounds: u32) -> f64 {
    let mut h = Host::new(cfg);
    let mut rng = Rng::new(1);
    let write = |h: &mut Host, slot| {
        while !h.write(0, slot) {
            h.run_device();
        }
        h.run_device();
    };
    (0..cfg.nr_slots).for_each(|slot| write(&mut h, slot));
    let mut before = Stats::default();
    let writes = cfg.nr_slots * rounds;
    for i in 0..writes {
        if i == writes / 2 {
            before = h.e.stats();
        }
        write(&mut h, rng.below(cfg.nr_slots));
    }
    let st = h.e.stats();
    h.run_idle();
    h.check_at_rest();
    let host = (st.host_blocks - before.host_blocks) as f64;
    let gc = (st.gc_blocks - before.gc_blocks) as f64;
    let padding = (st.padding_blocks - before.padding_blocks) as f64;
    (host + gc + padding) / host
}

fn at_utilization(percent: u32) -> f64 {
    let mut cfg = large();
    cfg.nr_slots = cfg.nr_zones * cfg.zone_blocks / 100 * percent;
    let waf = overwrite(&cfg, 8);
    println!("WAF at {percent} %: {waf:.3}");
    waf
}

#[test]
fn at_40_percent() {
    assert!(at_utilization(40) <= 1.12);
}

#[test]
fn at_60_percent() {
    assert!(at_utilization(60) <= 1.48);
}

#[test]
fn at_80_percent() {
    assert!(at_utilization(80) <= 2.7);
}

#[test]
fn at_90_percent() {
    assert!(at_utilization(90) <= 5.2);
}

#[test]
fn with_the_largest_swap_area() {
    let mut cfg = Config { nr_zones: 40, ..plain() };
    cfg.nr_slots = cfg.max_slots();
    let full = f64::from(cfg.nr_slots) / f64::from(cfg.nr_zones * cfg.zone_blocks);
    let waf = overwrite(&cfg, 10);
    println!("WAF at {:.1} %: {waf:.2}", full * 100.0);
    // At worst, a victim of 32 blocks gains one block.
    assert!(waf <= 33.0);
}
