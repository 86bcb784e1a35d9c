// SPDX-License-Identifier: GPL-2.0-only
//! A zoned device in memory: write pointers, limits, and the name of a page, (slot,
//! version), as content. It panics at commands that a real device would refuse.
//!
//! An append makes its zone active when it is submitted, and writes at the write
//! pointer when it completes.

use znsage_engine::Config;

/// A page: slot and version.
pub type Page = (u32, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Empty,
    Active,
    Full,
    Resetting,
    Finishing,
}

struct Zone {
    state: State,
    wp: u32,
    cap: u32,
    appends: u32,
    /// Blocks of the appends in flight.
    coming: u32,
    readers: u32,
    /// An append was reported as failed.
    bad: bool,
    finished: bool,
    read_only: bool,
    /// Finishes in a row that failed.
    refused: u32,
    /// It was empty before the reset in flight.
    was_empty: bool,
    content: Vec<Option<Page>>,
}

impl Zone {
    /// Its state after a reset or finish that changed nothing.
    fn back(&mut self) {
        let inactive = self.finished || self.read_only || self.wp == self.cap;
        self.state = if inactive { State::Full } else { State::Active };
    }
}

pub struct Device {
    zones: Vec<Zone>,
    /// A command has failed, ever.
    pub failed: bool,
    zone_blocks: u32,
    write_unit: u32,
    pub max_active: u32,
    serial: bool,
}

/// How an append ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Done,
    /// An error, and nothing was written.
    Refused,
    /// An error, though all was written.
    Garbled,
}

impl Device {
    pub fn new(cfg: &Config) -> Self {
        // A zone that must be finished has more room than the engine uses.
        let rest = u32::from(cfg.finish);
        let zone = |_| Zone {
            state: State::Empty,
            wp: 0,
            cap: cfg.zone_blocks + rest,
            appends: 0,
            coming: 0,
            readers: 0,
            bad: false,
            finished: false,
            read_only: false,
            refused: 0,
            was_empty: false,
            content: vec![None; cfg.zone_blocks as usize],
        };
        Device {
            zones: (0..cfg.nr_zones).map(zone).collect(),
            failed: false,
            zone_blocks: cfg.zone_blocks,
            write_unit: cfg.write_unit,
            // A device without zones of its own has no limit.
            max_active: if cfg.wide { 0 } else { cfg.max_active },
            serial: cfg.serial,
        }
    }

    fn at(&mut self, zone: u32) -> &mut Zone {
        &mut self.zones[zone as usize]
    }

    fn active(&self) -> u32 {
        let holds = |z: &&Zone| matches!(z.state, State::Active | State::Finishing);
        self.zones.iter().filter(holds).count() as u32
    }

    pub fn submit_append(&mut self, zone: u32, blocks: u32) {
        let (unit, serial) = (self.write_unit, self.serial);
        let z = self.at(zone);
        assert!(!serial || z.appends == 0, "two appends at a time to zone {zone}");
        // The host does not know yet that the zone is read-only.
        if z.read_only {
            z.appends += 1;
            z.coming += blocks;
            return;
        }
        assert!(
            matches!(z.state, State::Empty | State::Active),
            "append to zone {zone}, which is {:?}",
            z.state
        );
        assert!(blocks > 0 && blocks.is_multiple_of(unit), "append of {blocks}");
        z.state = State::Active;
        z.appends += 1;
        z.coming += blocks;
        assert!(
            z.wp + z.coming <= z.content.len() as u32,
            "append of {blocks} does not fit zone {zone}: {} written, {} coming",
            z.wp,
            z.coming
        );
        let active = self.active();
        assert!(self.max_active == 0 || active <= self.max_active, "{active} active zones");
    }

    /// Returns the offset if the append worked.
    pub fn complete_append(
        &mut self,
        zone: u32,
        pages: &[Page],
        padding: u32,
        fate: Fate,
    ) -> Option<u32> {
        let z = self.at(zone);
        let blocks = pages.len() as u32 + padding;
        let offset = z.wp;
        let fate = if z.read_only { Fate::Refused } else { fate };
        z.appends -= 1;
        z.coming -= blocks;
        if fate != Fate::Refused {
            let at = offset as usize;
            for (i, page) in pages.iter().enumerate() {
                z.content[at + i] = (fate == Fate::Done).then_some(*page);
            }
            z.wp += blocks;
        }
        if z.wp == z.cap {
            z.state = State::Full;
        }
        z.bad |= fate != Fate::Done;
        self.failed |= fate != Fate::Done;
        (fate == Fate::Done).then_some(offset)
    }

    /// From now on the zone can only be read. It is not active.
    pub fn turn_read_only(&mut self, zone: u32) {
        let z = self.at(zone);
        z.read_only = true;
        z.back();
    }

    pub fn is_read_only(&self, zone: u32) -> bool {
        self.zones[zone as usize].read_only
    }

    pub fn submit_reset(&mut self, zone: u32) {
        let failed = self.failed;
        let z = self.at(zone);
        z.was_empty = z.state == State::Empty;
        // After errors the engine also resets retired zones, which may be empty.
        let may = z.state == State::Full || z.refused > 1 || z.was_empty && failed;
        assert!(may, "reset of zone {zone}, which is {:?}", z.state);
        assert_eq!(z.appends, 0, "reset of zone {zone}: appends in flight");
        assert_eq!(z.readers, 0, "reset of zone {zone}: reads in flight");
        z.state = State::Resetting;
    }

    pub fn complete_reset(&mut self, zone: u32, ok: bool) {
        self.failed |= !ok;
        let z = self.at(zone);
        if !ok {
            z.back();
            if z.was_empty {
                z.state = State::Empty;
            }
            return;
        }
        assert!(!z.read_only, "a reset of zone {zone} worked");
        z.content.fill(None);
        (z.wp, z.state, z.finished, z.bad) = (0, State::Empty, false, false);
        z.refused = 0;
    }

    pub fn submit_finish(&mut self, zone: u32) {
        let z = self.at(zone);
        assert!(
            matches!(z.state, State::Active | State::Full),
            "finish of zone {zone}, which is {:?}",
            z.state
        );
        assert_eq!(z.appends, 0, "finish of zone {zone}: appends in flight");
        z.state = State::Finishing;
    }

    pub fn complete_finish(&mut self, zone: u32, ok: bool) {
        self.failed |= !ok;
        let z = self.at(zone);
        z.finished |= ok;
        z.refused = if ok { 0 } else { z.refused + 1 };
        z.back();
    }

    /// A read of `block` is in flight until [`Device::end_read`].
    pub fn begin_read(&mut self, block: u32) {
        let (zone, offset) = (block / self.zone_blocks, block % self.zone_blocks);
        let z = self.at(zone);
        assert!(
            !matches!(z.state, State::Empty | State::Resetting),
            "read of block {block} in a zone that is {:?}",
            z.state
        );
        // Some devices refuse that, others return what is not to be relied on.
        assert!(offset < z.wp, "read of block {offset} of zone {zone}, {} of it written", z.wp);
        z.readers += 1;
    }

    pub fn end_read(&mut self, block: u32) -> Option<Page> {
        let (zone, offset) = (block / self.zone_blocks, block % self.zone_blocks);
        let z = self.at(zone);
        z.readers -= 1;
        z.content[offset as usize]
    }

    pub fn peek(&self, block: u32) -> Option<Page> {
        let (zone, offset) = (block / self.zone_blocks, block % self.zone_blocks);
        self.zones[zone as usize].content[offset as usize]
    }
}
