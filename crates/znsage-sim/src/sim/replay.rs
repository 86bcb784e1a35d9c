// SPDX-License-Identifier: GPL-2.0-only
//! Replays a recorded trace on a system.
//!
//! The order of the trace is kept. Each CPU does one thing at a time: it waits
//! for its reads and for room to write to. Memory is not modelled, as the
//! trace already reflects it: a page is in memory only during its I/O. Pages
//! that one CPU swaps out in quick succession form a batch of reclaim.

use std::collections::VecDeque;

use super::{release_slots, work, Latencies, Snapshot, Stuck};
use crate::event::Event;
use crate::host::group::BATCH;
use crate::host::page::Place;
use crate::host::task::{By, Next};
use crate::host::Host;
use crate::system::{In, System, Taken};
use crate::time::{Ns, MS};
use crate::trace::{Line, Needs, Op, Reader, Record, TraceError};

/// Pages that a CPU swaps out within this time of the last belong to its
/// batch.
const SAME_BATCH: Ns = MS;
/// Lines read ahead to find the next record of a CPU.
const AHEAD: usize = 64;
/// Event::Task() with this number: the next record is due.
const TIMER: u32 = u32::MAX;

/// A CPU of the trace.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// The current record, and when it began.
    doing: Option<(Record, Ns)>,
    /// Waits for its reads.
    reads: bool,
    /// Frames to swap out, and how many are done.
    frames: Vec<u32>,
    done: usize,
    /// Pages since the last batch ended.
    batch: usize,
}

/// A replay.
pub struct Replay<S> {
    /// The machine: a thread per CPU of the trace, a page per slot in it.
    pub h: Host,
    /// How pages are swapped.
    pub s: S,
    /// Latencies of reads while measuring.
    pub latencies: Latencies,
    input: Reader,
    needs: Needs,
    /// Next lines, with pages in place of slots.
    ahead: VecDeque<Line>,
    lanes: Vec<Lane>,
    /// Follow the trace's times, not only its order.
    paced: bool,
    timer: Ns,
    begin: Option<Snapshot>,
    end: Option<Snapshot>,
}

/// Why a replay has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// The trace changed after the survey.
    Trace(TraceError),
    /// It cannot go on.
    Stuck(Stuck),
}

impl<S: System> Replay<S> {
    /// A replay that has not begun. The host has `needs.cpus` threads.
    pub fn new(mut h: Host, s: S, input: Reader, needs: Needs, paced: bool) -> Self {
        h.keep_no_pages();
        Replay {
            h,
            s,
            latencies: Latencies::new(1),
            input,
            ahead: VecDeque::new(),
            lanes: vec![Lane::default(); needs.cpus as usize],
            needs,
            paced,
            timer: 0,
            begin: None,
            end: None,
        }
    }

    /// The needs of the trace.
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// Runs to the end. First swaps out the slots in use when the recording began.
    /// Returns snapshots of the start and the end of the measured phase.
    pub fn run(&mut self) -> Result<(Snapshot, Snapshot), ReplayError> {
        for (i, &first) in self.needs.before.iter().enumerate() {
            let (at, cpu) = (0, (i % self.lanes.len()) as u32);
            let record = self.needs.translate(Record { at, cpu, op: Op::Out, first, nr: 1 });
            self.ahead.push_back(Line::Record(record.expect("it is in the trace")));
        }
        let name = if self.needs.measures { "begin" } else { "measure" };
        self.ahead.push_back(Line::Mark { at: 0, name: name.into(), facts: vec![] });
        self.read_ahead()?;
        self.settle()?;
        self.drain()?;
        if let Some(line) = self.ahead.front() {
            return Err(self.stuck(format!("`{line}` of the trace is never done")));
        }
        self.mark("end");
        self.s.wind_down(&mut self.h);
        self.h.take_spent();
        self.drain()?;
        self.h.slots.flush(&mut self.h.freed);
        self.settle()?;
        self.drain()?;
        let (Some(begin), Some(end)) = (self.begin.take(), self.end.take()) else {
            return Err(self.stuck("the marks `measure` and `end` are out of order".into()));
        };
        Ok((begin, end))
    }

    fn stuck(&self, what: String) -> ReplayError {
        ReplayError::Stuck(Stuck { at: self.h.now, what })
    }

