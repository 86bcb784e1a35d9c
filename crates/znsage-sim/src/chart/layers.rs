// SPDX-License-Identifier: GPL-2.0-only
//! A picture in layers: the frame, and a group for each series and each entry
//! of the legend. The page's script (`html/chart.js`) hides and shows them,
//! and shows the values of the points they carry. Without it they are a plain
//! picture.

use plotters::backend::SVGBackend;
use plotters::drawing::IntoDrawingArea;

use super::frame::{
    axes, drawn, heading, key, legend_rows, shade, Area, At, Frame, Plot, INK_TEXT,
};
use super::frame::{HEIGHT, LEGEND_ROW, PX, WIDTH};
use crate::html::escape;

/// A value shown when the pointer is near.
pub(super) struct Point {
    pub at: At,
    /// Where a bar begins; it ends at `at`.
    pub foot: i32,
    pub x: String,
    pub y: String,
}

/// The content of a frame.
pub(super) trait Drawing {
    /// Drawn below the series.
    fn between(&self, area: &Area, plot: &Plot);
    /// Draws series `i`.
    fn series(&self, i: usize, area: &Area, plot: &Plot);
    /// Its values.
    fn points(&self, i: usize, plot: &Plot) -> Vec<Point>;
}

/// The picture of a frame with a drawing in it.
pub(super) fn picture(f: &Frame, drawing: &impl Drawing) -> String {
    let rows = legend_rows(&f.legend);
    let height = HEIGHT + rows.len() as i32 * LEGEND_ROW;
    let mut plot = None;
    let mut body = layer(height, |area| {
        heading(area, f);
        let made = axes(area, f, 50 * PX + rows.len() as i32 * LEGEND_ROW);
        shade(area, &made, f.x);
        plot = Some(made);
    });
    let plot = plot.expect("it was drawn");
    body += &group("between", "", &layer(height, |area| drawing.between(area, &plot)));
    for (i, entry) in f.legend.iter().enumerate() {
        let points = points(&drawing.points(i, &plot));
        let label = escape(entry.label);
        let attributes = format!(" data-series=\"{i}\" data-label=\"{label}\"{points}");
        body += &group("series", &attributes, &layer(height, |a| drawing.series(i, a, &plot)));
    }
    for (i, (at, entry)) in rows.iter().flatten().enumerate() {
        let attributes = format!(" data-series=\"{i}\"");
        body += &group("key", &attributes, &layer(height, |area| key(area, *at, entry)));
    }
    let (w, h, label) = (WIDTH / PX, height / PX, escape(f.title));
    let (x, y) = (escape(&f.x.label), escape(&f.y.label));
    format!(
        "<svg width=\"{w}\" height=\"{h}\" role=\"img\" aria-label=\"{label}\" data-x=\"{x}\" \
         data-y=\"{y}\" viewBox=\"0 0 {WIDTH} {height}\" xmlns=\"http://www.w3.org/2000/svg\">\n\
         {body}</svg>\n"
    )
    .replace(INK_TEXT, "currentColor")
}

/// The drawing without the surrounding element.
fn layer(height: i32, draw: impl FnOnce(&Area)) -> String {
    let mut svg = String::new();
    {
        let backend = SVGBackend::with_string(&mut svg, (WIDTH as u32, height as u32));
        let area = backend.into_drawing_area();
        draw(&area);
        drawn(area.present());
    }
    let inside = svg.split_once(">\n").and_then(|(_, rest)| rest.rsplit_once("</svg>"));
    inside.map(|(inside, _)| inside.to_string()).unwrap_or_default()
}

fn group(class: &str, attributes: &str, inside: &str) -> String {
    match inside.is_empty() && class == "between" {
        true => String::new(),
        false => format!("<g class=\"{class}\"{attributes}>\n{inside}</g>\n"),
    }
}

/// As `[[x, y, foot, "text of x", "text of y"], ...]`.
fn points(all: &[Point]) -> String {
    let list: Vec<_> = all.iter().map(|p| (p.at.0, p.at.1, p.foot, &p.x, &p.y)).collect();
    let json = serde_json::to_string(&list).expect("numbers and texts");
    format!(" data-points=\"{}\"", escape(&json))
}
