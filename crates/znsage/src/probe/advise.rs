// SPDX-License-Identifier: GPL-2.0-only
//! Settings of `znsage on` from the measurements.

use super::plan::Layout;
use super::record::{Point, Probe, Setting, Varies, ZoneSize};
use crate::queue;
use crate::units::{self, counted};

/// A bandwidth above this share of the best one counts as equal.
const GOOD: f64 = 0.9;

/// A p99 up to this multiple of the shortest counts as equal.
const EVEN: f64 = 2.0;

/// The limit of `znsage on --stripe`.
const MOST_STRIPE: u64 = 16;

/// Zones that GC needs besides those of swap-out.
const FOR_GC: u64 = 2;

pub fn settings(probe: &Probe, layout: &Layout) -> Vec<Setting> {
    let mut all = Vec::new();
    all.extend(zone_size(probe));
    all.extend(chunk(probe, layout));
    all.extend(write_unit(layout));
    all.extend(stripe(probe, layout));
    all
}

fn setting(key: &str, value: String, reason: String) -> Setting {
    Setting { key: key.to_string(), value, reason }
}

/// A size as in znsage.conf.
fn size(bytes: u64) -> String {
    match bytes % 1024 {
        0 => format!("{}K", bytes / 1024),
        _ => bytes.to_string(),
    }
}

/// The first point about as good as the best, and the best.
fn good_enough<'a>(points: &[&'a Point]) -> Option<(&'a Point, &'a Point)> {
    let speed = |p: &&&Point| p.speed.mib_per_s;
    let best = points.iter().max_by(|a, b| speed(a).total_cmp(&speed(b)))?;
    let first = points.iter().find(|p| p.speed.mib_per_s >= GOOD * best.speed.mib_per_s)?;
    Some((first, best))
}

/// Compares a point with the best one, which may be the same.
fn best_of(first: &Point, best: &Point, at: impl Fn() -> String) -> String {
    match std::ptr::eq(first, best) {
        true => "the best of all".to_string(),
        false => format!("the best is {:.0} with {}", best.speed.mib_per_s, at()),
    }
}

/// The shortest request with about the best bandwidth, and the best.
fn requests<'a>(probe: &'a Probe, layout: &Layout) -> Option<(&'a Point, &'a Point)> {
    let fit = |p: &&Point| p.request_bytes <= layout.append_max;
    let points: Vec<&Point> = probe.series(Varies::Request).into_iter().filter(fit).collect();
    good_enough(&points)
}

fn chunk(probe: &Probe, layout: &Layout) -> Option<Setting> {
    let (first, best) = requests(probe, layout)?;
    let reason = format!(
        "one write of {} at a time has {:.0} MiB/s, {}",
        units::size(first.request_bytes),
        first.speed.mib_per_s,
        best_of(first, best, || units::size(best.request_bytes))
    );
    Some(setting("chunk", size(first.request_bytes), reason))
}

fn write_unit(layout: &Layout) -> Option<Setting> {
    (layout.unit > layout.page).then(|| {
        let reason = format!("the device writes in units of {}", units::size(layout.unit));
        setting("write-unit", size(layout.unit), reason)
    })
}

/// The smallest virtual zone that the device writes about as fast as the best, and as evenly.
fn zone_size(probe: &Probe) -> Option<Setting> {
    let sizes = &probe.zone_sizes;
    let p99 = |s: &&ZoneSize| s.speed.latency_us.p99;
    // Of equal ones, the smallest.
    let best = sizes.iter().rev().max_by(|a, b| a.speed.mib_per_s.total_cmp(&b.speed.mib_per_s))?;
    let shortest = sizes.iter().map(|s| p99(&s)).reduce(f64::min)?;
    let good = |s: &&ZoneSize| {
        s.speed.mib_per_s >= GOOD * best.speed.mib_per_s && p99(s) <= EVEN * shortest
    };
    let chosen = sizes.iter().find(good).unwrap_or(best);
    let compared = match std::ptr::eq(chosen, best) {
        true => "the best of all".to_string(),
        false => {
            format!("the best is {:.0} with {}", best.speed.mib_per_s, units::size(best.zone_bytes))
        }
    };
    let reason = format!(
        "zones of {} are written at {:.0} MiB/s, p99 {}, {compared}",
        units::size(chosen.zone_bytes),
        chosen.speed.mib_per_s,
        units::micros(chosen.speed.latency_us.p99)
    );
    Some(setting("zone-size", size(chosen.zone_bytes), reason))
}

