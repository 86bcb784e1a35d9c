// SPDX-License-Identifier: GPL-2.0-only
//! Runs with compression: every page that is read is the right one, on both sorts of devices;
//! pages take as much of the flash as they compress to; a full log refuses pages in time.

use znsage_sim::{run, RunResult, Spec};

/// A run of a small device with a shadow.
fn spec(set: &[(&str, &str)]) -> Spec {
    let mut spec = Spec { size: Some(512 << 20), utilization: 70.0, ..Spec::default() };
    (spec.host.memory, spec.host.cpus, spec.host.threads) = (8 << 20, 4, 8);
    spec.run.shadow = true;
    for (key, value) in set {
        spec.set(key, value).unwrap();
    }
    spec
}

fn with(set: &[(&str, &str)]) -> RunResult {
    let result = run(&spec(set)).unwrap_or_else(|e| panic!("{set:?}: {e}"));
    assert_eq!(result.wrong, [""; 0], "{set:?}");
    result
}

#[test]
fn each_page_comes_back_on_every_device() {
    let mut moved = 0;
    for (device, workload) in [("zn540", "zipf"), ("conventional", "uniform")] {
        for (how, contents) in [("lz4", "memcached"), ("zstd", "gcc"), ("lz4", "noise")] {
            let set = [
                ("size", "256M"),
                ("device", device),
                ("workload", workload),
                ("znsage.compress", how),
                ("load.contents", contents),
            ];
            let r = with(&set);
            assert!(r.counts.host.major_faults > 5_000, "{set:?}: {:?}", r.counts.host);
            let c = r.contents.expect("the spec says what pages hold");
            assert!(c.live_pages > 40_000, "{set:?}: {c:?}");
            let noise = contents == "noise";
            assert_eq!(c.effective_capacity < 1.0, noise, "{set:?}: {c:?}");
            // GC has little to do where pages shrink.
            let gc = r.counts.system.gc_blocks;
            assert!(!noise || gc > 5_000, "{set:?}: {:?}", r.counts);
            moved += if noise { 0 } else { gc };
            assert_eq!(r.counts.system.filled_pages > 0, !noise, "{set:?}");
        }
    }
    assert!(moved > 500, "GC moved {moved} pages that shrink");
}

#[test]
fn flash_bytes_are_those_of_the_pages_and_of_gc() {
    let r = with(&[("znsage.compress", "zstd"), ("load.contents", "memcached")]);
    let c = r.contents.unwrap();
    assert!((c.flash_bytes_per_page - 4096.0 * r.waf.total).abs() < 1e-6);
    // Each append ends with a part of a page of the device.
    let mean = c.live_bytes as f64 / c.live_pages as f64;
    assert!(c.record_bytes_per_page > mean && c.record_bytes_per_page < 1.5 * mean, "{c:?}");
    let n = r.counts.system;
    assert!(n.host_pages > n.host_blocks && r.waf.host < 0.7, "{n:?}");
}

#[test]
fn pages_that_repeat_a_word_take_none_without_compression() {
    let r = with(&[("load.contents", "memcached")]);
    let (n, c) = (r.counts.system, r.contents.unwrap());
    assert!(n.filled_pages > 500 && n.host_pages - n.host_blocks == n.filled_pages, "{n:?}");
    assert!(c.effective_capacity > 1.005 && c.effective_capacity < 1.03, "{c:?}");
}

/// More is promised than fits. If pages shrink, all have room; else the log refuses some in
/// time, and the host has no other swap area for them.
#[test]
fn a_full_log_refuses_pages() {
    let set = |contents, utilization| {
        [
            ("znsage.compress", "zstd"),
            ("load.contents", contents),
            ("znsage.size", "1G"),
            ("utilization", utilization),
        ]
    };
    let r = with(&set("memcached", "150"));
    let (n, c) = (r.counts.system, r.contents.unwrap());
    assert!(n.refused_pages == 0 && c.live_pages > 190_000, "{n:?}, {c:?}");
    let e = run(&spec(&set("noise", "120"))).unwrap_err().to_string();
    assert!(e.contains("no page can be swapped out; the log was full and refused"), "{e}");
    assert!(spec(&set("noise", "2000")).check().is_err());
}

#[test]
fn a_run_repeats() {
    let set = [("znsage.compress", "lz4"), ("load.contents", "gcc"), ("run.shadow", "false")];
    assert_eq!(with(&set), with(&set));
}
