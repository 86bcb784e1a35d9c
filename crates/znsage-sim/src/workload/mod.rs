// SPDX-License-Identifier: GPL-2.0-only
//! The workloads: which thread touches which page when.
//!
//! They are closed loops: a thread makes its next access when the last one has
//! completed; requests may arrive at a rate of their own. First every thread
//! fills its part of the memory, page by page; then all begin.

mod arrivals;
pub mod dist;
pub mod oracle;
pub mod pattern;
mod recorded;
mod step;
pub mod store;

use std::sync::Arc;

use crate::rng;
use crate::spec::{Load, Spec, WorkloadKind};
use crate::time::Ns;
use crate::trace::Accesses;
use arrivals::Arrivals;
use dist::{Scatter, Zipf};
use pattern::{Order, Part};
use recorded::Program;
pub use step::{Access, Step};
use store::{Mix, Store, StoreShape};

enum Kind {
    Parts(Vec<Part>),
    Store(Box<Store>),
    Recorded(Vec<Program>),
}

/// A workload.
pub struct Workload {
    kind: Kind,
    arrivals: Option<Arrivals>,
    /// Pages of all processes.
    pub pages: u32,
    /// Mappings: their pages.
    pub vmas: Vec<std::ops::Range<u32>>,
    /// The cgroup that each mapping is charged to.
    pub vma_groups: Vec<u8>,
    /// The cgroup of each thread.
    pub threads: Vec<u8>,
    /// Frames of each cgroup.
    pub groups: Vec<u32>,
}

/// Threads of the cgroup that writes, among many.
const WRITERS: u32 = 16;

/// First random stream of the threads; 0 is the device's.
const STREAM: u64 = 1000;

impl Workload {
    /// The spec's workload on a host with `frames` of memory, with `live` pages on the
    /// device.
    pub fn new(spec: &Spec, frames: u32, live: u32) -> Self {
        let pages = frames + live;
        let threads = spec.host.threads;
        let mut w = Workload {
            kind: Kind::Parts(Vec::new()),
            arrivals: spec.load.rate.map(|rate| Arrivals::new(rate, threads, spec.seed)),
            pages,
            vmas: std::iter::once(0..pages).collect(),
            vma_groups: vec![0],
            threads: vec![0; threads as usize],
            groups: vec![frames],
        };
        match spec.workload {
            WorkloadKind::Uniform => w.own_parts(spec, |_| Order::Uniform),
            WorkloadKind::Sequential => w.own_parts(spec, |_| Order::Sequential),
            WorkloadKind::Zipf => w.shared(spec),
            WorkloadKind::Mixed => w.mixed(spec),
            WorkloadKind::Trace => unreachable!("a trace is replayed without a workload"),
            WorkloadKind::Recorded => unreachable!("it is made by recorded()"),
            WorkloadKind::TwoTenants => w.tenants(spec),
            WorkloadKind::Tenants => w.many_tenants(spec),
            WorkloadKind::Etc => w.store(spec, Mix::Etc, spec.load.zipf),
            WorkloadKind::YcsbA | WorkloadKind::YcsbB => {
                let mix =
                    if spec.workload == WorkloadKind::YcsbA { Mix::YcsbA } else { Mix::YcsbB };
                w.store(spec, mix, Some(spec.load.zipf.unwrap_or(store::YCSB_ZIPF)));
            }
        }
        w
    }

    /// A program for each thread of the host, each doing what was recorded, with `frames`
    /// of memory for all.
    pub fn recorded(spec: &Spec, frames: u32, accesses: &Arc<Accesses>) -> Self {
        let (threads, each) = (spec.host.threads, accesses.pages());
        let program = |i| Program::new(accesses.clone(), i, threads);
        Workload {
            kind: Kind::Recorded((0..threads).map(program).collect()),
            arrivals: None,
            pages: threads * each,
            vmas: (0..threads).map(|i| i * each..(i + 1) * each).collect(),
            vma_groups: vec![0; threads as usize],
            threads: vec![0; threads as usize],
            groups: vec![frames],
        }
    }

    /// Each thread has its own part of the pages, and its own mapping.
    fn own_parts(&mut self, spec: &Spec, order: impl Fn(u32) -> Order) {
        let threads = spec.host.threads;
        let all = self.pages;
        let parts = (0..threads).map(|t| {
            let (first, pages) = share(0, all, t, threads);
            part(&spec.load, first, pages, t, order(pages), spec.seed)
        });
        self.set_parts(parts.collect());
    }

    /// All threads access all pages, a few of them often.
    fn shared(&mut self, spec: &Spec) {
        let threads = spec.host.threads;
        self.kind = Kind::Parts(skewed(spec, 0..self.pages, 0..threads, 0));
    }

