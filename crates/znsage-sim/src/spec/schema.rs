// SPDX-License-Identifier: GPL-2.0-only
//! The keys of a spec, and their defaults.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::device::params::bytes;
use crate::host::costs::Costs;
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
        /// Swap on a log with offloaded compaction (ZNS+, OSDI 2021).
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
        /// Each thread walks through its part repeatedly.
        Sequential = "sequential",
        /// A few pages often, most rarely.
        Zipf = "zipf",
        /// Half of the threads as in `uniform`, half as in `zipf`, each half in its half
        /// of the memory.
        Mixed = "mixed",
        /// memcached with the sizes of Facebook's ETC pool.
        Etc = "etc",
        /// memcached with YCSB workload A.
        YcsbA = "ycsb-a",
        /// memcached with YCSB workload B.
        YcsbB = "ycsb-b",
        /// A reading and a writing cgroup.
        TwoTenants = "two-tenants",
        /// 16 threads write in a cgroup; each other thread has one of its own, and writes less.
        Tenants = "tenants",
        /// Programs that touch recorded pages (docs/dev/trace-format.md).
        Recorded = "recorded",
        /// A recorded trace of a swap area (docs/dev/trace-format.md).
        Trace = "trace",
    }
}

impl WorkloadKind {
    /// Does it have requests, of several accesses?
    pub fn has_requests(self) -> bool {
        matches!(self, WorkloadKind::Etc | WorkloadKind::YcsbA | WorkloadKind::YcsbB)
    }

    /// Is it recorded in a file, `load.trace`? That determines how many pages there are.
    pub fn is_from_file(self) -> bool {
        matches!(self, WorkloadKind::Recorded | WorkloadKind::Trace)
    }
}

kinds! {
    /// Which stream a page is written to; not every system supports all.
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
    /// The same for znsage's engine, plus policies for comparison.
    PlacementKind {
        /// One stream for all.
        Single = "single",
        /// The CPU that swaps it out.
        Cpu = "cpu",
        /// Its cgroup.
        Cgroup = "cgroup",
        /// How long it is expected to stay.
        Heat = "heat",
        /// SepBIT's rule; simulator only.
        Sepbit = "sepbit",
        /// The rate at which it is accessed, known exactly; simulator only.
        RateOracle = "rate-oracle",
        /// When it is next accessed, known exactly; simulator only.
        DeathOracle = "death-oracle",
    }
}

kinds! {
    /// How znsage's GC chooses a zone.
    VictimKind {
        /// The fewest live blocks.
        Greedy = "greedy",
        /// Most dead blocks times age, over blocks to read and write.
        CostBenefit = "cost-benefit",
        /// The same, over live blocks only.
        Age = "age",
    }
}

kinds! {
    /// How znsage compresses pages.
    CompressKind {
        /// Not at all.
        Off = "off",
        /// lz4.
        Lz4 = "lz4",
        /// zstd, level 3.
        Zstd = "zstd",
    }
}

impl CompressKind {
    /// CPU time to compress a page, nanoseconds: the instructions that a swap-out takes more
    /// than without compression (docs/dev/results.md, 25,500 without, 43,100 with lz4, 80,700 with
    /// zstd), at one a cycle of 3 GHz, which is assumed.
    pub fn compress_cost(self) -> Ns {
        match self {
            CompressKind::Off => 0,
            CompressKind::Lz4 => (43_100 - 25_500) / 3,
            CompressKind::Zstd => (80_700 - 25_500) / 3,
        }
    }

