// SPDX-License-Identifier: GPL-2.0-only
//! Statistics that not every version of the module has: tables, histograms, newer
//! counters. All are optional.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{json, Map, Value};

use crate::counters::{self, directory, Device};
use crate::error::Result;
use crate::sys::Sys;

/// Latencies in the order of display. The files are named latency_NAME.
pub const LATENCIES: [&str; 7] =
    ["swap_out", "swap_in", "submit_wait", "chunk_wait", "gc", "gc_read", "gc_append"];

/// Files that hold no single number.
const NO_NUMBERS: [&str; 8] = [
    "check",
    "zone_states",
    "live_histogram",
    "stream_table",
    "policies",
    "victims",
    "latency",
    "policy_ejected",
];

/// Becomes a part of its device in JSON.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Details {
    /// How GC chooses its victim if the policy does not.
    pub victim: Option<String>,
    /// Why the last BPF policy ended without being asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_ejected: Option<String>,
    /// How pages are encrypted on the device.
    pub encrypt: Option<String>,
    /// How pages are compressed on the device.
    pub compress: Option<String>,
    /// Files with one number that `counters::Device` does not have.
    #[serde(flatten)]
    pub numbers: BTreeMap<String, u64>,
    pub zone_states: BTreeMap<String, u64>,
    /// Full zones by share of live blocks.
    pub live_histogram: Vec<Share>,
    pub latency: BTreeMap<String, Latency>,
    /// A row for each stream; the module defines the columns.
    #[serde(rename = "stream_table")]
    pub streams: Vec<Row>,
}

impl Details {
    /// Pages swapped out, as programs see them.
    pub fn swapped_out(&self, device: &Device) -> u64 {
        self.numbers.get("host_pages").copied().unwrap_or(device.host_blocks)
    }

    /// The compressor, if there is one.
    pub fn compresses(&self) -> Option<&str> {
        self.compress.as_deref().filter(|&how| how != "off")
    }

    /// What swap-out wrote / what was swapped out; None before the first page.
    pub fn share_written(&self, device: &Device) -> Option<f64> {
        let pages = self.swapped_out(device);
        (pages > 0).then(|| device.host_blocks as f64 / pages as f64)
    }
}

/// Zones with fewer than `live_percent` percent live blocks and at least as many as
/// in the line before. The last line includes 100 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    pub live_percent: u64,
    pub zones: u64,
}

/// A line of a table, by column.
pub type Row = Map<String, Value>;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    pub count: u64,
    #[serde(skip)]
    pub total_ns: u64,
    pub mean_us: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    /// Upper limit in us (null for none) and count; without empty buckets.
    pub buckets: Vec<(Option<u64>, u64)>,
    /// With the empty buckets, whose limits are the lower limits of the next.
    #[serde(skip)]
    pub all_buckets: Vec<(Option<u64>, u64)>,
}

/// True for files such as zones_empty, which `counters::Zones` has.
fn is_zones(known: &Value, file: &str) -> bool {
    file.strip_prefix("zones_").is_some_and(|state| known["zones"].get(state).is_some())
}

/// All devices that are on, with everything the module reports about them.
pub fn all(sys: &dyn Sys) -> Result<Vec<(Device, Details)>> {
    let with_details = |d: Device| {
        let details = read(sys, &d.name, &json!(d));
        (d, details)
    };
    Ok(counters::all(sys)?.into_iter().map(with_details).collect())
}

fn read(sys: &dyn Sys, name: &str, known: &Value) -> Details {
    let text = |file: &str| sys.read(&format!("{}/{file}", directory(name))).ok();
    let number = |row: &Row, column: &str| row.get(column).and_then(Value::as_u64);
    let rows = |file: &str| text(file).map_or(Vec::new(), |t| table(&t));
    let totals: BTreeMap<String, u64> = rows("latency")
        .iter()
        .filter_map(|r| Some((r.get("name")?.as_str()?.to_string(), number(r, "total_ns")?)))
        .collect();
    Details {
        victim: text("victim").map(|t| t.trim().to_string()),
        policy_ejected: text("policy_ejected")
            .map(|t| t.trim().to_string())
            .filter(|t| !t.is_empty()),
        encrypt: text("encrypt").map(|t| t.trim().to_string()),
        compress: text("compress").map(|t| t.trim().to_string()),
        numbers: sys
            .list(&directory(name))
            .into_iter()
            .filter(|f| known.get(f).is_none() && !is_zones(known, f))
            .filter(|f| !f.starts_with("latency_") && !NO_NUMBERS.contains(&f.as_str()))
            .filter_map(|f| Some((text(&f)?.trim().parse().ok()?, f)))
            .map(|(n, f)| (f, n))
            .collect(),
        zone_states: rows("zone_states")
            .iter()
            .filter_map(|r| Some((r.get("state")?.as_str()?.to_string(), number(r, "zones")?)))
            .collect(),
        live_histogram: rows("live_histogram")
            .iter()
            .filter_map(|r| {
                let live_percent = number(r, "live_percent")?;
                Some(Share { live_percent, zones: number(r, "zones")? })
            })
            .collect(),
        latency: LATENCIES
            .iter()
            .filter_map(|&what| {
                let total = totals.get(what).copied().unwrap_or(0);
                Some((what.to_string(), latency(&text(&format!("latency_{what}"))?, total)))
            })
            .collect(),
        streams: rows("stream_table"),
    }
}

