// SPDX-License-Identifier: GPL-2.0-only
//! Devices with an optional shadow, which records what each block holds, so
//! that a read of the wrong place shows.

use super::turns::{Begun, Turns, Write};
use super::Wrong;
use crate::device::{ZnsSsd, ZoneDevice};
use crate::time::Ns;

/// Most errors that a shadow lists.
const MOST: usize = 20;

/// Content of an unwritten block.
const NOTHING: u64 = u64::MAX;

/// Content of blocks: page and version.
#[derive(Default)]
pub struct Shadow {
    content: Option<Vec<u64>>,
    wrong: Vec<Wrong>,
}

impl Shadow {
    /// A shadow of this many blocks; with `on` false it tracks nothing.
    pub fn new(blocks: u64, on: bool) -> Self {
        Shadow { content: on.then(|| vec![NOTHING; blocks as usize]), wrong: Vec::new() }
    }

    /// Does it track content?
    pub fn on(&self) -> bool {
        self.content.is_some()
    }

    /// `block` was written.
    pub fn write(&mut self, block: u64, content: u64) {
        if let Some(all) = &mut self.content {
            all[block as usize] = content;
        }
    }

    /// Content of `block`, if tracked.
    pub fn get(&self, block: u64) -> Option<u64> {
        self.content.as_ref().map(|all| all[block as usize])
    }

    /// Content of `from` was copied to `to`.
    pub fn copy(&mut self, from: u64, to: u64) {
        if let Some(all) = &mut self.content {
            all[to as usize] = all[from as usize];
        }
    }

    /// Blocks lost their content.
    pub fn clear(&mut self, first: u64, nr: u64) {
        if let Some(all) = &mut self.content {
            all[first as usize..(first + nr) as usize].fill(NOTHING);
        }
    }

    /// `block` was read, and should have held `want`.
    pub fn check(&mut self, block: u64, want: u64) {
        let Some(all) = &self.content else { return };
        let is = all[block as usize];
        if is != want && self.wrong.len() < MOST {
            let name = |c: u64| match c {
                NOTHING => "nothing".into(),
                c => format!("page {} version {}", c >> 32, c as u32),
            };
            self.wrong.push(Wrong(format!(
                "block {block} holds {}, should hold {}",
                name(is),
                name(want)
            )));
        }
    }

    /// What was found wrong.
    pub fn wrong(&self) -> &[Wrong] {
        &self.wrong
    }
}

/// A zoned device and its shadow. Blocks are numbered by zone times capacity.
pub struct Zoned<D = ZnsSsd> {
    /// The device.
    pub dev: D,
    /// What is on it.
    pub shadow: Shadow,
    /// Blocks of a zone.
    pub zone_blocks: u32,
    /// Parts that each block is counted in by the system.
    parts: u32,
    turns: Turns,
}

impl<D: ZoneDevice> Zoned<D> {
    /// A device, with a shadow if `shadow` is set.
    pub fn new(dev: D, shadow: bool) -> Self {
        let g = dev.geometry();
        let zone_blocks = g.zone_blocks - g.zone_blocks % g.write_unit;
        let blocks = u64::from(g.zones) * u64::from(zone_blocks);
        let turns = Turns::new(if g.emulated_append { g.zones } else { 0 });
        Zoned { shadow: Shadow::new(blocks, shadow), dev, zone_blocks, parts: 1, turns }
    }

    /// From now on the system counts in parts of blocks. Nothing was written yet.
    pub fn divide(&mut self, parts: u32) {
        self.parts = parts;
        self.shadow = Shadow::new(self.blocks() * u64::from(parts), self.shadow.on());
    }

    /// Begins a write. None: its zone takes one at a time and has one in flight, so
    /// [`Zoned::ended`] begins it.
    pub fn write(&mut self, now: Ns, w: Write) -> Option<Begun> {
        let w = self.turns.arrive(w)?;
        Some(self.begin(now, w))
    }

    /// The system calls this when a write to `zone` completes, with or without an error.
    /// Begins the write that waited longest for it, if one did.
    pub fn ended(&mut self, now: Ns, zone: u32) -> Option<Begun> {
        let w = self.turns.ended(zone)?;
        Some(self.begin(now, w))
    }

    fn begin(&mut self, now: Ns, w: Write) -> Begun {
        let result = self.dev.write(now, w.zone, w.offset, w.blocks);
        Begun { id: w.id, result }
    }

    /// Usable blocks.
    pub fn blocks(&self) -> u64 {
        u64::from(self.dev.geometry().zones) * u64::from(self.zone_blocks)
    }

    /// The number of a block, or of a part of one.
    pub fn block(&self, zone: u32, offset: u32) -> u64 {
        u64::from(zone) * self.zone_parts() + u64::from(offset)
    }

    fn zone_parts(&self) -> u64 {
        u64::from(self.zone_blocks) * u64::from(self.parts)
    }

    /// The zone lost its content.
    pub fn cleared(&mut self, zone: u32) {
        self.shadow.clear(self.block(zone, 0), self.zone_parts());
    }

    /// Maximum open or active zones; 0: no limit.
    pub fn max_active(&self) -> u32 {
        let g = self.dev.geometry();
        match (g.max_open, g.max_active) {
            (0, n) | (n, 0) => n,
            (a, b) => a.min(b),
        }
    }
}
