// SPDX-License-Identifier: GPL-2.0-only
//! `znsage status`: a row per device, then latencies, zones and streams.
//!
//! *Swapped* is what programs see: pages. *Written* is what swap-out wrote to the device
//! for them, which is less with compression.

use std::collections::BTreeMap;

use serde_json::{json, Value};

use crate::cli::{Cell, StatusArgs, StatusColumn, TableArgs};
use crate::counters::{self, Device};
use crate::details::{self, Details, LATENCIES};
use crate::error::Result;
use crate::sys::Sys;
use crate::units::{self, counted, table};
use crate::{cgroups, guard, prometheus, queue};

pub struct Report<'a> {
    pub devices: Vec<(Device, Details)>,
    page: u64,
    streams: bool,
    table: &'a TableArgs<StatusColumn>,
    /// With --prometheus: all cgroups by id.
    metrics: Option<BTreeMap<u64, String>>,
    /// Backing devices that were removed while in use.
    gone: Vec<String>,
    /// Devices without the guard that they need.
    unguarded: Vec<String>,
}

pub fn run<'a>(sys: &dyn Sys, args: &'a StatusArgs, page: u64) -> Result<Report<'a>> {
    let mut devices = details::all(sys)?;
    if let Some(wanted) = &args.device {
        let name = counters::find(sys, wanted)?.name;
        devices.retain(|(device, _)| device.name == name);
    }
    devices.iter_mut().for_each(|(d, details)| details.count_zones(sys, &d.name));
    let by_cgroup = devices.iter().any(|(d, _)| d.policy == "cgroup");
    let metrics = args.prometheus.then(|| match by_cgroup {
        true => cgroups::paths(sys),
        false => BTreeMap::new(),
    });
    let backings = devices.iter().map(|(d, _)| d.backing.clone());
    let gone = backings.filter(|backing| queue::is_gone(sys, backing)).collect();
    let missing = |(d, _): &(Device, Details)| guard::missing(sys, &d.name);
    let unguarded = devices.iter().filter_map(missing).map(|(what, _)| what).collect();
    let (streams, table) = (args.streams, &args.table);
    Ok(Report { devices, page, streams, table, metrics, gone, unguarded })
}

impl Report<'_> {
    pub fn to_json(&self) -> Value {
        let devices: Vec<Value> = self
            .devices
            .iter()
            .map(|(device, details)| {
                let mut all = json!(device);
                if let (Value::Object(all), Value::Object(more)) = (&mut all, json!(details)) {
                    // Fields of the device come first and keep their meaning.
                    for (key, value) in more {
                        all.entry(key).or_insert(value);
                    }
                    let bytes = |blocks: u64| json!(blocks.saturating_mul(self.page));
                    let out = bytes(details.swapped_out(device));
                    all.insert("swapped_out_bytes".to_string(), out);
                    all.insert("written_bytes".to_string(), bytes(device.host_blocks));
                }
                all
            })
            .collect();
        json!({"version": 1, "devices": devices})
    }

    pub fn to_text(&self) -> String {
        if let Some(cgroups) = &self.metrics {
            return prometheus::text(&self.devices, self.page, cgroups);
        }
        let table = self.table.text(&self.devices, |column, (d, more)| self.cell(column, d, more));
        if self.table.only() {
            return table;
        }
        if self.devices.is_empty() {
            return "no znsage device is on\n".to_string();
        }
        let mut text = table;
        for (device, details) in &self.devices {
            if let Some(how) = &details.encrypt {
                text += &format!("\n{}: encryption: {how}\n", device.name);
            }
            if details.numbers.get("discard") == Some(&0) {
                text += &format!("\n{}: no discards\n", device.name);
            }
            text += &compression(device, details);
            text += &latencies(&device.name, details);
            text += &zones(&device.name, details);
            if let Some(why) = &details.hidden {
                text += &format!("\n{}: no latencies, zones and streams: {why}\n", device.name);
            }
            if self.streams {
                text += &streams(&device.name, details, self.page);
            }
        }
        for (device, details) in &self.devices {
            if let Some(why) = &details.policy_ejected {
                text += &format!("{}: policy {why}; now {}\n", device.name, device.policy);
            }
            if self.gone.contains(&device.backing) {
                let (name, backing) = (&device.name, &device.backing);
                text += &format!("{name}: its disk {backing} is gone, so all reads fail\n");
            }
            text += &troubles(device);
        }
        self.unguarded.iter().for_each(|what| text += &format!("{what}\n"));
        text
    }

    fn cell(&self, column: StatusColumn, d: &Device, more: &Details) -> Cell {
        let blocks = |n: u64| Cell::Bytes(n.saturating_mul(self.page));
        let number = |name: &str| more.numbers.get(name).copied();
        match column {
            StatusColumn::Name => Cell::text(&d.name),
            StatusColumn::Backing => Cell::text(&d.backing),
            StatusColumn::Policy => Cell::text(&d.policy),
            StatusColumn::Victim => Cell::maybe(more.victim.as_ref(), Cell::text),
            StatusColumn::Compress => Cell::maybe(more.compress.as_ref(), Cell::text),
            StatusColumn::Encrypt => Cell::maybe(more.encrypt.as_ref(), Cell::text),
            StatusColumn::Size => Cell::Bytes(d.size_bytes),
            StatusColumn::Used => blocks(d.slots_used),
            StatusColumn::Live => Cell::text(format!("{:.1}", 100.0 * d.utilization)),
            StatusColumn::Zones => Cell::text(d.zones.total),
            StatusColumn::Empty => Cell::text(d.zones.empty),
            StatusColumn::Swapped => blocks(more.swapped_out(d)),
            StatusColumn::Written => blocks(d.host_blocks),
            StatusColumn::Copied => blocks(d.gc_blocks),
            StatusColumn::Waf => Cell::maybe(d.waf, |waf| Cell::text(format!("{waf:.2}"))),
            StatusColumn::In => Cell::maybe(number("read_blocks"), blocks),
            StatusColumn::Refused => Cell::maybe(number("refused_pages"), blocks),
            StatusColumn::Stalls => Cell::text(d.stalls),
            StatusColumn::Map => Cell::Bytes(d.map_bytes),
        }
    }
}

