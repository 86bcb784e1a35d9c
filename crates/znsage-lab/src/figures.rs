// SPDX-License-Identifier: GPL-2.0-only
//! The figures that `make bench` measures: the target of each, and its value from the
//! measurements. bench/README.md says how each is measured, and why so.

use serde::{Deserialize, Serialize};
use znsage_sim::stats::median;

use crate::compress::{self, Compressed};
use crate::engine::Engine;
use crate::latency::{self, Latency};
use crate::model::{Run, System};
use crate::result::Result;
use crate::select;
use crate::simulator::Simulations;
use crate::vm::{Clock, INSTRUCTIONS_PER_S};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    Seq,
    Random40,
    Random80,
    Waf40,
    Waf60,
    Waf80,
    Waf90,
    GcCost,
    Map,
    DeviceBound,
    CompressedBound,
    SimSpeed,
    SimMemory,
    SimLarge,
    EngineTakes,
    EngineLines,
    EngineBatched,
    EngineSingle,
    EngineThreads,
    Compression(Compressed),
    Timed(Latency),
}

use Figure::*;

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
}

use Target::*;

impl Target {
    pub fn met(self, value: f64) -> bool {
        match self {
            AtLeast(limit) => value >= limit,
            AtMost(limit) => value <= limit,
        }
    }
}

/// Each figure with its name in FIGURES= and result.json, its title and its target;
/// compress.rs has those of compression, latency.rs those of the devices with latency.
const FIGURES: [(Figure, &str, &str, Target); 19] = [
    (Seq, "seq", "Sequential swap-out, znsage / stock", AtLeast(1.2)),
    (Random40, "random40", "Random access at 40 %, znsage / stock", AtLeast(1.0)),
    (Random80, "random80", "Random access at 80 %, znsage / stock", AtLeast(0.8)),
    (Waf40, "waf40", "WAF at 40 %, uniform random", AtMost(1.12)),
    (Waf60, "waf60", "WAF at 60 %", AtMost(1.48)),
    (Waf80, "waf80", "WAF at 80 %", AtMost(2.7)),
    (Waf90, "waf90", "WAF at 90 %, over-provisioning 7 %", AtMost(5.2)),
    // A third of the instructions of a swap-out.
    (GcCost, "gc", "GC at 80 %, instructions a page moved", AtMost(6300.0)),
    // Four bytes, lists of up to an eighth, and one percent; the past, which the default
    // policy looks at.
    (Map, "map", "Maps, bytes a page of the device", AtMost(5.54)),
    (DeviceBound, "bound", "Throttled device, znsage / fio", AtLeast(0.95)),
    (CompressedBound, "bound-lz4", "Throttled device, swap-out with lz4 / stock", AtLeast(2.0)),
    (SimSpeed, "sim-speed", "Simulator, million page operations a second", AtLeast(2.0)),
    (SimMemory, "sim-memory", "Simulator, bytes a page beside the engine's", AtMost(16.0)),
    (SimLarge, "sim-512g", "Simulator, GiB of memory for 512 GiB of swap", AtMost(8.0)),
    (EngineTakes, "engine-takes", "Engine lock, takes an append", AtMost(1.01)),
    (EngineLines, "engine-lines", "Cache lines written under it, an append", AtMost(10.3)),
    (EngineBatched, "engine-64", "Engine, instructions a page in appends of 64", AtMost(286.0)),
    (EngineSingle, "engine-1", "Engine, instructions a page in appends of 1", AtMost(1257.0)),
    (EngineThreads, "engine-threads", "Engine beside GC, threads / one, ns a page", AtMost(1.5)),
];

/// Where a figure is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A guest with this clock and QEMU's NVMe devices. The speed of two systems is
    /// compared by their instructions, because an emulated CPU's time varies.
    Nvme(Clock),
    /// A guest of each kernel, which makes devices with latency.
    Latency,
    /// The engine alone, on the host.
    Engine,
    Host,
}

impl Figure {
    fn all() -> impl Iterator<Item = Figure> {
        let others = Compressed::all().map(Compression).chain(Latency::all().map(Timed));
        FIGURES.iter().map(|row| row.0).chain(others)
    }

