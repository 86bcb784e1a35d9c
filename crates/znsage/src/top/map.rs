// SPDX-License-Identifier: GPL-2.0-only
//! The zones of a device as cells of a map.
//!
//! debugfs has every single zone, but only root may read it. Otherwise the map uses
//! the numbers of zones by state in sysfs, and is sorted by state. Full zones then show
//! their mean.

use std::time::{Duration, Instant};

use znsage_sim::stats::mean;

use crate::counters::Device;
use crate::details::debug;
use crate::sys::Sys;

/// States in the map, the most notable first: a cell of several zones shows the first
/// state of any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    Retired,
    /// GC moves its live blocks.
    Victim,
    /// Without live blocks: about to be reset, or being reset.
    Reset,
    Open,
    /// Closed for writing, but not yet full.
    Closing,
    Full,
    Empty,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zone {
    pub state: State,
    /// Share of live blocks, 0 to 1.
    pub live: f64,
}

/// A cell: a zone, or several adjacent zones.
pub type Cell = Zone;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map {
    /// In the order of the device; sorted by state if `why_sorted` is set.
    pub zones: Vec<Zone>,
    /// Why there is no table of single zones.
    pub why_sorted: Option<String>,
    /// When it was read.
    pub at: Duration,
}

/// The state by the module's name.
fn state(name: &str) -> State {
    match name {
        "empty" => State::Empty,
        "open" => State::Open,
        "full" => State::Full,
        "victim" => State::Victim,
        "drained" | "resetting" => State::Reset,
        "retired" => State::Retired,
        _ => State::Closing,
    }
}

/// Parses the module's table of zones; None if invalid.
pub fn parse(text: &str) -> Option<Vec<Zone>> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next()?.split_whitespace().collect();
    let column = |name: &str| names.iter().position(|n| *n == name);
    let columns = [column("state")?, column("capacity")?, column("live")?, column("failed")?];
    lines
        .map(|line| {
            let [mut name, mut capacity, mut live, mut failed] = [""; 4];
            for (i, word) in line.split_whitespace().enumerate() {
                match columns.iter().position(|c| *c == i) {
                    Some(0) => name = word,
                    Some(1) => capacity = word,
                    Some(2) => live = word,
                    Some(3) => failed = word,
                    _ => {}
                }
            }
            let (live, capacity): (f64, f64) = (live.parse().ok()?, capacity.parse().ok()?);
            let state = if failed == "1" { State::Retired } else { state(name) };
            Some(Zone { state, live: share(live, capacity) })
        })
        .collect()
}

fn share(part: f64, whole: f64) -> f64 {
    match whole > 0.0 {
        true => (part / whole).clamp(0.0, 1.0),
        false => 0.0,
    }
}

/// More than any device has, so that a bad file cannot use all memory.
const MOST_ZONES: u64 = 1 << 22;

/// The zones from sysfs: full ones first.
pub fn sorted(device: &Device) -> Vec<Zone> {
    let mut zones = Vec::new();
    let counts = &device.zones;
    let all = counts.total.max(1) as f64;
    let live = share(device.utilization * all, counts.full as f64);
    for (state, live, n) in [
        (State::Full, live, counts.full),
        (State::Retired, 0.0, counts.retired),
        (State::Open, 0.0, counts.open),
        (State::Empty, 0.0, counts.empty),
    ] {
        let n = n.min(MOST_ZONES - zones.len() as u64);
        zones.extend(std::iter::repeat_n(Zone { state, live }, n as usize));
    }
    zones
}

/// Puts zones into at most `room` cells. Returns the number of zones per cell.
pub fn cells(zones: &[Zone], room: usize) -> (usize, Vec<Cell>) {
    if zones.is_empty() || room == 0 {
        return (1, Vec::new());
    }
    let each = zones.len().div_ceil(room);
    let merge = |zones: &[Zone]| Cell {
        state: zones.iter().map(|z| z.state).min().unwrap_or(State::Empty),
        live: mean(&zones.iter().map(|z| z.live).collect::<Vec<_>>()).unwrap_or(0.0),
    };
    (each, zones.chunks(each).map(merge).collect())
}

/// Reading zones may take at most this fraction of the time: the table of 40,000
/// zones has megabytes.
const PART: u32 = 300;

/// Reads the table of zones; less often if that takes long.
#[derive(Default)]
pub struct Reader {
    device: String,
    map: Map,
    cost: Duration,
}

