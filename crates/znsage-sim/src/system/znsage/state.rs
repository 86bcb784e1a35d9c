// SPDX-License-Identifier: GPL-2.0-only
//! What the driver of the engine keeps: commands under way, the swap cache, and
//! what placement remembers.

use slab::Slab;
use znsage_engine::{Append, Config, Engine, GcRead, ReadHold, ZoneOp};

use super::packed::Packing;
use crate::contents::Contents;
use crate::host::lock::Lock;
use crate::host::page::NONE;
use crate::spec::ZnsageSpec;
use crate::system::media::Zoned;
use crate::workload::oracle::Oracle;

// Kinds of events, in the bits above the index of their object.
pub(super) const APPENDED: u64 = 0 << 32;
pub(super) const READ: u64 = 1 << 32;
pub(super) const GC_READ: u64 = 2 << 32;
pub(super) const ZONE_ENDED: u64 = 3 << 32;
pub(super) const DEADLINE: u64 = 4 << 32;
pub(super) const UNPACKED: u64 = 5 << 32;
pub(super) const FILLED: u64 = 6 << 32;

/// The system.
pub struct Znsage<D> {
    pub(super) e: Engine,
    pub(super) cfg: Config,
    pub(super) set: ZnsageSpec,
    pub(super) media: Zoned<D>,
    /// The frame of each entry of each swap-out chunk.
    pub(super) frames: Vec<u32>,
    /// Content of each entry, with a shadow.
    pub(super) contents: Vec<u64>,
    pub(super) appends: Slab<Appending>,
    pub(super) reads: Slab<Reading>,
    pub(super) gc_reads: Slab<(GcRead, Vec<u32>)>,
    /// Resets and finishes, and whether they work.
    pub(super) zone_ops: Slab<(ZoneOp, bool)>,
    pub(super) slots: Vec<u32>,
    pub(super) pasts: Vec<u8>,
    pub(super) placement: Placement,
    /// What pages hold, if the spec says that.
    pub(super) shrink: Option<Contents>,
    pub(super) packing: Packing,
    pub(super) timer_on: bool,
    pub(super) flush: bool,
    pub(super) stream_locks: Vec<Lock>,
    pub(super) lock: Lock,
    pub(super) failed_pages: u64,
}

pub(super) struct Appending {
    pub(super) append: Append,
    pub(super) cpu: u32,
    /// Its offset, or None if it failed.
    pub(super) at: Option<u32>,
}

/// A read command of swap-in.
pub(super) struct Reading {
    pub(super) hold: ReadHold,
    pub(super) frame: u32,
    /// The blocks that follow, if any.
    pub(super) more: Vec<(ReadHold, u32)>,
    pub(super) cpu: u32,
    pub(super) ok: bool,
}

/// A page's last stay on the device.
#[derive(Clone, Copy)]
pub(super) struct Stay {
    pub(super) page: u32,
    /// Its length, in blocks swapped out.
    pub(super) life: u32,
    /// What is remembered of the page's lives, with this one.
    pub(super) past: u8,
}

pub(super) const NO_STAY: Stay = Stay { page: NONE, life: NONE, past: 0 };

/// What placement remembers.
#[derive(Default)]
pub(super) struct Placement {
    /// Per frame: the last stay of the page swapped in.
    pub(super) stays: Vec<Stay>,
    /// Per task: the streams of its plug, as bits.
    pub(super) plugs: Vec<u64>,
    /// Who knows better than the past, for policies that ask.
    pub(super) oracle: Option<Oracle>,
}

impl Placement {
    /// `page` was read into `frame` after a life of `life`; `past` is what to remember.
    pub(super) fn note_stay(&mut self, frame: u32, page: u32, life: u32, past: u8) {
        let frame = frame as usize;
        if self.stays.len() <= frame {
            self.stays.resize(frame + 1, NO_STAY);
        }
        self.stays[frame] = Stay { page, life, past };
    }

    /// The last life of `page`, which is in `frame`, and what to remember of all.
    pub(super) fn last_stay(&self, frame: u32, page: u32) -> (u32, u8) {
        let stay = self.stays.get(frame as usize).filter(|s| s.page == page);
        let Stay { life, past, .. } = *stay.unwrap_or(&NO_STAY);
        (life, past)
    }

    /// The plug of `task` has pages of `stream`.
    pub(super) fn note_stream(&mut self, task: u32, stream: u32) {
        let task = task as usize;
        if self.plugs.len() <= task {
            self.plugs.resize(task + 1, 0);
        }
        self.plugs[task] |= 1 << stream;
    }

    /// Takes the streams of the plug of `task`, as bits.
    pub(super) fn take_streams(&mut self, task: u32) -> u64 {
        self.plugs.get_mut(task as usize).map_or(0, std::mem::take)
    }
}
