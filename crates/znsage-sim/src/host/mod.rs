// SPDX-License-Identifier: GPL-2.0-only
//! The machine: memory and reclaim, CPUs, tasks, and the kernel's side of
//! swap; the same for all systems.

pub mod costs;
pub mod cpu;
pub mod group;
pub mod lock;
mod lru;
pub mod page;
pub mod readahead;
pub mod slots;
pub mod task;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::counters::counters;
use crate::event::{Event, Queue};
use crate::time::Ns;
use costs::Costs;
use cpu::Cpus;
use group::Group;
use lock::{Lock, LockStats};
use page::{Frame, Page, Place, Pte, Shadow, MANY_TASKS, NONE, NO_TASK};
use slots::Slots;
use task::{By, Next, Task};

counters! {
    /// Counters of the host, in pages unless noted.
    pub struct Counters {
        /// Accesses of the workload.
        pub accesses: u64,
        /// Requests of the workload that ended.
        pub operations: u64,
        /// First touches.
        pub zeroed: u64,
        /// Faults that read the page from the device.
        pub major_faults: u64,
        /// Faults that found the page in the swap cache.
        pub cache_faults: u64,
        /// Writes to a page that still had its slot.
        pub reuse_faults: u64,
        /// Pages read ahead.
        pub readahead: u64,
        /// Pages read ahead and used before their eviction.
        pub readahead_hits: u64,
        /// Pages written to swap.
        pub swapped_out: u64,
        /// Pages evicted without a write, because their slot had the same content.
        pub dropped_clean: u64,
        /// Slots given back.
        pub slots_freed: u64,
        /// Pages scanned by reclaim.
        pub scanned: u64,
        /// Runs of reclaim.
        pub reclaims: u64,
        /// Times a task waited for a frame after reclaiming.
        pub memory_waits: u64,
        /// Times a task waited for room to swap out to.
        pub room_waits: u64,
        /// Pages not swapped out because no slot was free.
        pub no_slot: u64,
    }
}

counters! {
    /// Counters of a cgroup.
    pub struct GroupCounters {
        /// Requests that ended.
        pub operations: u64,
        /// Faults that read the page from the device.
        pub major_faults: u64,
        /// Pages written to swap.
        pub swapped_out: u64,
    }
}

/// Parameters of a host.
pub struct Shape {
    /// CPUs.
    pub cpus: u32,
    /// Frames of each cgroup.
    pub groups: Vec<u32>,
    /// The cgroup of each thread.
    pub threads: Vec<u8>,
    /// The mappings of all processes; pages end with the last one.
    pub vmas: Vec<std::ops::Range<u32>>,
    /// The cgroup of each mapping.
    pub vma_groups: Vec<u8>,
    /// What things cost.
    pub costs: Costs,
}

/// The machine.
pub struct Host {
    /// Virtual time.
    pub now: Ns,
    /// Pending events.
    pub queue: Queue,
    /// What things cost.
    pub costs: Costs,
    /// The CPUs.
    pub cpus: Cpus,
    /// The threads, then the kernel thread.
    pub tasks: Vec<Task>,
    /// Counters.
    pub count: Counters,
    /// Counters of each cgroup.
    pub by_group: Vec<GroupCounters>,
    /// Locks of the kernel and the system.
    pub locks: LockStats,
    /// Slots.
    pub slots: Slots,
    /// Slots given back, not yet released.
    pub freed: Vec<u32>,
    /// CPU time of the current call into the system.
    pub spent: Ns,
    /// Pages of all processes.
    pub pages: Vec<Page>,
    frames: Vec<Frame>,
    groups: Vec<Group>,
    room: VecDeque<u32>,
    kicked: bool,
    slot_lock: Lock,
    versions: Option<Vec<u32>>,
    vma_ends: Vec<u32>,
    vma_groups: Vec<u8>,
    cached: Option<CachedSlots>,
    keeps_no_pages: bool,
    /// Pages in memory keep their slots, however many are in use.
    keeps_slots: bool,
}

