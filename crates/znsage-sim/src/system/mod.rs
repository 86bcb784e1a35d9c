// SPDX-License-Identifier: GPL-2.0-only
//! The systems: how pages get to a device and back.
//!
//! A system takes pages that reclaim hands it and gives each a slot, reads
//! slots, learns which are free, and does its work in one kernel thread. All
//! of them run on the same host; they differ in what their publications say
//! differs.

pub mod media;
pub mod stock;
pub mod znsage;
pub mod znsplus;
pub mod zonelog;

use std::fmt;
use std::sync::Arc;

use znsage_engine::InMemory;

use crate::device::DeviceCounters;
use crate::host::slots::Released;
use crate::host::task::By;
use crate::host::Host;

/// What became of a batch of pages that was to be swapped out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// All of them are on their way.
    All,
    /// The system took so many; the task is to wait until [`Host::has_room`].
    Wait(usize),
    /// It took so many, and there is no slot for the next one.
    NoSlot(usize),
}

/// A page to read.
#[derive(Clone, Copy, Debug)]
pub struct In {
    /// From where.
    pub slot: u32,
    /// Whereto; [`Host::read_done`].
    pub frame: u32,
}

/// Where the system's slots come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotSource {
    /// The kernel's allocator; so many slots.
    Kernel {
        /// Slots of the swap area.
        total: u32,
        /// The system is told when a whole cluster is free, and says when it
        /// can be used again.
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

/// What a system has done and what it needs. Blocks are of 4 KiB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemStats {
    /// Swapped out by the kernel and written.
    pub host_blocks: u64,
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
    /// Slots that garbage collection dropped, since the page was in memory.
    pub dropped_cached: u64,
    /// Times that swap-out had no zone to write to.
    pub stalls: u64,
    /// TRIM commands.
    pub trims: u64,
    /// Bytes of RAM for mappings.
    pub map_bytes: u64,
    /// Bytes that mappings take on the device, beside the blocks.
    pub device_map_bytes: u64,
    /// The device's own counters.
    pub device: DeviceCounters,
}

/// Something that must not be, found by a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong(pub String);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A system.
///
/// Calls add the CPU time that they take to [`Host::spent`]. The time of
/// commands to the device is [`Host::now`].
pub trait System {
    /// Where slots come from.
    fn slots(&self) -> SlotSource;

    /// A set of slots that the host is to keep; [`Host::keep_unchanged`].
    fn unchanged(&self) -> Option<Arc<InMemory>> {
        None
    }

    /// Blocks that the device has room for: what utilization is measured by.
    fn capacity(&self) -> u64;

    /// Swaps out pages that reclaim has isolated.
    fn swap_out(&mut self, h: &mut Host, by: By, frames: &[u32]) -> Taken;

    /// The batch of `by` ends (its block plug does).
    fn unplug(&mut self, h: &mut Host, by: By);

    /// Reads pages; [`Host::begin_read`] was called for each.
    fn swap_in(&mut self, h: &mut Host, by: By, pages: &[In]);

    /// The kernel has freed a slot.
    fn free(&mut self, h: &mut Host, slot: u32);

    /// The slot can be allocated again, and this is what became of it.
    fn released(&mut self, _h: &mut Host, _slot: u32, _what: Released) {}

    /// An event that the system added to the queue.
    fn event(&mut self, h: &mut Host, what: u64);

    /// One step of the kernel thread, after [`Host::kick`]; false if there is
    /// nothing to do. What it takes is added to [`Host::spent`].
    fn work(&mut self, h: &mut Host) -> bool;

    /// The run ends: write what still waits, begin nothing new.
    fn wind_down(&mut self, h: &mut Host);

    /// Counters.
    fn stats(&self) -> SystemStats;

    /// Every invariant, when nothing is under way.
    fn check(&self, h: &Host) -> Vec<Wrong>;
}
