// SPDX-License-Identifier: GPL-2.0-only
//! znsage on a conventional SSD, in virtual zones.

use znsage_sim::run;
use znsage_sim::spec::{PlacementKind, Spec, SystemKind, WorkloadKind};
use znsage_sim::RunResult;

fn conventional(system: SystemKind, workload: WorkloadKind) -> RunResult {
    conventional_with(system, workload, &[])
}

fn conventional_with(
    system: SystemKind,
    workload: WorkloadKind,
    set: &[(&str, &str)],
) -> RunResult {
    let mut spec = Spec { system, workload, device: "conventional".into(), ..Spec::default() };
    (spec.size, spec.utilization) = (Some(512 << 20), 80.0);
    spec.host.memory = 8 << 20;
    (spec.run.warmup, spec.run.measure, spec.run.shadow) = (3.0, 1.0, true);
    spec.znsage.policy = PlacementKind::Single;
    for (key, value) in set {
        spec.set(key, value).unwrap();
    }
    let result = run(&spec).unwrap();
    assert_eq!(result.wrong, Vec::<String>::new(), "{system} {workload}");
    result
}

/// Zones die as a whole, so the drive has next to nothing to copy, and the log's own copies
/// cost less than the drive's would.
#[test]
fn drive_copies_nothing_and_wears_less_than_under_stock_swap() {
    let stock = conventional(SystemKind::Stock, WorkloadKind::Uniform);
    let znsage = conventional(SystemKind::ZnSage, WorkloadKind::Uniform);
    println!("{:?} {:?}", stock.waf, znsage.waf);
    assert!(znsage.waf.device < 0.05, "{:?}", znsage.waf);
    assert!(znsage.waf.total < 0.7 * stock.waf.total, "{:?} {:?}", znsage.waf, stock.waf);
    let (slow, fast) = (stock.swap_out_mb_s, znsage.swap_out_mb_s);
    assert!(fast > 1.3 * slow, "{fast} MB/s instead of {slow}");
    let (stock, znsage) = (stock.fault_latency, znsage.fault_latency);
    assert!(znsage.p99_us < stock.p99_us, "{znsage:?} {stock:?}");
}

/// Zones of long and of short life would share the drive's superblocks, and make it copy. So
/// one zone is written at a time, or zones are in write streams of their own.
#[test]
fn drive_copies_nothing_under_skewed_accesses() {
    let stock = conventional(SystemKind::Stock, WorkloadKind::Zipf);
    for streams in ["1", "2"] {
        let set = [("device.conventional.write_streams", streams)];
        let znsage = conventional_with(SystemKind::ZnSage, WorkloadKind::Zipf, &set);
        println!("{:?} {:?}", stock.waf, znsage.waf);
        assert!(znsage.waf.device < 0.05, "{streams}: {:?}", znsage.waf);
        assert!(znsage.waf.total < 0.8 * stock.waf.total, "{:?} {:?}", znsage.waf, stock.waf);
    }
}

#[test]
fn size_of_zones_is_a_setting() {
    let mut spec = Spec { device: "conventional".into(), ..Spec::default() };
    (spec.system, spec.size) = (SystemKind::ZnSage, Some(256 << 20));
    spec.set("znsage.zone-size", "128M").unwrap();
    let refused = run(&spec).unwrap_err().to_string();
    assert!(refused.contains("2 zones are too few"), "{refused}");
    spec.device = "zn540".into();
    let refused = run(&spec).unwrap_err().to_string();
    assert_eq!(refused, "znsage.zone-size: the device has zones of its own");
}
