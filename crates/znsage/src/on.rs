// SPDX-License-Identifier: GPL-2.0-only
//! `znsage on`: look at everything first, then set up step by step; whatever
//! goes wrong takes back the steps done so far.

use std::io;
use std::time::Duration;

use serde_json::json;

use crate::cli::{OnArgs, OnCommand};
use crate::counters::{self, Device};
use crate::device::{self, Backing};
use crate::error::{reason, Error, Kind, Result};
use crate::module::{self, Source};
use crate::sys::Sys;
use crate::undo::Undo;
use crate::{conf, configfs, resume, scheduler, section, set, swaps, units};

/// Forward and reverse map, 4 bytes each.
const MAP_BYTES_PER_BLOCK: u64 = 8;

/// As the module's (kmod/config.c).
const DEFAULT_RESERVE: u32 = 2;

/// Likewise (kmod/geometry.c).
const DEFAULT_CHUNK: u64 = 256 << 10;

/// mkswap refuses anything smaller.
const MIN_PAGES: u64 = 10;

/// devtmpfs makes the node at once; a slow udev may still be renaming.
const NODE_TRIES: u32 = 100;
const NODE_PAUSE: Duration = Duration::from_millis(50);

/// What was set up, to tell the user.
#[derive(Debug)]
pub struct Report {
    pub device: Device,
    pub backing_path: String,
    pub priority: Option<i64>,
    /// How pages are encrypted, if the module tells.
    pub encrypt: Option<String>,
}

pub fn run(sys: &dyn Sys, what: &OnCommand, page: u64) -> Result<Report> {
    require_root(sys, "set up a swap device")?;
    match what {
        OnCommand::Device(args) => turn_on(sys, args, None, page),
        OnCommand::Profile(profile) => turn_on(sys, &conf::profile(sys, profile)?, None, page),
        OnCommand::Section(name) => {
            let conf = conf::read(sys);
            let args = conf.section(name)?;
            match section::already(sys, args)? {
                Some(report) => Ok(report),
                None => turn_on(sys, args, Some(name), page).map_err(|e| section::told(e, name)),
            }
        }
    }
}

/// For `section`, if it is one that asks.
fn turn_on(sys: &dyn Sys, args: &OnArgs, section: Option<&str>, page: u64) -> Result<Report> {
    let backing = examine(sys, args, page)?;
    let source = module::find(sys)?;

    let chunk = args.chunk.or(narrow_chunk(sys, args, &backing, page));
    let mut undo = Undo::new(sys);
    let remembered = match section {
        Some(name) => section::remember(sys, name, &backing.name, &mut undo),
        None => Ok(()),
    };
    match remembered.and_then(|()| set_up(sys, args, &backing, chunk, &source, &mut undo)) {
        Ok(report) => Ok(report),
        Err(e) => Err(undo.roll_back(e)),
    }
}

/// All that can be told of a device with such settings before anything is
/// changed; for root.
pub fn examine(sys: &dyn Sys, args: &OnArgs, page: u64) -> Result<Backing> {
    let backing = device::inspect(sys, &args.device, args.force)?;
    resume::check(sys, &backing.path, &backing.name)?;
    check_settings(args, &backing, page)?;
    check_memory(sys, args, &backing, page)?;
    Ok(backing)
}

pub fn require_root(sys: &dyn Sys, purpose: &str) -> Result<()> {
    match sys.is_root() {
        true => Ok(()),
        false => Err(Error::new(Kind::Environment, format!("only root can {purpose}"))
            .hint("run it with sudo")),
    }
}

