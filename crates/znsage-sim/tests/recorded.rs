// SPDX-License-Identifier: GPL-2.0-only
//! Recorded programs (tests/data) on every system, with the content of every page
//! tracked.

use std::path::{Path, PathBuf};

use znsage_sim::run::recorded_live;
use znsage_sim::spec::{PlacementKind, SystemKind, WorkloadKind};
use znsage_sim::time::BLOCK;
use znsage_sim::trace::Accesses;
use znsage_sim::{run, RunError, RunResult, Spec};

/// The recordings: programs, pages.
const ALL: [(&str, u32); 3] = [("gcc", 13_799), ("memcached", 11_707), ("tabs", 12_526)];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/{name}.accesses.gz"))
}

/// Four programs with half of their memory, on a device that is as full as is said.
fn spec(system: SystemKind, name: &str, utilization: f64) -> Spec {
    let device = match system {
        SystemKind::Stock | SystemKind::StockTrim => "conventional",
        SystemKind::ZnsPlus => "zns-plus",
        _ => "zn540",
    };
    let mut spec = Spec { system, device: device.into(), ..Spec::default() };
    spec.workload = WorkloadKind::Recorded;
    spec.load.trace = Some(path(name));
    (spec.host.cpus, spec.host.threads) = (2, 4);
    let recorded = Accesses::open(&path(name)).unwrap();
    spec.host.memory = u64::from(recorded.pages()) * 2 * BLOCK;
    let live = recorded_live(&spec, &recorded);
    spec.size = Some((live as f64 * BLOCK as f64 * 100.0 / utilization) as u64);
    if device != "conventional" {
        spec.set("device.zoned.zone_capacity", "1536 KiB").unwrap();
    }
    spec.run.shadow = true;
    (spec.run.warmup, spec.run.measure) = (0.5, 0.5);
    spec
}

fn sound(spec: &Spec) -> RunResult {
    let r = run(spec).unwrap_or_else(|e| panic!("{}: {e}", spec.system));
    assert!(r.wrong.is_empty(), "{}: {:#?}", spec.system, r.wrong);
    r
}

#[test]
fn every_system_runs_the_recorded_programs() {
    for (name, pages) in ALL {
        assert_eq!(Accesses::open(&path(name)).unwrap().pages(), pages, "{name}");
        for system in SystemKind::ALL {
            let spec = spec(system, name, 60.0);
            let r = sound(&spec);
            assert_eq!((r.pages, r.frames), (4 * u64::from(pages), 2 * u64::from(pages)));
            assert!((r.utilization - 60.0).abs() < 1.0, "{name} {system}: {}", r.utilization);
            let c = &r.counts.host;
            // Programs read as well as write: not every page that is swapped in changes.
            assert!(c.swapped_out > 1000 && c.major_faults > 1000, "{name} {system}: {c:?}");
            assert!(r.waf.total >= 1.0 && r.waf.total < 8.0, "{name} {system}: {:?}", r.waf);
        }
    }
}

#[test]
fn the_same_recording_gives_the_same_result() {
    let mut spec = spec(SystemKind::ZnSage, "gcc", 70.0);
    spec.znsage.policy = PlacementKind::Heat;
    assert_eq!(sound(&spec), sound(&spec));
}

#[test]
fn impossible_recordings_are_refused() {
    let mut without = spec(SystemKind::ZnSage, "gcc", 60.0);
    without.load.trace = None;
    let e = run(&without).unwrap_err();
    assert!(matches!(&e, RunError::Spec(e) if e.key == "load.trace"), "{e}");
    let mut roomy = spec(SystemKind::ZnSage, "gcc", 60.0);
    roomy.host.memory = 1 << 30;
    let e = run(&roomy).unwrap_err();
    assert!(matches!(&e, RunError::Spec(e) if e.key == "host.memory"), "{e}");
    let mut small = spec(SystemKind::ZnSage, "gcc", 60.0);
    small.size = small.size.map(|size| size / 2);
    let e = run(&small).unwrap_err();
    assert!(matches!(&e, RunError::Spec(e) if e.key == "size"), "{e}");
    let mut other = spec(SystemKind::ZnSage, "gcc", 60.0);
    other.load.trace = Some("tests/data/vm-uniform-80.trace.gz".into());
    let e = run(&other).unwrap_err();
    assert!(matches!(&e, RunError::Trace(e) if e.line == 1), "{e}");
}
