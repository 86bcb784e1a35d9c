// SPDX-License-Identifier: GPL-2.0-only
//! Checks whether a device may be used, and reads its limits. Writes nothing.

use crate::counters;
use crate::error::{reason, Error, Kind, Result};
use crate::sys::{absolute, FileKind, Sys};
use crate::zones::{State, Zone};
use crate::{queue, swaps, units};

/// Zones that the module needs besides the reserve: one being written, one that
/// GC empties meanwhile, and one between GC's watermarks.
const MIN_WORKING_ZONES: u64 = 3;

/// Block numbers have 32 bits.
pub const MAX_BLOCKS: u64 = 1 << 32;

/// Longest write, where the kernel tells no limit (kmod/geometry.c).
const LONGEST_WRITE: u64 = 1 << 20;

/// The unit of sizes in sysfs.
pub const SECTOR: u64 = 512;

/// A device that passed the checks.
#[derive(Debug)]
pub struct Backing {
    pub path: String,
    /// The kernel's name, e.g. nvme1n1; of a file, its path.
    pub name: String,
    /// Longest append.
    pub append_bytes: u64,
    /// The kernel reports a longer append than the paths take.
    pub narrowed: bool,
    /// None if the device has none: znsage makes virtual ones.
    pub zones: Option<Zones>,
    /// Capacity of all zones that can be used.
    pub usable_bytes: u64,
    /// None if it is a device.
    pub file: Option<FileState>,
}

/// A swap file, and what `on` does with it first.
#[derive(Debug)]
pub struct FileState {
    /// Make it.
    pub make: bool,
    /// It holds data.
    pub data: bool,
    /// Remove its data, and holes.
    pub clear: bool,
}

/// Zones that can be used.
#[derive(Debug)]
pub struct Zones {
    pub number: u64,
    /// Those that are not empty.
    pub written: u64,
    /// Capacity of the largest.
    pub bytes: u64,
}

/// Path and kernel name of a block device; of a file, twice its path.
pub fn locate(sys: &dyn Sys, device: &str) -> Result<(String, String)> {
    let path = match device.contains('/') {
        true => absolute(device)?,
        false => format!("/dev/{device}"),
    };
    let numbers = sys.block_device(&path).map_err(|e| {
        Error::new(Kind::Device, format!("{path}: {}", reason(&e)))
            .hint("`lsblk -o NAME,SIZE,ZONED` lists the block devices of this machine")
    })?;
    let Some((major, minor)) = numbers else {
        return match sys.stat(&path).map(|stat| stat.kind) {
            Ok(FileKind::Regular) => {
                let path = sys.canonical(&path).unwrap_or(path);
                Ok((path.clone(), path))
            }
            _ => Err(Error::new(Kind::Device, format!("{path} is not a block device"))),
        };
    };
    let link = format!("/sys/dev/block/{major}:{minor}");
    let name = sys.link_name(&link).map_err(|e| Error::io("resolve", &sys.at(&link), e))?;
    Ok((path, name))
}

/// All checks that do not depend on the settings or on what the device holds, cheapest
/// first.
pub fn inspect(sys: &dyn Sys, device: &str) -> Result<Backing> {
    let (path, name) = locate(sys, device)?;
    if queue::is_file(&name) {
        return Err(Error::new(Kind::Device, format!("{path} is not a block device")));
    }
    let disk = queue::disk_of(sys, &name);
    let append_bytes = check_kind(sys, &path, &name)?;
    check_unused(sys, &path, &name)?;
    if !queue::is_zoned(sys, &disk) {
        return Ok(Backing {
            usable_bytes: size(sys, &name).unwrap_or(0),
            zones: None,
            file: None,
            narrowed: false,
            append_bytes,
            path,
            name,
        });
    }
    let zones =
        sys.zones(&path).map_err(|e| Error::io("report the zones of", &sys.at(&path), e))?;
    let usable: Vec<Zone> =
        zones.iter().copied().filter(|z| z.sequential && z.state != State::Dead).collect();
    let path_bytes = queue::append_bytes(sys, &name).filter(|&least| least < append_bytes);
    Ok(Backing {
        append_bytes: path_bytes.unwrap_or(append_bytes),
        narrowed: path_bytes.is_some(),
        zones: Some(Zones {
            number: usable.len() as u64,
            written: usable.iter().filter(|z| z.state == State::Written).count() as u64,
            bytes: usable.iter().map(|z| z.capacity).max().unwrap_or(0),
        }),
        usable_bytes: usable.iter().map(|z| z.capacity).fold(0, u64::saturating_add),
        file: None,
        path,
        name,
    })
}

/// Size of a device or file in bytes.
pub fn size(sys: &dyn Sys, name: &str) -> Option<u64> {
    if queue::is_file(name) {
        return Some(sys.stat(name).ok()?.bytes);
    }
    let text = sys.read(&format!("{}/size", queue::directory(sys, name))).ok()?;
    text.trim().parse::<u64>().ok()?.checked_mul(SECTOR)
}

