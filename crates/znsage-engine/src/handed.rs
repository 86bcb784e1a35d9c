// SPDX-License-Identifier: GPL-2.0-only
//! The values that the engine hands out. None of them can be copied, and the call that
//! reports the end of one takes it back.

use std::fmt;
use std::ptr::NonNull;

use crate::sys::{zse_chunk, zse_look};

/// An owned chunk. Its pointer is only followed with the engine `owner` at hand, so not
/// after that engine's memory is freed.
pub(crate) struct Chunk {
    pub(crate) ptr: NonNull<zse_chunk>,
    pub(crate) owner: u64,
}

macro_rules! chunk_value {
    ($(#[$doc:meta])* $name:ident { $($field:ident),* }) => {
        $(#[$doc])*
        #[must_use]
        pub struct $name {
            pub(crate) chunk: Chunk,
            $(pub $field: u32,)*
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.debug_struct(stringify!($name))
                    $(.field(stringify!($field), &self.$field))*
                    .finish_non_exhaustive()
            }
        }
    };
}

chunk_value! {
    /// A chunk that was taken from its stream; goes to `Engine::append_start()`.
    Filled {}
}
chunk_value! {
    /// The host appends the entries, then `padding` blocks, to `zone` and calls
    /// `Engine::append_done()`. The device chooses the place; a host that has to, writes
    /// at `offset`. Packed pages are in blocks `from` to `from + blocks` of what the chunk
    /// appends.
    Append { zone, offset, first, nr, from, blocks, padding }
}
chunk_value! {
    /// A chunk with nothing left to append; goes to `Engine::chunk_put()`.
    Ended {}
}
chunk_value! {
    /// The host ends these pages with an error and calls `Engine::failed_put()`.
    Failed { first, nr }
}
chunk_value! {
    /// The host reads the blocks `expect` of the entries into the buffers `page` and calls
    /// `Engine::gc_read_done()`. Where pages are packed, it reads blocks `from` to
    /// `from + blocks` of `zone`, calls `Engine::gc_scan()`, and copies the entries.
    GcRead { nr, zone, from, blocks }
}

/// The host resets a zone, or finishes it, and calls `Engine::zone_done()`.
#[must_use]
#[derive(Debug)]
pub struct ZoneOp {
    pub(crate) zone: u32,
    pub(crate) reset: bool,
    pub(crate) owner: u64,
}

impl ZoneOp {
    pub fn zone(&self) -> u32 {
        self.zone
    }

    /// Is it a reset? Else it is a finish.
    pub fn resets(&self) -> bool {
        self.reset
    }
}

/// An operation for the host.
#[must_use]
#[derive(Debug)]
pub enum Op {
    Append(Append),
    Fail(Failed),
    Read(GcRead),
    Zone(ZoneOp),
}

/// Where added pages are kept.
#[must_use]
#[derive(Debug)]
pub struct Added {
    pub chunk: u32,
    /// Of the first page; the others follow.
    pub page: u32,
    /// How many were added: all, or as many as the chunk had room for.
    pub nr: u32,
    /// How many more the chunk has room for.
    pub room: u32,
    /// The chunk, if it is full now.
    pub full: Option<Filled>,
}

/// The end of an append.
#[must_use]
#[derive(Debug)]
pub struct AppendEnd {
    /// It is where it can be. Otherwise it has failed, whatever the device said.
    pub worked: bool,
    /// `Engine::next_op()` may have something new.
    pub more: bool,
    /// The chunk, if it has nothing left to append.
    pub ended: Option<Ended>,
}

/// A zone that is not reset until `Engine::look_end()`.
#[must_use]
#[derive(Debug)]
pub struct Look {
    pub(crate) look: zse_look,
    pub(crate) owner: u64,
}

/// What a device said that cannot be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oddity {
    /// Pages of the zone are gone that it had acknowledged.
    WasReset,
    /// Two appends are in one place.
    Overlap,
    /// An append is not in its zone.
    Beyond,
}

/// Blocks that stay as they are until `Engine::read_end()`.
#[must_use]
#[derive(Debug)]
pub struct ReadHold {
    pub(crate) block: u32,
    pub(crate) nr: u32,
    pub(crate) len: u32,
    pub(crate) blocks: u32,
    pub(crate) owner: u64,
}

impl ReadHold {
    /// The first block.
    pub fn block(&self) -> u32 {
        self.block
    }

    /// The number of pages.
    pub fn count(&self) -> u32 {
        self.nr
    }

    /// The blocks that the first page takes.
    pub fn first_len(&self) -> u32 {
        self.len
    }

    /// The blocks that all pages take.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }
}

/// Where the page of a slot is.
#[must_use]
#[derive(Debug)]
pub enum Read {
    /// Nowhere: it repeats this word, 0 if nothing was written to the slot.
    Filled(u64),
    Block(ReadHold),
    /// In a chunk that is being written.
    Busy,
    /// An I/O error took it.
    Lost,
}
