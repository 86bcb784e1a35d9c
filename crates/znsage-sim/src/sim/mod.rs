// SPDX-License-Identifier: GPL-2.0-only
//! A run: the event loop, and what tasks do.

mod fault;
mod reclaim;
pub mod replay;

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use hdrhistogram::Histogram;

use crate::device::DeviceCounters;
use crate::event::Event;
use crate::host::cpu::Cpus;
use crate::host::lock::LockStats;
use crate::host::readahead::Readahead;
use crate::host::task::Next;
use crate::host::{Counters, GroupCounters, Host};
use crate::system::{System, SystemCounters};
use crate::time::{Ns, MS, SEC};
use crate::workload::{Access, Step, Workload};

/// Time slice while others wait for a CPU: the kernel's default base slice.
const SLICE: Ns = 3 * MS;

/// Phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Threads fill the memory.
    Fill,
    /// Warm-up, not measured.
    Warm,
    /// They run and are measured.
    Measure,
    /// Work in flight ends; nothing new begins.
    Wind,
}

/// How long phases last.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Pages swapped out while warming up.
    pub warmup: u64,
    /// Pages swapped out while measuring.
    pub measure: u64,
    /// Maximum length of either phase.
    pub time: Ns,
    /// How far a thread runs ahead of the events.
    pub lookahead: Ns,
    /// Largest readahead window, 2^this.
    pub page_cluster: u32,
    /// Pages swapped out between two snapshots of the course.
    pub every: u64,
}

/// All counters at a moment, or how much they grew between two.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The moment, or the time between the two.
    pub at: Ns,
    /// The host's counters.
    pub count: Counters,
    /// ... of each cgroup.
    pub by_group: Vec<GroupCounters>,
    /// Locks.
    pub locks: LockStats,
    /// CPU time of all threads.
    pub threads_cpu: Ns,
    /// CPU time of the system's kernel thread.
    pub worker_cpu: Ns,
    /// CPU time of interrupts.
    pub irq: Ns,
    /// The system's counters.
    pub system: SystemCounters,
    /// The device's counters.
    pub device: DeviceCounters,
}

/// A run that cannot continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// When.
    pub at: Ns,
    /// Why.
    pub what: String,
}

impl Snapshot {
    fn of<S: System>(h: &Host, s: &S) -> Self {
        let threads = &h.tasks[..h.threads()];
        let stats = s.stats();
        Snapshot {
            at: h.now,
            count: h.count,
            by_group: h.by_group.clone(),
            locks: h.locks,
            threads_cpu: threads.iter().map(|t| t.cpu_time).sum(),
            worker_cpu: h.tasks[h.worker() as usize].cpu_time,
            irq: Cpus::irq_time(&h.cpus),
            system: stats.count,
            device: stats.device,
        }
    }

    /// How much everything grew since `before`, an earlier snapshot of the run.
    pub fn since(&self, before: &Snapshot) -> Snapshot {
        let groups = self.by_group.iter().zip(&before.by_group);
        Snapshot {
            at: self.at - before.at,
            count: self.count.since(&before.count),
            by_group: groups.map(|(now, before)| now.since(before)).collect(),
            locks: self.locks.since(&before.locks),
            threads_cpu: self.threads_cpu - before.threads_cpu,
            worker_cpu: self.worker_cpu - before.worker_cpu,
            irq: self.irq - before.irq,
            system: self.system.since(&before.system),
            device: self.device.since(&before.device),
        }
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "after {} s of virtual time: {}", crate::time::to_secs(self.at), self.what)
    }
}

impl std::error::Error for Stuck {}

/// Latencies in nanoseconds.
pub struct Latencies {
    /// Faults that read from the device, of each cgroup.
    pub major: Vec<Histogram<u64>>,
    /// Requests of a workload that has them.
    pub requests: Histogram<u64>,
}

impl Latencies {
    fn new(groups: usize) -> Self {
        let new = || Histogram::new_with_bounds(1, 3600 * SEC, 3).expect("these bounds are valid");
        Latencies { major: (0..groups).map(|_| new()).collect(), requests: new() }
    }

    fn reset(&mut self) {
        self.major.iter_mut().for_each(Histogram::reset);
        self.requests.reset();
    }
}

/// A run.
pub struct Sim<S> {
    /// The machine.
    pub h: Host,
    /// How pages are swapped.
    pub s: S,
    /// Latencies while measuring.
    pub latencies: Latencies,
    w: Workload,
    limits: Limits,
    readahead: Vec<Readahead>,
    phase: Phase,
    phase_until: Ns,
    phase_pages: u64,
    parked: u32,
    /// When memory was filled, and after each [`Limits::every`] pages from there.
    pub course: Vec<Snapshot>,
    begin: Option<Snapshot>,
    end: Option<Snapshot>,
    failed: Option<String>,
    watch: Option<Watch>,
}

/// Somebody who watches a run: thousandths of it that are done.
struct Watch {
    parts: Arc<AtomicU32>,
    /// Pages swapped out before the warm-up.
    from: u64,
}

