// SPDX-License-Identifier: GPL-2.0-only
//! The cgroups with swapped memory.

use std::collections::HashSet;

use crate::cgroups;
use crate::sys::Sys;

/// A leaf cgroup, so that nothing counts twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Path below the root, e.g. "system.slice/cron.service".
    pub path: String,
    /// The key of policies and zones: the inode of its directory.
    pub id: u64,
    /// On all swap areas.
    pub swap_bytes: u64,
    /// Pages swapped in from and out to the device, in bytes; None without the io controller.
    pub in_bytes: Option<u64>,
    pub out_bytes: Option<u64>,
    /// Share of the last ten seconds in which a task waited for memory, percent.
    pub pressure: Option<f64>,
}

/// Samples between two scans of the tree.
const LOOKS: u32 = 5;
/// Limit of directories to scan; with more, some groups are missing.
const MOST: usize = 1024;

#[derive(Default)]
pub struct Tree {
    root: Option<String>,
    leaves: Vec<(String, u64)>,
    looks: u32,
}

impl Tree {
    /// All groups with swapped memory, with the I/O of `device`. None without cgroup v2.
    pub fn read(&mut self, sys: &dyn Sys, device: &str) -> Option<Vec<Group>> {
        if self.looks.is_multiple_of(LOOKS) {
            self.root = cgroups::mount(sys);
            self.leaves = self.root.as_ref().map_or(Vec::new(), |root| leaves(sys, root));
        }
        self.looks = self.looks.wrapping_add(1);
        let root = self.root.as_ref()?;
        let number = sys.read(&format!("/sys/block/{device}/dev")).unwrap_or_default();
        let groups =
            self.leaves.iter().filter_map(|(path, id)| group(sys, root, path, *id, number.trim()));
        Some(groups.collect())
    }
}

/// Finds the leaves below `root` among the groups that account swap.
fn leaves(sys: &dyn Sys, root: &str) -> Vec<(String, u64)> {
    let mut todo = vec![String::new()];
    let mut counting: Vec<(String, u64)> = Vec::new();
    let mut outer = HashSet::new();
    let mut seen = 0;
    while let Some(path) = todo.pop().filter(|_| seen < MOST) {
        seen += 1;
        let full = if path.is_empty() { root.to_string() } else { format!("{root}/{path}") };
        let counts = sys.exists(&format!("{full}/memory.swap.current"));
        // Below a group that does not account swap, none does. The root is special.
        if counts || path.is_empty() {
            let join = |name| if path.is_empty() { name } else { format!("{path}/{name}") };
            todo.extend(sys.directories(&full).into_iter().map(join));
        }
        // The group may have been removed meanwhile.
        if let Some(id) = counts.then(|| sys.inode(&full).ok()).flatten() {
            outer.extend(path.rsplit_once('/').map(|(outer, _)| outer.to_string()));
            counting.push((path, id));
        }
    }
    counting.retain(|(path, _)| !outer.contains(path));
    counting
}

fn group(sys: &dyn Sys, root: &str, path: &str, id: u64, device: &str) -> Option<Group> {
    let read = |file: &str| sys.read(&format!("{root}/{path}/{file}")).ok();
    let swap_bytes = read("memory.swap.current")?.trim().parse::<u64>().ok().filter(|n| *n > 0)?;
    let io = read("io.stat");
    let bytes = |key| {
        let of_device = |line: &&str| line.split(' ').next() == Some(device);
        // The controller has no line for a device that the group has not used.
        let line = io.as_ref()?.lines().find(of_device).unwrap_or_default();
        word(line, key).unwrap_or("0").parse().ok()
    };
    let pressure = read("memory.pressure").unwrap_or_default();
    let some = pressure.lines().find(|line| line.starts_with("some "));
    Some(Group {
        path: path.to_string(),
        id,
        swap_bytes,
        in_bytes: bytes("rbytes"),
        out_bytes: bytes("wbytes"),
        pressure: some.and_then(|l| word(l, "avg10")?.parse().ok()),
    })
}

/// The value of `key` in "key=value key=value".
fn word<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split(' ').find_map(|w| w.strip_prefix(key)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::fake::Fake;

    const ROOT: &str = "/sys/fs/cgroup";

    fn machine() -> Fake {
        let fake = Fake::new();
        fake.put("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
        fake.put("/sys/block/znsage0/dev", "251:0\n");
        for (group, swap) in [("a", 9), ("a/x", 4), ("a/y", 5), ("a-b", 7), ("idle", 0)] {
            fake.put(&format!("{ROOT}/{group}/memory.swap.current"), &format!("{swap}\n"));
        }
        fake.put_dir(&format!("{ROOT}/a/x/no-memory-here"));
        fake
    }

    #[test]
    fn inner_groups_are_skipped() {
        let groups = Tree::default().read(&machine(), "znsage0").unwrap();
        let mut list: Vec<(&str, u64)> =
            groups.iter().map(|g| (g.path.as_str(), g.swap_bytes)).collect();
        list.sort_unstable();
        assert_eq!(list, [("a-b", 7), ("a/x", 4), ("a/y", 5)]);
        assert!(groups.iter().all(|g| g.id > 0 && g.in_bytes.is_none() && g.pressure.is_none()));
    }

    #[test]
    fn counters_of_groups_are_read() {
        let fake = machine();
        fake.put(
            &format!("{ROOT}/a-b/io.stat"),
            "8:0 rbytes=1 wbytes=2 rios=1 wios=1\n251:0 rbytes=4096 wbytes=8192 rios=1 wios=1\n",
        );
        let pressure = "some avg10=1.25 avg60=0.00 total=5\nfull avg10=0.50 total=1\n";
        fake.put(&format!("{ROOT}/a-b/memory.pressure"), pressure);
        let groups = Tree::default().read(&fake, "znsage0").unwrap();
        let group = groups.iter().find(|g| g.path == "a-b").unwrap();
        assert_eq!((group.in_bytes, group.out_bytes), (Some(4096), Some(8192)));
        assert_eq!(group.pressure, Some(1.25));
        fake.put(&format!("{ROOT}/a-b/io.stat"), "");
        let groups = Tree::default().read(&fake, "znsage0").unwrap();
        let group = groups.iter().find(|g| g.path == "a-b").unwrap();
        assert_eq!((group.in_bytes, group.out_bytes), (Some(0), Some(0)), "it has not swapped");
    }

    #[test]
    fn tree_is_scanned_now_and_then() {
        let (fake, mut tree) = (machine(), Tree::default());
        tree.read(&fake, "znsage0");
        fake.put(&format!("{ROOT}/new/memory.swap.current"), "1\n");
        let mut looks = 1;
        while tree.read(&fake, "znsage0").unwrap().len() < 4 {
            looks += 1;
        }
        assert_eq!(looks, LOOKS);
        fake.put("/proc/mounts", "");
        assert_eq!(Tree::default().read(&fake, "znsage0"), None);
    }
}
