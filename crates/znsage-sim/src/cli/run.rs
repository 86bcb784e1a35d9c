// SPDX-License-Identifier: GPL-2.0-only
//! `znsage-sim run`: one run, and its result as text.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::course::Course;
use crate::result::{ContentsResult, Latency, RunResult};
use crate::run::{self, run_watched};
use crate::scale::Scaled;
use crate::spec::{SystemKind, WorkloadKind};
use crate::sweep::{Runs, Step, Stored};
use crate::system::SystemCounters;
use crate::time::BLOCK;
use crate::{check, trace, RunError, Spec};

use super::args::{RunArgs, SpecArgs};
use super::progress::Progress;
use super::{units, usage, Error, Outcome, Result, Status};

/// Between looks at a run of another process.
const LOOK: Duration = Duration::from_millis(200);

pub fn simulate(args: &RunArgs) -> Result<Outcome> {
    let mut spec = args.what.spec(args.system.as_deref(), args.policy.as_deref())?;
    if let Some(path) = &args.policy_source {
        if spec.system != SystemKind::ZnSage {
            return Err(usage(format!(
                "--policy-source: {} takes no policy in C; use --system znsage",
                spec.system
            )));
        }
        spec.znsage.policy_source = Some(path.clone());
    }
    let begun = Instant::now();
    let stored = match &args.what.runs {
        Some(directory) => kept(&Runs::new(directory), &spec)?,
        None => Stored::new(&spec, Ok(watched(&spec).map_err(|e| failed(&e))?)),
    };
    let Some(result) = &stored.result else {
        return Err(usage(stored.error.unwrap_or_default()));
    };
    let mut text = to_text(result);
    let took = begun.elapsed().as_secs_f64();
    let speed = result.page_operations as f64 / took / 1e6;
    let _ = match args.what.runs {
        None => writeln!(
            text,
            "simulated in {took:.1} s, {speed:.2} million page operations per second"
        ),
        Some(_) => Ok(()),
    };
    let status = if result.wrong.is_empty() { Status::Fine } else { Status::Wrong };
    let json = serde_json::to_value(&stored).expect("a result is JSON");
    Ok(Outcome { text, json, status })
}

/// The result of a directory, which gets it if it lacks it.
fn kept(runs: &Runs, spec: &Spec) -> Result<Stored> {
    let wrong = |e: crate::sweep::RunsError| Error { status: Status::Io, message: e.to_string() };
    while runs.step(spec, || watched(spec)).map_err(wrong)? == Step::Busy {
        thread::sleep(LOOK);
    }
    runs.read(&runs.file(spec)).map_err(wrong)
}

/// Runs it, and shows on standard error how far it is.
fn watched(spec: &Spec) -> std::result::Result<(RunResult, Course), RunError> {
    let parts = Arc::new(AtomicU32::new(0));
    let (said, ended) = mpsc::channel::<()>();
    let seen = Arc::clone(&parts);
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut line = Progress::new();
            // Until the sender is dropped.
            while ended.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
                line.show(|| match seen.load(Ordering::Relaxed) {
                    0 => "simulating".into(),
                    parts => format!("simulating: {} %", parts / 10),
                });
            }
        });
        let result = run_watched(spec, parts);
        drop(said);
        result
    })
}

impl SpecArgs {
    /// The spec of a system; None for the one in the file, or the default.
    pub fn spec(&self, system: Option<&str>, policy: Option<&str>) -> Result<Spec> {
        let wrong = |e: String| usage(e);
        let mut spec = match &self.spec {
            Some(path) => {
                let text = fs::read_to_string(path)
                    .map_err(|e| wrong(format!("{}: {}", path.display(), e)))?;
                Spec::parse(&text).map_err(|e| wrong(format!("{}: {e}", path.display())))?
            }
            None => Spec::default(),
        };
        if let Some(system) = system {
            spec.set("system", system).map_err(|e| wrong(format!("--{e}")))?;
        }
        if self.device.is_none() && self.spec.is_none() {
            spec.device = device_for(spec.system).to_string();
        }
        let named = [
            ("device", &self.device),
            ("size", &self.size),
            ("workload", &self.workload),
            ("utilization", &self.utilization),
            ("seed", &self.seed),
        ];
        for (key, value) in named {
            if let Some(value) = value {
                spec.set(key, value).map_err(|e| wrong(format!("--{e}")))?;
            }
        }
        if let Some(path) = &self.trace {
            spec.workload = match trace::Accesses::is_one(path) {
                true => WorkloadKind::Recorded,
                false => WorkloadKind::Trace,
            };
            spec.load.trace = Some(path.clone());
        }
        if let (WorkloadKind::Trace, Some(_)) = (spec.workload, &self.utilization) {
            return Err(wrong("--utilization: the trace determines it".into()));
        }
        if let Some(policy) = policy {
            let of = if spec.system == SystemKind::ZnSage { "znsage" } else { "published" };
            spec.set(&format!("{of}.policy"), policy)
                .map_err(|e| wrong(format!("--policy: {}", e.what)))?;
        }
        for pair in &self.set {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| wrong(format!("--set {pair}: KEY=VALUE expected")))?;
            spec.set(key, value).map_err(|e| wrong(format!("--set {e}")))?;
        }
        if let (Some(path), None, None) = (&self.trace, &self.size, &self.spec) {
            if !self.sets_size() {
                spec.size = Some(size_for(path, &spec)?);
            }
        }
        Ok(spec)
    }

    fn sets_size(&self) -> bool {
        self.set.iter().any(|pair| pair.starts_with("size="))
    }
}

