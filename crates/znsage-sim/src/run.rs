// SPDX-License-Identifier: GPL-2.0-only
//! One run, from a spec to a result.

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::sync::Arc;

use crate::course::{self, Course};
use crate::device::params::Interface;
use crate::device::{ConventionalSsd, ParamError, VirtualZones, ZnsSsd};
use crate::host::slots::Slots;
use crate::host::{Host, Shape};
use crate::result::{self, Latency, Mapping, RunResult};
use crate::scale::{self, Device};
use crate::sim::replay::{Replay, ReplayError};
use crate::sim::{Latencies, Limits, Sim, Snapshot, Stuck};
use crate::spec::{Spec, SpecError, SystemKind, WorkloadKind};
use crate::system::media::Zoned;
use crate::system::stock::Stock;
use crate::system::znsage::Znsage;
use crate::system::znsplus::ZnsPlus;
use crate::system::zonelog::ZoneLog;
use crate::system::{SlotSource, System};
use crate::time::{Ns, SEC};
use crate::trace::{self, TraceError};
use crate::workload::oracle::Oracle;
use crate::workload::Workload;

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// A value of the spec.
    Spec(SpecError),
    /// A value of the device's parameter set.
    Device(ParamError),
    /// The trace of the workload.
    Trace(TraceError),
    /// The run began but could not go on.
    Stuck(Stuck),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            RunError::Spec(e) => e.fmt(f),
            RunError::Device(e) => e.fmt(f),
            RunError::Trace(e) => e.fmt(f),
            RunError::Stuck(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for RunError {}

impl From<SpecError> for RunError {
    fn from(e: SpecError) -> Self {
        RunError::Spec(e)
    }
}

impl From<ParamError> for RunError {
    fn from(e: ParamError) -> Self {
        RunError::Device(e)
    }
}

impl From<TraceError> for RunError {
    fn from(e: TraceError) -> Self {
        RunError::Trace(e)
    }
}

impl From<Stuck> for RunError {
    fn from(e: Stuck) -> Self {
        RunError::Stuck(e)
    }
}

fn refuse<T>(key: &str, what: impl Into<String>) -> Result<T, RunError> {
    Err(SpecError { key: key.into(), what: what.into() }.into())
}

/// Runs a spec.
///
/// # Errors
/// If [`check()`] refuses it, or the run could not go on.
pub fn run(spec: &Spec) -> Result<RunResult, RunError> {
    build(spec, Run(None)).map(|(result, _)| result)
}

/// The same, with its course. A replay of a trace has none.
///
/// # Errors
/// As [`run()`].
pub fn run_with_course(spec: &Spec) -> Result<(RunResult, Course), RunError> {
    build(spec, Run(None))
}

/// The same, and keeps the thousandths of the run that are done in `parts`. Replays of a
/// trace leave them at 0.
///
/// # Errors
/// As [`run()`].
pub fn run_watched(spec: &Spec, parts: Arc<AtomicU32>) -> Result<(RunResult, Course), RunError> {
    build(spec, Run(Some(parts)))
}

/// Does all the setup of a run and reports whether it could begin.
///
/// # Errors If the spec or the device's parameters are invalid, alone or
/// together.
pub fn check(spec: &Spec) -> Result<(), RunError> {
    build(spec, Check)
}

/// What to do with a system once it is built: systems differ in type.
trait Then {
    type Out;
    fn then<S: System>(self, spec: &Spec, device: &Device, s: S) -> Result<Self::Out, RunError>;
}

struct Run(Option<Arc<AtomicU32>>);

impl Then for Run {
    type Out = (RunResult, Course);
    fn then<S: System>(self, spec: &Spec, device: &Device, s: S) -> Result<Self::Out, RunError> {
        match spec.workload {
            WorkloadKind::Trace => Ok((replay(spec, device, s)?, Course::default())),
            _ => run_system(spec, device, s, self.0),
        }
    }
}

struct Check;

impl Then for Check {
    type Out = ();
    fn then<S: System>(self, spec: &Spec, _: &Device, s: S) -> Result<(), RunError> {
        let area = Area::new(spec, &s);
        match spec.workload {
            WorkloadKind::Trace => area.for_trace(spec).map(drop),
            _ => area.for_workload(spec, s.capacity(), recording(spec)?.as_deref()).map(drop),
        }
    }
}

fn build<T: Then>(spec: &Spec, next: T) -> Result<T::Out, RunError> {
    spec.check()?;
    let device = scale::device(spec)?;
    let params = &device.params;
    match spec.system {
        SystemKind::ZnSage => {
            let set = &spec.znsage;
            if params.interface == Interface::Conventional {
                let dev = ConventionalSsd::new(params, device.size, spec.seed)?;
                let zones = VirtualZones::new(dev, set.zone_size);
                let media = Zoned::new(zones, spec.run.shadow);
                return next.then(spec, &device, Znsage::new(media, spec)?);
            }
            if set.zone_size != 0 {
                return refuse("znsage.zone-size", "the device has zones of its own");
            }
            let media = zoned(spec, &device)?;
            next.then(spec, &device, Znsage::new(media, spec)?)
        }
        SystemKind::Stock | SystemKind::StockTrim => {
            if params.interface != Interface::Conventional {
                return refuse("device", format!("{} needs a conventional one", spec.system));
            }
            let dev = ConventionalSsd::new(params, device.size, spec.seed)?;
            let trim = spec.system == SystemKind::StockTrim;
            let system = Stock::new(dev, trim, &spec.published, spec.run.shadow)?;
            next.then(spec, &device, system)
        }
        SystemKind::ZnSwap | SystemKind::SmallZone | SystemKind::ZnSage2025 => {
            let media = zoned(spec, &device)?;
            let system = ZoneLog::new(spec.system, media, &spec.published, spec.host.cpus)?;
            next.then(spec, &device, system)
        }
        SystemKind::ZnsPlus => {
            let media = zoned(spec, &device)?;
            let system = ZnsPlus::new(media, &spec.published, params.zns_plus.is_some())?;
            next.then(spec, &device, system)
        }
    }
}

fn zoned(spec: &Spec, device: &Device) -> Result<Zoned, RunError> {
    if device.params.interface != Interface::Zoned {
        return refuse("device", format!("{} needs a zoned one", spec.system));
    }
    Ok(Zoned::new(ZnsSsd::new(&device.params, device.size, spec.seed)?, spec.run.shadow))
}

/// The slots of a system's swap area, and what the host tracks for it.
struct Area {
    total: u32,
    slots: Slots,
    count_cached: Option<(u32, u32)>,
    keeps_slots: bool,
}

impl Area {
    fn new(spec: &Spec, system: &impl System) -> Self {
        let keeps_slots = spec.keeps_slots();
        let (cpus, batch) = (spec.host.cpus as usize, spec.host.slot_batch as usize);
        match system.slots() {
            SlotSource::Kernel { total, discards } => {
                let slots = Slots::new(total, cpus, batch, discards);
                let slots = slots.with_search(spec.host.slot_search);
                Area { total, slots, count_cached: None, keeps_slots }
            }
            SlotSource::System { total, zones, zone_blocks } => {
                let slots = Slots::counted(total, cpus);
                let count_cached = Some((zones, zone_blocks));
                Area { total, slots, count_cached, keeps_slots }
            }
        }
    }

    fn host(self, shape: &Shape, shadow: bool) -> Host {
        let mut host = Host::new(shape, self.slots, shadow);
        if let Some((zones, zone_blocks)) = self.count_cached {
            host.count_cached(zones, zone_blocks);
        }
        if self.keeps_slots {
            host.keep_slots();
        }
        host
    }

    /// Pages the workload keeps on the device at the requested utilization, or those of
    /// the recorded programs that memory does not hold, if there are enough slots.
    fn for_workload(
        &self,
        spec: &Spec,
        capacity: u64,
        recorded: Option<&trace::Accesses>,
    ) -> Result<u64, RunError> {
        let Some(recorded) = recorded else {
            let live = (capacity as f64 * spec.utilization / 100.0) as u64;
            self.refuse_if_too_small("utilization", live, in_flight(spec))?;
            return Ok(live);
        };
        match recorded_live(spec, recorded) {
            0 => refuse("host.memory", "it holds all pages of the recorded programs"),
            live => self.refuse_if_too_small("size", live, in_flight(spec)).map(|()| live),
        }
    }

    /// The trace's needs, if there are enough slots.
    fn for_trace<'a>(&self, spec: &'a Spec) -> Result<(&'a Path, trace::Needs), RunError> {
        let Some(path) = &spec.load.trace else {
            return refuse("load.trace", "the workload `trace` wants the path of one");
        };
        let needs = trace::survey(path, trace::Reader::open(path)?, self.total)?;
        // The host of a replay has a thread for each CPU of the trace.
        let in_flight = 2 * BATCH * u64::from(needs.cpus);
        self.refuse_if_too_small("size", needs.most_used.into(), in_flight)?;
        Ok((path, needs))
    }

    /// Pages under writeback and slots being returned also need slots.
    fn refuse_if_too_small(&self, key: &str, live: u64, in_flight: u64) -> Result<(), RunError> {
        if live + in_flight <= u64::from(self.total) {
            return Ok(());
        }
        let total = self.total;
        refuse(
            key,
            format!(
                "needs {live} slots and {in_flight} in flight, but only {total} remain after \
                 over-provisioning: give a larger --size"
            ),
        )
    }
}

