// SPDX-License-Identifier: GPL-2.0-only
//! What a run found.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::host::GroupCounters;
use crate::scale::Scaled;
use crate::sim::{Latencies, Snapshot};
use crate::spec::{SystemKind, WorkloadKind};
use crate::time::{to_secs, to_us, Ns, BLOCK};

/// Latencies, microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// How many.
    pub count: u64,
    /// Mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
}

impl Latency {
    /// Of a histogram of nanoseconds; each value is within 0.1 %.
    pub fn of(h: &Histogram<u64>) -> Self {
        let at = |q| to_us(h.value_at_quantile(q));
        Latency {
            count: h.len(),
            mean_us: h.mean() / 1e3,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: to_us(h.max()),
        }
    }
}

/// One cgroup's share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tenant {
    /// Swapped out, 10^6 bytes a second.
    pub swap_out_mb_s: f64,
    /// Swapped in by faults, 10^6 bytes a second.
    pub swap_in_mb_s: f64,
    /// Requests a second, or accesses if the workload has no requests.
    pub operations_s: f64,
    /// Major page faults.
    pub fault_latency: Latency,
}

/// Blocks programmed into the flash per page swapped out, by cause. The parts
/// add up to the total.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waf {
    /// In all.
    pub total: f64,
    /// For the page itself: 1.
    pub host: f64,
    /// By the system's garbage collection.
    pub gc: f64,
    /// Padding of write units.
    pub padding: f64,
    /// Mappings stored on the device.
    pub metadata: f64,
    /// By the device itself: its garbage collection, finished zones.
    pub device: f64,
}

/// CPU time in percent of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// The threads of the workload, reclaim included.
    pub threads: f64,
    /// The system's kernel thread: garbage collection, TRIM.
    pub gc: f64,
    /// Interrupts.
    pub irq: f64,
}

/// Locks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Locks {
    /// Acquisitions.
    pub taken: u64,
    /// Acquisitions that had to wait.
    pub contended: u64,
    /// Total wait, microseconds.
    pub wait_us: f64,
    /// Wait per page swapped out, nanoseconds.
    pub wait_ns_per_page: f64,
}

/// Memory for mappings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mapping {
    /// Total bytes of RAM.
    pub ram_bytes: u64,
    /// Bytes of RAM for each slot of the swap area.
    pub ram_per_page: f64,
    /// Bytes on the device for each slot.
    pub device_per_page: f64,
}

/// Counters of the measured phase; pages unless noted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Accesses of the workload.
    pub accesses: u64,
    /// Faults that read from the device.
    pub major_faults: u64,
    /// Faults that found the page in the swap cache.
    pub cache_faults: u64,
    /// Writes to a page that still had its slot.
    pub reuse_faults: u64,
    /// Read ahead.
    pub readahead: u64,
    /// Pages read ahead that were used.
    pub readahead_hits: u64,
    /// Swapped out.
    pub swapped_out: u64,
    /// Evicted without a write.
    pub dropped_clean: u64,
    /// Slots freed.
    pub slots_freed: u64,
    /// Looked at by reclaim.
    pub scanned: u64,
    /// Times a task waited for memory.
    pub memory_waits: u64,
    /// Times a task waited for the system to take its pages.
    pub room_waits: u64,
    /// Not swapped out because no slot was free.
    pub no_slot: u64,
    /// Written by garbage collection.
    pub gc_written: u64,
    /// Read by garbage collection.
    pub gc_read: u64,
    /// Page table entries rewritten by garbage collection.
    pub remapped: u64,
    /// Dropped by garbage collection because the page is in memory.
    pub dropped_cached: u64,
    /// Zones reset.
    pub resets: u64,
    /// Times swap-out had no zone to write to.
    pub stalls: u64,
    /// TRIM commands.
    pub trims: u64,
    /// Blocks that TRIM freed.
    pub trimmed: u64,
    /// Erase blocks erased.
    pub erases: u64,
}

/// What a run found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// How pages were swapped.
    pub system: SystemKind,
    /// The device's parameter set.
    pub device: String,
    /// Who touched which page.
    pub workload: WorkloadKind,
    /// Pages on the device, percent of its capacity.
    pub utilization: f64,
    /// The seed.
    pub seed: u64,
    /// Capacity in blocks.
    pub capacity_blocks: u64,
    /// How the device was scaled to that; None: it was not.
    #[serde(default)]
    pub scaled: Option<Scaled>,
    /// Slots of the swap area.
    pub slots: u64,
    /// Pages of the workload.
    pub pages: u64,
    /// Frames of memory.
    pub frames: u64,
    /// Length of the measured phase, virtual time.
    pub seconds: f64,
    /// Virtual time before it.
    pub before_seconds: f64,
    /// Swapped out, 10^6 bytes a second.
    pub swap_out_mb_s: f64,
    /// Swapped in, including readahead, 10^6 bytes a second.
    pub swap_in_mb_s: f64,
    /// Both.
    pub bandwidth_mb_s: f64,
    /// Requests a second, or accesses if the workload has no requests.
    pub operations_s: f64,
    /// Major page faults, from the access to the end of the fault.
    pub fault_latency: Latency,
    /// Per cgroup.
    pub tenants: Vec<Tenant>,
    /// Request latency, if the workload has requests.
    pub request_latency: Option<Latency>,
    /// Write amplification.
    pub waf: Waf,
    /// CPU time.
    pub cpu: Cpu,
    /// Locks.
    pub locks: Locks,
    /// Memory for mappings.
    pub mapping: Mapping,
    /// Counters.
    pub counts: Counts,
    /// Pages swapped out, swapped in and moved by garbage collection in the
    /// whole run.
    pub page_operations: u64,
    /// Events of the whole run.
    pub events: u64,
    /// Errors found by the checks at the end; must be empty.
    pub wrong: Vec<String>,
}