/// How pages are compressed, and what that gained so far; nothing if they are not.
fn compression(device: &Device, details: &Details) -> String {
    let Some(how) = details.compresses() else {
        return String::new();
    };
    let gained = details.share_written(device).map_or(String::new(), |share| {
        format!(", pages take {:.0} % of their size", 100.0 * share)
    });
    let refused = details.numbers.get("refused_pages").filter(|&&pages| pages > 0);
    let refused = refused.map_or(String::new(), |&n| format!(", {} refused", counted(n, "page")));
    format!("\n{}: compression: {how}{gained}{refused}\n", device.name)
}

/// Latencies since attach.
fn latencies(name: &str, details: &Details) -> String {
    let timed = LATENCIES.iter().filter_map(|&what| Some((what, details.latency.get(what)?)));
    let mut rows =
        vec![["LATENCY", "COUNT", "MEAN", "P50", "P99", "P99.9"].map(String::from).to_vec()];
    rows.extend(timed.filter(|(_, l)| l.count > 0).map(|(what, l)| {
        let times = [l.mean_us, l.p50_us, l.p99_us, l.p999_us].map(units::micros);
        [vec![what.replace('_', "-"), l.count.to_string()], times.to_vec()].concat()
    }));
    match rows.len() {
        1 => String::new(),
        _ => format!("\n{name}\n{}", table(&rows, 1)),
    }
}

fn zones(name: &str, details: &Details) -> String {
    let mut text = String::new();
    if !details.zone_states.is_empty() {
        let list: Vec<String> =
            details.zone_states.iter().map(|(state, n)| format!("{n} {state}")).collect();
        text += &format!("\n{name}: zones: {}\n", list.join(", "));
    }
    if details.live_histogram.iter().any(|s| s.zones > 0) {
        let list: Vec<String> =
            details.live_histogram.iter().map(|s| s.zones.to_string()).collect();
        text += &format!(
            "{name}: full zones by live blocks, from 0 to 100 % in steps of {} %: {}\n",
            100 / list.len(),
            list.join(" ")
        );
    }
    text
}

/// Columns of the module's table of streams: its name and unit there, the heading here.
const STREAMS: [(&str, Unit, &str); 10] = [
    ("stream", Unit::Number, "STREAM"),
    ("host_blocks", Unit::Blocks, "WRITTEN"),
    ("gc_blocks", Unit::Blocks, "COPIED"),
    ("padding_blocks", Unit::Blocks, "PADDING"),
    ("read_blocks", Unit::Blocks, "IN"),
    ("stalls", Unit::Number, "STALLS"),
    ("stall_ns", Unit::Nanos, "WAITED"),
    ("zones", Unit::Number, "OPEN"),
    ("keys", Unit::Number, "KEYS"),
    ("key", Unit::Number, "LAST KEY"),
];

enum Unit {
    Number,
    Blocks,
    Nanos,
}

fn streams(name: &str, details: &Details, page: u64) -> String {
    if details.streams.is_empty() {
        return String::new();
    }
    let shown = |row: &details::Row, (column, unit, _): &(&str, Unit, &str)| match row.get(*column)
    {
        Some(Value::String(text)) => match text.trim_start_matches("0x").trim_start_matches('0') {
            "" => "-".to_string(),
            digits => format!("0x{digits}"),
        },
        Some(value) => match (unit, value.as_u64().unwrap_or(0)) {
            (Unit::Number, n) => n.to_string(),
            (Unit::Blocks, n) => units::size(n.saturating_mul(page)),
            (Unit::Nanos, n) => units::micros(n as f64 / 1e3),
        },
        None => "-".to_string(),
    };
    let mut rows = vec![STREAMS.iter().map(|column| column.2.to_string()).collect::<Vec<_>>()];
    rows.extend(
        details.streams.iter().map(|row| STREAMS.iter().map(|column| shown(row, column)).collect()),
    );
    format!("\n{name}\n{}", table(&rows, 0))
}

fn troubles(d: &Device) -> String {
    let list = d.troubles();
    match list.is_empty() {
        true => String::new(),
        false => format!("{}: {}\n", d.name, list.join(", ")),
    }
}
