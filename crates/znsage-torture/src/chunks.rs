// SPDX-License-Identifier: GPL-2.0-only
//! The state of the module: the pages of chunks, what waits, where the worker is.

use std::collections::VecDeque;

use znsage_engine::{Append, Config, GcRead, Part, ReadHold, ZoneOp};
use znsage_sim::time::Ns;

use super::bio::BioId;
use super::content::{Cell, NOTHING};

/// Retries of a failed command, as in the engine.
pub(super) const TRIES: u32 = 3;

/// The purpose of a command in flight.
pub(super) enum Cmd {
    Append(Append),
    /// A run of pages of a bio, from this one.
    Read {
        bio: BioId,
        first: usize,
        hold: ReadHold,
    },
    /// A part of a GC chunk's read.
    GcRead {
        of: usize,
        part: Part,
    },
    Zone(ZoneOp),
}

/// A GC chunk that is being read.
pub(super) struct GcReading {
    pub(super) read: GcRead,
    /// Commands in flight, plus one while submitting.
    pub(super) left: u32,
    pub(super) failed: bool,
    /// Second try: block by block.
    pub(super) single: bool,
    /// Pages of the span that could not be read, if pages are packed.
    pub(super) unread: Vec<bool>,
}

/// Where the worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Retry,
    Scan,
    Pending,
    Flush,
    Ops,
}

#[derive(Default)]
pub(super) struct Module {
    /// The bio and its page behind each entry of each swap-out chunk.
    pub(super) parents: Vec<(BioId, u32)>,
    /// Failed finishes of each zone, in a row.
    pub(super) unfinished: Vec<u32>,
    /// Failed appends of each swap-out chunk since it was filled.
    pub(super) tries: Vec<u32>,
    /// Failed appends of GC since one of swap-out worked, and when the first one did.
    pub(super) vain: (u32, Ns),
    /// The buffers of GC's chunks; if pages are packed, of all chunks.
    pub(super) data: Vec<Vec<Cell>>,
    /// If pages are packed: the spans of GC's chunks, and the blocks that each chunk of
    /// swap-out takes while it is in flight.
    pub(super) spans: Vec<Vec<Cell>>,
    pub(super) charged: Vec<u32>,
    /// Slots whose packed pages GC could not read, and their blocks.
    pub(super) at_risk: Vec<(u32, u32)>,
    pub gc_readings: slab::Slab<GcReading>,
    pub(super) gc_retry: Vec<usize>,
    pub(super) gc_scan: Vec<usize>,
    pub(super) pending: VecDeque<BioId>,
    pub starved: bool,
    /// Actors waiting for chunks.
    pub fed: Vec<u32>,
    pub flush: bool,
    pub(super) timer_on: bool,
    /// The work is queued.
    pub(super) queued: bool,
    pub(super) stage: Option<Stage>,
    pub(super) spins: u32,
}

/// A block plug and the stream it writes to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plug {
    pub(super) stream: Option<u32>,
}

impl Module {
    pub fn new(cfg: &Config) -> Module {
        let cb = cfg.chunk_pages as usize;
        let chunks = (cfg.nr_chunks + cfg.nr_gc_chunks) as usize;
        Module {
            parents: vec![(0, 0); cfg.nr_chunks as usize * cb],
            unfinished: vec![0; cfg.nr_zones as usize],
            tries: vec![0; cfg.nr_chunks as usize],
            data: vec![vec![NOTHING; cb]; chunks],
            spans: vec![Vec::new(); chunks],
            charged: vec![0; cfg.nr_chunks as usize],
            ..Module::default()
        }
    }

    /// Did all attempts to finish a zone fail?
    pub fn was_tried(&self, zone: u32) -> bool {
        self.unfinished[zone as usize] > TRIES
    }

    /// Are neither the worker nor the timer pending?
    pub fn at_rest(&self) -> bool {
        !self.queued && self.stage.is_none() && !self.timer_on
    }
}