    fn row(self) -> &'static (Figure, &'static str, &'static str, Target) {
        FIGURES.iter().find(|row| row.0 == self).expect("each figure has a row")
    }

    pub fn name(self) -> String {
        match self {
            Compression(compressed) => compressed.name(),
            Timed(latency) => latency.name(),
            _ => self.row().1.to_string(),
        }
    }

    pub fn title(self) -> String {
        match self {
            Compression(compressed) => compressed.title(),
            Timed(latency) => latency.title(),
            _ => self.row().2.to_string(),
        }
    }

    fn target(self) -> Target {
        match self {
            Compression(compressed) => compressed.target(),
            Timed(latency) => latency.target(),
            _ => self.row().3,
        }
    }

    pub fn place(self) -> Place {
        match self {
            Seq | Random40 | Random80 | GcCost | Compression(_) => Place::Nvme(Clock::Instructions),
            SimSpeed | SimMemory | SimLarge => Place::Host,
            Timed(_) => Place::Latency,
            EngineTakes | EngineLines | EngineBatched | EngineSingle | EngineThreads => {
                Place::Engine
            }
            _ => Place::Nvme(Clock::Real),
        }
    }

    /// The utilization at which a WAF is measured, and the over-provisioning, in percent.
    pub fn waf_setting(self) -> Option<(u64, u64)> {
        match self {
            Waf40 => Some((40, 12)),
            Waf60 => Some((60, 12)),
            Waf80 => Some((80, 12)),
            Waf90 => Some((90, 7)),
            _ => None,
        }
    }

    /// The phase whose speeds a ratio of znsage to stock swap compares.
    pub fn ratio_phase(self) -> Option<&'static str> {
        match self {
            Seq => Some("fill"),
            Random40 => Some("random40"),
            Random80 => Some("random80"),
            _ => None,
        }
    }
}

/// The figures whose names begin with one of the words: `waf` is all four.
pub fn select(words: &[String]) -> Result<Vec<Figure>> {
    let all: Vec<(Figure, String)> = Figure::all().map(|f| (f, f.name())).collect();
    let all: Vec<(Figure, &str)> = all.iter().map(|(f, name)| (*f, name.as_str())).collect();
    select::select("figure", words, &all, |name, word| name.starts_with(word))
}

/// The measurements behind the figures, most of them made in a guest.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Measurements {
    pub kernel: String,
    /// Stock swap and znsage, in turns.
    pub runs: Vec<Run>,
    pub waf: Vec<Amplification>,
    pub gc: Vec<Collection>,
    pub compressed: Vec<compress::Measured>,
    pub map: Option<Maps>,
    /// What writes to throttled devices, in turns.
    pub bound: Vec<Bound>,
    pub simulator: Option<Simulations>,
    pub engine: Option<Engine>,
    /// For each kernel.
    pub latency: Vec<latency::Measured>,
    /// Why something could not be measured.
    pub problems: Vec<String>,
}

impl Measurements {
    /// Adds the measurements of another boot.
    pub fn merge(&mut self, other: Measurements) {
        self.kernel = other.kernel;
        self.runs.extend(other.runs);
        self.waf.extend(other.waf);
        self.gc.extend(other.gc);
        self.compressed.extend(other.compressed);
        self.map = other.map.or(self.map);
        self.bound.extend(other.bound);
        self.simulator = other.simulator.or(self.simulator);
        self.engine = other.engine.or(self.engine.take());
        self.latency.extend(other.latency);
        self.problems.extend(other.problems);
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Amplification {
    pub utilization_percent: u64,
    pub over_provisioning_percent: u64,
    pub run: Run,
}

/// The same accesses on a device where GC is at work, and on one so large that it is
/// not.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Collection {
    pub with: Run,
    pub without: Run,
}

impl Collection {
    /// The instructions that GC adds to all accesses, for each page that it moved.
    fn instructions_a_page(&self) -> Option<f64> {
        let (with, without) = (&self.with.measured, &self.without.measured);
        let seconds = with.ops as f64 * (1.0 / with.ops_per_s - 1.0 / without.ops_per_s);
        let moved = with.device?.gc_blocks;
        (moved > 0).then(|| seconds * INSTRUCTIONS_PER_S / moved as f64)
    }