fn failed(e: &RunError) -> Error {
    let status = match e {
        RunError::Stuck(_) => Status::Wrong,
        _ => Status::Usage,
    };
    Error { status, message: e.to_string() }
}

/// Sizes tried for a trace, the last 30 times as large as the first.
const TRIES: u32 = 15;

/// The size of a device that has the slots of a trace after over-provisioning, or on
/// which recorded programs take as much as the spec says.
fn size_for(path: &Path, spec: &Spec) -> Result<u64> {
    let wrong = |e: trace::TraceError| usage(e);
    if spec.workload == WorkloadKind::Recorded {
        let live = run::recorded_live(spec, &trace::Accesses::open(path).map_err(wrong)?);
        return Ok((live as f64 * BLOCK as f64 * 100.0 / spec.utilization.max(1.0)) as u64);
    }
    let trace = trace::Reader::open(path).map_err(wrong)?;
    let held_back = match spec.system {
        SystemKind::ZnSage => spec.znsage.over_provisioning,
        _ => spec.published.over_provisioning,
    };
    let slots = f64::from(trace.slots()) * BLOCK as f64;
    least_size(spec, (slots / (1.0 - held_back / 100.0)) as u64)
}

/// The least size from `size` on, by quarters, that the system takes: pages in flight need
/// slots too, and each system needs some zones.
fn least_size(spec: &Spec, size: u64) -> Result<u64> {
    let mut spec = Spec { size: Some(size), ..spec.clone() };
    for _ in 0..TRIES {
        let size = spec.size.unwrap_or_default();
        match check(&spec) {
            Ok(()) => return Ok(size),
            Err(RunError::Trace(e)) => return Err(failed(&RunError::Trace(e))),
            Err(_) => spec.size = Some(size + size / 4),
        }
    }
    check(&spec).map_err(|e| failed(&e)).map(|()| spec.size.unwrap_or_default())
}

/// Among zoned devices the one with small zones, so that a small device has enough.
fn device_for(system: SystemKind) -> &'static str {
    match system {
        SystemKind::Stock | SystemKind::StockTrim => "conventional",
        SystemKind::ZnsPlus => "zns-plus",
        // It appends single pages, which those with small zones do not take.
        SystemKind::ZnSwap => "zn540",
        _ => "hynix",
    }
}

fn to_text(r: &RunResult) -> String {
    let mut text = format!(
        "{} on {}, {}, {:.1} % of {} full\n",
        r.system,
        r.device,
        r.workload,
        r.utilization,
        units::size(r.capacity_blocks * BLOCK),
    );
    let mut line = |label: &str, what: String| {
        let _ = writeln!(text, "{label:<12}{what}");
    };
    if let Some(s) = &r.scaled {
        line("scaled", scaled(s));
    }
    line("measured", format!("{:.3} s, after {:.3} s", r.seconds, r.before_seconds));
    line(
        "swapped",
        format!(
            "out {:.1} MB/s, in {:.1} MB/s; {:.0} operations/s",
            r.swap_out_mb_s, r.swap_in_mb_s, r.operations_s
        ),
    );
    let w = &r.waf;
    line(
        "WAF",
        format!(
            "{:.3}: pages {}, GC {:.3}, padding {:.3}, mappings {:.3}, device {:.3}",
            w.total,
            // With pages that shrink, three digits as the others.
            if w.host == 1.0 { "1".into() } else { format!("{:.3}", w.host) },
            w.gc,
            w.padding,
            w.metadata,
            w.device
        ),
    );
    if let Some(c) = &r.contents {
        contents(&mut line, c, &r.counts.system);
    }
    line("fault", percentiles(&r.fault_latency));
    if let Some(latency) = &r.request_latency {
        line("request", percentiles(latency));
    }
    line(
        "CPU",
        format!(
            "threads {:.1} %, GC {:.2} %, interrupts {:.1} %; {:.1} ns waiting for locks per page",
            r.cpu.threads, r.cpu.gc, r.cpu.irq, r.locks.wait_ns_per_page
        ),
    );
    line(
        "mapping",
        format!(
            "{:.2} bytes per page in RAM, {:.2} on the device",
            r.mapping.ram_per_page, r.mapping.device_per_page
        ),
    );
    for wrong in &r.wrong {
        line("wrong", wrong.to_string());
    }
    text
}

/// What pages took, for people.
fn contents(line: &mut impl FnMut(&str, String), c: &ContentsResult, n: &SystemCounters) {
    line(
        "flash",
        format!(
            "{:.0} bytes a page swapped out, {:.0} of them the page itself",
            c.flash_bytes_per_page, c.record_bytes_per_page
        ),
    );
    line(
        "live",
        format!(
            "{} pages take {}; the device holds {:.2} times as many of them",
            c.live_pages,
            units::size(c.live_bytes),
            c.effective_capacity
        ),
    );
    if n.refused_pages > 0 {
        line("full", format!("{} pages refused: the log had no room", n.refused_pages));
    }
}

/// What the scaler did, for people.
fn scaled(s: &Scaled) -> String {
    format!(
        "{} zones of {} for the device's {} of {}; whole-zone times x {:.4}",
        s.zones,
        units::size(s.zone_bytes),
        s.of_zones,
        units::size(s.of_zone_bytes),
        s.times()
    )
}

fn percentiles(l: &Latency) -> String {
    let [p50, p99, p99_9, max] = [l.p50_us, l.p99_us, l.p999_us, l.max_us].map(units::micros);
    format!("p50 {p50}, p99 {p99}, p99.9 {p99_9}, max {max}")
}
