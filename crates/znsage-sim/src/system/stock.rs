// SPDX-License-Identifier: GPL-2.0-only
//! Linux swap on a conventional SSD: a slot is a block of the device. Without
//! TRIM the device never learns which blocks are dead.
//!
//! With TRIM as in Linux (`swapon --discard=pages`), a work item trims free
//! clusters one at a time; a cluster is usable again when its command ends.
//! The fine-grained TRIM that ZNSwap compares with
//! (acsl-technion/znswap@4d384595, `mark_bio_swap_discard()`) trims aligned
//! groups of a few slots as soon as all of them are free, several at a time.

use std::collections::VecDeque;

use slab::Slab;

use super::media::Shadow;
use super::{In, SlotSource, System, SystemCounters, SystemStats, Taken, Wrong};
use crate::device::ConventionalSsd;
use crate::event::Event;
use crate::host::page::MAX_SLOTS;
use crate::host::slots::{Released, CLUSTER};
use crate::host::task::By;
use crate::host::Host;
use crate::spec::{PublishedSpec, SpecError};
use crate::time::Ns;

/// Pages of a request: `BIO_MAX_VECS`.
const REQUEST: usize = 256;
/// Concurrent work items that trim groups: the kernel's default, as the
/// original sets no limit.
const TRIMS: usize = 256;

const WRITTEN: u64 = 0 << 32;
const READ: u64 = 1 << 32;
const TRIMMED: u64 = 2 << 32;

/// Unit of TRIM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trim {
    /// Nothing.
    No,
    /// Clusters.
    Cluster,
    /// Groups of this many slots, and clusters.
    Group(u32),
}

/// Slots to be trimmed.
#[derive(Clone, Copy)]
enum Dead {
    Cluster(u32),
    Group(u32, u32),
}

struct Command {
    frames: Vec<u32>,
    first: u64,
    cpu: u32,
}

/// The system.
pub struct Stock {
    dev: ConventionalSsd,
    shadow: Shadow,
    trim: Trim,
    trim_cost: Ns,
    writes: Slab<Command>,
    reads: Slab<Command>,
    trims: Slab<Dead>,
    waiting: VecDeque<Dead>,
    slots: Vec<u32>,
    host_blocks: u64,
}

impl Stock {
    /// Swap on a device.
    pub fn new(
        dev: ConventionalSsd,
        trim: bool,
        set: &PublishedSpec,
        shadow: bool,
    ) -> Result<Self, SpecError> {
        let refuse = |key: &str, what: String| Err(SpecError { key: key.into(), what });
        if dev.blocks() >= MAX_SLOTS {
            return refuse("size", format!("{} slots are the most", MAX_SLOTS - 1));
        }
        let n = set.trim_pages;
        if n >= CLUSTER || (n > 0 && !CLUSTER.is_multiple_of(n)) {
            return refuse("published.trim-pages", format!("{n} is no divisor of a cluster's 512"));
        }
        let trim = match (trim, n) {
            (false, _) => Trim::No,
            (true, 0) => Trim::Cluster,
            (true, n) => Trim::Group(n),
        };
        Ok(Stock {
            shadow: Shadow::new(dev.blocks(), shadow),
            dev,
            trim,
            trim_cost: set.trim_cost,
            writes: Slab::new(),
            reads: Slab::new(),
            trims: Slab::new(),
            waiting: VecDeque::new(),
            slots: Vec::new(),
            host_blocks: 0,
        })
    }

    fn write(&mut self, h: &mut Host, by: By, first: u32, frames: &[u32]) {
        let nr = frames.len() as u32;
        h.spent += h.costs.write + Ns::from(nr) * h.costs.segment;
        let done = self.dev.write(h.now, u64::from(first), nr);
        if self.shadow.on() {
            for (i, &frame) in frames.iter().enumerate() {
                self.shadow.write(u64::from(first) + i as u64, h.content(frame));
            }
        }
        let command = Command { frames: frames.to_vec(), first: u64::from(first), cpu: by.cpu };
        let i = self.writes.insert(command);
        h.queue.push(done, Event::System(WRITTEN | i as u64));
    }

    fn read(&mut self, h: &mut Host, by: By, pages: &[In]) {
        let (first, nr) = (u64::from(pages[0].slot), pages.len() as u32);
        h.spent += h.costs.read + Ns::from(nr) * h.costs.segment;
        let done = self.dev.read(h.now, first, nr);
        let frames = pages.iter().map(|p| p.frame).collect();
        let i = self.reads.insert(Command { frames, first, cpu: by.cpu });
        h.queue.push(done, Event::System(READ | i as u64));
    }

    fn trim_now(&mut self, h: &mut Host, dead: Dead) {
        let (first, nr) = match dead {
            Dead::Cluster(c) => h.slots.cluster(c),
            Dead::Group(first, nr) => (first, nr),
        };
        h.spent += self.trim_cost;
        let done = self.dev.trim(h.now, u64::from(first), u64::from(nr));
        self.shadow.clear(u64::from(first), u64::from(nr));
        let i = self.trims.insert(dead);
        h.queue.push(done, Event::System(TRIMMED | i as u64));
    }

