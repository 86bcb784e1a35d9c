// SPDX-License-Identifier: GPL-2.0-only
//! Swap files: which files and file systems znsage can use, and how large a new file
//! becomes. The module writes to the disk below a file, where the file system says that
//! the file is, so this must not change.

use std::path::Path;

use crate::cli::OnArgs;
use crate::device::{self, Backing, FileState};
use crate::error::{Error, Kind, Result};
use crate::sys::{absolute, FileKind, Stat, Sys};
use crate::{counters, queue, swaps, units};

/// The usual place.
pub const PLACE: &str = "/var/lib/znsage.swap";

/// The module's limit.
const LONGEST_PATH: usize = 255;

/// A new file leaves a file system this part of its size free, or `MOST_ROOM`.
const PART_LEFT: u64 = 20;
const MOST_ROOM: u64 = 8 << 30;

/// For what fits no zone, since extents of a file have any length (kmod/file.c), and for
/// the zones that GC needs: this part of the swap space, and `EXTRA`.
const EXTRA_PART: u64 = 16;
const EXTRA: u64 = 16 << 20;

const MIB: u64 = 1 << 20;

/// Flags of a file or directory, linux/fs.h: what they mean, and what to do.
const FLAGS: [(u32, &str, &str); 5] = [
    (0x4, "is compressed", "`chattr -c` it while it is empty"),
    (0x10, "is immutable", "`chattr -i` it"),
    (0x20, "can only be appended to", "`chattr -a` it"),
    (0x800, "is encrypted by the file system", "choose another directory, and --encrypt"),
    (0x0010_0000, "is protected by fs-verity", "choose another file"),
];

/// Why files of a file system cannot be used, and what to do instead; None if they can.
fn unfit(system: &str) -> Option<(&'static str, &'static str)> {
    const ELSEWHERE: &str = "put the file on ext4 or XFS, or use a partition";
    Some(match system {
        "ext4" | "xfs" => return None,
        "btrfs" | "bcachefs" | "nilfs2" => ("writes each block to a new place", ELSEWHERE),
        "f2fs" => ("moves blocks when it cleans", ELSEWHERE),
        "zfs" => ("needs memory to write", "use a partition: a ZFS volume can hang, too"),
        "overlay" | "overlayfs" | "aufs" => {
            ("lies on another file system", "name a file there; in a container, on the host")
        }
        "ecryptfs" => ("encrypts files", "choose another directory, and --encrypt"),
        "tmpfs" | "ramfs" | "rootfs" | "devtmpfs" | "hugetlbfs" => ("is in memory", ELSEWHERE),
        "ext2" | "ext3" => ("cannot reserve blocks", "`tune2fs -O extents` makes it ext4"),
        "nfs" | "nfs4" | "cifs" | "smb3" | "9p" | "ceph" | "afs" | "virtiofs" => {
            ("is on another machine", ELSEWHERE)
        }
        fuse if fuse.starts_with("fuse") => ("a program provides", ELSEWHERE),
        _ => ("is not supported", ELSEWHERE),
    })
}

/// The type of the file system that a path is on.
fn system_of(sys: &dyn Sys, path: &str) -> String {
    let mounts = sys.read("/proc/self/mountinfo").unwrap_or_default();
    let (mut longest, mut system) = (0, String::new());
    for line in mounts.lines() {
        let Some((mount, rest)) = line.split_once(" - ") else { continue };
        let point = swaps::unescaped(mount.split(' ').nth(4).unwrap_or_default());
        // A later one hides an earlier one.
        if Path::new(path).starts_with(&point) && point.len() >= longest {
            longest = point.len();
            system = rest.split(' ').next().unwrap_or_default().to_string();
        }
    }
    system
}

/// The path of a swap file that is to be used, or to be made; None if `device` names a
/// device.
pub fn named(sys: &dyn Sys, device: &str) -> Result<Option<String>> {
    if !device.contains('/') {
        return Ok(None);
    }
    let path = absolute(device)?;
    if path.starts_with("/dev/") || matches!(sys.block_device(&path), Ok(Some(_))) {
        return Ok(None);
    }
    if let Ok(path) = sys.canonical(&path) {
        return Ok(Some(path));
    }
    let (directory, name) = path.rsplit_once('/').unwrap_or_default();
    let directory = if directory.is_empty() { "/" } else { directory };
    let found = sys.canonical(directory).map_err(|_| {
        Error::new(Kind::Device, format!("there is no {path}, nor its directory"))
            .hint("name a disk or partition, or a file in a directory that exists")
    })?;
    Ok(Some(format!("{}/{name}", found.trim_end_matches('/'))))
}

