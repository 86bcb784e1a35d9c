// SPDX-License-Identifier: GPL-2.0-only
//! Bounds on every run: log cleaning, the device, the cost of a fault; and
//! runs repeat.

use znsage_sim::spec::{PlacementKind, SystemKind, WorkloadKind};
use znsage_sim::{run, RunResult, Spec};

fn sound(spec: &Spec) -> RunResult {
    let r = run(spec).unwrap_or_else(|e| panic!("{e}"));
    assert!(r.wrong.is_empty(), "{:#?}", r.wrong);
    r
}

/// Uniform random writes, victims in the order they were written: 1/A = 1 -
/// exp(-1/(u A)), with A the write amplification and u the utilization.
fn bound(utilization: f64) -> f64 {
    let mut a = 2.0;
    for _ in 0..1000 {
        a = 1.0 / (1.0 - f64::exp(-1.0 / (utilization * a)));
    }
    a
}

#[test]
fn bound_matches_the_literature() {
    for (u, want) in [(0.6, 1.480), (0.8, 2.693), (0.9, 5.179)] {
        assert!((bound(u) - want).abs() < 0.001, "{u}: {}", bound(u));
    }
}

/// 2048 zones, so that the few open or empty ones are negligible.
fn cleans_at_or_below_the_bound(percent: f64) {
    let mut spec = Spec { utilization: percent, size: Some(1 << 30), ..Spec::default() };
    spec.set("device.zoned.zone_capacity", "512 KiB").unwrap();
    spec.set("device.zoned.max_append", "256 KiB").unwrap();
    // Resets take as long as those of large zones; time does not matter here.
    spec.set("device.zoned.reset_us", "[[0, 100], [1, 100]]").unwrap();
    spec.znsage.over_provisioning = 2.0;
    spec.znsage.policy = PlacementKind::Single;
    spec.host.slot_batch = 1;
    spec.host.memory = 8 << 20;
    spec.host.threads = 8;
    (spec.run.warmup, spec.run.measure) = (4.0, 1.0);
    let r = sound(&spec);
    let want = bound(percent / 100.0);
    println!("{percent} %: {:.3}, bound {want:.3}", r.waf.total);
    assert!(r.waf.total <= want, "{percent} %: {:?}, bound {want}", r.waf);
    assert!(r.waf.total > 0.93 * want, "{percent} %: {:?} is too good, bound {want}", r.waf);
}

#[test]
fn znsage_cleans_at_or_below_the_bound_at_60_percent() {
    cleans_at_or_below_the_bound(60.0);
}

#[test]
fn znsage_cleans_at_or_below_the_bound_at_80_percent() {
    cleans_at_or_below_the_bound(80.0);
}

#[test]
fn znsage_cleans_at_or_below_the_bound_at_90_percent() {
    cleans_at_or_below_the_bound(90.0);
}

fn small(system: SystemKind) -> Spec {
    let zoned = !matches!(system, SystemKind::Stock | SystemKind::StockTrim);
    let device = if zoned { "zn540" } else { "conventional" };
    let mut spec = Spec { system, device: device.into(), ..Spec::default() };
    spec.size = Some(256 << 20);
    spec.host.memory = 8 << 20;
    (spec.run.warmup, spec.run.measure) = (2.0, 1.0);
    if zoned {
        spec.set("device.zoned.zone_capacity", "1920 KiB").unwrap();
    }
    spec
}

#[test]
fn the_same_seed_gives_the_same_result() {
    for system in SystemKind::ALL {
        for workload in [WorkloadKind::Uniform, WorkloadKind::Etc, WorkloadKind::Zipf] {
            let mut spec = Spec { workload, ..small(system) };
            (spec.run.warmup, spec.run.measure) = (0.2, 0.3);
            let (first, again) = (sound(&spec), sound(&spec));
            assert_eq!(first, again);
            let other = sound(&Spec { seed: 2, ..spec });
            assert_ne!(first.counts, other.counts, "{system} {workload}");
        }
    }
}

#[test]
fn runs_do_not_disturb_each_other() {
    let spec = small(SystemKind::ZnSage);
    let alone = sound(&spec);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let spec = spec.clone();
            std::thread::spawn(move || sound(&spec))
        })
        .collect();
    for t in threads {
        assert_eq!(t.join().unwrap(), alone);
    }
}

#[test]
fn no_system_beats_the_device() {
    // A ZN540 writes 1.205 GB/s to its flash, and reads a page in 69 us.
    for system in SystemKind::ALL {
        let r = sound(&small(system));
        let written = r.swap_out_mb_s * r.waf.total;
        assert!(written < 1.02 * 1205.0, "{system}: {written} MB/s");
        let l = &r.fault_latency;
        assert!(l.p50_us > 4.0 + 55.0, "{system}: {l:?}");
        assert!(l.count > 10_000 && l.p50_us <= l.p99_us && l.p99_us <= l.max_us, "{l:?}");
        // Each thread has one fault at a time. (The last faults are not timed.)
        let most = 16.0 * 1e6 / l.mean_us;
        let faults = r.counts.host.major_faults as f64 / r.seconds;
        assert!(faults < 1.05 * most, "{system}: {faults} faults a second, at most {most}");
    }
}

#[test]
fn cpu_time_is_at_most_wall_time() {
    for cpus in [1, 2, 8] {
        let mut spec = small(SystemKind::ZnSage);
        spec.host.cpus = cpus;
        spec.host.threads = 32;
        spec.host.memory = 16 << 20;
        spec.utilization = 20.0;
        spec.load.think = 20_000;
        let r = sound(&spec);
        let busy = r.cpu.threads + r.cpu.gc;
        assert!(busy <= 100.0 * f64::from(cpus) + 0.1, "{cpus} CPUs: {:?}", r.cpu);
        if cpus == 1 {
            assert!(busy > 90.0, "one CPU for 32 threads is not idle: {:?}", r.cpu);
        }
    }
}

#[test]
fn more_memory_means_fewer_faults() {
    let faults = |memory: u64| {
        let mut spec = Spec { workload: WorkloadKind::Zipf, ..small(SystemKind::ZnSage) };
        // Memory and pages on the device together are the same.
        let all = 160u64 << 20;
        spec.utilization = 100.0 * (all - memory) as f64 / (256u64 << 20) as f64;
        spec.host.memory = memory;
        let r = sound(&spec);
        r.counts.host.major_faults as f64 / r.counts.host.accesses as f64
    };
    let (few, some, many) = (faults(8 << 20), faults(32 << 20), faults(96 << 20));
    assert!(few > 1.2 * some && some > 1.2 * many, "{few} {some} {many}");
}
