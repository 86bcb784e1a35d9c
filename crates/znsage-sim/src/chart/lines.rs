// SPDX-License-Identifier: GPL-2.0-only
//! Line charts.

use plotters::style::text_anchor::{HPos, VPos};

use super::frame::{
    connector, fit, mark, path, text, text_width, Area, At, Frame, Key, Kind, Plot, INK, PX, SMALL,
};
use super::layers::{picture, Drawing, Point};
use super::style::{difference, number, Axis, Look};

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
}

impl LineChart {
    /// The picture.
    pub fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|s| &s.points);
        let (mut x_range, x_ticks) = fit(&self.x, points().map(|p| p.0));
        // Keep markers off the axes.
        let margin = (x_range.end - x_range.start) * 0.025;
        x_range = x_range.start - margin..x_range.end + margin;
        let (y_range, y_ticks) = fit(&self.y, points().map(|p| p.1));
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
                    labels.push((from, difference(*y, *simulated)));
                }
            }
        }
        beside(area, plot, labels);
    }
}

impl Drawing for LineChart {
    fn between(&self, area: &Area, plot: &Plot) {
        self.differences(area, plot);
    }

    fn series(&self, i: usize, area: &Area, plot: &Plot) {
        let s = &self.series[i];
        let at: Vec<_> = s.known().map(|p| plot.at(p.0, p.1)).collect();
        if s.line && at.len() > 1 {
            path(area, &at, s.look, s.published);
        }
        // Draw no markers on lines of many points.
        if at.len() <= 40 || !s.line {
            at.iter().for_each(|at| mark(area, *at, s.look, s.published));
        }
    }

    fn points(&self, i: usize, plot: &Plot) -> Vec<Point> {
        let point = |p: &(f64, f64)| {
            let at = plot.at(p.0, p.1);
            Point { at, foot: at.1, x: Plot::text(p.0, &self.x), y: number(p.1) }
        };
        self.series[i].known().map(point).collect()
    }
}

impl Series {
    fn known(&self) -> impl Iterator<Item = &(f64, f64)> {
        self.points.iter().filter(|p| p.0.is_finite() && p.1.is_finite())
    }
}

/// Writes each text right of its point (left at the edge of the plot), and
/// below any text already there.
fn beside(area: &Area, plot: &Plot, mut labels: Vec<(At, String)>) {
    labels.sort_by_key(|(at, _)| (at.0, at.1));
    let gap = 11 * PX;
    let mut last: Option<At> = None;
    for (at, what) in labels {
        let free = last.filter(|l| (at.0 - l.0).abs() < 2 * gap).map_or(at.1, |l| l.1 + 13 * PX);
        let y = at.1.max(free);
        let right = at.0 + gap + text_width(&what, SMALL) < plot.width().end;
        let (x, h) = if right { (at.0 + gap, HPos::Left) } else { (at.0 - gap, HPos::Right) };
        text(area, &what, (x, y), SMALL, &INK, (h, VPos::Center));
        last = Some((at.0, y));
    }
}
