// SPDX-License-Identifier: GPL-2.0-only
//! `znsage status`: a row per device, then latencies, zones and streams.

use std::collections::BTreeMap;

use serde_json::{json, Value};

use crate::cli::StatusArgs;
use crate::counters::Device;
use crate::details::{self, Details, LATENCIES};
use crate::error::Result;
use crate::sys::Sys;
use crate::units::{self, table};
use crate::{cgroups, guard, prometheus, queue};

pub struct Report {
    pub devices: Vec<(Device, Details)>,
    page: u64,
    streams: bool,
    /// With --prometheus: all cgroups by id.
    metrics: Option<BTreeMap<u64, String>>,
    /// Backing devices that were removed while in use.
    gone: Vec<String>,
    /// Devices without the guard that they need.
    unguarded: Vec<String>,
}

pub fn run(sys: &dyn Sys, args: &StatusArgs, page: u64) -> Result<Report> {
    let devices = details::all(sys)?;
    let by_cgroup = devices.iter().any(|(d, _)| d.policy == "cgroup");
    let metrics = args.prometheus.then(|| match by_cgroup {
        true => cgroups::paths(sys),
        false => BTreeMap::new(),
    });
    let backings = devices.iter().map(|(d, _)| d.backing.clone());
    let gone = backings.filter(|backing| queue::is_gone(sys, backing)).collect();
    let missing = |(d, _): &(Device, Details)| guard::missing(sys, &d.name);
    let unguarded = devices.iter().filter_map(missing).map(|(what, _)| what).collect();
    Ok(Report { devices, page, streams: args.streams, metrics, gone, unguarded })
}

const HEADINGS: [&str; 13] = [
    "NAME", "BACKING", "POLICY", "VICTIM", "SIZE", "USED", "UTIL", "ZONES", "EMPTY", "OUT",
    "COPIED", "WAF", "MAP",
];

/// The first columns hold words, the others numbers.
const WORDS: usize = 4;

impl Report {
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
        if self.devices.is_empty() {
            return "no znsage device is on\n".to_string();
        }
        let mut rows = vec![HEADINGS.map(str::to_string).to_vec()];
        rows.extend(self.devices.iter().map(|(d, more)| self.row(d, more)));
        let mut text = table(&rows, WORDS);
        for (device, details) in &self.devices {
            if let Some(how) = &details.encrypt {
                text += &format!("\n{}: encryption: {how}\n", device.name);
            }
            text += &compression(device, details);
            text += &latencies(&device.name, details);
            text += &zones(&device.name, details);
            if self.streams {
                text += &streams(&device.name, details);
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

    fn row(&self, d: &Device, more: &Details) -> Vec<String> {
        let blocks = |n: u64| units::size(n.saturating_mul(self.page));
        vec![
            d.name.clone(),
            d.backing.clone(),
            d.policy.clone(),
            more.victim.clone().unwrap_or("-".to_string()),
            units::size(d.size_bytes),
            blocks(d.slots_used),
            format!("{:.1} %", 100.0 * d.utilization),
            d.zones.total.to_string(),
            d.zones.empty.to_string(),
            blocks(d.host_blocks),
            blocks(d.gc_blocks),
            d.waf.map_or("-".to_string(), |waf| format!("{waf:.2}")),
            units::size(d.map_bytes),
        ]
    }
}

/// How pages are compressed, and what that gained so far; nothing if they are not.
fn compression(device: &Device, details: &Details) -> String {
    let Some(how) = details.compress.as_deref().filter(|&how| how != "off") else {
        return String::new();
    };
    let pages = details.numbers.get("host_pages").copied().filter(|&pages| pages > 0);
    let gained = pages.map_or(String::new(), |pages| {
        let percent = device.host_blocks as f64 / pages as f64 * 100.0;
        format!(", pages take {percent:.0} % of their size")
    });
    format!("\n{}: compression: {how}{gained}\n", device.name)
}

/// Latencies since attach, or since the histograms were reset.
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

fn streams(name: &str, details: &Details) -> String {
    let Some(first) = details.streams.first() else {
        return format!("\n{name}: this module has no statistics of streams\n");
    };
    let columns: Vec<&String> = first.keys().collect();
    let shown = |v: Option<&Value>| match v {
        Some(Value::String(s)) => s.clone(),
        Some(v) => v.to_string(),
        None => "-".to_string(),
    };
    let mut rows = vec![columns.iter().map(|c| c.to_uppercase()).collect::<Vec<_>>()];
    for row in &details.streams {
        rows.push(columns.iter().map(|c| shown(row.get(*c))).collect());
    }
    format!("\n{name}\n{}", table(&rows, 0))
}

fn troubles(d: &Device) -> String {
    let list = d.troubles();
    match list.is_empty() {
        true => String::new(),
        false => format!("{}: {}\n", d.name, list.join(", ")),
    }
}
