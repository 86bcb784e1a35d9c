// SPDX-License-Identifier: GPL-2.0-only
//! What a run found.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::host::lock::LockStats;
use crate::host::{Counters, GroupCounters};
use crate::scale::Scaled;
use crate::sim::{Latencies, Snapshot};
use crate::spec::{SystemKind, WorkloadKind};
use crate::system::{Packed, SystemCounters};
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

/// What pages took that were compressed, or repeat a word.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContentsResult {
    /// Bytes written to the flash for each page swapped out, garbage collection included.
    pub flash_bytes_per_page: f64,
    /// Of these, the pages themselves.
    pub record_bytes_per_page: f64,
    /// Pages on the device at the end.
    pub live_pages: u64,
    /// Bytes that they take.
    pub live_bytes: u64,
    /// How many times as many pages the device holds of these as of pages that are stored as
    /// they are.
    pub effective_capacity: f64,
}

/// Blocks programmed into the flash per page swapped out, by cause. The parts
/// add up to the total.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waf {
    /// In all.
    pub total: f64,
    /// For the page itself: 1, or what it takes compressed.
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

/// Counters of the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Of the host.
    #[serde(flatten)]
    pub host: Counters,
    /// Of the system.
    #[serde(flatten)]
    pub system: SystemCounters,
    /// Write and append commands that the device took.
    pub write_commands: u64,
    /// Blocks of these.
    pub written_blocks: u64,
    /// Read commands.
    pub read_commands: u64,
    /// Blocks of these.
    pub read_blocks: u64,
    /// Blocks that TRIM freed on the device.
    pub trimmed_blocks: u64,
    /// Erase blocks that the device erased.
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
    /// What pages took, if the spec says what they hold.
    #[serde(default)]
    pub contents: Option<ContentsResult>,
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

/// Results per cgroup between two snapshots, and the latencies of all cgroups together.
pub(crate) fn tenants(grown: &Snapshot, l: &Latencies) -> (Vec<Tenant>, Latency) {
    let mut all = l.major[0].clone();
    for more in &l.major[1..] {
        all.add(more).expect("they have the same bounds");
    }
    let tenant = |(n, h): (&GroupCounters, &Histogram<u64>)| Tenant {
        swap_out_mb_s: mb_s(n.swapped_out, grown.at),
        swap_in_mb_s: mb_s(n.major_faults, grown.at),
        operations_s: per_second(n.operations, grown.at),
        fault_latency: Latency::of(h),
    };
    (grown.by_group.iter().zip(&l.major).map(tenant).collect(), Latency::of(&all))
}

pub(crate) fn waf(grown: &Snapshot) -> Waf {
    let (s, d) = (&grown.system, &grown.device);
    let of_host = |blocks| ratio(blocks, s.host_pages);
    // Without a page, as if there were some.
    let host = if s.host_pages > 0 { of_host(s.host_blocks) } else { 1.0 };
    let gc = of_host(s.gc_blocks);
    let padding = of_host(s.padding_blocks);
    let metadata = of_host(s.metadata_blocks);
    let device = of_host(d.copied_blocks + d.padding_blocks);
    Waf { total: host + gc + padding + metadata + device, host, gc, padding, metadata, device }
}

pub(crate) fn contents(packed: &Option<Packed>, grown: &Snapshot) -> Option<ContentsResult> {
    let Packed { pages, bytes } = (*packed)?;
    let waf = waf(grown);
    Some(ContentsResult {
        flash_bytes_per_page: waf.total * BLOCK as f64,
        record_bytes_per_page: waf.host * BLOCK as f64,
        live_pages: pages,
        live_bytes: bytes,
        effective_capacity: ratio(pages * BLOCK, bytes),
    })
}

pub(crate) fn cpu(grown: &Snapshot) -> Cpu {
    let percent = |time: Ns| 100.0 * ratio(time, grown.at);
    Cpu {
        threads: percent(grown.threads_cpu),
        gc: percent(grown.worker_cpu),
        irq: percent(grown.irq),
    }
}

pub(crate) fn locks(grown: &Snapshot) -> Locks {
    let LockStats { taken, contended, wait } = grown.locks;
    let wait_ns_per_page = ratio(wait, grown.count.swapped_out);
    Locks { taken, contended, wait_us: to_us(wait), wait_ns_per_page }
}

pub(crate) fn counts(grown: &Snapshot) -> Counts {
    Counts {
        host: grown.count,
        system: grown.system,
        write_commands: grown.device.writes,
        written_blocks: grown.device.written_blocks,
        read_commands: grown.device.reads,
        read_blocks: grown.device.read_blocks,
        trimmed_blocks: grown.device.trimmed_blocks,
        erases: grown.device.erases,
    }
}
