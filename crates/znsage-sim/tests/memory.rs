// SPDX-License-Identifier: GPL-2.0-only
//! Memory use of a run. One test, because it measures the whole process.

#![cfg(target_os = "linux")]

use znsage_sim::{run, Spec};

/// Peak resident bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).expect("a peak");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("KiB");
    kib << 10
}

/// Pages of a run.
fn pages(size: u64) -> u64 {
    let mut spec = Spec { size: Some(size), utilization: 80.0, ..Spec::default() };
    spec.set("device.zoned.zone_capacity", "8 MiB").unwrap();
    spec.host.memory = 64 << 20;
    (spec.run.warmup, spec.run.measure) = (0.0, 0.1);
    run(&spec).unwrap().pages
}

#[test]
fn a_page_costs_16_bytes_beside_the_engines_5() {
    let small = pages(1 << 30);
    let before = peak();
    let large = pages(8 << 30);
    let bytes = (peak() - before) as f64 / (large - small) as f64;
    // The engine takes 5.2 bytes per slot, one of them for the past; at 80 % in use that is
    // 6.5 bytes a page.
    println!("{bytes:.1} bytes a page");
    assert!(bytes < 6.5 + 16.0, "{bytes} bytes a page");
}
