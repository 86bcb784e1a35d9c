// SPDX-License-Identifier: GPL-2.0-only
//! Between cases: takes down what a case left behind, and reports it.

use std::fs;

use crate::child::{remove_group, GROUPS, PREFIX};
use crate::device::CONFIG;
use crate::guest;
use crate::mapper;
use crate::null_blk;
use crate::scsi_debug;

/// Where cases mount file systems.
pub const MOUNT: &str = "/run/vm-suite";

/// Where `znsage policy load` pins what it loads.
const PINS: &str = "/sys/fs/bpf/znsage";

/// Traces of the module in the system; none if it was never loaded.
pub fn traces() -> Vec<String> {
    let mut traces = Vec::new();
    for directory in ["/dev", "/sys/block", "/sys/module", "/sys/kernel/config", "/sys/class/block"]
    {
        let names = guest::list(directory).into_iter().filter(|n| n.starts_with("znsage"));
        traces.extend(names.map(|n| format!("{directory}/{n}")));
    }
    let devices = guest::read("/proc/devices").unwrap_or_default();
    traces.extend(
        devices.lines().filter(|l| l.contains("znsage")).map(|l| format!("/proc/devices:{l}")),
    );
    traces.extend(threads().into_iter().map(|name| format!("thread {name}")));
    traces
}

/// Processes and kernel threads of znsage. Not kernel workers, whose names keep the last work
/// item for a while.
fn threads() -> Vec<String> {
    let pids = guest::list("/proc").into_iter().filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
    pids.filter_map(|pid| guest::read(&format!("/proc/{pid}/comm")).ok())
        .filter(|name| name.starts_with("znsage") || name.starts_with("kworker/R-zns"))
        .collect()
}

/// Removes everything that a case may leave behind. Returns what the case should have
/// removed itself, and what cannot be removed.
pub fn clean() -> Vec<String> {
    let mut left = Vec::new();
    for name in guest::list(GROUPS)
        .iter()
        .filter(|n| n.starts_with(PREFIX) || n.starts_with("znsage-bench"))
    {
        left.push(format!("the cgroup {name}"));
        remove_group(&format!("{GROUPS}/{name}"));
    }
    let mounts = guest::read("/proc/mounts").unwrap_or_default();
    for line in mounts.lines().filter(|l| l.contains(MOUNT)) {
        let point = line.split(' ').nth(1).unwrap_or(MOUNT);
        left.push(format!("the mount {point}"));
        let _ = guest::ok(&["umount", "-l", point]);
    }
    for path in guest::swaps() {
        left.push(format!("the swap area {path}"));
        left.extend(guest::ok(&["swapoff", &path]).err());
    }
    left.extend(clean_module());
    left.extend(mapper::remove_all());
    if !null_blk::remove_all() {
        left.push("a null_blk device that does not go".to_string());
    }
    if !scsi_debug::remove_all() {
        left.push("a scsi_debug disk that does not go".to_string());
    }
    left
}

fn clean_module() -> Vec<String> {
    let traces = traces();
    if traces.is_empty() {
        return traces;
    }
    for name in guest::list(CONFIG) {
        let item = format!("{CONFIG}/{name}");
        if !guest::exists(&format!("{item}/power")) {
            continue;
        }
        guest::eventually(5.0, || guest::write(&format!("{item}/power"), "0").is_ok());
        let _ = fs::remove_dir(item);
    }
    // Before the module: a policy in BPF uses it.
    for name in guest::list(PINS) {
        let _ = fs::remove_file(format!("{PINS}/{name}"));
    }
    let unloaded = guest::ok(&["rmmod", "znsage"]);
    let mut left = vec![format!("left behind: {}", traces.join(", "))];
    left.extend(unloaded.err());
    left
}
