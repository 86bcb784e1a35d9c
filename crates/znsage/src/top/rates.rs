// SPDX-License-Identifier: GPL-2.0-only
//! Rates per second between two samples of a device.

use std::collections::VecDeque;

use serde_json::Value;

use crate::counters::{self, Device};
use crate::details::{count, percentile, Details, Latency};

/// Latencies of an interval, in us.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    pub p50: f64,
    pub p99: f64,
}

/// Bytes and events per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Pages swapped out, as programs see them.
    pub out_bytes: f64,
    /// Pages swapped in. None if the module does not count it.
    pub in_bytes: Option<f64>,
    /// What swap-out wrote to the device: less with compression.
    pub written_bytes: f64,
    pub gc_bytes: f64,
    /// WAF of the interval; None if nothing was swapped out.
    pub waf: Option<f64>,
    /// Zones that GC emptied, and their share of live blocks when chosen, 0 to 1.
    pub gc_zones: f64,
    pub gc_live: Option<f64>,
    pub stalls: f64,
    /// Time that chunks of all streams waited for zones, ms per second.
    pub waited_ms: f64,
    pub swap_out: Option<Times>,
    pub swap_in: Option<Times>,
}

/// A sample of a device.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub device: Device,
    pub details: Details,
}

impl Seen {
    /// An optional counter.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.details.numbers.get(name).copied()
    }
}

/// The increase of a counter; None if it decreased.
fn more(before: u64, now: u64) -> Option<f64> {
    now.checked_sub(before).map(|n| n as f64)
}

/// The rates between two samples that are `seconds` apart. None if the counters
/// restarted: the samples belong to two devices with the same name.
pub fn between(before: &Seen, now: &Seen, seconds: f64, page: u64) -> Option<Rates> {
    let (a, b) = (&before.device, &now.device);
    if a.backing != b.backing || seconds <= 0.0 {
        return None;
    }
    let each = |counter: fn(&Device) -> u64| more(counter(a), counter(b));
    let newer = |name| Some(more(before.number(name)?, now.number(name)?));
    let (host, gc) = (each(|d| d.host_blocks)?, each(|d| d.gc_blocks)?);
    let padding = each(|d| d.padding_blocks)?;
    let out = more(before.details.swapped_out(a), now.details.swapped_out(b))?;
    let (read, zones) = (newer("read_blocks"), newer("gc_zones").unwrap_or(Some(0.0))?);
    let bytes = |blocks: f64| blocks * page as f64 / seconds;
    let capacity = zones * (b.zone_bytes / page.max(1)) as f64;
    let waited = |seen: &Seen| sum(&seen.details, "stall_ns");
    Some(Rates {
        out_bytes: bytes(out),
        written_bytes: bytes(host),
        in_bytes: match read {
            Some(blocks) => Some(bytes(blocks?)),
            None => None,
        },
        gc_bytes: bytes(gc),
        waf: counters::waf(host as u64, gc as u64, padding as u64),
        gc_zones: zones / seconds,
        gc_live: (capacity > 0.0).then(|| each(|d| d.gc_read_blocks).unwrap_or(0.0) / capacity),
        stalls: each(|d| d.stalls)? / seconds,
        // Streams come and go: a decrease gives no rate.
        waited_ms: more(waited(before), waited(now)).unwrap_or(0.0) / 1e6 / seconds,
        swap_out: times(before, now, "swap_out"),
        swap_in: times(before, now, "swap_in"),
    })
}

fn sum(details: &Details, column: &str) -> u64 {
    let numbers = details.streams.iter().filter_map(|row| row.get(column)?.as_u64());
    numbers.fold(0, u64::saturating_add)
}

/// Latencies of the interval; None if nothing was timed.
fn times(before: &Seen, now: &Seen, what: &str) -> Option<Times> {
    let now = now.details.latency.get(what)?;
    let buckets = match before.details.latency.get(what) {
        Some(before) => difference(before, now),
        None => now.all_buckets.clone(),
    };
    (count(&buckets) > 0)
        .then(|| Times { p50: percentile(&buckets, 0.5), p99: percentile(&buckets, 0.99) })
}

/// The increase of a histogram, or all of it after a reset.
fn difference(before: &Latency, now: &Latency) -> Vec<(Option<u64>, u64)> {
    let same = before.all_buckets.len() == now.all_buckets.len();
    if !same || before.count > now.count {
        return now.all_buckets.clone();
    }
    let pairs = before.all_buckets.iter().zip(&now.all_buckets);
    pairs.map(|(a, b)| (b.0, b.1.saturating_sub(a.1))).collect()
}

/// The rate of a column of a stream.
pub fn of_row(before: Option<&Value>, now: Option<&Value>, seconds: f64) -> Option<f64> {
    let (before, now) = (before?.as_u64()?, now?.as_u64()?);
    (seconds > 0.0).then_some(more(before, now)? / seconds)
}

/// Enough for the widest terminal.
const LENGTH: usize = 512;

/// The last values of a rate, the newest at the end.
#[derive(Clone, Debug, Default)]
pub struct Course {
    values: VecDeque<Option<f64>>,
}

