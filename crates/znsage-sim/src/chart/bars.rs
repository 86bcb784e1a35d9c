// SPDX-License-Identifier: GPL-2.0-only
//! Bar charts.

use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::Color;

use super::frame::{
    box_of, fit, text, text_upwards, text_width, whisker, Area, Frame, Key, Kind, Plot, INK, PX,
    SMALL,
};
use super::layers::{picture, Drawing, Point};
use super::style::{difference, number, to_axis, Axis, Look};

/// The plot is at least so high, whatever is around it.
const LEAST_HEIGHT: i32 = 270 * PX;

/// Groups of bars.
#[derive(Clone, Debug, PartialEq)]
pub struct BarChart {
    /// Title.
    pub title: String,
    /// How the data were obtained.
    pub subtitle: String,
    /// What the groups are.
    pub x: String,
    /// Upwards; it should begin at 0.
    pub y: Axis,
    /// The bars of each group.
    pub series: Vec<BarSeries>,
    /// From left to right.
    pub groups: Vec<Group>,
}

/// One bar of each group.
#[derive(Clone, Debug, PartialEq)]
pub struct BarSeries {
    /// For the legend.
    pub label: String,
    /// Published and simulated values of one thing share a look.
    pub look: Look,
    /// Published, not simulated.
    pub published: bool,
}

/// A group of bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Label below the bars.
    pub label: String,
    /// One for each series; None where it has no value.
    pub bars: Vec<Option<Bar>>,
}

/// A bar: a value, or the ends of a published range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// The value, or the lower end.
    pub low: f64,
    /// The value, or the upper end.
    pub high: f64,
    /// The interval of a single value, if it is known.
    pub spread: Option<(f64, f64)>,
}

impl Bar {
    /// A single value.
    pub fn of(value: f64) -> Bar {
        Bar { low: value, high: value, spread: None }
    }

    /// A published range.
    pub fn range(low: f64, high: f64) -> Bar {
        Bar { low, high, spread: None }
    }

    /// A mean with its interval.
    pub fn with(self, spread: Option<(f64, f64)>) -> Bar {
        Bar { spread, ..self }
    }

    /// Where its number has room.
    fn top(&self) -> f64 {
        self.spread.map_or(self.high, |s| s.1.max(self.high))
    }

    fn text(&self) -> String {
        match self.low == self.high {
            true => number(self.high),
            false => format!("{} - {}", number(self.low), number(self.high)),
        }
    }
}

impl BarChart {
    /// The picture.
    pub fn svg(&self) -> String {
        let bars = self.groups.iter().flat_map(|g| g.bars.iter().flatten());
        let values = || bars.clone().flat_map(|b| [b.low, b.high, b.top()]);
        let (mut y_range, y_ticks) = fit(&self.y, values());
        // Room for the numbers above the bars.
        for (bar, height) in self.numbers() {
            let top = to_axis(bar.top(), self.y.scale) - y_range.start;
            let room = f64::from(height + 5 * PX) / f64::from(LEAST_HEIGHT);
            y_range.end = y_range.end.max(y_range.start + top / (1.0 - room));
        }
        let x = Axis::new(self.x.clone());
        let labels = self.groups.iter().enumerate();
        let legend = self.series.iter().map(|s| Key {
            label: &s.label,
            look: s.look,
            published: s.published,
            kind: Kind::Bars,
        });
        let frame = Frame {
            title: &self.title,
            subtitle: &self.subtitle,
            x: &x,
            y: &self.y,
            x_range: -0.5..self.groups.len() as f64 - 0.5,
            y_range,
            x_ticks: labels.map(|(i, g)| (i as f64, g.label.clone())).collect(),
            y_ticks,
            legend: legend.collect(),
        };
        picture(&frame, self)
    }

    /// Each bar, and how high the number above it is; narrow bars have it upright.
    fn numbers(&self) -> Vec<(&Bar, i32)> {
        let upright = self.groups.len() * self.series.len() > 8;
        let mut all = Vec::new();
        for group in &self.groups {
            for (i, bar) in group.bars.iter().enumerate() {
                let Some(bar) = bar else { continue };
                let height = match self.off(group, i, bar) {
                    off if upright => text_width(&both(bar, off), SMALL),
                    Some(_) => 26 * PX,
                    None => 13 * PX,
                };
                all.push((bar, height));
            }
        }
        all
    }

