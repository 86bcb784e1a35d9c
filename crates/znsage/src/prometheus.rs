// SPDX-License-Identifier: GPL-2.0-only
//! `znsage status --prometheus`: the counters in the text format of Prometheus.
//!
//! Names and units follow its conventions: bytes, seconds and ratios instead of
//! blocks, microseconds and percent; counters end in _total. Queries compute derived
//! values such as the WAF. A test compares docs/monitor.md with this list.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

use crate::counters::Device;
use crate::details::{Details, Row, LATENCIES};

/// Exported buckets end at powers of two, in us. The module has four times as many.
const LAST_POWER: u32 = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// A device and the context of its values.
struct Scene<'a> {
    device: &'a Device,
    details: &'a Details,
    /// Bytes of a block.
    page: u64,
    cgroups: &'a BTreeMap<u64, String>,
}

/// A line of output: end of the name, values of the metric's labels, value.
struct Sample {
    suffix: &'static str,
    labels: Vec<String>,
    /// The upper limit of a bucket.
    le: Option<String>,
    value: String,
}

impl Sample {
    fn labelled(labels: Vec<String>, value: impl ToString) -> Self {
        Sample { suffix: "", labels, le: None, value: value.to_string() }
    }

    fn plain(value: impl ToString) -> Self {
        Self::labelled(Vec::new(), value)
    }
}

/// The unit of a number of the module, for conversion.
#[derive(Clone, Copy)]
enum Unit {
    One,
    Blocks,
    Micros,
    Nanos,
    Percent,
}

impl Unit {
    fn show(self, n: u64, page: u64) -> String {
        match self {
            Unit::One => n.to_string(),
            Unit::Blocks => n.saturating_mul(page).to_string(),
            Unit::Micros => (n as f64 / 1e6).to_string(),
            Unit::Nanos => (n as f64 / 1e9).to_string(),
            Unit::Percent => (n as f64 / 100.0).to_string(),
        }
    }
}

/// Where a metric's values come from.
enum From {
    /// A file with a number.
    Number(Unit),
    /// A column of the table of streams.
    Column(&'static str, Unit),
    Other(fn(&Scene) -> Vec<Sample>),
}

/// A metric: all lines of one name.
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
    /// Besides `device`.
    pub labels: &'static [&'static str],
    /// The file in /sys/block/znsageN/znsage.
    pub file: &'static str,
    from: From,
}

impl Metric {
    /// The column of the file, if that is a table.
    #[cfg(test)]
    pub fn column(&self) -> Option<&'static str> {
        match self.from {
            From::Column(column, _) => Some(column),
            _ => None,
        }
    }
}

const fn number(
    name: &'static str,
    kind: Kind,
    file: &'static str,
    unit: Unit,
    help: &'static str,
) -> Metric {
    Metric { name, kind, help, labels: &[], file, from: From::Number(unit) }
}

const fn column(
    name: &'static str,
    kind: Kind,
    column: &'static str,
    unit: Unit,
    help: &'static str,
) -> Metric {
    let from = From::Column(column, unit);
    Metric { name, kind, help, labels: &["stream"], file: "stream_table", from }
}

const fn other(
    name: &'static str,
    kind: Kind,
    file: &'static str,
    labels: &'static [&'static str],
    from: fn(&Scene) -> Vec<Sample>,
    help: &'static str,
) -> Metric {
    Metric { name, kind, help, labels, file, from: From::Other(from) }
}

/// The number of devices; printed even if it is 0.
pub const DEVICES: (&str, &str) = ("znsage_devices", "Devices that are on.");

use Kind::{Counter, Gauge, Histogram};
use Unit::{Blocks, Micros, Nanos, One, Percent};