    fn trimmed(&mut self, h: &mut Host, i: usize) {
        match self.trims.remove(i) {
            Dead::Cluster(c) => h.slots.discarded(c),
            Dead::Group(first, nr) => {
                for slot in first..first + nr {
                    // Only the cluster may still need a TRIM.
                    if let Released::Cluster(c) = h.slots.release(slot) {
                        self.waiting.push_back(Dead::Cluster(c));
                    }
                }
            }
        }
        h.has_room();
        h.kick();
    }
}

impl System for Stock {
    fn slots(&self) -> SlotSource {
        SlotSource::Kernel { total: self.dev.blocks() as u32, discards: self.trim != Trim::No }
    }

    fn capacity(&self) -> u64 {
        self.dev.blocks()
    }

    fn swap_out(&mut self, h: &mut Host, by: By, frames: &[u32]) -> Taken {
        let mut slots = std::mem::take(&mut self.slots);
        slots.clear();
        h.alloc_slots(by.cpu, frames.len(), &mut slots);
        for (&frame, &slot) in frames.iter().zip(&slots) {
            h.begin_write(frame, slot);
        }
        // The block layer merges contiguous pages in a plug.
        let (mut first, nr) = (0, slots.len());
        while first < nr {
            let mut end = first + 1;
            while end < nr && slots[end] == slots[end - 1] + 1 && end - first < REQUEST {
                end += 1;
            }
            self.write(h, by, slots[first], &frames[first..end]);
            first = end;
        }
        self.slots = slots;
        if nr == frames.len() {
            Taken::All
        } else if !self.trims.is_empty() {
            Taken::Wait(nr)
        } else {
            Taken::NoSlot(nr)
        }
    }

    fn unplug(&mut self, _h: &mut Host, _by: By) {}

    fn swap_in(&mut self, h: &mut Host, by: By, pages: &[In]) {
        for run in pages.chunk_by(|a, b| a.slot + 1 == b.slot) {
            self.read(h, by, run);
        }
    }

    fn free(&mut self, _h: &mut Host, _slot: u32) {}

    fn released(&mut self, h: &mut Host, slot: u32, what: Released) {
        match (self.trim, what) {
            (Trim::No, _) | (Trim::Cluster, Released::Slot) => return,
            (_, Released::Cluster(c)) => self.waiting.push_back(Dead::Cluster(c)),
            (Trim::Group(n), Released::Slot) => {
                let first = slot / n * n;
                if !h.slots.hold(first, n) {
                    return;
                }
                self.waiting.push_back(Dead::Group(first, n));
            }
        }
        h.kick();
    }

    fn event(&mut self, h: &mut Host, what: u64) {
        let i = what as u32 as usize;
        match what & !u64::from(u32::MAX) {
            WRITTEN => {
                let Command { frames, cpu, .. } = self.writes.remove(i);
                h.interrupt(cpu, frames.len() as u32);
                self.host_blocks += frames.len() as u64;
                for frame in frames {
                    h.write_done(frame, cpu);
                }
            }
            READ => {
                let Command { frames, first, cpu } = self.reads.remove(i);
                h.interrupt(cpu, frames.len() as u32);
                for (block, frame) in (first..).zip(frames) {
                    self.shadow.check(block, if self.shadow.on() { h.content(frame) } else { 0 });
                    h.read_done(frame);
                }
            }
            _ => self.trimmed(h, i),
        }
    }

    fn work(&mut self, h: &mut Host) -> bool {
        let most = if let Trim::Group(_) = self.trim { TRIMS } else { 1 };
        if self.trims.len() >= most {
            return false;
        }
        match self.waiting.pop_front() {
            Some(dead) => {
                self.trim_now(h, dead);
                true
            }
            None => false,
        }
    }

    fn wind_down(&mut self, _h: &mut Host) {}

    fn stats(&self) -> SystemStats {
        let device = *self.dev.counters();
        let (host_blocks, trims) = (self.host_blocks, device.trims);
        let host_pages = host_blocks;
        let count = SystemCounters { host_blocks, host_pages, trims, ..SystemCounters::default() };
        SystemStats { count, device, ..SystemStats::default() }
    }

    fn check(&self, h: &Host) -> Vec<Wrong> {
        let mut wrong = self.shadow.wrong().to_vec();
        let c = self.dev.counters();
        if c.written_blocks != self.host_blocks {
            let (is, want) = (c.written_blocks, self.host_blocks);
            wrong.push(Wrong(format!("{is} blocks on the device, should be {want}")));
        }
        let (used, free) = h.slots.count();
        let total = u64::from(h.slots.total());
        if used != u64::from(h.slots.used()) || used + free != total {
            wrong.push(Wrong(format!("{used} slots in use and {free} free of {total}")));
        }
        let busy = self.waiting.len() + self.trims.len() + self.writes.len() + self.reads.len();
        if busy > 0 {
            wrong.push(Wrong(format!("{busy} commands are not done at the end")));
        }
        wrong
    }
}
