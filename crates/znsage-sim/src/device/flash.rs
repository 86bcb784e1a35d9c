// SPDX-License-Identifier: GPL-2.0-only
//! The media and the controller that all SSDs here share.
//!
//! On the drive measured in most detail (`devices/zn540.toml`), random reads
//! of 4 KiB at a queue depth of 32 drop from 280,000/s to a plateau of
//! 120,000/s as writes keep all dies programming, while a single read waits
//! 0.11 ms longer, and about 0.3 ms at most. So a programming die lets a few
//! reads in at intervals, at a cost (program suspend, `lane.rs`). Writes
//! complete in the write buffer, so the host feels only the rate at which the
//! dies drain it. When many writes wait for buffer room, reads queue behind
//! them.
//!
//! A command that waits long for its die must not hold up the channel and the
//! link for later commands. So every command joins those queues on arrival. A
//! read adds up its waits; a program, which may be queued far ahead, takes the
//! longest.

use super::jitter::Jitter;
use super::lane::{Gaps, Lane, Places, Room};
use super::params::{Controller, Params};
use crate::time::{transfer, Ns, BLOCK};

/// Writes wait for room in pieces of this many blocks, 256 KiB.
const PIECE: u32 = 64;

#[derive(Clone, Debug)]
struct Die {
    lane: Lane,
    /// The unit programmed last, and when its program ends: until then, reads of it hit
    /// the buffer.
    unit: u64,
    until: Ns,
}

/// How data arrive; the controller's work differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Write,
    Append,
    /// Within the device.
    Copy,
}

/// A write accepted by the controller.
#[derive(Clone, Debug)]
pub(super) struct Ingest {
    /// When the data admitted so far are in the buffer.
    pub at: Ns,
    /// When the last of its units is programmed.
    pub programmed: Ns,
    way: Way,
    latency: Ns,
}

/// Chips, channels, controller, buffer, link.
#[derive(Clone, Debug)]
pub(super) struct Flash {
    dies: Vec<Die>,
    channels: Vec<Lane>,
    /// When the controller accepts the next command.
    front: Ns,
    link_read: Ns,
    link_write: Ns,
    drain: Ns,
    buffer: Room,
    /// The command queue, if limited.
    queue: Option<Room>,
    /// Writes waiting for buffer room.
    waiting: Places,
    last_write: Ns,
    /// How much reads of the cells, programs and writes into the buffer vary.
    reads: Jitter,
    programs: Jitter,
    writes: Jitter,
    p: Parameters,
    /// Blocks programmed.
    pub programmed: u64,
}

/// Parameters and derived values.
#[derive(Clone, Debug)]
struct Parameters {
    unit_blocks: u32,
    sense_blocks: u32,
    small_blocks: u32,
    read: Ns,
    read_page: Ns,
    program: Ns,
    erase: Ns,
    die_gaps: Gaps,
    channel_block: Ns,
    channel_unit: Ns,
    channel_gaps: Gaps,
    drain_unit: Ns,
    link_read_block: Ns,
    link_write_block: Ns,
    controller: Controller,
}

impl Parameters {
    fn new(p: &Params) -> Parameters {
        let (m, c) = (&p.media, &p.controller);
        let rate = |bytes, rate| if rate == 0 { 0 } else { transfer(bytes, rate) };
        let die_gaps =
            Gaps { slice: m.program_slice, resume: m.program_resume, most: m.reads_per_suspend };
        // A page transfer is never interrupted, and interrupting between pages costs
        // nothing.
        let channel_gaps = Gaps { slice: rate(m.page, m.channel), resume: 0, most: u32::MAX };
        Parameters {
            unit_blocks: (m.program_unit() / BLOCK) as u32,
            sense_blocks: (m.sense() / BLOCK) as u32,
            small_blocks: (c.small_write / BLOCK) as u32,
            read: m.read,
            read_page: m.read_page,
            program: m.program,
            erase: m.erase,
            die_gaps,
            channel_block: rate(BLOCK, m.channel),
            channel_unit: rate(m.program_unit(), m.channel),
            channel_gaps,
            drain_unit: rate(m.program_unit(), c.drain),
            link_read_block: rate(BLOCK, c.link_read),
            link_write_block: rate(BLOCK, c.link_write),
            controller: c.clone(),
        }
    }

