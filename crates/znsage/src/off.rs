// SPDX-License-Identifier: GPL-2.0-only
//! `znsage off`: reads the pages back into memory and empties the device.

use serde_json::json;

use crate::cli::OffArgs;
use crate::contents::{self, Sample};
use crate::counters::{self, Device};
use crate::error::{Error, Kind, Result};
use crate::sys::{require_root, LogLine, Sys};
use crate::zones::State;
use crate::{
    configfs, device, guard, module, queue, record, room, scheduler, section, service, swaps, units,
};
use znsage_sim::cli::progress::Progress;

#[derive(Debug, Default)]
pub struct Report {
    /// The section of znsage.conf to turn off.
    pub section: Option<String>,
    pub off: Vec<TurnedOff>,
    pub module_unloaded: bool,
    /// Why an unused module could not be unloaded.
    pub module_stays: Option<String>,
}

#[derive(Debug)]
pub struct TurnedOff {
    pub name: String,
    pub backing: String,
    pub left: Left,
    /// The section of znsage.conf that had turned it on.
    pub section: Option<String>,
    /// What became of the section's service, if it was active.
    pub service_stops: Option<bool>,
}

/// What the device still has.
#[derive(Debug, PartialEq)]
pub enum Left {
    /// Zones that still hold swapped-out pages.
    Zones(u64),
    /// Nothing: the device has no zones, and all that was written is discarded.
    Discarded,
    /// What the failed discards were to erase. The device has no zones.
    SomeFailed,
    /// Everything: the device does not support discard.
    Everything,
    /// Everything, because of `--no-discard`.
    NotDiscarded,
    /// Everything: the device accepts discards but ignores them.
    Ignored,
    Unknown,
    /// Somebody removed the disk while it was in use.
    Gone,
}

pub fn run(sys: &dyn Sys, args: &OffArgs) -> Result<Report> {
    require_root(sys, "turn a swap device off")?;
    let mut report = Report::default();
    let devices = match (&args.config, &args.device) {
        (Some(name), _) => of_section(sys, name)?,
        (None, None) => counters::all(sys)?,
        (None, Some(wanted)) if configfs::remove_unpowered(sys, wanted)? => Vec::new(),
        (None, Some(wanted)) => vec![counters::find(sys, wanted)?],
    };
    report.section = args.config.clone();
    if !args.force {
        let guards = devices.iter().map(|d| guard::held_bytes(sys, &d.name)).sum();
        room::check(sys, &devices, guards)?;
    }
    if !devices.is_empty() {
        configfs::ensure_mounted(sys)?;
    }
    turn_off_all(sys, &devices, &mut report)?;
    if args.device.is_none() && args.config.is_none() {
        for name in configfs::items(sys) {
            configfs::remove_unpowered(sys, &name)?;
        }
    }
    release_module(sys, &mut report);
    Ok(report)
}

/// A device that fails does not keep the others on.
fn turn_off_all(sys: &dyn Sys, devices: &[Device], report: &mut Report) -> Result<()> {
    let mut failed: Option<Error> = None;
    for device in devices {
        let seen = sys.kernel_log().last().map_or(0, |l| l.number);
        let discards = counters::discards(sys, &device.name);
        let before = sample(sys, device);
        match turn_off(sys, device) {
            Ok(section) => report.off.push(TurnedOff {
                name: device.name.clone(),
                backing: device.backing.clone(),
                left: settle(sys, device, before, left(sys, device, discards, seen)),
                // Not by the service itself, which is stopping.
                service_stops: (section.as_deref())
                    .filter(|section| service::is_active(sys, section))
                    .map(|section| service::stop(sys, section)),
                section,
            }),
            Err(e) if e.kind == Kind::Interrupted => return Err(e),
            Err(e) => failed = Some(failed.map_or(e.clone(), |first| first.and(&e))),
        }
    }
    let done: String = report.off.iter().map(TurnedOff::to_text).collect();
    match failed {
        Some(e) if done.is_empty() => Err(e),
        Some(e) => Err(e.add(done.trim_end())),
        None => Ok(()),
    }
}

