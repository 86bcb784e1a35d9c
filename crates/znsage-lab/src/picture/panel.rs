// SPDX-License-Identifier: GPL-2.0-only
//! One set of axes with its lines.

use super::scale::{label, Scale};
use super::svg::{Anchor, Stroke, Style, Svg};

pub const INK: &str = "#1f2933";
pub const FAINT: &str = "#5f6b7a";
const GRID: &str = "#e4e8ed";
const AXIS: &str = "#9aa5b1";

pub const TICK_SIZE: f64 = 13.0;
pub const LABEL_SIZE: f64 = 14.0;

/// The mean width of a letter of DejaVu Sans Bold, of the font's size.
const LETTER: f64 = 0.68;

/// A line and its label.
pub struct Series<'a> {
    pub points: Vec<(f64, f64)>,
    pub color: &'a str,
    pub label: String,
    /// The label is above the line, not below.
    pub above: bool,
}

pub struct Panel {
    pub x: Scale,
    pub y: Scale,
    pub x_ticks: usize,
    pub y_ticks: usize,
}

impl Panel {
    pub fn frame(&self, svg: &mut Svg) {
        let ticks = self.y.ticks(self.y_ticks);
        for &tick in &ticks {
            let y = self.y.at(tick);
            let grid = Stroke { color: GRID, width: 1.0 };
            svg.line((self.x.from, y), (self.x.to, y), grid);
            let style = Style::new(TICK_SIZE, FAINT).anchor(Anchor::End);
            svg.text(self.x.from - 8.0, y + 4.5, style, &label(tick, &ticks));
        }
        let axis = Stroke { color: AXIS, width: 1.2 };
        svg.line((self.x.from, self.y.from), (self.x.to, self.y.from), axis);
        let ticks = self.x.ticks(self.x_ticks);
        for &tick in &ticks {
            let x = self.x.at(tick);
            svg.line((x, self.y.from), (x, self.y.from + 5.0), axis);
            let style = Style::new(TICK_SIZE, FAINT).anchor(Anchor::Middle);
            svg.text(x, self.y.from + 20.0, style, &label(tick, &ticks));
        }
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x.at(x), self.y.at(y.clamp(self.y.low, self.y.high)))
    }

    /// Lines, and above them all labels.
    pub fn draw(&self, svg: &mut Svg, all: &[Series]) {
        for series in all {
            let points: Vec<_> = series.points.iter().map(|&p| self.place(p)).collect();
            svg.polyline(&points, Stroke { color: series.color, width: 2.6 });
            if let Some(&(x, y)) = points.last() {
                svg.circle(x, y, 3.6, series.color);
            }
        }
        // A label is above or below its line, at the right end.
        for series in all {
            let Some(&last) = series.points.last() else {
                continue;
            };
            let width = series.label.chars().count() as f64 * LABEL_SIZE * LETTER;
            let right = (self.place(last).0 + 4.0).max(self.x.from + width + 4.0);
            let under = |p: &(f64, f64)| (right - width - 6.0..=right + 6.0).contains(&p.0);
            let own = series.points.iter().map(|&p| self.place(p));
            let ys: Vec<f64> = own.filter(under).map(|p| p.1).collect();
            let end = self.place(last).1;
            let y = match series.above {
                true => ys.iter().copied().fold(end, f64::min) - 10.0,
                false => ys.iter().copied().fold(end, f64::max) + 22.0,
            };
            let y = y.clamp(self.y.to + LABEL_SIZE, self.y.from - 6.0);
            let style = Style::new(LABEL_SIZE, series.color).bold().rim().anchor(Anchor::End);
            svg.text(right, y, style, &series.label);
        }
    }
}
