// SPDX-License-Identifier: GPL-2.0-only
//! Every system, with the content of every page tracked: reads return what was
//! written, and at the end all counters add up.

use znsage_sim::spec::{PlacementKind, PolicyKind, SystemKind, VictimKind, WorkloadKind};
use znsage_sim::{run, RunResult, Spec};

fn device_of(system: SystemKind) -> &'static str {
    match system {
        SystemKind::Stock | SystemKind::StockTrim => "conventional",
        SystemKind::ZnsPlus => "zns-plus",
        _ => "zn540",
    }
}

fn small(system: SystemKind) -> Spec {
    let mut spec = Spec { system, device: device_of(system).into(), ..Spec::default() };
    spec.size = Some(256 << 20);
    spec.host.memory = 8 << 20;
    spec.host.cpus = 4;
    (spec.run.warmup, spec.run.measure) = (1.0, 1.0);
    spec.run.shadow = true;
    if spec.device != "conventional" {
        // 136 zones of whole chunks.
        spec.set("device.zoned.zone_capacity", "1920 KiB").unwrap();
    }
    spec
}

/// Runs it and checks what must hold in any run.
fn sound(spec: &Spec) -> RunResult {
    let name = format!("{} {} {} %", spec.system, spec.workload, spec.utilization);
    let r = run(spec).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(r.wrong.is_empty(), "{name}: {:#?}", r.wrong);
    let w = &r.waf;
    let sum = w.host + w.gc + w.padding + w.metadata + w.device;
    assert!((sum - w.total).abs() < 1e-9, "{name}: {w:?}");
    r
}

#[test]
fn every_system_keeps_every_page() {
    for system in SystemKind::ALL {
        for utilization in [20.0, 60.0, 80.0] {
            let r = sound(&Spec { utilization, ..small(system) });
            let c = &r.counts.host;
            assert!(c.swapped_out > 50_000 && c.major_faults > 50_000, "{system}: {c:?}");
            assert_eq!(c.no_slot, 0, "{system}");
            assert!(r.waf.total >= 1.0 && r.waf.total < 8.0, "{system}: {:?}", r.waf);
        }
    }
}

#[test]
fn every_system_runs_every_workload() {
    for system in SystemKind::ALL {
        for workload in WorkloadKind::ALL.into_iter().filter(|w| !w.is_from_file()) {
            let mut spec = Spec { workload, utilization: 40.0, ..small(system) };
            (spec.run.warmup, spec.run.measure) = (0.2, 0.3);
            let r = sound(&spec);
            let requests =
                matches!(workload, WorkloadKind::Etc | WorkloadKind::YcsbA | WorkloadKind::YcsbB);
            assert_eq!(r.request_latency.is_some(), requests);
            assert!(r.operations_s > 100.0, "{system} {workload}: {r:?}");
        }
    }
}

#[test]
fn every_policy_of_the_published_systems_works() {
    let systems = [SystemKind::ZnSwap, SystemKind::SmallZone];
    for (p, policy) in PolicyKind::ALL.into_iter().enumerate() {
        for (s, system) in systems.into_iter().enumerate() {
            let workload = [WorkloadKind::Uniform, WorkloadKind::TwoTenants][(p + s) % 2];
            let mut spec = Spec { workload, ..small(system) };
            spec.published.policy = policy;
            spec.run.measure = 0.5;
            sound(&spec);
        }
    }
}

#[test]
fn every_policy_and_victim_rule_keeps_every_page() {
    for (p, policy) in PlacementKind::ALL.into_iter().enumerate() {
        for (v, victim) in VictimKind::ALL.into_iter().enumerate() {
            let oracle = [PlacementKind::RateOracle, PlacementKind::DeathOracle].contains(&policy);
            // No oracle knows what tenants do.
            let other = if oracle { WorkloadKind::Uniform } else { WorkloadKind::TwoTenants };
            // Each policy and each rule meets both workloads.
            let workload = [WorkloadKind::Zipf, other][(p + v) % 2];
            let mut spec = Spec { workload, utilization: 80.0, ..small(SystemKind::ZnSage) };
            (spec.znsage.policy, spec.znsage.victim) = (policy, victim);
            (spec.run.warmup, spec.run.measure) = (0.5, 0.3);
            let r = sound(&spec);
            let waf = r.waf.total;
            assert!(waf > 1.1 && waf < 8.0, "{policy} {victim} {workload}: {:?}", r.waf);
        }
    }
}