    /// The same to decompress it, of the instructions of a swap-in (32,500, 57,000 and 77,300). The
    /// checksum and the switch to the workqueue and back are among them.
    pub fn decompress_cost(self) -> Ns {
        match self {
            CompressKind::Off => 0,
            CompressKind::Lz4 => (57_000 - 32_500) / 3,
            CompressKind::Zstd => (77_300 - 32_500) / 3,
        }
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
    /// Size of the device in bytes; None: the parameter set's. Serialized as 0 then,
    /// because a missing key means the default.
    #[serde(with = "super::keys::size_or_none")]
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
    /// Parameters of the workload.
    pub load: Load,
    /// Length of the run.
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
    /// Maximum readahead window, as a power of two (`vm.page-cluster`).
    pub page_cluster: u32,
    /// Slots are given back in batches of this size (`SWAP_SLOTS_CACHE_SIZE`; 1 for
    /// kernels without a slot cache).
    pub slot_batch: u32,
    /// Where the kernel finds slots when no cluster is free.
    pub slot_search: Search,
    /// May a page in memory keep its slot when more than half of them are in use? The
    /// kernel takes it then (`vm_swap_full()`). Without a value ZNSwap and the systems
    /// that build on it keep it, the others do not.
    pub keep_slots: Option<bool>,
    /// How far a thread may run ahead of the event loop, nanoseconds. It sees the
    /// effects of others at most this late.
    pub lookahead: Ns,
}

/// Parameters of the workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Load {
    /// Share of the accesses that are writes: uniform, sequential, zipf.
    pub write_ratio: f64,
    /// Exponent of the Zipf distribution: zipf, mixed, ycsb-a, ycsb-b (default 0.99), etc
    /// (default uniform, like the load generator mutilate).
    pub zipf: Option<f64>,
    /// Compute time between accesses, nanoseconds.
    pub think: Ns,
    /// CPU time of a key-value request, including the network stack, nanoseconds.
    /// Assumed.
    pub service: Ns,
    /// Key-value requests a second that arrive while measuring, however long others take, and
    /// wait for a thread; latency counts from their arrival. Without a value a thread begins its
    /// next request when the last has ended, as it does before measuring.
    pub rate: Option<f64>,
    /// Does a GET write to the item? memcached counts references in it.
    pub get_writes: bool,
    /// The file, for the workloads `trace` and `recorded`.
    pub trace: Option<PathBuf>,
    /// What pages hold, for znsage: `gcc`, `memcached`, `noise`, which does not shrink, or a file
    /// that `znsage estimate --json` wrote. Without a value pages neither shrink nor repeat a
    /// word.
    pub contents: Option<String>,
    /// Replay a trace at the recorded times; false: as fast as possible, in order.
    pub recorded_times: bool,
}

/// Length of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RunSpec {
    /// Swap-out before measuring, in multiples of the device's capacity.
    pub warmup: f64,
    /// Swap-out while measuring, in multiples of the device's capacity.
    pub measure: f64,
    /// Either phase ends after this many seconds of virtual time.
    pub seconds: f64,
    /// Track the content of every page, and verify each read.
    pub shadow: bool,
}

/// Settings of znsage, as in its module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ZnsageSpec {
    /// Over-provisioning, percent of the device.
    pub over_provisioning: f64,
    /// How pages are compressed; wants `load.contents`.
    pub compress: CompressKind,
    /// With compression: bytes of the swap area, up to 16 times what fits if no page shrinks;
    /// 0: that.
    #[serde(deserialize_with = "bytes")]
    pub size: u64,
    /// CPU time to compress a page, nanoseconds; 0: as measured, with its `compress`.
    pub compress_cost: Ns,
    /// CPU time to decompress a page, nanoseconds; 0: as measured, with its `compress`.
    pub decompress_cost: Ns,
    /// Bytes of the zones that it makes on a conventional device; 0: a share of it.
    #[serde(deserialize_with = "bytes")]
    pub zone_size: u64,
    /// Bytes of a chunk; 0: 256 KiB, or less if the device takes less.
    #[serde(deserialize_with = "bytes")]
    pub chunk: u64,
    /// Zones only garbage collection may open.
    pub reserve: u32,
    /// GC starts below this number of empty zones; 0: the default.
    pub gc_low: u32,
    /// GC stops at this number of empty zones; 0: the default.
    pub gc_high: u32,
    /// How long a page may wait for its chunk to fill, nanoseconds.
    pub deadline: Ns,
    /// Chunks for swap-out; 0: the default.
    pub chunks: u32,
    /// Chunks for garbage collection; 0: the default.
    pub gc_chunks: u32,
    /// Which stream a page goes to.
    pub policy: PlacementKind,
    /// C source of a policy to use instead.
    pub policy_source: Option<PathBuf>,
    /// How GC chooses a zone.
    pub victim: VictimKind,
    /// Percent of a zone that GC keeps as room for swap-out, besides half a zone for each
    /// lane but one; 0: GC works as fast as it can.
    pub pace: u32,
    /// Zones that each stream writes at a time; 0: the default.
    pub stripe: u32,
    /// As if the kernel had no callback for a freed slot: znsage learns of free clusters by
    /// discards, and of other slots when they are written again.
    pub discards_only: bool,
    /// CPU time of a map access per page added, read or freed, nanoseconds. Assumed: a
    /// cache miss or two.
    pub map_cost: Ns,
    /// Hold time of the engine's lock per chunk, nanoseconds. Assumed.
    pub lock_hold: Ns,
}

