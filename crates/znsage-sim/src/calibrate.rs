// SPDX-License-Identifier: GPL-2.0-only
//! A device file for a drive that `znsage probe` measured: the nearest built-in set, with
//! the drive's limits, and with the write path fitted to the measurements.

use std::fmt::{self, Write};

use serde::{Deserialize, Serialize};

use crate::alone::{open, together, Dev, Thread};
use crate::device::params::Interface;
use crate::device::Params;
use crate::host::costs::Costs;
use crate::stats::mean;
use crate::time::{to_us, Ns, BLOCK, MS};

const MIB: f64 = (1u64 << 20) as f64;
/// A write this near to the best bandwidth waits for the drain, not for the link.
const SATURATED: f64 = 0.9;
/// Sizes that `controller.small_write` may have.
const SMALL: [u64; 4] = [4 << 10, 8 << 10, 16 << 10, 32 << 10];
/// The flash programs a little faster than the drive's best bandwidth.
const SPARE: f64 = 1.05;
/// Simulated before and while measuring.
const TIMES: (Ns, Ns) = (150 * MS, 150 * MS);

/// What is used of a probe (docs/json.md).
#[derive(Clone, Debug, Deserialize)]
pub struct Probe {
    device: Drive,
    plan: String,
    parallelism: Vec<Measured>,
}

#[derive(Clone, Debug, Deserialize)]
struct Drive {
    model: Option<String>,
    zones: u32,
    zone_capacity_bytes: u64,
    write_unit_bytes: Option<u64>,
    append_max_bytes: u64,
    max_open_zones: Option<u32>,
    max_active_zones: Option<u32>,
}

/// Writes of one size, one at a time to each of some zones.
#[derive(Clone, Debug, Deserialize)]
struct Measured {
    varies: String,
    request_bytes: u64,
    zones: u32,
    mib_per_s: f64,
    latency_us: Latency,
}

#[derive(Clone, Debug, Deserialize)]
struct Latency {
    mean: f64,
}

/// A measurement, and what the model does.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    request_bytes: u64,
    zones: u32,
    measured_mib_s: f64,
    model_mib_s: f64,
    measured_us: f64,
    model_us: f64,
}

/// A calibrated device.
#[derive(Clone, Debug, Serialize)]
pub struct Calibrated {
    /// The built-in set that is nearest.
    pub base: String,
    /// Each measurement with the model's value.
    pub points: Vec<Compared>,
    /// What the probe cannot say.
    pub notes: Vec<String>,
    /// The device file.
    #[serde(skip)]
    pub toml: String,
}

/// A key, its value, and where that is from.
type Key = (&'static str, String, &'static str);

/// Calibrates a set of this name on a probe.
///
/// # Errors
/// If the probe has no measurements of zones, or no built-in set can have its limits.
pub fn calibrate(name: &str, probe: &Probe, base: Option<&str>) -> Result<Calibrated, String> {
    if probe.parallelism.is_empty() {
        return Err("the device has no zones, so that the probe measured no latencies: copy \
            `znsage-sim devices conventional` and set conventional.flash and \
            controller.drain_mb_s"
            .into());
    }
    if let Some(m) = probe.parallelism.iter().find(|m| !probe.device.can(m)) {
        let (bytes, zones) = (m.request_bytes, m.zones);
        return Err(format!(
            "the device cannot have had writes of {bytes} bytes to {zones} zones at a time: give \
             the file as `znsage probe` wrote it"
        ));
    }
    let mut keys = probe.device.limits();
    let base = match base {
        Some(base) => base,
        None => nearest(probe, &keys)?,
    };
    let before = compare(base, probe, &keys)?;
    let params = Params::load(base, &set(&keys)).map_err(|e| e.to_string())?;
    keys.extend(rate(probe, &params));
    keys.extend(latency(probe, &params, &before));
    let points = compare(base, probe, &keys)?;
    let notes = notes(probe, base);
    let toml = file(name, base, probe, &keys, &notes)?;
    Ok(Calibrated { base: base.into(), points, notes, toml })
}