/// All checks, before anything is changed.
pub fn inspect(sys: &dyn Sys, path: &str, args: &OnArgs) -> Result<Backing> {
    let refuse = |why: String| Error::new(Kind::Device, why);
    let directory = path.rsplit_once('/').map_or("/", |(d, _)| if d.is_empty() { "/" } else { d });
    let there = sys.stat(path).ok();
    let what = if there.is_some() { path } else { directory };
    let stat = sys.stat(what).map_err(|e| Error::io("look at", &sys.at(what), e))?;
    let append_bytes = check_place(sys, path, what, &stat)?;
    if path.len() > LONGEST_PATH {
        return Err(refuse(format!("{path}: znsage takes paths of up to {LONGEST_PATH} bytes"))
            .hint("choose a shorter one"));
    }
    let held_back = args.over_provisioning;
    let (bytes, state) = match (&there, args.size) {
        (Some(stat), _) => {
            check_file(sys, path, stat)?;
            let sparse = stat.bytes.saturating_sub(stat.allocated);
            check_room(sys, directory, sparse, held_back)?;
            let clear = stat.data || sparse > 0 || args.force;
            (stat.bytes, FileState { make: false, data: stat.data, clear })
        }
        (None, Some(size)) => {
            let bytes = bytes_for(size, held_back);
            check_room(sys, directory, bytes, held_back)?;
            (bytes, FileState { make: true, data: false, clear: false })
        }
        (None, None) => {
            return Err(refuse(format!("there is no {path}"))
                .hint("with --size SIZE, `on` makes a swap file there"));
        }
    };
    Ok(Backing {
        path: path.to_string(),
        name: path.to_string(),
        append_bytes,
        narrowed: false,
        zones: None,
        usable_bytes: bytes,
        file: Some(state),
    })
}

/// File system, its disk, and flags. Returns the disk's longest write.
fn check_place(sys: &dyn Sys, path: &str, what: &str, stat: &Stat) -> Result<u64> {
    let refuse = |why: String, cure: &str| Error::new(Kind::Device, why).hint(cure);
    let system = system_of(sys, what);
    if let Some((why, cure)) = unfit(&system) {
        return Err(refuse(format!("{path} is on {system}, which {why}"), cure));
    }
    if let Some((_, why, cure)) = FLAGS.iter().find(|(flag, ..)| stat.flags & flag != 0) {
        return Err(refuse(format!("{what} {why}"), cure));
    }
    let disk = queue::name_of(sys, stat.device)
        .ok_or_else(|| refuse(format!("{path} is on no disk"), "use a partition"))?;
    if queue::is_zoned(sys, &queue::disk_of(sys, &disk)) {
        let why = format!("{path} is on {disk}, which has zones: its file system moves blocks");
        return Err(refuse(why, "use a zoned device of its own"));
    }
    device::check_kind(sys, &format!("/dev/{disk}"), &disk)
}

/// A file that exists.
fn check_file(sys: &dyn Sys, path: &str, stat: &Stat) -> Result<()> {
    let refuse = |why: String| Error::new(Kind::Device, why);
    match stat.kind {
        FileKind::Regular => {}
        FileKind::Directory => {
            return Err(refuse(format!("{path} is a directory"))
                .hint(format!("name a file in it: {}/znsage.swap", path.trim_end_matches('/'))));
        }
        FileKind::Other => {
            return Err(refuse(format!("{path} is neither a block device nor a regular file")));
        }
    }
    device::check_off(&counters::all(sys)?, path, path)?;
    if swaps::is_on(sys, path) {
        return Err(Error::new(Kind::Busy, format!("{path} is in use as swap"))
            .hint(format!("run `swapoff {path}` first")));
    }
    if stat.owner != 0 || stat.mode & 0o077 != 0 {
        let why = format!("others than root may open {path} (mode {:o})", stat.mode);
        return Err(refuse(why).hint(format!("`chown root {path}` and `chmod 600 {path}` first")));
    }
    Ok(())
}

