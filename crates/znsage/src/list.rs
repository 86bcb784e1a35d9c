// SPDX-License-Identifier: GPL-2.0-only
//! `znsage list`: all zoned devices, with `--all` all others as well, their limits, and
//! whether `znsage on` would accept them. Changes nothing. To find out whether a device is in
//! use, the command opens it exclusively for a moment, which needs root.

use serde::Serialize;
use serde_json::json;

use crate::cli::{Cell, ListArgs, ListColumn, OnArgs, TableArgs};
use crate::counters::{self, Device};
use crate::device;
use crate::error::{Error, Kind, Result};
use crate::examine::examine;
use crate::queue::{self, limit};
use crate::sys::{require_root, Sys};
use crate::zones::State;
use crate::{record, swapfile, units};

#[derive(Clone, Debug, Serialize)]
pub struct Zones {
    pub total: u64,
    /// Sequential, and neither read-only nor offline.
    pub usable: u64,
    /// Usable and not empty.
    pub written: u64,
    /// Capacity of the largest usable zone.
    pub capacity_bytes: u64,
}

/// A device. None means unknown, or that it has no zones.
#[derive(Clone, Debug, Serialize)]
pub struct Candidate {
    pub name: String,
    pub path: String,
    pub model: Option<String>,
    /// host-managed, host-aware, or none.
    pub kind: String,
    pub size_bytes: Option<u64>,
    pub zone_bytes: Option<u64>,
    /// Only root can open the device.
    pub zones: Option<Zones>,
    /// Writes to a zone are multiples of this.
    pub write_unit_bytes: Option<u64>,
    /// Longest append; 0 if the device has none.
    pub append_max_bytes: Option<u64>,
    /// None means no limit.
    pub max_open_zones: Option<u64>,
    pub max_active_zones: Option<u64>,
    /// The znsage disk on top of it, if it is on.
    pub on: Option<String>,
    /// If None, `problem` says why.
    pub usable: Option<bool>,
    #[serde(serialize_with = "problem")]
    pub problem: Option<Error>,
}

/// As in the document of an error, but without the exit status.
fn problem<S: serde::Serializer>(e: &Option<Error>, to: S) -> std::result::Result<S::Ok, S::Error> {
    let shown = e.as_ref().map(|e| json!({"kind": e.kind, "message": e.message, "hint": e.hint}));
    shown.serialize(to)
}

#[derive(Debug)]
pub struct Report<'a> {
    pub devices: Vec<Candidate>,
    /// Swap space that a new file can have, if there is no device.
    file: Option<u64>,
    table: &'a TableArgs<ListColumn>,
}

pub fn run<'a>(sys: &dyn Sys, args: &'a ListArgs, page: u64) -> Result<Report<'a>> {
    let on = counters::all(sys)?;
    let table = &args.table;
    if let Some(wanted) = &args.device {
        let (_, name) = device::locate(sys, wanted)?;
        let kind = queue::attribute(sys, &queue::disk_of(sys, &name), "zoned");
        let kind = kind.unwrap_or_else(|| NO_ZONES.to_string());
        return Ok(Report { devices: vec![look(sys, name, kind, &on, page)], table, file: None });
    }
    let mut devices = zoned(sys, &on, page);
    let files = on.iter().map(|d| d.backing.clone()).filter(|name| queue::is_file(name));
    devices.extend(files.map(|name| look(sys, name, NO_ZONES.into(), &on, page)));
    if args.all {
        devices.extend(others(sys, &on, page));
    }
    let file = if devices.is_empty() { swapfile::most(sys) } else { None };
    Ok(Report { devices, table, file })
}

/// All other disks and partitions, by name.
fn others(sys: &dyn Sys, on: &[Device], page: u64) -> Vec<Candidate> {
    let mut names = Vec::new();
    for disk in sys.list("/sys/block") {
        if queue::is_zoned(sys, &disk) || queue::is_hidden(sys, &disk) {
            continue;
        }
        let parts = sys.list(&format!("/sys/block/{disk}"));
        let parts = parts.into_iter().filter(|p| queue::disk_of(sys, p) == disk);
        names.extend(parts.chain([disk.clone()]));
    }
    names.sort();
    let holds = |name: &String| device::size(sys, name).is_some_and(|bytes| bytes > 0);
    let never = |name: &String| NOT_LISTED.iter().any(|kind| is_of(name, kind));
    names.retain(|name| holds(name) && !never(name));
    names.into_iter().map(|name| look(sys, name, NO_ZONES.into(), on, page)).collect()
}

/// `ram0` is `ram` and a number.
fn is_of(name: &str, kind: &str) -> bool {
    name.strip_prefix(kind).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
}

/// All zoned devices by name; `on` lists the znsage devices.
pub fn zoned(sys: &dyn Sys, on: &[Device], page: u64) -> Vec<Candidate> {
    let names = sys.list("/sys/block").into_iter().filter_map(|name| {
        let kind = queue::attribute(sys, &name, "zoned").filter(|kind| kind != "none")?;
        if queue::is_hidden(sys, &name) {
            return None;
        }
        Some((name, kind))
    });
    names.map(|(name, kind)| look(sys, name, kind, on, page)).collect()
}

/// The limit of the device or of its paths, whichever is lower.
fn append_max_bytes(sys: &dyn Sys, name: &str) -> Option<u64> {
    let told: u64 = queue::attribute(sys, name, "zone_append_max_bytes")?.parse().ok()?;
    Some(queue::append_bytes(sys, name).map_or(told, |least| least.min(told)))
}

