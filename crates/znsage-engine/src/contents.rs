// SPDX-License-Identifier: GPL-2.0-only
//! The contents of chunks, while their engine lives.

use crate::engine::Engine;
use crate::handed::{Append, Chunk, Ended, Failed, Filled, GcRead};
use crate::sys::{zse_chunk, zse_entry, zse_write_stream};

impl Chunk {
    pub(crate) fn get<'a>(&'a self, e: &'a Engine) -> &'a zse_chunk {
        assert_eq!(self.owner, e.id, "chunk of another engine");
        // SAFETY: the engine lives, and so does its pool. The value that holds self owns
        // the chunk, so nobody writes to it meanwhile.
        unsafe { self.ptr.as_ref() }
    }

    fn entries<'a>(&'a self, e: &'a Engine, first: u32, nr: u32) -> &'a [zse_entry] {
        let c = self.get(e);
        // SAFETY: the chunk has nr entries, which nobody writes to either.
        let all = unsafe { std::slice::from_raw_parts(c.entries, c.nr as usize) };
        &all[first as usize..(first + nr) as usize]
    }
}

macro_rules! id {
    ($($name:ident)*) => {
        $(impl $name {
            /// Index of the chunk in the pool.
            pub fn id(&self, e: &Engine) -> u32 {
                self.chunk.get(e).id
            }
        })*
    };
}

id! { Filled Append Ended Failed GcRead }

impl Append {
    pub fn entries<'a>(&'a self, e: &'a Engine) -> &'a [zse_entry] {
        self.chunk.entries(e, self.first, self.nr)
    }

    /// Does it hold survivors of GC?
    pub fn gc(&self, e: &Engine) -> bool {
        self.chunk.get(e).gc
    }

    /// Which of the device's `nr` write streams it goes to.
    pub fn write_stream(&self, e: &Engine, nr: u32) -> u32 {
        // SAFETY: the chunk belongs to this append, which has begun.
        unsafe { zse_write_stream(self.chunk.get(e), nr) }
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
    /// The number of pages.
    pub fn len(&self, e: &Engine) -> u32 {
        self.chunk.get(e).nr
    }
}