/// The device that a section turned on, if it is still on.
fn of_section(sys: &dyn Sys, name: &str) -> Result<Vec<Device>> {
    let Some(backing) = section::backing(sys, name)? else {
        return Ok(Vec::new());
    };
    configfs::remove_unpowered(sys, &backing)?;
    Ok(counters::all(sys)?.into_iter().filter(|d| d.backing == backing).collect())
}

/// Returns the section that had turned it on.
fn turn_off(sys: &dyn Sys, device: &Device) -> Result<Option<String>> {
    guard::end(sys, &device.name)?;
    // The filler goes first: the kernel must not write to it once the other area is off.
    let filler = swaps::filler_node(&device.name);
    if swaps::is_on(sys, &filler) {
        swaps::disable(sys, &filler, &mut || ())?;
    }
    if let Some(area) = swaps::area(sys, &device.name) {
        disable_swap(sys, device, area.used_bytes)?;
    }
    configfs::power_off(sys, &device.config)?;
    configfs::remove(sys, &device.config)?;
    let section = section::forget(sys, &device.backing)?;
    scheduler::restore(sys, &device.backing)?;
    Ok(section)
}

/// The module resets all zones that it used. A reset may fail, or the device may
/// have made a zone read-only.
fn left(sys: &dyn Sys, device: &Device, discards: bool, seen: u64) -> Left {
    let backing = &device.backing;
    if queue::is_gone(sys, backing) {
        return Left::Gone;
    }
    if !queue::is_zoned(sys, &queue::disk_of(sys, backing)) {
        // kmod/zoned.c; there are no zones to look at.
        let failed = |l: &LogLine| l.number > seen && l.text.contains("could not be reset");
        return match queue::keeps(sys, backing) {
            true => Left::Everything,
            false if !discards => Left::NotDiscarded,
            false if sys.kernel_log().iter().any(failed) => Left::SomeFailed,
            false => Left::Discarded,
        };
    }
    let Ok(zones) = sys.zones(&format!("/dev/{backing}")) else {
        return Left::Unknown;
    };
    let count = |state| zones.iter().filter(|z| z.sequential && z.state == state).count() as u64;
    // Other dead zones were never used.
    Left::Zones(count(State::Written) + count(State::Dead).min(device.zones.retired))
}

/// What a device without zones still has.
///
/// The file system does not show what the module wrote below a file.
fn sample(sys: &dyn Sys, device: &Device) -> Option<Sample> {
    let backing = &device.backing;
    if queue::is_file(backing) {
        return None;
    }
    let bytes = device::size(sys, backing)?;
    let zoned = queue::is_zoned(sys, &queue::disk_of(sys, backing));
    (!zoned).then(|| Sample::take(sys, &format!("/dev/{backing}"), bytes).ok()).flatten()
}

/// Wipes the first page, which may look like the start of a file system, and records
/// what is left. Failures are no errors: the device is off, and the next `on` looks at it
/// anyway.
fn settle(sys: &dyn Sys, device: &Device, before: Option<Sample>, left: Left) -> Left {
    let backing = &device.backing;
    if before.is_some() {
        let _ = contents::clear(sys, &format!("/dev/{backing}"), 0);
    }
    let now = sample(sys, device);
    let _ = record::end(sys, backing, now.as_ref());
    let used = 0..device.zone_bytes.saturating_mul(device.zones.total);
    match (left, before, now) {
        (Left::Discarded, Some(before), Some(now)) if now.keeps(&before, used) => Left::Ignored,
        (left, ..) => left,
    }
}

/// Runs swapoff and shows its progress.
fn disable_swap(sys: &dyn Sys, device: &Device, used_bytes: u64) -> Result<()> {
    let mut progress = Progress::new();
    let start = device.slots_used.max(1);
    let mut tick = || {
        let left: u64 = counters::value(sys, &device.name, "slots_used").unwrap_or(0);
        let percent = 100 * start.saturating_sub(left) / start;
        progress.show(|| {
            format!("{}: {percent} % of {} back in memory", device.name, units::size(used_bytes))
        });
    };
    swaps::disable(sys, &format!("/dev/{}", device.name), &mut tick).map_err(|e| match e.kind {
        Kind::Kernel => e.hint(format!("{} stays in use as swap", device.name)),
        Kind::Interrupted => e.hint(format!("{} is still in use as swap", device.name)),
        _ => e,
    })
}

