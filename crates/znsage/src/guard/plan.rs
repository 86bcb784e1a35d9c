// SPDX-License-Identifier: GPL-2.0-only
//! How many slots to hold, and when to look again. All numbers are pages.

use std::time::Duration;

/// Pages a second that no swap-out exceeds: 2 GB/s.
const FASTEST: u64 = 500_000;
const SHORTEST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_secs(1);

/// While slots are held: swapoff of the area would read their pages into memory.
const WHILE_HELD: Duration = Duration::from_millis(50);

/// Slots that may be given to pages which are not counted as in flight yet.
const LEAST_MARGIN: u64 = 512;

/// Up to this many held slots may end up in an area of higher priority.
pub const STRAY: u64 = 1024;

/// A swap area and the device below.
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    pub size: u64,
    /// Slots in use, held ones too.
    pub used: u64,
    pub held: u64,
    /// Incompressible pages that the device has room for now, and had when it was empty.
    pub room: u64,
    pub certain: u64,
    /// Free slots that the kernel takes first: areas of higher priority.
    pub above: u64,
}

impl View {
    fn free(&self) -> u64 {
        self.size.saturating_sub(self.used)
    }

    /// Room that is kept for pages in flight.
    fn margin(&self) -> u64 {
        (self.certain / 64).clamp(LEAST_MARGIN.min(self.certain / 8), 16 * LEAST_MARGIN)
    }

    /// Slots beyond the room, held or not.
    fn excess(&self) -> u64 {
        let room = self.room.saturating_sub(self.margin());
        (self.free() + self.held).saturating_sub(room)
    }

    /// Holding begins at this room, the earlier the more slots are to be held: where the
    /// area promises twice what is certain or less, the guard has to take three slots for
    /// each page that does not shrink.
    fn begin(&self) -> u64 {
        (self.excess() / 2).clamp(self.certain / 8, self.certain * 7 / 8) + self.margin()
    }

    /// Slots to hold now: none at `begin`, all of the excess at a quarter of that.
    pub fn target(&self) -> u64 {
        let (excess, begin) = (self.excess(), self.begin());
        let (below, ramp) = (begin.saturating_sub(self.room), begin * 3 / 4);
        (u128::from(excess) * u128::from(below.min(ramp)) / u128::from(ramp.max(1))) as u64
    }

    /// Slots to release now. A few more than the target may stay, so that the guard
    /// does not follow each page, but none that is about to be needed.
    pub fn surplus(&self) -> u64 {
        let spare = match self.target() {
            0 => 0,
            _ => (self.certain / 64).min(self.free() / 4),
        };
        let surplus = self.held.saturating_sub(self.target());
        if surplus > spare {
            surplus
        } else {
            0
        }
    }

    /// Slots to hold in addition now. 0 while the kernel would take them in another area.
    pub fn lack(&self) -> u64 {
        match self.above > STRAY {
            true => 0,
            false => self.target().saturating_sub(self.held).min(self.free()),
        }
    }

    /// Time until the fastest swap-out has gone half of the way to where the guard
    /// must act, or an eighth of that to a full device.
    pub fn pause(&self) -> Duration {
        let way = self.room.saturating_sub(self.begin()).max(self.room / 4) + self.above;
        let way = match self.excess() {
            0 => self.free().max(way),
            _ => way,
        };
        let most = if self.held > 0 { WHILE_HELD } else { LONGEST };
        pause(way).min(most)
    }
}

/// Time until the fastest swap-out has used half of so many pages.
pub fn pause(pages: u64) -> Duration {
    Duration::from_micros(pages.saturating_mul(500_000) / FASTEST).clamp(SHORTEST, LONGEST)
}

/// Slots of all areas that may be free when the filler goes: the last twentieth, or
/// more of a small area, which is soon full.
pub fn last_slots(size: u64) -> u64 {
    (size / 20).max((size / 8).min(4096))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 256;

    /// A device of 450 MiB with an area of 1500 MiB.
    fn view() -> View {
        View { size: 1500 * MIB, room: 450 * MIB, certain: 450 * MIB, ..View::default() }
    }

    /// The guard acts after each MiB that is swapped out.
    fn act(view: &mut View) {
        let surplus = view.surplus();
        view.held -= surplus;
        view.used -= surplus;
        let lack = view.lack();
        view.held += lack;
        view.used += lack;
    }

    #[test]
    fn pages_that_do_not_shrink_find_no_slot_without_room() {
        let mut view = view();
        act(&mut view);
        assert_eq!(view.held, 0, "an empty device has no held slots");
        while view.free() >= MIB {
            view.used += MIB;
            view.room -= MIB;
            act(&mut view);
            if view.room < 450 * MIB / 5 {
                assert!(view.free() <= view.room, "{view:?}");
            }
        }
        assert!(view.room < 450 * MIB / 20, "{view:?}");
    }

    #[test]
    fn pages_that_shrink_fill_the_area() {
        for part in [0.1, 0.25, 0.29] {
            let (mut view, mut room) = (view(), 450.0 * MIB as f64);
            while view.free() >= 16 {
                view.used += 16;
                room -= 16.0 * part;
                view.room = room as u64;
                act(&mut view);
                assert!(
                    view.free() > 0 || view.size - view.used + view.held < 20 * MIB,
                    "{view:?}"
                );
            }
            assert!(view.used - view.held > 1480 * MIB, "{part}: {view:?}");
        }
    }

    #[test]
    fn slots_are_released_as_room_comes_back() {
        let mut view = View { used: 1499 * MIB, held: 1050 * MIB, room: MIB, ..view() };
        while view.held < view.used {
            view.used -= MIB.min(view.used - view.held);
            view.room = (view.room + MIB).min(450 * MIB);
            act(&mut view);
        }
        assert_eq!((view.held, view.used), (0, 0));
    }

    #[test]
    fn no_slot_is_held_while_an_area_above_is_free() {
        let view = View { used: 440 * MIB, room: 10 * MIB, above: 64 * MIB, ..view() };
        assert_eq!(view.lack(), 0);
        assert!(View { above: 0, ..view }.lack() > 1000 * MIB);
    }

    #[test]
    fn areas_that_promise_nothing_are_left_alone() {
        let mut view = View { size: 450 * MIB, ..view() };
        while view.free() >= MIB {
            view.used += MIB;
            assert_eq!((view.lack(), view.held), (0, 0));
        }
    }

    #[test]
    fn the_guard_looks_more_often_near_the_end() {
        assert_eq!(pause(0), SHORTEST);
        assert_eq!(pause(u64::MAX / 500_000), LONGEST);
        let near = View { room: 230 * MIB, used: 220 * MIB, ..view() };
        assert!(near.pause() < view().pause());
        assert!(View { held: 1, ..view() }.pause() <= WHILE_HELD);
    }
}