    fn read_ahead(&mut self) -> Result<(), ReplayError> {
        while self.ahead.len() < AHEAD {
            match self.input.next() {
                Some(line) => {
                    let line = match line.map_err(ReplayError::Trace)? {
                        Line::Record(r) => self.needs.translate(r).map(Line::Record),
                        mark => Some(mark),
                    };
                    let changed = || self.input.wrong("was changed while it was read".into());
                    self.ahead.push_back(line.ok_or_else(|| ReplayError::Trace(changed()))?);
                }
                None => break,
            }
        }
        Ok(())
    }

    fn drain(&mut self) -> Result<(), ReplayError> {
        while let Some((at, event)) = self.h.queue.pop() {
            self.h.now = at;
            match event {
                Event::Task(task) if task == self.h.worker() => {
                    work(&mut self.h, &mut self.s, task, at);
                }
                Event::Task(TIMER) => (),
                Event::Task(task) => self.lane_ends(task),
                Event::System(what) => {
                    self.s.event(&mut self.h, what);
                    self.h.take_spent();
                }
            }
            self.settle()?;
        }
        Ok(())
    }

    /// Starts whatever can start.
    fn settle(&mut self) -> Result<(), ReplayError> {
        loop {
            if !self.h.freed.is_empty() {
                release_slots(&mut self.h, &mut self.s);
            }
            self.end_reads();
            self.dispatch()?;
            let Some((task, begun)) = self.h.cpus.next_to_run() else { return Ok(()) };
            if task == self.h.worker() {
                work(&mut self.h, &mut self.s, task, begun);
            } else {
                self.step(task, begun)?;
            }
        }
    }

    // ---- the trace

    /// Starts records in order, as long as they can begin.
    fn dispatch(&mut self) -> Result<(), ReplayError> {
        loop {
            let record = match self.ahead.front() {
                None => return Ok(()),
                Some(Line::Mark { .. }) if self.lanes.iter().any(|l| l.doing.is_some()) => {
                    return Ok(());
                }
                Some(Line::Mark { name, .. }) => {
                    let name = name.clone();
                    self.mark(&name);
                    self.ahead.pop_front();
                    self.read_ahead()?;
                    continue;
                }
                Some(Line::Record(r)) => *r,
            };
            if self.paced && record.at > self.h.now {
                if self.timer != record.at {
                    self.timer = record.at;
                    self.h.queue.push(record.at, Event::Task(TIMER));
                }
                return Ok(());
            }
            if self.must_wait(record) {
                return Ok(());
            }
            self.ahead.pop_front();
            self.read_ahead()?;
            if record.op == Op::Free {
                self.free(record);
            } else {
                self.lanes[record.cpu as usize].doing = Some((record, self.h.now));
                self.h.wake(record.cpu);
            }
        }
    }

    fn mark(&mut self, name: &str) {
        match name {
            "measure" if self.begin.is_none() => {
                self.latencies.reset();
                self.begin = Some(Snapshot::of(&self.h, &self.s));
            }
            "end" if self.begin.is_some() && self.end.is_none() => {
                self.end = Some(Snapshot::of(&self.h, &self.s));
            }
            _ => (),
        }
    }

    /// Is its CPU busy, or one of its pages in use by another record?
    fn must_wait(&self, r: Record) -> bool {
        let with = |d: Record| d.first < r.first + r.nr && r.first < d.first + d.nr;
        let doing = |lane: &Lane| lane.doing.is_some_and(|(d, _)| with(d));
        self.lanes[r.cpu as usize].doing.is_some()
            || self.lanes.iter().any(doing)
            || self.any_busy(r)
    }

    /// Is a page of the record being read or written?
    fn any_busy(&self, r: Record) -> bool {
        (r.first..r.first + r.nr).any(|p| {
            let place = self.h.pages[p as usize].pte.place();
            matches!(place, Place::Cached(_) | Place::Mapped(_))
        })
    }

    fn cpu_of(&self, r: Record) -> u32 {
        r.cpu % self.h.cpus.len()
    }

    fn free(&mut self, r: Record) {
        let cpu = self.cpu_of(r);
        for page in r.first..r.first + r.nr {
            self.h.drop_page(page, cpu);
        }
    }

    // ---- a CPU of the trace

