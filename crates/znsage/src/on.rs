// SPDX-License-Identifier: GPL-2.0-only
//! `znsage on`: checks everything first, then sets up step by step. A failure
//! undoes the completed steps.

use std::io;
use std::time::Duration;

use serde_json::json;

use crate::cli::{OnArgs, OnCommand};
use crate::contents::Holds;
use crate::counters::{self, Device};
use crate::device::{self, Backing};
use crate::error::{reason, Error, Kind, Result};
use crate::examine::examine;
use crate::module::{self, Source};
use crate::sys::{require_root, Sys};
use crate::undo::Undo;
use crate::units::{self, counted};
use crate::{choices, conf, configfs, guard, oldswap, queue, record, scheduler, section, swaps};

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
    /// Where the kernel has swap tiers.
    pub tier: Option<String>,
    /// What the device certainly holds, if the area promises more.
    pub certain_bytes: Option<u64>,
    /// There is a filler: `--keep-slots`.
    pub keep_slots: bool,
    /// The module's attribute `encrypt`, if there is one.
    pub encrypt: Option<String>,
    /// The module's attribute `compress`, if there is one.
    pub compress: Option<String>,
    /// The size of the swap file, if it is new.
    pub made: Option<u64>,
    /// Bytes of a swap file where no zone fits.
    pub left_over: Option<u64>,
    /// What was on the device and is lost.
    pub lost: Option<String>,
    /// There were signatures, and they are wiped.
    pub wiped: bool,
    /// Why there is no record of the device in /var/lib.
    pub unrecorded: Option<Error>,
    /// Settings that name the swap area that was on the device, and what to do.
    pub named: Vec<String>,
    /// The device keeps what is written to it, also after `off`.
    pub keeps: bool,
    /// Without `--no-discard`.
    pub discards: bool,
}

pub fn run(sys: &dyn Sys, what: &OnCommand, page: u64, catch: fn()) -> Result<Report> {
    require_root(sys, "set up a swap device")?;
    match what {
        OnCommand::Device(args) => turn_on(sys, args, None, page, catch),
        OnCommand::Profile(profile) => {
            turn_on(sys, &conf::profile(sys, profile)?, None, page, catch)
        }
        OnCommand::Section(name) => {
            let conf = conf::read(sys);
            let args = conf.section(name)?;
            match already_on(sys, args)? {
                Some(report) => Ok(report),
                None => turn_on(sys, args, Some(name), page, catch)
                    .map_err(|e| with_section_hint(e, name)),
            }
        }
    }
}

/// `section` is the section of znsage.conf that `args` comes from.
fn turn_on(
    sys: &dyn Sys,
    args: &OnArgs,
    section: Option<&str>,
    page: u64,
    catch: fn(),
) -> Result<Report> {
    let (backing, holds) = examine(sys, args, page)?;
    let source = module::find(sys)?;
    let foreign = record::check_owner(sys, &backing, &holds);
    if let (false, Err(e)) = (args.force, &foreign) {
        consent(sys, &backing, e)?;
    }
    catch();

    // Before its UUID is lost.
    let named = oldswap::mentions(sys).into_iter().filter(|m| m.name == Some(backing.name.clone()));
    let named: Vec<String> =
        named.map(|m| format!("{} has {}: {}", m.place, m.spec, m.cure)).collect();
    let chunk = args.chunk.or(largest_common_chunk(sys, args, &backing, page));
    let mut undo = Undo::new(sys);
    let remembered = match section {
        Some(name) => section::remember(sys, name, &backing.name, &mut undo),
        None => Ok(()),
    };
    match remembered.and_then(|()| set_up(sys, args, &backing, &holds, chunk, &source, &mut undo)) {
        Ok(report) => Ok(Report { named, lost: foreign.err().and_then(|_| holds.any()), ..report }),
        Err(e) => Err(undo.roll_back(e)),
    }
}

/// Asks before data of others is lost.
fn consent(sys: &dyn Sys, backing: &Backing, e: &Error) -> Result<()> {
    let question = format!(
        "{}.\nAll data on it ({}) will be lost. Type yes to continue: ",
        e.message,
        units::size(backing.usable_bytes)
    );
    let answer = sys.ask(&question).map_err(|e| Error::io("ask on", "the terminal".as_ref(), e))?;
    match answer.as_deref() {
        Some("yes") => Ok(()),
        Some(_) => Err(Error::new(Kind::Interrupted, "nothing was changed")),
        None => Err(e.clone()),
    }
}

