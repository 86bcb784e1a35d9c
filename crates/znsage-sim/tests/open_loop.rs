// SPDX-License-Identifier: GPL-2.0-only
//! Requests that arrive at a rate of their own.

use znsage_sim::spec::WorkloadKind;
use znsage_sim::{run, RunResult, Spec};

fn etc(rate: Option<f64>, measure: f64) -> RunResult {
    let mut spec = Spec { workload: WorkloadKind::Etc, utilization: 40.0, ..Spec::default() };
    spec.size = Some(256 << 20);
    spec.set("device.zoned.zone_capacity", "1920 KiB").unwrap();
    spec.host.memory = 8 << 20;
    (spec.run.warmup, spec.run.measure) = (1.0, measure);
    spec.load.rate = rate;
    let r = run(&spec).unwrap();
    assert!(r.wrong.is_empty(), "{:#?}", r.wrong);
    r
}

#[test]
fn requests_wait_if_they_come_faster_than_they_are_answered() {
    let closed = etc(None, 0.5);
    let latency = |r: &RunResult| r.request_latency.clone().unwrap();

    // At half of the rate they already wait for each other.
    let few = etc(Some(closed.operations_s / 4.0), 0.5);
    assert!((few.operations_s / closed.operations_s - 0.25).abs() < 0.01, "{few:?}");
    assert!(latency(&few).p99_us < 0.9 * latency(&closed).p99_us, "{few:?} {closed:?}");

    let more = |measure| etc(Some(closed.operations_s * 1.5), measure);
    let (short, long) = (more(0.25), more(0.5));
    // A third of the requests are late, and the last one by a third of the time.
    let late = long.seconds / 3.0 * 1e6;
    assert!((latency(&long).max_us / late - 1.0).abs() < 0.2, "{late} {long:?}");
    let longer = latency(&long).mean_us / latency(&short).mean_us;
    assert!((longer - 2.0).abs() < 0.2, "{longer}");
}
