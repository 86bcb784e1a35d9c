// SPDX-License-Identifier: GPL-2.0-only
//! What all charts share: title, legend, axes, drawing.

use std::ops::Range;

use plotters::backend::SVGBackend;
use plotters::chart::ChartBuilder;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::element::{Circle, PathElement, Polygon, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontTransform, IntoFont, RGBAColor, RGBColor, ShapeStyle};

use super::style::{number, to_axis, Axis, Look, Mark, Scale};

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A position in the picture.
pub(super) type At = (i32, i32);

/// The backend uses whole units; four units are a pixel.
pub(super) const PX: i32 = 4;
pub(super) const WIDTH: i32 = 720 * PX;
pub(super) const HEIGHT: i32 = 400 * PX;
pub(super) const SMALL: i32 = 11 * PX;
const NORMAL: i32 = 12 * PX;
const LARGE: i32 = 15 * PX;
const LEFT: i32 = 12 * PX;
pub(super) const LEGEND_ROW: i32 = 19 * PX;
const SWATCH: i32 = 30 * PX;

/// Placeholder for the colour of the page's text.
pub(super) const INK: RGBColor = RGBColor(0x01, 0x02, 0x03);
pub(super) const INK_TEXT: &str = "#010203";

/// An entry of the legend.
pub(super) struct Key<'a> {
    pub label: &'a str,
    pub look: Look,
    pub published: bool,
    pub kind: Kind,
}

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Line,
    Points,
    Bars,
}

pub(super) struct Frame<'a> {
    pub title: &'a str,
    pub subtitle: &'a str,
    pub x: &'a Axis,
    pub y: &'a Axis,
    pub x_range: Range<f64>,
    pub y_range: Range<f64>,
    pub x_ticks: Vec<(f64, String)>,
    pub y_ticks: Vec<(f64, String)>,
    pub legend: Vec<Key<'a>>,
}

/// Maps values to positions.
pub(super) struct Plot {
    x: (Range<f64>, Scale),
    y: (Range<f64>, Scale),
    pixels: (Range<i32>, Range<i32>),
}

impl Plot {
    pub fn at(&self, x: f64, y: f64) -> At {
        let place = |v: f64, (range, scale): &(Range<f64>, Scale), pixels: &Range<i32>| {
            let part = (to_axis(v, *scale) - range.start) / (range.end - range.start);
            pixels.start + (part * f64::from(pixels.end - pixels.start)).round() as i32
        };
        (place(x, &self.x, &self.pixels.0), place(y, &self.y, &self.pixels.1))
    }

    /// A value as text: that of its tick, or the number.
    pub fn text(value: f64, axis: &Axis) -> String {
        let tick = axis.ticks.iter().find(|(at, _)| *at == value);
        tick.map_or_else(|| number(value), |(_, text)| text.clone())
    }

    /// Its upper left and lower right corner.
    pub fn corners(&self) -> (At, At) {
        let (x, y) = &self.pixels;
        ((x.start, y.end), (x.end, y.start))
    }

    /// Left and right end.
    pub fn width(&self) -> Range<i32> {
        self.pixels.0.clone()
    }
}

/// The range of an axis that shows `values`, and its ticks.
pub(super) fn fit(
    axis: &Axis,
    values: impl Iterator<Item = f64>,
) -> (Range<f64>, Vec<(f64, String)>) {
    let known = values.filter(|v| v.is_finite()).chain(axis.from).chain(axis.to);
    let (mut low, mut high) = known
        .map(|v| to_axis(v, axis.scale))
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if low > high {
        (low, high) = (0.0, 1.0);
    }
    if high - low < 1e-9 {
        high = low + (low.abs() * 0.5).max(1.0);
    }
    let ticks: Vec<(f64, String)> = match (axis.ticks.is_empty(), axis.scale) {
        (false, scale) => axis.ticks.iter().map(|(v, t)| (to_axis(*v, scale), t.clone())).collect(),
        (true, Scale::Linear) => even_ticks(low, high),
        (true, Scale::Log) => log_ticks(low, high),
        // Its maker sets them.
        (true, Scale::Nines) => Vec::new(),
    };
    for (v, _) in &ticks {
        (low, high) = (low.min(*v), high.max(*v));
    }
    (low..high, ticks)
}