impl Course {
    pub fn add(&mut self, value: Option<f64>) {
        if self.values.len() == LENGTH {
            self.values.pop_front();
        }
        self.values.push_back(value);
    }

    /// The newest first.
    pub fn newest(&self) -> impl Iterator<Item = Option<f64>> + '_ {
        self.values.iter().rev().copied()
    }
}

/// The rates that are drawn over time.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub out: Course,
    pub inward: Course,
    pub written: Course,
    pub gc: Course,
    pub out_p99: Course,
    pub in_p99: Course,
}

impl History {
    pub fn add(&mut self, rates: &Rates) {
        self.out.add(Some(rates.out_bytes));
        self.inward.add(rates.in_bytes);
        self.written.add(Some(rates.written_bytes));
        self.gc.add(Some(rates.gc_bytes));
        self.out_p99.add(rates.swap_out.map(|t| t.p99));
        self.in_p99.add(rates.swap_in.map(|t| t.p99));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seen(host: u64, gc: u64, buckets: &[u64]) -> Seen {
        let mut seen = Seen::default();
        seen.device.host_blocks = host;
        seen.device.gc_blocks = gc;
        seen.device.zone_bytes = 40 * 4096;
        seen.device.gc_read_blocks = gc;
        seen.details.numbers.insert("gc_zones".into(), gc / 10);
        let all: Vec<_> =
            buckets.iter().zip([100, 200, 400]).map(|(n, end)| (Some(end), *n)).collect();
        let latency = Latency {
            count: count(&all),
            total_ns: 0,
            mean_us: 0.0,
            p50_us: 0.0,
            p99_us: 0.0,
            p999_us: 0.0,
            buckets: Vec::new(),
            all_buckets: all,
        };
        seen.details.latency.insert("swap_out".into(), latency);
        seen
    }

    #[test]
    fn rates_are_differences_per_second() {
        let rates =
            between(&seen(100, 0, &[5, 0, 0]), &seen(300, 100, &[5, 0, 10]), 2.0, 4096).unwrap();
        assert_eq!((rates.out_bytes, rates.gc_bytes), (100.0 * 4096.0, 50.0 * 4096.0));
        assert_eq!(rates.written_bytes, rates.out_bytes);
        assert_eq!((rates.waf, rates.gc_zones, rates.gc_live), (Some(1.5), 5.0, Some(0.25)));
        assert_eq!(rates.in_bytes, None);
        // Only the new values: between 200 and 400 us.
        let times = rates.swap_out.unwrap();
        assert_eq!((times.p50, times.p99), (300.0, 398.0));
        assert_eq!(rates.swap_in, None);
    }

    #[test]
    fn compressed_pages_are_more_than_what_is_written() {
        let with_pages = |pages, mut seen: Seen| {
            seen.details.numbers.insert("host_pages".into(), pages);
            seen
        };
        let (before, now) =
            (with_pages(300, seen(100, 0, &[])), with_pages(700, seen(200, 0, &[])));
        let rates = between(&before, &now, 2.0, 4096).unwrap();
        assert_eq!((rates.out_bytes, rates.written_bytes), (200.0 * 4096.0, 50.0 * 4096.0));
        assert_eq!(now.details.share_written(&now.device), Some(200.0 / 700.0));
    }

    #[test]
    fn idle_interval_has_no_latency_and_no_waf() {
        let rates = between(&seen(9, 0, &[5, 0, 0]), &seen(9, 0, &[5, 0, 0]), 1.0, 4096).unwrap();
        assert_eq!((rates.swap_out, rates.waf, rates.gc_live), (None, None, None));
    }

    #[test]
    fn histogram_counts_in_full_after_a_reset() {
        let rates = between(&seen(9, 0, &[0, 0, 50]), &seen(9, 0, &[10, 0, 0]), 1.0, 4096).unwrap();
        assert_eq!(rates.swap_out.unwrap().p50, 50.0);
    }

    #[test]
    fn another_device_with_the_same_name_is_detected() {
        assert!(between(&seen(9, 0, &[]), &seen(8, 0, &[]), 1.0, 4096).is_none());
        let mut other = seen(10, 0, &[]);
        other.device.backing = "nvme7n1".into();
        assert!(between(&seen(9, 0, &[]), &other, 1.0, 4096).is_none());
        assert!(between(&seen(9, 0, &[]), &seen(10, 0, &[]), 0.0, 4096).is_none());
    }

    #[test]
    fn rows_without_a_number_have_no_rate() {
        assert_eq!(of_row(Some(&json!(2)), Some(&json!(8)), 2.0), Some(3.0));
        assert_eq!(of_row(Some(&json!(9)), Some(&json!(8)), 2.0), None);
        assert_eq!(of_row(Some(&json!("x")), Some(&json!(8)), 2.0), None);
        assert_eq!(of_row(None, Some(&json!(8)), 2.0), None);
    }

    #[test]
    fn course_drops_old_values() {
        let mut course = Course::default();
        (0..LENGTH + 3).for_each(|i| course.add(Some(i as f64)));
        assert_eq!(course.newest().count(), LENGTH);
        assert_eq!(course.newest().next(), Some(Some((LENGTH + 2) as f64)));
    }
}