pub(crate) fn mb_s(pages: u64, time: Ns) -> f64 {
    per_second(pages * BLOCK, time) / 1e6
}

pub(crate) fn per_second(n: u64, time: Ns) -> f64 {
    if time == 0 {
        0.0
    } else {
        n as f64 / to_secs(time)
    }
}

fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 {
        0.0
    } else {
        a as f64 / b as f64
    }
}

/// Results per cgroup, and the latencies of all cgroups together.
pub(crate) fn tenants(a: &Snapshot, b: &Snapshot, l: &Latencies) -> (Vec<Tenant>, Latency) {
    let time = b.at - a.at;
    let mut all = l.major[0].clone();
    for more in &l.major[1..] {
        all.add(more).expect("they have the same bounds");
    }
    let groups = a.by_group.iter().zip(&b.by_group).zip(&l.major);
    let tenant = |((a, b), h): ((&GroupCounters, &GroupCounters), &Histogram<u64>)| Tenant {
        swap_out_mb_s: mb_s(b.swapped_out - a.swapped_out, time),
        swap_in_mb_s: mb_s(b.major_faults - a.major_faults, time),
        operations_s: per_second(b.operations - a.operations, time),
        fault_latency: Latency::of(h),
    };
    (groups.map(tenant).collect(), Latency::of(&all))
}

pub(crate) fn waf(a: &Snapshot, b: &Snapshot) -> Waf {
    let (a, b) = (&a.system, &b.system);
    let host = b.host_blocks - a.host_blocks;
    let device = |s: &crate::system::SystemStats| s.device.copied_blocks + s.device.padding_blocks;
    let gc = ratio(b.gc_blocks - a.gc_blocks, host);
    let padding = ratio(b.padding_blocks - a.padding_blocks, host);
    let metadata = ratio(b.metadata_blocks - a.metadata_blocks, host);
    let device = ratio(device(b) - device(a), host);
    Waf { total: 1.0 + gc + padding + metadata + device, host: 1.0, gc, padding, metadata, device }
}

pub(crate) fn cpu(a: &Snapshot, b: &Snapshot) -> Cpu {
    let percent = |x: Ns, y: Ns| 100.0 * ratio(y - x, b.at - a.at);
    Cpu {
        threads: percent(a.threads_cpu, b.threads_cpu),
        gc: percent(a.worker_cpu, b.worker_cpu),
        irq: percent(a.irq, b.irq),
    }
}

pub(crate) fn locks(a: &Snapshot, b: &Snapshot) -> Locks {
    let wait = b.locks.wait - a.locks.wait;
    Locks {
        taken: b.locks.taken - a.locks.taken,
        contended: b.locks.contended - a.locks.contended,
        wait_us: to_us(wait),
        wait_ns_per_page: ratio(wait, b.count.swapped_out - a.count.swapped_out),
    }
}

pub(crate) fn counts(a: &Snapshot, b: &Snapshot) -> Counts {
    let (h, k) = (&a.count, &b.count);
    let (s, t) = (&a.system, &b.system);
    Counts {
        accesses: k.accesses - h.accesses,
        major_faults: k.major_faults - h.major_faults,
        cache_faults: k.cache_faults - h.cache_faults,
        reuse_faults: k.reuse_faults - h.reuse_faults,
        readahead: k.readahead - h.readahead,
        readahead_hits: k.readahead_hits - h.readahead_hits,
        swapped_out: k.swapped_out - h.swapped_out,
        dropped_clean: k.dropped_clean - h.dropped_clean,
        slots_freed: k.slots_freed - h.slots_freed,
        scanned: k.scanned - h.scanned,
        memory_waits: k.memory_waits - h.memory_waits,
        room_waits: k.room_waits - h.room_waits,
        no_slot: k.no_slot - h.no_slot,
        gc_written: t.gc_blocks - s.gc_blocks,
        gc_read: t.gc_read_blocks - s.gc_read_blocks,
        remapped: t.remapped - s.remapped,
        dropped_cached: t.dropped_cached - s.dropped_cached,
        resets: t.resets - s.resets,
        stalls: t.stalls - s.stalls,
        trims: t.trims - s.trims,
        trimmed: t.device.trimmed_blocks - s.device.trimmed_blocks,
        erases: t.device.erases - s.device.erases,
    }
}