    fn cells(&self, blocks: u32) -> Ns {
        if blocks > 1 {
            self.read_page
        } else {
            self.read
        }
    }
}

impl Flash {
    /// Chips with these parameters; the seed is for times that vary.
    pub fn new(p: &Params, seed: u64) -> Flash {
        let die = Die { lane: Lane::default(), unit: u64::MAX, until: 0 };
        Flash {
            dies: vec![die; p.media.dies as usize],
            channels: vec![Lane::default(); p.media.channels as usize],
            front: 0,
            link_read: 0,
            link_write: 0,
            drain: 0,
            buffer: Room::new(p.controller.buffer / p.media.program_unit()),
            queue: match p.controller.queue_depth {
                0 => None,
                depth => Some(Room::new(depth.into())),
            },
            waiting: Places::new(p.controller.waiting_writes),
            last_write: 0,
            reads: Jitter::new(&p.media.read_jitter_us, seed, 0),
            programs: Jitter::new(&p.media.program_jitter_us, seed, 1),
            writes: Jitter::new(&p.controller.write_jitter_us, seed, 2),
            p: Parameters::new(p),
            programmed: 0,
        }
    }

    /// Scales the erase time by `part` / `whole`.
    pub fn scale_erase(&mut self, part: u64, whole: u64) {
        let scaled = u128::from(self.p.erase) * u128::from(part) / u128::from(whole);
        self.p.erase = scaled as Ns;
    }

    /// Blocks that one program operation writes.
    pub fn unit_blocks(&self) -> u32 {
        self.p.unit_blocks
    }

    /// Blocks that one read of the cells returns.
    pub fn sense_blocks(&self) -> u32 {
        self.p.sense_blocks
    }

    fn channel(&mut self, die: u32) -> &mut Lane {
        let channel = die as usize % self.channels.len();
        &mut self.channels[channel]
    }

    /// Occupies the controller for `len`; returns when the command is accepted.
    pub fn command(&mut self, now: Ns, len: Ns) -> Ns {
        let queued = self.queue.as_ref().map_or(0, Room::since);
        let start = now.max(self.front).max(self.waiting.since()).max(queued);
        self.front = start + len;
        start
    }

    /// Holds a place in the command queue until `done`.
    fn until(&mut self, done: Ns) -> Ns {
        if let Some(queue) = &mut self.queue {
            queue.take(done);
        }
        done
    }

    /// When a refused command completes.
    pub fn refusal(&self, now: Ns) -> Ns {
        now.max(self.front) + self.p.controller.write
    }

    /// The controller accepts a write. The caller passes its data to [`Flash::admit`],
    /// complete units to [`Flash::program`], and ends with [`Flash::written`].
    pub fn write(&mut self, now: Ns, blocks: u32, way: Way) -> Ingest {
        let c = &self.p.controller;
        let (mut latency, mut len) = match way {
            Way::Append => (c.write + c.append_extra, c.append_command),
            _ => (c.write, c.write_command),
        };
        if blocks < self.p.small_blocks {
            len += c.small_write_command;
            latency += Ns::from(self.p.small_blocks - blocks) * self.p.link_write_block;
        }
        if self.last_write > now {
            latency += c.overlap;
        }
        let at = self.command(now, len);
        Ingest { at, programmed: 0, way, latency: self.writes.of(latency) }
    }

    /// Brings `blocks` of one unit into the buffer, once there is room.
    pub fn admit(&mut self, w: &mut Ingest, blocks: u32) {
        w.at = w.at.max(self.buffer.since());
        if w.way != Way::Copy {
            w.at = w.at.max(self.link_write) + Ns::from(blocks) * self.p.link_write_block;
            self.link_write = w.at;
        }
    }

