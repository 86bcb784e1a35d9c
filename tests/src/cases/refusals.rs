// SPDX-License-Identifier: GPL-2.0-only
//! Bad input that needs a kernel: the message says what is wrong, the exit status is right,
//! and nothing is written or set up. The command's own refusals are in
//! crates/znsage/tests/cases/.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;

use super::devices::{LARGE, MAIN, TIGHT};
use crate::child::{spawn, Group};
use crate::cleanup::{self, MOUNT};
use crate::device::{load_module, module_path, Device, CONFIG};
use crate::ensure;
use crate::guest::{self, Ran};
use crate::kmsg::Log;
use crate::mapper::Mapped;
use crate::memory::Memory;
use crate::null_blk::NullBlk;
use crate::outcome::{Context, Outcome};
use crate::pattern::PAGE;
use crate::zones;

crate::cases![refusals:
    already_on (more), open_elsewhere (more), mapped, mounted (each), signature, zones_not_empty,
    places_taken (full), too_few_zones (full), chunk_does_not_fit (full), unknown_by_configfs,
    configfs_power, too_large (full), module_of_another_kernel (each), off_without_memory (full)];

/// The exit statuses of `znsage`.
const ENVIRONMENT: i32 = 13;
pub const DEVICE: i32 = 14;
pub const BUSY: i32 = 15;
const SPACE: i32 = 16;
const KERNEL: i32 = 17;
pub const DATA: i32 = 18;

/// Everything that a failed `on` could change.
fn picture(backing: &str) -> Vec<String> {
    let mut picture = cleanup::traces();
    picture.extend(guest::list(CONFIG));
    picture.extend(guest::swaps());
    picture.extend(zones::report(backing));
    picture
}

fn judge(ran: &Ran, status: i32, words: &[&str]) -> Outcome {
    let said = ran.said();
    ensure!(ran.status == status, "exit status {} instead of {status}: {said}", ran.status);
    for word in words {
        ensure!(ran.stderr.contains(word), "the message lacks `{word}`: {said}");
    }
    Ok(())
}

/// `command` must fail like this, and change nothing.
fn refuses(mut command: Command, backing: &str, status: i32, words: &[&str]) -> Outcome {
    let before = picture(backing);
    let ran: Ran = command.output().map(Ran::from).context("run znsage")?;
    judge(&ran, status, words)?;
    ensure!(picture(backing) == before, "refused, but something has changed: {}", ran.said());
    Ok(())
}

pub fn on_refused(backing: &str, options: &[&str], status: i32, words: &[&str]) -> Outcome {
    let command = guest::command(&[&["znsage", "on", backing], options].concat());
    refuses(command, backing, status, words).context(format!("on {}", options.join(" ")))
}

fn already_on(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    on_refused(&device.backing, &[], BUSY, &["backing device of znsage0", "znsage off"])?;
    on_refused(&device.backing, &["--force"], BUSY, &["backing device of znsage0"])?;
    // The kernel's own answers, without the command.
    let item = format!("{CONFIG}/twice");
    fs::create_dir(&item).context(&item)?;
    guest::write(&format!("{item}/backing"), &device.backing).context(&item)?;
    guest::refuses(&format!("{item}/power"), "1", libc::EBUSY)?;
    fs::remove_dir(&item).context(&item)?;
    device.finish_sound()
}

fn open_elsewhere(_: &mut Log) -> Outcome {
    let backing = guest::device(MAIN)?;
    let mut options = OpenOptions::new();
    let held = options.read(true).custom_flags(libc::O_EXCL).open(&backing).context(&backing)?;
    on_refused(&backing, &[], BUSY, &["in use"])?;
    on_refused(&backing, &["--force"], BUSY, &["in use"])?;
    drop(held);
    Device::on(&backing, &[])?.finish_sound()
}

fn mapped(_: &mut Log) -> Outcome {
    let backing = guest::device(TIGHT)?;
    let sectors = guest::ok(&["blockdev", "--getsz", &backing])?;
    let mapped = Mapped::new(&format!("0 {} linear {backing} 0", sectors.trim()))?;
    on_refused(&backing, &[], BUSY, &["in use by dm-"])?;
    mapped.remove()
}

/// A zoned device with a file system, in its conventional zones.
fn mounted(_: &mut Log) -> Outcome {
    let null = with_conventional_zones()?;
    guest::ok(&["mkfs.ext4", "-q", "-F", "-E", "nodiscard", &null.node(), "12M"])?;
    fs::create_dir_all(MOUNT).context(MOUNT)?;
    guest::ok(&["mount", &null.node(), MOUNT])?;
    on_refused(&null.node(), &[], BUSY, &["is mounted on", MOUNT])?;
    on_refused(&null.node(), &["--force"], BUSY, &["is mounted on"])?;
    guest::ok(&["umount", MOUNT])?;
    on_refused(&null.node(), &[], DATA, &["signature of `ext4`", "--yes"])
}

fn with_conventional_zones() -> Outcome<NullBlk> {
    NullBlk::zoned(&[("size", "64"), ("zone_size", "1"), ("zone_nr_conv", "16")])
}