/// Settings of the published systems.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PublishedSpec {
    /// Percent of the device held back: ZNSage and ZNSwap compare at 12 %.
    pub over_provisioning: f64,
    /// Which stream a page goes to.
    pub policy: PolicyKind,
    /// stock-trim: pages of a TRIM; 0: whole clusters, as Linux does; else as
    /// ZNSwap's `trim_4k`.
    pub trim_pages: u32,
    /// small-zone: reverse maps in the last page of each chunk instead of RAM.
    pub map_in_chunk: bool,
    /// small-zone, znsage-2025: a partial chunk is flushed after this time, nanoseconds.
    /// Not published; as long as znsage's deadline.
    pub flush_after: Ns,
    /// znsage-2025: while GC copies a page, a fault gets it from GC's memory.
    pub fault_from_gc: bool,
    /// zns-plus: `TL_open` and threaded logging, else only compaction in the device.
    pub threaded_logging: bool,
    /// 10^6 bytes a second that each cgroup may write (`io.max`); 0: no limit.
    pub cgroup_mb_s: u64,
    /// GC writes count against the limit of the cgroup whose pages move.
    pub isolate: bool,
    /// CPU time of GC to rewrite a page table entry, nanoseconds. Assumed.
    pub remap_cost: Ns,
    /// CPU time of a TRIM command, nanoseconds. Assumed.
    pub trim_cost: Ns,
    /// Hold time of the zone allocation lock per page, nanoseconds. Assumed.
    pub lock_hold: Ns,
}

impl Spec {
    /// May a page in memory keep its slot however full swap is? In ZNSwap's kernel
    /// (`vm_swap_full()` in include/linux/swap.h) no area is full: GC takes such slots.
    pub fn keeps_slots(&self) -> bool {
        let of_znswap = matches!(
            self.system,
            SystemKind::ZnSwap | SystemKind::SmallZone | SystemKind::ZnSage2025
        );
        self.host.keep_slots.unwrap_or(of_znswap)
    }

    /// Frames of memory.
    pub fn frames(&self) -> u32 {
        (self.host.memory / BLOCK).min(u64::from(u32::MAX)) as u32
    }
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
            keep_slots: None,
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
            rate: None,
            get_writes: true,
            trace: None,
            contents: None,
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
            compress: CompressKind::Off,
            size: 0,
            compress_cost: 0,
            decompress_cost: 0,
            zone_size: 0,
            chunk: 0,
            reserve: 2,
            gc_low: 0,
            gc_high: 0,
            deadline: 5 * MS,
            chunks: 0,
            gc_chunks: 0,
            policy: PlacementKind::Heat,
            policy_source: None,
            victim: VictimKind::Age,
            pace: 50,
            stripe: 0,
            discards_only: false,
            map_cost: 100,
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
            flush_after: 5 * MS,
            fault_from_gc: true,
            threaded_logging: true,
            cgroup_mb_s: 0,
            isolate: true,
            remap_cost: 600,
            trim_cost: 2000,
            lock_hold: 100,
        }
    }
}
