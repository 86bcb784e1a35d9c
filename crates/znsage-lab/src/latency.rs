// SPDX-License-Identifier: GPL-2.0-only
//! The figures on devices with latency: stock swap and znsage on devices of the same
//! kind, without zones and with them. bench/README.md says how each is measured.

use serde::{Deserialize, Serialize};

use crate::figures::{ratio, Target};
use crate::model::{Run, System};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Device {
    /// Disks of scsi_debug: a zone takes one write at a time.
    Scsi4ms,
    Scsi200us,
    /// null_blk, whose timers complete each command.
    NullBlk,
    /// Of the same machine, over TCP.
    NvmeTcp,
}

use Device::*;

impl Device {
    pub const ALL: [Device; 4] = [Scsi4ms, Scsi200us, NullBlk, NvmeTcp];

    fn name(self) -> &'static str {
        match self {
            Scsi4ms => "scsi-4ms",
            Scsi200us => "scsi-200us",
            NullBlk => "null-80us",
            NvmeTcp => "tcp",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Scsi4ms => "SCSI 4 ms",
            Scsi200us => "SCSI 200 µs",
            NullBlk => "null_blk 80 µs",
            NvmeTcp => "NVMe/TCP",
        }
    }
}

/// What is compared on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    Fill,
    Random40,
    Random80,
    /// The slowest accesses.
    Tail40,
    Tail80,
    Errors,
}

use Aspect::*;

impl Aspect {
    const ALL: [Aspect; 6] = [Fill, Random40, Random80, Tail40, Tail80, Errors];

