// SPDX-License-Identifier: GPL-2.0-only
//! What callers and devices say to each other: geometry, zones, faults, counters.

use std::fmt;

use crate::counters::counters;
use crate::time::Ns;

/// Shape and limits of a zoned device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZonedGeometry {
    /// Zones of the device.
    pub zones: u32,
    /// Capacity of a zone, blocks.
    pub zone_blocks: u32,
    /// Zone size: blocks between the starts of two zones; at least the capacity.
    pub zone_size_blocks: u32,
    /// Write unit, blocks: writes and appends are multiples of it.
    pub write_unit: u32,
    /// Zones that may be open at a time; 0 is no limit.
    pub max_open: u32,
    /// Zones that may be open or closed at a time; 0 is no limit.
    pub max_active: u32,
    /// Largest append, in blocks.
    pub max_append: u32,
    /// The kernel emulates zone append: a zone takes one write at a time.
    pub emulated_append: bool,
}

/// A run of blocks in one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The zone.
    pub zone: u32,
    /// First block, counted from the zone's start.
    pub offset: u32,
    /// Blocks, at least 1.
    pub blocks: u32,
}

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// First block, counted from the zone's start.
    pub offset: u32,
    /// When the command completes.
    pub done: Ns,
}

/// Zone state as in NVMe; explicitly and implicitly opened are one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneState {
    /// Nothing written; not active.
    Empty,
    /// Being written.
    Open,
    /// Partly written, active but not open.
    Closed,
    /// Written to its capacity, or finished.
    Full,
    /// Can be read, but not written or reset.
    ReadOnly,
    /// Lost with its data.
    Offline,
}

/// State and write pointer of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneInfo {
    /// Its state.
    pub state: ZoneState,
    /// Blocks written since the last reset, or the capacity once it is full.
    pub write_pointer: u32,
}

/// Why a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The zone does not exist, or the range is empty or beyond its capacity.
    OutOfRange,
    /// The zone is full, or has less room than the write needs.
    ZoneFull,
    /// The limit on open zones is reached.
    TooManyOpen,
    /// The limit on active zones is reached.
    TooManyActive,
    /// Length or offset is not a multiple of the write unit.
    NotAUnit,
    /// An append exceeds the limit.
    TooLong,
    /// A write is not at the write pointer.
    NotAtWritePointer,
    /// A read goes beyond the write pointer.
    BeyondWritePointer,
    /// The zone's state forbids the command.
    WrongState,
    /// The zone takes one write at a time, and has one in flight.
    Busy,
    /// A live block would be overwritten in threaded logging.
    Overwrite,
    /// The device does not have the command.
    Unsupported,
    /// The media failed.
    Media,
    /// The zone has become read-only.
    ReadOnly,
    /// The zone has gone offline.
    Offline,
}

/// A failed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Why.
    pub kind: FaultKind,
    /// The zone.
    pub zone: u32,
    /// The first block of the command in the zone.
    pub offset: u32,
    /// When the command completes with the error.
    pub done: Ns,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            FaultKind::OutOfRange => "outside the zone's capacity",
            FaultKind::ZoneFull => "the zone has no room for it",
            FaultKind::TooManyOpen => "too many zones are open",
            FaultKind::TooManyActive => "too many zones are active",
            FaultKind::NotAUnit => "not in whole write units",
            FaultKind::TooLong => "longer than the device takes at once",
            FaultKind::NotAtWritePointer => "not at the write pointer",
            FaultKind::BeyondWritePointer => "beyond the write pointer",
            FaultKind::WrongState => "the zone's state forbids it",
            FaultKind::Busy => "the zone takes one write at a time",
            FaultKind::Overwrite => "a live block would be overwritten",
            FaultKind::Unsupported => "the device does not have the command",
            FaultKind::Media => "media error",
            FaultKind::ReadOnly => "the zone is read-only",
            FaultKind::Offline => "the zone is offline",
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "zone {}, block {}: {}", self.zone, self.offset, self.kind)
    }
}

impl std::error::Error for Fault {}

counters! {
    /// Counters of a device since it was made.
    ///
    /// `programmed_blocks` = `written_blocks` + `copied_blocks` + `padding_blocks`
    /// once all that was written has left the write buffer; the device's own write
    /// amplification is their quotient, [`DeviceCounters::waf`].
    pub struct DeviceCounters {
        /// Write and append commands.
        pub writes: u64,
        /// Blocks the host wrote or appended.
        pub written_blocks: u64,
        /// Read commands.
        pub reads: u64,
        /// Blocks the host read.
        pub read_blocks: u64,
        /// Blocks the device moved itself: by its garbage collection, by Copy,
        /// by `zone_compaction`, by internal plugging.
        pub copied_blocks: u64,
        /// Copied blocks that never left their chip.
        pub copyback_blocks: u64,
        /// Blocks written because a zone was finished before it was full.
        pub padding_blocks: u64,
        /// All blocks programmed into the flash.
        pub programmed_blocks: u64,
        /// Erase operations of a die (of a block of each of its planes).
        pub erases: u64,
        /// Zones reset.
        pub resets: u64,
        /// Zones finished.
        pub finishes: u64,
        /// TRIM commands.
        pub trims: u64,
        /// Blocks that TRIM freed.
        pub trimmed_blocks: u64,
        /// Victims that the device's own garbage collection emptied.
        pub gc_victims: u64,
        /// Time spent on them, from the choice of a victim to its last program.
        pub gc_time: u64,
    }
}

impl DeviceCounters {
    /// Blocks programmed per block the host wrote; 1 if it wrote none.
    pub fn waf(&self) -> f64 {
        match self.written_blocks {
            0 => 1.0,
            written => (written + self.copied_blocks + self.padding_blocks) as f64 / written as f64,
        }
    }
}
