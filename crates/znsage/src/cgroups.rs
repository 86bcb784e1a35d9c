// SPDX-License-Identifier: GPL-2.0-only
//! The cgroup v2 hierarchy.

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

/// The available controllers, such as memory and io.
pub fn controllers(sys: &dyn Sys, mount: &str) -> Vec<String> {
    let list = sys.read(&format!("{mount}/cgroup.controllers")).unwrap_or_default();
    list.split_whitespace().map(str::to_string).collect()
}

/// All groups by their id, which is the inode of the directory. Paths are as in
/// /proc/PID/cgroup: "/" is the root.
pub fn paths(sys: &dyn Sys) -> BTreeMap<u64, String> {
    let mut found = BTreeMap::new();
    if let Some(mount) = mount(sys) {
        walk(sys, &mount, "/", MOST_LEVELS, &mut found);
    }
    found
}

fn walk(sys: &dyn Sys, mount: &str, path: &str, levels: usize, found: &mut BTreeMap<u64, String>) {
    let directory = format!("{mount}{}", path.trim_end_matches('/'));
    // The group may have been removed meanwhile.
    let Ok(number) = sys.inode(&directory) else { return };
    found.insert(number, path.to_string());
    for name in sys.directories(&directory) {
        if levels > 0 {
            let below = format!("{}/{name}", path.trim_end_matches('/'));
            walk(sys, mount, &below, levels - 1, found);
        }
    }
}
