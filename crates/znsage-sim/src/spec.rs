// SPDX-License-Identifier: GPL-2.0-only
//! What a run is made from: a TOML document, or options one by one.
//!
//! `Spec::default()` is a run that ends in less than a minute. Every key has a
//! default; [`Spec::set`] changes one by its name.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};

use crate::device::params::bytes;
use crate::host::costs::Costs;
use crate::host::cpu::MAX_CPUS;
use crate::host::slots::Search;
use crate::time::{Ns, BLOCK, MS, US};

macro_rules! kinds {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: [$name; [$($text),*].len()] = [$($name::$variant),*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

kinds! {
    /// The systems.
    SystemKind {
        /// Swap on a conventional SSD, without TRIM.
        Stock = "stock",
        /// ... with TRIM.
        StockTrim = "stock-trim",
        /// ZNSwap (ATC 2022).
        ZnSwap = "znswap",
        /// ZNSwap on SSDs with small zones (thesis).
        SmallZone = "small-zone",
        /// ZNSage (Electronics 2025).
        ZnSage2025 = "znsage-2025",
        /// Swap on a log that offloads compaction (ZNS+, OSDI 2021).
        ZnsPlus = "zns-plus",
        /// This project's engine.
        ZnSage = "znsage",
    }
}

kinds! {
    /// The workloads.
    WorkloadKind {
        /// Random writes by all threads, each in its own part of the memory
        /// (vm-scalability, case-anon-w-rand-mt).
        Uniform = "uniform",
        /// Each thread walks through its part again and again.
        Sequential = "sequential",
        /// Few pages often, most seldom.
        Zipf = "zipf",
        /// memcached with the sizes of Facebook's ETC pool.
        Etc = "etc",
        /// memcached with YCSB workload A.
        YcsbA = "ycsb-a",
        /// memcached with YCSB workload B.
        YcsbB = "ycsb-b",
        /// A reading and a writing cgroup.
        TwoTenants = "two-tenants",
        /// What was recorded of a swap area (docs/trace-format.md).
        Trace = "trace",
    }
}

kinds! {
    /// Which stream a page is written to; not every system knows all.
    PolicyKind {
        /// One stream for all.
        Single = "single",
        /// The CPU that swaps it out.
        Cpu = "cpu",
        /// The process it belongs to; threads of the workload stand for them.
        Process = "process",
        /// The mapping it belongs to.
        Vma = "vma",
        /// How often it was accessed.
        Heat = "heat",
        /// Its cgroup.
        Cgroup = "cgroup",
    }
}

kinds! {
    /// The same for znsage's engine, with one to compare its own with.
    PlacementKind {
        /// One stream for all.
        Single = "single",
        /// The CPU that swaps it out.
        Cpu = "cpu",
        /// The family of mappings that it belongs to.
        Process = "process",
        /// The mapping it belongs to.
        Vma = "vma",
        /// Its cgroup.
        Cgroup = "cgroup",
        /// How long it is expected to stay.
        Heat = "heat",
        /// SepBIT's rule; in the simulator only.
        Sepbit = "sepbit",
    }
}

kinds! {
    /// How znsage's GC chooses a zone.
    VictimKind {
        /// The fewest live blocks.
        Greedy = "greedy",
        /// Dead blocks times age for live blocks to be moved.
        CostBenefit = "cost-benefit",
        /// The same with the cube root of the age.
        Age = "age",
    }
}

impl From<VictimKind> for znsage_engine::Victim {
    fn from(kind: VictimKind) -> Self {
        match kind {
            VictimKind::Greedy => Self::Greedy,
            VictimKind::CostBenefit => Self::CostBenefit,
            VictimKind::Age => Self::Age,
        }
    }
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Spec {
    /// How pages are swapped.
    pub system: SystemKind,
    /// A built-in parameter set or a file.
    pub device: String,
    /// Bytes of the device, if not the parameter set's.
    #[serde(deserialize_with = "size_or_none")]
    pub size: Option<u64>,
    /// Values of the parameter set that are replaced.
    pub device_set: Vec<(String, String)>,
    /// Who touches which page.
    pub workload: WorkloadKind,
    /// Pages on the device, in percent of its capacity.
    pub utilization: f64,
    /// Seed of all random numbers.
    pub seed: u64,
    /// The machine.
    pub host: HostSpec,
    /// What its work costs.
    pub costs: Costs,
    /// Details of the workload.
    pub load: Load,
    /// How long it runs.
    pub run: RunSpec,
    /// Settings of znsage.
    pub znsage: ZnsageSpec,
    /// Settings of the published systems.
    pub published: PublishedSpec,
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct HostSpec {
    /// CPUs.
    pub cpus: u32,
    /// Bytes of memory that the workload may keep.
    #[serde(deserialize_with = "bytes")]
    pub memory: u64,
    /// Threads of the workload.
    pub threads: u32,
    /// Largest readahead window: 2^this (`vm.page-cluster`).
    pub page_cluster: u32,
    /// Slots are given back in batches of this: the kernel's swap slot cache,
    /// `SWAP_SLOTS_CACHE_SIZE`; kernels without it: 1.
    pub slot_batch: u32,
    /// Where the kernel finds slots when no cluster of them is wholly free.
    pub slot_search: Search,
    /// A thread runs so far ahead of the events at most, nanoseconds: what
    /// others do meanwhile it sees so much later.
    pub lookahead: Ns,
}

/// Details of the workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Load {
    /// Share of the accesses that are writes: uniform, sequential, zipf.
    pub write_ratio: f64,
    /// Exponent of the Zipf distribution: zipf, ycsb-a, ycsb-b (0.99 if not
    /// given), etc (uniform if not given, as the load generator mutilate has
    /// it).
    pub zipf: Option<f64>,
    /// Nanoseconds that a thread computes between accesses.
    pub think: Ns,
    /// Nanoseconds of CPU time of a request of the key-value store, its
    /// network stack included. Assumed.
    pub service: Ns,
    /// Does a GET write to the item? memcached counts references in it.
    pub get_writes: bool,
    /// The file, of workload trace.
    pub trace: Option<PathBuf>,
    /// Nothing comes before its time in the trace. False: as fast as it can,
    /// in the order of the trace.
    pub recorded_times: bool,
}

/// How long it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RunSpec {
    /// Before measuring, as many pages are swapped out as fit the device, so
    /// many times.
    pub warmup: f64,
    /// And again so many times while measuring.
    pub measure: f64,
    /// Either ends after so many seconds of virtual time.
    pub seconds: f64,
    /// Follow the content of every page, and compare what is read.
    pub shadow: bool,
}

/// Settings of znsage, as in its module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ZnsageSpec {
    /// Percent of the device that is held back.
    pub over_provisioning: f64,
    /// Bytes of a chunk; 0: 256 KiB, or less if the device takes less.
    #[serde(deserialize_with = "bytes")]
    pub chunk: u64,
    /// Zones that only garbage collection may open.
    pub reserve: u32,
    /// GC starts below, and stops at, so many empty zones; 0: the default.
    pub gc_low: u32,
    /// See `gc-low`.
    pub gc_high: u32,
    /// How long a page may wait for its chunk to fill, nanoseconds.
    pub deadline: Ns,
    /// Chunks for swap-out; 0: the default.
    pub chunks: u32,
    /// Chunks for garbage collection; 0: the default.
    pub gc_chunks: u32,
    /// Which stream a page goes to.
    pub policy: PlacementKind,
    /// A policy's C source, to be used instead.
    pub policy_source: Option<PathBuf>,
    /// How GC chooses a zone.
    pub victim: VictimKind,
    /// GC drops a page that is in the swap cache, unchanged, to be written
    /// again, instead of moving it.
    pub skip_cached: bool,
    /// By the end of which part of the room that is left GC is to be done,
    /// percent; 0: as fast as it can.
    pub pace: u32,
    /// Zones that each stream writes at a time; 0: the default.
    pub stripe: u32,
    /// CPU time of the map for a page that is added, read or freed,
    /// nanoseconds. Assumed: a cache miss or two.
    pub map_cost: Ns,
    /// CPU time of GC to find a page in the swap cache and mark it dirty,
    /// nanoseconds. Assumed.
    pub drop_cost: Ns,
    /// The engine's lock is held so long for a chunk, nanoseconds. Assumed.
    pub lock_hold: Ns,
}

/// Settings of the published systems.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PublishedSpec {
    /// Percent of the device that is held back: ZNSage and ZNSwap compare at
    /// 12 %.
    pub over_provisioning: f64,
    /// Which stream a page goes to.
    pub policy: PolicyKind,
    /// stock-trim: pages of a TRIM; 0: whole clusters, as Linux does; else as
    /// ZNSwap's `trim_4k`.
    pub trim_pages: u32,
    /// small-zone: reverse maps in the last page of each chunk instead of RAM.
    pub map_in_chunk: bool,
    /// small-zone, znsage-2025: a partial chunk is flushed after so long,
    /// nanoseconds. The thesis says "after a time"; assumed.
    pub flush_after: Ns,
    /// 10^6 bytes a second that each cgroup may write (`io.max`); 0: no limit.
    pub cgroup_mb_s: u64,
    /// What garbage collection writes counts against the limit of the cgroup
    /// whose pages it moves.
    pub isolate: bool,
    /// CPU time of garbage collection for a page: walk to its page table
    /// entry and rewrite it, nanoseconds. Assumed.
    pub remap_cost: Ns,
    /// CPU time of a TRIM command, nanoseconds. Assumed.
    pub trim_cost: Ns,
    /// The lock that zone allocation takes is held so long for a page,
    /// nanoseconds. Assumed.
    pub lock_hold: Ns,
}