fn signature(_: &mut Log) -> Outcome {
    let null = with_conventional_zones()?;
    guest::ok(&["mkswap", &null.node()])?;
    on_refused(&null.node(), &[], DATA, &["signature of `swap`", "--yes"])?;
    Device::on(&null.node(), &["--force"])?.finish_sound()?;
    let left = guest::ok(&["wipefs", &null.node()])?;
    ensure!(left.is_empty(), "still there, in a conventional zone: {left}");
    Ok(())
}

fn zones_not_empty(log: &mut Log) -> Outcome {
    let backing = guest::device(MAIN)?;
    guest::ok(&[
        "dd",
        "if=/dev/urandom",
        &format!("of={backing}"),
        "bs=4K",
        "count=3",
        "oflag=direct",
        "conv=notrunc",
        "status=none",
    ])?;
    on_refused(&backing, &[], DATA, &["data in 1 of 1024 zones", "--yes"])?;
    // The module does not rely on the command.
    load_module()?;
    let item = format!("{CONFIG}/suite");
    fs::create_dir(&item).context(&item)?;
    guest::write(&format!("{item}/backing"), &backing).context(&item)?;
    guest::refuses(&format!("{item}/power"), "1", libc::ENOTEMPTY)?;
    ensure!(log.has("1 zones are not empty"), "the log does not say why");
    fs::remove_dir(&item).context(&item)?;
    Device::on(&backing, &["--force"])?.finish_sound()
}

/// An unused zone is open: it would take a place among the active zones.
fn places_taken(log: &mut Log) -> Outcome {
    let backing = guest::device(TIGHT)?;
    // The last of 64 MiB.
    let of = format!("of={backing}");
    let dd = ["dd", "if=/dev/zero", &of, "bs=1M", "seek=63", "count=4096", "iflag=count_bytes"];
    guest::ok(&[&dd[..], &["oflag=direct"]].concat())?;
    log.allow("count towards");
    on_refused(&backing, &["--force", "--size", "16M"], BUSY, &["count towards the 4", "blkzone"])?;
    guest::ok(&["blkzone", "reset", &backing])?;
    Device::on(&backing, &["--size", "16M"])?.finish_sound()
}

fn too_few_zones(_: &mut Log) -> Outcome {
    let null = NullBlk::zoned(&[("size", "4"), ("zone_size", "1")])?;
    on_refused(&null.node(), &[], DEVICE, &["4 zones", "at least 5 are needed"])?;
    // The smallest that works, works.
    let null = NullBlk::zoned(&[("size", "5"), ("zone_size", "1")])?;
    Device::on(&null.node(), &[])?.finish_sound()
}

fn chunk_does_not_fit(log: &mut Log) -> Outcome {
    let backing = guest::device(MAIN)?;
    log.allow("chunk of");
    load_module()?;
    for (setting, value, when_set) in
        [("chunk", "5000", true), ("write_unit", "6000", true), ("chunk", "1048576", false)]
    {
        let item = format!("{CONFIG}/suite");
        fs::create_dir(&item).context(&item)?;
        guest::write(&format!("{item}/backing"), &backing).context(&item)?;
        let path = format!("{item}/{setting}");
        if when_set {
            guest::refuses(&path, value, libc::EINVAL)?;
        } else {
            guest::write(&path, value).context(path)?;
            guest::refuses(&format!("{item}/power"), "1", libc::EINVAL)?;
        }
        fs::remove_dir(&item).context(&item)?;
    }
    guest::ok(&["rmmod", "znsage"]).map(drop)
}

fn unknown_by_configfs(_: &mut Log) -> Outcome {
    load_module()?;
    let item = format!("{CONFIG}/suite");
    fs::create_dir(&item).context(&item)?;
    for (setting, value) in [
        ("policy", "psychic"),
        ("over_provisioning", "91"),
        ("over_provisioning", "-1"),
        ("reserve", "0"),
        ("reserve", "1000"),
        ("size", "much"),
        ("deadline_us", "99"),
        ("deadline_us", "2000000"),
        ("force", "perhaps"),
        ("power", "yes please?"),
        ("backing", ""),
    ] {
        let path = format!("{item}/{setting}");
        let before = guest::read(&path)?;
        if value.is_empty() {
            guest::refuses(&path, "\n", libc::EINVAL)?;
        } else {
            guest::refuses(&path, value, libc::EINVAL)?;
        }
        ensure!(guest::read(&path)? == before, "{setting} was refused, but has changed");
    }
    let created = fs::write(format!("{item}/colour"), "red");
    ensure!(created.is_err(), "there is a setting `colour`");
    guest::refuses(&format!("{item}/power"), "1", libc::EINVAL).context("without a device")?;
    ensure!(guest::read(&format!("{item}/index"))? == "-1", "index");
    fs::remove_dir(&item).context(&item)?;
    guest::ok(&["rmmod", "znsage"]).map(drop)
}