/// Parses a table; its first line names the columns.
pub fn table(text: &str) -> Vec<Row> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let cell = |word: &str| match word.parse::<u64>() {
        Ok(n) => json!(n),
        Err(_) => json!(word),
    };
    lines
        .map(|line| {
            let words = line.split_whitespace().map(cell);
            names.iter().map(|n| n.to_string()).zip(words).collect()
        })
        .collect()
}

/// Parses a histogram: a line for each bucket, with its upper limit and count.
fn latency(text: &str, total_ns: u64) -> Latency {
    let mut buckets: Vec<(Option<u64>, u64)> = Vec::new();
    for line in text.lines().skip(1) {
        let mut words = line.split_whitespace();
        if let (Some(end), Some(Ok(count))) = (words.next(), words.next().map(str::parse)) {
            buckets.push((end.parse().ok(), count));
        }
    }
    let count = count(&buckets);
    let mean_us = match count {
        0 => 0.0,
        n => total_ns as f64 / 1e3 / n as f64,
    };
    Latency {
        count,
        total_ns,
        mean_us,
        p50_us: percentile(&buckets, 0.5),
        p99_us: percentile(&buckets, 0.99),
        p999_us: percentile(&buckets, 0.999),
        buckets: buckets.iter().copied().filter(|b| b.1 > 0).collect(),
        all_buckets: buckets,
    }
}

pub fn count(buckets: &[(Option<u64>, u64)]) -> u64 {
    buckets.iter().fold(0, |sum, b| sum.saturating_add(b.1))
}

/// Interpolates within a bucket. For the bucket without an upper limit it returns
/// the lower one.
pub fn percentile(buckets: &[(Option<u64>, u64)], share: f64) -> f64 {
    let wanted = count(buckets) as f64 * share;
    let (mut before, mut start) = (0.0, 0);
    for &(end, n) in buckets {
        let n = n as f64;
        if n > 0.0 && before + n >= wanted {
            let width = end.map_or(0, |end| end.saturating_sub(start)) as f64;
            return start as f64 + width * (wanted - before) / n;
        }
        before += n;
        start = end.unwrap_or(start);
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_parse() {
        let rows = table("stream host_blocks key\n0 12 -\n  1    3   ffff\n");
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0]["host_blocks"], 12);
        assert_eq!(rows[0]["key"], "-");
        assert_eq!(rows[1]["stream"], 1);
        assert!(table("").is_empty());
    }

    #[test]
    fn percentiles_are_interpolated() {
        let text = "below_us count\n4 0\n5 0\n96 98\n112 1\n16777216 0\ninf 1\n";
        let l = latency(text, 10_000_000);
        assert_eq!(l.count, 100);
        assert_eq!(l.mean_us, 100.0);
        assert!(l.p50_us > 5.0 && l.p50_us <= 96.0, "{l:?}");
        assert_eq!(l.p99_us, 112.0);
        assert_eq!(l.p999_us, 16_777_216.0);
        assert_eq!(l.buckets, [(Some(96), 98), (Some(112), 1), (None, 1)]);
    }

    #[test]
    fn invalid_histograms_do_not_overflow() {
        let most = u64::MAX;
        let l = latency(&format!("below_us count\n9 {most}\n3 {most}\ninf 1\n"), 0);
        assert_eq!((l.count, l.buckets.len()), (most, 3));
        let l = latency("below_us count\n100 0\n50 7\ninf 1\n", 0);
        assert_eq!((l.count, l.p50_us), (8, 100.0));
    }

    #[test]
    fn empty_histogram_is_all_zeros() {
        let l = latency("below_us count\n1 0\ninf 0\n", 0);
        assert_eq!((l.count, l.mean_us, l.p999_us), (0, 0.0, 0.0));
        assert!(l.buckets.is_empty());
    }
}