    /// Half of the threads have their own parts of half of the pages; the others share the
    /// rest, and access a few of them often.
    fn mixed(&mut self, spec: &Spec) {
        let (threads, half) = (spec.host.threads, self.pages / 2);
        let even = threads / 2;
        let parts = (0..even).map(|t| {
            let (first, pages) = share(0, half, t, even);
            part(&spec.load, first, pages, t, Order::Uniform, spec.seed)
        });
        self.set_parts(parts.collect());
        let rest = half..self.pages;
        self.vmas.push(rest.clone());
        self.vma_groups = vec![0; self.vmas.len()];
        let Kind::Parts(parts) = &mut self.kind else { unreachable!("just set") };
        parts.extend(skewed(spec, rest, even..threads, even as u16));
    }

    /// Half of the threads read in one cgroup, the others write in another; each cgroup
    /// has half of the memory.
    fn tenants(&mut self, spec: &Spec) {
        let threads = spec.host.threads;
        let readers = (threads / 2).max(1);
        let half = self.pages / 2;
        self.groups = vec![self.groups[0] / 2, self.groups[0] - self.groups[0] / 2];
        self.threads = (0..threads).map(|t| u8::from(t >= readers)).collect();
        let all = self.pages;
        let parts = (0..threads).map(|t| {
            let reads = t < readers;
            let (first, pages) = if reads {
                share(0, half, t, readers)
            } else {
                share(half, all - half, t - readers, threads - readers)
            };
            let mut part = part(&spec.load, first, pages, t, Order::Uniform, spec.seed);
            part.writes = if reads { 0 } else { u64::MAX };
            part
        });
        self.set_parts(parts.collect());
    }

    /// The first threads write in a cgroup, which has half of the pages and of the memory. Each
    /// of the others has a cgroup of its own, and does what the load says.
    fn many_tenants(&mut self, spec: &Spec) {
        let writers = WRITERS.min(spec.host.threads - 1);
        let others = spec.host.threads - writers;
        let of_others = |all: u32, i| share(all / 2, all - all / 2, i, others);
        let (pages, frames) = (self.pages, self.groups[0]);
        self.groups = vec![frames / 2];
        self.groups.extend((0..others).map(|i| of_others(frames, i).1));
        self.threads = vec![0; writers as usize];
        self.threads.extend((1..=others).map(|group| group as u8));
        let parts = (0..spec.host.threads).map(|t| {
            let writes = t < writers;
            let (first, pages) = match writes {
                true => share(0, pages / 2, t, writers),
                false => of_others(pages, t - writers),
            };
            let mut part = part(&spec.load, first, pages, t, Order::Uniform, spec.seed);
            if writes {
                (part.writes, part.think) = (u64::MAX, 0);
            }
            part
        });
        self.set_parts(parts.collect());
    }

    /// Threads that each have a mapping of their own.
    fn set_parts(&mut self, parts: Vec<Part>) {
        self.vmas = parts.iter().map(|p| p.first..p.first + p.pages).collect();
        self.vma_groups.clone_from(&self.threads);
        self.kind = Kind::Parts(parts);
    }

    fn store(&mut self, spec: &Spec, mix: Mix, zipf: Option<f64>) {
        let shape = StoreShape {
            mix,
            pages: self.pages,
            threads: spec.host.threads,
            zipf,
            get_writes: spec.load.get_writes,
            service: spec.load.service,
            seed: rng::mix(spec.seed ^ STREAM),
        };
        self.kind = Kind::Store(Box::new(Store::new(&shape)));
    }

    /// What a thread does next.
    #[inline]
    pub fn next(&mut self, thread: u32) -> Step {
        match &mut self.kind {
            Kind::Parts(parts) => parts[thread as usize].next(),
            Kind::Store(store) => store.next(thread as usize),
            Kind::Recorded(programs) => programs[thread as usize].next(),
        }
    }

    /// From the arrival of a thread's request to that of its next one; None if it begins
    /// when the last has ended.
    pub fn gap(&mut self, thread: u32) -> Option<Ns> {
        self.arrivals.as_mut().map(|arrivals| arrivals.gap(thread))
    }

    /// Of each page, the accesses of all threads from one of it to the next, on average.
    ///
    /// # Panics
    /// If it is a store or recorded.
    pub fn means(&self) -> Vec<f64> {
        let Kind::Parts(parts) = &self.kind else { panic!("there are no such numbers") };
        let mut rates = vec![0.0; self.pages as usize];
        for part in parts {
            part.add_rates(1.0 / parts.len() as f64, &mut rates);
        }
        rates.iter().map(|rate| 1.0 / rate).collect()
    }

    /// Does it have requests, whose latency is recorded?
    pub fn has_requests(&self) -> bool {
        matches!(self.kind, Kind::Store(_))
    }
}

