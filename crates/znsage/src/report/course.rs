// SPDX-License-Identifier: GPL-2.0-only
//! The file of `znsage bench --samples`: a benchmark over time.

use serde::Deserialize;
use znsage_sim::chart::{Axis, Look};
use znsage_sim::html::{Block, Section};

use super::parts::{line, lines, section};
use super::Named;

const MIB: f64 = (1 << 20) as f64;

/// Samples per point of the WAF. In a single one, GC may empty a zone or none.
const WINDOW: usize = 4;

/// The part of a line (`bench::sampler`) that has charts.
#[derive(Clone, Debug, Deserialize)]
struct Sample {
    t: f64,
    phase: String,
    bytes_in: u64,
    bytes_out: u64,
    live_blocks: Option<u64>,
    host_blocks: Option<u64>,
    gc_blocks: Option<u64>,
    padding_blocks: Option<u64>,
}

pub struct Course(Vec<Sample>);

fn sample(line: &str) -> Option<Sample> {
    serde_json::from_str(line).ok()
}

/// True if the text starts like such a file.
pub fn is(text: &str) -> bool {
    text.lines().next().and_then(sample).is_some()
}

/// Ignores a partial last line, which a killed benchmark may leave.
pub fn read(text: &str) -> Course {
    Course(text.lines().filter_map(sample).collect())
}

impl Course {
    /// For each pair of samples, the time between them and the value of `f`.
    fn between(&self, step: usize, f: impl Fn(&Sample, &Sample) -> Option<f64>) -> Vec<(f64, f64)> {
        let pairs = self.0.iter().zip(self.0.iter().skip(step));
        let later = pairs.filter(|(a, b)| b.t > a.t);
        later.filter_map(|(a, b)| Some(((a.t + b.t) / 2.0, f(a, b)?))).collect()
    }

    fn rate(&self, bytes: fn(&Sample) -> u64) -> Vec<(f64, f64)> {
        self.between(1, |a, b| Some(bytes(b).saturating_sub(bytes(a)) as f64 / MIB / (b.t - a.t)))
    }

    fn waf(&self) -> Vec<(f64, f64)> {
        let since = |b: Option<u64>, a: Option<u64>| Some(b?.saturating_sub(a?));
        self.between(WINDOW, |a, b| {
            let host = since(b.host_blocks, a.host_blocks).filter(|n| *n > 0)?;
            let gc = since(b.gc_blocks, a.gc_blocks)?;
            let padding = since(b.padding_blocks, a.padding_blocks)?;
            Some(1.0 + (gc as f64 + padding as f64) / host as f64)
        })
    }

    fn live(&self) -> Vec<(f64, f64)> {
        self.0.iter().filter_map(|s| Some((s.t, s.live_blocks? as f64))).collect()
    }

    /// When each phase began.
    fn phases(&self) -> String {
        let mut phases: Vec<String> = Vec::new();
        let mut last = "";
        for s in &self.0 {
            if s.phase != last {
                phases.push(format!("{} from {:.1} s", s.phase, s.t));
                last = &s.phase;
            }
        }
        phases.join(", ")
    }
}

pub fn sections(all: &[Named<Course>]) -> Vec<Section> {
    let mut blocks: Vec<Block> = Vec::new();
    for one in all {
        blocks.push(Block::Small(format!("{}: {}.", one.name, one.result.phases())));
    }
    type Values = fn(&Course) -> Vec<(f64, f64)>;
    let out: Values = |c| c.rate(|s| s.bytes_out);
    let charts: [(&str, Axis, Values); 4] = [
        ("Swapped out", Axis::from_zero("MiB/s"), out),
        ("Swapped in", Axis::from_zero("MiB/s"), |c| c.rate(|s| s.bytes_in)),
        (
            "Write amplification",
            Axis::from_zero("blocks written for each swapped out"),
            Course::waf,
        ),
        (
            "Live blocks",
            Axis::from_zero("blocks on the device that a slot points to"),
            Course::live,
        ),
    ];
    for (title, y, values) in charts {
        let series = all.iter().enumerate();
        let series = series.map(|(i, c)| line(&c.name, Look::other(i), values(&c.result)));
        blocks.extend(lines(title, "over time", Axis::new("seconds"), y, series.collect()));
    }
    vec![section("Course", blocks)]
}
