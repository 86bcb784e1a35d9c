// SPDX-License-Identifier: GPL-2.0-only
//! Faults do not wait long where GC has most to do: examples/tails.toml on less.

use znsage_sim::result::Latency;
use znsage_sim::{run, Spec};

fn faults(size: u64, utilization: f64, set: &[(&str, &str)]) -> Latency {
    let mut spec = Spec { size: Some(size), utilization, ..Spec::default() };
    let same = [("workload", "zipf"), ("znsage.policy", "cpu"), ("host.memory", "24M")];
    for (key, value) in same.iter().chain(set) {
        spec.set(key, value).unwrap();
    }
    let r = run(&spec).unwrap();
    assert!(r.wrong.is_empty(), "{:?}", r.wrong);
    r.fault_latency
}

/// 44 ms when swap-out used up all room before it waited.
#[test]
fn p99_9_on_a_device_that_is_nearly_full() {
    let faults = faults(1 << 30, 90.0, &[("znsage.over-provisioning", "5")]);
    assert!(faults.p999_us < 25_000.0, "{} us", faults.p999_us);
}

/// 27 ms when streams waited for GC while others had room.
#[test]
fn the_longest_fault_with_large_zones() {
    let zones = [
        ("device.zoned.zones", "30"),
        ("device.zoned.zone_size", "32 MiB"),
        ("device.zoned.zone_capacity", "32 MiB"),
        ("run.warmup", "1.5"),
        ("run.measure", "1"),
    ];
    let faults = faults(960 << 20, 70.0, &zones);
    assert!(faults.max_us < 10_000.0, "{} us", faults.max_us);
}