    fn step(&mut self, task: u32, begun: Ns) -> Result<(), ReplayError> {
        let (record, _) = self.lanes[task as usize].doing.expect("it was woken for a record");
        match record.op {
            Op::In => self.swap_in(task, record),
            Op::Out => self.swap_out(task, begun, record)?,
            Op::Free => unreachable!("needs no CPU of its own"),
        }
        Ok(())
    }

    fn by(&self, r: Record) -> By {
        By { task: r.cpu, cpu: self.cpu_of(r), group: 0 }
    }

    fn swap_in(&mut self, task: u32, r: Record) {
        let mut pages = Vec::with_capacity(r.nr as usize);
        for page in r.first..r.first + r.nr {
            // A page never written is not on the device.
            let Place::Slot(slot) = self.h.pages[page as usize].pte.place() else { continue };
            let frame = self.h.take_frame(0).expect("there is a frame for each page");
            self.h.begin_read(page, slot, frame, false);
            self.h.count.major_faults += 1;
            self.h.by_group[0].major_faults += 1;
            pages.push(In { slot, frame });
        }
        let by = self.by(r);
        if !pages.is_empty() {
            self.s.swap_in(&mut self.h, by, &pages);
        }
        let c = &self.h.costs;
        let kernel = c.fault + c.map + pages.len() as Ns * c.charge;
        let spent = self.h.take_spent() + kernel;
        self.lanes[task as usize].reads = true;
        self.h.uses(task, spent);
        self.h.block(task);
    }

    /// Releases the CPUs whose reads have ended.
    fn end_reads(&mut self) {
        for task in 0..self.lanes.len() {
            let lane = &self.lanes[task];
            let Some((record, begun)) = lane.doing.filter(|_| lane.reads) else { continue };
            if !self.any_busy(record) {
                self.lanes[task].reads = false;
                self.lanes[task].doing = None;
                if self.begin.is_some() && self.end.is_none() {
                    let took = self.h.now - begun + self.h.costs.map;
                    self.latencies.major[0].saturating_record(took);
                }
                self.h.count.operations += 1;
            }
        }
    }

    fn swap_out(&mut self, task: u32, begun: Ns, r: Record) -> Result<(), ReplayError> {
        let mut lane = std::mem::take(&mut self.lanes[task as usize]);
        if lane.frames.is_empty() {
            for page in r.first..r.first + r.nr {
                lane.frames.push(self.h.fill_page(page, self.cpu_of(r)));
            }
            lane.batch += r.nr as usize;
        }
        if !self.h.freed.is_empty() {
            release_slots(&mut self.h, &mut self.s);
        }
        let by = self.by(r);
        let mut taken = self.s.swap_out(&mut self.h, by, &lane.frames[lane.done..]);
        if let Taken::NoSlot(n) = taken {
            // Return the slots in the CPUs' batches.
            lane.done += n;
            self.h.slots.flush(&mut self.h.freed);
            release_slots(&mut self.h, &mut self.s);
            taken = self.s.swap_out(&mut self.h, by, &lane.frames[lane.done..]);
        }
        let full = lane.batch >= BATCH || !self.goes_on(r);
        if full || taken != Taken::All {
            self.s.unplug(&mut self.h, by);
            lane.batch = 0;
        }
        let spent = self.h.take_spent();
        match taken {
            Taken::All => {
                lane.frames.clear();
                lane.done = 0;
                self.lanes[task as usize] = lane;
                self.h.go_on(task, begun, begun + spent, Next::Run);
            }
            Taken::Wait(n) => {
                lane.done += n;
                self.lanes[task as usize] = lane;
                self.h.uses(task, spent);
                self.h.wait_for_room(task);
            }
            Taken::NoSlot(_) => return Err(self.stuck("no slot is left".into())),
        }
        Ok(())
    }

    /// Does the CPU swap out more shortly after?
    fn goes_on(&self, r: Record) -> bool {
        let next = self.ahead.iter().find_map(|line| match line {
            Line::Record(next) if next.cpu == r.cpu && next.op != Op::Free => Some(*next),
            _ => None,
        });
        next.is_some_and(|next| next.op == Op::Out && next.at - r.at < SAME_BATCH)
    }

    /// A CPU has finished a swap-out.
    fn lane_ends(&mut self, task: u32) {
        self.lanes[task as usize].doing = None;
        self.h.block(task);
    }
}