impl Reader {
    /// The map of a device at time `at`.
    pub fn read(&mut self, sys: &dyn Sys, device: &Device, at: Duration) -> Map {
        let soon = at.saturating_sub(self.map.at) < self.cost * PART;
        if self.device == device.name && soon && self.map.why_sorted.is_none() {
            return self.map.clone();
        }
        let begun = Instant::now();
        let table = debug(sys, &device.name, "zones")
            .and_then(|text| parse(&text).ok_or("the table of zones is not valid".to_string()));
        self.map = match table {
            Ok(zones) => Map { zones, why_sorted: None, at },
            Err(why) => Map { zones: sorted(device), why_sorted: Some(why), at },
        };
        self.cost = begun.elapsed();
        self.device = device.name.clone();
        self.map.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Zones;
    use crate::sys::fake::Fake;

    const TABLE: &str =
        "index zone state capacity written live failed stream moves age reads key mixed\n\
        0 0 full 32 32 8 0 1 0 12 3 0x0 0\n\
        1 1 open 32 10 10 0 - 0 0 0 0x0 0\n\
        2 2 full 32 32 32 1 1 0 12 3 0x0 0\n\
        3 3 finishing 32 32 16 0 1 0 12 3 0x0 0\n\
        4 4 drained 32 32 0 0 1 0 12 3 0x0 0\n";

    fn zone(state: State, live: f64) -> Zone {
        Zone { state, live }
    }

    #[test]
    fn table_parses_by_headings() {
        let zones = parse(TABLE).unwrap();
        let states: Vec<State> = zones.iter().map(|z| z.state).collect();
        use State::*;
        assert_eq!(states, [Full, Open, Retired, Closing, Reset]);
        assert_eq!(zones[0].live, 0.25);
        assert_eq!(parse(""), None);
        assert_eq!(parse("state live\nfull 3\n"), None);
        assert_eq!(parse("state capacity live failed\nfull many 3 0\n"), None);
        let odd = parse("state capacity live failed\nfull 0 3 0\nfull 3 9 0\n").unwrap();
        assert_eq!((odd[0].live, odd[1].live), (0.0, 1.0));
    }

    #[test]
    fn cells_hold_all_zones_and_show_the_most_notable() {
        let mut zones = vec![zone(State::Empty, 0.0); 10];
        zones[0] = zone(State::Full, 1.0);
        zones[4] = zone(State::Victim, 0.5);
        assert_eq!(cells(&zones, 20), (1, zones.clone()));
        assert_eq!(cells(&zones, 10), (1, zones.clone()));
        let (each, some) = cells(&zones, 4);
        assert_eq!((each, some.len()), (3, 4));
        assert_eq!(some[0], zone(State::Full, 1.0 / 3.0));
        assert_eq!(some[1], zone(State::Victim, 0.5 / 3.0));
        assert_eq!(some[3], zone(State::Empty, 0.0));
        assert_eq!(cells(&zones, 0).1, []);
        assert_eq!(cells(&[], 5).1, []);
    }

    #[test]
    fn without_a_table_zones_are_sorted() {
        let zones = Zones { total: 6, empty: 2, full: 3, open: 1, ..Zones::default() };
        let mut device = Device { zones, utilization: 0.25, ..Device::default() };
        let zones = sorted(&device);
        use State::*;
        assert_eq!(
            zones.iter().map(|z| z.state).collect::<Vec<_>>(),
            [Full, Full, Full, Open, Empty, Empty]
        );
        assert_eq!([zones[0].live, zones[3].live], [0.5, 0.0]);
        device.zones.empty = u64::MAX;
        assert_eq!(sorted(&device).len() as u64, MOST_ZONES);
    }

    fn znsage0() -> Device {
        Device { name: "znsage0".into(), ..Device::default() }
    }

    #[test]
    fn reason_for_a_missing_table_is_given() {
        let fake = Fake::new();
        let mut reader = Reader::default();
        let mut look = |fake: &Fake| reader.read(fake, &znsage0(), Duration::ZERO);
        assert!(look(&fake).why_sorted.unwrap().contains("not mounted"));
        fake.root_user.set(false);
        assert_eq!(look(&fake).why_sorted.unwrap(), "only root may read debugfs");
        fake.put("/sys/kernel/debug/znsage/znsage0/zones", TABLE);
        assert_eq!(look(&fake).why_sorted, None);
        assert_eq!(look(&fake).zones.len(), 5);
    }

    #[test]
    fn slow_tables_are_read_seldom() {
        let fake = Fake::new();
        let path = "/sys/kernel/debug/znsage/znsage0/zones";
        fake.put(path, TABLE);
        let mut reader = Reader::default();
        reader.read(&fake, &znsage0(), Duration::from_secs(1));
        reader.cost = Duration::from_millis(50);
        fake.put(path, TABLE.lines().next().unwrap());
        let mut zones = |at| reader.read(&fake, &znsage0(), Duration::from_secs(at)).zones.len();
        assert_eq!([zones(2), zones(15), zones(16)], [5, 5, 0]);
    }
}
