// SPDX-License-Identifier: GPL-2.0-only
//! Horizontal bars with names and figures.

use super::panel::{INK, LABEL_SIZE};
use super::svg::{Anchor, Style, Svg};

const HEIGHT: f64 = 26.0;
const PITCH: f64 = 40.0;
/// Room for the figure at the longest bar.
const FIGURE: f64 = 92.0;

pub struct Bar<'a> {
    pub name: &'a str,
    pub color: &'a str,
    pub value: f64,
    pub label: String,
}

/// Where the bars are.
pub struct Bars<'a> {
    pub title: &'a str,
    pub left: f64,
    /// Width of the names.
    pub names: f64,
    pub right: f64,
    pub top: f64,
}

impl Bars<'_> {
    pub fn draw(&self, svg: &mut Svg, all: &[Bar]) {
        svg.text(self.left, self.top - 22.0, Style::new(16.0, INK).bold(), self.title);
        let most = all.iter().map(|b| b.value).fold(f64::MIN_POSITIVE, f64::max);
        let zero = self.left + self.names;
        for (i, bar) in all.iter().enumerate() {
            let middle = self.top + PITCH * i as f64 + HEIGHT / 2.0;
            let name = Style::new(LABEL_SIZE, INK).anchor(Anchor::End);
            svg.text(zero - 10.0, middle + 5.0, name, bar.name);
            let end = zero + bar.value / most * (self.right - FIGURE - zero);
            svg.bar((zero, middle - HEIGHT / 2.0), end, HEIGHT, bar.color);
            let figure = Style::new(LABEL_SIZE, bar.color).bold();
            svg.text(end + 10.0, middle + 5.0, figure, &bar.label);
        }
    }
}