#[rustfmt::skip]
pub const METRICS: &[Metric] = &[
    other("znsage_device_info", Gauge, "backing", &["backing", "policy", "victim", "compress", "encrypt", "version"], info,
        "1; the labels give the backing device, the settings that are words, and the version of the command."),

    number("znsage_size_bytes", Gauge, "size_bytes", One, "Swap space."),
    number("znsage_used_bytes", Gauge, "slots_used", Blocks, "Swap space that holds data or is being written."),
    number("znsage_capacity_bytes", Gauge, "blocks_total", Blocks, "Capacity of all usable zones."),
    number("znsage_live_bytes", Gauge, "live_blocks", Blocks, "Data on the device that is still needed."),
    number("znsage_map_bytes", Gauge, "map_bytes", One, "Memory of the maps."),
    number("znsage_zone_size_bytes", Gauge, "zone_bytes", One, "Capacity of a zone."),
    number("znsage_chunk_size_bytes", Gauge, "chunk_bytes", One, "Longest append."),
    number("znsage_write_unit_bytes", Gauge, "write_unit_bytes", One, "Appends are multiples of this."),
    other("znsage_zones", Gauge, "zones_total", &["state"], zones,
        "Zones of the backing device: empty, open, full, retired after errors, unused."),
    other("znsage_full_zones", Gauge, "zones", &["live_below"], full_zones,
        "Full zones by their share of live blocks, which is below the label and not below the previous label; 1 includes zones that are all live."),

    number("znsage_swapped_out_bytes_total", Counter, "host_pages", Blocks, "Pages swapped out, as programs see them."),
    number("znsage_written_bytes_total", Counter, "host_blocks", Blocks, "Written to the device by swap-out and acknowledged: what was swapped out, or less with compression."),
    number("znsage_refused_bytes_total", Counter, "refused_pages", Blocks, "Pages that swap-out refused because the device is full: pages compress less than the size assumes."),
    number("znsage_swapped_in_bytes_total", Counter, "read_blocks", Blocks, "Pages swapped in."),
    number("znsage_freed_bytes_total", Counter, "slots_freed", Blocks, "Data that the kernel freed."),
    number("znsage_padding_bytes_total", Counter, "padding_blocks", Blocks, "Written to fill up a write unit."),
    number("znsage_gc_copied_bytes_total", Counter, "gc_blocks", Blocks, "Copied by garbage collection and acknowledged."),
    number("znsage_gc_read_bytes_total", Counter, "gc_read_blocks", Blocks, "Read by garbage collection."),
    number("znsage_gc_zones_total", Counter, "gc_zones", One, "Zones emptied by garbage collection."),
    number("znsage_dead_zones_total", Counter, "zones_dead", One, "Zones reset without garbage collection because no live block was left."),
    number("znsage_zone_resets_total", Counter, "zone_resets", One, "Zones reset."),
    number("znsage_appends_total", Counter, "chunks", One, "Appends acknowledged by the device."),
    number("znsage_stalls_total", Counter, "stalls", One, "Appends of swap-out that waited for GC to empty a zone."),
    number("znsage_read_errors_total", Counter, "read_errors", One, "Blocks that could not be read."),
    number("znsage_write_errors_total", Counter, "write_errors", One, "Appends, resets and finishes that failed."),
    number("znsage_lost_zones_total", Counter, "zones_lost", One, "Zones that another program reset."),
    number("znsage_lost_bytes_total", Counter, "pages_lost", Blocks, "Pages lost in zones that another program reset, or that GC could not read for a long time."),
    number("znsage_policy_refused_total", Counter, "policy_refused", One, "Invalid answers of a policy."),
    other("znsage_latency_seconds", Histogram, "latency", &["operation"], latencies,
        "Time that operations took."),

    number("znsage_streams", Gauge, "streams", One, "Streams of swap-out."),
    number("znsage_stripe_zones", Gauge, "stripe", One, "Zones that each stream writes at a time."),
    number("znsage_gc_stripe_zones", Gauge, "gc_stripe", One, "Zones that garbage collection writes at a time."),
    number("znsage_gc_shared", Gauge, "gc_shared", One, "1 if swap-out writes the zones of garbage collection."),
    number("znsage_survivor_classes", Gauge, "survivors", One, "Classes of zones for what garbage collection copies."),
    number("znsage_keys", Gauge, "keys", One, "Keys, such as cgroups, that have a stream."),
    number("znsage_keys_sharing", Gauge, "keys_sharing", One, "Keys that share their stream with others."),
    number("znsage_write_window_bytes", Gauge, "write_window", Blocks, "Swapped-out data that may be in flight at once."),
    number("znsage_gc_low_zones", Gauge, "gc_low", One, "Garbage collection begins when fewer zones are empty."),
    number("znsage_gc_high_zones", Gauge, "gc_high", One, "Garbage collection stops when this many zones are empty."),
    number("znsage_gc_pace_ratio", Gauge, "pace", Percent, "Part of a zone that garbage collection keeps free for swap-out, besides half of each other zone that is open."),
    number("znsage_deadline_seconds", Gauge, "deadline_us", Micros, "Longest time that a page waits for its chunk to fill."),

    other("znsage_stream_info", Gauge, "stream_table", &["stream", "key", "cgroup"], stream_info,
        "1; the labels name the owner of the stream: the key of its pages and, with the policy cgroup, the group."),
    column("znsage_stream_written_bytes_total", Counter, "host_blocks", Blocks, "Written to the device by swap-out of the stream."),
    column("znsage_stream_swapped_in_bytes_total", Counter, "read_blocks", Blocks, "Swapped in from zones that the stream wrote."),
    column("znsage_stream_gc_copied_bytes_total", Counter, "gc_blocks", Blocks, "Copied by garbage collection out of zones that the stream wrote."),
    column("znsage_stream_padding_bytes_total", Counter, "padding_blocks", Blocks, "Written by the stream to fill up a write unit."),
    column("znsage_stream_stalls_total", Counter, "stalls", One, "Appends of the stream that waited for GC to empty a zone."),
    column("znsage_stream_stall_seconds_total", Counter, "stall_ns", Nanos, "Time that appends of the stream waited for a zone."),
    column("znsage_stream_zones", Gauge, "zones", One, "Zones that the stream has open."),
    column("znsage_stream_keys", Gauge, "keys", One, "Keys that share the stream."),
];

