// SPDX-License-Identifier: GPL-2.0-only
//! The few elements of SVG that the picture needs.

use std::fmt::Write;

pub const FONT: &str = "DejaVu Sans";

pub struct Svg {
    width: f64,
    height: f64,
    body: String,
}

#[derive(Clone, Copy)]
pub struct Stroke<'a> {
    pub color: &'a str,
    pub width: f64,
}

#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Clone, Copy)]
pub struct Style<'a> {
    pub size: f64,
    pub color: &'a str,
    pub bold: bool,
    pub anchor: Anchor,
    /// A white rim keeps lines away from the letters.
    pub rim: bool,
}

impl<'a> Style<'a> {
    pub fn new(size: f64, color: &'a str) -> Self {
        Style { size, color, bold: false, anchor: Anchor::Start, rim: false }
    }

    pub fn bold(self) -> Self {
        Style { bold: true, ..self }
    }

    pub fn anchor(self, anchor: Anchor) -> Self {
        Style { anchor, ..self }
    }

    pub fn rim(self) -> Self {
        Style { rim: true, ..self }
    }
}

impl Svg {
    pub fn new(width: f64, height: f64) -> Self {
        let background = format!(
            r##"<rect x="0.0" y="0.0" width="{width:.1}" height="{height:.1}" fill="#ffffff"/>"##
        );
        Svg { width, height, body: background + "\n" }
    }

    fn element(&mut self, args: std::fmt::Arguments) {
        self.body.write_fmt(args).expect("a string takes everything");
        self.body.push('\n');
    }

    /// With straight ends.
    pub fn bar(&mut self, from: (f64, f64), to: f64, height: f64, color: &str) {
        let (x, y, width) = (from.0, from.1, to - from.0);
        self.element(format_args!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{color}"/>"#
        ));
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke) {
        self.polyline(&[from, to], stroke);
    }

    pub fn polyline(&mut self, points: &[(f64, f64)], stroke: Stroke) {
        let mut list = String::new();
        for (x, y) in points {
            write!(list, "{x:.1},{y:.1} ").expect("a string takes everything");
        }
        let Stroke { color, width } = stroke;
        self.element(format_args!(
            r#"<polyline points="{}" fill="none" stroke="{color}" stroke-width="{width}" stroke-linejoin="round" stroke-linecap="round"/>"#,
            list.trim_end()
        ));
    }

    pub fn circle(&mut self, x: f64, y: f64, radius: f64, color: &str) {
        self.element(format_args!(
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="{color}"/>"#
        ));
    }

    pub fn text(&mut self, x: f64, y: f64, style: Style, text: &str) {
        let Style { size, color, .. } = style;
        let anchor = match style.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if style.bold { r#" font-weight="bold""# } else { "" };
        let rim = match style.rim {
            true => {
                r##" paint-order="stroke" stroke="#ffffff" stroke-width="4" stroke-linejoin="round""##
            }
            false => "",
        };
        let text = escape(text);
        self.element(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" font-size="{size}" fill="{color}" text-anchor="{anchor}"{weight}{rim}>{text}</text>"#
        ));
    }

    /// The whole document; `title` is for screen readers.
    pub fn finish(self, title: &str) -> String {
        let Svg { width, height, body } = self;
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="{FONT}, Verdana, sans-serif" role="img">
<title>{}</title>
{body}</svg>
"#,
            escape(title)
        )
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text(1.0, 2.0, Style::new(12.0, "#000000"), "a < b & c");
        let document = svg.finish("<t>");
        assert!(document.contains(">a &lt; b &amp; c</text>"));
        assert!(document.contains("<title>&lt;t&gt;</title>"));
    }
}
