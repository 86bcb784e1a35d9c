// SPDX-License-Identifier: GPL-2.0-only
//! `bench --verify` detects damage: the test writes into the memory of the worker.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const SIZE: u64 = 12 << 20;

/// The child of a process, if it has one.
fn child_of(pid: u32) -> Option<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    fs::read_to_string(path).ok()?.split_whitespace().next()?.parse().ok()
}

/// Start of the memory under test once it is filled: the resident mapping of that size.
fn arena_of(pid: u32) -> Option<u64> {
    let maps = fs::read_to_string(format!("/proc/{pid}/smaps")).ok()?;
    let mut lines = maps.lines();
    let start = lines.by_ref().find_map(|line| {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let end = u64::from_str_radix(end, 16).ok()?;
        (end - start == SIZE).then_some(start)
    })?;
    let resident = lines.find_map(|line| line.strip_prefix("Rss:"))?;
    let resident: u64 = resident.trim().strip_suffix(" kB")?.parse().ok()?;
    (resident * 1024 == SIZE).then_some(start)
}

fn wait_for<T>(mut what: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = what() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "timed out");
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn changed_word_and_lost_page_are_found() {
    let size = SIZE.to_string();
    let bench = Command::new(env!("CARGO_BIN_EXE_znsage"))
        .args(["bench", "--json", "--memory-limit", "none", "--size", &size])
        .args(["--write-ratio", "0", "--seconds", "2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let worker = wait_for(|| child_of(bench.id()));
    let arena = wait_for(|| arena_of(worker));
    let memory = OpenOptions::new().write(true).open(format!("/proc/{worker}/mem")).unwrap();
    memory.write_all_at(&[0; 8], arena + 5 * 4096 + 1024).unwrap();
    memory.write_all_at(&[0; 4096], arena + 9 * 4096).unwrap();

    let out = bench.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(1));
    let doc: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(doc["corrupt_pages"], 2);
    let mut found: Vec<&str> =
        doc["corrupt"].as_array().unwrap().iter().map(|t| t.as_str().unwrap()).collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "page 5 generation 1 holds its own words up to word 128, then zeros",
            "page 9 generation 1 holds only zeros",
        ]
    );
}
