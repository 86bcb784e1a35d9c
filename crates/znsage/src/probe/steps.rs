// SPDX-License-Identifier: GPL-2.0-only
//! The steps of a probe, one after the other.

use super::plan::{Layout, Plan};
use super::ready::Ready;
use super::record::Probe;
use super::work::Work;
use super::{measure, sizes};
use crate::error::{Error, Result};
use crate::sys::Sys;

/// Seconds to start fio.
const START: f64 = 1.0;

/// MiB/s, to estimate how long a device without zones takes.
const USUAL: f64 = 300.0;

/// Name, seconds, function.
type Step = (&'static str, f64, fn(&mut Work, &mut Probe) -> Result<()>);

fn steps(plan: &Plan, ready: &Layout) -> Vec<Step> {
    if ready.count == 1 {
        let bytes = ready.capacity;
        let all = bytes as f64 / (1 << 20) as f64 / USUAL;
        let sizes = plan.sizes(bytes).len() as f64;
        return vec![
            ("writing all of it", START + all, sizes::fill),
            (
                "zones of many sizes",
                sizes * (START + all * plan.part as f64 / 100.0),
                sizes::measure,
            ),
        ];
    }
    let points = |n: usize| START + n as f64 * plan.seconds;
    vec![
        ("writes by their size", points(plan.requests.len()), measure::requests),
        ("writes by the number of zones", points(plan.zones.len()), measure::zones),
    ]
}

pub fn estimate(plan: &Plan, layout: &Layout) -> f64 {
    steps(plan, layout).iter().map(|step| step.1).sum()
}

pub fn all(sys: &dyn Sys, ready: &Ready, probe: &mut Probe) -> Result<()> {
    let mut work = Work::new(sys, ready, &probe.engine, estimate(&ready.plan, &ready.layout));
    for (name, seconds, measure) in steps(&ready.plan, &ready.layout) {
        if sys.interrupted() {
            return Err(Error::interrupted());
        }
        work.begin(name, seconds);
        measure(&mut work, probe)?;
    }
    match sys.interrupted() {
        true => Err(Error::interrupted()),
        false => Ok(()),
    }
}