/// How many zones to write at once. The default policy begins with one stream; where it has
/// several, the module keeps to what the device can have open.
fn stripe(probe: &Probe, layout: &Layout) -> Option<Setting> {
    let points = probe.series(Varies::Zones);
    let (first, best) = good_enough(&points)?;
    let room = layout.open.saturating_sub(FOR_GC).max(1);
    let stripe = first.zones.min(room).min(MOST_STRIPE);
    let limited = match first.zones > room {
        true => format!(", of {} that may be open less {FOR_GC} for GC", layout.open),
        false => String::new(),
    };
    let reason = format!(
        "writing {} at a time gives {:.0} MiB/s, {}{limited}",
        counted(first.zones, "zone"),
        first.speed.mib_per_s,
        best_of(first, best, || counted(best.zones, "zone"))
    );
    Some(setting("stripe", stripe.to_string(), reason))
}

/// The settings as a section of znsage.conf.
pub fn profile(probe: &Probe) -> String {
    let d = &probe.device;
    let clean = |text: &str| text.replace(|c: char| c.is_control(), " ");
    let model = d.model.as_deref().map_or(String::new(), |m| format!(" ({})", clean(m)));
    let mut text = format!(
        "# Settings that `znsage probe` recommends for {}{model}:\n\
         # `znsage on --profile FILE {}`. The keys are those of a section of\n\
         # /etc/znsage.conf, which wants a line `device = ...` in addition.\n",
        d.path, d.path
    );
    for note in &probe.notes {
        text += &format!("# Note: {}.\n", clean(note));
    }
    text += &format!("[{}]\n", if queue::is_file(&d.name) { "file" } else { &d.name });
    for s in &probe.recommended {
        text += &format!("\n# {}.\n{} = {}\n", clean(&s.reason), s.key, s.value);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Latency;
    use crate::probe::plan::tests::layout;
    use crate::probe::record::Speed;

    fn point(varies: Varies, (request_bytes, zones): (u64, u64), mib_per_s: f64) -> Point {
        let latency_us = Latency { mean: 1.0, p50: 1.0, p99: 1.0, p99_9: 1.0, max: 1.0 };
        let speed = Speed { mib_per_s, ops_per_s: 1.0, latency_us };
        Point { varies, request_bytes, zones, speed }
    }

    /// Writes of 4, 64, 128 and 256 KiB, and to 1, 4 and 8 zones.
    fn probe() -> Probe {
        let requests = [(4, 10.0), (64, 91.0), (128, 100.0), (256, 400.0)];
        let zones = [(1, 100.0), (4, 270.0), (8, 300.0)];
        let requests = requests.map(|(kib, speed)| point(Varies::Request, (kib << 10, 1), speed));
        let zones = zones.map(|(n, speed)| point(Varies::Zones, (64 << 10, n), speed));
        let mut probe = crate::probe::record::tests::empty();
        probe.parallelism = requests.into_iter().chain(zones).collect();
        probe
    }

    fn values(all: &[Setting]) -> Vec<(&str, &str)> {
        all.iter().map(|s| (s.key.as_str(), s.value.as_str())).collect()
    }

    #[test]
    fn settings_follow_from_the_measurements() {
        // 256 KiB do not fit in one append; 270 are 90 % of 300.
        let all = settings(&probe(), &layout());
        let want = [("chunk", "64K"), ("stripe", "4")];
        assert_eq!(values(&all), want);
        assert!(all[0].reason.contains("91 MiB/s, the best is 100 with 128 KiB"), "{all:?}");
    }

    #[test]
    fn limits_of_the_device_are_respected() {
        let few = Layout { open: 3, unit: 16 << 10, ..layout() };
        let want = [("chunk", "64K"), ("write-unit", "16K"), ("stripe", "1")];
        assert_eq!(values(&settings(&probe(), &few)), want);
    }

    #[test]
    fn no_measurements_no_recommendation() {
        let nothing = crate::probe::record::tests::empty();
        assert_eq!(settings(&nothing, &layout()), []);
    }
}
