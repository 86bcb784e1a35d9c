// SPDX-License-Identifier: GPL-2.0-only
//! A conventional SSD: a page-mapped flash translation layer on the same media.
//!
//! Any block may be written at any time. Writes go to an open superblock (an
//! erase block of each plane of each die); when few superblocks are free, a
//! full one, usually the one with the fewest valid blocks, is emptied into
//! another open one and erased. That takes the dies, channels and the write
//! buffer that the host's commands use, and so the host waits for it.
//!
//! The maps take 4 bytes for each block the host sees and 4 for each block of
//! flash: 8.3 bytes a block at 7 % over-provisioning.

use std::collections::VecDeque;

use super::faults::{FaultPlan, Faults};
use super::flash::{Flash, Way};
use super::load::ParamError;
use super::params::{self, Interface, Pace, Params, Victim};
use super::types::DeviceCounters;
use crate::time::{Ns, BLOCK};

/// No block, in either map.
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Superblock {
    valid: u32,
    /// Serial number of its opening; FIFO picks the smallest.
    born: u64,
    /// Full, so it can be a GC victim.
    full: bool,
}

/// Where a stream of writes continues.
#[derive(Clone, Copy, Debug)]
struct Head {
    superblock: u32,
    /// Blocks used of it.
    used: u32,
}

/// The GC victim.
#[derive(Clone, Copy, Debug)]
struct Emptying {
    victim: u32,
    /// Dead blocks when it was chosen.
    dead: u32,
    /// Blocks before this one are done.
    at: u32,
    since: Ns,
    /// When the last moved block is programmed.
    done: Ns,
}

/// A conventional SSD with a page-mapped flash translation layer.
#[derive(Clone, Debug)]
pub struct ConventionalSsd {
    params: params::Conventional,
    flash: Flash,
    dies: u32,
    /// Logical to physical block. The host sees the first `part`; other data follow.
    map: Vec<u32>,
    part: u64,
    /// Physical to logical block; out of date where `map` says otherwise.
    owner: Vec<u32>,
    superblocks: Vec<Superblock>,
    /// Blocks of a superblock.
    size: u32,
    free: VecDeque<u32>,
    /// Of each write stream.
    hosts: Vec<Head>,
    gc: Head,
    emptying: Option<Emptying>,
    opened: u64,
    faults: Option<Faults>,
    seed: u64,
    counters: DeviceCounters,
}

/// Bytes of a superblock of a device whose host sees `size` bytes: their number, on which
/// garbage collection depends, stays.
///
/// # Panics
/// If the parameters are not those of a conventional device.
pub fn superblock_bytes(params: &Params, size: u64) -> u64 {
    let c = params.conventional.as_ref().expect("a conventional device");
    let unit = params.media.program_unit();
    let flash = (size as f64 * (1.0 + c.over_provisioning)) as u64;
    let share = (u128::from(c.superblock) * u128::from(flash) / u128::from(c.flash)) as u64;
    (share / unit).max(1) * unit
}

impl ConventionalSsd {
    /// A device of the parameters. `size` replaces the capacity that the host sees, in
    /// bytes. Superblocks and their erase times shrink with it; their number, on which
    /// garbage collection depends, stays. The seed is for times that vary and for
    /// injected faults.
    ///
    /// # Errors
    /// If the parameters are not those of a conventional device, or leave no
    /// superblock to garbage collection.
    pub fn new(params: &Params, size: Option<u64>, seed: u64) -> Result<Self, ParamError> {
        let c = match (params.interface, &params.conventional) {
            (Interface::Conventional, Some(c)) => c.clone(),
            _ => return Err(params.refuse("interface", "not a conventional device".into())),
        };
        let mut flash = Flash::new(params, seed);
        let seen = |flash: u64| (flash as f64 / (1.0 + c.over_provisioning)) as u64 / BLOCK;
        let logical = size.map_or(seen(c.flash), |size| size / BLOCK);
        let physical = match size {
            Some(_) => (logical as f64 * (1.0 + c.over_provisioning)) as u64,
            None => c.flash / BLOCK,
        };
        let size = match size {
            Some(bytes) => superblock_bytes(params, bytes) / BLOCK,
            None => c.superblock / BLOCK,
        };
        // Erase time shrinks with the superblock.
        flash.scale_erase(size * BLOCK, c.superblock);
        let count = physical / size;
        // Leaves room for the free superblocks, the open ones and one spare.
        let kept = u64::from(c.gc_low) + 2 + u64::from(c.write_streams);
        let most = count.saturating_sub(kept) * size;
        if logical == 0 || logical > most || physical >= u64::from(NONE) {
            return Err(params.refuse(
                "conventional.over_provisioning",
                format!(
                    "{logical} blocks do not fit {count} superblocks of {size} with {} for \
                     garbage collection",
                    kept
                ),
            ));
        }
        let new = Superblock { valid: 0, born: 0, full: false };
        let nowhere = Head { superblock: NONE, used: size as u32 };
        let part = (logical as f64 * c.partition) as u64;
        let other = (logical as f64 * c.other_data) as u64;
        let mut ssd = ConventionalSsd {
            flash,
            dies: params.media.dies,
            map: vec![NONE; logical as usize],
            part,
            owner: vec![NONE; (count * size) as usize],
            superblocks: vec![new; count as usize],
            size: size as u32,
            free: (0..count as u32).collect(),
            hosts: vec![nowhere; c.write_streams as usize],
            gc: nowhere,
            emptying: None,
            opened: 0,
            faults: None,
            seed,
            params: c,
            counters: DeviceCounters::default(),
        };
        for lba in part..(part + other).min(logical) {
            if ssd.hosts[0].used == ssd.size {
                ssd.hosts[0] = ssd.open();
            }
            ssd.take(lba as usize, Some(0));
        }
        Ok(ssd)
    }

