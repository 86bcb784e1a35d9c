// SPDX-License-Identifier: GPL-2.0-only
//! Virtual zones of several sizes, on a device without zones or in a file. Zones of each size are
//! written over in random order, each from its beginning to its end, as znsage does. An SSD
//! that erases larger pieces than a zone then copies the neighbours of what was written
//! over, as soon as it has no spare flash left: so all of it is written before.

use super::fio::Job;
use super::record::{Probe, ZoneSize};
use super::work::Work;
use crate::error::Result;

/// As long as znsage's usual chunk, and as many at a time as keep an SSD busy.
const REQUEST: u64 = 256 << 10;
const DEPTH: u64 = 8;

pub fn fill(w: &mut Work, _: &mut Probe) -> Result<()> {
    // A file may have holes, or share blocks.
    if w.ready.backing.file.is_some() {
        w.reset()?;
    }
    let all = w.ready.layout.all();
    let job = Job { depth: DEPTH, limit: Some(all.1), ..Job::new("write", REQUEST, all) };
    w.fio(vec![job]).map(drop)
}

/// The largest first: small zones leave the device with more to copy.
pub fn measure(w: &mut Work, probe: &mut Probe) -> Result<()> {
    let (plan, all) = (w.ready.plan.clone(), w.ready.layout.all());
    for zone_bytes in plan.sizes(all.1).into_iter().rev() {
        // Whole zones.
        let part = all.1 * plan.part / 100 / zone_bytes * zone_bytes;
        let job = Job {
            depth: DEPTH,
            limit: Some(part.max(zone_bytes)),
            virtual_zone: Some(zone_bytes),
            ..Job::new("randwrite", REQUEST, (all.0, all.1 / zone_bytes * zone_bytes))
        };
        let done = w.fio(vec![job])?;
        let speed = done.jobs[0].speed();
        let size = ZoneSize { zone_bytes, request_bytes: REQUEST, depth: DEPTH, speed };
        probe.zone_sizes.insert(0, size);
    }
    Ok(())
}