/// The whole text. `page` is the size of a block; `cgroups` has paths by id.
pub fn text(devices: &[(Device, Details)], page: u64, cgroups: &BTreeMap<u64, String>) -> String {
    let (name, help) = DEVICES;
    let mut text = head(name, Gauge, help);
    let _ = writeln!(text, "{name} {}", devices.len());
    for metric in METRICS {
        let mut lines = String::new();
        for (device, details) in devices {
            let scene = Scene { device, details, page, cgroups };
            for sample in samples(metric, &scene) {
                line(&mut lines, metric, &device.name, &sample);
            }
        }
        // No head for a metric that this module does not have.
        if !lines.is_empty() {
            text += &head(metric.name, metric.kind, metric.help);
            text += &lines;
        }
    }
    text
}

fn head(name: &str, kind: Kind, help: &str) -> String {
    format!("# HELP {name} {help}\n# TYPE {name} {}\n", kind.name())
}

fn line(text: &mut String, metric: &Metric, device: &str, sample: &Sample) {
    let _ = write!(text, "{}{}{{device=\"{}\"", metric.name, sample.suffix, escape(device));
    let labels = metric.labels.iter().copied().zip(&sample.labels);
    for (label, value) in labels.chain(sample.le.iter().map(|end| ("le", end))) {
        let _ = write!(text, ",{label}=\"{}\"", escape(value));
    }
    let _ = writeln!(text, "}} {}", sample.value);
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn samples(metric: &Metric, scene: &Scene) -> Vec<Sample> {
    match metric.from {
        From::Number(unit) => {
            let number = number_of(scene, metric.file);
            number.map(|n| Sample::plain(unit.show(n, scene.page))).into_iter().collect()
        }
        From::Column(column, unit) => {
            let cell = |row: &Row| {
                let n = row.get(column)?.as_u64()?;
                Some(Sample::labelled(vec![stream(row)?], unit.show(n, scene.page)))
            };
            scene.details.streams.iter().filter_map(cell).collect()
        }
        From::Other(of) => of(scene),
    }
}

/// The number in a file, by the file's name.
fn number_of(scene: &Scene, file: &str) -> Option<u64> {
    let d = scene.device;
    Some(match file {
        "size_bytes" => d.size_bytes,
        "slots_used" => d.slots_used,
        "blocks_total" => d.blocks_total,
        "live_blocks" => d.live_blocks,
        "map_bytes" => d.map_bytes,
        "zone_bytes" => d.zone_bytes,
        "chunk_bytes" => d.chunk_bytes,
        "write_unit_bytes" => d.write_unit_bytes,
        "host_blocks" => d.host_blocks,
        "host_pages" => scene.details.swapped_out(d),
        "slots_freed" => d.slots_freed,
        "padding_blocks" => d.padding_blocks,
        "gc_blocks" => d.gc_blocks,
        "gc_read_blocks" => d.gc_read_blocks,
        "zone_resets" => d.zone_resets,
        "chunks" => d.chunks,
        "stalls" => d.stalls,
        "read_errors" => d.read_errors,
        "write_errors" => d.write_errors,
        "streams" => d.streams,
        "stripe" => d.stripe,
        "gc_stripe" => d.gc_stripe,
        "gc_shared" => d.gc_shared,
        "write_window" => d.write_window,
        "gc_low" => d.gc_low,
        "gc_high" => d.gc_high,
        "deadline_us" => d.deadline_us,
        later => return scene.details.numbers.get(later).copied(),
    })
}

fn info(scene: &Scene) -> Vec<Sample> {
    let word = |text: &Option<String>| text.clone().unwrap_or_default();
    let labels = vec![
        scene.device.backing.clone(),
        scene.device.policy.clone(),
        word(&scene.details.victim),
        word(&scene.details.compress),
        word(&scene.details.encrypt),
        env!("CARGO_PKG_VERSION").to_string(),
    ];
    vec![Sample::labelled(labels, 1)]
}

fn zones(scene: &Scene) -> Vec<Sample> {
    let z = &scene.device.zones;
    let states = [
        ("empty", z.empty),
        ("open", z.open),
        ("full", z.full),
        ("retired", z.retired),
        ("unused", z.unused),
    ];
    states.map(|(state, n)| Sample::labelled(vec![state.to_string()], n)).into()
}

fn full_zones(scene: &Scene) -> Vec<Sample> {
    let shares = scene.details.live_histogram.iter();
    shares
        .map(|s| {
            let below = Unit::Percent.show(s.live_percent, scene.page);
            Sample::labelled(vec![below], s.zones)
        })
        .collect()
}

/// Values of a bucket are less than its limit, while `le` includes the limit; the
/// difference is below the resolution of the module's clock.
fn latencies(scene: &Scene) -> Vec<Sample> {
    let mut samples = Vec::new();
    for what in LATENCIES {
        let Some(l) = scene.details.latency.get(what) else { continue };
        let mut add = |suffix, le: Option<String>, value: String| {
            samples.push(Sample { suffix, labels: vec![what.to_string()], le, value });
        };
        for power in 0..=LAST_POWER {
            let end = 1u64 << power;
            let within = l.buckets.iter().filter(|(e, _)| e.is_some_and(|e| e <= end));
            let count = within.fold(0u64, |sum, (_, n)| sum.saturating_add(*n));
            add("_bucket", Some(Unit::Micros.show(end, scene.page)), count.to_string());
        }
        add("_bucket", Some("+Inf".to_string()), l.count.to_string());
        add("_sum", None, Unit::Nanos.show(l.total_ns, scene.page));
        add("_count", None, l.count.to_string());
    }
    samples
}

fn stream(row: &Row) -> Option<String> {
    Some(row.get("stream")?.as_u64()?.to_string())
}

fn stream_info(scene: &Scene) -> Vec<Sample> {
    let by_cgroup = scene.device.policy == "cgroup";
    let sample = |row: &Row| {
        let key = row.get("key").and_then(Value::as_str).unwrap_or_default();
        let number = u64::from_str_radix(key.trim_start_matches("0x"), 16).ok();
        let cgroup = number.filter(|_| by_cgroup).and_then(|n| scene.cgroups.get(&n));
        let labels = vec![stream(row)?, key.to_string(), cgroup.cloned().unwrap_or_default()];
        Some(Sample::labelled(labels, 1))
    };
    scene.details.streams.iter().filter_map(sample).collect()
}
