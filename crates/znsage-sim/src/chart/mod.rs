// SPDX-License-Identifier: GPL-2.0-only
//! Charts as SVG: lines and bars, one look for each system.
//!
//! Published values are hollow and dashed, simulated ones solid. Where a
//! system has both, a thin line joins them, labelled with the difference. Text
//! and axes take the colour of the page (`currentColor`), so a chart fits
//! light and dark pages; [`standalone`] makes it a separate file.

mod bars;
mod frame;
mod layers;
mod lines;
mod style;

pub use bars::{Bar, BarChart, BarSeries, Group};
pub use lines::{LineChart, Series};
pub use style::{difference, number, Axis, Look, Mark, Rgb, Scale};

/// A chart as a separate file, black on white.
pub fn standalone(svg: &str) -> String {
    let svg = svg.replacen("<svg ", "<svg style=\"color:#1c1c1e\" ", 1);
    svg.replacen('>', "><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>", 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::SystemKind;

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
    fn differences_are_labelled() {
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
