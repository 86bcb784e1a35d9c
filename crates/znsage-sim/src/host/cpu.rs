// SPDX-License-Identifier: GPL-2.0-only
//! CPUs, and which task has which.
//!
//! A ready task gets an idle CPU, preferably its last one, or queues (FIFO).
//! It keeps the CPU until it blocks, or until its slice ends while others
//! wait. Interrupts take time from the running task, or from the CPU's idle
//! time.

use std::collections::VecDeque;

use crate::time::Ns;

/// Most CPUs of a host.
pub const MAX_CPUS: u32 = 64;

/// The CPUs of a host.
pub struct Cpus {
    idle: u64,
    nr: u32,
    /// Until when an idle CPU handles interrupts.
    irq_until: Vec<Ns>,
    /// Interrupt time to charge to the running task.
    stolen: Vec<Ns>,
    ready: VecDeque<u32>,
    /// Tasks that got a CPU, and when they begin.
    to_run: VecDeque<(u32, Ns)>,
    /// Time spent in interrupts.
    irq_time: Ns,
}

impl Cpus {
    /// `nr` idle CPUs, at most [`MAX_CPUS`].
    pub fn new(nr: u32) -> Self {
        assert!((1..=MAX_CPUS).contains(&nr));
        Cpus {
            idle: if nr == 64 { u64::MAX } else { (1 << nr) - 1 },
            nr,
            irq_until: vec![0; nr as usize],
            stolen: vec![0; nr as usize],
            ready: VecDeque::new(),
            to_run: VecDeque::new(),
            irq_time: 0,
        }
    }

    /// How many there are.
    pub fn len(&self) -> u32 {
        self.nr
    }

    /// Never true; clippy wants it.
    pub fn is_empty(&self) -> bool {
        self.nr == 0
    }

    /// Takes an idle CPU, preferably `last`.
    fn take_idle(&mut self, last: u32) -> Option<u32> {
        if self.idle == 0 {
            return None;
        }
        let cpu = if self.idle & (1 << last) != 0 { last } else { self.idle.trailing_zeros() };
        self.idle &= !(1 << cpu);
        Some(cpu)
    }

    /// Makes `task` runnable; `last` is its last CPU. If it gets a CPU now, returns it;
    /// the task begins after `wake`.
    pub fn make_ready(&mut self, now: Ns, task: u32, last: u32, wake: Ns) -> Option<u32> {
        match self.take_idle(last) {
            Some(cpu) => {
                let begin = now.max(self.irq_until[cpu as usize]) + wake;
                self.to_run.push_back((task, begin));
                Some(cpu)
            }
            None => {
                self.ready.push_back(task);
                None
            }
        }
    }

    /// Queues `task` for a CPU.
    pub fn queue(&mut self, task: u32) {
        self.ready.push_back(task);
    }

    /// The task on `cpu` blocks or yields. Returns the next task; it begins after
    /// `switch`.
    pub fn release(&mut self, now: Ns, cpu: u32, switch: Ns) -> Option<u32> {
        let next = self.ready.pop_front();
        match next {
            Some(task) => self.to_run.push_back((task, now + switch)),
            None => {
                self.idle |= 1 << cpu;
                let stolen = std::mem::take(&mut self.stolen[cpu as usize]);
                self.irq_until[cpu as usize] = now + stolen;
            }
        }
        next
    }

    /// Does any task wait for a CPU?
    pub fn contended(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The next task that begins, and when.
    pub fn next_to_run(&mut self) -> Option<(u32, Ns)> {
        self.to_run.pop_front()
    }

    /// An interrupt on `cpu` that takes `cost`.
    pub fn interrupt(&mut self, now: Ns, cpu: u32, cost: Ns) {
        self.irq_time += cost;
        if self.idle & (1 << cpu) != 0 {
            let until = &mut self.irq_until[cpu as usize];
            *until = now.max(*until) + cost;
        } else {
            self.stolen[cpu as usize] += cost;
        }
    }

    /// Delays the next task on `cpu`.
    pub fn delay(&mut self, cpu: u32, time: Ns) {
        self.stolen[cpu as usize] += time;
    }

    /// Interrupt time charged to `cpu` since the last call.
    pub fn take_stolen(&mut self, cpu: u32) -> Ns {
        std::mem::take(&mut self.stolen[cpu as usize])
    }

    /// Time spent in interrupts so far.
    pub fn irq_time(&self) -> Ns {
        self.irq_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_gets_its_last_cpu_or_any_or_waits() {
        let mut c = Cpus::new(2);
        assert_eq!(c.make_ready(10, 7, 1, 5), Some(1));
        assert_eq!(c.next_to_run(), Some((7, 15)));
        assert_eq!(c.make_ready(10, 8, 1, 5), Some(0));
        assert_eq!(c.make_ready(10, 9, 0, 5), None);
        assert!(c.contended());
        assert_eq!(c.next_to_run(), Some((8, 15)));
        assert_eq!(c.release(20, 1, 3), Some(9));
        assert_eq!(c.next_to_run(), Some((9, 23)));
        assert_eq!(c.release(30, 1, 3), None);
        assert_eq!(c.next_to_run(), None);
    }

    #[test]
    fn interrupts_delay_running_and_next_task() {
        let mut c = Cpus::new(1);
        c.interrupt(100, 0, 10);
        c.interrupt(100, 0, 10);
        assert_eq!(c.make_ready(105, 1, 0, 0), Some(0));
        assert_eq!(c.next_to_run(), Some((1, 120)), "two interrupts, one after the other");
        c.interrupt(130, 0, 7);
        assert_eq!((c.take_stolen(0), c.take_stolen(0)), (7, 0));
        assert_eq!(c.irq_time(), 27);
    }
}