impl Drive {
    /// Can it be measured like that, and have this result?
    fn can(&self, m: &Measured) -> bool {
        let unit = self.write_unit_bytes.unwrap_or(BLOCK).max(BLOCK);
        let open = self.max_open_zones.or(self.max_active_zones).unwrap_or(u32::MAX);
        (1..=self.zone_capacity_bytes).contains(&m.request_bytes)
            && m.request_bytes.is_multiple_of(unit)
            && (1..=open.min(self.zones)).contains(&m.zones)
            && m.mib_per_s > 0.0
            && m.latency_us.mean > 0.0
    }

    /// What the kernel reports.
    fn limits(&self) -> Vec<Key> {
        let (capacity, of) = (self.zone_capacity_bytes, "[probe]");
        let (open, active) = (self.max_open_zones, self.max_active_zones);
        let least = |n: u32| active.map_or(n, |active| n.min(active));
        let unit = self.write_unit_bytes.unwrap_or(BLOCK);
        vec![
            ("zoned.zones", self.zones.to_string(), of),
            ("zoned.zone_size", bytes(capacity.next_power_of_two()), "[assumed] as Linux wants it"),
            ("zoned.zone_capacity", bytes(capacity), of),
            ("zoned.write_unit", bytes(unit), of),
            ("zoned.max_open", open.or(active).map_or(0, least).to_string(), of),
            ("zoned.max_active", active.unwrap_or(0).to_string(), of),
            ("zoned.max_append", bytes(self.append_max_bytes.max(unit).min(capacity)), of),
        ]
    }
}

/// A size as in the built-in files.
fn bytes(n: u64) -> String {
    let (mib, kib) = (n >> 20 << 20 == n, n >> 10 << 10 == n);
    match (mib, kib) {
        (true, _) => format!("{} MiB", n >> 20),
        (_, true) => format!("{} KiB", n >> 10),
        _ => n.to_string(),
    }
}

fn set(keys: &[Key]) -> Vec<(String, String)> {
    keys.iter().map(|(key, value, _)| ((*key).to_string(), value.clone())).collect()
}

/// The set whose writes are nearest to the probe's, with its limits.
fn nearest(probe: &Probe, keys: &[Key]) -> Result<&'static str, String> {
    let mut why = String::new();
    let mut best: Option<(f64, &str)> = None;
    for name in Params::names() {
        let is_one = |p: &Params| p.interface == Interface::Zoned && p.zns_plus.is_none();
        if !Params::load(name, &[]).is_ok_and(|p| is_one(&p)) {
            continue;
        }
        match compare(name, probe, keys) {
            Ok(points) => {
                let far = off(&points);
                if best.is_none_or(|(least, _)| far < least) {
                    best = Some((far, name));
                }
            }
            Err(e) => why = e,
        }
    }
    best.map(|(_, name)| name).ok_or(why)
}

/// How far the model is off: mean of the logarithms of the ratios.
fn off(points: &[Compared]) -> f64 {
    let ratios = points.iter().map(|p| libm::fabs(libm::log(p.model_mib_s / p.measured_mib_s)));
    mean(&ratios.collect::<Vec<_>>()).unwrap_or(f64::MAX)
}

/// CPU time of a command on its way to the device and back.
fn software() -> Ns {
    let c = Costs::default();
    c.write + c.irq + c.wake
}

/// What a device with these values does where the probe measured.
fn compare(base: &str, probe: &Probe, keys: &[Key]) -> Result<Vec<Compared>, String> {
    let set = set(keys);
    probe.parallelism.iter().map(|m| point(base, probe, m, &set)).collect()
}

