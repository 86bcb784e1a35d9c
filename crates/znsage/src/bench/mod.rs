// SPDX-License-Identifier: GPL-2.0-only
//! `znsage bench`: a worker process with a memory limit swaps. This process stays
//! outside of the limit, gives orders and reads counters.

mod access;
mod arena;
mod cgroup;
mod child;
mod pattern;
mod phase;
mod plan;
mod protocol;
mod record;
mod report;
mod sampler;
pub mod worker;

use std::time::{Duration, Instant, SystemTime};

use znsage_sim::stats;

use crate::cli::BenchArgs;
use crate::counters;
use crate::error::{Error, Kind, Result};
use crate::machine::Machine;
use crate::swaps::{self, Area};
use crate::sys::Sys;
pub use cgroup::lookup;
use cgroup::Cgroup;
use child::Worker;
use plan::Plan;
pub use protocol::Latency;
use protocol::{Event, Order, Setup};
pub use record::recorded;
use record::Recorder;
pub use report::{Config, Phase, Report};
pub use sampler::Totals;
use sampler::{Sampler, Snapshot};
use znsage_sim::cli::progress::Progress;

const SAMPLE: Duration = Duration::from_millis(500);

/// Longest wait before checking clocks and signals again.
const LOOK: Duration = Duration::from_millis(50);

/// Attempts to reach the requested utilization.
const ADJUSTMENTS: u32 = 4;

struct Bench<'a> {
    sys: &'a dyn Sys,
    args: &'a BenchArgs,
    page: u64,
    plan: Plan,
    // Dropped in this order: the worker must leave the group before its removal.
    worker: Worker,
    group: Option<Cgroup<'a>>,
    sampler: Sampler<'a>,
    recorder: Option<Recorder>,
    progress: Progress,
    /// Lowest free swap space observed.
    swap_left: Option<u64>,
    /// Pages filled now.
    pages: u64,
    phases: Vec<Phase>,
    corrupt: Vec<String>,
    corrupt_pages: u64,
}

pub fn run(sys: &dyn Sys, args: &BenchArgs, page: u64) -> Result<Report> {
    let areas = swaps::areas(sys);
    let device = Totals::of(&counters::all(sys)?);
    let plan = plan::plan(args, device.as_ref(), page)?;
    plan::check_space(&plan, &areas, swaps::available_memory(sys)?, page)?;
    let threads = args
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get() as u32));
    let seed = args.seed.unwrap_or_else(|| {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        now.as_nanos() as u64
    });
    let sampler = Sampler::new(sys, args.samples.as_deref(), page)?;
    let recorder = match &args.trace {
        Some(path) => Some(Recorder::start(sys, path, &counters::all(sys)?, page)?),
        None => None,
    };
    let group = match plan.limit {
        Some(limit) => Some(Cgroup::create(sys, limit, args.zswap_limit)?),
        None => None,
    };
    let worker = Worker::start(&Setup {
        cgroup_procs: group.as_ref().map(Cgroup::procs),
        max_pages: plan.max_pages,
        page_bytes: page,
        threads,
        seed,
        huge_pages: args.thp,
        compressible: args.compressible,
    })?;
    let mut bench = Bench {
        sys,
        args,
        page,
        plan,
        worker,
        group,
        sampler,
        recorder,
        progress: Progress::new(),
        swap_left: None,
        pages: 0,
        phases: Vec::new(),
        corrupt: Vec::new(),
        corrupt_pages: 0,
    };
    bench.work()?;
    if let Some(recorder) = bench.recorder.take() {
        recorder.finish()?;
    }
    let config = Config {
        size_bytes: bench.pages * page,
        memory_limit_bytes: bench.plan.limit,
        threads,
        pattern: args.pattern.name().to_string(),
        write_ratio: args.pattern.write_ratio(args.write_ratio),
        utilization_percent: args.utilization,
        seed,
        thp: args.thp,
        compressible: args.compressible,
        page_cluster: sys
            .read("/proc/sys/vm/page-cluster")
            .ok()
            .and_then(|text| text.trim().parse().ok()),
    };
    Ok(bench.report(areas, config))
}

