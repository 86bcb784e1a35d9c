// SPDX-License-Identifier: GPL-2.0-only
//! What runs did and met, added up.

use std::collections::BTreeMap;

use serde::Serialize;

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What runs did and met. Pages and blocks are of 4 KiB.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
            /// Errors that the device gave, by command and class.
            pub faults: BTreeMap<String, u64>,
            /// What was done to slots just before something else was.
            pub moments: BTreeMap<String, u64>,
        }

        impl Counts {
            /// Adds those of another run.
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
    /// Pages that GC moved.
    moved,
    /// Pages whose read was asked for.
    read,
    /// Pages that were read and held what they should.
    verified,
    /// Slots freed.
    frees,
    /// Zones reset.
    resets,
    /// Chunks that waited for a zone.
    stalls,
    /// Bios that waited for a chunk.
    starved,
    /// Reads that waited for a write.
    busy_reads,
    /// Commands that completed after one submitted later.
    reordered,
    /// Appends that failed.
    append_errors,
    /// Pages of chunks that were given up.
    failed_pages,
    /// Of these, pages that the kernel then kept in memory.
    kept,
    /// Writes of the raw user that failed.
    raw_failed,
    /// Swap-in reads that failed.
    read_errors,
    /// Processes that got SIGBUS for it.
    sigbus,
    /// Pages read ahead in vain.
    readahead_failed,
    /// Pages that swapoff could not read.
    poisoned,
    /// Reads of the raw user that were tried again page by page.
    raw_retried,
    /// Reads of GC that failed.
    gc_read_errors,
    /// Pages that GC could not read again and again.
    gc_lost,
    /// Resets that failed.
    reset_errors,
    /// Finishes that failed.
    finish_errors,
    /// Appends for which too many zones were active, one of which could not
    /// be finished.
    refused,
    /// Zones that became read-only by themselves.
    zones_read_only,
    /// Zones that went offline by themselves.
    zones_offline,
    /// Times that the device was away.
    outages,
    /// Zones that the engine has given up.
    zones_retired,
    /// Ends without faults at which nothing could be written.
    dead_ends,
    /// Pages for which there was no slot.
    no_slot,
    /// Times that nothing could be swapped out.
    oom,
    /// Processes that ended.
    exits,
    /// Swapoffs in the middle.
    swapoffs,
    /// `znsage check` of a live device.
    live_checks,
    /// Changes of the policy and the rule for victims.
    switches,
}
