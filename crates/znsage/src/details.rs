// SPDX-License-Identifier: GPL-2.0-only
//! Statistics that not every version of the module has, and tables that only root may
//! read. All are optional.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use serde::Serialize;
use serde_json::{json, Map, Value};

use crate::counters::{self, directory, Device};
use crate::error::{self, reason};
use crate::sys::Sys;

/// Latencies in the order of display: columns of the module's table.
pub const LATENCIES: [&str; 3] = ["swap_out", "swap_in", "gc"];
/// Files that hold no single number.
const NO_NUMBERS: [&str; 2] = ["check", "policy_ejected"];
/// Steps of the share of live blocks.
const SHARES: u64 = 10;

/// In JSON, these are fields of the device.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Details {
    /// How GC chooses its victim if the policy does not.
    pub victim: Option<String>,
    /// Why the last BPF policy was ejected.
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
    /// Why `zone_states` and what follows are empty: the tables cannot be read.
    #[serde(skip)]
    pub hidden: Option<String>,
}

impl Details {
    /// Counts the zones by state, and the full ones by share of live blocks. The table
    /// of a large device has megabytes.
    pub fn count_zones(&mut self, sys: &dyn Sys, device: &str) {
        let Ok(text) = debug(sys, device, "zones") else { return };
        let mut shares = [0; SHARES as usize];
        for row in table(&text) {
            let Some(state) = row.get("state").and_then(Value::as_str) else { continue };
            *self.zone_states.entry(state.to_string()).or_default() += 1;
            if let ("full", Some(live), Some(capacity @ 1..)) =
                (state, number(&row, "live"), number(&row, "capacity"))
            {
                let step = live.min(capacity) as u128 * u128::from(SHARES) / u128::from(capacity);
                shares[step.min(u128::from(SHARES - 1)) as usize] += 1;
            }
        }
        let step = |(i, &zones)| Share { live_percent: (i as u64 + 1) * 100 / SHARES, zones };
        self.live_histogram = shares.iter().enumerate().map(step).collect();
    }

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
pub fn all(sys: &dyn Sys) -> error::Result<Vec<(Device, Details)>> {
    let with_details = |d: Device| {
        let details = read(sys, &d.name, &json!(d));
        (d, details)
    };
    Ok(counters::all(sys)?.into_iter().map(with_details).collect())
}

fn read(sys: &dyn Sys, name: &str, known: &Value) -> Details {
    let text = |file: &str| sys.read(&format!("{}/{file}", directory(name))).ok();
    let times = debug(sys, name, "latency").map(|text| table(&text));
    Details {
        hidden: times.as_ref().err().cloned(),
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
            .filter(|f| !NO_NUMBERS.contains(&f.as_str()))
            .filter_map(|f| Some((text(&f)?.trim().parse().ok()?, f)))
            .map(|(n, f)| (f, n))
            .collect(),
        zone_states: BTreeMap::new(),
        live_histogram: Vec::new(),
        latency: times.iter().flat_map(|rows| latencies(rows)).collect(),
        streams: debug(sys, name, "stream_table").map_or(Vec::new(), |t| table(&t)),
    }
}

/// A table of the module in debugfs, or why it cannot be read.
pub fn debug(sys: &dyn Sys, device: &str, file: &str) -> Result<String, String> {
    let path = format!("/sys/kernel/debug/znsage/{device}/{file}");
    sys.read(&path).map_err(|e| match e.kind() {
        _ if !sys.is_root() => "only root may read debugfs".to_string(),
        ErrorKind::NotFound => "debugfs is not mounted".to_string(),
        _ => format!("{path}: {}", reason(&e)),
    })
}

fn number(row: &Row, column: &str) -> Option<u64> {
    row.get(column).and_then(Value::as_u64)
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

/// The histograms in the module's table: a line for each bucket, with its upper limit,
/// and a line of totals.
fn latencies(rows: &[Row]) -> Vec<(String, Latency)> {
    let is_total = |row: &&Row| row.get("below_us").is_some_and(|end| end == "total_ns");
    let histogram = |what: &str| {
        let total_ns = rows.iter().find(is_total).and_then(|row| number(row, what))?;
        let buckets = rows.iter().filter(|row| !is_total(row));
        let buckets = buckets.filter_map(|row| Some((number(row, "below_us"), number(row, what)?)));
        Some((what.to_string(), latency(buckets.collect(), total_ns)))
    };
    LATENCIES.iter().filter_map(|what| histogram(what)).collect()
}

/// From upper limits and counts.
fn latency(buckets: Vec<(Option<u64>, u64)>, total_ns: u64) -> Latency {
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
        let text = "below_us swap_out gc\n4 0 0\n5 0 0\n96 98 0\n112 1 0\n16777216 0 0\ninf 1 0\n\
            total_ns 10000000 0\n";
        let all = latencies(&table(text));
        let (names, l) = ([&all[0].0, &all[1].0], &all[0].1);
        assert_eq!(names, ["swap_out", "gc"]);
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
        let l = latency(vec![(Some(9), most), (Some(3), most), (None, 1)], 0);
        assert_eq!((l.count, l.buckets.len()), (most, 3));
        let l = latency(vec![(Some(100), 0), (Some(50), 7), (None, 1)], 0);
        assert_eq!((l.count, l.p50_us), (8, 100.0));
    }

    #[test]
    fn empty_histogram_is_all_zeros() {
        let l = latency(vec![(Some(1), 0), (None, 0)], 0);
        assert_eq!((l.count, l.mean_us, l.p999_us), (0, 0.0, 0.0));
        assert!(l.buckets.is_empty());
    }
}