impl Bench<'_> {
    fn work(&mut self) -> Result<()> {
        while !matches!(self.next_event()?, Some(Event::Ready)) {}
        if let Some(held) = self.group.as_ref().and_then(Cgroup::held) {
            self.plan.make_room(held, self.page);
        }
        let fill = Order::Resize { pages: self.plan.pages };
        self.phase("fill", &fill, true)?;
        self.pages = self.plan.pages;
        self.adjust()?;
        if !self.args.fill_only {
            if self.args.warmup > 0.0 {
                let warmup = self.access(self.args.warmup);
                self.phase("warmup", &warmup, false)?;
                self.adjust()?;
            }
            let access = self.access(self.args.seconds);
            self.phase(self.args.pattern.name(), &access, true)?;
        }
        if self.args.verify {
            self.phase("verify", &Order::Verify, true)?;
        }
        Ok(())
    }

    fn access(&self, seconds: f64) -> Order {
        Order::Access { pattern: self.args.pattern, write_ratio: self.args.write_ratio, seconds }
    }

    /// Grows or shrinks the memory until the device has the requested utilization.
    fn adjust(&mut self) -> Result<()> {
        for _ in 0..ADJUSTMENTS {
            let Some(device) = self.look().device else {
                return Ok(());
            };
            let Some(pages) = plan::adjusted(&self.plan, self.pages, device.slots_used) else {
                return Ok(());
            };
            self.phase("adjust", &Order::Resize { pages }, false)?;
            self.pages = pages;
        }
        Ok(())
    }

    fn look(&self) -> Snapshot {
        self.sampler.look(self.group.as_ref())
    }

    /// Waits a moment for an event. The end of the worker and Ctrl-C are errors.
    fn next_event(&mut self) -> Result<Option<Event>> {
        if self.sys.interrupted() {
            return Err(Error::interrupted());
        }
        match self.worker.event(LOOK) {
            Ok(Some(Event::Failed { message })) => {
                Err(Error::new(Kind::Kernel, format!("the worker: {message}")))
            }
            Ok(event) => Ok(event),
            // Ctrl-C reaches the worker, too, which may end first.
            Err(_) if self.sys.interrupted() => Err(Error::interrupted()),
            Err(status) => {
                let kills = self.group.as_ref().map_or(0, Cgroup::oom_kills);
                Err(child::why_ended(status, kills, self.swap_left))
            }
        }
    }

    /// Runs a phase and watches it.
    fn phase(&mut self, name: &str, order: &Order, report: bool) -> Result<()> {
        let before = self.look();
        let measures = matches!(order, Order::Access { .. }) && report;
        self.mark(if measures { "measure" } else { name }, &before);
        let mut watch = Watch::new(&before);
        self.worker.order(order);
        let outcome = loop {
            match self.next_event()? {
                Some(Event::Done(outcome)) => break outcome,
                Some(Event::Tick { ops }) => watch.ops = ops,
                Some(Event::Corrupt { what }) => self.corrupt.push(what),
                Some(Event::Ready | Event::Failed { .. }) | None => {}
            }
            if watch.due() {
                let now = self.look();
                self.sampler.record(name, watch.ops, &now)?;
                watch.note(&now);
                let left = swaps::areas(self.sys).iter().map(Area::free_bytes).sum();
                self.swap_left = Some(self.swap_left.map_or(left, |least| least.min(left)));
                if self.rewritten(order, &before, &now) {
                    self.worker.order(&Order::Stop);
                }
            }
            self.show(name, order, &watch);
        };
        let after = self.look();
        if measures {
            self.mark("end", &after);
        }
        self.sampler.record(name, outcome.ops, &after)?;
        self.corrupt_pages += outcome.corrupt;
        if report {
            let mean = watch.mean_utilization();
            let phase = Phase::new(name, self.page, outcome, &before, &after, mean);
            self.phases.push(phase);
        }
        Ok(())
    }

    fn mark(&self, name: &str, now: &Snapshot) {
        if let Some(recorder) = &self.recorder {
            recorder.mark(name, now.device.as_ref());
        }
    }

    /// True if the device or, on stock swap, the area was written as often as --rewrites
    /// asks.
    fn rewritten(&self, order: &Order, before: &Snapshot, now: &Snapshot) -> bool {
        let (Some(times), Order::Access { .. }) = (self.args.rewrites, order) else {
            return false;
        };
        let (written, all) = match (&before.device, &now.device) {
            (Some(before), Some(now)) => (now.since(before).written(), now.blocks_total),
            _ => {
                let bytes: u64 = swaps::areas(self.sys).iter().map(|area| area.bytes).sum();
                (now.pages_out.saturating_sub(before.pages_out), bytes / self.page)
            }
        };
        all > 0 && written as f64 >= times * all as f64
    }

    fn show(&mut self, name: &str, order: &Order, watch: &Watch) {
        let seconds = watch.start.elapsed().as_secs_f64();
        let rate = watch.ops as f64 / seconds.max(0.001);
        let mib_per_s = rate * self.page as f64 / f64::from(1 << 20);
        let whole = match order {
            Order::Resize { pages } => pages.saturating_sub(self.pages),
            _ => self.pages,
        };
        self.progress.show(|| match order {
            Order::Access { seconds: all, .. } => {
                format!("{name}: {seconds:.0} of {all:.0} s, {rate:.0} operations/s")
            }
            _ => format!("{name}: {} %, {mib_per_s:.1} MiB/s", 100 * watch.ops / whole.max(1)),
        });
    }

    fn report(self, areas: Vec<Area>, config: Config) -> Report {
        let ours = areas.iter().any(|a| a.name().starts_with("znsage"));
        Report {
            version: 1,
            system: match (areas.is_empty(), ours) {
                (true, _) => "none",
                (_, true) => "znsage",
                _ => "stock",
            }
            .to_string(),
            kernel: self.sys.release(),
            machine: Machine::look(self.sys),
            swaps: areas,
            config,
            phases: self.phases,
            corrupt_pages: self.corrupt_pages,
            corrupt: self.corrupt,
        }
    }
}

/// Observations during a phase.
struct Watch {
    start: Instant,
    next: Instant,
    ops: u64,
    utilizations: Vec<f64>,
}

impl Watch {
    fn new(before: &Snapshot) -> Self {
        let mut watch = Watch {
            start: Instant::now(),
            next: Instant::now() + SAMPLE,
            ops: 0,
            utilizations: Vec::new(),
        };
        watch.note(before);
        watch
    }

    fn due(&mut self) -> bool {
        let now = Instant::now();
        let due = now >= self.next;
        if due {
            // Not `next + SAMPLE`: do not catch up after a stall.
            self.next = now + SAMPLE;
        }
        due
    }

    fn note(&mut self, now: &Snapshot) {
        self.utilizations.extend(now.device.and_then(|d| d.utilization()));
    }

    fn mean_utilization(&self) -> Option<f64> {
        stats::mean(&self.utilizations)
    }
}
