// SPDX-License-Identifier: GPL-2.0-only
//! Draws a screen as SVG, for the README.

use std::fmt::Write;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

/// Pixels of a character. Letters are stretched to this size.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 17.0;
const BASELINE: f64 = 13.0;
const MARGIN: f64 = 12.0;

const BACK: &str = "#16181d";
const FRONT: &str = "#d0d3d8";

fn hex(color: Color) -> &'static str {
    match color {
        Color::Red => "#e06c75",
        Color::Green => "#7fb069",
        Color::Yellow => "#d9b45b",
        Color::Blue => "#6c8fe0",
        Color::Magenta => "#b57edc",
        Color::Cyan => "#4fb3bf",
        Color::DarkGray => "#7a808c",
        Color::LightCyan => "#8be9f5",
        Color::LightMagenta => "#ff8af0",
        _ => FRONT,
    }
}

/// Foreground and background of a cell.
fn colors(cell: &Cell) -> [&'static str; 2] {
    let front = hex(cell.fg);
    match cell.modifier.contains(Modifier::REVERSED) {
        true => [BACK, front],
        false => [front, BACK],
    }
}

fn element(svg: &mut String, args: std::fmt::Arguments) {
    svg.write_fmt(args).expect("a string takes everything");
    svg.push('\n');
}

fn rect(svg: &mut String, x: f64, y: f64, width: f64, height: f64, color: &str) {
    element(
        svg,
        format_args!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{color}"/>"#
        ),
    );
}

/// The height and opacity of a bar in its cell.
fn bar(symbol: &str) -> Option<(f64, f64)> {
    let eighths = "▁▂▃▄▅▆▇█".chars().position(|c| symbol.chars().eq([c]));
    match (symbol, eighths) {
        ("░", _) => Some((1.0, 0.3)),
        (_, Some(i)) => Some(((i + 1) as f64 / 8.0, 1.0)),
        _ => None,
    }
}

/// Draws a row of cells, combining runs of the same kind.
fn row(svg: &mut String, cells: &[Cell], y: f64) {
    let kind = |cell: &Cell| (colors(cell), cell.modifier, bar(cell.symbol()));
    let mut column = 0;
    for run in cells.chunk_by(|a, b| kind(a) == kind(b)) {
        let (x, width) = (MARGIN + column as f64 * WIDTH, run.len() as f64 * WIDTH);
        column += run.len();
        let ([front, back], modifier, bar) = kind(&run[0]);
        if back != BACK {
            rect(svg, x, y, width, HEIGHT, back);
        }
        match bar {
            Some((share, strength)) => {
                let height = HEIGHT * share;
                element(
                    svg,
                    format_args!(
                        r#"<rect x="{x:.1}" y="{:.1}" width="{width:.1}" height="{height:.1}" fill="{front}" fill-opacity="{strength}"/>"#,
                        y + HEIGHT - height
                    ),
                );
            }
            None => text(svg, run, x, y + BASELINE, front, modifier),
        }
    }
}

fn text(svg: &mut String, run: &[Cell], x: f64, y: f64, color: &str, modifier: Modifier) {
    let whole: String = run.iter().map(Cell::symbol).collect();
    let words = whole.trim();
    if words.is_empty() {
        return;
    }
    let before = whole.chars().count() - whole.trim_start().chars().count();
    let x = x + before as f64 * WIDTH;
    let length = words.chars().count() as f64 * WIDTH;
    let weight = if modifier.contains(Modifier::BOLD) { r#" font-weight="bold""# } else { "" };
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    element(
        svg,
        format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" textLength="{length:.1}" lengthAdjust="spacingAndGlyphs" fill="{color}"{weight} xml:space="preserve">{words}</text>"#
        ),
    );
}

/// The whole picture; `title` is for screen readers.
pub fn draw(buffer: &Buffer, title: &str) -> String {
    let width = f64::from(buffer.area.width) * WIDTH + 2.0 * MARGIN;
    let height = f64::from(buffer.area.height) * HEIGHT + 2.0 * MARGIN;
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" role="img">
<title>{title}</title>
"#
    );
    element(&mut svg, format_args!(r#"<rect width="100%" height="100%" rx="6" fill="{BACK}"/>"#));
    let rows = buffer.content().chunks(buffer.area.width.max(1).into());
    for (i, cells) in rows.enumerate() {
        row(&mut svg, cells, MARGIN + i as f64 * HEIGHT);
    }
    svg + "</svg>\n"
}

#[test]
fn pictures_have_text_bars_and_colours() {
    let mut buffer = Buffer::with_lines(["a<b ██ ▄"]);
    buffer[(0, 0)].set_fg(Color::Red);
    buffer[(4, 0)].set_fg(Color::Green);
    buffer[(7, 0)].modifier = Modifier::REVERSED;
    let svg = draw(&buffer, "t");
    assert!(svg.contains(r##"fill="#e06c75" xml:space="preserve">a</text>"##), "{svg}");
    assert!(svg.contains("&lt;b</text>"), "{svg}");
    assert!(svg.contains(r##"width="8.4" height="17.0" fill="#7fb069""##), "{svg}");
    assert!(svg.contains(r##"height="8.5" fill="#16181d" fill-opacity="1""##), "{svg}");
}