    /// The bars of a series: group, bar, left and right edge.
    fn places<'a>(
        &'a self,
        i: usize,
        plot: &'a Plot,
    ) -> impl Iterator<Item = (&'a Group, &'a Bar, (i32, i32))> {
        let one = f64::from(plot.width().end - plot.width().start) / self.groups.len() as f64;
        let width = (one * 0.86 / self.series.len() as f64).min(f64::from(72 * PX)) as i32;
        self.groups.iter().enumerate().filter_map(move |(g, group)| {
            let bar = group.bars[i].as_ref()?;
            let first = plot.at(g as f64, 0.0).0 - width * self.series.len() as i32 / 2;
            let (left, right) = (first + i as i32 * width, first + (i as i32 + 1) * width);
            Some((group, bar, (left + PX, right - PX)))
        })
    }

    /// Top and foot of a bar.
    fn ends(&self, plot: &Plot, bar: &Bar) -> (i32, i32) {
        // A range is a bar from its one end to the other.
        let base = if bar.low < bar.high { bar.low } else { self.y.from.unwrap_or(0.0) };
        (plot.at(0.0, bar.high).1, plot.at(0.0, base).1)
    }

    fn bar(
        &self,
        area: &Area,
        plot: &Plot,
        (left, right): (i32, i32),
        (group, i): (&Group, usize),
        bar: &Bar,
    ) {
        let series = &self.series[i];
        let (top, foot) = self.ends(plot, bar);
        box_of(area, (left, top), (right, foot), series.look, series.published);
        let value = bar.text();
        let off = self.off(group, i, bar);
        let widest =
            text_width(&value, SMALL).max(off.as_ref().map_or(0, |o| text_width(o, SMALL)));
        let middle = (left + right) / 2;
        if let Some((low, high)) = bar.spread {
            let ends = (plot.at(0.0, low).1.min(foot), plot.at(0.0, high).1);
            if ends.0 - ends.1 > PX {
                whisker(area, middle, ends, &INK);
            }
        }
        let above = plot.at(0.0, bar.top()).1.min(top) - 3 * PX;
        if widest > right - left + 2 * PX {
            return text_upwards(area, &both(bar, off), (middle, above), SMALL, &INK);
        }
        let place = (HPos::Center, VPos::Bottom);
        match off {
            None => text(area, &value, (middle, above), SMALL, &INK, place),
            Some(off) => {
                text(area, &value, (middle, above - 13 * PX), SMALL, &INK, place);
                text(area, &off, (middle, above), SMALL, &INK.mix(0.75), place);
            }
        }
    }

    /// How far bar `i` is from what was published.
    fn off(&self, group: &Group, i: usize, bar: &Bar) -> Option<String> {
        self.partner(group, i).map(|p| difference(p.high, bar.high))
    }

    /// The published single value that bar `i` is compared with.
    fn partner<'a>(&self, group: &'a Group, i: usize) -> Option<&'a Bar> {
        if self.series[i].published {
            return None;
        }
        let same = |s: &BarSeries| s.published && s.look == self.series[i].look;
        let at = self.series.iter().position(same)?;
        group.bars[at].as_ref().filter(|b| b.low == b.high)
    }
}

/// The number of a bar, with its difference, on one line.
fn both(bar: &Bar, off: Option<String>) -> String {
    off.map_or(bar.text(), |off| format!("{} ({off})", bar.text()))
}

impl Drawing for BarChart {
    fn between(&self, _area: &Area, _plot: &Plot) {}

    fn series(&self, i: usize, area: &Area, plot: &Plot) {
        for (group, bar, sides) in self.places(i, plot) {
            self.bar(area, plot, sides, (group, i), bar);
        }
    }

    fn points(&self, i: usize, plot: &Plot) -> Vec<Point> {
        let point = |(group, bar, (left, right)): (&Group, &Bar, (i32, i32))| {
            let (top, foot) = self.ends(plot, bar);
            let at = ((left + right) / 2, top);
            Point { at, foot, x: group.label.clone(), y: bar.text() }
        };
        self.places(i, plot).map(point).collect()
    }
}
