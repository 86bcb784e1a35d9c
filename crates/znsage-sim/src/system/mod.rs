// SPDX-License-Identifier: GPL-2.0-only
//! The systems: how pages get to a device and back.
//!
//! A system gives each page that reclaim hands it a slot, reads slots, learns
//! which are free, and works in one kernel thread. All systems run on the same
//! host; they differ only as their publications say.

pub mod media;
pub mod stock;
pub mod turns;
pub mod znsage;
pub mod znsplus;
pub mod zonelog;
mod zones;

use std::fmt;

use crate::counters::counters;
use crate::device::DeviceCounters;
use crate::host::slots::Released;
use crate::host::task::By;
use crate::host::Host;
use crate::workload::oracle::Oracle;

/// Result of swapping out a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It took all pages.
    All,
    /// It took this many; the task waits until [`Host::has_room`].
    Wait(usize),
    /// It took this many; there is no slot for the next one.
    NoSlot(usize),
}

/// A page to read.
#[derive(Clone, Copy, Debug)]
pub struct In {
    /// From where.
    pub slot: u32,
    /// Where to; completed by [`Host::read_done`].
    pub frame: u32,
}

/// Where the system's slots come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotSource {
    /// The kernel's allocator.
    Kernel {
        /// Slots of the swap area.
        total: u32,
        /// Hold free clusters until the system has discarded them.
        discards: bool,
    },
    /// The system: a slot is a block of the device.
    System {
        /// Slots that may be in use.
        total: u32,
        /// Zones of the device.
        zones: u32,
        /// Blocks of a zone.
        zone_blocks: u32,
    },
}

counters! {
    /// Counters of a system. Blocks are of 4 KiB.
    pub struct SystemCounters {
        /// Swapped out by the kernel and written.
        pub host_blocks: u64,
        /// Pages that these blocks are; of those that take no block, too.
        pub host_pages: u64,
        /// Written again by the system's garbage collection.
        pub gc_blocks: u64,
        /// Written to fill up a write unit.
        pub padding_blocks: u64,
        /// Written to keep mappings on the device.
        pub metadata_blocks: u64,
        /// Read by garbage collection.
        pub gc_read_blocks: u64,
        /// Zones reset.
        pub resets: u64,
        /// Page table entries that garbage collection rewrote.
        pub remapped: u64,
        /// Slots that garbage collection dropped because the page was in memory.
        pub dropped_cached: u64,
        /// Times that swap-out had no zone to write to.
        pub stalls: u64,
        /// TRIM commands.
        pub trims: u64,
        /// Pages that the system refused, since a full log had no room for them.
        pub refused_pages: u64,
        /// Pages that repeat a word, and took no block.
        pub filled_pages: u64,
    }
}

/// What a system tells of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemStats {
    /// Its counters.
    pub count: SystemCounters,
    /// Bytes of RAM for mappings.
    pub map_bytes: u64,
    /// Bytes of mappings on the device, besides the blocks.
    pub device_map_bytes: u64,
    /// The device's own counters.
    pub device: DeviceCounters,
    /// What the pages take that are on the device, if the system looks at their contents.
    pub packed: Option<Packed>,
}

/// Pages on the device, and what they take of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// Slots in use.
    pub pages: u64,
    /// Bytes that their pages take.
    pub bytes: u64,
}

/// A violation found by a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong(pub String);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A system.
///
/// Calls add their CPU time to [`Host::spent`]. Commands are submitted to the
/// device at [`Host::now`].
pub trait System {
    /// Where slots come from.
    fn slots(&self) -> SlotSource;

    /// Lets its placement ask one who knows the accesses to come.
    fn foresee(&mut self, _oracle: Oracle) {}

    /// Capacity in blocks, the base of utilization.
    fn capacity(&self) -> u64;

    /// Swaps out pages that reclaim has isolated.
    fn swap_out(&mut self, h: &mut Host, by: By, frames: &[u32]) -> Taken;

    /// The block plug of `by` ends.
    fn unplug(&mut self, h: &mut Host, by: By);

    /// Reads pages; [`Host::begin_read`] was called for each.
    fn swap_in(&mut self, h: &mut Host, by: By, pages: &[In]);

    /// The kernel has freed a slot.
    fn free(&mut self, h: &mut Host, slot: u32);

    /// The host has released the slot, with this result.
    fn released(&mut self, _h: &mut Host, _slot: u32, _what: Released) {}

    /// An event that the system added to the queue.
    fn event(&mut self, h: &mut Host, what: u64);

    /// One step of the kernel thread, after [`Host::kick`]; false if there is nothing to
    /// do.
    fn work(&mut self, h: &mut Host) -> bool;

    /// The run ends: write pending pages, begin nothing new.
    fn wind_down(&mut self, h: &mut Host);

    /// Its counters, and the memory that it takes.
    fn stats(&self) -> SystemStats;

    /// Checks every invariant; nothing is in flight.
    fn check(&self, h: &Host) -> Vec<Wrong>;
}
