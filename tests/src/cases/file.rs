// SPDX-License-Identifier: GPL-2.0-only
//! Swap files: znsage on a regular file of ext4 or XFS. The module alone, by configfs.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::process::Stdio;

use super::devices::CONVENTIONAL;
use super::torture::for_minutes;
use crate::cleanup::MOUNT;
use crate::device::{load_module, Device, CONFIG};
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::mapper::Mapped;
use crate::null_blk::NullBlk;
use crate::outcome::{Context, Outcome};

crate::cases![file: ext4, xfs (each), refused, power_cut (more), power_cut_xfs (full),
    under_torture (more)];

const FILE: &str = "/run/vm-suite/swap";
const BYTES: u64 = 64 << 20;

/// How a file system is made, checked, and grown while it is mounted.
struct Kind {
    make: &'static str,
    check: &'static str,
    /// Fails if its journal is empty.
    dirty: &'static str,
    grow: &'static str,
}

const EXT4: Kind = Kind {
    make: "mkfs.ext4 -q -F $node 112M",
    check: "e2fsck -fn $node",
    dirty: "dumpe2fs -h $node | grep needs_recovery",
    grow: "resize2fs $node 128M",
};
const XFS: Kind = Kind {
    make: "mkfs.xfs -q -f --unsupported -d size=112m $node",
    check: "xfs_repair -n $node",
    dirty: "xfs_logprint -t $node | grep DIRTY",
    grow: "xfs_growfs -d .",
};

/// Fills the file system: gaps between files, a swap file in these gaps, and another file.
const FILL: &str = "
    i=0
    while fallocate -l 512K near$i 2> /dev/null && fallocate -l 8320K gap$i 2> /dev/null; do
        i=$((i + 1))
    done
    rm -f gap* near$i
    sync
    head -c 512K /dev/urandom > random
    for near in near*; do echo $near | cat - random | dd of=$near conv=notrunc status=none; done
    (umask 077; fallocate -l 64M swap)
    dd if=/dev/zero of=rest bs=256K status=none 2> /dev/null
    sync";

fn sh(node: &str, script: &str) -> Outcome<String> {
    guest::ok(&["sh", "-c", &format!("node={node}; cd {MOUNT}; {script}")])
}

fn mount(node: &str) -> Outcome {
    fs::create_dir_all(MOUNT).context(MOUNT)?;
    guest::ok(&["mount", node, MOUNT]).map(drop)
}

fn umount() -> Outcome {
    guest::ok(&["umount", MOUNT]).map(drop)
}

/// A full file system. Returns the sums of all files but the swap file.
fn fill(node: &str, kind: &Kind) -> Outcome<String> {
    fs::create_dir_all(MOUNT).context(MOUNT)?;
    sh(node, kind.make)?;
    mount(node)?;
    sh(node, FILL)?;
    sums(node)
}

fn sums(node: &str) -> Outcome<String> {
    sh(node, "md5sum near* random rest")
}

/// Nothing but the file has changed, also on the disk.
fn sound(node: &str, kind: &Kind, before: &str) -> Outcome {
    umount()?;
    guest::ok(&["sh", "-c", &format!("node={node}; {}", kind.check)])?;
    mount(node)?;
    let after = sums(node)?;
    ensure!(after == before, "other files have changed: {before} {after}");
    umount()
}

fn is(what: &str, got: io::Result<()>, errno: i32) -> Outcome {
    let code = got.as_ref().err().and_then(io::Error::raw_os_error);
    ensure!(code == Some(errno), "{what}: {got:?} instead of error {errno}");
    Ok(())
}

fn attach() -> Outcome<Device> {
    Device::attach(FILE, &[("force", "1")])
}

fn detach(device: Device) -> Outcome {
    let item = format!("{CONFIG}/suite");
    if guest::swaps().contains(&device.node()) {
        device.swapoff()?;
    }
    guest::write(&format!("{item}/power"), "0").context("power := 0")?;
    fs::remove_dir(&item).context(&item)?;
    unload()
}

fn unload() -> Outcome {
    guest::ok(&["rmmod", "znsage"]).map(drop)
}

/// `power` fails, and the file is as before.
fn refuse(path: &str, settings: &[(&str, &str)], errno: i32) -> Outcome {
    let item = format!("{CONFIG}/other");
    fs::create_dir(&item).context(&item)?;
    for (attribute, value) in [&[("backing", path)], settings].concat() {
        guest::write(&format!("{item}/{attribute}"), value).context(attribute)?;
    }
    guest::refuses(&format!("{item}/power"), "1", errno).context(path)?;
    fs::remove_dir(&item).context(&item)
}

