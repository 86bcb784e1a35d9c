// SPDX-License-Identifier: GPL-2.0-only
//! The measurements of a device with zones. Each starts with empty zones.

use super::fio::Job;
use super::record::{Point, Probe, Varies};
use super::work::Work;
use crate::error::Result;

/// Writes one request at a time, of each size.
pub fn requests(w: &mut Work, probe: &mut Probe) -> Result<()> {
    w.reset()?;
    let (requests, all) = (w.ready.plan.requests.clone(), w.ready.layout.all());
    let done = w.fio(requests.iter().map(|&bytes| Job::new("write", bytes, all)).collect())?;
    let points = requests.iter().zip(&done.jobs).map(|(&request_bytes, job)| Point {
        varies: Varies::Request,
        request_bytes,
        zones: 1,
        speed: job.speed(),
    });
    probe.parallelism.extend(points);
    Ok(())
}

/// Writes to several zones, one request at a time to each.
pub fn zones(w: &mut Work, probe: &mut Probe) -> Result<()> {
    w.reset()?;
    let (layout, numbers) = (w.ready.layout.clone(), w.ready.plan.zones.clone());
    let request_bytes = layout.typical();
    let job = |&threads: &u64| {
        let each = layout.count / threads;
        let apart = each * layout.zone;
        Job { threads, apart, ..Job::new("write", request_bytes, layout.span(0, each)) }
    };
    let done = w.fio(numbers.iter().map(job).collect())?;
    let points = numbers.iter().zip(&done.jobs).map(|(&zones, job)| Point {
        varies: Varies::Zones,
        request_bytes,
        zones,
        speed: job.speed(),
    });
    probe.parallelism.extend(points);
    Ok(())
}
