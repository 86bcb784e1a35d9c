// SPDX-License-Identifier: GPL-2.0-only
//! The figures that `make bench` measures: the target of each, and its value from the
//! measured numbers. bench/README.md says how each is measured, and why.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use znsage_sim::stats::median;

use crate::result::Result;
use crate::select;
use crate::vm::Clock;

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
}

use Target::*;

/// Where a figure is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A guest with this clock and QEMU's NVMe devices. The speeds of two systems are
    /// compared by their instructions, because an emulated CPU's time varies.
    Nvme(Clock),
    /// A guest of each kernel, which makes devices with latency.
    Latency,
    /// The engine alone, on the host.
    Engine,
    /// The simulator, on the host.
    Host,
}

const COUNTED: Place = Place::Nvme(Clock::Instructions);
const TIMED: Place = Place::Nvme(Clock::Real);

/// How the rounds' numbers make a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum How {
    Median,
    Sum,
    /// The median of znsage's numbers divided by that of another system's, which is named;
    /// and the unit of both.
    Ratio(&'static str, &'static str),
    /// The greatest of the figures `latency-DEVICE-fill`.
    BestFill,
}

use How::*;

#[derive(Clone, Debug)]
pub struct Figure {
    /// In FIGURES= and result.json.
    pub name: String,
    pub title: String,
    pub target: Target,
    pub place: Place,
    pub how: How,
}

type Row = (&'static str, &'static str, Target);

const FIGURES: [(Place, How, &[Row]); 9] = [
    (
        COUNTED,
        Ratio("stock", "MiB/s"),
        &[("seq", "Sequential swap-out, znsage / stock", AtLeast(1.2))],
    ),
    (
        COUNTED,
        Ratio("stock", "pages/s"),
        &[
            ("random40", "Random access at 40 %, znsage / stock", AtLeast(1.0)),
            ("random80", "Random access at 80 %, znsage / stock", AtLeast(0.8)),
        ],
    ),
    // GC may take a third of the instructions of a swap-out.
    (COUNTED, Median, &[("gc", "GC at 80 %, instructions a page moved", AtMost(6300.0))]),
    (
        COUNTED,
        Ratio("off", "each"),
        // lz4 may take as many instructions as the rest of a swap-out, zstd three times as many.
        &[
            ("compress-out-lz4", "Swap-out with lz4 / without, instructions", AtMost(2.0)),
            ("compress-out-zstd", "Swap-out with zstd / without, instructions", AtMost(4.0)),
            ("compress-in-lz4", "Swap-in with lz4 / without, instructions", AtMost(1.15)),
            ("compress-tail-lz4", "Access with lz4 / without, p99", AtMost(1.15)),
            ("compress-in-zstd", "Swap-in with zstd / without, instructions", AtMost(1.15)),
            ("compress-tail-zstd", "Access with zstd / without, p99", AtMost(1.15)),
            ("compress-noise", "Flash writes with lz4 / without, noise", AtMost(1.03)),
        ],
    ),
    (
        TIMED,
        Median,
        &[
            ("waf40", "WAF at 40 %, uniform random", AtMost(1.12)),
            ("waf60", "WAF at 60 %", AtMost(1.48)),
            ("waf80", "WAF at 80 %", AtMost(2.7)),
            ("waf90", "WAF at 90 %, over-provisioning 7 %", AtMost(5.2)),
            // Four bytes, lists of up to an eighth, and one percent; and the page history
            // of the default policy.
            ("map", "Maps, bytes a page of the device", AtMost(5.54)),
        ],
    ),
    (TIMED, Ratio("fio", "MiB/s"), &[("bound", "Throttled device, znsage / fio", AtLeast(0.95))]),
    (
        TIMED,
        Ratio("stock", "MiB/s"),
        &[("bound-lz4", "Throttled device, swap-out with lz4 / stock", AtLeast(2.0))],
    ),
    (
        Place::Host,
        Median,
        &[
            ("sim-speed", "Simulator, million page operations a second", AtLeast(2.0)),
            ("sim-memory", "Simulator, bytes a page beside the engine's", AtMost(16.0)),
            ("sim-512g", "Simulator, GiB of memory for 512 GiB of swap", AtMost(8.0)),
        ],
    ),
    (
        Place::Engine,
        Median,
        &[
            ("engine-takes", "Engine lock, takes an append", AtMost(1.01)),
            ("engine-lines", "Cache lines written under it, an append", AtMost(10.3)),
            ("engine-64", "Engine, instructions a page in appends of 64", AtMost(343.0)),
            ("engine-1", "Engine, instructions a page in appends of 1", AtMost(1426.0)),
            ("engine-threads", "Engine beside GC, threads / one, ns a page", AtMost(1.5)),
        ],
    ),
];