/// Settings against the device. The module checks again; what it would call
/// "invalid argument" gets its own sentence here.
fn check_settings(args: &OnArgs, backing: &Backing, page: u64) -> Result<()> {
    let reserve = u64::from(args.reserve.unwrap_or(DEFAULT_RESERVE));
    device::check_zones(backing, reserve)?;
    device::check_reach(backing, args.size, page)?;
    let unit = args.write_unit.unwrap_or(page);
    check_write_size("--write-unit", unit, page, page, backing)?;
    if let Some(chunk) = args.chunk {
        check_write_size("--chunk", chunk, unit, page, backing)?;
    }
    let Some(size) = args.size else {
        return Ok(());
    };
    if size < MIN_PAGES * page {
        return Err(Error::new(
            Kind::Device,
            format!("--size: {} is too small", units::size(size)),
        )
        .hint(format!("swap space starts at {}", units::size(MIN_PAGES * page))));
    }
    let held_back = args.over_provisioning;
    let most = backing.usable_bytes / 100 * u64::from(100 - held_back);
    if size > most {
        return Err(Error::new(
            Kind::Space,
            format!(
                "--size: {} do not fit on {}: with {held_back} % over-provisioning it holds {}",
                units::size(size),
                backing.path,
                units::size(most)
            ),
        )
        .hint("choose a smaller --size, or leave it out to use all"));
    }
    Ok(())
}

/// A chunk or write unit: whole `unit`s, in one append, within a zone.
fn check_write_size(
    option: &str,
    bytes: u64,
    unit: u64,
    page: u64,
    backing: &Backing,
) -> Result<()> {
    let refuse = |why: String| {
        Err(Error::new(Kind::Device, format!("{option}: {why}")).hint(format!(
            "{} takes appends of up to {} and has zones of {}",
            backing.path,
            units::size(backing.append_bytes),
            units::size(backing.zone_bytes)
        )))
    };
    let shown = units::size(bytes);
    if bytes == 0 || !bytes.is_multiple_of(page) {
        refuse(format!("{bytes} bytes are not a multiple of the page ({})", units::size(page)))
    } else if !bytes.is_multiple_of(unit) {
        refuse(format!("{shown} are not a multiple of the write unit ({})", units::size(unit)))
    } else if bytes > backing.append_bytes {
        refuse(format!("{shown} do not fit in one append"))
    } else if bytes > backing.zone_bytes {
        refuse(format!("{shown} do not fit in a zone"))
    } else {
        Ok(())
    }
}

fn check_memory(sys: &dyn Sys, args: &OnArgs, backing: &Backing, page: u64) -> Result<()> {
    // Of a part, the module also maps the zones to work with; it is the one
    // to count them.
    let bytes = args.size.unwrap_or(backing.usable_bytes).min(backing.usable_bytes);
    let need = (bytes / page).min(device::MAX_BLOCKS) * MAP_BYTES_PER_BLOCK;
    let have = swaps::available_memory(sys)?;
    if need <= have {
        return Ok(());
    }
    Err(Error::new(
        Kind::Space,
        format!(
            "the map of {} takes {} of memory; {} are available",
            backing.path,
            units::size(need),
            units::size(have)
        ),
    )
    .hint("a device can be used in part: --size SIZE"))
}

/// The steps that change something, each with its way back.
fn set_up(
    sys: &dyn Sys,
    args: &OnArgs,
    backing: &Backing,
    chunk: Option<u64>,
    source: &Source,
    undo: &mut Undo,
) -> Result<Report> {
    let name = backing.name.as_str();
    // A program may be killed after it did its work, so what a program does
    // gets its way back before it runs.
    if *source != Source::Loaded {
        undo.push("unload the module", |sys| match module::loaded(sys) {
            true => module::unload(sys).map_err(|e| Error::new(Kind::Kernel, e)),
            false => Ok(()),
        });
        module::load(sys, source)?;
    }
    go_on(sys)?;
    configfs::ensure_mounted(sys)?;
    drop_leftover(sys, name)?;
    configfs::create(sys, name)?;
    undo.push("remove the configuration", {
        let name = name.to_string();
        move |sys| configfs::remove(sys, &name)
    });
    for (attribute, value) in settings(args, &backing.path, chunk) {
        configfs::set(sys, name, attribute, &value)
            .map_err(|e| set::refused_name(sys, attribute, &value).unwrap_or(e))?;
    }
    go_on(sys)?;
    attach(sys, args, backing)?;
    undo.push("detach the device", {
        let name = name.to_string();
        move |sys| configfs::power_off(sys, &name)
    });
    scheduler::set_none(sys, name, undo)?;
    go_on(sys)?;
    enable(sys, args, backing, undo)
}