/// The steps that change something. Each pushes its undo step.
fn set_up(
    sys: &dyn Sys,
    args: &OnArgs,
    backing: &Backing,
    holds: &Holds,
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
    if backing.file.as_ref().is_some_and(|file| file.make) {
        make_file(sys, backing, undo)?;
    }
    holds.wipe(sys, backing)?;
    attach(sys, args, backing)?;
    undo.push("detach the device", {
        let name = name.to_string();
        move |sys| configfs::power_off(sys, &name)
    });
    // Swap must work with a full disk, too.
    let unrecorded = record::begin(sys, name, undo).err();
    // Others may use the disk as well, unless it is zoned.
    if backing.zones.is_some() {
        scheduler::choose(sys, name, undo)?;
    }
    check_interrupt(sys)?;
    let report = enable(sys, args, backing, undo)?;
    let made = backing.file.as_ref().filter(|file| file.make).map(|_| backing.usable_bytes);
    Ok(Report { wiped: !holds.signatures.is_empty(), unrecorded, made, ..report })
}

fn make_file(sys: &dyn Sys, backing: &Backing, undo: &mut Undo) -> Result<()> {
    let path = backing.path.clone();
    match sys.make_file(&path, backing.usable_bytes) {
        Err(_) if sys.interrupted() => return Err(Error::interrupted()),
        made => made.map_err(|e| Error::io("make", &sys.at(&path), e))?,
    }
    undo.push("remove the file", move |sys| {
        sys.forget(&path).map_err(|e| Error::io("remove", &sys.at(&path), e))
    });
    check_interrupt(sys)
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
        ("gc_low", args.gc_low.map(u64::from)),
        ("gc_high", args.gc_high.map(u64::from)),
        ("deadline_us", args.deadline),
        // The module cannot see whether a device without zones is empty.
        ("force", (args.force || backing.zones.is_none()).then_some(1)),
        ("keep_slots", args.keep_slots.then_some(1)),
        ("discard", args.no_discard.then_some(0)),
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
        let prefix = format!("znsage: {}: ", configfs::item_name(&backing.name));
        let logged = sys
            .kernel_log()
            .into_iter()
            .filter(|l| l.number > seen)
            .filter_map(|l| l.text.split_once(&prefix).map(|(_, why)| why.to_string()))
            .next_back();
        refused(&e, args, backing, logged)
    })
}