fn look(sys: &dyn Sys, name: String, kind: String, on: &[Device], page: u64) -> Candidate {
    let path = queue::path(&name);
    let disk = queue::disk_of(sys, &name);
    let attribute = |file: &str| sys.read(&format!("/sys/block/{disk}/{file}")).ok();
    let of_zones = |file: &str| -> Option<u64> {
        let text = (kind != NO_ZONES).then(|| attribute(file)).flatten()?;
        text.trim().parse().ok()
    };
    let verdict = verdict(sys, &path, &name, page);
    Candidate {
        model: attribute("device/model").map(|m| m.trim().to_string()).filter(|m| !m.is_empty()),
        size_bytes: device::size(sys, &name),
        zone_bytes: of_zones("queue/chunk_sectors").and_then(|n| n.checked_mul(device::SECTOR)),
        zones: (kind != NO_ZONES).then(|| zones(sys, &path)).flatten(),
        write_unit_bytes: of_zones("queue/zone_write_granularity"),
        append_max_bytes: match kind == NO_ZONES {
            true => queue::longest_append(sys, &disk),
            false => append_max_bytes(sys, &name),
        },
        max_open_zones: limit(sys, &name, "max_open_zones"),
        max_active_zones: limit(sys, &name, "max_active_zones"),
        on: on.iter().find(|d| d.backing == name).map(|d| d.name.clone()),
        usable: match &verdict {
            Ok(()) => Some(true),
            Err(e) if e.kind == Kind::Environment => None,
            Err(_) => Some(false),
        },
        problem: verdict.err(),
        name,
        path,
        kind,
    }
}

/// The checks of `znsage on` with its default settings.
fn verdict(sys: &dyn Sys, path: &str, name: &str, page: u64) -> Result<()> {
    // This check works without root, too.
    device::check_kind(sys, path, name)?;
    require_root(sys, "tell whether it is in use")?;
    let (backing, holds) = examine(sys, &OnArgs::plain(path), page)?;
    record::check_owner(sys, &backing, &holds)
}

fn zones(sys: &dyn Sys, path: &str) -> Option<Zones> {
    let all = sys.zones(path).ok()?;
    let usable = || all.iter().filter(|z| z.sequential && z.state != State::Dead);
    Some(Zones {
        total: all.len() as u64,
        usable: usable().count() as u64,
        written: usable().filter(|z| z.state == State::Written).count() as u64,
        capacity_bytes: usable().map(|z| z.capacity).max().unwrap_or(0),
    })
}

/// What sysfs says of a disk without zones.
const NO_ZONES: &str = "none";

/// Disks that nobody swaps to.
const NOT_LISTED: [&str; 6] = ["ram", "zram", "znsage", "loop", "sr", "fd"];

impl Candidate {
    pub fn usage(&self) -> String {
        match (&self.on, self.usable) {
            (Some(disk), _) => format!("on: {disk}"),
            (_, Some(true)) => "yes".to_string(),
            (_, Some(false)) => "no".to_string(),
            (_, None) => "?".to_string(),
        }
    }

    fn cell(&self, column: ListColumn) -> Cell {
        let unknown = if self.kind == NO_ZONES { "-" } else { "?" };
        let bytes = |n: Option<u64>| n.map_or(Cell::text(unknown), Cell::Bytes);
        let zones = |of: fn(&Zones) -> u64| self.zones.as_ref().map(of);
        let count = |n: Option<u64>| n.map_or(Cell::text(unknown), Cell::text);
        match column {
            ListColumn::Device => Cell::text(&self.path),
            ListColumn::Use => Cell::text(self.usage()),
            ListColumn::Model => Cell::maybe(self.model.as_ref(), Cell::text),
            ListColumn::Size => bytes(self.size_bytes),
            ListColumn::Zones => count(zones(|z| z.total)),
            ListColumn::Zone => bytes(self.zone_bytes),
            ListColumn::Capacity => bytes(zones(|z| z.capacity_bytes)),
            ListColumn::Written => count(zones(|z| z.written)),
            ListColumn::Unit => bytes(self.write_unit_bytes),
            ListColumn::Append => bytes(self.append_max_bytes),
            ListColumn::Open => Cell::maybe(self.max_open_zones, Cell::text),
            ListColumn::Active => Cell::maybe(self.max_active_zones, Cell::text),
            ListColumn::Kind => Cell::text(&self.kind),
        }
    }
}

impl Report<'_> {
    pub fn to_json(&self) -> serde_json::Value {
        json!({"version": 1, "devices": self.devices})
    }

    pub fn to_text(&self) -> String {
        let mut text = self.table.text(&self.devices, |column, device| device.cell(column));
        if self.table.only() {
            return text;
        }
        if self.devices.is_empty() {
            let file = self.file.map_or(String::new(), |size| {
                let (place, size) = (swapfile::PLACE, units::size(size));
                format!("`znsage on {place} --size SIZE` makes a swap file, of up to {size}\n")
            });
            return format!("no zoned device found; `znsage list --all` shows others\n{file}");
        }
        // The table shows devices that are on.
        for device in self.devices.iter().filter(|d| d.on.is_none()) {
            let Some(e) = &device.problem else { continue };
            text += &match e.message.contains(&device.path) {
                true => format!("\n{}\n", e.message),
                false => format!("\n{}: {}\n", device.path, e.message),
            };
            for line in e.hint.iter().flat_map(|h| h.lines()) {
                text += &format!("  {line}\n");
            }
        }
        let without = |d: &&Candidate| d.kind == NO_ZONES && d.usable == Some(true);
        for device in self.devices.iter().filter(without) {
            text += &format!(
                "\n{}: no data found; `znsage on` makes virtual zones and erases what is on it\n",
                device.path
            );
        }
        text
    }
}