impl Default for Spec {
    fn default() -> Self {
        Spec {
            system: SystemKind::ZnSage,
            device: "zn540".into(),
            size: Some(64 << 30),
            device_set: vec![],
            workload: WorkloadKind::Uniform,
            utilization: 60.0,
            seed: 1,
            host: HostSpec::default(),
            costs: Costs::default(),
            load: Load::default(),
            run: RunSpec::default(),
            znsage: ZnsageSpec::default(),
            published: PublishedSpec::default(),
        }
    }
}

impl Default for HostSpec {
    /// As in the evaluation of ZNSage: 8 cores, 2 GiB, 16 threads; memory is
    /// smaller here, as the device is.
    fn default() -> Self {
        HostSpec {
            cpus: 8,
            memory: 256 << 20,
            threads: 16,
            page_cluster: 3,
            slot_batch: 64,
            slot_search: Search::Clusters,
            lookahead: 20 * US,
        }
    }
}

impl Default for Load {
    fn default() -> Self {
        Load {
            write_ratio: 1.0,
            zipf: None,
            think: 0,
            service: 10 * US,
            get_writes: true,
            trace: None,
            recorded_times: true,
        }
    }
}

impl Default for RunSpec {
    fn default() -> Self {
        RunSpec { warmup: 1.0, measure: 0.5, seconds: 600.0, shadow: false }
    }
}