/// `threads` that access all `pages`, which are mapping `vma`, a few of them often.
fn skewed(
    spec: &Spec,
    pages: std::ops::Range<u32>,
    threads: std::ops::Range<u32>,
    vma: u16,
) -> Vec<Part> {
    let (first, nr) = (pages.start, pages.end - pages.start);
    let s = spec.load.zipf.unwrap_or(store::YCSB_ZIPF);
    let order = Order::Zipf(Zipf::new(u64::from(nr), s), Scatter::new(u64::from(nr), spec.seed));
    let of = threads.clone();
    let parts = threads.map(|t| {
        let mut part = part(&spec.load, first, nr, t, order.clone(), spec.seed);
        let (first, pages) = share(first, nr, t - of.start, of.end - of.start);
        part.fill = first..first + pages;
        part.vma = vma;
        part
    });
    parts.collect()
}

/// The `i`-th of `n` shares of `pages` from `first` on.
fn share(first: u32, pages: u32, i: u32, n: u32) -> (u32, u32) {
    let at = |i: u32| (u64::from(pages) * u64::from(i) / u64::from(n)) as u32;
    (first + at(i), at(i + 1) - at(i))
}

fn part(load: &Load, first: u32, pages: u32, thread: u32, order: Order, seed: u64) -> Part {
    let rng = rng::stream(seed, STREAM + u64::from(thread));
    let mut part = Part::new(first, pages, thread as u16, order, rng);
    part.writes = pattern::threshold(load.write_ratio);
    part.think = load.think;
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(kind: WorkloadKind) -> Workload {
        let mut spec = Spec { workload: kind, ..Spec::default() };
        spec.host.threads = 5;
        Workload::new(&spec, 300, 1700)
    }

    #[test]
    fn every_workload_fills_every_page_once() {
        for kind in WorkloadKind::ALL.into_iter().filter(|k| !k.is_from_file()) {
            let mut w = workload(kind);
            let mut seen = vec![0u8; w.pages as usize];
            for t in 0..5 {
                while let Step::Access(a) = w.next(t) {
                    assert!(a.write && w.vmas[a.vma as usize].contains(&a.page));
                    seen[a.page as usize] += 1;
                }
            }
            assert!(seen.iter().all(|&n| n == 1), "{kind:?}");
        }
    }

    #[test]
    fn many_tenants_have_a_cgroup_each() {
        let mut spec = Spec { workload: WorkloadKind::Tenants, ..Spec::default() };
        (spec.host.threads, spec.load.write_ratio) = (WRITERS + 3, 0.0);
        let mut w = Workload::new(&spec, 300, 1700);
        assert_eq!(w.groups, [150, 50, 50, 50]);
        assert_eq!(w.threads[WRITERS as usize - 1..], [0, 1, 2, 3]);
        for t in 0..WRITERS + 3 {
            while w.next(t) != Step::Filled {}
            let Step::Access(a) = w.next(t) else { panic!("filled twice") };
            assert_eq!((a.write, a.page < 1000), (t < WRITERS, t < WRITERS));
        }
    }

    #[test]
    fn tenants_keep_to_themselves() {
        let mut w = workload(WorkloadKind::TwoTenants);
        assert_eq!(w.groups, [150, 150]);
        assert_eq!(w.threads, [0, 0, 1, 1, 1]);
        for t in 0..5 {
            while w.next(t) != Step::Filled {}
            for _ in 0..1000 {
                let Step::Access(a) = w.next(t) else { panic!("filled twice") };
                assert_eq!(a.write, t >= 2);
                assert_eq!(a.page >= 1000, t >= 2);
            }
        }
    }

    #[test]
    fn a_mix_is_even_in_one_half_and_skewed_in_the_other() {
        let mut w = workload(WorkloadKind::Mixed);
        let mut hits = vec![0u32; 2000];
        for t in 0..5 {
            while w.next(t) != Step::Filled {}
            for _ in 0..20_000 {
                let Step::Access(a) = w.next(t) else { panic!("filled twice") };
                assert_eq!(a.page >= 1000, t >= 2);
                assert!(w.vmas[a.vma as usize].contains(&a.page));
                hits[a.page as usize] += 1;
            }
        }
        let most = |half: &[u32]| *half.iter().max().unwrap();
        let (even, skewed) = (most(&hits[..1000]), most(&hits[1000..]));
        // 40 and 60 on average; the first of 1,000 ranks has an eighth of 60,000.
        assert!(even < 80 && skewed > 5000, "{even} {skewed}");
    }

    #[test]
    fn threads_draw_for_themselves() {
        let (mut a, mut b) = (workload(WorkloadKind::Uniform), workload(WorkloadKind::Uniform));
        for t in [1, 2] {
            while a.next(t) != Step::Filled {}
            while b.next(t) != Step::Filled {}
        }
        // Thread 2's accesses do not change thread 1's.
        for _ in 0..100 {
            b.next(2);
            assert_eq!(a.next(1), b.next(1));
        }
    }
}