/// Slots per zone whose page is also in memory.
struct CachedSlots {
    zone_blocks: u32,
    zones: Vec<u32>,
}

impl Host {
    /// A host with empty memory.
    pub fn new(shape: &Shape, slots: Slots, shadow: bool) -> Self {
        let mut tasks: Vec<Task> = shape
            .threads
            .iter()
            .enumerate()
            .map(|(i, &group)| Task::new(group, i as u32 % shape.cpus, Next::Run))
            .collect();
        tasks.push(Task::new(0, 0, Next::Work));
        let pages = shape.vmas.iter().map(|v| v.end).max().unwrap_or(0) as usize;
        let (mut frames, mut groups) = (Vec::new(), Vec::new());
        for (g, &limit) in shape.groups.iter().enumerate() {
            let first = frames.len() as u32;
            let empty = Frame {
                page: NONE,
                slot: NONE,
                waiter: NO_TASK,
                flags: 0,
                group: g as u8,
                history: 0,
            };
            frames.resize(frames.len() + limit as usize, empty);
            groups.push(Group::new(first, limit));
        }
        Host {
            now: 0,
            queue: Queue::default(),
            costs: shape.costs.clone(),
            cpus: Cpus::new(shape.cpus),
            tasks,
            count: Counters::default(),
            by_group: vec![GroupCounters::default(); shape.groups.len()],
            locks: LockStats::default(),
            slots,
            freed: Vec::new(),
            spent: 0,
            pages: vec![Page { pte: Pte::EMPTY, shadow: Shadow::default() }; pages],
            frames,
            groups,
            room: VecDeque::new(),
            kicked: false,
            slot_lock: Lock::default(),
            versions: shadow.then(|| vec![0; pages]),
            vma_ends: shape.vmas.iter().map(|v| v.end).collect(),
            vma_groups: shape.vma_groups.clone(),
            cached: None,
            keeps_no_pages: false,
            keeps_slots: false,
        }
    }

    /// Threads of the workload.
    pub fn threads(&self) -> usize {
        self.tasks.len() - 1
    }

    /// The system's kernel thread.
    pub fn worker(&self) -> u32 {
        self.threads() as u32
    }

    // ---- tasks

    /// The caller, as systems see it.
    pub fn by(&self, task: u32) -> By {
        let t = &self.tasks[task as usize];
        By { task, cpu: t.cpu, group: t.group }
    }

    /// Wakes a blocked task.
    pub fn wake(&mut self, task: u32) {
        let t = &mut self.tasks[task as usize];
        debug_assert!(!t.running);
        if let Some(cpu) = self.cpus.make_ready(self.now, task, t.cpu, self.costs.wake) {
            t.cpu = cpu;
            t.running = true;
        }
    }

    /// Blocks a task until it is woken.
    pub fn block(&mut self, task: u32) {
        let t = &mut self.tasks[task as usize];
        debug_assert!(t.running);
        t.running = false;
        let cpu = t.cpu;
        if let Some(next) = self.cpus.release(self.now, cpu, self.costs.switch) {
            let n = &mut self.tasks[next as usize];
            n.cpu = cpu;
            n.running = true;
        }
    }

    /// Charges `spent` to `task` and its CPU, just before it blocks.
    pub fn uses(&mut self, task: u32, spent: Ns) {
        let t = &mut self.tasks[task as usize];
        t.cpu_time += spent;
        self.cpus.delay(t.cpu, spent);
    }

    /// Yields the CPU to waiting tasks, if any.
    pub fn yield_cpu(&mut self, task: u32) {
        let t = &mut self.tasks[task as usize];
        let cpu = t.cpu;
        t.running = false;
        self.cpus.queue(task);
        let next = self.cpus.release(self.now, cpu, self.costs.switch).expect("the task itself");
        let n = &mut self.tasks[next as usize];
        n.cpu = cpu;
        n.running = true;
    }