fn point(
    base: &str,
    probe: &Probe,
    m: &Measured,
    set: &[(String, String)],
) -> Result<Compared, String> {
    let capacity = probe.device.zone_capacity_bytes;
    // Threads begin apart, with room for what they write.
    let zones = (20u64 << 30).div_ceil(capacity).div_ceil(m.zones.into());
    let mut dev = open(base, Some(zones * u64::from(m.zones) * capacity), set)?;
    let blocks = (m.request_bytes / BLOCK) as u32;
    let each = zones * (capacity / BLOCK);
    let software = software();
    let mut threads: Vec<Thread> = (0..m.zones)
        .map(|i| {
            let mut at = u64::from(i) * each;
            let write = move |dev: &mut Dev, now| dev.write_next(now, &mut at, blocks) + software;
            Thread::new(1, write)
        })
        .collect();
    let (begin, length) = TIMES;
    together(&mut dev, 0, begin + length, &mut threads);
    let latencies: Vec<f64> = threads.iter().flat_map(|t| t.since(begin)).map(to_us).collect();
    let written = latencies.len() as f64 * m.request_bytes as f64;
    Ok(Compared {
        request_bytes: m.request_bytes,
        zones: m.zones,
        measured_mib_s: m.mib_per_s,
        model_mib_s: written / MIB / crate::time::to_secs(length),
        measured_us: m.latency_us.mean,
        model_us: mean(&latencies).unwrap_or(0.0),
    })
}

impl Probe {
    /// 10^6 bytes a second: the most of all measurements of up to so many zones.
    fn best(&self, zones: u32) -> f64 {
        let some = self.parallelism.iter().filter(|m| m.zones <= zones);
        some.map(|m| m.mib_per_s * MIB / 1e6).fold(0.0, f64::max)
    }

    /// Did more zones at a time no longer help?
    fn is_saturated(&self) -> bool {
        let most = self.parallelism.iter().map(|m| m.zones).max().unwrap_or(0);
        self.best(most.saturating_sub(1)) > SATURATED * self.best(most)
    }
}

/// The drain, and flash that is fast enough for it.
fn rate(probe: &Probe, params: &Params) -> Vec<Key> {
    let (best, m) = (probe.best(u32::MAX), &params.media);
    let unit = m.program_unit() as f64;
    let (dies, transfer) = (f64::from(m.dies), unit / m.channel as f64 * 1e9);
    let mut keys = Vec::new();
    let drain = params.controller.drain as f64 / 1e6;
    if probe.is_saturated() || (drain > 0.0 && drain < best) {
        keys.push(("controller.drain_mb_s", format!("{best:.0}"), "[probe] the best bandwidth"));
    }
    let program = dies * unit * 1e3 / (best * SPARE) - transfer;
    if program > 0.0 && program < m.program as f64 {
        let why = "[derived] all dies program at that rate";
        keys.push(("media.program_us", format!("{:.0}", program / 1e3), why));
    }
    keys
}

/// A request's bytes, and its latency besides what the host needs, us.
type Request = (f64, f64);

/// The line `latency = at_0 + of_byte * bytes` nearest to requests, each by its relative
/// error, with `of_byte` at most `most`; and that error.
fn line(requests: &[Request], most: f64) -> (f64, f64, f64) {
    let sum = |f: fn(f64, f64) -> f64| requests.iter().map(|(x, y)| f(*x, *y) / (y * y)).sum();
    let (n, x, y): (f64, f64, f64) = (sum(|_, _| 1.0), sum(|x, _| x), sum(|_, y| y));
    let (xx, xy): (f64, f64) = (sum(|x, _| x * x), sum(|x, y| x * y));
    let of_byte = ((n * xy - x * y) / (n * xx - x * x)).clamp(0.0, most);
    let at_0 = ((y - of_byte * x) / n).max(0.0);
    let error = |(x, y): &Request| (at_0 + of_byte * x) / y - 1.0;
    (at_0, of_byte, requests.iter().map(|r| error(r) * error(r)).sum())
}