    /// The share of GC in all instructions, in percent.
    fn share(&self) -> f64 {
        100.0 * (1.0 - self.with.measured.ops_per_s / self.without.measured.ops_per_s)
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Maps {
    pub map_bytes: u64,
    pub blocks_total: u64,
}

impl Maps {
    fn bytes_a_page(self) -> (f64, String) {
        let Maps { map_bytes, blocks_total } = self;
        let detail = format!("{map_bytes} bytes for {blocks_total} pages");
        (map_bytes as f64 / blocks_total as f64, detail)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    pub writer: Writer,
    pub mib_per_s: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Writer {
    Fio,
    Znsage,
    /// Stock swap, and znsage with lz4, by the pages that they swap out.
    Stock,
    Lz4,
}

/// A figure's value and the single measurements behind it.
#[derive(Debug, Serialize)]
pub struct Outcome {
    pub name: String,
    /// None: that of all figures which are measured on one kernel only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    pub title: String,
    /// None: it could not be measured.
    pub value: Option<f64>,
    pub target: Target,
    pub met: bool,
    pub detail: String,
}

/// The figure's outcome, or one for each kernel.
pub fn outcomes(figure: Figure, measured: &Measurements) -> Vec<Outcome> {
    match figure {
        Timed(latency) => measured
            .latency
            .iter()
            .map(|m| outcome(figure, Some(&m.version), latency.value(m)))
            .collect(),
        _ => vec![outcome(figure, None, value(figure, measured))],
    }
}

fn outcome(figure: Figure, kernel: Option<&str>, value: Option<(f64, String)>) -> Outcome {
    let (value, detail) = value.map_or((None, String::new()), |(v, d)| (Some(v), d));
    let target = figure.target();
    Outcome {
        name: figure.name(),
        kernel: kernel.map(str::to_string),
        title: kernel.map_or(String::new(), |k| format!("{k}, ")) + &figure.title(),
        value,
        target,
        met: value.is_some_and(|v| target.met(v)),
        detail,
    }
}

fn value(figure: Figure, measured: &Measurements) -> Option<(f64, String)> {
    if let Some(phase) = figure.ratio_phase() {
        let of = |system| -> Vec<f64> {
            let runs =
                measured.runs.iter().filter(|r| r.system == system && r.measured.phase == phase);
            runs.map(|r| if figure == Seq { r.measured.mib_per_s } else { r.measured.ops_per_s })
                .collect()
        };
        let unit = if figure == Seq { "MiB/s" } else { "pages/s" };
        return ratio(("znsage", of(System::Znsage)), ("stock", of(System::Stock)), unit);
    }
    if let Some((percent, _)) = figure.waf_setting() {
        let found = measured.waf.iter().find(|w| w.utilization_percent == percent)?;
        return amplification(found);
    }
    let bound = |writer| -> Vec<f64> {
        measured.bound.iter().filter(|b| b.writer == writer).map(|b| b.mib_per_s).collect()
    };
    match figure {
        Compression(compressed) => compressed.value(&measured.compressed),
        GcCost => collection(&measured.gc),
        Map => measured.map.map(Maps::bytes_a_page),
        SimSpeed => measured.simulator.map(|s| s.speed()),
        SimMemory => measured.simulator.map(|s| s.bytes_a_page()),
        SimLarge => measured.simulator.map(|s| s.large_gib()),
        EngineTakes => measured.engine.as_ref()?.takes(),
        EngineLines => measured.engine.as_ref()?.locked_lines(),
        EngineBatched => measured.engine.as_ref()?.batched(),
        EngineSingle => measured.engine.as_ref()?.single(),
        EngineThreads => measured.engine.as_ref()?.threads(),
        CompressedBound => {
            ratio(("lz4", bound(Writer::Lz4)), ("stock", bound(Writer::Stock)), "MiB/s")
        }
        _ => ratio(("znsage", bound(Writer::Znsage)), ("fio", bound(Writer::Fio)), "MiB/s"),
    }
}

pub type Named<'a> = (&'a str, Vec<f64>);

/// The ratio of the medians, and the single values.
pub fn ratio(ours: Named, theirs: Named, unit: &str) -> Option<(f64, String)> {
    let list = |(name, values): &Named| {
        let values: Vec<String> = values.iter().map(|v| format!("{v:.0}")).collect();
        format!("{name} {}", values.join(" "))
    };
    let detail = format!("{unit}: {}; {}", list(&ours), list(&theirs));
    Some((median(&ours.1)? / median(&theirs.1)?, detail))
}

fn collection(measured: &[Collection]) -> Option<(f64, String)> {
    let costs: Vec<f64> = measured.iter().filter_map(Collection::instructions_a_page).collect();
    let shares: Vec<f64> = measured.iter().map(Collection::share).collect();
    let single: Vec<String> = costs.iter().map(|c| format!("{c:.0}")).collect();
    let detail =
        format!("{}; {:.1} % of all", single.join(" "), median(&shares).unwrap_or(f64::NAN));
    Some((median(&costs)?, detail))
}

fn amplification(found: &Amplification) -> Option<(f64, String)> {
    let run = &found.run.measured;
    let device = run.device?;
    let written = device.host_blocks + device.gc_blocks + device.padding_blocks;
    let detail = format!(
        "{:.1} % live, {:.1} times rewritten, {} resets",
        100.0 * run.utilization.map_or(f64::NAN, |u| u.mean),
        written as f64 / device.blocks_total as f64,
        device.zone_resets,
    );
    Some((run.waf?, detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::{Aspect::Fill, Device::NvmeTcp, Latency::On};

    fn only(figure: Figure, measured: &Measurements) -> Outcome {
        outcomes(figure, measured).remove(0)
    }

    #[test]
    fn prefixes_choose_figures() {
        let select = |text: &str| select(&[text.to_string()]);
        assert_eq!(select("").unwrap().len(), FIGURES.len() + 7 + 25);
        assert_eq!(select("compress").unwrap().len(), 7);
        assert_eq!(select("latency").unwrap().len(), 25);
        let chosen = select("latency-tcp-fill,latency-best").unwrap();
        assert_eq!(chosen, [Timed(On(NvmeTcp, Fill)), Timed(Latency::BestFill)]);
        assert_eq!(select("sim").unwrap(), [SimSpeed, SimMemory, SimLarge]);
        assert!(select("engine").unwrap().iter().all(|f| f.place() == Place::Engine));
        assert_eq!(select("waf").unwrap(), [Waf40, Waf60, Waf80, Waf90]);
        assert_eq!(select("random40,seq").unwrap(), [Seq, Random40]);
    }

    #[test]
    fn ratios_compare_medians() {
        let bound = |writer, mib_per_s| Bound { writer, mib_per_s };
        let measured = Measurements {
            bound: vec![
                bound(Writer::Fio, 20.0),
                bound(Writer::Znsage, 19.0),
                bound(Writer::Fio, 25.0),
                bound(Writer::Znsage, 1.0),
                bound(Writer::Fio, 20.0),
                bound(Writer::Znsage, 19.8),
            ],
            ..Measurements::default()
        };
        let got = only(DeviceBound, &measured);
        assert_eq!(got.value, Some(0.95));
        assert!(got.met);
        assert_eq!(got.detail, "MiB/s: znsage 19 1 20; fio 20 25 20");
    }

    #[test]
    fn map_figure_counts_bytes_a_page() {
        let maps = |map_bytes| Measurements {
            map: Some(Maps { map_bytes, blocks_total: 1000 }),
            ..Measurements::default()
        };
        assert!(only(Map, &maps(5540)).met);
        assert!(!only(Map, &maps(5541)).met);
    }

    #[test]
    fn figures_with_latency_have_an_outcome_for_each_kernel() {
        let of = |version: &str| latency::Measured {
            version: version.to_string(),
            ..latency::Measured::default()
        };
        let measured =
            Measurements { latency: vec![of("6.1"), of("6.12")], ..Measurements::default() };
        let got = outcomes(Timed(On(NvmeTcp, Fill)), &measured);
        let titles: Vec<&str> = got.iter().map(|o| o.title.as_str()).collect();
        let rest = "NVMe/TCP: fill, znsage / stock";
        assert_eq!(titles, [format!("6.1, {rest}"), format!("6.12, {rest}")]);
        assert_eq!(got[1].kernel.as_deref(), Some("6.12"));
    }

    #[test]
    fn unmeasured_figures_do_not_meet_targets() {
        let measured =
            Measurements { latency: vec![latency::Measured::default()], ..Measurements::default() };
        for figure in Figure::all() {
            let got = only(figure, &measured);
            assert!(got.value.is_none() && !got.met, "{}", got.name);
        }
    }
}