/// A signal is taken between steps: the last step is complete or not begun.
fn go_on(sys: &dyn Sys) -> Result<()> {
    match sys.interrupted() {
        true => Err(Error::interrupted()),
        false => Ok(()),
    }
}

/// An item that was made but never powered: `znsage on` was killed. The lock
/// of on and off makes sure that nobody is working on it now.
fn drop_leftover(sys: &dyn Sys, name: &str) -> Result<()> {
    let left = configfs::items(sys).iter().any(|n| n == name);
    match left && !configfs::powered(sys, name) {
        true => configfs::remove(sys, name),
        false => Ok(()),
    }
}

/// What the module would choose for a chunk, as it does in kmod/geometry.c, is
/// too much for the paths to the device: the most that they take, in whole units.
fn narrow_chunk(sys: &dyn Sys, args: &OnArgs, backing: &Backing, page: u64) -> Option<u64> {
    let preferred = device::limit(sys, &backing.name, "optimal_io_size").unwrap_or(0);
    let least = backing.append_bytes;
    let unit = args.write_unit.unwrap_or(page);
    (backing.narrowed && preferred.max(DEFAULT_CHUNK) > least).then(|| least - least % unit)
}

/// Attributes to write. What the user left open stays with the module.
fn settings(args: &OnArgs, path: &str, chunk: Option<u64>) -> Vec<(&'static str, String)> {
    let mut list = vec![
        ("backing", path.to_string()),
        ("over_provisioning", args.over_provisioning.to_string()),
    ];
    let names = [("policy", &args.policy), ("victim", &args.victim)];
    list.extend(names.into_iter().filter_map(|(attribute, name)| Some((attribute, name.clone()?))));
    list.extend(args.encrypt.map(|how| ("encrypt", how.name().to_string())));
    let numbers = [
        ("size", args.size),
        ("chunk", chunk),
        ("write_unit", args.write_unit),
        ("reserve", args.reserve.map(u64::from)),
        ("stripe", args.stripe.map(u64::from)),
        ("pace", args.pace.map(u64::from)),
        ("deadline_us", args.deadline_us.map(u64::from)),
        ("force", args.force.then_some(1)),
    ];
    list.extend(
        numbers.into_iter().filter_map(|(attribute, value)| Some((attribute, value?.to_string()))),
    );
    list
}

/// power=1, and the module's reason if it refuses.
fn attach(sys: &dyn Sys, args: &OnArgs, backing: &Backing) -> Result<()> {
    let seen = sys.kernel_log().last().map_or(0, |l| l.number);
    configfs::power_on(sys, &backing.name).map_err(|e| {
        let prefix = format!("znsage: {}: ", backing.name);
        let logged = sys
            .kernel_log()
            .into_iter()
            .filter(|l| l.number > seen)
            .filter_map(|l| l.text.split_once(&prefix).map(|(_, why)| why.to_string()))
            .next_back();
        refused(&e, args, &backing.path, logged)
    })
}