/// What a write takes, where the drive does not slow it down: latency and link. Where
/// writes wait for the flash, only the latency can be told apart from it.
fn latency(probe: &Probe, params: &Params, model: &[Compared]) -> Vec<Key> {
    let c = &params.controller;
    let limit = probe.best(1) * 1e6 / MIB * SATURATED;
    let all = probe.parallelism.iter().zip(model);
    let free: Vec<_> = all.filter(|(m, _)| m.varies == "request" && m.mib_per_s < limit).collect();
    if !c.early_completion || free.len() < 2 {
        let Some((m, model)) = free.first() else { return Vec::new() };
        let write = (to_us(c.write) + m.latency_us.mean - model.model_us).max(0.0);
        return vec![("controller.write_us", format!("{write:.1}"), "[fit]")];
    }
    let fit = |small: u64| {
        let own = free.iter().map(|(m, _)| {
            (m.request_bytes.max(small) as f64, m.latency_us.mean - to_us(software()))
        });
        // A slower link would not carry what several zones take.
        (small, line(&own.collect::<Vec<_>>(), 1.0 / probe.best(u32::MAX)))
    };
    let fits = SMALL.map(fit).into_iter().filter(|(_, (_, of_byte, _))| *of_byte > 0.0);
    let Some((small, (at_0, of_byte, _))) = fits.min_by(|a, b| a.1 .2.total_cmp(&b.1 .2)) else {
        return Vec::new();
    };
    vec![
        ("controller.write_us", format!("{at_0:.1}"), "[fit]"),
        ("controller.small_write", bytes(small), "[fit]"),
        ("controller.link_write_mb_s", format!("{:.0}", 1.0 / of_byte), "[fit]"),
    ]
}

fn notes(probe: &Probe, base: &str) -> Vec<String> {
    let mut notes = vec![format!(
        "reads, appends, resets, the flash and its layout are those of {base}: the probe does not \
         measure them"
    )];
    if !probe.is_saturated() {
        notes.push("more zones at a time were still faster: the drive may have more dies".into());
    }
    if probe.plan != "full" {
        notes.push("a quick probe varies: measure again without --quick".into());
    }
    notes
}

/// The device file. It is read once, so that one that cannot be used is not written.
fn file(
    name: &str,
    base: &str,
    probe: &Probe,
    keys: &[Key],
    notes: &[String],
) -> Result<String, String> {
    let model = probe.device.model.as_deref().unwrap_or("a drive");
    let model: String = model.chars().filter(|c| !c.is_control() && !"\"\\".contains(*c)).collect();
    let mut text = format!(
        "# {model}, by `znsage-sim calibrate`.\n#\n\
         #   [probe]   measured by znsage probe, or reported by the kernel\n\
         #   [fit]     so that writes take as long as in the probe; {:.1} us of each are the host's\n\
         #   [derived] by arithmetic\n#   [assumed] no source\n#\n",
        to_us(software()),
    );
    for note in notes {
        let _ = writeln!(text, "# {note}");
    }
    let _ =
        write!(text, "\nbase = \"{base}\"\nname = \"{name}\"\nabout = \"{model}, calibrated\"\n");
    for table in ["media", "controller", "zoned"] {
        let own = keys.iter().filter_map(|(key, value, why)| {
            let key = key.strip_prefix(table)?.strip_prefix('.')?;
            let number = value.parse::<f64>().is_ok();
            let value = if number { value.clone() } else { format!("\"{value}\"") };
            Some((format!("{key} = {value}"), why))
        });
        for (i, (line, why)) in own.enumerate() {
            let head = if i == 0 { format!("\n[{table}]\n") } else { String::new() };
            let _ = writeln!(text, "{head}{line:<31} # {why}");
        }
    }
    Params::parse(name, &text, &[]).map_err(|e| e.to_string())?;
    Ok(text)
}

