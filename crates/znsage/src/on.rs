// SPDX-License-Identifier: GPL-2.0-only
//! `znsage on`: checks everything first, then sets up step by step. A failure
//! undoes the completed steps.

use std::io;
use std::time::Duration;

use serde_json::json;

use crate::cli::{OnArgs, OnCommand};
use crate::counters::{self, Device};
use crate::device::{self, Backing};
use crate::error::{reason, Error, Kind, Result};
use crate::examine::{check_owner, examine};
use crate::module::{self, Source};
use crate::sys::{require_root, Sys};
use crate::undo::Undo;
use crate::{choices, conf, configfs, contents, queue, record, scheduler, section, swaps, units};

/// The module's default (kmod/geometry.c).
const DEFAULT_CHUNK: u64 = 256 << 10;

/// devtmpfs makes the node at once, but a slow udev may still be renaming it.
const NODE_TRIES: u32 = 100;
const NODE_PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct Report {
    pub device: Device,
    pub backing_path: String,
    pub priority: Option<i64>,
    /// There is a filler: `--keep-slots`.
    pub keep_slots: bool,
    /// The module's attribute `encrypt`, if there is one.
    pub encrypt: Option<String>,
    /// Likewise, `compress`.
    pub compress: Option<String>,
    /// What was on the device and is lost.
    pub lost: Option<String>,
    /// Why /var/lib has no record of the device.
    unrecorded: Option<Error>,
    /// The device keeps what is written to it, also after `off`.
    pub keeps: bool,
}

pub fn run(sys: &dyn Sys, what: &OnCommand, page: u64) -> Result<Report> {
    require_root(sys, "set up a swap device")?;
    if let OnCommand::Device(args) = what {
        clean_up(sys, &args.device)?;
    }
    match what {
        OnCommand::Device(args) => turn_on(sys, args, None, page),
        OnCommand::Profile(profile) => turn_on(sys, &conf::profile(sys, profile)?, None, page),
        OnCommand::DryRun(_) => unreachable!("crate::dry_run handles it"),
        OnCommand::Section(name) => {
            let conf = conf::read(sys);
            let args = conf.section(name)?;
            clean_up(sys, &args.device)?;
            match already_on(sys, args)? {
                Some(report) => Ok(report),
                None => {
                    turn_on(sys, args, Some(name), page).map_err(|e| with_section_hint(e, name))
                }
            }
        }
    }
}

/// Detaches what an `on` that was killed had attached, but not yet made swap.
fn clean_up(sys: &dyn Sys, device: &str) -> Result<()> {
    let Ok((_, name)) = device::locate(sys, device) else { return Ok(()) };
    let unfinished = configfs::unfinished(&name);
    if !sys.exists(&unfinished) {
        return Ok(());
    }
    for device in counters::all(sys)?.into_iter().filter(|d| d.backing == name) {
        if swaps::area(sys, &device.name).is_none() {
            configfs::power_off(sys, &device.config)?;
            configfs::remove(sys, &device.config)?;
            scheduler::restore(sys, &name)?;
        }
    }
    sys.forget(&unfinished).map_err(|e| Error::io("remove", &sys.at(&unfinished), e))
}

