// SPDX-License-Identifier: GPL-2.0-only
//! `znsage status`: a row a device.

use serde_json::json;

use crate::counters::{self, Device};
use crate::error::Result;
use crate::sys::Sys;
use crate::units;

pub struct Report {
    pub devices: Vec<Device>,
    page: u64,
}

pub fn run(sys: &dyn Sys, page: u64) -> Result<Report> {
    Ok(Report { devices: counters::all(sys)?, page })
}

const HEADINGS: [&str; 12] = [
    "NAME", "BACKING", "POLICY", "SIZE", "USED", "UTIL", "ZONES", "EMPTY", "OUT", "COPIED", "WAF",
    "MAP",
];

/// Columns that hold words; the others are numbers, set to the right.
const WORDS: usize = 3;

impl Report {
    pub fn to_json(&self) -> serde_json::Value {
        json!({"version": 1, "devices": self.devices})
    }

    pub fn to_text(&self) -> String {
        if self.devices.is_empty() {
            return "no znsage device is on\n".to_string();
        }
        let mut rows = vec![HEADINGS.map(str::to_string)];
        rows.extend(self.devices.iter().map(|d| self.row(d)));
        let mut text = table(&rows);
        for device in &self.devices {
            text += &troubles(device);
        }
        text
    }

    fn row(&self, d: &Device) -> [String; 12] {
        let blocks = |n: u64| units::size(n * self.page);
        [
            d.name.clone(),
            d.backing.clone(),
            d.policy.clone(),
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

fn table(rows: &[[String; 12]]) -> String {
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = rows.iter().map(|r| r[column].len()).max().unwrap_or(0);
            line += &match column < WORDS {
                true => format!("{cell:<width$}  "),
                false => format!("{cell:>width$}  "),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// What somebody should look after; nothing on a healthy device.
fn troubles(d: &Device) -> String {
    let list: Vec<String> = [
        (d.read_errors, "read errors"),
        (d.write_errors, "write errors"),
        (d.zones.retired, "zones retired"),
    ]
    .into_iter()
    .filter(|(n, _)| *n > 0)
    .map(|(n, what)| format!("{what}: {n}"))
    .collect();
    match list.is_empty() {
        true => String::new(),
        false => format!("{}: {}\n", d.name, list.join(", ")),
    }
}
