// SPDX-License-Identifier: GPL-2.0-only
//! What to measure: zones, times and requests.

use crate::device::Backing;
use crate::error::{Error, Kind, Result};
use crate::queue;
use crate::sys::Sys;
use crate::units;
use crate::zones::{State, Zone};

/// The unit of zone sizes in sysfs.
const SECTOR: u64 = 512;

/// Minimum of a device without zones.
const MIN_BYTES: u64 = 64 << 20;

/// Sizes of virtual zones: from the first, each a multiple of the one before, to the last.
const SMALLEST: u64 = 1 << 20;
const LARGEST: u64 = 1 << 30;

/// The smallest number of virtual zones.
const VIRTUAL_ZONES: u64 = 32;

/// Minimum of zones, for writes to several of them.
const MIN_ZONES: u64 = 8;

/// Request size where the size does not vary: a typical chunk.
const TYPICAL: u64 = 64 << 10;

/// The longest run of writable zones, and sizes.
#[derive(Clone, Debug)]
pub struct Layout {
    pub first: u64,
    pub count: u64,
    /// From one zone's start to the next one's.
    pub zone: u64,
    pub capacity: u64,
    pub page: u64,
    /// The smallest write.
    pub unit: u64,
    pub append_max: u64,
    /// Zones that may be open at once.
    pub open: u64,
}

impl Layout {
    /// A device without zones is one whole zone.
    fn whole_device(backing: &Backing, page: u64) -> Result<Layout> {
        let (append_max, size) = (backing.append_bytes, backing.usable_bytes);
        if size < MIN_BYTES {
            let what = format!("{} has {}", backing.path, units::size(size));
            return Err(Error::new(Kind::Device, what)
                .hint(format!("a probe needs {}", units::size(MIN_BYTES))));
        }
        let (unit, open) = (page, u64::MAX);
        Ok(Layout { first: 0, count: 1, zone: size, capacity: size, page, unit, append_max, open })
    }

    pub fn of(sys: &dyn Sys, backing: &Backing, page: u64) -> Result<Layout> {
        if backing.zones.is_none() {
            return Layout::whole_device(backing, page);
        }
        let path = &backing.path;
        let number = |attribute: &str| -> Option<u64> {
            queue::attribute(sys, &backing.name, attribute)?.parse().ok()
        };
        let zones =
            sys.zones(path).map_err(|e| Error::io("report the zones of", &sys.at(path), e))?;
        let (first, count) = longest(&zones);
        if count < MIN_ZONES {
            return Err(Error::new(
                Kind::Device,
                format!("{path} has {count} zones in a row; a probe needs {MIN_ZONES}"),
            )
            .hint("conventional, read-only and offline zones cannot be used"));
        }
        let zone = number("chunk_sectors").and_then(|n| n.checked_mul(SECTOR)).unwrap_or(0);
        let used = &zones[first as usize..(first + count) as usize];
        let capacity = used.iter().map(|z| z.capacity).min().unwrap_or(0);
        let fits = zone.checked_mul(first + count).is_some();
        if zone == 0 || capacity == 0 || capacity > zone || !fits {
            let what = format!("{path}: the kernel does not report the zone size");
            return Err(Error::new(Kind::Device, what)
                .hint(format!("see /sys/block/{}/queue/chunk_sectors", backing.name)));
        }
        let limits = ["max_open_zones", "max_active_zones"];
        let limits = limits.iter().filter_map(|l| queue::limit(sys, &backing.name, l));
        let block = number("logical_block_size").filter(|n| *n > 0).unwrap_or(SECTOR);
        let unit = number("zone_write_granularity").unwrap_or(block).max(page).min(capacity);
        Ok(Layout {
            first,
            count,
            zone,
            capacity,
            page,
            unit,
            append_max: backing.append_bytes,
            open: limits.min().unwrap_or(u64::MAX),
        })
    }

    /// Start of the `i`-th zone.
    pub fn start(&self, i: u64) -> u64 {
        (self.first + i) * self.zone
    }

    /// Start and length of `n` zones from the `i`-th on.
    pub fn span(&self, i: u64, n: u64) -> (u64, u64) {
        (self.start(i), n * self.zone)
    }

    pub fn all(&self) -> (u64, u64) {
        self.span(0, self.count)
    }

