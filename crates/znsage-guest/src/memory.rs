// SPDX-License-Identifier: GPL-2.0-only
//! Anonymous memory that is filled, swapped out and verified; also page-aligned buffers for
//! direct I/O.
#![allow(unsafe_code)]

use std::num::NonZeroUsize;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::thread::sleep;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::mman::{madvise, mmap_anonymous, munmap, MapFlags, MmapAdvise, ProtFlags};

use crate::child;
use crate::ensure;
use crate::outcome::{Context, Outcome};
use crate::pattern::{self, PAGE, WORDS};

/// Pages that `page_out()` may leave: in the batch of another CPU, reclaim does not find them.
pub const STAYING: usize = 64;
const PAGE_OUT_TRIES: u32 = 20;
const PAGE_OUT_PAUSE: Duration = Duration::from_millis(20);

pub struct Memory {
    start: NonNull<u64>,
    pages: usize,
}

impl Memory {
    pub fn new(bytes: usize) -> Outcome<Memory> {
        Memory::map(bytes, MapFlags::MAP_PRIVATE)
    }

    /// Shared with child processes instead of copied.
    pub fn shared(bytes: usize) -> Outcome<Memory> {
        Memory::map(bytes, MapFlags::MAP_SHARED)
    }

    fn map(bytes: usize, flags: MapFlags) -> Outcome<Memory> {
        let length = NonZeroUsize::new(bytes).ok_or("no memory asked for")?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { mmap_anonymous(None, length, access, flags) };
        let start = start.context(format!("map {bytes} bytes"))?.cast();
        Ok(Memory { start, pages: bytes / PAGE })
    }

    pub fn pages(&self) -> usize {
        self.pages
    }

    fn advise(&self, advice: MmapAdvise) -> nix::Result<()> {
        // SAFETY: the range is this mapping; the advices used here keep its contents.
        unsafe { madvise(self.start.cast(), self.pages * PAGE, advice) }
    }

    /// The page becomes zeros, and its copy on swap is freed.
    pub fn forget(&mut self, page: usize) -> Outcome {
        let start = self[page * WORDS..][..WORDS].as_mut_ptr();
        let start = NonNull::new(start).ok_or("no such page")?;
        // SAFETY: a page of this mapping, borrowed exclusively; zeros are valid bytes.
        unsafe { madvise(start.cast(), PAGE, MmapAdvise::MADV_DONTNEED) }
            .context("madvise(MADV_DONTNEED)")
    }

    /// Allows or forbids huge pages.
    pub fn huge_pages(&self, wanted: bool) -> Outcome {
        let advice = match wanted {
            true => MmapAdvise::MADV_HUGEPAGE,
            false => MmapAdvise::MADV_NOHUGEPAGE,
        };
        self.advise(advice).context("madvise about huge pages")
    }

    /// Swaps it out; for processes in a group. The advice starts the writes; the pages stay in
    /// the swap cache until the group reclaims memory.
    pub fn page_out(&self) -> Outcome {
        self.start_page_out()?;
        let mut left = self.pages;
        for _ in 0..PAGE_OUT_TRIES {
            sleep(PAGE_OUT_PAUSE);
            left = self.resident()?;
            if left <= STAYING {
                return Ok(());
            }
            child::reclaim((left * PAGE) as u64)?;
        }
        Err(format!("{left} of {} pages are not swapped out", self.pages))
    }

    /// Does not wait, and ignores pages that stay because others share them.
    pub fn start_page_out(&self) -> Outcome {
        self.advise(MmapAdvise::MADV_PAGEOUT).context("madvise(MADV_PAGEOUT)")
    }

    /// Copies a page out by a system call, which returns an error if the page cannot be swapped
    /// in.
    pub fn peek(&self, page: usize, to: &mut [u64; WORDS]) -> nix::Result<()> {
        let there = self.remote(page);
        let here = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: PAGE };
        // SAFETY: copies a page of this mapping to one that is borrowed exclusively.
        let done = unsafe { libc::process_vm_readv(libc::getpid(), &here, 1, &there, 1, 0) };
        Errno::result(done).map(drop)
    }

    /// Copies a page in by a system call. After an error the page is unchanged.
    pub fn poke(&mut self, page: usize, from: &[u64; WORDS]) -> nix::Result<()> {
        let there = self.remote(page);
        let here = libc::iovec { iov_base: from.as_ptr().cast_mut().cast(), iov_len: PAGE };
        // SAFETY: a page of this mapping, borrowed exclusively; the source is only read.
        let done = unsafe { libc::process_vm_writev(libc::getpid(), &here, 1, &there, 1, 0) };
        Errno::result(done).map(drop)
    }

    fn remote(&self, page: usize) -> libc::iovec {
        assert!(page < self.pages);
        // SAFETY: within the mapping.
        let start = unsafe { self.start.as_ptr().add(page * WORDS) };
        libc::iovec { iov_base: start.cast(), iov_len: PAGE }
    }

    /// Pages in memory, the swap cache included.
    pub fn resident(&self) -> Outcome<usize> {
        let mut flags = vec![0; self.pages];
        let start = self.start.as_ptr().cast();
        // SAFETY: `flags` has a byte for each page of this mapping.
        let result = unsafe { libc::mincore(start, self.pages * PAGE, flags.as_mut_ptr()) };
        Errno::result(result).context("mincore")?;
        Ok(flags.iter().filter(|&&flag| flag & 1 == 1).count())
    }

    pub fn page(&self, page: usize) -> &[u64] {
        &self[page * WORDS..][..WORDS]
    }

    /// Fills pages with a pattern of their number and `key`.
    pub fn fill(&mut self, pages: Range<usize>, key: u64) {
        for page in pages {
            pattern::write(&mut self[page * WORDS..][..WORDS], key, page);
        }
    }

    pub fn verify(&self, pages: Range<usize>, key: u64) -> Outcome {
        for page in pages {
            let words = self.page(page);
            ensure!(
                pattern::holds(words, key, page),
                "corrupt: page {page} of key {key} holds {}",
                pattern::describe(words)
            );
        }
        Ok(())
    }

    /// As bytes, for direct I/O.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: all of the mapping; any byte is valid.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.pages * PAGE) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.pages * PAGE) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, and nothing borrows it any more.
        let _ = unsafe { munmap(self.start.cast(), self.pages * PAGE) };
    }
}

impl Deref for Memory {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        // SAFETY: the mapping is aligned, and the kernel has zeroed it.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.pages * WORDS) }
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [u64] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.pages * WORDS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_verifies() {
        let mut memory = Memory::new(8 * PAGE).unwrap();
        memory.verify(0..8, pattern::ZERO).unwrap();
        memory.fill(0..8, 5);
        memory.fill(2..4, 6);
        memory.verify(0..2, 5).unwrap();
        memory.verify(2..4, 6).unwrap();
        assert_eq!(memory.resident().unwrap(), 8);
        let mut copy = [0; WORDS];
        memory.peek(3, &mut copy).unwrap();
        assert!(pattern::holds(&copy, 6, 3));
        pattern::write(&mut copy, 7, 7);
        memory.poke(7, &copy).unwrap();
        memory.verify(7..8, 7).unwrap();
        memory.fill(7..8, 5);
        let e = memory.verify(0..8, 5).unwrap_err();
        assert!(e.contains("page 2 of key 5 holds another page"), "{e}");
    }
}
