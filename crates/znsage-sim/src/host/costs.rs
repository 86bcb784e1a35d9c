// SPDX-License-Identifier: GPL-2.0-only
//! What the host's work costs.
//!
//! Few values are measured. Where a total is, its split into steps is our
//! choice; the rest is assumed, and marked so. All can be set
//! (`costs.KEY=VALUE`, nanoseconds).

use serde::{Deserialize, Serialize};

use crate::time::Ns;

/// CPU time of the host's steps, in nanoseconds.
///
/// The steps of a major fault add up to 4 us, `fault` + `charge` + `read` +
/// `map`: the median that swap adds to a page fault in software after the
/// swap-slot cache and the split of its locks (Tim Chen, linux-mm, 2016, cover
/// letter of "mm/swap: Regular page swap optimizations", DRAM-backed device).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Costs {
    /// An access to a page that is mapped: a cache miss and the loop around
    /// it. Assumed.
    pub touch: Ns,
    /// From the access to the look at the swap entry. Assumed, see above.
    pub fault: Ns,
    /// A frame for the page, charged to its cgroup. Assumed, see above.
    pub charge: Ns,
    /// A read command through the block layer and the driver: what io_uring
    /// on the kernel's driver adds to SPDK for a 4 KiB read at queue depth 1
    /// (stonet-research/NVMeBenchmarks@01f40f1c, data/{io_uring,spdk}/zns-a).
    pub read: Ns,
    /// Mapping the page once it is read. Assumed, see above.
    pub map: Ns,
    /// A fault without I/O: the page is in the swap cache, or a write breaks the link to
    /// its slot. Assumed.
    pub minor: Ns,
    /// A first touch: a frame, zeroed and mapped. Assumed.
    pub zero: Ns,
    /// Reclaim scans a page. Assumed.
    pub scan: Ns,
    /// Reclaim unmaps a page, including its share of the TLB flush. Assumed.
    pub unmap: Ns,
    /// A slot for the page, and its place in the swap cache. Assumed.
    pub slot: Ns,
    /// Reclaim frees a page. Assumed.
    pub free: Ns,
    /// A write command: as `read`, for writes and scheduler none.
    pub write: Ns,
    /// Each segment (page) of a command. Assumed.
    pub segment: Ns,
    /// The interrupt of a completion. Assumed.
    pub irq: Ns,
    /// Ending writeback, per page. Assumed.
    pub end_page: Ns,
    /// From the interrupt to the woken task on an idle CPU. Assumed.
    pub wake: Ns,
    /// From one task to the next on a CPU. Assumed.
    pub switch: Ns,
    /// How long the swap area's lock is held per slot allocated or returned. Assumed.
    pub slot_lock: Ns,
}

impl Default for Costs {
    fn default() -> Self {
        Costs {
            touch: 100,
            fault: 700,
            charge: 600,
            read: 1500,
            map: 1200,
            minor: 700,
            zero: 900,
            scan: 150,
            unmap: 500,
            slot: 300,
            free: 200,
            write: 1300,
            segment: 40,
            irq: 600,
            end_page: 150,
            wake: 1000,
            switch: 1000,
            slot_lock: 30,
        }
    }
}
