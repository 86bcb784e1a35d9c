// SPDX-License-Identifier: GPL-2.0-only
//! Pages and frames: 8 bytes per page, 16 per frame.

/// No page, slot or frame.
pub const NONE: u32 = u32::MAX;
/// No task.
pub const NO_TASK: u16 = u16::MAX;
/// More than one task: search the tasks for them.
pub const MANY_TASKS: u16 = u16::MAX - 1;

/// Slots have 31 bits: 8 TiB of swap.
pub const MAX_SLOTS: u64 = 1 << 31;
/// Frames have 28 bits, less the one that would look like [`Pte::EMPTY`].
pub const MAX_FRAMES: u64 = (1 << 28) - 1;

/// A page table entry combined with the swap cache: where a page is.
///
/// ```text
/// all ones                 nothing was written yet
/// 0 slot:31                swapped out
/// 1 m a d frame:28         in memory: mapped; accessed; dirty. Not mapped: in
///                          the swap cache only
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pte(u32);

const IN_MEMORY: u32 = 1 << 31;
const MAPPED: u32 = 1 << 30;
const ACCESSED: u32 = 1 << 29;
const DIRTY: u32 = 1 << 28;
const FRAME: u32 = DIRTY - 1;

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Never written.
    Empty,
    /// Swapped out to a slot.
    Slot(u32),
    /// In the swap cache, not mapped.
    Cached(u32),
    /// Mapped to a frame.
    Mapped(u32),
}

impl Pte {
    /// Never written.
    pub const EMPTY: Pte = Pte(u32::MAX);

    /// Swapped out.
    pub fn slot(slot: u32) -> Self {
        debug_assert!(slot < IN_MEMORY);
        Pte(slot)
    }

    /// In the swap cache.
    pub fn cached(frame: u32) -> Self {
        debug_assert!(frame < FRAME);
        Pte(IN_MEMORY | frame)
    }

    /// Mapped and accessed just now.
    pub fn mapped(frame: u32, dirty: bool) -> Self {
        debug_assert!(frame < FRAME);
        Pte(IN_MEMORY | MAPPED | ACCESSED | if dirty { DIRTY } else { 0 } | frame)
    }

    /// Where the page is.
    pub fn place(self) -> Place {
        if self == Self::EMPTY {
            Place::Empty
        } else if self.0 & IN_MEMORY == 0 {
            Place::Slot(self.0)
        } else if self.0 & MAPPED == 0 {
            Place::Cached(self.0 & FRAME)
        } else {
            Place::Mapped(self.0 & FRAME)
        }
    }

    /// Mapped, so that an access needs no fault?
    #[inline]
    pub fn is_mapped(self) -> bool {
        self.0 & (IN_MEMORY | MAPPED) == IN_MEMORY | MAPPED && self != Self::EMPTY
    }

    /// Mapped and written since?
    #[inline]
    pub fn is_dirty(self) -> bool {
        self.0 & DIRTY != 0
    }

    /// Accessed since the bit was cleared?
    pub fn is_accessed(self) -> bool {
        self.0 & ACCESSED != 0
    }

    /// The frame of a page in memory.
    pub fn frame(self) -> u32 {
        self.0 & FRAME
    }

    /// The same, accessed, and dirty after a write.
    #[inline]
    pub fn touched(self, write: bool) -> Self {
        Pte(self.0 | ACCESSED | if write { DIRTY } else { 0 })
    }

    /// The same, not accessed.
    pub fn aged(self) -> Self {
        Pte(self.0 & !ACCESSED)
    }

    /// The same, dirty or not.
    pub fn with_dirty(self, dirty: bool) -> Self {
        Pte(if dirty { self.0 | DIRTY } else { self.0 & !DIRTY })
    }
}

/// A page of a process.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Where it is.
    pub pte: Pte,
    /// What is known of its last eviction.
    pub shadow: Shadow,
}

/// Kept of an evicted page: its group's eviction clock, modulo 2^31, and
/// whether it was in the working set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shadow(u32);

impl Shadow {
    /// An eviction.
    pub fn new(age: u32, workingset: bool) -> Self {
        Shadow(age << 1 | u32::from(workingset))
    }

    /// Evictions of the group since then.
    pub fn distance(self, age: u32) -> u32 {
        (age << 1).wrapping_sub(self.0 & !1) >> 1
    }

    /// Was it in the working set?
    pub fn workingset(self) -> bool {
        self.0 & 1 != 0
    }
}

/// Frame flag: referenced once since the last scan.
pub const REFERENCED: u16 = 1;
/// ... is on the active list.
pub const ACTIVE: u16 = 2;
/// ... is being written to its slot.
pub const WRITEBACK: u16 = 4;
/// ... is being read from its slot.
pub const READING: u16 = 8;
/// ... was read ahead and not used yet.
pub const READAHEAD: u16 = 16;
/// ... was isolated by reclaim.
pub const ISOLATED: u16 = 32;
/// ... is on no list yet.
pub const NEW: u16 = 64;
/// ... was active at some time since it was read, or before its last eviction.
pub const WORKINGSET: u16 = 128;

/// A page of memory.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The page in it.
    pub page: u32,
    /// The slot that has, or will have, the same content; or [`NONE`].
    pub slot: u32,
    /// The task that waits for its read, [`NO_TASK`] or [`MANY_TASKS`].
    pub waiter: u16,
    /// [`REFERENCED`], ...
    pub flags: u16,
    /// The cgroup it is charged to.
    pub group: u8,
    /// Accessed bits seen by the last 16 scans, the latest in the lowest bit.
    pub history: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_apart() {
        for n in [0, 1, 12345, FRAME - 1] {
            assert_eq!(Pte::slot(n).place(), Place::Slot(n));
            assert_eq!(Pte::cached(n).place(), Place::Cached(n));
            for dirty in [false, true] {
                let pte = Pte::mapped(n, dirty);
                assert_eq!(pte.place(), Place::Mapped(n));
                assert!(pte.is_mapped() && pte.is_accessed());
                assert_eq!(pte.is_dirty(), dirty);
                assert_eq!(pte.aged().place(), Place::Mapped(n));
                assert!(!pte.aged().is_accessed());
                assert!(pte.touched(true).is_dirty());
                assert!(!pte.with_dirty(false).is_dirty());
            }
            assert!(!Pte::slot(n).is_mapped() && !Pte::cached(n).is_mapped());
        }
        assert_eq!(Pte::slot((1 << 31) - 1).place(), Place::Slot((1 << 31) - 1));
        assert_eq!(Pte::EMPTY.place(), Place::Empty);
        assert!(!Pte::EMPTY.is_mapped());
    }

    #[test]
    fn shadows_count_around() {
        for (then, now, distance) in [(0, 0, 0), (5, 12, 7), (u32::MAX, 2, 3), (1 << 31, 3, 3)] {
            for workingset in [false, true] {
                let shadow = Shadow::new(then, workingset);
                assert_eq!(shadow.distance(now), distance);
                assert_eq!(shadow.workingset(), workingset);
            }
        }
    }

    #[test]
    fn a_page_costs_8_bytes() {
        assert_eq!(size_of::<Page>(), 8);
        assert_eq!(size_of::<Frame>(), 16);
    }
}