impl Default for ZnsageSpec {
    fn default() -> Self {
        ZnsageSpec {
            over_provisioning: 12.0,
            chunk: 0,
            reserve: 2,
            gc_low: 0,
            gc_high: 0,
            deadline: 5 * MS,
            chunks: 0,
            gc_chunks: 0,
            policy: PlacementKind::Cpu,
            policy_source: None,
            victim: VictimKind::Age,
            skip_cached: true,
            pace: 50,
            stripe: 0,
            map_cost: 100,
            drop_cost: 300,
            lock_hold: 100,
        }
    }
}

impl Default for PublishedSpec {
    fn default() -> Self {
        PublishedSpec {
            over_provisioning: 12.0,
            policy: PolicyKind::Cpu,
            trim_pages: 0,
            map_in_chunk: false,
            flush_after: MS,
            cgroup_mb_s: 0,
            isolate: true,
            remap_cost: 600,
            trim_cost: 2000,
            lock_hold: 100,
        }
    }
}

fn size_or_none<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    bytes(d).map(|n| (n > 0).then_some(n))
}

/// Why a spec is refused: the key, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The key, with its table.
    pub key: String,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.what)
    }
}

impl std::error::Error for SpecError {}

fn refuse<T>(key: &str, what: impl fmt::Display) -> Result<T, SpecError> {
    Err(SpecError { key: key.into(), what: what.to_string() })
}

