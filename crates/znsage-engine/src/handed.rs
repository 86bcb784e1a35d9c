// SPDX-License-Identifier: GPL-2.0-only
//! What the engine hands out. None of it can be copied, and the call that
//! reports its end takes it back.

use std::fmt;
use std::ptr::NonNull;

use crate::engine::Engine;
use crate::sys::zse_run;
use crate::sys::{zse_chunk, zse_entry};

/// A chunk, owned. `owner` is the engine it belongs to: the pointer is only
/// followed after a look at it, so it cannot outlive the engine's memory.
pub(crate) struct Chunk {
    pub(crate) ptr: NonNull<zse_chunk>,
    pub(crate) owner: u64,
}

impl Chunk {
    pub(crate) fn new(e: &Engine, ptr: *mut zse_chunk) -> Option<Self> {
        let owner = e.id;
        NonNull::new(ptr).map(|ptr| Chunk { ptr, owner })
    }

    fn get<'a>(&'a self, e: &'a Engine) -> &'a zse_chunk {
        assert_eq!(self.owner, e.id, "chunk of another engine");
        // SAFETY: the engine lives, so its pool does; the chunk is owned by
        // the value that holds self, so nobody writes to it meanwhile.
        unsafe { self.ptr.as_ref() }
    }

    pub(crate) fn into_raw(self, e: &Engine) -> *mut zse_chunk {
        assert_eq!(self.owner, e.id, "chunk of another engine");
        self.ptr.as_ptr()
    }

    fn entries<'a>(&'a self, e: &'a Engine, first: u32, nr: u32) -> &'a [zse_entry] {
        let c = self.get(e);
        // SAFETY: the chunk has nr entries and they are as little written to
        // as the chunk itself.
        let all = unsafe { std::slice::from_raw_parts(c.entries, c.nr as usize) };
        &all[first as usize..(first + nr) as usize]
    }
}

macro_rules! chunk_value {
    ($(#[$doc:meta])* $name:ident { $($field:ident),* }) => {
        $(#[$doc])*
        #[must_use]
        pub struct $name {
            pub(crate) chunk: Chunk,
            $(pub $field: u32,)*
        }

        impl $name {
            /// Index of the chunk in the pool.
            pub fn id(&self, e: &Engine) -> u32 {
                self.chunk.get(e).id
            }
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
    /// A chunk that was taken from its stream: [`Engine::append_start`].
    Filled {}
}
chunk_value! {
    /// Append the entries, then `padding` blocks, to `zone`:
    /// [`Engine::append_done`].
    Append { zone, first, nr, padding }
}
chunk_value! {
    /// A chunk with nothing left to append: [`Engine::chunk_put`].
    Ended {}
}
chunk_value! {
    /// End these pages with an error: [`Engine::failed_put`].
    Failed { first, nr }
}
chunk_value! {
    /// Read the blocks `expect` of the entries into the buffers `page`:
    /// [`Engine::gc_read_done`].
    GcRead { nr }
}

impl Append {
    pub fn entries<'a>(&'a self, e: &'a Engine) -> &'a [zse_entry] {
        self.chunk.entries(e, self.first, self.nr)
    }

    /// Does it hold survivors of GC?
    pub fn gc(&self, e: &Engine) -> bool {
        self.chunk.get(e).gc
    }
}

impl Failed {
    pub fn entries<'a>(&'a self, e: &'a Engine) -> &'a [zse_entry] {
        self.chunk.entries(e, self.first, self.nr)
    }
}

impl GcRead {
    pub fn entries<'a>(&'a self, e: &'a Engine) -> &'a [zse_entry] {
        self.chunk.entries(e, 0, self.nr)
    }
}

impl Filled {
    /// Pages in it.
    pub fn len(&self, e: &Engine) -> u32 {
        self.chunk.get(e).nr
    }
}

macro_rules! zone_value {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[must_use]
        #[derive(Debug)]
        pub struct $name {
            pub(crate) zone: u32,
            pub(crate) owner: u64,
        }

        impl $name {
            pub fn zone(&self) -> u32 {
                self.zone
            }
        }
    };
}

zone_value! {
    /// Reset a zone: [`Engine::reset_done`].
    Reset
}
zone_value! {
    /// Finish a zone: [`Engine::finish_done`].
    Finish
}

/// What the host is to do.
#[must_use]
#[derive(Debug)]
pub enum Op {
    Append(Append),
    Fail(Failed),
    Read(GcRead),
    Reset(Reset),
    Finish(Finish),
}

/// Where a page that was added is kept, and the chunk if it is full now.
#[must_use]
#[derive(Debug)]
pub struct Added {
    pub chunk: u32,
    pub page: u32,
    /// Pages that the chunk takes besides.
    pub room: u32,
    pub full: Option<Filled>,
}

/// Where pages that were added together are kept, and the chunk if it is full
/// now.
#[must_use]
#[derive(Debug)]
pub struct AddedAll {
    pub chunk: u32,
    /// Of the first page; the others follow.
    pub page: u32,
    /// How many were added: all, or as many as the chunk had room for.
    pub nr: u32,
    /// Pages that the chunk takes besides.
    pub room: u32,
    pub full: Option<Filled>,
}

/// The end of an append.
#[must_use]
#[derive(Debug)]
pub struct AppendEnd {
    /// [`Engine::next_op`] may have something new.
    pub more: bool,
    /// Set if the chunk has nothing left to append.
    pub ended: Option<Ended>,
}

/// Blocks that stay as they are: [`Engine::read_end`].
#[must_use]
#[derive(Debug)]
pub struct ReadHold {
    pub(crate) block: u32,
    pub(crate) nr: u32,
    pub(crate) owner: u64,
}

impl ReadHold {
    /// The first of them.
    pub fn block(&self) -> u32 {
        self.block
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.nr
    }
}

/// Where the page of a slot is.
#[must_use]
#[derive(Debug)]
pub enum Read {
    Zero,
    Block(ReadHold),
    Busy,
    Lost,
    /// GC has it in memory.
    Buffer(BufferHold),
}

/// A page in the buffer of a GC chunk, to be copied: [`Engine::buffer_end`].
#[must_use]
#[derive(Debug)]
pub struct BufferHold {
    pub(crate) run: zse_run,
    pub(crate) chunk: u32,
    pub(crate) owner: u64,
}

impl BufferHold {
    /// The block that holds the same page.
    pub fn block(&self) -> u32 {
        self.run.block
    }

    /// The GC chunk.
    pub fn chunk(&self) -> u32 {
        self.chunk
    }

    /// The buffer, as numbered by its entry.
    pub fn page(&self) -> u32 {
        self.run.page
    }
}