/// Slots of a batch that is being swapped out, or given back.
const BATCH: u64 = 64;

/// Slots that threads and CPUs may have under way besides those of the workload.
fn in_flight(spec: &Spec) -> u64 {
    BATCH * (u64::from(spec.host.threads) + u64::from(spec.host.cpus))
}

/// What the workload `recorded` plays; None for others.
fn recording(spec: &Spec) -> Result<Option<Arc<trace::Accesses>>, RunError> {
    match (spec.workload, &spec.load.trace) {
        (WorkloadKind::Recorded, Some(path)) => Ok(Some(Arc::new(trace::Accesses::open(path)?))),
        (WorkloadKind::Recorded, None) => {
            refuse("load.trace", "the workload `recorded` wants the path of a recording")
        }
        _ => Ok(None),
    }
}

/// Pages on the device when each thread is a program with those recorded, and memory is
/// full.
pub fn recorded_live(spec: &Spec, recorded: &trace::Accesses) -> u64 {
    let pages = u64::from(spec.host.threads) * u64::from(recorded.pages());
    pages.saturating_sub(spec.frames().into())
}

fn run_system<S: System>(
    spec: &Spec,
    device: &Device,
    mut system: S,
    watch: Option<Arc<AtomicU32>>,
) -> Result<(RunResult, Course), RunError> {
    let capacity = system.capacity();
    let area = Area::new(spec, &system);
    let recorded = recording(spec)?;
    let live = area.for_workload(spec, capacity, recorded.as_deref())?;
    if let Some(oracle) = Oracle::new(spec, spec.frames(), live as u32) {
        system.foresee(oracle);
    }
    let total = area.total;
    let w = match &recorded {
        Some(accesses) => Workload::recorded(spec, spec.frames(), accesses),
        None => Workload::new(spec, spec.frames(), live as u32),
    };
    let shape = Shape {
        cpus: spec.host.cpus,
        groups: w.groups.clone(),
        threads: w.threads.clone(),
        vmas: w.vmas.clone(),
        vma_groups: w.vma_groups.clone(),
        costs: spec.costs.clone(),
    };
    let has_requests = w.has_requests();
    let host = area.host(&shape, spec.run.shadow);
    let limits = Limits {
        warmup: (capacity as f64 * spec.run.warmup) as u64,
        measure: (capacity as f64 * spec.run.measure) as u64,
        time: (spec.run.seconds * SEC as f64) as Ns,
        lookahead: spec.host.lookahead,
        page_cluster: spec.host.page_cluster,
        every: (capacity / course::PARTS).max(1),
    };
    let mut sim = Sim::new(host, system, w, limits);
    if let Some(parts) = watch {
        sim.watch(parts);
    }
    let between = sim.run()?;
    let course = Course::of(&sim.course, &sim.latencies.major);
    let ended = Ended { h: &sim.h, s: &sim.s, latencies: &sim.latencies, between };
    let mut result = ended.result(spec, device, total, has_requests);
    if recorded.is_some() {
        result.utilization = 100.0 * live as f64 / capacity as f64;
    }
    Ok((result, course))
}