    /// Delays commands by the plan from now on. A conventional SSD hides its other
    /// faults from the host.
    pub fn inject(&mut self, plan: FaultPlan) {
        self.faults = Some(Faults::new(plan, self.seed));
    }

    fn late(&mut self) -> Ns {
        self.faults.as_mut().map_or(0, Faults::delay)
    }

    /// Blocks of the partition.
    pub fn blocks(&self) -> u64 {
        self.part
    }

    /// Only whole ranges of this many bytes can be trimmed.
    pub fn trim_granularity(&self) -> u64 {
        self.params.trim_granularity
    }

    /// What is written to each of these gets superblocks of its own.
    pub fn write_streams(&self) -> u32 {
        self.params.write_streams
    }

    /// Superblocks, and blocks of each.
    pub fn superblocks(&self) -> (u32, u32) {
        (self.superblocks.len() as u32, self.size)
    }

    /// The device's counters.
    pub fn counters(&self) -> &DeviceCounters {
        &self.counters
    }

    fn check(&self, lba: u64, blocks: u64) {
        let all = self.blocks();
        assert!(
            blocks > 0 && lba < all && blocks <= all - lba,
            "{blocks} blocks at {lba} of {all}"
        );
    }

    /// Writes blocks; returns when that completes.
    ///
    /// # Panics
    /// If they are not all on the device, or none.
    pub fn write(&mut self, now: Ns, lba: u64, blocks: u32) -> Ns {
        self.write_to(now, 0, lba, blocks)
    }

    /// Writes blocks to a write stream; returns when that completes.
    ///
    /// # Panics
    /// If they are not all on the device, or none; or if there is no such stream.
    pub fn write_to(&mut self, now: Ns, stream: usize, lba: u64, blocks: u32) -> Ns {
        self.check(lba, blocks.into());
        let mut w = self.flash.write(now, blocks, Way::Write);
        let unit = self.flash.unit_blocks();
        for lba in lba..lba + u64::from(blocks) {
            if self.hosts[stream].used == self.size {
                self.collect(now);
                self.hosts[stream] = self.open();
            }
            let at = self.take(lba as usize, Some(stream));
            self.flash.admit(&mut w, 1);
            if (at + 1).is_multiple_of(unit) {
                let (die, id) = self.place(at);
                w.programmed = w.programmed.max(self.flash.program(w.at, die, id));
                self.collect_some(now);
            }
        }
        self.counters.writes += 1;
        self.counters.written_blocks += u64::from(blocks);
        self.counters.programmed_blocks = self.flash.programmed;
        self.flash.written(&w, blocks) + self.late()
    }

    /// Reads blocks; returns the completion time. Blocks never written or trimmed need
    /// no flash read.
    ///
    /// # Panics
    /// If they are not all on the device, or none.
    pub fn read(&mut self, now: Ns, lba: u64, blocks: u32) -> Ns {
        self.check(lba, blocks.into());
        let at = self.flash.read(now, blocks);
        let page = self.flash.sense_blocks();
        let (mut lba, end, mut ready) = (lba as usize, lba as usize + blocks as usize, at);
        while lba < end {
            let first = self.map[lba];
            let mut run = 1;
            // Extend the run while both logical and physical blocks are contiguous
            // within a flash page.
            while first != NONE
                && lba + (run as usize) < end
                && !(first + run).is_multiple_of(page)
                && self.map[lba + run as usize] == first + run
            {
                run += 1;
            }
            lba += run as usize;
            if first != NONE && !self.buffered(first) {
                let (die, id) = self.place(first);
                ready = ready.max(self.flash.sense(at, die, id, run));
            }
        }
        self.counters.reads += 1;
        self.counters.read_blocks += u64::from(blocks);
        self.flash.sent(at, ready, blocks) + self.late()
    }