#[test]
fn fine_trim_lowers_the_device_waf_and_costs_cpu() {
    let cluster = sound(&Spec { utilization: 50.0, ..small(SystemKind::StockTrim) });
    let mut fine = small(SystemKind::StockTrim);
    fine.utilization = 50.0;
    fine.published.trim_pages = 1;
    let fine = sound(&fine);
    assert!(fine.waf.total < 0.8 * cluster.waf.total, "{:?} {:?}", fine.waf, cluster.waf);
    assert!(fine.cpu.gc > cluster.cpu.gc + 1.0, "{:?} {:?}", fine.cpu, cluster.cpu);
}

/// Without the kernel's callback, GC copies pages that are dead.
#[test]
fn discards_alone_cost_copies() {
    let told = Spec { utilization: 60.0, ..small(SystemKind::ZnSage) };
    let mut guessed = told.clone();
    guessed.znsage.discards_only = true;
    let (told, guessed) = (sound(&told).waf, sound(&guessed).waf);
    assert!(guessed.gc > 2.0 * told.gc, "{guessed:?} {told:?}");
}

/// Its kernel merges the zone appends of a plug (acsl-technion/znswap@4d384595,
/// `blk_try_merge()`): a batch of reclaim is 32 pages, one of GC 1,024. GC's reads of consecutive
/// blocks are merged too.
#[test]
fn znswap_merges_appends_and_reads_of_gc() {
    let few = |utilization| {
        let mut spec = Spec { utilization, ..small(SystemKind::ZnSwap) };
        spec.set("published.policy", "single").unwrap();
        let n = sound(&spec).counts;
        let blocks = |blocks: u64, commands: u64| blocks as f64 / commands as f64;
        (blocks(n.written_blocks, n.write_commands), blocks(n.read_blocks, n.read_commands))
    };
    let (append, read) = few(10.0);
    assert!((20.0..=32.0).contains(&append), "{append} blocks an append without GC");
    assert!(read < 1.5, "{read} blocks a swap-in");
    let (append, read) = few(80.0);
    assert!(append > 32.0, "{append} blocks an append with GC");
    assert!(read > 1.5, "{read} blocks a read with GC's");
}

#[test]
fn znswap_drops_pages_in_memory() {
    // Reads leave pages in the swap cache, as long as swap is not half full.
    let mut spec = small(SystemKind::ZnSwap);
    spec.workload = WorkloadKind::Zipf;
    spec.utilization = 42.0;
    spec.load.write_ratio = 0.3;
    spec.run.measure = 2.0;
    let r = sound(&spec);
    assert!(r.counts.system.dropped_cached > 0, "{:?}", r.counts);
    assert!(r.counts.host.dropped_clean > 0, "{:?}", r.counts);
}

#[test]
fn maps_in_chunks_are_written_and_counted() {
    let mut spec = small(SystemKind::SmallZone);
    spec.published.map_in_chunk = true;
    // Partial chunks have a map too.
    spec.published.flush_after = 50_000_000;
    let r = sound(&spec);
    // One page in 48 is a map.
    let written = 1.0 + r.waf.gc;
    assert!((r.waf.metadata - written / 47.0).abs() < 0.003, "{:?}", r.waf);
    assert_eq!(r.mapping.ram_bytes, 0);
}

#[test]
fn faults_read_what_gc_copies_if_they_must() {
    let reads_per_fault = |from_gc| {
        let mut spec = small(SystemKind::ZnSage2025);
        spec.utilization = 80.0;
        spec.published.fault_from_gc = from_gc;
        let n = sound(&spec).counts;
        let reads = n.read_blocks - n.system.gc_read_blocks;
        reads as f64 / (n.host.major_faults + n.host.readahead) as f64
    };
    let (with, without) = (reads_per_fault(true), reads_per_fault(false));
    assert!(with < without && (without - 1.0).abs() < 1e-3, "{with} {without}");
}

#[test]
fn threaded_logging_can_be_off() {
    let mut spec = small(SystemKind::ZnsPlus);
    spec.utilization = 80.0;
    let with = sound(&spec);
    spec.published.threaded_logging = false;
    let without = sound(&spec);
    assert!(with.waf.total < without.waf.total, "{:?} {:?}", with.waf, without.waf);
}

