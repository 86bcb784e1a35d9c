// SPDX-License-Identifier: GPL-2.0-only
//! The result of `znsage probe`, as text and JSON (docs/json.md).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bench::Latency;
use crate::machine::Machine;
use crate::units;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Probe {
    pub device: Device,
    pub machine: Machine,
    pub kernel: String,
    /// Version of fio.
    pub fio: String,
    pub engine: String,
    /// `full` or `quick`.
    pub plan: String,
    pub seconds: f64,
    pub parallelism: Vec<Point>,
    /// Measured on a device without zones.
    #[serde(default)]
    pub zone_sizes: Vec<ZoneSize>,
    pub recommended: Vec<Setting>,
    /// Limits of the numbers' meaning.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Device {
    pub path: String,
    pub name: String,
    pub model: Option<String>,
    pub size_bytes: u64,
    pub zones: u64,
    pub zone_capacity_bytes: u64,
    pub write_unit_bytes: Option<u64>,
    pub append_max_bytes: u64,
    pub max_open_zones: Option<u64>,
    pub max_active_zones: Option<u64>,
}

/// Bandwidth and latency of requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Speed {
    pub mib_per_s: f64,
    pub ops_per_s: f64,
    pub latency_us: Latency,
}

/// The varied parameter of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Varies {
    Request,
    Zones,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Point {
    pub varies: Varies,
    pub request_bytes: u64,
    pub zones: u64,
    #[serde(flatten)]
    pub speed: Speed,
}

/// Virtual zones of one size, each written from its beginning to its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ZoneSize {
    pub zone_bytes: u64,
    pub request_bytes: u64,
    /// Requests in flight.
    pub depth: u64,
    #[serde(flatten)]
    pub speed: Speed,
}

/// A setting of `znsage on`, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    pub key: String,
    pub value: String,
    pub reason: String,
}

impl Probe {
    pub fn series(&self, varies: Varies) -> Vec<&Point> {
        self.parallelism.iter().filter(|p| p.varies == varies).collect()
    }

    pub fn to_json(&self) -> Value {
        let mut document = serde_json::json!({"version": 1});
        if let (Some(all), Ok(Value::Object(own))) =
            (document.as_object_mut(), serde_json::to_value(self))
        {
            all.extend(own);
        }
        document
    }

    pub fn to_text(&self) -> String {
        let d = &self.device;
        let mut text = format!(
            "{}{}: {}, measured in {:.0} s\n",
            d.path,
            d.model.as_ref().map_or(String::new(), |m| format!(" ({m})")),
            match d.zones {
                0 => format!("{} without zones", units::size(d.size_bytes)),
                n => format!("{n} zones of {}", units::size(d.zone_capacity_bytes)),
            },
            self.seconds
        );
        for varies in [Varies::Request, Varies::Zones] {
            text += &series(varies, &self.series(varies));
        }
        for size in &self.zone_sizes {
            text += &line(&format!("zone {}", units::size(size.zone_bytes)), &speed(&size.speed));
        }
        text += "recommended\n";
        for setting in &self.recommended {
            text += &line(&format!("  {}", setting.key), &setting.value);
            text += &line("", &setting.reason);
        }
        for note in &self.notes {
            text += &line("note", note);
        }
        text
    }
}

fn line(label: &str, text: &str) -> String {
    format!("{label:<14}{text}\n")
}

fn speed(s: &Speed) -> String {
    format!(
        "{:.1} MiB/s, p50 {}, p99 {}",
        s.mib_per_s,
        units::micros(s.latency_us.p50),
        units::micros(s.latency_us.p99)
    )
}

/// A series as a line of text.
fn series(varies: Varies, points: &[&Point]) -> String {
    let value = |p: &Point| match varies {
        Varies::Request => units::size(p.request_bytes),
        Varies::Zones => units::counted(p.zones, "zone"),
    };
    let texts: Vec<String> =
        points.iter().map(|p| format!("{} {:.1}", value(p), p.speed.mib_per_s)).collect();
    match texts.is_empty() {
        true => String::new(),
        false => line("write", &format!("{} MiB/s", texts.join(", "))),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Without measurements.
    pub fn empty() -> Probe {
        serde_json::from_value(serde_json::json!({
            "device": {
                "path": "/dev/nvme1n1", "name": "nvme1n1", "model": null, "size_bytes": 0,
                "zones": 0, "zone_capacity_bytes": 0, "write_unit_bytes": null,
                "append_max_bytes": 0, "max_open_zones": null, "max_active_zones": null,
            },
            "machine": {"cpu": null, "cpus": 1, "memory_bytes": null, "virtual_machine": false},
            "kernel": "", "fio": "", "engine": "", "plan": "full", "seconds": 0.0,
            "parallelism": [], "recommended": [], "notes": [],
        }))
        .expect("all is there")
    }
}
