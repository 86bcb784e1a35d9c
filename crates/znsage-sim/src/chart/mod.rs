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
pub use style::{difference, number, Axis, Look, Mark, Rgb, Scale, Variant};

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
            spread: vec![],
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

    /// Where texts begin, and what they say.
    fn texts(svg: &str) -> Vec<(i32, i32, String)> {
        let doc = roxmltree::Document::parse(svg).unwrap();
        let texts = doc.descendants().filter(|n| n.has_tag_name("text"));
        let number = |n: &roxmltree::Node, name| n.attribute(name).unwrap().parse().unwrap();
        let one = |n: roxmltree::Node| {
            (number(&n, "x"), number(&n, "y"), n.text().unwrap().trim().to_string())
        };
        texts.map(one).collect()
    }

    #[test]
    fn differences_of_one_place_stand_apart() {
        // Two published values at one point, between lines.
        let mut chart = example("one");
        for (i, k) in [1.3, 0.7].into_iter().enumerate() {
            let look = Look::other(i + 1);
            let line = |published, k: f64, xs: &[f64]| Series {
                label: "another".into(),
                look,
                published,
                line: !published,
                points: xs.iter().map(|x| (*x, k * x)).collect(),
                spread: vec![],
            };
            chart.series.push(line(false, k, &[10.0, 20.0, 40.0]));
            chart.series.push(line(true, 1.1, &[10.0]));
        }
        let svg = chart.svg();
        let all: Vec<_> = texts(&svg).into_iter().filter(|t| t.2.ends_with(" %")).collect();
        assert!(all.len() >= 3, "{all:?}");
        for (i, a) in all.iter().enumerate() {
            for b in &all[i + 1..] {
                assert!((a.0 - b.0).abs() > 100 || (a.1 - b.1).abs() >= 40, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn intervals_marks_and_nines_are_drawn() {
        let mut chart = example("all of it");
        chart.x.marked = Some((20.0, 40.0, "measured".into()));
        chart.y = Axis::nines("share, %", 4);
        chart.series[0].points = vec![(10.0, 50.0), (20.0, 99.0), (40.0, 99.99)];
        let without = chart.svg();
        assert!(without.contains(">\nmeasured\n<") && without.contains(">\n99.99\n<"));
        chart.series[0].spread = vec![(40.0, 60.0), (98.0, 99.5), (99.99, 99.99)];
        let with = chart.svg();
        // An interval ends where the axis does.
        chart.series[0].spread[2].1 = 104.0;
        assert!(!chart.svg().contains("NaN") && chart.svg().contains(">\n99.9\n<"));
        // Three lines each; an interval of nothing is not drawn.
        let lines = |svg: &str| svg.matches("<polyline").count() + svg.matches("<line").count();
        assert_eq!(lines(&with), lines(&without) + 2 * 3);
        assert!(with.contains("50 (40 to 60)"), "the page tells it");
    }

    #[test]
    fn no_two_looks_are_alike() {
        use Variant::*;
        let kinds = SystemKind::ALL.map(Look::system);
        for look in kinds {
            let all =
                [AtFirst, Setting, OtherSetting, Device, OtherDevice].map(|v| look.variant(v));
            for variant in all {
                assert!(kinds.iter().all(|k| k.mark != variant.mark), "{:?}", variant.mark);
                assert!(all.iter().filter(|v| v.mark == variant.mark).count() == 1);
                assert!(apart(look.colour, variant.colour) > 15.0, "{look:?} {variant:?}");
            }
        }
        for (i, a) in kinds.iter().enumerate() {
            for b in &kinds[i + 1..] {
                assert!(a.mark != b.mark && apart(a.colour, b.colour) > 15.0, "{a:?} {b:?}");
            }
        }
    }

    /// How far apart people see two colours, in CIE 1976 units (L*a*b* of sRGB, D65): 2.3
    /// is just noticeable.
    fn apart(a: Rgb, b: Rgb) -> f64 {
        let lab = |(r, g, b): Rgb| {
            let linear = |c: u8| match f64::from(c) / 255.0 {
                c if c <= 0.04045 => c / 12.92,
                c => ((c + 0.055) / 1.055).powf(2.4),
            };
            let (r, g, b) = (linear(r), linear(g), linear(b));
            let f = |t: f64| match t {
                t if t > 0.008856 => t.cbrt(),
                t => 7.787 * t + 16.0 / 116.0,
            };
            let x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505);
            let y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
            let z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
            [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
        };
        lab(a).iter().zip(lab(b)).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
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
            x: "device".into(),
            y: Axis::from_zero("WAF"),
            series: vec![
                BarSeries { label: "published".into(), look, published: true },
                BarSeries { label: "simulated".into(), look, published: false },
            ],
            groups: vec![
                Group { label: "one".into(), bars: vec![bar(2.0), bar(1.5)] },
                Group { label: "two".into(), bars: vec![Some(Bar::range(1.0, 3.0)), None] },
            ],
        };
        let svg = chart.svg();
        roxmltree::Document::parse(&svg).unwrap();
        for text in ["-25 %", "1.5", "1 - 3", "simulated"] {
            assert!(svg.contains(&format!(">\n{text}\n<")), "{text}: {svg}");
        }
    }

    #[test]
    fn upright_numbers_end_below_the_legend() {
        let look = Look::system(SystemKind::ZnsPlus);
        let series = [true, false, true, false].map(|published| BarSeries {
            label: if published { "published" } else { "simulated" }.into(),
            look,
            published,
        });
        let bars = |v: f64| vec![Some(Bar::of(v)), Some(Bar::of(13.0 * v)), None, None];
        let chart = BarChart {
            title: "Bars".into(),
            subtitle: String::new(),
            x: "flash".into(),
            y: Axis { from: Some(50.0), ..Axis::log("MB/s") },
            series: series.into(),
            groups: [80.0, 100.0, 240.0]
                .map(|v| Group { label: "one".into(), bars: bars(v) })
                .into(),
        };
        let all = texts(&chart.svg());
        let legend = all.iter().filter(|t| t.2 == "simulated").map(|t| t.1).max().unwrap();
        let upright: Vec<_> = all.iter().filter(|t| t.2.ends_with(" times)")).collect();
        assert_eq!(upright.len(), 3, "{all:?}");
        for (_, foot, text) in upright {
            let top = foot - frame::text_width(text, frame::SMALL);
            assert!(top > legend, "{text}: {top}, {legend}");
        }
    }
}