/// The file cannot be changed, and the file system not be unmounted.
fn pinned(device: &Device) -> Outcome {
    let shown = guest::read(&device.attribute("backing"))?;
    ensure!(shown == FILE, "backing is {shown}");
    let mut file = OpenOptions::new().write(true).open(FILE).context(FILE)?;
    is("write", file.write_all(b"x"), libc::ETXTBSY)?;
    is("truncate", file.set_len(0), libc::ETXTBSY)?;
    is("unlink", fs::remove_file(FILE), libc::EPERM)?;
    is("rename", fs::rename(FILE, format!("{FILE}.moved")), libc::EPERM)?;
    drop(file);
    for busy in [&["umount", MOUNT][..], &["mount", "-o", "remount,ro", MOUNT]] {
        let ran = guest::run(busy)?;
        ensure!(ran.status != 0 && ran.said().contains("busy"), "{busy:?}: {}", ran.said());
    }
    refuse(FILE, &[("force", "1")], libc::EBUSY)
}

/// Nearly all of the file is in zones.
fn uses_the_file(device: &Device) -> Outcome {
    let zones = device.counter("zones_total")? + device.counter("zones_unused")?;
    let used = zones * device.counter("zone_bytes")?;
    print!("{} of {} KiB left over ... ", (BYTES - used) >> 10, BYTES >> 10);
    ensure!(used < BYTES, "a file in pieces fills {zones} zones");
    ensure!(used >= BYTES - BYTES / 32, "{used} bytes in zones");
    Ok(())
}

/// Swaps until GC has moved pages, on a full file system.
fn swaps(device: &Device) -> Outcome {
    guest::ok(&["mkswap", &device.node()])?;
    guest::ok(&["swapon", &device.node()])?;
    let much = ["--utilization", "70", "--rewrites", "1"];
    let rest = ["--seconds", "30", "--write-ratio", "1"];
    guest::without_read_ahead(|| device.bench(&[much, rest].concat()))?;
    device.swapoff()?;
    for (file, least) in [("zone_resets", 1), ("gc_blocks", 1)] {
        let n = device.counter(file)?;
        ensure!(n >= least, "{file} is {n}");
    }
    for file in ["write_errors", "read_errors", "zones_retired"] {
        let n = device.counter(file)?;
        ensure!(n == 0, "{file} is {n}");
    }
    Ok(())
}

/// Administration of the file system goes on beside the swap, which is written meanwhile.
fn beside(device: &Device, node: &str, kind: &Kind) -> Outcome {
    sh(node, "fstrim .")?;
    guest::ok(&["fsfreeze", "-f", MOUNT])?;
    let written = device.rewrite(4096, 2);
    guest::ok(&["fsfreeze", "-u", MOUNT])?;
    written?;
    sh(node, kind.grow).map(drop)
}

fn whole_life(kind: &Kind, load: fn(&Device) -> Outcome) -> Outcome {
    let node = guest::device(CONVENTIONAL)?;
    let before = fill(&node, kind)?;
    let device = attach()?;
    uses_the_file(&device)?;
    pinned(&device)?;
    load(&device)?;
    beside(&device, &node, kind)?;
    detach(device)?;
    // The file is a file again.
    let mut file = OpenOptions::new().write(true).open(FILE).context(FILE)?;
    file.write_all(b"x").and_then(|()| file.set_len(4096)).context("write to the file")?;
    drop(file);
    fs::remove_file(FILE).context("remove the file")?;
    sound(&node, kind, &before)
}

fn ext4(_: &mut Log) -> Outcome {
    whole_life(&EXT4, swaps)
}

/// Files that share blocks are refused, too.
fn xfs(log: &mut Log) -> Outcome {
    log.allow("or cannot be read");
    whole_life(&XFS, |device| device.rewrite(12288, 3))?;
    load_module()?;
    let node = guest::device(CONVENTIONAL)?;
    mount(&node)?;
    sh(&node, "rm -f rest; fallocate -l 20M swap; echo x | dd of=swap conv=notrunc; sync; cp --reflink=always swap clone")?;
    refuse(FILE, &[("force", "1")], libc::EINVAL)?;
    fs::remove_file(FILE).context(FILE)?;
    unload()?;
    umount()
}