/// Accepts a zoned disk with zone append, and any disk or partition without zones;
/// returns the longest append, or write.
pub fn check_kind(sys: &dyn Sys, path: &str, name: &str) -> Result<u64> {
    let refuse = |message: String| Error::new(Kind::Device, message);
    let disk = queue::disk_of(sys, name);
    let zoned = match queue::attribute(sys, &disk, "zoned").as_deref() {
        Some("host-managed") => true,
        Some("host-aware") => {
            return Err(refuse(format!("{path} is host-aware, not host-managed"))
                .hint("a host-aware disk takes random writes: use it as ordinary swap"));
        }
        _ => false,
    };
    if sys.read(&format!("{}/ro", queue::directory(sys, name))).is_ok_and(|t| t.trim() == "1") {
        return Err(refuse(format!("{path} is read-only")));
    }
    if !zoned {
        match disk.trim_end_matches(|c: char| c.is_ascii_digit()) {
            "znsage" => return Err(refuse(format!("{path} is a znsage disk already"))),
            "ram" | "zram" => {
                return Err(refuse(format!("{path} is in memory, so znsage gains nothing there"))
                    .hint("`mkswap` and `swapon` are all that zram needs"));
            }
            _ => {}
        }
        return Ok(queue::longest_append(sys, &disk).unwrap_or(LONGEST_WRITE));
    }
    let append = queue::attribute(sys, name, "zone_append_max_bytes")
        .and_then(|t| t.parse().ok())
        .unwrap_or(0);
    if append == 0 {
        return Err(refuse(format!("{path} has no zone append command")).hint(format!(
            "/sys/block/{name}/queue/zone_append_max_bytes is 0 or missing; \
             znsage writes zones with zone append only"
        )));
    }
    Ok(append)
}

/// Refuses a device that is on, mounted, below another device or open
/// exclusively.
fn check_unused(sys: &dyn Sys, path: &str, name: &str) -> Result<()> {
    let busy = |message: String| Error::new(Kind::Busy, message);
    check_off(&counters::all(sys)?, path, name)?;
    let mounts = sys.read("/proc/mounts").unwrap_or_default();
    for line in mounts.lines() {
        let mut fields = line.split(' ');
        let (source, target) = (fields.next(), fields.next().unwrap_or("?"));
        if source == Some(path) || source == Some(&format!("/dev/{name}")) {
            return Err(busy(format!("{path} is mounted on {target}"))
                .hint(format!("run `umount {target}` first")));
        }
    }
    if swaps::area(sys, name).is_some() {
        return Err(
            busy(format!("{path} is in use as swap")).hint(format!("run `swapoff {path}` first"))
        );
    }
    if let Some(holder) = sys.list(&format!("{}/holders", queue::directory(sys, name))).first() {
        return Err(busy(format!("{path} is in use by {holder}")).hint(release(sys, path, holder)));
    }
    sys.claim(path).map_err(|e| match e.raw_os_error() {
        Some(libc::EBUSY) => busy(format!("{path} is in use by another program"))
            .hint(format!("`fuser -v {path}` and `lsblk {path}` show which")),
        _ => Error::io("open", &sys.at(path), e),
    })
}

/// Refuses what is below one of the znsage disks `on`.
pub fn check_off(on: &[counters::Device], path: &str, name: &str) -> Result<()> {
    match on.iter().find(|device| device.backing == name) {
        None => Ok(()),
        Some(device) => {
            let why = format!("{path} is the backing device of {}", device.name);
            Err(Error::new(Kind::Busy, why).hint(format!(
                "`znsage off {}` turns it off; `znsage status` shows it",
                device.name
            )))
        }
    }
}

/// How to end a device above. It may be left over: no program needs it any more.
fn release(sys: &dyn Sys, path: &str, holder: &str) -> String {
    let shows = format!("`lsblk {path}` shows what uses it");
    match sys.read(&format!("/sys/block/{holder}/dm/name")) {
        Ok(name) => format!("{shows}; `dmsetup remove {}` releases it", name.trim()),
        Err(_) if holder.starts_with("md") => {
            format!("{shows}; `mdadm --stop /dev/{holder}` releases it")
        }
        Err(_) => format!("stop {holder} first ({shows})"),
    }
}

/// Refuses a device with too few zones to write one while GC empties another.
pub fn check_zones(backing: &Backing, number: u64, reserve: u64) -> Result<()> {
    let need = reserve + MIN_WORKING_ZONES;
    if number >= need {
        return Ok(());
    }
    let hint = match backing.zones {
        Some(_) => "conventional, read-only and offline zones cannot be used",
        None => "choose a smaller --zone-size",
    };
    Err(Error::new(
        Kind::Device,
        format!(
            "{} has {number} zones that can be used; at least {need} are needed with a reserve of {reserve}",
            backing.path
        ),
    )
    .hint(hint))
}

/// Block numbers address 16 TiB with pages of 4 KiB.
pub fn check_reach(backing: &Backing, size: Option<u64>, page: u64) -> Result<()> {
    let reach = MAX_BLOCKS * page;
    if backing.usable_bytes <= reach || size.is_some() {
        return Ok(());
    }
    Err(Error::new(
        Kind::Device,
        format!(
            "{} has {}; znsage can address {}",
            backing.path,
            units::size(backing.usable_bytes),
            units::size(reach)
        ),
    )
    .hint("--size SIZE uses the first part of the device"))
}
