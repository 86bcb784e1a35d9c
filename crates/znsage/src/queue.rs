// SPDX-License-Identifier: GPL-2.0-only
//! Limits of a block device in sysfs.
//!
//! An NVMe device with several paths (two ports, or over a network) has a disk
//! (nvme1n1) and a hidden disk for each path (nvme1c0n1). As the longest append
//! the kernel reports the zone capacity, ignoring the limits of the paths; a
//! longer append than the path takes fails, and the zone with it.
//!
//! A swap file has the path as its name, and the limits of the device of its file system.

use crate::sys::Sys;

/// The smallest page, for the limit that counts pages.
const PAGE: u64 = 4096;

/// The disk that a partition is on, by the kernel's names; of a disk, itself.
pub fn disk_of(sys: &dyn Sys, name: &str) -> String {
    let name = &below(sys, name);
    let has = |disk: &String| sys.exists(&format!("/sys/block/{disk}/{name}/partition"));
    match sys.exists(&format!("/sys/block/{name}")) {
        true => name.to_string(),
        false => sys.list("/sys/block").into_iter().find(has).unwrap_or(name.to_string()),
    }
}

/// The kernel's name of the block device with these numbers.
pub fn name_of(sys: &dyn Sys, (major, minor): (u64, u64)) -> Option<String> {
    sys.link_name(&format!("/sys/dev/block/{major}:{minor}")).ok()
}

/// The block device that a swap file is on; of a device, itself.
pub fn below(sys: &dyn Sys, name: &str) -> String {
    let found = is_file(name).then(|| name_of(sys, sys.stat(name).ok()?.device)).flatten();
    found.unwrap_or_else(|| name.to_string())
}

/// Is this the name of a swap file? Those of devices have no slash.
pub fn is_file(name: &str) -> bool {
    name.starts_with('/')
}

/// The path of a device or swap file.
pub fn path(name: &str) -> String {
    if is_file(name) {
        name.to_string()
    } else {
        format!("/dev/{name}")
    }
}

/// The directory in sysfs of a disk or a partition.
pub fn directory(sys: &dyn Sys, name: &str) -> String {
    let name = &below(sys, name);
    match disk_of(sys, name) {
        disk if disk == *name => format!("/sys/block/{name}"),
        disk => format!("/sys/block/{disk}/{name}"),
    }
}

/// Was the disk or partition removed? Its name is not given to another one while it is
/// in use. A file system that is unmounted lazily hides its files.
pub fn is_gone(sys: &dyn Sys, name: &str) -> bool {
    let hidden = is_file(name) && sys.stat(name).is_err();
    !hidden && !sys.exists(&directory(sys, name))
}

/// Has the disk zones of its own?
pub fn is_zoned(sys: &dyn Sys, disk: &str) -> bool {
    attribute(sys, disk, "zoned").is_some_and(|kind| kind != "none")
}

/// Does the disk, or the disk of the partition, take discards?
pub fn discards(sys: &dyn Sys, name: &str) -> bool {
    limit(sys, &disk_of(sys, name), "discard_max_bytes").is_some()
}

/// True if nothing removes what was written: no zones to reset, no discard.
pub fn keeps(sys: &dyn Sys, name: &str) -> bool {
    !is_zoned(sys, &disk_of(sys, name)) && !discards(sys, name)
}

/// An attribute of the disk's queue.
pub fn attribute(sys: &dyn Sys, name: &str, attribute: &str) -> Option<String> {
    let text = sys.read(&format!("/sys/block/{name}/queue/{attribute}"));
    text.ok().map(|t| t.trim().to_string())
}

/// A limit on zones; 0 in sysfs means none.
pub fn limit(sys: &dyn Sys, name: &str, limit: &str) -> Option<u64> {
    attribute(sys, name, limit)?.parse().ok().filter(|&n| n > 0)
}

/// True for a path to a device.
pub fn is_hidden(sys: &dyn Sys, name: &str) -> bool {
    sys.read(&format!("/sys/block/{name}/hidden")).is_ok_and(|text| text.trim() == "1")
}

/// The longest append that all paths take; None without paths.
pub fn append_bytes(sys: &dyn Sys, name: &str) -> Option<u64> {
    let paths = sys.list("/sys/block").into_iter().filter(|path| leads_to(path, name));
    paths.filter(|path| is_hidden(sys, path)).filter_map(|path| longest_append(sys, &path)).min()
}

/// nvme1c0n2 is a path to nvme1n2.
fn leads_to(path: &str, name: &str) -> bool {
    let Some((subsystem, rest)) = path.split_once('c') else {
        return false;
    };
    let Some((controller, namespace)) = rest.split_once('n') else {
        return false;
    };
    controller.parse::<u32>().is_ok() && name == format!("{subsystem}n{namespace}")
}

/// The longest append, or write where there are no zones, that is not split.
pub fn longest_append(sys: &dyn Sys, path: &str) -> Option<u64> {
    let limits =
        [("zone_append_max_bytes", 1), ("max_sectors_kb", 1 << 10), ("max_segments", PAGE)];
    let bytes = limits.iter().filter_map(|(limit, unit)| {
        attribute(sys, path, limit)?.parse::<u64>().ok()?.checked_mul(*unit)
    });
    bytes.filter(|&bytes| bytes > 0).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::fake::Fake;

    #[test]
    fn path_names_lead_to_their_disk() {
        assert!(leads_to("nvme1c0n2", "nvme1n2"));
        assert!(leads_to("nvme0c12n1", "nvme0n1"));
        for (path, name) in [
            ("nvme1n2", "nvme1n2"),
            ("nvme1c0n2", "nvme1n1"),
            ("nvme1c0n2", "nvme2n2"),
            ("nvme1cn2", "nvme1n2"),
            ("cciss", "ciss"),
        ] {
            assert!(!leads_to(path, name), "{path} to {name}");
        }
    }

    #[test]
    fn narrowest_path_limits_appends() {
        let fake = Fake::new();
        assert_eq!(append_bytes(&fake, "nvme0n1"), None);
        for (path, append, segments) in
            [("nvme0c0n1", "524288", "127"), ("nvme0c1n1", "524288", "65535")]
        {
            fake.put(&format!("/sys/block/{path}/hidden"), "1\n");
            fake.put(&format!("/sys/block/{path}/queue/zone_append_max_bytes"), append);
            fake.put(&format!("/sys/block/{path}/queue/max_sectors_kb"), "1280\n");
            fake.put(&format!("/sys/block/{path}/queue/max_segments"), segments);
        }
        assert_eq!(append_bytes(&fake, "nvme0n1"), Some(127 * 4096));
        fake.put("/sys/block/nvme0c1n1/queue/zone_append_max_bytes", "131072\n");
        assert_eq!(append_bytes(&fake, "nvme0n1"), Some(131_072));
        assert_eq!(append_bytes(&fake, "nvme0n2"), None);
    }
}