    fn name(self) -> &'static str {
        match self {
            Fill => "fill",
            Random40 => "random40",
            Random80 => "random80",
            Tail40 => "tail40",
            Tail80 => "tail80",
            Errors => "errors",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Fill => "fill, znsage / stock",
            Random40 => "random at 40 %",
            Random80 => "random at 80 %",
            Tail40 => "p99.9 at 40 %",
            Tail80 => "p99.9 at 80 %",
            Errors => "write errors",
        }
    }

    fn target(self) -> Target {
        match self {
            Fill | Random40 | Random80 => Target::AtLeast(1.0),
            Tail40 | Tail80 => Target::AtMost(1.2),
            Errors => Target::AtMost(0.0),
        }
    }

    /// How full the device is, in percent; both levels show errors.
    fn percent(self) -> Option<u64> {
        match self {
            Random40 | Tail40 => Some(40),
            Fill | Random80 | Tail80 => Some(80),
            Errors => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Latency {
    On(Device, Aspect),
    /// The greatest of the fills' ratios.
    BestFill,
}

use Latency::*;

impl Latency {
    pub fn all() -> impl Iterator<Item = Latency> {
        let on = |device| Aspect::ALL.map(|aspect| On(device, aspect));
        Device::ALL.into_iter().flat_map(on).chain([BestFill])
    }

    pub fn name(self) -> String {
        match self {
            On(device, aspect) => format!("latency-{}-{}", device.name(), aspect.name()),
            BestFill => "latency-best-fill".to_string(),
        }
    }

    pub fn title(self) -> String {
        match self {
            On(device, aspect) => format!("{}: {}", device.title(), aspect.title()),
            BestFill => "the best of these fills".to_string(),
        }
    }

    pub fn target(self) -> Target {
        match self {
            On(_, aspect) => aspect.target(),
            BestFill => Target::AtLeast(1.5),
        }
    }

    /// Whether it needs the device with this share of it in use, in percent.
    pub fn needs(self, on: Device, percent: u64) -> bool {
        match self {
            On(device, aspect) => device == on && aspect.percent().is_none_or(|p| p == percent),
            BestFill => Fill.percent() == Some(percent),
        }
    }

    pub fn value(self, measured: &Measured) -> Option<(f64, String)> {
        let (device, aspect) = match self {
            On(device, aspect) => (device, aspect),
            BestFill => return best_fill(measured),
        };
        match aspect {
            Fill => measured.ratio(device, aspect, "MiB/s", |t| Some(t.fill.measured.mib_per_s)),
            Random40 | Random80 => {
                measured.ratio(device, aspect, "pages/s", |t| Some(t.random.measured.ops_per_s))
            }
            Tail40 | Tail80 => {
                let us = |t: &Turn| t.random.measured.latency_us;
                let (value, detail) =
                    measured.ratio(device, aspect, "µs", |t| Some(us(t)?.p99_9))?;
                let (_, less) = measured.ratio(device, aspect, "p99", |t| Some(us(t)?.p99))?;
                Some((value, format!("{detail}; {less}")))
            }
            Errors => errors(measured, device),
        }
    }
}

fn best_fill(measured: &Measured) -> Option<(f64, String)> {
    let fills = Device::ALL.into_iter().filter_map(|device| {
        On(device, Fill).value(measured).map(|(ratio, _)| (ratio, device.title().to_string()))
    });
    fills.max_by(|a, b| a.0.total_cmp(&b.0))
}

fn errors(measured: &Measured, device: Device) -> Option<(f64, String)> {
    let counts: Vec<u64> = measured
        .turns
        .iter()
        .filter(|t| t.device == device)
        .filter_map(|t| t.write_errors)
        .collect();
    let single: Vec<String> = counts.iter().map(u64::to_string).collect();
    let detail = format!("{} in the runs", single.join(" "));
    (!counts.is_empty()).then(|| (counts.iter().sum::<u64>() as f64, detail))
}

/// What one kernel's guest measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Measured {
    /// As vm/run calls it.
    #[serde(default)]
    pub version: String,
    /// As it calls itself.
    pub kernel: String,
    pub turns: Vec<Turn>,
    /// Why something could not be measured.
    pub problems: Vec<String>,
}

/// One system on an empty device, which it fills and then accesses.
#[derive(Debug, Serialize, Deserialize)]
pub struct Turn {
    pub device: Device,
    /// The share of the device in use after the fill.
    pub percent: u64,
    pub fill: Run,
    pub random: Run,
    /// Appends, resets and finishes that failed. None: stock swap.
    pub write_errors: Option<u64>,
}

impl Measured {
    /// A guest that did not finish.
    pub fn failed(why: String) -> Measured {
        Measured { problems: vec![why], ..Measured::default() }
    }

    /// The ratio of the medians, and the single values.
    fn ratio(
        &self,
        device: Device,
        aspect: Aspect,
        unit: &str,
        value: impl Fn(&Turn) -> Option<f64>,
    ) -> Option<(f64, String)> {
        let of = |system| -> Vec<f64> {
            let turns = self.turns.iter().filter(|t| {
                t.device == device && Some(t.percent) == aspect.percent() && t.fill.system == system
            });
            turns.filter_map(&value).collect()
        };
        ratio(("znsage", of(System::Znsage)), ("stock", of(System::Stock)), unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::phase;

    fn turn(system: System, device: Device, percent: u64, factor: f64) -> Turn {
        Turn {
            device,
            percent,
            fill: phase(system, "fill", 25600.0 * factor),
            random: phase(system, "random", 4000.0 * factor),
            write_errors: (system == System::Znsage).then_some(2),
        }
    }

    fn measured() -> Measured {
        let turns = [(System::Stock, 1.0), (System::Znsage, 2.0), (System::Znsage, 0.5)];
        let mut turns: Vec<Turn> =
            turns.map(|(system, factor)| turn(system, Scsi4ms, 80, factor)).into();
        turns.push(turn(System::Znsage, Scsi4ms, 40, 3.0));
        turns.push(turn(System::Stock, NvmeTcp, 80, 1.0));
        turns.push(turn(System::Znsage, NvmeTcp, 80, 1.75));
        Measured { turns, ..Measured::default() }
    }

    #[test]
    fn ratios_compare_the_turns_on_one_device() {
        let value = |device, aspect| On(device, aspect).value(&measured());
        let fill = value(Scsi4ms, Fill).unwrap();
        assert_eq!(fill, (1.25, "MiB/s: znsage 200 50; stock 100".to_string()));
        assert_eq!(value(NvmeTcp, Random80).unwrap().0, 1.75);
        assert_eq!(value(Scsi4ms, Random40), None);
        assert_eq!(BestFill.value(&measured()), Some((1.75, "NVMe/TCP".to_string())));
    }

    #[test]
    fn slowest_accesses_have_both_percentiles() {
        let got = On(NvmeTcp, Tail80).value(&measured());
        let detail = "µs: znsage 20000; stock 20000; p99: znsage 7930; stock 7930";
        assert_eq!(got, Some((1.0, detail.to_string())));
    }

    #[test]
    fn errors_of_all_turns_are_added() {
        let got = On(Scsi4ms, Errors).value(&measured());
        assert_eq!(got, Some((6.0, "2 2 2 in the runs".to_string())));
        assert_eq!(On(NullBlk, Errors).value(&measured()), None);
    }

    #[test]
    fn a_figure_needs_its_device_and_level() {
        assert!(On(Scsi4ms, Fill).needs(Scsi4ms, 80));
        assert!(!On(Scsi4ms, Fill).needs(Scsi4ms, 40));
        assert!(!On(Scsi4ms, Fill).needs(NullBlk, 80));
        assert!(On(NullBlk, Errors).needs(NullBlk, 40));
        assert!(BestFill.needs(NvmeTcp, 80) && !BestFill.needs(NvmeTcp, 40));
    }
}