/// The size of a new file for that much swap space.
fn bytes_for(size: u64, held_back: u8) -> u64 {
    let (left, held_back) = (u64::from(100 - held_back), u64::from(held_back));
    let all = size.saturating_add((size / left).saturating_mul(held_back));
    all.saturating_add(size / EXTRA_PART + EXTRA).div_ceil(MIB).saturating_mul(MIB)
}

/// The swap space for which a new file is that large, about.
fn size_for(bytes: u64, held_back: u8) -> u64 {
    let left = u64::from(100 - held_back);
    (bytes.saturating_sub(EXTRA + MIB) / (100 * EXTRA_PART + left))
        .saturating_mul(left * EXTRA_PART)
}

/// What a new file may take, and what it must leave.
fn room(sys: &dyn Sys, directory: &str) -> Result<(u64, u64, u64)> {
    let (all, free) =
        sys.room(directory).map_err(|e| Error::io("look at", &sys.at(directory), e))?;
    let left = (all / PART_LEFT).min(MOST_ROOM);
    Ok((free.saturating_sub(left), free, left))
}

fn check_room(sys: &dyn Sys, directory: &str, bytes: u64, held_back: u8) -> Result<()> {
    let (most, free, left) = room(sys, directory)?;
    if bytes <= most {
        return Ok(());
    }
    let [bytes, free, left] = [bytes, free, left].map(units::size);
    let why = format!("the swap file takes {bytes}, but {directory} has {free} free");
    Err(Error::new(Kind::Space, why).hint(match size_for(most, held_back) {
        0 => format!("{left} must stay free"),
        size => format!("{left} must stay free: --size {}M fits", size / MIB),
    }))
}

/// The largest swap area in a new file at the usual place; None if there can be none.
pub fn most(sys: &dyn Sys) -> Option<u64> {
    let args = OnArgs { size: Some(0), ..OnArgs::plain(PLACE) };
    inspect(sys, PLACE, &args).ok()?.file.filter(|file| file.make)?;
    let (most, ..) = room(sys, PLACE.rsplit_once('/')?.0).ok()?;
    Some(size_for(most, args.over_provisioning)).filter(|size| *size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::fake::Fake;

    #[test]
    fn only_ext4_and_xfs_fit() {
        for system in ["ext4", "xfs"] {
            assert_eq!(unfit(system), None);
        }
        for system in ["btrfs", "f2fs", "overlay", "nfs4", "tmpfs", "zfs", "fuse.sshfs", "x", ""] {
            assert!(unfit(system).is_some(), "{system}");
        }
    }

    #[test]
    fn the_last_mount_above_counts() {
        let fake = Fake::new();
        fake.put(
            "/proc/self/mountinfo",
            "1 0 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n2 1 0:9 / /a\\040b rw - tmpfs x rw\n\
             3 1 8:2 / /var rw master:1 - ext4 /dev/sda2 rw\n4 3 8:3 / /var rw - xfs /dev/sda3 rw\n\
             garbage\n5 3 0:5 / /var/lib/x - btrfs\n",
        );
        for (path, want) in [
            ("/", "ext4"),
            ("/a b/x", "tmpfs"),
            ("/variable", "ext4"),
            ("/var/lib/znsage.swap", "xfs"),
            ("/var/lib/x/y", "btrfs"),
        ] {
            assert_eq!(system_of(&fake, path), want, "{path}");
        }
    }

    #[test]
    fn a_new_file_has_room_for_what_is_held_back() {
        for (size, held_back) in [(16 << 30, 12), (64 << 20, 12), (1 << 40, 0), (1 << 30, 90)] {
            let bytes = bytes_for(size, held_back);
            assert!(bytes.is_multiple_of(MIB));
            let usable = bytes / 100 * u64::from(100 - held_back);
            assert!(usable >= size, "{size}, {held_back} %: {bytes}");
            assert!(bytes_for(size_for(bytes, held_back), held_back) <= bytes);
            assert!(size_for(bytes, held_back) >= size - size / 50 - 4 * MIB, "{size}");
        }
        assert_eq!(units::size(bytes_for(16 << 30, 12)), "19.2 GiB");
        assert_eq!(bytes_for(u64::MAX, 90) % MIB, u64::MAX % MIB);
    }
}
