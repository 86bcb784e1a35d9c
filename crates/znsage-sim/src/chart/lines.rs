// SPDX-License-Identifier: GPL-2.0-only
//! Line charts.

use plotters::style::text_anchor::{HPos, VPos};

use super::frame::{
    band, colour, connector, fit, leader, mark, path, text, text_width, whisker, Area, At, Frame,
    Key, Kind, Plot, PX, SMALL,
};
use super::layers::{picture, Drawing, Point};
use super::style::{difference, number, Axis, Look};

/// A line of more points has a marker at some of them, and a band in place of error bars.
const MOST_MARKS: usize = 40;
/// With more published points than this, differences have no labels.
const MOST_DIFFERENCES: usize = 10;

/// Lines over an axis of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct LineChart {
    /// Title.
    pub title: String,
    /// How the data were obtained.
    pub subtitle: String,
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// The series, the last on top.
    pub series: Vec<Series>,
}

/// A line, or points.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// For the legend.
    pub label: String,
    /// Published and simulated values of one thing share a look.
    pub look: Look,
    /// Published, not simulated.
    pub published: bool,
    /// Are the points joined?
    pub line: bool,
    /// Points, from left to right.
    pub points: Vec<(f64, f64)>,
    /// An interval for each point; none at all if they are not known.
    pub spread: Vec<(f64, f64)>,
}

impl LineChart {
    /// The picture.
    pub fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|s| &s.points);
        let (mut x_range, x_ticks) = fit(&self.x, points().map(|p| p.0));
        // Keep markers off the axes.
        let margin = (x_range.end - x_range.start) * 0.025;
        x_range = x_range.start - margin..x_range.end + margin;
        let spread = self.series.iter().flat_map(|s| &s.spread).flat_map(|s| [s.0, s.1]);
        let spread = spread.map(|v| self.y.within(v));
        let (y_range, y_ticks) = fit(&self.y, points().map(|p| p.1).chain(spread));
        let legend = self.series.iter().map(|s| Key {
            label: &s.label,
            look: s.look,
            published: s.published,
            kind: if s.line { Kind::Line } else { Kind::Points },
        });
        let frame = Frame {
            title: &self.title,
            subtitle: &self.subtitle,
            x: &self.x,
            y: &self.y,
            x_range,
            y_range,
            x_ticks,
            y_ticks,
            legend: legend.collect(),
        };
        picture(&frame, self)
    }

    /// Draws the intervals of a series, no further than the axis reaches.
    fn intervals(&self, s: &Series, area: &Area, plot: &Plot) {
        let ends = s.points.iter().zip(&s.spread).filter(|(p, _)| is_known(p));
        let at = |x: f64, y: f64| plot.at(x, self.y.within(y));
        let ends = ends.map(|(p, (low, high))| (at(p.0, *low), at(p.0, *high)));
        let (low, high): (Vec<At>, Vec<At>) = ends.unzip();
        if low.len() > MOST_MARKS {
            return band(area, &low, &high, s.look);
        }
        for (low, high) in low.iter().zip(&high).filter(|(low, high)| low.1 - high.1 > PX) {
            whisker(area, low.0, (low.1, high.1), &colour(s.look));
        }
    }

    /// Joins published values to their simulated ones.
    fn differences(&self, area: &Area, plot: &Plot) {
        let published = || self.series.iter().filter(|s| s.published);
        let few = published().map(|s| s.points.len()).sum::<usize>() <= MOST_DIFFERENCES;
        let mut labels = Vec::new();
        for p in published() {
            let of_it = |s: &&Series| !s.published && s.look == p.look;
            let Some(s) = self.series.iter().find(of_it) else { continue };
            for (x, y) in &p.points {
                let Some((_, simulated)) = s.points.iter().find(|q| q.0 == *x) else { continue };
                let (from, to) = (plot.at(*x, *y), plot.at(*x, *simulated));
                connector(area, from, to, p.look);
                if few {
                    labels.push((from, difference(*y, *simulated), p.look));
                }
            }
        }
        beside(area, plot, &self.series, labels);
    }
}

impl Drawing for LineChart {
    fn between(&self, area: &Area, plot: &Plot) {
        self.differences(area, plot);
    }

    fn series(&self, i: usize, area: &Area, plot: &Plot) {
        let s = &self.series[i];
        let at: Vec<_> = s.known().map(|p| plot.at(p.0, p.1)).collect();
        self.intervals(s, area, plot);
        if s.line && at.len() > 1 {
            path(area, &at, s.look, s.published);
        }
        // The legend tells lines apart by their markers, so lines of many points have some.
        let every = if s.line { at.len().div_ceil(MOST_MARKS).max(1) } else { 1 };
        at.iter().step_by(every).for_each(|at| mark(area, *at, s.look, s.published));
    }

