// SPDX-License-Identifier: GPL-2.0-only
//! The cgroup v2 hierarchy, and where v1's memory controller is.

use std::collections::BTreeMap;

use crate::sys::Sys;

/// Deeper than any real hierarchy.
const MOST_LEVELS: usize = 64;

/// The mount point.
pub fn mount(sys: &dyn Sys) -> Option<String> {
    let mounts = sys.read("/proc/mounts").unwrap_or_default();
    let mut lines = mounts.lines().map(|l| l.split(' '));
    lines.find_map(|mut f| {
        let point = f.nth(1)?.to_string();
        (f.next() == Some("cgroup2")).then_some(point)
    })
}

/// The mount point of v1's memory controller.
pub fn memory_v1(sys: &dyn Sys) -> Option<String> {
    let mounts = sys.read("/proc/mounts").unwrap_or_default();
    let of = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, point, "cgroup", options, ..] = fields[..] else { return None };
        options.split(',').any(|option| option == "memory").then(|| point.to_string())
    };
    mounts.lines().find_map(of)
}

/// The available controllers, such as memory and io.
pub fn controllers(sys: &dyn Sys, mount: &str) -> Vec<String> {
    let list = sys.read(&format!("{mount}/cgroup.controllers")).unwrap_or_default();
    list.split_whitespace().map(str::to_string).collect()
}

/// All groups by their id, which is the inode of the directory. Paths are as in
/// /proc/PID/cgroup: "/" is the root.
pub fn paths(sys: &dyn Sys) -> BTreeMap<u64, String> {
    let Some(mount) = mount(sys) else { return BTreeMap::new() };
    // A group may have been removed meanwhile.
    let by_id = |path: String| Some((sys.inode(&directory(&mount, &path)).ok()?, path));
    all(sys, &mount).into_iter().filter_map(by_id).collect()
}

/// The directory of a group.
pub fn directory(mount: &str, path: &str) -> String {
    format!("{mount}{}", path.trim_end_matches('/'))
}

/// All groups of a hierarchy, each before those in it.
pub fn all(sys: &dyn Sys, mount: &str) -> Vec<String> {
    let mut found = Vec::new();
    walk(sys, mount, "/", MOST_LEVELS, &mut found);
    found
}

fn walk(sys: &dyn Sys, mount: &str, path: &str, levels: usize, found: &mut Vec<String>) {
    found.push(path.to_string());
    for name in sys.directories(&directory(mount, path)) {
        if levels > 0 {
            let below = format!("{}/{name}", path.trim_end_matches('/'));
            walk(sys, mount, &below, levels - 1, found);
        }
    }
}
