// SPDX-License-Identifier: GPL-2.0-only
//! The memory under test: anonymous, private, mapped at once, touched page by page.
#![allow(unsafe_code)]

use std::io;
use std::num::NonZeroUsize;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;

use nix::sys::mman::{
    madvise, mlockall, mmap_anonymous, munmap, MapFlags, MlockAllFlags, MmapAdvise, ProtFlags,
};

const WORD: usize = size_of::<u64>();

pub struct Arena {
    start: NonNull<u64>,
    words: usize,
}

impl Arena {
    pub fn map(bytes: usize, huge_pages: bool) -> io::Result<Arena> {
        let length = NonZeroUsize::new(bytes).ok_or(io::ErrorKind::InvalidInput)?;
        // NORESERVE: spare room for growth may never be touched.
        // SAFETY: a new anonymous mapping at an address that the kernel
        // chooses; it aliases nothing.
        let start = unsafe {
            mmap_anonymous(
                None,
                length,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE,
            )
        }?;
        let advice = match huge_pages {
            true => MmapAdvise::MADV_HUGEPAGE,
            false => MmapAdvise::MADV_NOHUGEPAGE,
        };
        // It may fail on a kernel without huge pages, which is fine.
        // SAFETY: the range is the mapping made above; the advice does not
        // change what it holds.
        let _ = unsafe { madvise(start, bytes, advice) };
        Ok(Arena { start: start.cast(), words: bytes / WORD })
    }

    /// Gives pages back to the kernel; they read as zeros again.
    pub fn discard(&mut self, words: Range<usize>) -> io::Result<()> {
        let part = &mut self[words];
        if part.is_empty() {
            return Ok(());
        }
        let start = NonNull::from(&mut part[0]).cast();
        // SAFETY: the range lies within the mapping and is borrowed
        // exclusively; every bit pattern, zeros too, is a valid u64.
        unsafe { madvise(start, part.len() * WORD, MmapAdvise::MADV_DONTNEED) }?;
        Ok(())
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, whose borrows have ended.
        let _ = unsafe { munmap(self.start.cast(), self.words * WORD) };
    }
}

impl Deref for Arena {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        // SAFETY: `words` initialised words (the kernel zeroes them), aligned
        // to a page, for as long as the mapping lives.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl DerefMut for Arena {
    fn deref_mut(&mut self) -> &mut [u64] {
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.words) }
    }
}

/// A load that the compiler cannot move away from the clock reads around it.
pub fn touch(word: &u64) -> u64 {
    // SAFETY: a reference is valid for reads.
    unsafe { std::ptr::from_ref(word).read_volatile() }
}

/// A store that the compiler cannot move.
pub fn poke(word: &mut u64, value: u64) {
    // SAFETY: an exclusive reference is valid for writes.
    unsafe { std::ptr::from_mut(word).write_volatile(value) }
}

/// Locks the present memory (code, tables), so that only the arena is swapped. Without
/// permission the results get noisier.
pub fn lock_present_memory() {
    let _ = mlockall(MlockAllFlags::MCL_CURRENT);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discarded_pages_read_as_zero() {
        let mut arena = Arena::map(16 * 4096, false).unwrap();
        assert_eq!(arena.len(), 16 * 512);
        poke(&mut arena[0], 1);
        poke(&mut arena[8 * 512], 2);
        arena.discard(8 * 512..16 * 512).unwrap();
        assert_eq!(touch(&arena[0]), 1);
        assert_eq!(touch(&arena[8 * 512]), 0);
        arena.discard(0..0).unwrap();
    }

    #[test]
    fn empty_arena_is_refused() {
        assert!(Arena::map(0, false).is_err());
    }
}
