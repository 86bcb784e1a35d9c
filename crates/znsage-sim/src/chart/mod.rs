// SPDX-License-Identifier: GPL-2.0-only
//! Charts as SVG: lines and bars, one look for each system.
//!
//! What was published is hollow and dashed, what was simulated is solid; where
//! a system has both at the same place, a thin line joins them, and the
//! difference is written beside it. Text and axes have the colour of the page
//! they stand in (`currentColor`), so that a chart fits a light and a dark
//! one; [`standalone`] makes a file of its own of it.

mod bars;
mod frame;
mod layers;
mod lines;

pub use bars::{Bar, BarChart, BarSeries, Group};
pub use lines::{LineChart, Series};

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
fn to_axis(v: f64, scale: Scale) -> f64 {
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

/// A chart as a file of its own: black on white.
pub fn standalone(svg: &str) -> String {
    let svg = svg.replacen("<svg ", "<svg style=\"color:#1c1c1e\" ", 1);
    svg.replacen('>', "><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        for (x, text) in [
            (0.0, "0"),
            (0.0123, "0.012"),
            (0.5, "0.5"),
            (2.0, "2"),
            (9.999, "10"),
            (12.34, "12.3"),
            (100.0, "100"),
            (123456.7, "123457"),
            (-1.25, "-1.25"),
        ] {
            assert_eq!(number(x), text, "{x}");
        }
    }

    #[test]
    fn differences_have_a_sign() {
        assert_eq!(difference(2.0, 2.2), "+10 %");
        assert_eq!(difference(100.0, 99.0), "-1.0 %");
        assert_eq!(difference(3.0, 3.001), "0 %");
        assert_eq!(difference(1.0, 20.0), "20 times");
        assert_eq!(difference(0.0, 1.0), "-");
    }

    fn example(label: &str) -> LineChart {
        let points = |k: f64| [10.0, 20.0, 40.0].map(|x| (x, k * x)).to_vec();
        let series = |label: &str, published, k| Series {
            label: label.into(),
            look: Look::system(SystemKind::ZnSage),
            published,
            line: true,
            points: points(k),
        };
        LineChart {
            title: label.into(),
            subtitle: "of a test".into(),
            x: Axis::new("utilization, %"),
            y: Axis::from_zero("bandwidth, MB/s"),
            series: vec![series(label, false, 1.0), series("published", true, 1.1)],
        }
    }

    #[test]
    fn svg_is_well_formed_and_always_the_same() {
        let svg = example("<a & b>").svg();
        roxmltree::Document::parse(&svg).unwrap();
        assert!(svg.contains("&lt;a &amp; b&gt;"), "{svg}");
        assert_eq!(svg, example("<a & b>").svg());
        let file = standalone(&svg);
        roxmltree::Document::parse(&file).unwrap();
        assert!(file.contains("><rect width=\"100%\""));
    }

    #[test]
    fn what_both_have_is_compared() {
        assert!(example("znsage").svg().contains("-9.1 %"));
    }

    #[test]
    fn logarithms_and_single_points_have_axes() {
        let mut chart = example("znsage");
        (chart.x.scale, chart.y) = (Scale::Log, Axis::log("us"));
        assert!(chart.svg().contains(">\n10\n<"));
        chart.series.truncate(1);
        chart.series[0].points.truncate(1);
        chart.svg();
        chart.series.clear();
        chart.svg();
    }

    #[test]
    fn bars_stand_in_groups() {
        let bar = |v: f64| Some(Bar::of(v));
        let look = Look::system(SystemKind::ZnSwap);
        let chart = BarChart {
            title: "Bars".into(),
            subtitle: String::new(),
            y: Axis::from_zero("WAF"),
            series: vec![
                BarSeries { label: "published".into(), look, published: true },
                BarSeries { label: "simulated".into(), look, published: false },
            ],
            groups: vec![
                Group { label: "one".into(), bars: vec![bar(2.0), bar(1.5)] },
                Group { label: "two".into(), bars: vec![Some(Bar { low: 1.0, high: 3.0 }), None] },
            ],
        };
        let svg = chart.svg();
        roxmltree::Document::parse(&svg).unwrap();
        for text in ["-25 %", "1.5", "1 - 3", "simulated"] {
            assert!(svg.contains(&format!(">\n{text}\n<")), "{text}: {svg}");
        }
    }
}