/// Errors of `power` for devices that cannot be used.
fn configfs_power(log: &mut Log) -> Outcome {
    log.allow("cannot be opened");
    log.allow("size");
    load_module()?;
    let zoned = guest::device(MAIN)?;
    for (backing, setting, errno) in [
        ("/dev/nvme77n1", ("force", "0"), libc::ENOENT),
        ("/dev/null", ("force", "0"), libc::ENOTBLK),
        (zoned.as_str(), ("size", "1073741824"), libc::ENOSPC),
        (&zoned, ("size", "1000"), libc::EINVAL),
        (&zoned, ("zone_size", "4194304"), libc::EINVAL),
        (&zoned, ("gc_low", "5000"), libc::EINVAL),
    ] {
        let item = format!("{CONFIG}/suite");
        fs::create_dir(&item).context(&item)?;
        guest::write(&format!("{item}/backing"), backing).context(&item)?;
        guest::write(&format!("{item}/{}", setting.0), setting.1).context(setting.0)?;
        guest::refuses(&format!("{item}/power"), "1", errno).context(backing)?;
        ensure!(guest::read(&format!("{item}/power"))? == "0", "refused, but powered");
        fs::remove_dir(&item).context(&item)?;
    }
    guest::ok(&["rmmod", "znsage"])?;
    zones::all_empty(&zoned)
}

/// An empty device of 17 TiB; block numbers reach 16 TiB.
fn too_large(log: &mut Log) -> Outcome {
    let null =
        NullBlk::zoned(&[("memory_backed", "0"), ("size", "17825792"), ("zone_size", "16384")])?;
    on_refused(&null.node(), &[], DEVICE, &["17 TiB", "16 TiB", "--size"])?;
    load_module()?;
    let item = format!("{CONFIG}/suite");
    fs::create_dir(&item).context(&item)?;
    guest::write(&format!("{item}/backing"), &null.node()).context(&item)?;
    guest::refuses(&format!("{item}/power"), "1", libc::EFBIG)?;
    fs::remove_dir(&item).context(&item)?;
    guest::ok(&["rmmod", "znsage"])?;
    // Part of it can be used, but not as swap, since it keeps no data. Then
    // everything is undone.
    let mut command = guest::command(&["znsage", "on", &null.node(), "--size", "256M"]);
    command.env("LC_ALL", "C");
    log.allow("Unable to find swap-space signature");
    refuses(command, &null.node(), KERNEL, &["swapon failed"])?;
    let device = Device::attach(&null.node(), &[("size", "268435456")])?;
    let (used, unused) = (device.counter("zones_total")?, device.counter("zones_unused")?);
    ensure!(used < 10 && used + unused == 1088, "{used} zones used, {unused} unused");
    device.finish_sound()
}

/// The module as if it were built for another kernel.
fn module_of_another_kernel(_: &mut Log) -> Outcome {
    let backing = guest::device(MAIN)?;
    let release = guest::read("/proc/sys/kernel/osrelease")?;
    let other = release.replacen('6', "5", 1);
    let mut image = fs::read(module_path()?).context("read the module")?;
    let (from, to) = (format!("vermagic={release} "), format!("vermagic={other} "));
    let at = image.windows(from.len()).position(|w| w == from.as_bytes());
    let at = at.ok_or("the module has no vermagic of this kernel")?;
    image[at..at + to.len()].copy_from_slice(to.as_bytes());
    let path = "/tmp/znsage.ko";
    fs::write(path, image).context(path)?;
    let mut command = guest::command(&["znsage", "on", &backing]);
    command.env("ZNSAGE_MODULE", path);
    refuses(command, &backing, ENVIRONMENT, &["built for kernel", &other, &release])?;
    fs::remove_file(path).context(path)
}

/// More is swapped out than fits in memory: `off` says so, instead of making the kernel
/// kill a process.
fn off_without_memory(_: &mut Log) -> Outcome {
    const SWAPPED: usize = 220 << 20;
    const LEFT: u64 = 110 << 20;
    let device = Device::on(&guest::device(LARGE)?, &["--size", "400M"])?;
    let group = Group::new("away", 24 << 20)?;
    let mut away = spawn(Some(&group), |link| {
        let mut memory = Memory::new(SWAPPED)?;
        memory.fill(0..SWAPPED / PAGE, 1);
        link.point()?;
        memory.verify(0..SWAPPED / PAGE, 1)
    })?;
    away.reach()?;
    let hog_group = Group::new("hog", 4 << 30)?;
    hog_group.set("memory.swap.max", "0")?;
    let mut hog = spawn(Some(&hog_group), |link| {
        let available = guest::memory("MemAvailable")?;
        let mut memory = Memory::new(available.saturating_sub(LEFT) as usize / PAGE * PAGE)?;
        for page in 0..memory.pages() {
            memory.fill(page..page + 1, 1);
        }
        link.point()
    })?;
    hog.reach()?;
    let before = picture(&device.backing).len();
    let ran = crate::device::znsage(&["off"])?;
    judge(&ran, SPACE, &["are swapped out", "of memory", "--force"])?;
    ensure!(picture(&device.backing).len() == before, "refused, but something has changed");
    ensure!(guest::swaps().contains(&device.node()), "the swap is gone");
    hog.go_on()?;
    hog.join()?;
    away.go_on()?;
    away.join()?;
    device.finish_sound()
}