    /// Trims blocks; returns the completion time. Only whole ranges of the device's
    /// granularity are freed.
    ///
    /// # Panics
    /// If they are not all on the device, or none.
    pub fn trim(&mut self, now: Ns, lba: u64, blocks: u64) -> Ns {
        self.check(lba, blocks);
        let grain = self.params.trim_granularity / BLOCK;
        let first = lba.next_multiple_of(grain);
        let end = (lba + blocks) / grain * grain;
        for lba in first..end.max(first) {
            self.counters.trimmed_blocks += u64::from(self.invalidate(lba as usize));
        }
        self.counters.trims += 1;
        let len = self.params.trim + blocks * self.params.trim_block;
        self.flash.command(now, len) + len + self.late()
    }

    /// Is the physical block in an incomplete unit, still in the buffer?
    fn buffered(&self, block: u32) -> bool {
        let unit = self.flash.unit_blocks();
        self.hosts.iter().chain([&self.gc]).any(|head| {
            let first = u64::from(head.superblock) * u64::from(self.size);
            let open = first + u64::from(head.used / unit * unit);
            (open..first + u64::from(self.size)).contains(&block.into())
        })
    }

    /// The die of a physical block, and the number of its unit.
    fn place(&self, block: u32) -> (u32, u64) {
        let unit = block / self.flash.unit_blocks();
        (unit % self.dies, unit.into())
    }

    /// Unmaps a logical block; true if it was mapped.
    fn invalidate(&mut self, lba: usize) -> bool {
        let old = std::mem::replace(&mut self.map[lba], NONE);
        if old != NONE {
            self.superblocks[(old / self.size) as usize].valid -= 1;
        }
        old != NONE
    }

    /// Maps a logical block to the next place of a write stream, or of garbage collection.
    fn take(&mut self, lba: usize, stream: Option<usize>) -> u32 {
        self.invalidate(lba);
        let head = stream.map_or(&mut self.gc, |stream| &mut self.hosts[stream]);
        let at = head.superblock * self.size + head.used;
        head.used += 1;
        let s = &mut self.superblocks[head.superblock as usize];
        s.valid += 1;
        s.full = head.used == self.size;
        self.map[lba] = at;
        self.owner[at as usize] = lba as u32;
        at
    }

    fn open(&mut self) -> Head {
        let superblock = self.free.pop_front().expect("garbage collection keeps some free");
        self.opened += 1;
        self.superblocks[superblock as usize].born = self.opened;
        Head { superblock, used: 0 }
    }

    /// Collects until a superblock is free for the host.
    fn collect(&mut self, now: Ns) {
        while self.free.len() <= self.params.gc_low as usize && self.choose(now) {
            self.empty(now, self.size);
        }
    }

    /// Called after each unit the host writes: collects enough to make room for the next
    /// unit.
    fn collect_some(&mut self, now: Ns) {
        if self.params.gc_pace == Pace::Burst
            || self.free.len() > self.params.gc_low as usize + 1
            || !self.choose(now)
        {
            return;
        }
        let Some(e) = self.emptying else { return };
        let (size, unit) = (u64::from(self.size), u64::from(self.flash.unit_blocks()));
        // A victim yields its dead blocks.
        let blocks = (unit * size).div_ceil(u64::from(e.dead).max(1));
        self.empty(now, blocks.min(size) as u32);
    }

    /// Chooses a victim if there is none; false if no superblock qualifies.
    fn choose(&mut self, now: Ns) -> bool {
        if self.emptying.is_some() {
            return true;
        }
        let full = self.superblocks.iter().enumerate().filter(|(_, s)| s.full);
        let victim = match self.params.gc_victim {
            Victim::Greedy => full.min_by_key(|(_, s)| (s.valid, s.born)),
            Victim::Fifo => full.min_by_key(|(_, s)| s.born),
        };
        let Some((victim, _)) = victim else { return false };
        let s = &mut self.superblocks[victim];
        s.full = false;
        let (victim, dead) = (victim as u32, self.size - s.valid);
        self.emptying = Some(Emptying { victim, dead, at: 0, since: now, done: now });
        true
    }