    /// A task continues at `at`; until then it keeps its CPU busy. Interrupts meanwhile
    /// delay it.
    pub fn go_on(&mut self, task: u32, begun: Ns, at: Ns, next: Next) {
        let t = &mut self.tasks[task as usize];
        t.next = next;
        t.cpu_time += at - begun;
        let at = at + self.cpus.take_stolen(t.cpu);
        self.queue.push(at, Event::Task(task));
    }

    /// Kicks the kernel thread.
    pub fn kick(&mut self) {
        let worker = self.worker();
        if self.kicked {
            return;
        }
        self.kicked = true;
        if !self.tasks[worker as usize].running {
            self.wake(worker);
        }
    }

    /// Was the kernel thread kicked since it last looked for work?
    pub fn kicked(&self) -> bool {
        self.kicked
    }

    /// The kernel thread looks for work; later kicks count anew.
    pub fn looks(&mut self) {
        self.kicked = false;
    }

    /// `task` waits until [`Host::has_room`].
    pub fn wait_for_room(&mut self, task: u32) {
        self.count.room_waits += 1;
        self.room.push_back(task);
        self.block(task);
    }

    /// Wakes the tasks that wait for room.
    pub fn has_room(&mut self) {
        while let Some(task) = self.room.pop_front() {
            self.wake(task);
        }
    }

    /// Does any task wait for room?
    pub fn wants_room(&self) -> bool {
        !self.room.is_empty()
    }

    // ---- slots

    /// Allocates slots until `out` has `nr` or none is left. Takes the swap area's lock
    /// once for all, like the kernel's slot cache.
    pub fn alloc_slots(&mut self, cpu: u32, nr: usize, out: &mut Vec<u32>) {
        let from = out.len();
        while out.len() < nr {
            let Some(slot) = self.slots.alloc(cpu as usize) else { break };
            out.push(slot);
        }
        let hold = (out.len() - from) as Ns * self.costs.slot_lock;
        self.spent = self.slot_lock.take(self.now + self.spent, hold, &mut self.locks) - self.now;
    }

    /// Takes the lock once to return `nr` slots.
    pub fn slots_come_back(&mut self, nr: usize) {
        let hold = nr as Ns * self.costs.slot_lock;
        self.slot_lock.take(self.now, hold, &mut self.locks);
    }

    /// Takes a lock of the system now, for `hold`.
    pub fn lock(&mut self, lock: &mut Lock, hold: Ns) {
        let at = self.now + self.spent;
        self.spent = lock.take(at, hold, &mut self.locks) - self.now;
    }

    /// CPU time that the system took since the last call.
    pub fn take_spent(&mut self) -> Ns {
        std::mem::take(&mut self.spent)
    }

    /// The interrupt for a command that `cpu` submitted.
    pub fn interrupt(&mut self, cpu: u32, pages: u32) {
        let cost = self.costs.irq + Ns::from(pages) * self.costs.end_page;
        self.cpus.interrupt(self.now, cpu, cost);
    }

    // ---- reads

    /// A frame.
    pub fn frame(&self, frame: u32) -> &Frame {
        &self.frames[frame as usize]
    }

    /// The read into `frame` has ended.
    pub fn read_done(&mut self, frame: u32) {
        let f = &mut self.frames[frame as usize];
        debug_assert!(f.flags & page::READING != 0);
        f.flags &= !page::READING;
        let waiter = std::mem::replace(&mut f.waiter, NO_TASK);
        match waiter {
            NO_TASK if self.keeps_no_pages => self.evict(frame),
            NO_TASK => self.add_inactive(frame),
            MANY_TASKS => {
                let of = |t: &Task| t.waits_for == frame;
                let all: Vec<u32> =
                    (0..self.worker()).filter(|&t| of(&self.tasks[t as usize])).collect();
                for task in all {
                    self.tasks[task as usize].waits_for = NONE;
                    self.wake(task);
                }
            }
            task => {
                self.tasks[task as usize].waits_for = NONE;
                self.wake(u32::from(task));
            }
        }
    }