impl<S: System> Sim<S> {
    /// A run that has not begun.
    pub fn new(h: Host, s: S, w: Workload, limits: Limits) -> Self {
        let vmas = w.vmas.len();
        Sim {
            h,
            s,
            latencies: Latencies::new(w.groups.len()),
            w,
            limits,
            readahead: vec![Readahead::default(); vmas],
            phase: Phase::Fill,
            phase_until: Ns::MAX,
            phase_pages: u64::MAX,
            parked: 0,
            course: Vec::new(),
            begin: None,
            end: None,
            failed: None,
            watch: None,
        }
    }

    /// Keeps the thousandths of the run that are done in `parts`.
    pub fn watch(&mut self, parts: Arc<AtomicU32>) {
        self.watch = Some(Watch { parts, from: 0 });
    }

    /// Runs to the end. Returns snapshots of the start and the end of the measured
    /// phase.
    pub fn run(&mut self) -> Result<(Snapshot, Snapshot), Stuck> {
        for thread in 0..self.h.worker() {
            self.h.wake(thread);
        }
        self.settle();
        self.drain()?;
        // Return the slots in the CPUs' batches, which may cause more work.
        self.h.slots.flush(&mut self.h.freed);
        self.settle();
        self.drain()?;
        match (self.begin.take(), self.end.take()) {
            (Some(begin), Some(end)) if self.phase == Phase::Wind => {
                let accesses = end.count.accesses - begin.count.accesses;
                let out = end.count.swapped_out - begin.count.swapped_out;
                let waited = end.at - begin.at >= self.limits.time;
                if waited && out == 0 && accesses < u64::from(self.h.worker()) {
                    return Err(self.stuck("threads wait for the device without an end".into()));
                }
                Ok((begin, end))
            }
            _ => Err(self.stuck("every task waits for another".into())),
        }
    }

    /// Runs until no event is left.
    fn drain(&mut self) -> Result<(), Stuck> {
        while let Some((at, event)) = self.h.queue.pop() {
            debug_assert!(at >= self.h.now);
            self.h.now = at;
            if at >= self.phase_until && self.phase != Phase::Wind {
                self.next_phase();
            }
            match event {
                Event::Task(task) if !self.h.tasks[task as usize].running => self.h.wake(task),
                Event::Task(task) => self.step(task, at),
                Event::System(what) => {
                    self.s.event(&mut self.h, what);
                    self.h.take_spent();
                }
            }
            self.settle();
            if let Some(what) = self.failed.take() {
                return Err(self.stuck(what));
            }
        }
        Ok(())
    }

    fn stuck(&self, what: String) -> Stuck {
        Stuck { at: self.h.now, what }
    }

    /// Starts tasks that got a CPU, and passes freed slots to the system.
    fn settle(&mut self) {
        loop {
            if !self.h.freed.is_empty() {
                release_slots(&mut self.h, &mut self.s);
            }
            let Some((task, begun)) = self.h.cpus.next_to_run() else { break };
            self.h.tasks[task as usize].slice_end = begun + SLICE;
            self.step(task, begun);
        }
    }

    /// Runs a task that continues at `begun`.
    fn step(&mut self, task: u32, begun: Ns) {
        match self.h.tasks[task as usize].next {
            Next::Work => work(&mut self.h, &mut self.s, task, begun),
            Next::SwapOut => self.swap_out(task, begun),
            Next::Map => self.map(task, begun),
            _ if self.phase == Phase::Wind => self.h.block(task),
            Next::Run => {
                let over = begun >= self.h.tasks[task as usize].slice_end;
                if over && self.h.cpus.contended() {
                    self.h.yield_cpu(task);
                } else {
                    self.access(task, begun, begun);
                }
            }
            Next::Fault => self.fault(task, begun),
            Next::Park => unreachable!("a parked thread is woken by park(), as one that runs"),
        }
    }

    /// A thread makes accesses from `at` until one faults.
    fn access(&mut self, task: u32, begun: Ns, mut at: Ns) {
        let ahead = begun + self.limits.lookahead;
        let requests = self.w.has_requests();
        let measure = self.phase == Phase::Measure;
        while at < ahead {
            if measure && self.h.tasks[task as usize].op_begun > at {
                return self.sleep(task, begun, at);
            }
            let a = match self.w.next(task) {
                Step::Access(a) => a,
                Step::Filled => return self.park(task, begun, at),
            };
            at += a.think;
            let page = &mut self.h.pages[a.page as usize];
            if !page.pte.is_mapped() {
                return self.enter_fault(task, begun, at, a);
            }
            if a.write && !page.pte.is_dirty() {
                at += self.reuse(task, a.page);
            }
            let page = &mut self.h.pages[a.page as usize];
            page.pte = page.pte.touched(a.write);
            at += self.h.costs.touch;
            self.accessed(task, at, a.last, requests);
        }
        self.h.go_on(task, begun, at, Next::Run);
    }

