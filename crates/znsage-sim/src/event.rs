// SPDX-License-Identifier: GPL-2.0-only
//! The one queue of events: what happens next, and when.
//!
//! Events at the same time come in the order they were added, so a run is the
//! same on every machine.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::time::Ns;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A task continues on its CPU.
    Task(u32),
    /// An event of the system (the end of a command, a timer); the system chose the
    /// number.
    System(u64),
}

struct Entry<E> {
    at: Ns,
    seq: u64,
    event: E,
}

impl<E> Entry<E> {
    /// One number, which is compared without a branch: which of two events is earlier is not
    /// foreseeable.
    fn key(&self) -> u128 {
        u128::from(self.at) << 64 | u128::from(self.seq)
    }
}

// The heap pops the largest entry, so earlier compares as larger.
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.seq == other.seq
    }
}

impl<E> Eq for Entry<E> {}

/// Events in order of time.
pub struct Queue<E = Event> {
    heap: BinaryHeap<Entry<E>>,
    seq: u64,
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Queue { heap: BinaryHeap::new(), seq: 0 }
    }
}

impl<E> Queue<E> {
    /// Adds an event.
    pub fn push(&mut self, at: Ns, event: E) {
        self.seq += 1;
        self.heap.push(Entry { at, seq: self.seq, event });
    }

    /// Takes the next event.
    pub fn pop(&mut self) -> Option<(Ns, E)> {
        self.heap.pop().map(|e| (e.at, e.event))
    }

    /// Events added so far.
    pub fn total(&self) -> u64 {
        self.seq
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_ordered_by_time_then_insertion() {
        let mut q = Queue::default();
        for (i, at) in [5, 3, 5, 1, 3, 5].into_iter().enumerate() {
            q.push(at, Event::Task(i as u32));
        }
        let order: Vec<_> = std::iter::from_fn(|| q.pop()).collect();
        let want = [(1, 3), (3, 1), (3, 4), (5, 0), (5, 2), (5, 5)];
        assert_eq!(order, want.map(|(at, i)| (at, Event::Task(i))));
        assert_eq!(q.total(), 6);
    }
}
