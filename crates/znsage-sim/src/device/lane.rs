// SPDX-License-Identifier: GPL-2.0-only
//! The resources that commands queue for: dies, channels, write buffer room.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::Ns;

/// How background work yields to foreground work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gaps {
    /// Yields at the end of each slice; 0: only at the end.
    pub slice: Ns,
    /// Cost of an interruption.
    pub resume: Ns,
    /// Maximum pieces of foreground work per interruption.
    pub most: u32,
}

/// A resource that serves one at a time: short foreground work (reads), and
/// background work (programs) that can be interrupted for it.
///
/// Background work is one stretch with a start and an end; interruptions move
/// the end.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    start: Ns,
    end: Ns,
    /// Slices count from here: the start of the stretch or the end of the last
    /// interruption.
    origin: Ns,
    /// Foreground work done in the last interruption.
    served: u32,
    /// Foreground work occupies the lane until here.
    free: Ns,
}

impl Lane {
    /// Queues background work that cannot start before `at`; returns its start and end.
    pub fn background(&mut self, at: Ns, len: Ns) -> (Ns, Ns) {
        let mut start = at.max(self.end);
        if self.free > self.end {
            start = start.max(self.free);
        }
        if start > self.end {
            (self.start, self.origin, self.served) = (start, start, u32::MAX);
        }
        self.end = start + len;
        (start, self.end)
    }

    /// Serves foreground work that arrives at `at`; returns its start.
    pub fn foreground(&mut self, at: Ns, len: Ns, gaps: &Gaps) -> Ns {
        let at = at.max(self.free);
        let start = if at >= self.end {
            at
        } else if at < self.start {
            // It starts before the stretch, and pushes it back if they overlap.
            let over = (at + len).saturating_sub(self.start);
            self.start += over;
            self.end += over;
            self.origin += over;
            at
        } else if gaps.slice == 0 {
            self.end
        } else {
            self.interrupt(at, len, gaps)
        };
        self.free = start + len;
        start
    }

    fn interrupt(&mut self, at: Ns, len: Ns, gaps: &Gaps) -> Ns {
        // Work that arrived during the last interruption may join it.
        let start = if at <= self.origin && self.served < gaps.most {
            self.served += 1;
            self.end += len;
            self.origin
        } else {
            let slices = at.saturating_sub(self.origin).div_ceil(gaps.slice).max(1);
            let start = self.origin + slices * gaps.slice;
            if start >= self.end {
                return self.end;
            }
            self.served = 1;
            self.end += len + gaps.resume;
            start
        };
        self.origin = start + len;
        start
    }
}

/// Room in the write buffer, in program units. A unit is freed when it is
/// programmed, in any order.
#[derive(Clone, Debug)]
pub(super) struct Room {
    units: usize,
    /// When the units still in the buffer are freed.
    taken: BinaryHeap<Reverse<Ns>>,
}

impl Room {
    pub fn new(units: u64) -> Room {
        Room { units: units as usize, taken: BinaryHeap::with_capacity(units as usize + 1) }
    }

    /// When room for one more unit became free.
    pub fn since(&self) -> Ns {
        match self.taken.peek() {
            Some(Reverse(first)) if self.taken.len() >= self.units => *first,
            _ => 0,
        }
    }

    /// Occupies one unit until then.
    pub fn take(&mut self, until: Ns) {
        if self.taken.len() >= self.units {
            self.taken.pop();
        }
        self.taken.push(Reverse(until));
    }
}

/// A fixed number of places, taken and freed in order.
#[derive(Clone, Debug)]
pub(super) struct Places {
    free: Vec<Ns>,
    next: usize,
}

impl Places {
    pub fn new(places: u32) -> Places {
        Places { free: vec![0; places as usize], next: 0 }
    }

    /// When the next place became free.
    pub fn since(&self) -> Ns {
        self.free[self.next]
    }

    /// Occupies a place until then.
    pub fn take(&mut self, until: Ns) {
        self.free[self.next] = until;
        self.next = (self.next + 1) % self.free.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAPS: Gaps = Gaps { slice: 100, resume: 7, most: 2 };

    #[test]
    fn foreground_work_is_first_come_first_served() {
        let mut lane = Lane::default();
        assert_eq!(lane.foreground(10, 50, &GAPS), 10);
        assert_eq!(lane.foreground(20, 50, &GAPS), 60);
        assert_eq!(lane.foreground(500, 50, &GAPS), 500);
    }

    #[test]
    fn reads_interrupt_a_program_at_its_slices() {
        let mut lane = Lane::default();
        assert_eq!(lane.background(1000, 1000), (1000, 2000));
        // Two are let in at 1100, the third after one more slice.
        assert_eq!(lane.foreground(1010, 30, &GAPS), 1100);
        assert_eq!(lane.foreground(1050, 30, &GAPS), 1130);
        assert_eq!(lane.foreground(1060, 30, &GAPS), 1260);
        // Three reads and two interruptions later.
        assert_eq!(lane.background(1300, 10).0, 2000 + 3 * 30 + 2 * 7);
    }

    #[test]
    fn a_read_waits_for_the_end_if_that_is_nearer() {
        let mut lane = Lane::default();
        lane.background(0, 150);
        assert_eq!(lane.foreground(120, 30, &GAPS), 150);
        assert_eq!(lane.background(160, 10), (180, 190));
    }

    #[test]
    fn without_slices_a_read_waits_for_all_of_it() {
        let mut lane = Lane::default();
        lane.background(1, 150);
        lane.background(1, 150);
        assert_eq!(lane.foreground(20, 30, &Gaps { slice: 0, ..GAPS }), 301);
    }

    #[test]
    fn a_read_goes_before_work_that_has_not_begun() {
        let mut lane = Lane::default();
        lane.background(100, 50);
        assert_eq!(lane.foreground(20, 30, &GAPS), 20);
        assert_eq!(lane.foreground(90, 30, &GAPS), 90);
        assert_eq!(lane.background(0, 1).0, 170);
    }

    #[test]
    fn room_comes_with_the_first_unit_that_is_programmed() {
        let mut room = Room::new(2);
        assert_eq!(room.since(), 0);
        room.take(30);
        assert_eq!(room.since(), 0);
        room.take(20);
        assert_eq!(room.since(), 20);
        room.take(25);
        assert_eq!(room.since(), 25);
        room.take(40);
        assert_eq!(room.since(), 30);
    }

    #[test]
    fn places_are_freed_in_order() {
        let mut places = Places::new(2);
        places.take(30);
        assert_eq!(places.since(), 0);
        places.take(20);
        assert_eq!(places.since(), 30);
    }
}
