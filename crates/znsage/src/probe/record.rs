// SPDX-License-Identifier: GPL-2.0-only
//! The result of `znsage probe`, as text and JSON (docs/json.md).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use znsage_sim::stats;

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
    pub isolation: Vec<Neighbours>,
    pub predictability: Vec<Fill>,
    pub zone_times: Vec<ZoneTimes>,
    /// Of a device without zones.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    Write,
    Append,
    Read,
}

impl Operation {
    pub fn name(self) -> &'static str {
        match self {
            Operation::Write => "write",
            Operation::Append => "append",
            Operation::Read => "read",
        }
    }
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
    Depth,
    Zones,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Point {
    pub varies: Varies,
    pub operation: Operation,
    pub request_bytes: u64,
    /// Requests in flight, per zone.
    pub depth: u64,
    pub zones: u64,
    #[serde(flatten)]
    pub speed: Speed,
}

/// A worker alone, or beside others.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Neighbours {
    pub worker: Operation,
    pub request_bytes: u64,
    pub others: u64,
    /// None without others.
    pub others_do: Option<Operation>,
    pub same_zone: Option<bool>,
    /// Of the worker only.
    #[serde(flatten)]
    pub speed: Speed,
}

/// Bandwidth over time while a part of the device is rewritten.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fill {
    pub percent: u64,
    /// Zones in use.
    pub zones: u64,
    pub request_bytes: u64,
    /// How often the part was written.
    pub passes: f64,
    pub mean_mib_per_s: f64,
    pub lowest_mib_per_s: f64,
    /// Standard deviation of the samples, in percent of the mean.
    pub deviation_percent: f64,
    pub samples: Vec<Sample>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sample {
    pub seconds: f64,
    pub mib_per_s: f64,
}

/// Times of commands to zones with this fill level.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ZoneTimes {
    pub full_percent: u64,
    pub reset_us: Option<Times>,
    /// None for full zones.
    pub finish_us: Option<Times>,
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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Times {
    pub count: u64,
    pub mean: f64,
    pub max: f64,
}

impl Times {
    pub fn of(us: &[f64]) -> Option<Times> {
        let max = us.iter().copied().reduce(f64::max)?;
        Some(Times { count: us.len() as u64, mean: stats::mean(us)?, max })
    }
}

/// A setting of `znsage on`, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    pub key: String,
    pub value: String,
    pub reason: String,
}

impl Fill {
    pub fn of(
        (percent, zones): (u64, u64),
        request_bytes: u64,
        passes: f64,
        samples: Vec<Sample>,
    ) -> Fill {
        let rates: Vec<f64> = samples.iter().map(|s| s.mib_per_s).collect();
        let mean = stats::mean(&rates).unwrap_or(0.0);
        let lowest = rates.iter().copied().reduce(f64::min).unwrap_or(0.0);
        let squares: Vec<f64> = rates.iter().map(|r| (r - mean) * (r - mean)).collect();
        let deviation = stats::mean(&squares).unwrap_or(0.0).sqrt();
        let deviation_percent = if mean > 0.0 { 100.0 * deviation / mean } else { 0.0 };
        let (mean_mib_per_s, lowest_mib_per_s) = (mean, lowest);
        Fill {
            percent,
            zones,
            request_bytes,
            passes,
            mean_mib_per_s,
            lowest_mib_per_s,
            deviation_percent,
            samples,
        }
    }
}

impl Neighbours {
    /// `alone`, `beside 2 writers of other zones`.
    pub fn company(&self) -> String {
        let (Some(what), Some(same)) = (self.others_do, self.same_zone) else {
            return "alone".to_string();
        };
        let who = match what {
            Operation::Write => "writer",
            Operation::Append => "appender",
            Operation::Read => "reader",
        };
        let zone = if same { "the same zone" } else { "other zones" };
        format!("beside {} of {zone}", units::counted(self.others, who))
    }
}

impl Probe {
    pub fn series(&self, varies: Varies, operation: Operation) -> impl Iterator<Item = &Point> {
        self.parallelism.iter().filter(move |p| p.varies == varies && p.operation == operation)
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
        for varies in [Varies::Request, Varies::Depth, Varies::Zones] {
            for operation in [Operation::Write, Operation::Append, Operation::Read] {
                let points: Vec<&Point> = self.series(varies, operation).collect();
                text += &series(varies, operation, &points);
            }
        }
        for n in &self.isolation {
            text += &line(
                &format!("{} {}", n.worker.name(), units::size(n.request_bytes)),
                &format!("{}: {}", n.company(), speed(&n.speed)),
            );
        }
        for fill in &self.predictability {
            let what = format!(
                "{:.0} MiB/s, lowest half second {:.0}, deviation {:.1} %, written {:.1} times",
                fill.mean_mib_per_s, fill.lowest_mib_per_s, fill.deviation_percent, fill.passes
            );
            text += &line(&format!("fill {} %", fill.percent), &what);
        }
        for times in &self.zone_times {
            let texts = [("reset", &times.reset_us), ("finish", &times.finish_us)];
            let texts: Vec<String> = texts
                .iter()
                .filter_map(|(what, t)| Some((what, t.as_ref()?)))
                .map(|(what, t)| {
                    format!("{what} {} (longest {})", units::micros(t.mean), units::micros(t.max))
                })
                .collect();
            text += &line(&format!("zone {} %", times.full_percent), &texts.join(", "));
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
fn series(varies: Varies, operation: Operation, points: &[&Point]) -> String {
    let value = |p: &Point| match varies {
        Varies::Request => units::size(p.request_bytes),
        Varies::Depth => format!("depth {}", p.depth),
        Varies::Zones => units::counted(p.zones, "zone"),
    };
    let texts: Vec<String> =
        points.iter().map(|p| format!("{} {:.1}", value(p), p.speed.mib_per_s)).collect();
    match texts.is_empty() {
        true => String::new(),
        false => line(operation.name(), &format!("{} MiB/s", texts.join(", "))),
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
            "parallelism": [], "isolation": [], "predictability": [], "zone_times": [],
            "recommended": [], "notes": [],
        }))
        .expect("all is there")
    }

    #[test]
    fn fills_have_a_deviation() {
        let sample = |mib_per_s| Sample { seconds: 0.0, mib_per_s };
        let fill = Fill::of((60, 9), 4096, 1.0, vec![sample(90.0), sample(110.0)]);
        assert_eq!((fill.mean_mib_per_s, fill.lowest_mib_per_s), (100.0, 90.0));
        assert!((fill.deviation_percent - 10.0).abs() < 1e-9);
        assert_eq!(Fill::of((60, 9), 4096, 0.0, vec![]).deviation_percent, 0.0);
    }

    #[test]
    fn no_times_from_no_samples() {
        assert_eq!(Times::of(&[]), None);
        assert_eq!(Times::of(&[1.0, 3.0]), Some(Times { count: 2, mean: 2.0, max: 3.0 }));
    }
}