    /// Moves the valid blocks among the next `blocks` of the victim, and erases the
    /// victim after the last.
    fn empty(&mut self, now: Ns, blocks: u32) {
        let Some(mut e) = self.emptying.take() else { return };
        let (unit, page) = (self.flash.unit_blocks(), self.flash.sense_blocks());
        let end = e.at.saturating_add(blocks).next_multiple_of(page).min(self.size);
        let first = e.victim * self.size;
        while e.at < end {
            let (sense, mut read) = (first + e.at, 0);
            for from in sense..sense + page {
                let lba = self.owner[from as usize];
                if lba == NONE || self.map[lba as usize] != from {
                    continue;
                }
                read += 1;
                if self.gc.used == self.size {
                    self.gc = self.open();
                }
                let at = self.take(lba as usize, None);
                if (at + 1).is_multiple_of(unit) {
                    let (die, id) = self.place(at);
                    e.done = e.done.max(self.flash.program(now, die, id));
                }
            }
            if read > 0 {
                let (die, _) = self.place(sense);
                self.flash.read_ahead(now, die, read);
                self.counters.copied_blocks += u64::from(read);
            }
            e.at += page;
        }
        self.counters.programmed_blocks = self.flash.programmed;
        match e.at < self.size {
            true => self.emptying = Some(e),
            false => self.erase(now, e),
        }
    }

    fn erase(&mut self, now: Ns, e: Emptying) {
        let unit = self.flash.unit_blocks();
        for i in 0..self.dies.min(self.size / unit) {
            let (die, _) = self.place(e.victim * self.size + i * unit);
            self.flash.erase(now, die);
            self.counters.erases += 1;
        }
        self.free.push_back(e.victim);
        self.counters.gc_victims += 1;
        self.counters.gc_time += e.done - e.since;
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;

    /// Map, owners and counts agree.
    fn verify(ssd: &ConventionalSsd) {
        let mut valid = vec![0; ssd.superblocks.len()];
        for (lba, at) in ssd.map.iter().enumerate().filter(|(_, at)| **at != NONE) {
            assert_eq!(ssd.owner[*at as usize], lba as u32, "owner of {at}");
            valid[(at / ssd.size) as usize] += 1;
        }
        for (i, s) in ssd.superblocks.iter().enumerate() {
            assert_eq!(s.valid, valid[i], "superblock {i}");
        }
        for free in &ssd.free {
            let s = &ssd.superblocks[*free as usize];
            assert!(s.valid == 0 && !s.full, "superblock {free} is free");
        }
    }

    #[test]
    fn maps_agree_after_random_commands() {
        for (seed, pace) in [(1, "burst"), (2, "even"), (3, "even")] {
            let set = [("gc_pace", pace.to_string()), ("write_streams", seed.to_string())]
                .map(|(key, value)| (format!("conventional.{key}"), value));
            let params = Params::load("conventional", &set).unwrap();
            let mut ssd = ConventionalSsd::new(&params, Some(24 << 20), seed).unwrap();
            let (all, mut rng) = (ssd.blocks(), Pcg64Mcg::seed_from_u64(seed));
            let mut live = vec![false; all as usize];
            let mut now = 0;
            for step in 0..40_000u32 {
                let blocks = rng.random_range(1..=64.min(all));
                let lba = rng.random_range(0..=all - blocks);
                let range = lba as usize..(lba + blocks) as usize;
                let done = match rng.random_range(0..10) {
                    0..=5 => {
                        live[range].fill(true);
                        let stream = rng.random_range(0..seed as usize);
                        ssd.write_to(now, stream, lba, blocks as u32)
                    }
                    6..=7 => {
                        live[range].fill(false);
                        ssd.trim(now, lba, blocks)
                    }
                    _ => ssd.read(now, lba, blocks as u32),
                };
                assert!(done > now);
                now += rng.random_range(0..20_000);
                if step % 500 == 0 {
                    verify(&ssd);
                    for (lba, live) in live.iter().enumerate() {
                        assert_eq!(ssd.map[lba] != NONE, *live, "block {lba}");
                    }
                }
            }
            assert!(ssd.counters.gc_victims > 100, "{:?}", ssd.counters);
        }
    }

    /// Half of the drive is written over again and again, beside data that stays.
    #[test]
    fn write_streams_are_kept_apart() {
        let copied = |streams: usize| {
            let set = [("conventional.write_streams".to_string(), streams.to_string())];
            let params = Params::load("conventional", &set).unwrap();
            let mut ssd = ConventionalSsd::new(&params, Some(256 << 20), 1).unwrap();
            let half = ssd.blocks() / 2 / 8 * 8;
            for lba in (0..half).step_by(8) {
                ssd.write_to(0, 0, lba, 8);
                ssd.write_to(0, streams - 1, half + lba, 8);
            }
            for lba in (0..4 * half).step_by(8) {
                ssd.write_to(0, 0, lba % half, 8);
            }
            ssd.counters.copied_blocks as f64 / (4 * half) as f64
        };
        let (mixed, apart) = (copied(1), copied(2));
        assert!(mixed > 0.3 && apart < 0.01, "{mixed:.2}, {apart:.2}");
    }
}