fn replay<S: System>(spec: &Spec, device: &Device, system: S) -> Result<RunResult, RunError> {
    let area = Area::new(spec, &system);
    let (path, needs) = area.for_trace(spec)?;
    let input = trace::Reader::open(path)?;
    let total = area.total;
    let shape = Shape {
        cpus: spec.host.cpus,
        groups: vec![needs.pages()],
        threads: vec![0; needs.cpus as usize],
        vmas: std::iter::once(0..needs.pages()).collect(),
        vma_groups: vec![0],
        costs: spec.costs.clone(),
    };
    let host = area.host(&shape, spec.run.shadow);
    let mut sim = Replay::new(host, system, input, needs, spec.load.recorded_times);
    let between = sim.run().map_err(|e| match e {
        ReplayError::Trace(e) => RunError::Trace(e),
        ReplayError::Stuck(e) => RunError::Stuck(e),
    })?;
    let ended = Ended { h: &sim.h, s: &sim.s, latencies: &sim.latencies, between };
    let mut result = ended.result(spec, device, total, false);
    let needs = sim.needs();
    result.utilization = 100.0 * f64::from(needs.most_used) / sim.s.capacity() as f64;
    result.pages = needs.most_used.into();
    Ok(result)
}

/// A finished run.
struct Ended<'a, S> {
    h: &'a Host,
    s: &'a S,
    latencies: &'a Latencies,
    /// When measuring began and ended.
    between: (Snapshot, Snapshot),
}