/// `section` is the section of znsage.conf that `args` comes from.
fn turn_on(sys: &dyn Sys, args: &OnArgs, section: Option<&str>, page: u64) -> Result<Report> {
    let backing = examine(sys, args, page)?;
    let source = module::find(sys)?;
    if !args.force {
        consent(sys, &backing)?;
    }

    let chunk = args.chunk.or(largest_common_chunk(sys, args, &backing, page));
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

/// Asks before data of others is lost.
fn consent(sys: &dyn Sys, backing: &Backing) -> Result<()> {
    let Err(e) = check_owner(sys, backing) else { return Ok(()) };
    let question = format!(
        "{} ({}).\nAll of it will be lost. Type yes to continue: ",
        e.message,
        units::size(backing.bytes)
    );
    let answer = sys.ask(&question).map_err(|e| Error::io("ask on", "the terminal".as_ref(), e))?;
    match answer.as_deref() {
        Some("yes") => Ok(()),
        Some(_) => Err(Error::new(Kind::Interrupted, "nothing was changed")),
        None => Err(e),
    }
}

/// Other tools must not take the device for what it was, now or when it is off.
fn wipe(sys: &dyn Sys, backing: &Backing) -> Result<()> {
    let (path, found) = (&backing.path, &backing.holds.signatures);
    if found.is_empty() {
        return Ok(());
    }
    match &backing.zones {
        None => contents::wipe(sys, path, found, backing.bytes),
        // The module resets the others.
        Some(_) => {
            let zones = sys.zones(path).map_err(|e| Error::io("report", &sys.at(path), e))?;
            let sectors = queue::limit(sys, &backing.name, "chunk_sectors").unwrap_or(0);
            let conventional = |s: &&contents::Signature| {
                let zone = s.offset.checked_div(sectors * device::SECTOR);
                zone.and_then(|n| zones.get(n as usize)).is_some_and(|z| !z.sequential)
            };
            found.iter().filter(conventional).try_for_each(|s| contents::wipe_one(sys, path, s))
        }
    }
}

/// The steps that change something. Each pushes its undo step.
fn set_up(
    sys: &dyn Sys,
    args: &OnArgs,
    backing: &Backing,
    chunk: Option<u64>,
    source: &Source,
    undo: &mut Undo,
) -> Result<Report> {
    let name = backing.name.as_str();
    // A program may be killed after it did its work, so its undo step is pushed
    // before it runs.
    if *source != Source::Loaded {
        undo.push("unload the module", |sys| match module::loaded(sys) {
            true => module::unload(sys).map_err(|e| Error::new(Kind::Kernel, e)),
            false => Ok(()),
        });
        module::load(sys, source)?;
    }
    check_interrupt(sys)?;
    configfs::ensure_mounted(sys)?;
    // Left by a killed `znsage on`. The lock excludes a running one.
    configfs::remove_unpowered(sys, name)?;
    configfs::create(sys, name)?;
    undo.push("remove the configuration", {
        let name = name.to_string();
        move |sys| configfs::remove(sys, &name)
    });
    for (attribute, value) in settings(args, backing, chunk) {
        configfs::set(sys, name, attribute, &value)
            .map_err(|e| choices::refused(sys, attribute, &value).unwrap_or(e))?;
    }
    check_interrupt(sys)?;
    let (uuid, unrecorded) = record::begin(sys, name, undo)?;
    wipe(sys, backing)?;
    check_interrupt(sys)?;
    let unfinished = configfs::unfinished(name);
    undo.push("forget that the device is not set up yet", {
        let path = unfinished.clone();
        move |sys| sys.forget(&path).map_err(|e| Error::io("remove", &sys.at(&path), e))
    });
    let failed = |verb| |e| Error::io(verb, &sys.at(&unfinished), e);
    sys.save(&unfinished, "").map_err(failed("write"))?;
    attach(sys, args, backing)?;
    undo.push("detach the device", {
        let name = name.to_string();
        move |sys| configfs::power_off(sys, &name)
    });
    // Others may use the disk as well, unless it is zoned.
    if backing.zones.is_some() {
        scheduler::choose(sys, name, undo)?;
    }
    check_interrupt(sys)?;
    let report = enable(sys, args, backing, &uuid, undo)?;
    sys.forget(&unfinished).map_err(failed("remove"))?;
    Ok(Report { unrecorded, ..report })
}

/// Checks for a signal between two steps, never within one.
fn check_interrupt(sys: &dyn Sys) -> Result<()> {
    match sys.interrupted() {
        true => Err(Error::interrupted()),
        false => Ok(()),
    }
}

/// The largest chunk that all paths to the device take, in whole units. None if
/// the module's choice (kmod/geometry.c) is small enough.
fn largest_common_chunk(sys: &dyn Sys, args: &OnArgs, backing: &Backing, page: u64) -> Option<u64> {
    let preferred = queue::limit(sys, &backing.name, "optimal_io_size").unwrap_or(0);
    let least = backing.append_bytes;
    let unit = args.write_unit.unwrap_or(page);
    (backing.narrowed && preferred.max(DEFAULT_CHUNK) > least).then(|| least - least % unit)
}

/// Attributes to write. The others keep the module's defaults.
fn settings(args: &OnArgs, backing: &Backing, chunk: Option<u64>) -> Vec<(&'static str, String)> {
    let mut list = vec![
        ("backing", backing.path.clone()),
        ("over_provisioning", args.over_provisioning.to_string()),
    ];
    let names = [("policy", &args.policy), ("victim", &args.victim)];
    list.extend(names.into_iter().filter_map(|(attribute, name)| Some((attribute, name.clone()?))));
    list.extend(args.compress.map(|how| ("compress", how.name().to_string())));
    list.extend(args.encrypt.map(|how| ("encrypt", how.name().to_string())));
    let numbers = [
        ("size", args.size),
        ("zone_size", args.zone_size),
        ("chunk", chunk),
        ("write_unit", args.write_unit),
        ("reserve", args.reserve.map(u64::from)),
        ("stripe", args.stripe.map(u64::from)),
        ("pace", args.pace.map(u64::from)),
        ("deadline_us", args.deadline_us.map(u64::from)),
        // The module cannot see whether a device without zones is empty.
        (
            "force",
            (args.force || backing.zones.is_none() || backing.loses().is_some()).then_some(1),
        ),
        ("keep_slots", args.keep_slots.then_some(1)),
    ];
    list.extend(
        numbers.into_iter().filter_map(|(attribute, value)| Some((attribute, value?.to_string()))),
    );
    list
}

/// Writes power=1. The module logs why it refuses.
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
            (Kind::Data, "--yes takes the device anyway; the data on it is lost")
        }
        Some(libc::EUSERS) => (
            Kind::Busy,
            "`blkzone report` lists them, `blkzone finish` or `blkzone reset` closes them; or omit \
             --size",
        ),
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::ENOTBLK) => {
            (Kind::Device, "the device may have been removed")
        }
        Some(libc::EOPNOTSUPP) => (Kind::Device, "`znsage list --all` shows what can be used"),
        Some(libc::EFBIG) => (Kind::Device, "--size SIZE uses the first part of the device"),
        Some(libc::EINVAL) => (Kind::Device, "the settings do not fit the device"),
        Some(libc::ENOSPC) if args.size.is_some() => {
            (Kind::Space, "choose a smaller --size, or omit it")
        }
        Some(libc::ENOSPC) => {
            (Kind::Device, "--policy single and a smaller --reserve need fewer zones")
        }
        Some(libc::ENOPKG) if logged.as_ref().is_some_and(|l| l.contains("cannot compress")) => (
            Kind::Environment,
            "the kernel needs CONFIG_CRYPTO_LZ4 or CONFIG_CRYPTO_ZSTD; or omit --compress",
        ),
        Some(libc::ENOPKG) => (
            Kind::Environment,
            "`modprobe xts` and `modprobe aes` must succeed: the kernel needs CONFIG_CRYPTO_XTS \
             and CONFIG_CRYPTO_AES; or omit --encrypt",
        ),
        Some(libc::ENOMEM) => (Kind::Space, "the map takes 5 bytes of memory for each page, and 8 with --compress"),
        _ => (Kind::Kernel, "the kernel log (`dmesg`) may tell more"),
    };
    let why = logged.unwrap_or_else(|| reason(e));
    Error::new(kind, format!("cannot attach {path}: {why}")).hint(hint)
}