    /// A unit is complete in the buffer at `ready` and goes to its die;
    /// returns when it is programmed.
    pub fn program(&mut self, ready: Ns, die: u32, unit: u64) -> Ns {
        let drained = ready.max(self.drain);
        self.drain = drained + self.p.drain_unit;
        let (len, program) = (self.p.channel_unit, self.programs.of(self.p.program));
        let (on, _) = self.channel(die).background(ready, len);
        let d = &mut self.dies[die as usize];
        let (_, end) = d.lane.background(on.max(drained), len + program);
        (d.unit, d.until) = (unit, end);
        self.buffer.take(end);
        self.programmed += u64::from(self.p.unit_blocks);
        end
    }

    /// Programs a unit of padding: no transfer.
    pub fn pad(&mut self, at: Ns, die: u32) {
        let program = self.programs.of(self.p.program);
        self.dies[die as usize].lane.background(at, program);
        self.programmed += u64::from(self.p.unit_blocks);
    }

    /// Moves a unit within its die; returns when it is programmed.
    pub fn copyback(&mut self, at: Ns, die: u32) -> Ns {
        let len = self.reads.of(self.p.read_page) + self.programs.of(self.p.program);
        self.programmed += u64::from(self.p.unit_blocks);
        self.dies[die as usize].lane.background(at, len).1
    }

    /// Ends the write; returns when the host sees its completion.
    pub fn written(&mut self, w: &Ingest, blocks: u32) -> Ns {
        for _ in 0..blocks.div_ceil(PIECE) {
            self.waiting.take(w.at);
        }
        let early = self.p.controller.early_completion;
        let done = if early { w.at } else { w.at.max(w.programmed) } + w.latency;
        self.last_write = self.last_write.max(done);
        self.until(done)
    }

    /// The controller accepts a read; returns when. [`Flash::sense`] reads what is not
    /// in the buffer, [`Flash::sent`] ends the read.
    pub fn read(&mut self, now: Ns, blocks: u32) -> Ns {
        let c = &self.p.controller;
        let len = c.read_command + Ns::from(blocks - 1) * c.read_command_block;
        self.command(now, len)
    }

    /// Reads `blocks` of a page of `unit` from its die; returns when the
    /// controller has them.
    pub fn sense(&mut self, at: Ns, die: u32, unit: u64, blocks: u32) -> Ns {
        let d = &mut self.dies[die as usize];
        if d.unit == unit && d.until > at {
            return at;
        }
        let cells = self.reads.of(self.p.cells(blocks));
        let start = d.lane.foreground(at, cells, &self.p.die_gaps);
        let len = Ns::from(blocks) * self.p.channel_block;
        let gaps = self.p.channel_gaps;
        let on = self.channel(die).foreground(at, len, &gaps);
        start + cells + (on - at) + len
    }

    /// Ends a read accepted at `at` whose data reached the controller at `ready`;
    /// returns when the host has them.
    pub fn sent(&mut self, at: Ns, ready: Ns, blocks: u32) -> Ns {
        let on = self.link_read.max(at);
        let len = Ns::from(blocks) * self.p.link_read_block;
        self.link_read = on + len;
        let done = ready + (on - at) + len + self.p.controller.read;
        self.until(done)
    }

    /// A read by the device's own GC. It has no priority, and runs so far ahead of the
    /// use of its data that only die and channel time counts.
    pub fn read_ahead(&mut self, at: Ns, die: u32, blocks: u32) {
        let cells = self.reads.of(self.p.cells(blocks));
        self.dies[die as usize].lane.background(at, cells);
        let len = Ns::from(blocks) * self.p.channel_block;
        self.channel(die).background(at, len);
    }

    /// Erases an erase block of each plane of a die; returns when that is
    /// done.
    pub fn erase(&mut self, at: Ns, die: u32) -> Ns {
        self.dies[die as usize].lane.background(at, self.p.erase).1
    }
}