    /// `task` waits for the read into `frame`.
    pub fn wait_for_read(&mut self, task: u32, frame: u32) {
        let f = &mut self.frames[frame as usize];
        f.waiter = if f.waiter == NO_TASK { task as u16 } else { MANY_TASKS };
        self.tasks[task as usize].waits_for = frame;
        self.block(task);
    }

    // ---- what systems with physical slots need

    /// Starts to count, per zone, the slots whose page is also in memory. Call before
    /// the first swap-out.
    pub fn count_cached(&mut self, zones: u32, zone_blocks: u32) {
        self.cached = Some(CachedSlots { zone_blocks, zones: vec![0; zones as usize] });
    }

    /// Slots of a zone whose page is also in memory.
    pub fn cached_in(&self, zone: u32) -> u32 {
        self.cached.as_ref().map_or(0, |c| c.zones[zone as usize])
    }

    /// A frame begins or ceases to share its content with `slot`.
    fn shares(&mut self, slot: u32, now: bool) {
        if let Some(c) = &mut self.cached {
            let n = &mut c.zones[(slot / c.zone_blocks) as usize];
            *n = if now { *n + 1 } else { *n - 1 };
        }
    }

    /// The mapping that a page is in.
    pub fn vma_of(&self, page: u32) -> u32 {
        self.vma_ends.partition_point(|&end| end <= page) as u32
    }

    /// The cgroup that a page is charged to.
    pub fn group_of_page(&self, page: u32) -> u8 {
        self.vma_groups[self.vma_of(page) as usize]
    }

    /// Pages of a mapping.
    pub fn vma_pages(&self, vma: u32) -> u32 {
        let before = if vma == 0 { 0 } else { self.vma_ends[vma as usize - 1] };
        self.vma_ends[vma as usize] - before
    }

    /// In how many of the last 16 scans the page of a frame had been accessed.
    pub fn heat(&self, frame: u32) -> u32 {
        self.frames[frame as usize].history.count_ones()
    }

    /// Whether `page` needs `slot`.
    pub fn holds(&self, page: u32, slot: u32) -> Holds {
        match self.pages[page as usize].pte.place() {
            Place::Slot(s) if s == slot => Holds::Out,
            Place::Cached(f) | Place::Mapped(f) if self.frames[f as usize].slot == slot => {
                let busy = page::READING | page::WRITEBACK;
                if self.frames[f as usize].flags & busy != 0 {
                    Holds::Busy
                } else {
                    Holds::Cached
                }
            }
            _ => Holds::No,
        }
    }

    /// GC moved `page` from one slot to another.
    pub fn moved(&mut self, page: u32, from: u32, to: u32) {
        let p = &mut self.pages[page as usize];
        match p.pte.place() {
            Place::Slot(s) => {
                debug_assert_eq!(s, from);
                p.pte = Pte::slot(to);
            }
            Place::Cached(f) | Place::Mapped(f) => {
                debug_assert_eq!(self.frames[f as usize].slot, from);
                self.frames[f as usize].slot = to;
                self.shares(from, false);
                self.shares(to, true);
            }
            Place::Empty => debug_assert!(false, "a page that was never written has no slot"),
        }
    }

    // ---- checks

    /// Content of a frame: page and version. Only with a shadow.
    pub fn content(&self, frame: u32) -> u64 {
        let page = self.frames[frame as usize].page;
        self.page_content(page)
    }

    /// Content of `page` as last swapped out.
    pub fn page_content(&self, page: u32) -> u64 {
        let version = self.versions.as_ref().map_or(0, |v| v[page as usize]);
        u64::from(page) << 32 | u64::from(version)
    }
}

/// Whether a page needs a slot; see [`Host::holds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// The slot has its only copy.
    Out,
    /// The page is also in memory, clean.
    Cached,
    /// ... and I/O between the two is in flight.
    Busy,
    /// The slot is dead.
    No,
}
