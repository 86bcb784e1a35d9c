// SPDX-License-Identifier: GPL-2.0-only
//! The life of a device: what it may be made of, what may be above it and what others
//! leave on it.

use std::fs;

use super::refusals::{on_refused, BUSY, DATA, DEVICE};
use crate::cleanup::MOUNT;
use crate::device::Device;
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::mapper::Mapped;
use crate::null_blk::NullBlk;
use crate::outcome::{Context, Outcome};

crate::cases![life:
    disks_of_all_kinds (more), what_others_leave (more)];

const SECTORS: u64 = 64 << 11;
/// LVM without udev, and without files of its own.
const LVM: [&str; 2] = [
    "--config",
    "backup{backup=0 archive=0} activation{udev_sync=0 udev_rules=0} devices{use_devicesfile=0 types=[\"nullb\",16]}",
];

fn blkid(node: &str) -> Outcome<String> {
    guest::run(&["blkid", "-p", node]).map(|ran| ran.stdout)
}

/// On, used and off. The disk below shows no swap area.
fn on_off(node: &str, options: &[&str]) -> Outcome {
    let device = Device::on(node, &[&["--force"], options].concat())?;
    device.swapoff()?;
    let above = blkid(&device.node())?;
    ensure!(above.contains("TYPE=\"swap\""), "{} has {above}", device.node());
    device.rewrite(2048, 2)?;
    let below = blkid(node)?;
    ensure!(below.is_empty(), "while it is on, {node} has {below}");
    device.end()
}

/// On again without a question, since `off` has discarded everything.
fn on_off_on(node: &str, options: &[&str]) -> Outcome {
    on_off(node, options)?;
    Device::on(node, options)?.end()
}

/// Tables for the device mapper on top of the disk.
fn mapped(node: &str) -> Outcome {
    let key = "0".repeat(64);
    for target in [
        format!("linear {node} 0"),
        format!("crypt aes-xts-plain64 {key} 0 {node} 0 1 allow_discards"),
        format!("multipath 2 queue_mode bio 0 1 1 round-robin 0 1 1 {node} 1000"),
    ] {
        let what = target.split(' ').next().unwrap_or_default();
        let above = Mapped::new(&format!("0 {SECTORS} {target}")).context(what)?;
        on_refused(node, &["--force"], BUSY, &["in use by dm-"]).context(what)?;
        on_off_on(above.node(), &["--zone-size", "1M"]).context(what)?;
        above.remove()?;
    }
    Ok(())
}

fn looped() -> Outcome {
    let file = "/tmp/life.img";
    fs::File::create(file).and_then(|f| f.set_len(SECTORS * 512)).context(file)?;
    guest::ok(&["modprobe", "loop"])?;
    let node = guest::ok(&["losetup", "--find", "--show", file])?;
    // A loop device has no serial number, but a file of zeros is nothing to ask about.
    on_off_on(node.trim(), &["--zone-size", "1M"])?;
    guest::ok(&["losetup", "--detach", node.trim()])?;
    fs::remove_file(file).context(file)
}

/// Of any size and kind.
fn disks_of_all_kinds(_: &mut Log) -> Outcome {
    let small = NullBlk::conventional(&[("size", "4")])?;
    on_refused(&small.node(), &["--force"], DEVICE, &["16 MiB are needed"])?;
    for (megabytes, options) in
        [("16", ["--over-provisioning", "30"]), ("16777216", ["--size", "64M"])]
    {
        let null = NullBlk::conventional(&[("size", megabytes)])?;
        on_off_on(&null.node(), &options).context(format!("{megabytes} MiB"))?;
    }
    let null = NullBlk::conventional(&[("size", "64")])?;
    mapped(&null.node())?;
    looped()
}

/// How a disk gets into use, how the use ends, and what is then on the disk.
struct Use {
    format: &'static str,
    begin: Vec<Vec<&'static str>>,
    end: Vec<Vec<&'static str>>,
}

fn uses() -> Vec<Use> {
    let words = |line: &'static str| line.split(' ').collect::<Vec<_>>();
    let lvm = |line| [words(line), LVM.to_vec()].concat();
    let mounted = |format, mkfs| Use {
        format,
        begin: vec![words(mkfs), vec!["mount", "/dev/nullb0", MOUNT]],
        end: vec![vec!["umount", MOUNT]],
    };
    let raid = |create| Use {
        format: "linux_raid_member",
        begin: vec![words(create)],
        end: vec![words("mdadm --stop /dev/md127")],
    };
    vec![
        mounted("ext4", "mkfs.ext4 -q -F /dev/nullb0"),
        Use {
            format: "swap",
            begin: vec![words("mkswap /dev/nullb0"), words("swapon /dev/nullb0")],
            end: vec![words("swapoff /dev/nullb0")],
        },
        // Its superblock is at the end.
        raid("mdadm --create /dev/md127 --run --force --level=1 --raid-devices=1 --metadata=1.0 /dev/nullb0"),
        raid("mdadm --create /dev/md127 --run --force --level=1 --raid-devices=1 --metadata=1.2 /dev/nullb0"),
        Use {
            format: "LVM2_member",
            begin: vec![
                lvm("pvcreate --yes /dev/nullb0"),
                lvm("vgcreate suite /dev/nullb0"),
                lvm("lvcreate --yes --wipesignatures n --zero n --extents 4 --name one suite"),
            ],
            end: vec![lvm("vgchange --activate n suite")],
        },
    ]
}

/// `on` refuses a disk in use, asks about data that was left, and wipes what other tools would
/// recognize.
fn what_others_leave(_: &mut Log) -> Outcome {
    fs::create_dir_all(MOUNT).context(MOUNT)?;
    for Use { format, begin, end } in uses() {
        let null = NullBlk::conventional(&[("size", "64")])?;
        let node = null.node();
        for line in &begin {
            guest::ok(line)?;
        }
        on_refused(&node, &[], BUSY, &[]).context(format)?;
        on_refused(&node, &["--yes"], BUSY, &[]).context(format)?;
        for line in &end {
            guest::ok(line)?;
        }
        on_refused(&node, &[], DATA, &[&format!("signature of `{format}`"), "--yes"])?;
        on_off(&node, &["--zone-size", "1M", "--no-discard"]).context(format)?;
        let left = guest::ok(&["wipefs", &node])?;
        ensure!(left.is_empty(), "{format}: still there: {left}");
    }
    Ok(())
}
