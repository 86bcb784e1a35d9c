// SPDX-License-Identifier: GPL-2.0-only
//! Runs all seeds, including those of past findings.

use std::fs;
use std::path::Path;

#[test]
fn seeds_pass() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let mut failed = Vec::new();
    for (target, run) in znsage_fuzz::TARGETS {
        let mut names: Vec<_> =
            fs::read_dir(seeds.join(target)).unwrap().map(|f| f.unwrap().path()).collect();
        names.sort();
        assert!(names.len() > 1, "{target} has no seeds");
        for name in names {
            let data = fs::read(&name).unwrap();
            if std::panic::catch_unwind(|| run(&data)).is_err() {
                failed.push(name);
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn binary_data_passes() {
    for (_, run) in znsage_fuzz::TARGETS {
        for data in [&b""[..], b"\n", b"\0", b"\xff\xfe", b"\x1f\x8b", &[b'9'; 500]] {
            run(data);
        }
    }
}
