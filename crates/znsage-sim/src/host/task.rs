// SPDX-License-Identifier: GPL-2.0-only
//! Tasks: the threads of the workload, and the system's kernel thread.

use super::page::NONE;
use crate::time::Ns;

/// What a task does next on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Continues its accesses.
    Run,
    /// Has entered a fault.
    Fault,
    /// The page of its fault is in memory.
    Map,
    /// Swaps out the pages it isolated.
    SwapOut,
    /// Waits for the other threads.
    Park,
    /// The system's kernel thread.
    Work,
}

/// An access that needs the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The page.
    pub page: u32,
    /// The mapping it is in.
    pub vma: u16,
    /// Does the access change it?
    pub write: bool,
    /// Does it end a request?
    pub last: bool,
    /// Reclaims since it last got a frame.
    pub reclaimed: u32,
    /// When the access was made.
    pub begun: Ns,
}

/// A task.
pub struct Task {
    /// What comes next.
    pub next: Next,
    /// Its CPU, or the one it had last.
    pub cpu: u32,
    /// Is it on a CPU?
    pub running: bool,
    /// The cgroup its memory is charged to.
    pub group: u8,
    /// Its fault.
    pub fault: Fault,
    /// A frame granted while it waited for memory.
    pub granted: u32,
    /// The frame whose read it waits for.
    pub waits_for: u32,
    /// The frames it reclaims.
    pub batch: Vec<u32>,
    /// How many of them are done.
    pub done: usize,
    /// CPU time it took.
    pub cpu_time: Ns,
    /// When its request began.
    pub op_begun: Ns,
    /// When its time slice ends.
    pub slice_end: Ns,
}

impl Task {
    /// A task that has not run yet.
    pub fn new(group: u8, cpu: u32, next: Next) -> Self {
        Task {
            next,
            cpu,
            running: false,
            group,
            fault: Fault { page: NONE, vma: 0, write: false, last: false, reclaimed: 0, begun: 0 },
            granted: NONE,
            waits_for: NONE,
            batch: Vec::new(),
            done: 0,
            cpu_time: 0,
            op_begun: 0,
            slice_end: 0,
        }
    }
}

/// Who calls the system.
#[derive(Clone, Copy, Debug)]
pub struct By {
    /// The task.
    pub task: u32,
    /// Its CPU.
    pub cpu: u32,
    /// Its cgroup.
    pub group: u8,
}