impl fmt::Display for Calibrated {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "nearest: {}", self.base)?;
        writeln!(f, "writes of   zones  MiB/s: drive   model      us: drive     model")?;
        for p in &self.points {
            let size = format!("{} KiB", p.request_bytes >> 10);
            writeln!(
                f,
                "{size:>9} {:>7} {:>13.0} {:>7.0} {:>14.1} {:>9.1}",
                p.zones, p.measured_mib_s, p.model_mib_s, p.measured_us, p.model_us
            )?;
        }
        writeln!(
            f,
            "the model is off by {:.1} % on average",
            100.0 * (libm::exp(off(&self.points)) - 1.0)
        )?;
        self.notes.iter().try_for_each(|note| writeln!(f, "{note}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a probe would measure of a model.
    fn probe_of(base: &str, set: &[(&'static str, &str)], drive: Drive) -> Probe {
        let point = |varies: &str, request_bytes, zones| Measured {
            varies: varies.into(),
            request_bytes,
            zones,
            mib_per_s: 0.0,
            latency_us: Latency { mean: 0.0 },
        };
        let sizes =
            (2..=10).map(|i| 1024 << i).filter(|n| n % drive.write_unit_bytes.unwrap_or(1) == 0);
        let mut parallelism: Vec<_> = sizes.map(|n| point("request", n, 1)).collect();
        let typical = drive.write_unit_bytes.unwrap_or(0).max(64 << 10);
        parallelism.extend([1, 2, 4, 8].map(|zones| point("zones", typical, zones)));
        let mut probe = Probe { device: drive, plan: "full".into(), parallelism };
        let mut keys = probe.device.limits();
        keys.extend(set.iter().map(|(key, value)| (*key, (*value).to_string(), "")));
        for (m, c) in probe.parallelism.clone().iter().zip(compare(base, &probe, &keys).unwrap()) {
            let at = probe.parallelism.iter_mut().find(|p| {
                (&p.varies, p.request_bytes, p.zones) == (&m.varies, m.request_bytes, m.zones)
            });
            let at = at.unwrap();
            (at.mib_per_s, at.latency_us.mean) = (c.model_mib_s, c.model_us);
        }
        probe
    }

    fn drive(zone_capacity_bytes: u64, write_unit_bytes: u64) -> Drive {
        Drive {
            model: Some("A \"drive\"".into()),
            zones: 400,
            zone_capacity_bytes,
            write_unit_bytes: Some(write_unit_bytes),
            append_max_bytes: 256 << 10,
            max_open_zones: Some(12),
            max_active_zones: None,
        }
    }

    /// A drive that is a built-in one but for its zones and some times.
    #[test]
    fn a_model_is_found_again() {
        let kib = 1 << 10;
        let quick = [
            ("controller.write_us", "14"),
            ("controller.link_write_mb_s", "3100"),
            ("controller.drain_mb_s", "2000"),
            ("media.program_us", "1300"),
        ];
        for (base, set, unit, most) in [
            ("zn540", &[][..], 4 * kib, 1.02),
            ("zn540", &quick[..], 4 * kib, 1.05),
            ("slow", &[][..], 4 * kib, 1.05),
            ("fast", &[][..], 4 * kib, 1.05),
            ("hynix", &[][..], 192 * kib, 1.02),
        ] {
            let probe = probe_of(base, set, drive(96 << 20, unit));
            let c = calibrate("mine", &probe, None).unwrap();
            println!("{base}\n{c}{}", c.toml);
            assert_eq!(c.base, base);
            assert!(off(&c.points) < libm::log(most), "{base}: {c}");
            let p = Params::parse("mine", &c.toml, &[]).unwrap();
            let z = p.zoned.unwrap();
            assert_eq!((z.zones, z.zone_capacity, z.max_open), (400, 96 << 20, 12));
        }
    }

    /// The probe that the command's tests print.
    #[test]
    fn a_recorded_probe_becomes_a_device() {
        let text_of_zones = include_str!("../../znsage/tests/printed/json/probe.json");
        let c = calibrate("mine", &serde_json::from_str(text_of_zones).unwrap(), None).unwrap();
        // Its numbers are made up: two zones are twice as fast as one, which no link explains.
        assert!(c.toml.contains("drain_mb_s = 1771 "), "{}", c.toml);
        assert!(off(&c.points) < 0.3, "{c}");
        let text = include_str!("../../znsage/tests/printed/json/probe-conventional.json");
        let e = calibrate("mine", &serde_json::from_str(text).unwrap(), None).unwrap_err();
        assert!(e.contains("copy `znsage-sim devices conventional`"), "{e}");
        for (key, value) in [("request_bytes", 0), ("request_bytes", 8 << 20), ("zones", 99)] {
            let mut probe: serde_json::Value = serde_json::from_str(text_of_zones).unwrap();
            probe["parallelism"][0][key] = value.into();
            let probe = serde_json::from_value(probe).unwrap();
            let e = calibrate("mine", &probe, None).unwrap_err();
            assert!(e.contains("give the file as `znsage probe` wrote it"), "{key}: {e}");
        }
    }
}