/// From the attached disk to the enabled swap area.
fn enable(
    sys: &dyn Sys,
    args: &OnArgs,
    backing: &Backing,
    uuid: &str,
    undo: &mut Undo,
) -> Result<Report> {
    let name = format!("znsage{}", configfs::index(sys, &backing.name)?);
    // The filler has no priority, and so comes last: the kernel must not use it. Kernel
    // 7.3 uses areas without one in turn, so the device needs one.
    let priority = args.priority.or(args.keep_slots.then_some(0));
    enable_area(sys, format!("/dev/{name}"), Some(uuid), priority, undo)?;
    if args.keep_slots {
        enable_area(sys, swaps::filler_node(&name), None, None, undo)?;
    }
    let lost = backing.loses();
    Ok(Report { lost, ..report(sys, counters::read(sys, &name)?, &backing.path)? })
}

fn enable_area(
    sys: &dyn Sys,
    node: String,
    uuid: Option<&str>,
    priority: Option<u16>,
    undo: &mut Undo,
) -> Result<()> {
    wait_for(sys, &node)?;
    swaps::make(sys, &node, record::LABEL, uuid)?;
    undo.push("disable the swap", {
        let node = node.clone();
        move |sys| match swaps::is_on(sys, &node) {
            true => swaps::disable(sys, &node, &mut || ()),
            false => Ok(()),
        }
    });
    swaps::enable(sys, &node, priority)?;
    check_interrupt(sys)
}

