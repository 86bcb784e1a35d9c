// SPDX-License-Identifier: GPL-2.0-only
//! NVMe devices with several paths: those in a network, and those with two
//! ports. The kernel shows one disk (nvme1n1) and hides one for each path
//! (nvme1c0n1). Of the longest append it promises what a zone holds, as if no
//! path had a limit; a longer one than the path takes fails, and the zone with it.

use crate::device::queue;
use crate::sys::Sys;

/// The least that a page has, for a limit that counts pages.
const PAGE: u64 = 4096;

/// One of several ways to a device, which has no node of its own.
pub fn is_hidden(sys: &dyn Sys, name: &str) -> bool {
    sys.read(&format!("/sys/block/{name}/hidden")).is_ok_and(|text| text.trim() == "1")
}

/// The longest append that all paths take; None for a device without.
pub fn append_bytes(sys: &dyn Sys, name: &str) -> Option<u64> {
    let paths = sys.list("/sys/block").into_iter().filter(|path| leads_to(path, name));
    paths.filter(|path| is_hidden(sys, path)).filter_map(|path| takes(sys, &path)).min()
}

/// nvme1c0n2 is a way to nvme1n2.
fn leads_to(path: &str, name: &str) -> bool {
    let Some((subsystem, rest)) = path.split_once('c') else {
        return false;
    };
    let Some((controller, namespace)) = rest.split_once('n') else {
        return false;
    };
    controller.parse::<u32>().is_ok() && name == format!("{subsystem}n{namespace}")
}

fn takes(sys: &dyn Sys, path: &str) -> Option<u64> {
    let limits =
        [("zone_append_max_bytes", 1), ("max_sectors_kb", 1 << 10), ("max_segments", PAGE)];
    let bytes = limits.iter().filter_map(|(limit, unit)| {
        queue(sys, path, limit)?.parse::<u64>().ok()?.checked_mul(*unit)
    });
    bytes.filter(|&bytes| bytes > 0).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::fake::Fake;

    #[test]
    fn paths_are_known_by_their_names() {
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
    fn the_narrowest_path_counts() {
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
