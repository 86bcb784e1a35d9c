// SPDX-License-Identifier: GPL-2.0-only
//! Looks, axes, and numbers as text.

use crate::spec::SystemKind;

/// A colour, red, green and blue.
pub type Rgb = (u8, u8, u8);

/// The shape of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A circle.
    Circle,
    /// A square.
    Square,
    /// A triangle that points up.
    Triangle,
    /// A triangle that points down.
    Inverted,
    /// A square on its corner.
    Diamond,
    /// Two crossed lines.
    Cross,
    /// A pentagon.
    Pentagon,
}

/// How a series is told from others: by colour and by shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Of lines, markers and bars.
    pub colour: Rgb,
    /// Of the points.
    pub mark: Mark,
}

/// The "vibrant" scheme of Paul Tol (Colour Schemes, SRON/EPS/TN/09-002,
/// 2021), which people with any of the common colour deficiencies can tell
/// apart. Its grey is darker here, to be seen as a thin line on white.
const VIBRANT: [Look; 7] = [
    Look { colour: (0x00, 0x77, 0xbb), mark: Mark::Circle },
    Look { colour: (0x78, 0x78, 0x78), mark: Mark::Square },
    Look { colour: (0xee, 0x77, 0x33), mark: Mark::Triangle },
    Look { colour: (0x00, 0x99, 0x88), mark: Mark::Diamond },
    Look { colour: (0xee, 0x33, 0x77), mark: Mark::Inverted },
    Look { colour: (0xcc, 0x33, 0x11), mark: Mark::Pentagon },
    Look { colour: (0x33, 0xbb, 0xee), mark: Mark::Cross },
];

impl Look {
    /// A system has the same look in every chart.
    pub fn system(kind: SystemKind) -> Look {
        VIBRANT[match kind {
            SystemKind::ZnSage => 0,
            SystemKind::Stock => 1,
            SystemKind::StockTrim => 2,
            SystemKind::ZnSwap => 3,
            SystemKind::SmallZone => 4,
            SystemKind::ZnSage2025 => 5,
            SystemKind::ZnsPlus => 6,
        }]
    }

    /// For the `n`-th variant of something: the first is paler, the second
    /// darker.
    pub fn variant(self, n: u8) -> Look {
        let (towards, mark) = match n {
            0 => return self,
            1 => (0xd0, Mark::Cross),
            _ => (0x20, Mark::Inverted),
        };
        let (r, g, b) = self.colour;
        let half = |c: u8| ((u16::from(c) + towards) / 2) as u8;
        Look { colour: (half(r), half(g), half(b)), mark }
    }

    /// The `n`-th of series that are no systems.
    pub fn other(n: usize) -> Look {
        VIBRANT[n % VIBRANT.len()]
    }
}

/// How values become places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// By their logarithm; values must be above 0.
    Log,
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What is shown, with its unit: `swap-out, MB/s`.
    pub label: String,
    /// How values become places.
    pub scale: Scale,
    /// The axis reaches at least from here; None: from the smallest value.
    pub from: Option<f64>,
    /// ... to here; None: to the largest value.
    pub to: Option<f64>,
    /// Where it has ticks; none: where they are round.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An even axis that fits its values.
    pub fn new(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), ..Axis::default() }
    }

    /// An even axis that begins at 0.
    pub fn from_zero(label: impl Into<String>) -> Axis {
        Axis { from: Some(0.0), ..Axis::new(label) }
    }

    /// A logarithmic axis that fits its values.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis { scale: Scale::Log, ..Axis::new(label) }
    }

    /// An axis that has its ticks at `values`.
    pub fn with_ticks(mut self, values: impl IntoIterator<Item = f64>) -> Axis {
        self.ticks = values.into_iter().map(|v| (v, number(v))).collect();
        self
    }

    /// An axis that reaches at least from `from` to `to`.
    pub fn range(mut self, from: f64, to: f64) -> Axis {
        (self.from, self.to) = (Some(from), Some(to));
        self
    }
}

/// Where a value is on an axis.
pub(super) fn to_axis(v: f64, scale: Scale) -> f64 {
    match scale {
        Scale::Linear => v,
        // The same on every machine.
        Scale::Log => libm::log10(v.max(1e-12)),
    }
}

/// A number for people: three digits that count, none after a large one.
pub fn number(x: f64) -> String {
    let size = x.abs();
    let digits = match size {
        s if s >= 99.95 || s == 0.0 => 0,
        s if s >= 9.995 => 1,
        s if s >= 0.9995 => 2,
        _ => 3,
    };
    let text = format!("{x:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').into(),
        false => text,
    }
}

/// How far `simulated` is from `published`: `+12 %`.
pub fn difference(published: f64, simulated: f64) -> String {
    let percent = (simulated / published - 1.0) * 100.0;
    match percent.abs() {
        p if !p.is_finite() => "-".into(),
        p if p < 0.05 => "0 %".into(),
        p if p < 9.95 => format!("{percent:+.1} %"),
        p if p < 999.5 => format!("{percent:+.0} %"),
        _ => format!("{} times", number(simulated / published)),
    }
}
