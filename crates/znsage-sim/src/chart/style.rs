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
    /// A pentagon.
    Pentagon,
    /// A star with four points.
    Star,
    /// Two lines, one upright: `+`.
    Plus,
    /// Two diagonal lines: `x`.
    Cross,
    /// A line from left to right.
    Dash,
    /// Two triangles whose points meet.
    Bowtie,
    /// The same, upright.
    Hourglass,
}

/// The look of a series: colour and shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Of lines, markers and bars.
    pub colour: Rgb,
    /// Of the points.
    pub mark: Mark,
}

/// The "vibrant" scheme of Paul Tol (Colour Schemes, SRON/EPS/TN/09-002,
/// 2021), which is safe for the common colour deficiencies. Its grey is darker
/// here, so that thin lines show on white.
const VIBRANT: [Look; 7] = [
    Look { colour: (0x00, 0x77, 0xbb), mark: Mark::Circle },
    Look { colour: (0x78, 0x78, 0x78), mark: Mark::Square },
    Look { colour: (0xee, 0x77, 0x33), mark: Mark::Triangle },
    Look { colour: (0x00, 0x99, 0x88), mark: Mark::Diamond },
    Look { colour: (0xee, 0x33, 0x77), mark: Mark::Inverted },
    Look { colour: (0xcc, 0x33, 0x11), mark: Mark::Pentagon },
    Look { colour: (0x33, 0xbb, 0xee), mark: Mark::Star },
];

/// How a series differs from another one of the same system. Each has a marker of its
/// own, so that a marker means one thing in all charts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Measured before the steady state.
    AtFirst,
    /// Another setting, ...
    Setting,
    /// ... and one more.
    OtherSetting,
    /// Another device, ...
    Device,
    /// ... and one more.
    OtherDevice,
}

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

    /// The look of a variant: paler or darker, with the variant's marker. Bars have no
    /// markers, so that variants of one system that share a chart differ in colour, too.
    pub fn variant(self, variant: Variant) -> Look {
        const PALE: u16 = 0xe0;
        const DARK: u16 = 0x10;
        // Quarters of the way.
        let (towards, part, mark) = match variant {
            Variant::AtFirst => (PALE, 2, Mark::Cross),
            Variant::Setting => (PALE, 2, Mark::Plus),
            Variant::OtherSetting => (PALE, 3, Mark::Dash),
            Variant::Device => (DARK, 2, Mark::Bowtie),
            Variant::OtherDevice => (PALE, 2, Mark::Hourglass),
        };
        let (r, g, b) = self.colour;
        let mix = |c: u8| ((u16::from(c) * (4 - part) + towards * part) / 4) as u8;
        Look { colour: (mix(r), mix(g), mix(b)), mark }
    }

    /// The look of the `n`-th series that is not a system.
    pub fn other(n: usize) -> Look {
        VIBRANT[n % VIBRANT.len()]
    }
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// By their logarithm; values must be above 0.
    Log,
    /// Percentages by the logarithm of what is missing to 100, so that 90, 99 and 99.9
    /// are as far apart.
    Nines,
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// Quantity and unit: `swap-out, MB/s`.
    pub label: String,
    /// The scale of an axis.
    pub scale: Scale,
    /// Lower bound that the axis includes; None: the smallest value.
    pub from: Option<f64>,
    /// Upper bound that the axis includes; None: the largest value.
    pub to: Option<f64>,
    /// Ticks; if empty, round numbers.
    pub ticks: Vec<(f64, String)>,
    /// A stretch of a horizontal axis that is shaded: from, to, and what it is.
    pub marked: Option<(f64, f64, String)>,
}

impl Axis {
    /// A linear axis that fits its values.
    pub fn new(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), ..Axis::default() }
    }

    /// A linear axis that begins at 0.
    pub fn from_zero(label: impl Into<String>) -> Axis {
        Axis { from: Some(0.0), ..Axis::new(label) }
    }

    /// A logarithmic axis that fits its values.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis { scale: Scale::Log, ..Axis::new(label) }
    }

    /// Percentages up to `nines` nines: 3 for 99.9.
    pub fn nines(label: impl Into<String>, nines: u32) -> Axis {
        let missing = |n: u32| libm::pow(10.0, 2.0 - f64::from(n));
        let at = (1..=nines).map(|n| 100.0 - missing(n));
        let axis = Axis { scale: Scale::Nines, ..Axis::new(label) };
        let ticks = [0.0, 50.0].into_iter().chain(at).map(|v| (v, exact(v))).collect();
        Axis { ticks, ..axis.range(0.0, 100.0 - missing(nines)) }
    }

    /// The nearest value that the axis has for sure.
    pub(super) fn within(&self, v: f64) -> f64 {
        let v = self.from.map_or(v, |from| v.max(from));
        self.to.map_or(v, |to| v.min(to))
    }

    /// Sets ticks at `values`.
    pub fn with_ticks(mut self, values: impl IntoIterator<Item = f64>) -> Axis {
        self.ticks = values.into_iter().map(|v| (v, number(v))).collect();
        self
    }

    /// Makes the axis include `from` to `to`.
    pub fn range(mut self, from: f64, to: f64) -> Axis {
        (self.from, self.to) = (Some(from), Some(to));
        self
    }
}

/// Position of a value on an axis.
pub(super) fn to_axis(v: f64, scale: Scale) -> f64 {
    match scale {
        Scale::Linear => v,
        // The same on every machine.
        Scale::Log => libm::log10(v.max(1e-12)),
        Scale::Nines => -libm::log10((1.0 - v / 100.0).max(1e-12)),
    }
}

/// A percentage in full: 99.99 is not 100.
fn exact(x: f64) -> String {
    let text = format!("{x:.6}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// A number for people: three significant digits, no fraction from 100 on.
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
