// SPDX-License-Identifier: GPL-2.0-only
//! Slots that this process holds: pages of its own that are all zeros and on swap.
//!
//! Such a page takes no block of the device: the kernel keeps it off the device since
//! 6.12, and before that the module stores it in its map. It takes 8 bytes of page
//! table.
#![allow(unsafe_code)]

use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;

use nix::sys::mman::{madvise, mmap_anonymous, munmap, MapFlags, MmapAdvise, ProtFlags};

/// Pages that are mapped at once.
const SEGMENT: usize = 4096;
/// Pages that are in memory until they are on swap. They fit the reserve of a small machine.
const BATCH: usize = 64;

struct Segment {
    start: NonNull<libc::c_void>,
    page: usize,
    /// Pages in use, from the first on.
    used: usize,
}

impl Segment {
    fn new(page: usize) -> io::Result<Segment> {
        let length = NonZeroUsize::new(SEGMENT * page).ok_or(io::ErrorKind::InvalidInput)?;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses; it aliases nothing.
        let start = unsafe { mmap_anonymous(None, length, protection, MapFlags::MAP_PRIVATE) }?;
        let segment = Segment { start, page, used: 0 };
        // A child must not get a copy. Kernels without huge pages refuse the second.
        for advice in [MmapAdvise::MADV_DONTFORK, MmapAdvise::MADV_NOHUGEPAGE] {
            let _ = segment.advise(0, SEGMENT, advice);
        }
        Ok(segment)
    }

    fn at(&self, index: usize) -> *mut u8 {
        // SAFETY: callers pass a page of the mapping, or its end.
        unsafe { self.start.as_ptr().cast::<u8>().add(index * self.page) }
    }

    fn advise(&self, from: usize, pages: usize, advice: MmapAdvise) -> io::Result<()> {
        let start = NonNull::new(self.at(from).cast()).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: the pages are of this mapping, and nothing refers to what they hold.
        Ok(unsafe { madvise(start, pages * self.page, advice) }?)
    }

    /// Are any of these pages in memory?
    fn resident(&self, from: usize, pages: usize) -> bool {
        let mut present = [0u8; BATCH];
        // SAFETY: the range is of this mapping; the kernel writes a byte for each page,
        // of which there are at most BATCH.
        let done =
            unsafe { libc::mincore(self.at(from).cast(), pages * self.page, present.as_mut_ptr()) };
        done != 0 || present[..pages].iter().any(|byte| byte & 1 != 0)
    }

    /// Takes slots for a batch of pages; false if there were none.
    fn grow(&mut self, pages: usize) -> io::Result<bool> {
        // SAFETY: gives pages of this mapping memory, which is all zeros.
        let there = unsafe {
            libc::madvise(self.at(self.used).cast(), pages * self.page, libc::MADV_POPULATE_WRITE)
        };
        if there != 0 {
            return Err(io::Error::last_os_error());
        }
        // A page that another task was just looking at needs a second time.
        for _ in 0..2 {
            self.advise(self.used, pages, MmapAdvise::MADV_PAGEOUT)?;
            if !self.resident(self.used, pages) {
                self.used += pages;
                return Ok(true);
            }
        }
        self.advise(self.used, pages, MmapAdvise::MADV_DONTNEED)?;
        Ok(false)
    }

    fn shrink(&mut self, pages: usize) -> io::Result<()> {
        self.advise(self.used - pages, pages, MmapAdvise::MADV_DONTNEED)?;
        self.used -= pages;
        Ok(())
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new`, and nothing refers to it.
        let _ = unsafe { munmap(self.start, SEGMENT * self.page) };
    }
}

pub struct Held {
    page: usize,
    segments: Vec<Segment>,
}

impl Held {
    pub fn new(page: usize) -> Held {
        Held { page, segments: Vec::new() }
    }

    pub fn pages(&self) -> u64 {
        self.segments.iter().map(|segment| segment.used as u64).sum()
    }

    /// Holds up to a batch more; returns how many.
    pub fn hold(&mut self, pages: u64) -> io::Result<u64> {
        if self.segments.last().is_none_or(|segment| segment.used == SEGMENT) {
            self.segments.push(Segment::new(self.page)?);
        }
        let Some(segment) = self.segments.last_mut() else { return Ok(0) };
        let batch = BATCH.min(SEGMENT - segment.used).min(pages as usize);
        Ok(if segment.grow(batch)? { batch as u64 } else { 0 })
    }

    pub fn release(&mut self, mut pages: u64) -> io::Result<()> {
        while pages > 0 {
            let Some(segment) = self.segments.last_mut() else { break };
            let part = segment.used.min(pages as usize);
            segment.shrink(part)?;
            pages -= part as u64;
            if segment.used == 0 {
                self.segments.pop();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without swap, pages stay in memory, and none is held.
    #[test]
    fn pages_are_held_or_given_back() {
        let mut held = Held::new(4096);
        let got = held.hold(1000).unwrap();
        assert!(got == 0 || got == BATCH as u64);
        assert_eq!(held.pages(), got);
        held.release(u64::MAX).unwrap();
        assert_eq!(held.pages(), 0);
        assert!(held.segments.len() <= 1);
    }
}
