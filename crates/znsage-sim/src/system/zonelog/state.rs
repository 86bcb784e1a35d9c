// SPDX-License-Identifier: GPL-2.0-only
//! What a system on zones keeps: zones, streams, garbage collection.

use slab::Slab;

use crate::host::lock::Lock;
use crate::host::page::NONE;
use crate::host::Host;
use crate::spec::{PublishedSpec, SystemKind};
use crate::system::media::Zoned;
use crate::system::zones::Zones;
use crate::system::SystemCounters;
use crate::time::Ns;

// Kinds of events, in the bits above the index of their object; 1 and 3 are those of
// `zones.rs`.
pub(super) const WRITTEN: u64 = 0 << 32;
pub(super) const GC_READ: u64 = 2 << 32;
pub(super) const FLUSH: u64 = 4 << 32;
pub(super) const FROM_GC: u64 = 5 << 32;
pub(super) const PAID: u64 = 6 << 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Free,
    /// Kept for garbage collection.
    Emergency,
    /// Being written.
    Open,
    Full,
    Resetting,
}

pub(super) struct Zone {
    pub(super) state: State,
    /// Blocks allocated to pages.
    pub(super) given: u32,
    /// Blocks written.
    pub(super) done: u32,
    /// Blocks whose slot is in use, or a target of GC.
    pub(super) live: u32,
    /// The stream that wrote it.
    pub(super) stream: u32,
}

/// A page of a chunk.
#[derive(Clone, Copy)]
pub(super) enum Entry {
    /// Swapped out from this frame.
    Out(u32),
    /// Moved by garbage collection from this slot.
    Moved(u32),
}

/// A stream's zone and its filling chunk.
#[derive(Clone)]
pub(super) struct Head {
    pub(super) zone: u32,
    pub(super) chunk: Vec<Entry>,
    /// Slot of the chunk's first page.
    pub(super) first: u32,
    /// Its capacity, including a page for the map.
    pub(super) max: u32,
    /// Serial number of the chunk, for the timer.
    pub(super) chunks: u32,
}

pub(super) struct Writing {
    pub(super) zone: u32,
    pub(super) first: u32,
    pub(super) blocks: u32,
    pub(super) entries: Vec<Entry>,
    pub(super) cpu: u32,
}

/// Differences between the systems.
#[derive(Clone, Debug)]
pub(super) struct Traits {
    pub(super) kind: SystemKind,
    /// Most pages of an append.
    pub(super) chunk: u32,
    /// An append is what one plug has for a zone; otherwise a chunk fills until it is full
    /// or its timer ends.
    pub(super) plugged: bool,
    /// Its last page holds the reverse maps of the others.
    pub(super) map_in_chunk: bool,
    /// Faults get pages from GC's memory.
    pub(super) from_gc: bool,
}

/// One of the systems.
pub struct ZoneLog {
    pub(super) traits: Traits,
    pub(super) set: PublishedSpec,
    pub(super) media: Zoned,
    pub(super) unit: u32,
    pub(super) zones: Vec<Zone>,
    pub(super) upkeep: Zones,
    /// The page of each slot in use.
    pub(super) owner: Vec<u32>,
    /// The streams, then garbage collection's own.
    pub(super) heads: Vec<Head>,
    pub(super) streams: u32,
    pub(super) free: u32,
    pub(super) open: u32,
    pub(super) max_open: u32,
    pub(super) last_opened: u32,
    pub(super) emergency: Option<u32>,
    pub(super) low: u32,
    pub(super) high: u32,
    /// Swap-out waits until GC has caught up.
    pub(super) suspended: bool,
    pub(super) gc: Gc,
    pub(super) vmas: Vmas,
    pub(super) limits: Limits,
    pub(super) writes: Slab<Writing>,
    pub(super) locks: Vec<Lock>,
    pub(super) count: SystemCounters,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    #[default]
    Idle,
    Reading,
    Read,
    Writing,
    Written,
}

/// State of garbage collection.
pub(super) struct Gc {
    pub(super) stage: Stage,
    pub(super) victim: u32,
    /// The stream that wrote the victim.
    pub(super) stream: usize,
    /// Next block of the victim to look at.
    pub(super) at: u32,
    /// Pages read, by slot, and how many are done.
    pub(super) batch: Vec<(u32, u32)>,
    pub(super) next: usize,
    /// Pages being written: page, from, to.
    pub(super) moves: Vec<(u32, u32, u32)>,
    pub(super) pending: usize,
    /// Between the watermarks.
    pub(super) running: bool,
}

impl Default for Gc {
    fn default() -> Self {
        Gc {
            stage: Stage::Idle,
            victim: NONE,
            stream: 0,
            at: 0,
            batch: Vec::new(),
            next: 0,
            moves: Vec::new(),
            pending: 0,
            running: false,
        }
    }
}

impl Gc {
    pub(super) fn victim(&self) -> u32 {
        self.victim
    }

    pub(super) fn stream(&self) -> usize {
        self.stream
    }

    pub(super) fn at_rest(&self) -> bool {
        self.stage == Stage::Idle && self.victim == NONE
    }

    /// Is the page of a slot in GC's memory?
    pub(super) fn has(&self, slot: u32) -> bool {
        matches!(self.stage, Stage::Read | Stage::Writing | Stage::Written)
            && self.batch.binary_search_by_key(&slot, |&(_, from)| from).is_ok()
    }

    /// The batch has been read.
    pub(super) fn read(&mut self, h: &mut Host) {
        self.stage = Stage::Read;
        h.kick();
    }

    /// A page has been written.
    pub(super) fn written(&mut self, h: &mut Host) {
        self.pending -= 1;
        if self.pending == 0 && self.stage == Stage::Writing {
            self.stage = Stage::Written;
            h.kick();
        }
    }
}

/// Policy `vma`: a mapping keeps its stream until the zone it began with is
/// full, then takes the stream with the fewest mapped pages.
pub(super) struct Vmas {
    /// Per mapping: its stream, and the zone it began with.
    pub(super) at: Vec<(u32, u32)>,
    /// Per stream: pages of the mappings that use its zone.
    pub(super) using: Vec<u64>,
}

impl Vmas {
    pub(super) fn new(streams: u32) -> Self {
        Vmas { at: Vec::new(), using: vec![0; streams as usize + 1] }
    }

    /// The zone of a stream is full.
    pub(super) fn zone_ended(&mut self, stream: u32) {
        self.using[stream as usize] = 0;
    }
}

/// When each cgroup is below its limit again.
#[derive(Default)]
pub(super) struct Limits {
    pub(super) until: Vec<Ns>,
    /// When the next waiting cgroup is woken.
    pub(super) timer: Option<Ns>,
}