    pub fn typical(&self) -> u64 {
        self.whole(TYPICAL.min(self.append_max).min(self.capacity))
    }

    /// Rounds to whole writes, at least one.
    pub fn whole(&self, bytes: u64) -> u64 {
        (bytes / self.unit).max(1) * self.unit
    }
}

/// Index and length of the longest run of writable zones.
fn longest(zones: &[Zone]) -> (u64, u64) {
    let (mut best, mut run) = ((0, 0), (0, 0));
    for (i, zone) in zones.iter().enumerate() {
        let usable = zone.sequential && zone.state != State::Dead;
        run = if usable { (run.0, run.1 + 1) } else { (i as u64 + 1, 0) };
        if run.1 > best.1 {
            best = run;
        }
    }
    best
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub name: &'static str,
    /// Seconds per point.
    pub seconds: f64,
    pub requests: Vec<u64>,
    pub zones: Vec<u64>,
    /// The ratio of each size of virtual zones to the one before.
    pub step: u64,
    /// The part of the device, in percent, that is written in zones of each size.
    pub part: u64,
}

impl Plan {
    /// For reliable numbers.
    fn full() -> Plan {
        Plan {
            name: "full",
            seconds: 1.5,
            requests: (2..=10).map(|i| 1024 << i).collect(),
            zones: vec![1, 2, 4, 8, 16],
            step: 2,
            part: 25,
        }
    }

    /// For a trial.
    fn quick() -> Plan {
        Plan {
            name: "quick",
            seconds: 0.3,
            requests: vec![4 << 10, 32 << 10, 256 << 10],
            zones: vec![1, 4],
            step: 4,
            part: 10,
        }
    }

    /// Sizes of virtual zones to try on a device of this many bytes.
    pub fn sizes(&self, device: u64) -> Vec<u64> {
        let next = |size: &u64| Some(size * self.step);
        std::iter::successors(Some(SMALLEST), next)
            .take_while(|size| *size <= LARGEST && size * VIRTUAL_ZONES <= device)
            .collect()
    }

    /// The plan within the limits of the device.
    pub fn of(quick: bool, layout: &Layout) -> Plan {
        let mut plan = if quick { Plan::quick() } else { Plan::full() };
        plan.requests.retain(|n| n % layout.unit == 0 && *n <= layout.capacity);
        if plan.requests.is_empty() {
            plan.requests.push(layout.unit);
        }
        plan.zones.retain(|n| *n == 1 || (*n <= layout.open && *n <= layout.count / 2));
        plan
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn layout() -> Layout {
        let (page, unit) = (4096, 4096);
        let (zone, capacity) = (4 << 20, 3 << 20);
        let (append_max, open) = (128 << 10, 14);
        Layout { first: 2, count: 64, zone, capacity, page, unit, append_max, open }
    }

    #[test]
    fn longest_run_is_used() {
        let zone = |sequential, state| Zone { capacity: 1, sequential, state };
        let good = zone(true, State::Empty);
        let (dead, conventional) = (zone(true, State::Dead), zone(false, State::Empty));
        assert_eq!(longest(&[conventional, good, good, dead, good]), (1, 2));
        assert_eq!(longest(&[good, dead, good, good]), (2, 2));
        assert_eq!(longest(&[dead]), (0, 0));
    }

    #[test]
    fn sizes_of_virtual_zones_fit_the_device() {
        let sizes = |plan: Plan, mib: u64| {
            plan.sizes(mib << 20).iter().map(|size| size >> 20).collect::<Vec<u64>>()
        };
        assert_eq!(sizes(Plan::full(), 256), [1, 2, 4, 8]);
        assert_eq!(sizes(Plan::quick(), 1 << 20), [1, 4, 16, 64, 256, 1024]);
    }

    #[test]
    fn plan_respects_limits_of_the_device() {
        let plan = Plan::of(false, &layout());
        assert_eq!(plan.requests.last(), Some(&(1 << 20)));
        assert_eq!(plan.zones, [1, 2, 4, 8]);
        let units = Layout { unit: 16 << 10, open: 1, ..layout() };
        let plan = Plan::of(false, &units);
        assert_eq!((plan.requests[0], plan.zones), (16 << 10, vec![1]));
        assert_eq!(units.typical(), 64 << 10);
    }
}