#[test]
fn a_write_unit_is_kept_by_padding() {
    for system in [SystemKind::ZnSage, SystemKind::SmallZone, SystemKind::ZnSage2025] {
        let mut spec = small(system);
        spec.set("device.zoned.write_unit", "192 KiB").unwrap();
        // One thread does not fill a chunk before its deadline.
        spec.host.threads = 1;
        spec.run.measure = 0.3;
        let r = sound(&spec);
        assert!(r.waf.padding > 0.0, "{system}: {:?}", r.waf);
    }
}

#[test]
fn a_cgroup_pays_for_its_garbage() {
    let limited = |isolate| {
        let mut spec = small(SystemKind::ZnSwap);
        spec.workload = WorkloadKind::TwoTenants;
        spec.utilization = 75.0;
        spec.published.policy = PolicyKind::Cgroup;
        spec.published.isolate = isolate;
        spec.published.cgroup_mb_s = 30;
        // So that the tenant that reads writes, too.
        spec.host.keep_slots = Some(false);
        sound(&spec)
    };
    let (with, without) = (limited(true), limited(false));
    assert!(with.waf.gc > 0.5, "{:?}", with.waf);
    for tenant in &without.tenants {
        assert!((27.0..31.0).contains(&tenant.swap_out_mb_s), "{tenant:?}");
    }
    let all = with.tenants.iter().map(|t| t.swap_out_mb_s).sum::<f64>() * with.waf.total;
    assert!((54.0..62.0).contains(&all), "{all} MB/s, garbage collection included");
}

/// With more than half of swap in use, pages that are only read keep their slots with ZNSwap,
/// so that reclaim need not write them; on the kernel's own swap path they do not.
#[test]
fn znswap_keeps_slots() {
    let of = |system, keep| {
        let mut spec = small(system);
        (spec.workload, spec.utilization) = (WorkloadKind::Zipf, 70.0);
        spec.load.write_ratio = 0.05;
        spec.host.keep_slots = keep;
        sound(&spec)
    };
    let own = of(SystemKind::ZnSwap, None);
    let kernel = of(SystemKind::ZnSwap, Some(false));
    assert!(own.operations_s > 1.5 * kernel.operations_s, "{own:?} {kernel:?}");
    assert_eq!(of(SystemKind::ZnSage, None), of(SystemKind::ZnSage, Some(false)));
}

#[test]
fn tenants_add_up() {
    let mut spec = small(SystemKind::ZnSage);
    spec.workload = WorkloadKind::TwoTenants;
    let r = sound(&spec);
    let sum = |f: fn(&znsage_sim::result::Tenant) -> f64| r.tenants.iter().map(f).sum::<f64>();
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6 * b;
    assert!(near(sum(|t| t.operations_s), r.operations_s));
    assert!(near(sum(|t| t.swap_out_mb_s), r.swap_out_mb_s));
    let faults: u64 = r.tenants.iter().map(|t| t.fault_latency.count).sum();
    assert_eq!(faults, r.fault_latency.count);
}

#[test]
fn maps_take_the_expected_memory() {
    let bytes = |system| {
        let mut spec = Spec { size: Some(512 << 20), ..small(system) };
        spec.host.memory = 16 << 20;
        spec.set("device.zoned.zone_capacity", "3840 KiB").unwrap();
        (spec.run.warmup, spec.run.measure) = (0.0, 0.05);
        sound(&spec).mapping
    };
    // The records of the zones, of two cache lines, count on so small ones. One zone of 32
    // has a list of slots, and slots are 88 % of the blocks. With 136 zones the default policy has
    // two streams, and a slot a byte for its page's past.
    let znsage = bytes(SystemKind::ZnSage);
    let slots = znsage.ram_bytes as f64 / znsage.ram_per_page;
    let (records, lists) = (136.0 * 128.0 / slots, 4.0 / 136.0 * 4.0 / 0.88);
    let most = 4.0 + 1.0 + records + lists;
    assert!((most - 0.01..most + 0.02).contains(&znsage.ram_per_page), "{most} {znsage:?}");
    for system in [SystemKind::SmallZone, SystemKind::ZnSage2025] {
        let m = bytes(system);
        assert!((m.ram_per_page - 24.0 / 0.88).abs() < 0.1, "{m:?}");
    }
    let znswap = bytes(SystemKind::ZnSwap);
    assert_eq!(znswap.ram_bytes, 0);
    assert!((znswap.device_per_page - 64.0 / 0.88).abs() < 0.1, "{znswap:?}");
}