/// What is no file of the right kind, or too small.
fn refused(log: &mut Log) -> Outcome {
    load_module()?;
    for words in ["cannot be opened", "or cannot be read", "cannot tell whether"] {
        log.allow(words);
    }
    let force = [("force", "1")];
    fs::create_dir_all(MOUNT).context(MOUNT)?;
    guest::ok(&["mount", "-t", "tmpfs", "-o", "size=32M", "tmpfs", MOUNT])?;
    sh("none", "fallocate -l 20M swap")?;
    refuse(FILE, &force, libc::EOPNOTSUPP)?;
    umount()?;

    let node = guest::device(CONVENTIONAL)?;
    sh(&node, "mkfs.ext4 -q -F $node 80M")?;
    mount(&node)?;
    refuse(MOUNT, &force, libc::EISDIR)?;
    refuse("/dev/null", &force, libc::ENOTBLK)?;
    refuse(FILE, &force, libc::ENOENT)?;
    // Once refused, it is a file.
    let again = |make: &str, settings: &[(&str, &str)], errno| -> Outcome {
        sh(&node, make)?;
        refuse(FILE, settings, errno).context(make)?;
        fs::remove_file(FILE).context(make)
    };
    again("truncate -s 20M swap", &force, libc::EINVAL)?;
    again("fallocate -l 8M swap", &force, libc::ENOSPC)?;
    again("fallocate -l 20M swap", &[], libc::ENOTEMPTY)?;
    // Holes of 512 KiB, into which no zone fits.
    let pieces = "i=0; while fallocate -l 512K a$i && fallocate -l 512K b$i; do i=$((i+1)); done \
                  2> /dev/null; rm a*; sync; fallocate -l 20M swap";
    again(pieces, &force, libc::ENOSPC)?;
    sh(&node, "rm b*; fallocate -l 20M swap; chmod 600 swap; mkswap swap; swapon swap")?;
    refuse(FILE, &force, libc::EBUSY)?;
    guest::ok(&["swapoff", FILE])?;
    unload()?;
    umount()
}

/// Files change meanwhile, and the journal with them.
const ACTIVITY: &str = "
    n=0
    while cp random busy && mv busy busy$((n % 4)); do
        n=$((n + 1))
        test $((n % 3)) != 0 || sync -f . || break
    done";

/// From one moment on, nothing reaches the disk any more, while swap and files are written.
/// When it is back, the journal is replayed, the other files are sound, and `on` takes the
/// file without a question.
fn cut(log: &mut Log, kind: &Kind) -> Outcome {
    for words in ["I/O error", "failed", "orruption", "cannot", "still hold"] {
        log.allow(words);
    }
    let below = guest::device(CONVENTIONAL)?;
    let sectors = guest::ok(&["blockdev", "--getsz", &below])?;
    let table = |target| format!("0 {} {target}", sectors.trim());
    let linear = table(format!("linear {below} 0"));
    let disk = Mapped::new(&linear)?;
    fill(disk.node(), kind)?;
    let before = sh(disk.node(), "rm rest; sync; md5sum near* random")?;
    let device = attach()?;
    let mut activity = guest::command(&["sh", "-c", &format!("cd {MOUNT}; {ACTIVITY}")])
        .stderr(Stdio::null())
        .spawn()
        .context("sh")?;
    let (written, failed) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| device.rewrite(8192, 1000));
        let much = || device.counter("zone_resets").is_ok_and(|n| n > 16);
        let written = guest::eventually(60.0, much);
        let lost = disk.becomes(&table("error".to_string()));
        (lost.map(|()| written), writer.join().is_ok_and(|ran| ran.is_err()))
    });
    ensure!(written?, "znsage has emptied too few zones");
    ensure!(failed, "a disk that is gone was written");
    activity.wait().context("sh")?;
    detach(device)?;
    umount()?;
    disk.becomes(&linear)?;
    let dirty = guest::run(&["sh", "-c", &format!("node={}; {}", disk.node(), kind.dirty)])?;
    ensure!(dirty.status == 0, "the journal is empty");
    mount(disk.node())?;
    for command in ["on", "off"] {
        guest::ok(&["znsage", command, FILE])?;
    }
    fs::remove_file(FILE).context("remove the file")?;
    let after = sh(disk.node(), "md5sum near* random")?;
    ensure!(after == before, "other files have changed: {before} {after}");
    umount()?;
    sh(disk.node(), kind.check)?;
    disk.remove()
}

fn power_cut(log: &mut Log) -> Outcome {
    cut(log, &EXT4)
}

fn power_cut_xfs(log: &mut Log) -> Outcome {
    cut(log, &XFS)
}

fn under_torture(_: &mut Log) -> Outcome {
    let node = guest::device(CONVENTIONAL)?;
    let before = fill(&node, &EXT4)?;
    let rest = NullBlk::conventional(&[("size", "128")])?;
    for_minutes(FILE, &rest.node())?;
    sound(&node, &EXT4, &before)
}
