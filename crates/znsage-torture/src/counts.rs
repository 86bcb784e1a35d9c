// SPDX-License-Identifier: GPL-2.0-only
//! Counters of runs.

use std::collections::BTreeMap;

use serde::Serialize;

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of runs. Pages and blocks are of 4 KiB.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
            /// Device errors, by command and class.
            pub faults: BTreeMap<String, u64>,
            /// Actions injected at worst moments.
            pub moments: BTreeMap<String, u64>,
        }

        impl Counts {
            /// Adds the counters of another run.
            pub fn add(&mut self, other: &Counts) {
                $(self.$name += other.$name;)*
                for (key, n) in &other.faults {
                    *self.faults.entry(key.clone()).or_default() += n;
                }
                for (key, n) in &other.moments {
                    *self.moments.entry(key.clone()).or_default() += n;
                }
            }
        }
    };
}

counts! {
    /// Events.
    events,
    /// Virtual time, microseconds.
    virtual_us,
    /// Checks of all maps, all contents and every invariant.
    checks,
    /// Pages that the kernel swapped out.
    swapped_out,
    /// Pages that a user of the raw disk wrote.
    raw_written,
    /// Pages that the device acknowledged.
    written,
    /// Of these, pages that were packed.
    packed,
    /// Pages that repeat a word and took no block.
    filled,
    /// Pages refused because the log had no room: they shrink less than was promised.
    no_room,
    /// Pages that GC moved.
    moved,
    /// Pages submitted for read.
    read,
    /// Pages read and verified.
    verified,
    /// Of these, packed ones.
    packed_verified,
    /// Slots freed.
    frees,
    /// Zones reset.
    resets,
    /// Times that a chunk waited for a zone, or behind others.
    waits,
    /// Bios that waited for a chunk.
    starved,
    /// Reads that waited for a write.
    busy_reads,
    /// Commands that completed after one submitted later.
    reordered,
    /// Appends that failed.
    append_errors,
    /// Pages of failed chunks.
    failed_pages,
    /// Failed swap-outs whose page the kernel kept in memory.
    kept,
    /// Writes of the raw user that failed.
    raw_failed,
    /// Swap-in reads that failed.
    read_errors,
    /// SIGBUS after a failed swap-in.
    sigbus,
    /// Failed readahead reads.
    readahead_failed,
    /// Pages that swapoff could not read.
    poisoned,
    /// Reads of the raw user retried page by page.
    raw_retried,
    /// Reads of GC that failed.
    gc_read_errors,
    /// Pages that GC gave up after repeated read errors.
    gc_lost,
    /// Resets that failed.
    reset_errors,
    /// Finishes that failed.
    finish_errors,
    /// Appends refused because too many zones were active, one of which could not be
    /// finished.
    refused,
    /// Zones that became read-only.
    zones_read_only,
    /// Zones that went offline.
    zones_offline,
    /// Outages of the device.
    outages,
    /// Zones the engine has retired.
    zones_retired,
    /// Fault-free ends at which no write succeeded.
    dead_ends,
    /// Pages for which there was no slot.
    no_slot,
    /// OOM kills.
    oom,
    /// Processes that ended.
    exits,
    /// Swapoffs during the run.
    swapoffs,
    /// `znsage check` of a live device.
    live_checks,
    /// Changes of the policy and the victim rule.
    switches,
}
