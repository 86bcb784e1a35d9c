// SPDX-License-Identifier: GPL-2.0-only
//! What compression costs: the figures `compress-...`. What it saves on a drive that
//! collects garbage is measured by `znsage-lab ssd`.

use serde::{Deserialize, Serialize};

use crate::figures::Target;
use crate::model::Run;
use crate::vm::INSTRUCTIONS_PER_S;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    Off,
    Lz4,
    Zstd,
}

use Algorithm::*;

impl Algorithm {
    pub fn name(self) -> &'static str {
        match self {
            Off => "off",
            Lz4 => "lz4",
            Zstd => "zstd",
        }
    }
}

/// znsage with an algorithm, compared with znsage without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compressed {
    /// Instructions of a swap-out.
    Out(Algorithm),
    /// Instructions of a swap-in.
    In(Algorithm),
    /// The 99th percentile of an access to memory that is partly in swap.
    Tail(Algorithm),
    /// The device's writes for each page that does not shrink.
    Noise,
}

use Compressed::*;

/// Each with its name, its title and its target. lz4 may take as many instructions as the
/// rest of a swap-out, zstd three times as many.
const FIGURES: [(Compressed, &str, &str, f64); 7] = [
    (Out(Lz4), "compress-out-lz4", "Swap-out with lz4 / without, instructions", 2.0),
    (Out(Zstd), "compress-out-zstd", "Swap-out with zstd / without, instructions", 4.0),
    (In(Lz4), "compress-in-lz4", "Swap-in with lz4 / without, instructions", 1.15),
    (Tail(Lz4), "compress-tail-lz4", "Access with lz4 / without, 99 %", 1.15),
    (In(Zstd), "compress-in-zstd", "Swap-in with zstd / without, instructions", 1.15),
    (Tail(Zstd), "compress-tail-zstd", "Access with zstd / without, 99 %", 1.15),
    (Noise, "compress-noise", "Flash writes with lz4 / without, noise", 1.03),
];

impl Compressed {
    pub fn all() -> impl Iterator<Item = Compressed> {
        FIGURES.iter().map(|row| row.0)
    }

    fn row(self) -> &'static (Compressed, &'static str, &'static str, f64) {
        FIGURES.iter().find(|row| row.0 == self).expect("each figure has a row")
    }

    pub fn name(self) -> String {
        self.row().1.to_string()
    }

    pub fn title(self) -> String {
        self.row().2.to_string()
    }

    pub fn target(self) -> Target {
        Target::AtMost(self.row().3)
    }

    /// The algorithm that is compared, and whether pages are noise.
    pub fn setting(self) -> (Algorithm, bool) {
        match self {
            Out(algorithm) | In(algorithm) | Tail(algorithm) => (algorithm, false),
            Noise => (Lz4, true),
        }
    }

    pub fn value(self, measured: &[Measured]) -> Option<(f64, String)> {
        let (algorithm, noise) = self.setting();
        let of = |algorithm| {
            let found = measured.iter().find(|m| (m.algorithm, m.noise) == (algorithm, noise));
            found.and_then(|m| self.part(m))
        };
        let (with, without) = (of(algorithm)?, of(Off)?);
        Some((with / without, format!("{}: {with:.2}, off: {without:.2}", algorithm.name())))
    }

    fn part(self, of: &Measured) -> Option<f64> {
        match self {
            Out(_) => Some(of.fill_instructions()),
            In(_) => Some(of.random_instructions()),
            Tail(_) => of.random.measured.latency_us.map(|l| l.p99),
            Noise => of.writes(),
        }
    }
}

/// Memory is filled, then read at random.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    pub algorithm: Algorithm,
    pub noise: bool,
    pub fill: Run,
    pub random: Run,
}

impl Measured {
    /// Of the guest's CPU, for each page swapped out while memory is filled; those of the
    /// program that fills it are among them.
    fn fill_instructions(&self) -> f64 {
        let fill = &self.fill.measured;
        fill.seconds * INSTRUCTIONS_PER_S / fill.pages_swapped_out as f64
    }

    /// For each page swapped in while memory is read at random: what takes its place is unchanged, and not
    /// written. The CPU is never idle, as many threads wait for their pages.
    fn random_instructions(&self) -> f64 {
        let random = &self.random.measured;
        random.seconds * INSTRUCTIONS_PER_S / random.pages_swapped_in as f64
    }

    /// Pages of the device written for each page swapped out. GC has nothing to do.
    fn writes(&self) -> Option<f64> {
        let fill = &self.fill.measured;
        let device = fill.device?;
        let blocks = device.host_blocks + device.padding_blocks;
        Some(blocks as f64 / fill.pages_swapped_out as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::phase;
    use crate::model::System;
    use znsage::parsers::{Latency, Totals};

    fn measured(algorithm: Algorithm, noise: bool, factor: f64) -> Measured {
        let mut fill = phase(System::Znsage, "fill", 0.0);
        fill.measured.seconds = factor;
        fill.measured.pages_swapped_out = 1000;
        let host_blocks = (1000.0 * factor) as u64;
        fill.measured.device = Some(Totals { host_blocks, ..Totals::default() });
        let mut random = phase(System::Znsage, "random", 1000.0);
        random.measured.seconds = factor;
        random.measured.pages_swapped_in = 1000;
        let p50 = 100.0 * factor;
        random.measured.latency_us =
            Some(Latency { mean: p50, p50, p99: 2.0 * p50, p99_9: p50, max: p50 });
        Measured { algorithm, noise, fill, random }
    }

    #[test]
    fn compares_with_the_same_pages_uncompressed() {
        let all = [
            measured(Off, false, 1.0),
            measured(Lz4, false, 1.5),
            measured(Off, true, 1.0),
            measured(Lz4, true, 1.25),
        ];
        for (figure, want) in [
            (Out(Lz4), Some(1.5)),
            (In(Lz4), Some(1.5)),
            (Tail(Lz4), Some(1.5)),
            (Noise, Some(1.25)),
            (Out(Zstd), None),
        ] {
            assert_eq!(figure.value(&all).map(|(value, _)| value), want, "{}", figure.name());
        }
        assert_eq!(Tail(Lz4).value(&all).unwrap().1, "lz4: 300.00, off: 200.00");
    }
}