/// Multiples of 1, 2 or 5 times a power of ten, up to at least `high`.
fn even_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let rough = (high - low) / 5.0;
    let power = libm::pow(10.0, libm::floor(libm::log10(rough)));
    let step = [1.0, 2.0, 5.0, 10.0].map(|k| k * power).into_iter().find(|s| *s >= rough);
    let step = step.expect("ten times the power is more");
    let (first, last) = ((low / step + 1e-9).floor() as i64, (high / step - 1e-9).ceil() as i64);
    let digits = if step < 1.0 { (-libm::log10(step)).ceil() as usize } else { 0 };
    (first..=last)
        .map(|i| i as f64 * step)
        .map(|v| (v, if digits > 0 { format!("{v:.digits$}") } else { number(v.round()) }))
        .collect()
}

/// Powers of ten; over a short range also twice and five times them.
fn log_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let (first, last) = (low.floor() as i32, high.ceil() as i32);
    let factors: &[f64] = if high - low > 2.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all =
        (first..=last).flat_map(|p| factors.iter().map(move |f| f * libm::pow(10.0, p.into())));
    let all: Vec<(f64, String)> = all.map(|v| (libm::log10(v), number(v))).collect();
    // One beyond each end at most.
    let from = all.iter().rposition(|t| t.0 <= low + 1e-9).unwrap_or(0);
    let to = all.iter().position(|t| t.0 >= high - 1e-9).unwrap_or(all.len() - 1);
    all[from..=to].to_vec()
}

/// Estimated width of a text. No fonts are read, so pictures are the same on
/// every machine; a sans-serif letter is 0.5 to 0.58 of its size wide.
pub(super) fn text_width(text: &str, size: i32) -> i32 {
    (text.chars().count() as i32 * size * 56) / 100
}

/// Drawing into a string cannot fail.
pub(super) fn drawn<E: std::fmt::Debug>(result: Result<(), E>) {
    result.expect("a string takes all");
}

pub(super) fn heading(area: &Area, f: &Frame) {
    let mut y = 8 * PX;
    text(area, f.title, (LEFT, y), LARGE, &INK, (HPos::Left, VPos::Top));
    y += 22 * PX;
    text(area, f.subtitle, (LEFT, y), SMALL, &INK.mix(0.75), (HPos::Left, VPos::Top));
}

/// The entries of the legend with their positions, row by row. The legend is
/// above the plot, clear of the data.
pub(super) fn legend_rows<'a>(keys: &'a [Key<'a>]) -> Vec<Vec<(At, &'a Key<'a>)>> {
    let mut rows: Vec<Vec<_>> = Vec::new();
    let mut x = WIDTH;
    for key in keys {
        let width = SWATCH + 6 * PX + text_width(key.label, NORMAL) + 16 * PX;
        if x + width > WIDTH {
            rows.push(Vec::new());
            x = LEFT;
        }
        let y = 58 * PX + (rows.len() as i32 - 1) * LEGEND_ROW;
        rows.last_mut().expect("just made").push(((x, y), key));
        x += width;
    }
    rows
}

/// An entry of the legend.
pub(super) fn key(area: &Area, (x, y): At, key: &Key) {
    swatch(area, (x, y), key);
    let at = (x + SWATCH + 6 * PX, y);
    text(area, key.label, at, NORMAL, &INK, (HPos::Left, VPos::Center));
}

fn swatch(area: &Area, (x, y): At, key: &Key) {
    if key.kind == Kind::Bars {
        let (a, b) = ((x, y - 6 * PX), (x + SWATCH, y + 6 * PX));
        return box_of(area, a, b, key.look, key.published);
    }
    if key.kind == Kind::Line {
        path(area, &[(x, y), (x + SWATCH, y)], key.look, key.published);
    }
    mark(area, (x + SWATCH / 2, y), key.look, key.published);
}

/// An axis with given ticks.
struct Ticked {
    range: Range<f64>,
    ticks: Vec<(f64, String)>,
}