    /// A thread waits for its next request.
    fn sleep(&mut self, task: u32, begun: Ns, at: Ns) {
        let t = &mut self.h.tasks[task as usize];
        t.next = Next::Run;
        self.h.queue.push(t.op_begun, Event::Task(task));
        self.h.uses(task, at - begun);
        self.h.block(task);
    }

    /// Frees the slot of a clean page that is being written.
    fn reuse(&mut self, task: u32, page: u32) -> Ns {
        let frame = self.h.pages[page as usize].pte.frame();
        if self.h.frame(frame).slot == crate::host::page::NONE {
            return 0;
        }
        let cpu = self.h.tasks[task as usize].cpu;
        self.h.free_slot_of(frame, cpu);
        self.h.count.reuse_faults += 1;
        self.h.costs.minor
    }

    /// An access has been made.
    #[inline]
    fn accessed(&mut self, task: u32, at: Ns, last: bool, requests: bool) {
        self.h.count.accesses += 1;
        if !last {
            return;
        }
        self.h.count.operations += 1;
        let t = &mut self.h.tasks[task as usize];
        self.h.by_group[t.group as usize].operations += 1;
        if requests {
            let arrived = std::mem::replace(&mut t.op_begun, at);
            if self.phase == Phase::Measure {
                self.latencies.requests.saturating_record(at - arrived);
                t.op_begun = self.w.gap(task).map_or(at, |gap| arrived + gap);
            }
        }
    }

    /// A thread has filled its part. When all have, they begin.
    fn park(&mut self, task: u32, begun: Ns, at: Ns) {
        self.h.tasks[task as usize].next = Next::Park;
        self.h.uses(task, at - begun);
        self.h.block(task);
        self.parked += 1;
        if self.parked < self.h.worker() {
            return;
        }
        self.next_phase();
        for thread in 0..self.h.worker() {
            let t = &mut self.h.tasks[thread as usize];
            (t.next, t.op_begun) = (Next::Run, at);
            self.h.wake(thread);
        }
    }

    // ---- phases

    fn next_phase(&mut self) {
        if let (Phase::Fill, Some(watch)) = (self.phase, &mut self.watch) {
            watch.from = self.h.count.swapped_out;
        }
        self.phase = match self.phase {
            Phase::Fill => Phase::Warm,
            Phase::Warm => Phase::Measure,
            Phase::Measure | Phase::Wind => Phase::Wind,
        };
        let pages = match self.phase {
            Phase::Warm => {
                self.course.push(Snapshot::of(&self.h, &self.s));
                self.limits.warmup
            }
            Phase::Measure => {
                self.latencies.reset();
                self.begin = Some(Snapshot::of(&self.h, &self.s));
                self.limits.measure
            }
            _ => {
                self.end = Some(Snapshot::of(&self.h, &self.s));
                self.s.wind_down(&mut self.h);
                self.h.take_spent();
                u64::MAX
            }
        };
        self.phase_until = self.h.now.saturating_add(self.limits.time);
        self.phase_pages = self.h.count.swapped_out.saturating_add(pages);
    }

    /// Ends the phase once enough pages were swapped out.
    fn check_phase(&mut self) {
        if let Some(watch) = self.watch.as_ref().filter(|_| self.phase != Phase::Fill) {
            let all = (self.limits.warmup + self.limits.measure).max(1);
            let done = (self.h.count.swapped_out - watch.from) * 1000 / all;
            watch.parts.store(done.min(1000) as u32, Ordering::Relaxed);
        }
        if let Some(first) = self.course.first().filter(|_| self.phase != Phase::Wind) {
            let next = self.course.len() as u64 * self.limits.every;
            if self.h.count.swapped_out - first.count.swapped_out >= next {
                self.course.push(Snapshot::of(&self.h, &self.s));
            }
        }
        if self.h.count.swapped_out >= self.phase_pages && self.phase != Phase::Wind {
            self.next_phase();
        }
    }
}

/// Releases the slots given back, and tells the system.
fn release_slots<S: System>(h: &mut Host, s: &mut S) {
    let mut freed = std::mem::take(&mut h.freed);
    h.slots_come_back(freed.len());
    for slot in freed.drain(..) {
        s.free(h, slot);
        let what = h.slots.release(slot);
        s.released(h, slot, what);
    }
    h.take_spent();
    h.freed = freed;
}

/// One step of the kernel thread.
fn work<S: System>(h: &mut Host, s: &mut S, task: u32, begun: Ns) {
    h.looks();
    let more = s.work(h);
    let spent = h.take_spent();
    if more {
        h.kick();
    }
    if h.kicked() {
        if spent == 0 && h.cpus.contended() {
            h.yield_cpu(task);
        } else {
            h.go_on(task, begun, begun + spent, Next::Work);
        }
    } else {
        h.uses(task, spent);
        h.block(task);
    }
}

impl From<Access> for crate::host::task::Fault {
    fn from(a: Access) -> Self {
        crate::host::task::Fault {
            page: a.page,
            vma: a.vma,
            write: a.write,
            last: a.last,
            reclaimed: 0,
            begun: 0,
        }
    }
}
