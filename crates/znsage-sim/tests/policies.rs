// SPDX-License-Identifier: GPL-2.0-only
//! docs/dev/results.md says what examples/policies.toml gives.

use std::path::Path;

use znsage_sim::spec::WorkloadKind;
use znsage_sim::sweep::Sweep;
use znsage_sim::{run, Spec};

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A cell of the table "Write amplification at 80 %", which is the only place of these
/// numbers.
fn documented(policy: &str, victims: &str, workload: WorkloadKind) -> f64 {
    let text = read("../../docs/dev/results.md");
    let rows = text.lines().skip_while(|line| !line.starts_with("| policy "));
    let mut rows = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let head = rows.next().expect("there is the table");
    let column = head.iter().position(|name| *name == workload.name()).expect("a column");
    let row = rows.find(|row| row.get(1..3) == Some(&[policy, victims][..])).expect("a row");
    row[column].parse().expect("a number")
}

/// The run of a cell.
fn spec(policy: &str, victims: &str, workload: WorkloadKind) -> Spec {
    let sweep = Sweep::parse("policies.toml", &read("examples/policies.toml"), &[]).unwrap();
    let found = sweep.points.into_iter().map(|p| p.spec).find(|s| {
        s.znsage.policy.name() == policy
            && s.znsage.victim.name() == victims
            && (s.workload, s.seed) == (workload, 1)
    });
    found.expect("the sweep has it")
}

/// Its cell of the default settings; all of the table takes minutes.
#[test]
fn the_policy_table_can_be_repeated() {
    let (policy, victims, workload) = ("heat", "age", WorkloadKind::Zipf);
    let r = run(&spec(policy, victims, workload)).unwrap();
    assert!(r.wrong.is_empty(), "{:?}", r.wrong);
    let says = documented(policy, victims, workload);
    assert!((r.waf.total - says).abs() < 0.0006, "{policy}, {victims}: {} {says}", r.waf.total);
}