impl<S: System> Ended<'_, S> {
    fn result(self, spec: &Spec, device: &Device, total: u32, has_requests: bool) -> RunResult {
        let wrong = self.check();
        let (begin, end) = self.between;
        let grown = end.since(&begin);
        let (time, n) = (grown.at, grown.count);
        let swapped_in = n.major_faults + n.readahead;
        let (tenants, fault_latency) = result::tenants(&grown, self.latencies);
        let (stats, all) = (self.s.stats(), self.h.count);
        RunResult {
            system: spec.system,
            device: device.params.name.clone(),
            scaled: device.scaled,
            workload: spec.workload,
            utilization: spec.utilization,
            seed: spec.seed,
            capacity_blocks: self.s.capacity(),
            slots: u64::from(total),
            pages: self.h.pages.len() as u64,
            frames: u64::from(spec.frames()),
            seconds: crate::time::to_secs(time),
            before_seconds: crate::time::to_secs(begin.at),
            swap_out_mb_s: result::mb_s(n.swapped_out, time),
            swap_in_mb_s: result::mb_s(swapped_in, time),
            bandwidth_mb_s: result::mb_s(n.swapped_out + swapped_in, time),
            operations_s: result::per_second(n.operations, time),
            fault_latency,
            tenants,
            request_latency: has_requests.then(|| Latency::of(&self.latencies.requests)),
            waf: result::waf(&grown),
            cpu: result::cpu(&grown),
            locks: result::locks(&grown),
            mapping: Mapping {
                ram_bytes: stats.map_bytes,
                ram_per_page: stats.map_bytes as f64 / f64::from(total),
                device_per_page: stats.device_map_bytes as f64 / f64::from(total),
            },
            counts: result::counts(&grown),
            contents: result::contents(&stats.packed, &grown),
            page_operations: all.swapped_out
                + all.major_faults
                + all.readahead
                + stats.count.gc_blocks,
            events: self.h.queue.total(),
            wrong,
        }
    }

    /// Checks every invariant of host and system once nothing is in flight.
    fn check(&self) -> Vec<String> {
        let mut wrong = self.h.check_memory();
        wrong.extend(self.h.check_slots());
        wrong.extend(self.s.check(self.h).into_iter().map(|w| w.0));
        wrong
    }
}