/// Devices with latency. Stock swap and znsage use devices of the same kind, without zones
/// and with them.
pub const DEVICES: [(&str, &str); 4] = [
    // Disks of scsi_debug: a zone takes one write at a time.
    ("scsi-4ms", "SCSI 4 ms"),
    ("scsi-200us", "SCSI 200 µs"),
    // Its timers complete each command.
    ("null-80us", "null_blk 80 µs"),
    // A device of the same machine.
    ("tcp", "NVMe/TCP"),
];

/// What is compared on each.
const ASPECTS: [(How, Row); 6] = [
    (Ratio("stock", "MiB/s"), ("fill", "fill, znsage / stock", AtLeast(1.0))),
    (Ratio("stock", "pages/s"), ("random40", "random at 40 %", AtLeast(1.0))),
    (Ratio("stock", "pages/s"), ("random80", "random at 80 %", AtLeast(1.0))),
    (Ratio("stock", "µs"), ("tail40", "p99.9 at 40 %", AtMost(1.2))),
    (Ratio("stock", "µs"), ("tail80", "p99.9 at 80 %", AtMost(1.2))),
    (Sum, ("errors", "write errors", AtMost(0.0))),
];

impl Figure {
    fn new(place: Place, how: How, (name, title, target): (&str, &str, Target)) -> Figure {
        Figure { name: name.to_string(), title: title.to_string(), target, place, how }
    }

    fn all() -> Vec<Figure> {
        let of_device = |(device, device_title)| {
            ASPECTS.map(|(how, (aspect, title, target))| {
                let name = format!("latency-{device}-{aspect}");
                let title = format!("{device_title}: {title}");
                Figure::new(Place::Latency, how, (&name, &title, target))
            })
        };
        let best = ("latency-best-fill", "the best of these fills", AtLeast(1.5));
        let rows = FIGURES.into_iter().flat_map(|(place, how, rows)| {
            rows.iter().map(move |row| Figure::new(place, how, *row))
        });
        rows.chain(DEVICES.into_iter().flat_map(of_device))
            .chain([Figure::new(Place::Latency, BestFill, best)])
            .collect()
    }

    /// Whether it needs a device with latency of which so many percent are in use.
    pub fn needs(&self, device: &str, percent: u64) -> bool {
        let Some(rest) = self.name.strip_prefix("latency-") else { return false };
        let aspect = match rest.strip_prefix(device).and_then(|rest| rest.strip_prefix('-')) {
            Some(aspect) => aspect,
            None if self.how == BestFill => "fill",
            None => return false,
        };
        match aspect {
            "errors" => true,
            "fill" => percent == 80,
            _ => aspect.ends_with(&percent.to_string()),
        }
    }
}

/// The figures whose names begin with one of the words: `waf` is all four.
pub fn select(words: &[String]) -> Result<Vec<Figure>> {
    let all = Figure::all();
    let names: Vec<(usize, &str)> = all.iter().map(|f| f.name.as_str()).enumerate().collect();
    let chosen = select::select("figure", words, &names, |name, word| name.starts_with(word))?;
    Ok(chosen.into_iter().map(|i| all[i].clone()).collect())
}

/// What was measured for a figure, once a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Numbers {
    pub ours: Vec<f64>,
    /// Numbers of the system that znsage is compared with.
    pub others: Vec<f64>,
    pub notes: Vec<String>,
}

/// The numbers of one kernel, or of the host.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Measurements {
    /// The version that the kernel reports.
    pub kernel: String,
    pub numbers: BTreeMap<String, Numbers>,
    /// Why something could not be measured.
    pub problems: Vec<String>,
}

impl Measurements {
    pub fn of(&mut self, figure: &str) -> &mut Numbers {
        self.numbers.entry(figure.to_string()).or_default()
    }

    /// Adds a number of znsage's, with a note.
    pub fn add(&mut self, figure: &str, (value, note): (f64, String)) {
        let numbers = self.of(figure);
        numbers.ours.push(value);
        numbers.notes.push(note);
    }

    /// Adds the measurements of another boot.
    pub fn merge(&mut self, other: Measurements) {
        self.kernel = other.kernel;
        self.numbers.extend(other.numbers);
        self.problems.extend(other.problems);
    }

    /// A figure's value, and the numbers behind it.
    fn value(&self, figure: &Figure) -> Option<(f64, String)> {
        if figure.how == BestFill {
            let fills = Figure::all()
                .into_iter()
                .filter(|f| f.name.ends_with("-fill") && f.how != BestFill);
            let values = fills.filter_map(|fill| Some((self.value(&fill)?.0, fill.title)));
            return values.max_by(|a, b| a.0.total_cmp(&b.0));
        }
        let numbers = self.numbers.get(&figure.name)?;
        let ours = median(&numbers.ours)?;
        let (value, mut detail) = match figure.how {
            Ratio(other, unit) => {
                let detail = format!(
                    "{unit}: znsage {}; {other} {}",
                    list(&numbers.ours),
                    list(&numbers.others)
                );
                (ours / median(&numbers.others)?, vec![detail])
            }
            Sum => (numbers.ours.iter().sum(), vec![list(&numbers.ours)]),
            _ if numbers.ours.len() > 1 => (ours, vec![list(&numbers.ours)]),
            _ => (ours, Vec::new()),
        };
        detail.extend(numbers.notes.iter().filter(|note| !note.is_empty()).cloned());
        Some((value, detail.join("; ")))
    }