/// More than 60 times as many as the engine takes by itself.
const MAX_CHUNKS: u32 = 1 << 14;

/// Values of the device's parameter set: `device.zoned.zones=64`.
const DEVICE: &str = "device.";

impl Spec {
    /// The run that a TOML document describes.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        let spec: Spec = toml::from_str(text)?;
        // It may be read where numbers are larger than TOML promises to hold.
        match toml::Table::try_from(&spec) {
            Ok(_) => Ok(spec),
            Err(e) => Err(serde::de::Error::custom(e)),
        }
    }

    /// Changes a value by its key: `host.memory=1G`, `device.zoned.zones=64`.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SpecError> {
        match key.starts_with(DEVICE) {
            true => self.set_value(key, toml::Value::String(value.into())),
            false => self.set_value(key, literal(value)),
        }
    }

    /// The same with a value of TOML.
    pub fn set_value(&mut self, key: &str, value: toml::Value) -> Result<(), SpecError> {
        if let Some(key) = key.strip_prefix(DEVICE) {
            let text = match value {
                toml::Value::String(text) => text,
                other => other.to_string(),
            };
            self.device_set.push((key.into(), text));
            return Ok(());
        }
        let mut doc = toml::Table::try_from(&*self).expect("a spec is a table");
        let tables: Vec<_> = doc.iter().filter(|(_, v)| v.is_table()).map(|(k, _)| k).collect();
        let tables = format!("no such table; there are {}", join(tables));
        let mut table = &mut doc;
        let mut path: Vec<&str> = key.split('.').collect();
        let last = path.pop().expect("split gives one at least");
        for name in path {
            table = match table.get_mut(name) {
                Some(toml::Value::Table(t)) => t,
                _ => return refuse(key, tables),
            };
        }
        if matches!(table.get(last), Some(toml::Value::Table(_))) {
            return refuse(key, "a table; name a key in it");
        }
        table.insert(last.into(), value);
        match toml::Value::Table(doc).try_into() {
            Ok(spec) => {
                *self = spec;
                Ok(())
            }
            Err(e) => refuse(key, e.message()),
        }
    }

    /// Frames of memory.
    pub fn frames(&self) -> u32 {
        (self.host.memory / BLOCK).min(u64::from(u32::MAX)) as u32
    }

    /// Refuses what cannot be run whatever the device is.
    pub fn check(&self) -> Result<(), SpecError> {
        let h = &self.host;
        let among = |key, n: u32, range: std::ops::RangeInclusive<u32>| {
            let (low, high) = (range.start(), range.end());
            if range.contains(&n) {
                Ok(())
            } else {
                refuse(key, format!("{n} is not from {low} to {high}"))
            }
        };
        among("host.cpus", h.cpus, 1..=MAX_CPUS)?;
        among("host.threads", h.threads, 1..=1000)?;
        among("host.slot-batch", h.slot_batch, 1..=64)?;
        among("host.page-cluster", h.page_cluster, 0..=crate::host::readahead::MAX_CLUSTER)?;
        // The engine makes them all when it begins.
        among("znsage.chunks", self.znsage.chunks, 0..=MAX_CHUNKS)?;
        among("znsage.gc-chunks", self.znsage.gc_chunks, 0..=MAX_CHUNKS)?;
        if self.workload == WorkloadKind::TwoTenants && h.threads < 2 {
            return refuse("host.threads", "two-tenants needs 2 at least");
        }
        // Each thread may have a batch of reclaim under way.
        let least = 64 * (h.threads + 1);
        if self.frames() < least {
            return refuse("host.memory", format!("{} threads need {} KiB", h.threads, least * 4));
        }
        if u64::from(self.frames()) >= crate::host::page::MAX_FRAMES {
            return refuse("host.memory", "1 TiB is the most");
        }
        let percent = |key, p: f64, most: f64| match (0.0..=most).contains(&p) {
            true => Ok(()),
            false => refuse(key, format!("{p} is not from 0 to {most} percent")),
        };
        percent("utilization", self.utilization, 99.0)?;
        percent("znsage.over-provisioning", self.znsage.over_provisioning, 90.0)?;
        percent("published.over-provisioning", self.published.over_provisioning, 90.0)?;
        if !(0.0..=1.0).contains(&self.load.write_ratio) {
            return refuse("load.write-ratio", "not from 0 to 1");
        }
        if self.load.zipf.is_some_and(|s| !(s > 0.0 && s < 10.0)) {
            return refuse("load.zipf", "not above 0 and below 10");
        }
        Ok(())
    }
}