/// Unloads the module with the last device. A failure is not an error: the devices
/// are off.
fn release_module(sys: &dyn Sys, report: &mut Report) {
    let in_use = !configfs::items(sys).is_empty() || !counters::names(sys).is_empty();
    if in_use || !module::loaded(sys) {
        return;
    }
    match module::unload(sys) {
        Ok(()) => report.module_unloaded = true,
        Err(why) => report.module_stays = Some(why),
    }
}

impl TurnedOff {
    fn to_text(&self) -> String {
        let TurnedOff { name, backing, left, .. } = self;
        let text = match left {
            Left::Discarded => format!("{name} is off, {backing} is discarded\n"),
            Left::SomeFailed if queue::is_file(backing) => format!(
                "{name} is off, but some of {backing} could not be discarded\n  \
                 swapped-out pages may be left there; the kernel log shows why it failed\n"
            ),
            Left::SomeFailed => format!(
                "{name} is off, but some of {backing} could not be discarded\n  \
                 swapped-out pages may be left there; `blkdiscard /dev/{backing}` tries again, \
                 the kernel log shows why it failed\n"
            ),
            Left::Everything => format!(
                "{name} is off; {backing} does not support discard, so swapped pages remain readable\n"
            ),
            Left::NotDiscarded => format!(
                "{name} is off; {backing} was not discarded, so swapped pages remain readable\n"
            ),
            Left::Ignored => format!(
                "{name} is off; {backing} ignores discards, so swapped pages remain readable\n"
            ),
            Left::Zones(0) => format!("{name} is off, {backing} is empty\n"),
            Left::Zones(n) => format!(
                "{name} is off, but {n} zones of {backing} could not be emptied\n  \
                 they hold swapped-out pages; `blkzone reset /dev/{backing}` tries again, \
                 the kernel log shows why it failed\n"
            ),
            Left::Unknown => format!("{name} is off; whether {backing} is empty is unknown\n"),
            Left::Gone => format!(
                "{name} is off; its disk {backing} was removed while in use\n  \
                 the pages on it are lost to their programs, but still on the disk: nothing \
                 emptied it\n"
            ),
        };
        let Some(section) = &self.section else {
            return match queue::is_file(backing) {
                true => {
                    text + &format!(
                        "  the file stays, for the next `on`; `rm {backing}` frees its space\n"
                    )
                }
                false => text,
            };
        };
        text + &match self.service_stops {
            None => String::new(),
            Some(true) => {
                format!("  section {section} is off, so {} stops\n", service::unit(section))
            }
            Some(false) => {
                let unit = service::unit(section);
                format!(
                    "  section {section} is off, but {unit} is active: `systemctl stop {unit}`\n"
                )
            }
        }
    }
}

impl Report {
    pub fn to_json(&self) -> serde_json::Value {
        let off: Vec<_> = self
            .off
            .iter()
            .map(|off| {
                json!({
                    "name": off.name,
                    "backing": off.backing,
                    "zones_not_empty": match off.left {
                        Left::Zones(n) => Some(n),
                        _ => None,
                    },
                    "discarded": off.left == Left::Discarded,
                    "gone": off.left == Left::Gone,
                    "section": off.section,
                })
            })
            .collect();
        json!({
            "version": 1,
            "off": off,
            "module_unloaded": self.module_unloaded,
            "module_stays": self.module_stays,
        })
    }

    pub fn to_text(&self) -> String {
        let mut text = String::new();
        self.off.iter().for_each(|off| text += &off.to_text());
        if self.off.is_empty() {
            text += &match &self.section {
                Some(name) => format!("{name} is off already\n"),
                None => "no znsage device is on\n".to_string(),
            };
        }
        if let Some(why) = &self.module_stays {
            text += &format!("the module stays loaded: {why}\n");
        }
        text
    }
}