impl Ranged for Ticked {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let part = (value - self.range.start) / (self.range.end - self.range.start);
        limit.0 + (part * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.iter().map(|t| t.0).collect()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Ticked {
    fn format(value: &f64) -> String {
        number(*value)
    }

    fn format_ext(&self, value: &f64) -> String {
        let tick = self.ticks.iter().find(|t| t.0 == *value);
        tick.map(|t| t.1.clone()).unwrap_or_default()
    }
}

/// Axes below and left of the plot, which begins at `top`.
pub(super) fn axes(area: &Area, f: &Frame, top: i32) -> Plot {
    let longest = f.y_ticks.iter().map(|(_, t)| text_width(t, SMALL)).max().unwrap_or(0);
    let left = longest + 34 * PX;
    let mut builder = ChartBuilder::on(area);
    builder.margin_top(top + 16 * PX).margin_right(24 * PX).margin_left(4 * PX);
    builder.margin_bottom(4 * PX).x_label_area_size(46 * PX).y_label_area_size(left);
    let (xr, yr) = (f.x_range.clone(), f.y_range.clone());
    let x = Ticked { range: xr.clone(), ticks: f.x_ticks.clone() };
    let y = Ticked { range: yr.clone(), ticks: f.y_ticks.clone() };
    let mut chart = builder.build_cartesian_2d(x, y).expect("a string takes all");
    let font = |size: i32| ("sans-serif", size).into_font().color(&INK);
    let mut mesh = chart.configure_mesh();
    mesh.x_labels(f.x_ticks.len()).y_labels(f.y_ticks.len());
    mesh.label_style(font(SMALL));
    mesh.axis_desc_style(font(NORMAL)).x_desc(&f.x.label).y_desc(&f.y.label);
    mesh.bold_line_style(INK.mix(0.13).stroke_width(PX as u32)).light_line_style(INK.mix(0.0));
    mesh.axis_style(INK.mix(0.55).stroke_width(PX as u32)).max_light_lines(0);
    mesh.set_all_tick_mark_size(4 * PX);
    drawn(mesh.draw());
    let corner = |x, y| chart.backend_coord(&(x, y));
    let ((x0, y0), (x1, y1)) = (corner(xr.start, yr.start), corner(xr.end, yr.end));
    Plot { x: (xr, f.x.scale), y: (yr, f.y.scale), pixels: (x0..x1, y0..y1) }
}

pub(super) fn text(
    area: &Area,
    what: &str,
    at: At,
    size: i32,
    colour: &impl Color,
    (h, v): (HPos, VPos),
) {
    let style = ("sans-serif", size).into_font().color(colour).pos(Pos::new(h, v));
    drawn(area.draw(&Text::new(what.to_string(), at, style)));
}

/// Vertical text, reading upwards.
pub(super) fn text_upwards(area: &Area, what: &str, at: At, size: i32, colour: &impl Color) {
    let font = ("sans-serif", size).into_font().transform(FontTransform::Rotate270);
    let style = font.color(colour).pos(Pos::new(HPos::Left, VPos::Center));
    drawn(area.draw(&Text::new(what.to_string(), at, style)));
}

fn rgb(look: Look) -> RGBColor {
    let (r, g, b) = look.colour;
    RGBColor(r, g, b)
}

/// A line; dashed if published.
pub(super) fn path(area: &Area, points: &[At], look: Look, published: bool) {
    let width = if published { 3 * PX / 2 } else { 2 * PX };
    let style = rgb(look).stroke_width(width as u32);
    if !published {
        drawn(area.draw(&PathElement::new(points.to_vec(), style)));
        return;
    }
    let mut left = 0.0; // of the dash or gap that is being drawn
    let mut dash = false;
    for pair in points.windows(2) {
        let (dx, dy) = (f64::from(pair[1].0 - pair[0].0), f64::from(pair[1].1 - pair[0].1));
        let length = libm::sqrt(dx * dx + dy * dy);
        let on = |t: f64| {
            let place = |from: i32, d: f64| from + (d * t / length).round() as i32;
            (place(pair[0].0, dx), place(pair[0].1, dy))
        };
        let mut t = 0.0;
        while t < length {
            // Ignore remainders of rounding.
            if left < 0.5 {
                dash = !dash;
                left = f64::from(if dash { 6 * PX } else { 4 * PX });
            }
            let end = (t + left).min(length);
            if dash {
                drawn(area.draw(&PathElement::new(vec![on(t), on(end)], style)));
            }
            left -= end - t;
            t = end;
        }
    }
}

/// A thin line from the published to the simulated value.
pub(super) fn connector(area: &Area, from: At, to: At, look: Look) {
    let style = rgb(look).mix(0.6).stroke_width(PX as u32);
    drawn(area.draw(&PathElement::new(vec![from, to], style)));
}

/// A thin line from a point to its text.
pub(super) fn leader(area: &Area, from: At, to: At, look: Look) {
    let style = rgb(look).stroke_width(PX as u32 / 2);
    drawn(area.draw(&PathElement::new(vec![from, to], style)));
}

/// A point; published ones are hollow and larger, so that both show where they
/// coincide.
pub(super) fn mark(area: &Area, at: At, look: Look, published: bool) {
    let r = if published { 6 * PX } else { 7 * PX / 2 };
    let style = match published {
        true => rgb(look).stroke_width(2 * PX as u32),
        false => rgb(look).filled(),
    };
    match corners(look.mark) {
        None => drawn(area.draw(&Circle::new(at, r, style))),
        Some(corners) if is_lines(look.mark) => strokes(area, at, r, corners, style),
        Some(corners) => {
            let place = |(x, y): &(i32, i32)| (at.0 + x * r / 100, at.1 + y * r / 100);
            let mut points: Vec<At> = corners.iter().map(place).collect();
            if published {
                points.push(points[0]);
                points.push(points[1]);
                drawn(area.draw(&PathElement::new(points, style)));
            } else {
                drawn(area.draw(&Polygon::new(points, style)));
            }
        }
    }
}

fn is_lines(mark: Mark) -> bool {
    matches!(mark, Mark::Cross | Mark::Plus | Mark::Dash)
}

/// Lines through the point, each by its one end.
fn strokes(area: &Area, (x, y): At, r: i32, ends: &[(i32, i32)], style: ShapeStyle) {
    let style = ShapeStyle { filled: false, stroke_width: 2 * PX as u32, ..style };
    for (dx, dy) in ends {
        let (dx, dy) = (dx * r / 100, dy * r / 100);
        drawn(area.draw(&PathElement::new(vec![(x - dx, y - dy), (x + dx, y + dy)], style)));
    }
}

/// In hundredths of the radius.
fn corners(mark: Mark) -> Option<&'static [(i32, i32)]> {
    Some(match mark {
        Mark::Circle => return None,
        Mark::Square => &[(-88, -88), (88, -88), (88, 88), (-88, 88)],
        Mark::Triangle => &[(0, -115), (105, 75), (-105, 75)],
        Mark::Inverted => &[(0, 115), (105, -75), (-105, -75)],
        Mark::Diamond => &[(0, -125), (125, 0), (0, 125), (-125, 0)],
        Mark::Cross => &[(95, 95), (95, -95)],
        Mark::Plus => &[(0, 120), (120, 0)],
        Mark::Dash => &[(130, 0)],
        Mark::Bowtie => &[(-115, -85), (115, 85), (115, -85), (-115, 85)],
        Mark::Hourglass => &[(-85, -115), (85, 115), (-85, 115), (85, -115)],
        Mark::Star => {
            &[(0, -135), (38, -38), (135, 0), (38, 38), (0, 135), (-38, 38), (-135, 0), (-38, -38)]
        }
        Mark::Pentagon => &[(0, -110), (105, -34), (65, 89), (-65, 89), (-105, -34)],
    })
}

/// An interval: a thin upright line with an end above and below.
pub(super) fn whisker(area: &Area, x: i32, (low, high): (i32, i32), colour: &impl Color) {
    let style = colour.stroke_width(3 * PX as u32 / 2);
    let end = 3 * PX;
    for line in [
        [(x, low), (x, high)],
        [(x - end, low), (x + end, low)],
        [(x - end, high), (x + end, high)],
    ] {
        drawn(area.draw(&PathElement::new(line.to_vec(), style)));
    }
}

/// The colour of a look, as that of a whisker.
pub(super) fn colour(look: Look) -> RGBColor {
    rgb(look)
}

/// Intervals of many points: the area between their ends.
pub(super) fn band(area: &Area, low: &[At], high: &[At], look: Look) {
    let around: Vec<At> = low.iter().copied().chain(high.iter().rev().copied()).collect();
    drawn(area.draw(&Polygon::new(around, rgb(look).mix(0.2).filled())));
}

/// Shades the marked stretch of the horizontal axis, and says what it is.
pub(super) fn shade(area: &Area, plot: &Plot, x: &Axis) {
    let Some((from, to, what)) = &x.marked else { return };
    let (foot, top) = (plot.pixels.1.start, plot.pixels.1.end);
    let ((left, _), (right, _)) = (plot.at(*from, 0.0), plot.at(*to, 0.0));
    drawn(area.draw(&Rectangle::new([(left, top), (right, foot)], INK.mix(0.08).filled())));
    let at = ((left + right) / 2, top + 4 * PX);
    text(area, what, at, SMALL, &INK.mix(0.75), (HPos::Center, VPos::Top));
}

/// A bar; hollow if published.
pub(super) fn box_of(area: &Area, a: At, b: At, look: Look, published: bool) {
    if published {
        // The line is inside.
        let (a, b) = ((a.0 + PX, a.1 + PX), (b.0 - PX, b.1 - PX));
        let tint: RGBAColor = rgb(look).mix(0.12);
        drawn(area.draw(&Rectangle::new([a, b], tint.filled())));
        let around = [a, (b.0, a.1), b, (a.0, b.1), a];
        path(area, &around, look, true);
    } else {
        drawn(area.draw(&Rectangle::new([a, b], rgb(look).filled())));
    }
}