fn report(sys: &dyn Sys, device: Device, path: &str) -> Result<Report> {
    Ok(Report {
        backing_path: path.to_string(),
        priority: swaps::area(sys, &device.name).map(|a| a.priority),
        keep_slots: swaps::is_on(sys, &swaps::filler_node(&device.name)),
        encrypt: counters::value(sys, &device.name, "encrypt").ok(),
        compress: counters::value(sys, &device.name, "compress").ok(),
        lost: None,
        unrecorded: None,
        keeps: queue::keeps(sys, &device.backing),
        device,
    })
}

fn wait_for(sys: &dyn Sys, node: &str) -> Result<()> {
    for _ in 0..NODE_TRIES {
        if sys.exists(node) {
            return Ok(());
        }
        check_interrupt(sys)?;
        sys.sleep(NODE_PAUSE);
    }
    Err(Error::new(Kind::Kernel, format!("{node} did not appear"))
        .hint("check that devtmpfs is mounted on /dev, or that udev is running"))
}

/// The report of a device that is on already, whoever turned it on.
fn already_on(sys: &dyn Sys, args: &OnArgs) -> Result<Option<Report>> {
    if !sys.exists(&args.device) {
        return Ok(None);
    }
    let (path, name) = device::locate(sys, &args.device)?;
    let Some(device) = counters::all(sys)?.into_iter().find(|d| d.backing == name) else {
        return Ok(None);
    };
    match swaps::area(sys, &device.name) {
        Some(_) => report(sys, device, &path).map(Some),
        None => Err(Error::new(
            Kind::Busy,
            format!("{path} is the backing device of {}, which is not used as swap", device.name),
        )
        .hint(format!("run `znsage off {}` first", device.name))),
    }
}

fn with_section_hint(e: Error, section: &str) -> Error {
    if e.kind != Kind::Data {
        return e;
    }
    let hint = e.hint.clone().unwrap_or_default();
    e.hint(format!(
        "{hint}\nthe section takes what znsage itself left on this drive, and nothing else;\n\
         `force = yes` in section {section} takes the device at every boot, even if it holds data"
    ))
}

impl Report {
    pub fn to_json(&self) -> serde_json::Value {
        json!({
            "version": 1,
            "priority": self.priority,
            "keep_slots": self.keep_slots,
            "encrypt": self.encrypt,
            "compress": self.compress,
            "lost": self.lost,
            "keeps_pages_after_off": self.keeps,
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
        let compressed = match self.compress.as_deref() {
            None | Some("off") => String::new(),
            Some(how) => format!(", compressed by {how}"),
        };
        let by_gc = match d.gc_shared {
            0 => format!(" and {} by GC", d.gc_stripe),
            _ => ", by GC as well".to_string(),
        };
        let mut notes = String::new();
        if let Some(lost) = &self.lost {
            notes += &format!("{} had {lost}: it is lost\n", self.backing_path);
        }
        if let Some(why) = &self.unrecorded {
            notes +=
                &format!("{why}: after a power failure `on` will ask before it takes the device\n");
        }
        if self.keep_slots {
            notes +=
                &format!("{} counts as swap, too, and stays empty\n", swaps::filler_node(&d.name));
        }
        if self.keeps && encrypted.is_empty() {
            notes += &format!(
                "{} takes no discards: swapped-out pages stay on it after off, so consider \
                 --encrypt\n",
                self.backing_path
            );
        }
        format!(
            "{} on {}: {} of swap{priority}{encrypted}{compressed}\n\
             policy {} ({} streams), zones written at a time {}{by_gc}\n\
             chunks of {}, {} zones of {}\n\
             {} of memory for the map\n{notes}",
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