    /// `kernel` is None if the figure is measured on one kernel only.
    pub fn outcome(&self, figure: &Figure, kernel: Option<&str>) -> Outcome {
        let (value, detail) =
            self.value(figure).map_or((None, String::new()), |(v, d)| (Some(v), d));
        let target = figure.target;
        Outcome {
            name: figure.name.clone(),
            kernel: kernel.map(str::to_string),
            title: kernel.map_or(String::new(), |k| format!("{k}, ")) + &figure.title,
            value,
            target,
            met: value.is_some_and(|v| match target {
                AtLeast(limit) => v >= limit,
                AtMost(limit) => v <= limit,
            }),
            detail,
        }
    }
}

/// Three digits of each number: 19 1.25 0.345.
fn list(values: &[f64]) -> String {
    let digits = |v: &f64| match v.abs() {
        v if v >= 100.0 || v == 0.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    let words: Vec<String> = values.iter().map(|v| format!("{v:.*}", digits(v))).collect();
    words.join(" ")
}

#[derive(Debug, Serialize)]
pub struct Outcome {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    pub title: String,
    /// None: it could not be measured.
    pub value: Option<f64>,
    pub target: Target,
    pub met: bool,
    pub detail: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(words: &str) -> Vec<Figure> {
        select(&[words.to_string()]).unwrap()
    }

    fn names(words: &str) -> Vec<String> {
        figures(words).into_iter().map(|f| f.name).collect()
    }

    #[test]
    fn prefixes_choose_figures() {
        assert_eq!(figures("").len(), 26 + 25);
        assert_eq!((figures("compress").len(), figures("latency").len()), (7, 25));
        assert_eq!(
            names("latency-best,latency-tcp-fill"),
            ["latency-tcp-fill", "latency-best-fill"]
        );
        assert_eq!(names("waf"), ["waf40", "waf60", "waf80", "waf90"]);
        assert_eq!(names("random40,seq"), ["seq", "random40"]);
        assert!(figures("engine").iter().all(|f| f.place == Place::Engine));
    }

    #[test]
    fn ratios_compare_medians() {
        let mut measured = Measurements::default();
        *measured.of("bound") = Numbers {
            ours: vec![19.0, 1.0, 19.8],
            others: vec![20.0, 25.0, 20.0],
            notes: vec!["a note".to_string(), String::new()],
        };
        let got = measured.outcome(&figures("bound")[0], Some("6.1"));
        assert_eq!((got.value, got.met), (Some(0.95), true));
        assert_eq!(got.detail, "MiB/s: znsage 19.0 1.00 19.8; fio 20.0 25.0 20.0; a note");
        assert_eq!(got.title, "6.1, Throttled device, znsage / fio");
        measured.of("bound").others.clear();
        assert_eq!(measured.outcome(&figures("bound")[0], None).value, None);
    }

    #[test]
    fn the_best_fill_and_all_errors_count() {
        let mut measured = Measurements::default();
        for (device, ours) in [("scsi-4ms", 1.25), ("tcp", 1.75)] {
            *measured.of(&format!("latency-{device}-fill")) =
                Numbers { ours: vec![ours], others: vec![1.0], notes: Vec::new() };
        }
        measured.of("latency-tcp-errors").ours.extend([0.0, 2.0, 0.0]);
        let of = |name: &str| measured.outcome(&figures(name)[0], None);
        assert_eq!(of("latency-best-fill").value, Some(1.75));
        assert_eq!(of("latency-best-fill").detail, "NVMe/TCP: fill, znsage / stock");
        assert_eq!(
            (of("latency-tcp-errors").value, of("latency-tcp-errors").met),
            (Some(2.0), false)
        );
    }

    #[test]
    fn a_figure_needs_its_device_and_level() {
        let needs = |name: &str, device, percent| figures(name)[0].needs(device, percent);
        assert!(needs("latency-scsi-4ms-fill", "scsi-4ms", 80));
        assert!(!needs("latency-scsi-4ms-fill", "scsi-4ms", 40));
        assert!(!needs("latency-scsi-4ms-fill", "null-80us", 80));
        assert!(needs("latency-null-80us-errors", "null-80us", 40));
        assert!(needs("latency-best-fill", "tcp", 80) && !needs("latency-best-fill", "tcp", 40));
        assert!(!needs("seq", "tcp", 80));
    }

    #[test]
    fn unmeasured_figures_do_not_meet_targets() {
        for figure in Figure::all() {
            let got = Measurements::default().outcome(&figure, None);
            assert!(got.value.is_none() && !got.met, "{}", got.name);
        }
    }
}