fn refused(e: &io::Error, args: &OnArgs, path: &str, logged: Option<String>) -> Error {
    let (kind, hint) = match e.raw_os_error() {
        Some(libc::EBUSY) => (Kind::Busy, "the device is in use"),
        Some(libc::EAGAIN) => (Kind::Busy, "try again when the system is back"),
        Some(libc::ENOTEMPTY) => {
            (Kind::Busy, "--force takes the device anyway; everything on it is lost")
        }
        Some(libc::EUSERS) => (
            Kind::Busy,
            "`blkzone report` shows them, `blkzone finish` or `blkzone reset` ends them; or leave \
             out --size",
        ),
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::ENOTBLK) => {
            (Kind::Device, "is it still there?")
        }
        Some(libc::EOPNOTSUPP) => (Kind::Device, "a zoned device with zone append is needed"),
        Some(libc::EFBIG) => (Kind::Device, "--size SIZE uses the first part of the device"),
        Some(libc::EINVAL) => (Kind::Device, "the settings do not fit the device"),
        Some(libc::ENOSPC) if args.size.is_some() => {
            (Kind::Space, "choose a smaller --size, or leave it out")
        }
        Some(libc::ENOSPC) => {
            (Kind::Device, "--policy single and a smaller --reserve need fewer zones")
        }
        Some(libc::ENOPKG) => (
            Kind::Environment,
            "`modprobe xts` and `modprobe aes` have to succeed: the kernel needs CONFIG_CRYPTO_XTS \
             and CONFIG_CRYPTO_AES; or leave out --encrypt",
        ),
        Some(libc::ENOMEM) => (Kind::Space, "the map takes 8 bytes of memory for each page"),
        _ => (Kind::Kernel, "the kernel log (`dmesg`) may tell more"),
    };
    let why = logged.unwrap_or_else(|| reason(e));
    Error::new(kind, format!("cannot attach {path}: {why}")).hint(hint)
}

/// From the attached disk to the enabled swap area.
fn enable(sys: &dyn Sys, args: &OnArgs, backing: &Backing, undo: &mut Undo) -> Result<Report> {
    let name = format!("znsage{}", configfs::index(sys, &backing.name)?);
    let node = format!("/dev/{name}");
    wait_for(sys, &node)?;
    swaps::make(sys, &node)?;
    undo.push("disable the swap", {
        let (name, node) = (name.clone(), node.clone());
        move |sys| match swaps::area(sys, &name) {
            Some(_) => swaps::disable(sys, &node, &mut || ()),
            None => Ok(()),
        }
    });
    swaps::enable(sys, &node, args.priority)?;
    go_on(sys)?;
    report(sys, counters::read(sys, &name)?, &backing.path)
}

/// What there is to tell of a device that is on.
pub fn report(sys: &dyn Sys, device: Device, path: &str) -> Result<Report> {
    Ok(Report {
        backing_path: path.to_string(),
        priority: swaps::area(sys, &device.name).map(|a| a.priority),
        encrypt: counters::value(sys, &device.name, "encrypt").ok(),
        device,
    })
}

fn wait_for(sys: &dyn Sys, node: &str) -> Result<()> {
    for _ in 0..NODE_TRIES {
        if sys.exists(node) {
            return Ok(());
        }
        go_on(sys)?;
        sys.sleep(NODE_PAUSE);
    }
    Err(Error::new(Kind::Kernel, format!("{node} did not appear"))
        .hint("is devtmpfs mounted on /dev, or udev running?"))
}

impl Report {
    pub fn to_json(&self) -> serde_json::Value {
        json!({
            "version": 1,
            "priority": self.priority,
            "encrypt": self.encrypt,
            "device": self.device,
        })
    }

    pub fn to_text(&self) -> String {
        let d = &self.device;
        let priority = match self.priority {
            Some(n) => format!(", priority {n}"),
            None => String::new(),
        };
        let encrypted = match self.encrypt.as_deref() {
            None | Some("off") => "",
            Some(_) => ", encrypted",
        };
        let by_gc = match d.gc_shared {
            0 => format!(" and {} by GC", d.gc_stripe),
            _ => ", by GC as well".to_string(),
        };
        format!(
            "{} on {}: {} of swap{priority}{encrypted}\n\
             policy {} ({} streams), zones written at a time {}{by_gc}\n\
             chunks of {}, {} zones of {}\n\
             {} of memory for the map\n",
            d.name,
            self.backing_path,
            units::size(d.size_bytes),
            d.policy,
            d.streams,
            d.streams.saturating_mul(d.stripe),
            units::size(d.chunk_bytes),
            d.zones.total,
            units::size(d.zone_bytes),
            units::size(d.map_bytes),
        )
    }
}