fn join(names: Vec<&String>) -> String {
    names.iter().map(|n| n.as_str()).collect::<Vec<_>>().join(", ")
}

/// The TOML value that a text means: a number, a truth value, else a string.
fn literal(text: &str) -> toml::Value {
    if let Ok(n) = text.parse::<i64>() {
        toml::Value::Integer(n)
    } else if let Ok(x) = text.parse::<f64>() {
        toml::Value::Float(x)
    } else if let Ok(b) = text.parse::<bool>() {
        toml::Value::Boolean(b)
    } else {
        toml::Value::String(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_set_by_key() {
        let mut spec = Spec::default();
        for (key, value) in [
            ("system", "stock-trim"),
            ("size", "1 GiB"),
            ("utilization", "80"),
            ("host.memory", "96M"),
            ("costs.touch", "77"),
            ("load.zipf", "1.1"),
            ("run.shadow", "true"),
            ("device.zoned.zones", "64"),
        ] {
            spec.set(key, value).unwrap_or_else(|e| panic!("{e}"));
        }
        assert_eq!(spec.system, SystemKind::StockTrim);
        assert_eq!((spec.size, spec.host.memory), (Some(1 << 30), 96 << 20));
        assert_eq!((spec.utilization, spec.load.zipf), (80.0, Some(1.1)));
        assert_eq!((spec.costs.touch, spec.run.shadow), (77, true));
        assert_eq!(spec.device_set, [("zoned.zones".into(), "64".into())]);
        let text = toml::to_string(&spec).unwrap();
        assert_eq!(Spec::parse(&text).unwrap(), spec, "what is written can be read");
    }

    #[test]
    fn unknown_keys_and_names_list_the_known() {
        let mut spec = Spec::default();
        let e = spec.set("host.cpu", "3").unwrap_err();
        assert!(e.what.contains("`cpus`"), "{e}");
        let e = spec.set("system", "znfast").unwrap_err();
        assert!(e.what.contains("`znsage-2025`"), "{e}");
        let e = spec.set("hosts.cpus", "3").unwrap_err();
        assert!(e.what.contains("there are costs, host, "), "{e}");
        let e = spec.set("host", "3").unwrap_err();
        assert!(e.what.contains("a table"), "{e}");
        assert_eq!(spec, Spec::default(), "nothing was changed");
    }

    #[test]
    fn numbers_beyond_toml_are_refused() {
        for text in ["seed = 18446744073709551615", "[load]\nthink = 9223372036854775808"] {
            assert!(Spec::parse(text).is_err(), "{text}");
        }
        let mut spec = Spec::parse("seed = 9223372036854775807").unwrap();
        spec.set("host.cpus", "2").unwrap();
        let value = toml::from_str::<toml::Table>("a = 18446744073709551615");
        if let Some(value) = value.ok().and_then(|mut t| t.remove("a")) {
            spec.set_value("seed", value).unwrap_err();
        }
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let cases = [
            ("host.cpus", "0"),
            ("host.cpus", "65"),
            ("host.threads", "0"),
            ("host.memory", "64K"),
            ("utilization", "120"),
            ("load.write-ratio", "1.5"),
            ("load.zipf", "0"),
            ("znsage.chunks", "4000000000"),
            ("znsage.gc-chunks", "4000000000"),
        ];
        assert_eq!(Spec::default().check(), Ok(()));
        for (key, value) in cases {
            let mut spec = Spec::default();
            spec.set(key, value).unwrap();
            assert_eq!(spec.check().unwrap_err().key, key);
        }
    }
}