fn refused(e: &io::Error, args: &OnArgs, backing: &Backing, logged: Option<String>) -> Error {
    let path = &backing.path;
    let (kind, hint) = match e.raw_os_error() {
        Some(libc::EBUSY) => (Kind::Busy, "the device is in use"),
        Some(libc::EAGAIN) => (Kind::Busy, "try again when the system is back"),
        Some(libc::ENOTEMPTY) => {
            (Kind::Data, "--yes takes it; what is on it is lost")
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
        Some(libc::EINVAL) if backing.file.is_some() => (
            Kind::Device,
            "the settings do not fit the file; or it has holes or shared blocks, which --force removes",
        ),
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
        Some(libc::ENOMEM) => (Kind::Space, "the map takes 5.2 bytes of memory for each page of swap, and 9 with --compress"),
        _ => (Kind::Kernel, "the kernel log (`dmesg`) may tell more"),
    };
    let why = logged.unwrap_or_else(|| reason(e));
    Error::new(kind, format!("cannot attach {path}: {why}")).hint(hint)
}

/// Makes the attached disk a swap area and enables it.
fn enable(sys: &dyn Sys, args: &OnArgs, backing: &Backing, undo: &mut Undo) -> Result<Report> {
    let name = format!("znsage{}", configfs::index(sys, &backing.name)?);
    let promises = guard::promises(sys, &name);
    // The filler has no priority, and so comes last: the kernel must not use it. Kernel
    // 7.3 uses areas without one in turn, so the device needs one. So does an area whose
    // slots the guard is to take, and no other area's.
    let priority = args.priority.or((args.keep_slots || promises).then_some(0));
    if promises {
        check_alone(sys, priority)?;
    }
    enable_area(sys, format!("/dev/{name}"), priority, undo)?;
    if args.keep_slots {
        enable_area(sys, swaps::filler_node(&name), None, undo)?;
    }
    if promises || args.keep_slots {
        undo.push("end the guard", {
            let name = name.clone();
            move |sys| guard::end(sys, &name)
        });
        guard::start(sys, &name)?;
        check_interrupt(sys)?;
    }
    report(sys, counters::read(sys, &name)?, &backing.path)
}

/// The kernel takes slots of areas of one priority in turn.
fn check_alone(sys: &dyn Sys, priority: Option<u16>) -> Result<()> {
    let same = |area: &swaps::Area| priority.is_some_and(|p| i64::from(p) == area.priority);
    match swaps::areas(sys).into_iter().find(same) {
        None => Ok(()),
        Some(other) => Err(Error::new(
            Kind::Busy,
            format!("{} has priority {}, too", other.path, other.priority),
        )
        .hint("an overcommitted area, and one with --keep-slots, needs its own: --priority N")),
    }
}

fn enable_area(sys: &dyn Sys, node: String, priority: Option<u16>, undo: &mut Undo) -> Result<()> {
    wait_for(sys, &node)?;
    swaps::make(sys, &node)?;
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
    let priority = swaps::area(sys, &device.name).map(|a| a.priority);
    Ok(Report {
        backing_path: path.to_string(),
        tier: priority.and_then(|priority| swaps::tier(sys, priority)),
        priority,
        certain_bytes: guard::promises(sys, &device.name)
            .then(|| counters::value(sys, &device.name, "certain_bytes").ok())
            .flatten(),
        // The guard may have turned it off for now.
        keep_slots: sys.exists(&swaps::filler_node(&device.name)),
        encrypt: counters::value(sys, &device.name, "encrypt").ok(),
        compress: counters::value(sys, &device.name, "compress").ok(),
        made: None,
        left_over: left_over(sys, &device),
        lost: None,
        wiped: false,
        unrecorded: None,
        named: Vec::new(),
        keeps: queue::keeps(sys, &device.backing),
        discards: counters::discards(sys, &device.name),
        device,
    })
}

fn left_over(sys: &dyn Sys, device: &Device) -> Option<u64> {
    let bytes = queue::is_file(&device.backing).then(|| device::size(sys, &device.backing))??;
    let zones = device.zones.total + device.zones.unused;
    Some(bytes.saturating_sub(zones.saturating_mul(device.zone_bytes)))
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
        Some(_) => {
            if guard::is_needed(sys, &device.name) {
                guard::start(sys, &device.name)?;
            }
            report(sys, device, &path).map(Some)
        }
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
    e.add(&format!(
        "znsage did not leave it there, or has no record of it;\n\
         `force = yes` in section {section} takes the device at every boot, whatever it holds"
    ))
}

impl Report {
    pub fn to_json(&self) -> serde_json::Value {
        json!({
            "version": 1,
            "priority": self.priority,
            "tier": self.tier,
            "keep_slots": self.keep_slots,
            "encrypt": self.encrypt,
            "compress": self.compress,
            "made_bytes": self.made,
            "left_over_bytes": self.left_over,
            "lost": self.lost,
            "still_named_by": (!self.named.is_empty()).then(|| self.named.join("\n")),
            "keeps_pages_after_off": self.keeps || !self.discards,
            "device": self.device,
        })
    }

    pub fn to_text(&self) -> String {
        let d = &self.device;
        let mut priority = self.priority.map_or(String::new(), |n| format!(", priority {n}"));
        if let Some(tier) = &self.tier {
            priority += &format!(", swap tier {tier}");
        }
        let encrypted = match self.encrypt.as_deref() {
            None | Some("off") => "",
            Some(_) => ", encrypted",
        };
        let compressed = match self.compress.as_deref() {
            None | Some("off") => String::new(),
            Some(how) => format!(", compressed by {how}"),
        };
        let at_a_time = match (d.gc_shared, d.streams.saturating_mul(d.stripe)) {
            (0, 1) if d.gc_stripe == 1 => "swap-out and GC write one zone each at a time".into(),
            (0, n) => {
                format!("swap-out writes {} at a time, GC {}", counted(n, "zone"), d.gc_stripe)
            }
            (_, 1) => "swap-out and GC write one zone at a time".to_string(),
            (_, n) => format!("swap-out and GC write {} at a time", counted(n, "zone")),
        };
        let mut notes = String::new();
        if let Some(bytes) = self.made {
            notes += &format!("{} is new and takes {}\n", self.backing_path, units::size(bytes));
        }
        if let Some(bytes) = self.left_over.filter(|bytes| *bytes > 0) {
            notes +=
                &format!("{} of the file are left over: no zone fits there\n", units::size(bytes));
        }
        if let Some(lost) = &self.lost {
            let fate = if self.wiped { "wiped" } else { "lost" };
            notes += &format!("{} had {lost}: {fate}\n", self.backing_path);
        }
        if let Some(why) = &self.unrecorded {
            notes += &format!("{why}: after a power failure `on` will ask about this device\n");
        }
        self.named.iter().for_each(|named| notes += &format!("{named}\n"));
        if let Some(bytes) = self.certain_bytes {
            notes += &format!(
                "{} fit even if no page shrinks; a guard keeps the rest from filling with pages \
                 that have no room\n",
                units::size(bytes)
            );
        }
        if self.keep_slots {
            notes +=
                &format!("{} counts as swap, too, and stays empty\n", swaps::filler_node(&d.name));
        }
        let why = if self.discards { "does not support discard" } else { "is not discarded" };
        if (self.keeps || !self.discards) && encrypted.is_empty() {
            notes += &format!(
                "{} {why}: swapped pages remain readable after off; consider --encrypt\n",
                self.backing_path
            );
        }
        format!(
            "{} on {}: {} of swap{priority}{encrypted}{compressed}\n\
             policy {}, {}; {at_a_time}\n\
             chunks of {}, {} zones of {}\n\
             {} of memory for the map\n{notes}",
            d.name,
            self.backing_path,
            units::size(d.size_bytes),
            d.policy,
            counted(d.streams, "stream"),
            units::size(d.chunk_bytes),
            d.zones.total,
            units::size(d.zone_bytes),
            units::size(d.map_bytes),
        )
    }
}