    fn points(&self, i: usize, plot: &Plot) -> Vec<Point> {
        let s = &self.series[i];
        let point = |(i, p): (usize, &(f64, f64))| {
            let at = plot.at(p.0, p.1);
            let y = match s.spread.get(i) {
                Some((low, high)) => {
                    format!("{} ({} to {})", number(p.1), number(*low), number(*high))
                }
                None => number(p.1),
            };
            Point { at, foot: at.1, x: Plot::text(p.0, &self.x), y }
        };
        s.points.iter().enumerate().filter(|(_, p)| is_known(p)).map(point).collect()
    }
}

impl Series {
    fn known(&self) -> impl Iterator<Item = &(f64, f64)> {
        self.points.iter().filter(|p| is_known(p))
    }
}

fn is_known(p: &(f64, f64)) -> bool {
    p.0.is_finite() && p.1.is_finite()
}

/// Where texts may stand.
struct Free {
    /// Lines, and what marks and texts cover: corners at the upper left and lower right.
    lines: Vec<(At, At)>,
    boxes: Vec<(At, At)>,
    within: (At, At),
}

impl Free {
    fn new(series: &[Series], plot: &Plot) -> Free {
        let (mut lines, mut boxes) = (Vec::new(), Vec::new());
        let r = 7 * PX;
        for s in series {
            let at: Vec<At> = s.known().map(|p| plot.at(p.0, p.1)).collect();
            if s.line {
                lines.extend(at.windows(2).map(|pair| (pair[0], pair[1])));
            }
            boxes.extend(at.iter().map(|at| ((at.0 - r, at.1 - r), (at.0 + r, at.1 + r))));
        }
        Free { lines, boxes, within: plot.corners() }
    }

    /// Is a box inside the plot, and clear of everything?
    fn takes(&self, (a, b): (At, At)) -> bool {
        let (from, to) = self.within;
        let inside = a.0 >= from.0 && a.1 >= from.1 && b.0 <= to.0 && b.1 <= to.1;
        let apart = |(c, d): &(At, At)| b.0 < c.0 || d.0 < a.0 || b.1 < c.1 || d.1 < a.1;
        inside && self.boxes.iter().all(apart) && self.lines.iter().all(|line| misses(line, a, b))
    }
}

/// Does a line from left to right stay clear of a box?
fn misses(&(from, to): &(At, At), a: At, b: At) -> bool {
    let (left, right) = (from.0.max(a.0), to.0.min(b.0));
    if left > right {
        return true;
    }
    let rise = f64::from(to.1 - from.1) / f64::from((to.0 - from.0).max(1));
    let at = |x: i32| from.1 + (rise * f64::from(x - from.0)).round() as i32;
    let (y, z) = (at(left), at(right));
    y.max(z) < a.1 - PX || y.min(z) > b.1 + PX
}

/// Writes each text beside its point, as near as it is clear of lines, marks and other
/// texts, in the colour of its series, with a thin line from the point if it is not next to
/// it.
fn beside(area: &Area, plot: &Plot, series: &[Series], mut labels: Vec<(At, String, Look)>) {
    const STEPS: i32 = 12;
    labels.sort_by_key(|(at, ..)| (at.0, at.1));
    let mut free = Free::new(series, plot);
    let (gap, height) = (11 * PX, 13 * PX);
    for (at, what, look) in labels {
        let width = text_width(&what, SMALL);
        let place = |right: bool, dy: i32| {
            let x = if right { at.0 + gap } else { at.0 - gap - width };
            ((x, at.1 + dy - height / 2), (x + width, at.1 + dy + height / 2))
        };
        let steps = (0..=STEPS).flat_map(|n| [-n * height, n * height]);
        let all = steps.flat_map(|dy| [(true, dy), (false, dy)]);
        // Where nothing is free it stands right of its point.
        let (a, b) = all
            .map(|(right, dy)| place(right, dy))
            .find(|of| free.takes(*of))
            .unwrap_or_else(|| place(true, 0));
        let middle = (a.1 + b.1) / 2;
        if (middle - at.1).abs() >= height {
            let end = if a.0 > at.0 { a.0 - 2 * PX } else { b.0 + 2 * PX };
            leader(area, at, (end, middle), look);
        }
        text(area, &what, (a.0, middle), SMALL, &colour(look), (HPos::Left, VPos::Center));
        free.boxes.push((a, b));
    }
}
