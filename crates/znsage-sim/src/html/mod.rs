// SPDX-License-Identifier: GPL-2.0-only
//! Reports as one self-contained HTML page. It follows the reader's light or
//! dark setting. Its script shows the values of charts; without it they are
//! pictures. The page is also well-formed XML, which makes it easy to test.

use std::fmt::Write;

/// A page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Its title.
    pub title: String,
    /// Blocks before the sections.
    pub intro: Vec<Block>,
    /// The sections; the top lists those with a title.
    pub sections: Vec<Section>,
}

/// A part of a page.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Its name in links: letters, digits, `-`.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its content.
    pub blocks: Vec<Block>,
}

/// A piece of a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// A less prominent line, such as a source.
    Small(String),
    /// A list.
    List(Vec<String>),
    /// A picture, as [`crate::chart`] makes it: an `<svg>` element.
    Svg(String),
    /// A table.
    Table(Table),
    /// A summary that unfolds the blocks.
    Folded(String, Vec<Block>),
    /// A heading within a section.
    Heading(String),
}

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Its columns.
    pub head: Vec<String>,
    /// Its rows, as long as the head.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Its content.
    pub text: String,
    /// Its style.
    pub kind: CellKind,
    /// The section it links to.
    pub link: Option<String>,
}

/// The style of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// Words.
    Text,
    /// A number, aligned to the right.
    Number,
    /// Good.
    Good,
    /// Fair.
    Fair,
    /// Bad.
    Bad,
}

impl Cell {
    /// A cell of words.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), kind: CellKind::Text, link: None }
    }

    /// A cell with a number.
    pub fn number(text: impl Into<String>) -> Cell {
        Cell { kind: CellKind::Number, ..Cell::text(text) }
    }

    /// Sets the style.
    pub fn kind(mut self, kind: CellKind) -> Cell {
        self.kind = kind;
        self
    }

    /// Links to a section.
    pub fn link(mut self, section: impl Into<String>) -> Cell {
        self.link = Some(section.into());
        self
    }
}

/// Escapes text for HTML, XML and SVG.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // XML cannot represent other control characters.
            c if c.is_control() && !matches!(c, '\n' | '\t') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

const STYLE: &str = "
:root { color-scheme: light dark; --paper: #fff; --ink: #1c1c1e; --soft: #5f6368; --line: #d8dadd;
  --card: #f6f7f8; --good: #0a7d48; --fair: #996000; --bad: #c0271a; --link: #0062a3 }
@media (prefers-color-scheme: dark) { :root { --paper: #16181c; --ink: #e6e7e9; --soft: #a0a5ac;
  --line: #363a41; --card: #1e2126; --good: #4cc38a; --fair: #e2a336; --bad: #ff7b6b; --link: #6cb6ff } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 68rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0 1rem }
h2 { font-size: 1.25rem; margin: 3rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--line) }
h3 { font-size: 1rem; margin: 1.25rem 0 .25rem }
p, ul { margin: .5rem 0; max-width: 46rem }
ul { padding-left: 1.25rem }
a { color: var(--link) }
.small { color: var(--soft); font-size: .875rem }
nav { columns: 20rem; margin: 1rem 0; font-size: .9rem }
nav a { display: block; padding: .1rem 0 }
.wide { overflow-x: auto; margin: .75rem 0 }
.picture { background: var(--card); border-radius: .5rem; padding: .5rem }
.picture svg { display: block; width: 100%; height: auto; min-width: 34rem; max-width: 54rem; margin: 0 auto }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums }
th, td { padding: .3rem .6rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line) }
th { font-weight: 600; color: var(--soft); white-space: nowrap }
td.number { text-align: right; white-space: nowrap }
td:not(.number) { min-width: 8rem }
td a { overflow-wrap: anywhere }
td.good { color: var(--good) } td.fair { color: var(--fair) } td.bad { color: var(--bad) }
.key { cursor: pointer } .key.off { opacity: .35 } .series.off, .between.off { display: none }
.key:focus-visible { outline: 2px solid var(--link); outline-offset: 2px }
.ring { fill: none; stroke: var(--ink); stroke-width: 6; visibility: hidden; pointer-events: none }
.ring.on { visibility: visible }
.tip { position: fixed; z-index: 1; padding: .35rem .6rem; border-radius: .35rem; white-space: pre-line;
  background: var(--ink); color: var(--paper); font-size: .8125rem; line-height: 1.35; pointer-events: none }
.tip::first-line { font-weight: 600 }
.tip[hidden] { display: none }
details { margin: .75rem 0 } summary { cursor: pointer; color: var(--link) }
@media (max-width: 40rem) { td:not(.number) { min-width: 4rem } }
@media print { details > * { display: block } body { max-width: none } }
";

/// For pages with charts.
const SCRIPT: &str = include_str!("chart.js");

impl Page {
    /// The page as a document.
    pub fn render(&self) -> String {
        let title = escape(&self.title);
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        );
        self.intro.iter().for_each(|b| b.render(&mut out));
        let listed: Vec<&Section> = self.sections.iter().filter(|s| !s.title.is_empty()).collect();
        if listed.len() > 1 {
            out.push_str("<nav>\n");
            for s in listed {
                let (id, title) = (escape(&s.id), escape(&s.title));
                let _ = writeln!(out, "<a href=\"#{id}\">{title}</a>");
            }
            out.push_str("</nav>\n");
        }
        for s in &self.sections {
            let (id, title) = (escape(&s.id), escape(&s.title));
            let _ = writeln!(out, "<section id=\"{id}\">\n<h2>{title}</h2>");
            s.blocks.iter().for_each(|b| b.render(&mut out));
            out.push_str("</section>\n");
        }
        if out.contains("<svg ") {
            // HTML sees the CDATA marks as comments; XML sees the script as text.
            let _ = write!(out, "<script>\n//<![CDATA[\n{SCRIPT}//]]>\n</script>\n");
        }
        out.push_str("</body>\n</html>\n");
        out
    }
}

impl Block {
    fn render(&self, out: &mut String) {
        match self {
            Block::Text(text) => drop(writeln!(out, "<p>{}</p>", escape(text))),
            Block::Small(text) => drop(writeln!(out, "<p class=\"small\">{}</p>", escape(text))),
            Block::Heading(text) => drop(writeln!(out, "<h3>{}</h3>", escape(text))),
            Block::List(items) => {
                out.push_str("<ul>\n");
                for item in items {
                    let _ = writeln!(out, "<li>{}</li>", escape(item));
                }
                out.push_str("</ul>\n");
            }
            Block::Svg(svg) => {
                let _ = writeln!(out, "<div class=\"wide picture\">\n{svg}</div>");
            }
            Block::Table(table) => table.render(out),
            Block::Folded(summary, blocks) => {
                let _ = writeln!(out, "<details>\n<summary>{}</summary>", escape(summary));
                blocks.iter().for_each(|b| b.render(out));
                out.push_str("</details>\n");
            }
        }
    }
}

impl Table {
    fn render(&self, out: &mut String) {
        out.push_str("<div class=\"wide\">\n<table>\n<thead><tr>");
        for column in &self.head {
            let _ = write!(out, "<th scope=\"col\">{}</th>", escape(column));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            row.iter().for_each(|cell| cell.render(out));
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody>\n</table>\n</div>\n");
    }
}

impl Cell {
    fn render(&self, out: &mut String) {
        let class = match self.kind {
            CellKind::Text => "",
            CellKind::Number => " class=\"number\"",
            CellKind::Good => " class=\"good\"",
            CellKind::Fair => " class=\"fair\"",
            CellKind::Bad => " class=\"bad\"",
        };
        let text = escape(&self.text);
        let _ = match &self.link {
            None => write!(out, "<td{class}>{text}</td>"),
            Some(id) => write!(out, "<td{class}><a href=\"#{}\">{text}</a></td>", escape(id)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Page {
        let table = Table {
            head: vec!["System".into(), "WAF".into()],
            rows: vec![vec![
                Cell::text("a<b>").link("first"),
                Cell::number("1.5").kind(CellKind::Bad),
            ]],
        };
        let blocks = vec![
            Block::Text("5 < 6 & \"7\"".into()),
            Block::List(vec!["'one'".into()]),
            Block::Folded("More".into(), vec![Block::Table(table)]),
            Block::Svg("<svg role=\"img\" xmlns=\"http://www.w3.org/2000/svg\"></svg>\n".into()),
            Block::Heading("Within".into()),
            Block::Small("\u{7}".into()),
        ];
        let section =
            |id: &str| Section { id: id.into(), title: id.into(), blocks: blocks.clone() };
        let sections = vec![section("first"), section("second")];
        Page { title: "A & B".into(), intro: vec![Block::Text("intro".into())], sections }
    }

    #[test]
    fn a_page_is_well_formed() {
        let html = example().render();
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        let doc = roxmltree::Document::parse_with_options(&html, options).unwrap();
        let texts = |name: &str| -> Vec<String> {
            let nodes = doc.descendants().filter(|n| n.has_tag_name(name));
            nodes.filter_map(|n| n.text()).map(str::to_string).collect()
        };
        assert_eq!(texts("title"), ["A & B"]);
        assert_eq!(texts("p")[1], "5 < 6 & \"7\"");
        assert_eq!(texts("td")[0], "1.5");
        assert_eq!(texts("a")[..2], ["first", "second"]);
        let links = doc.descendants().filter_map(|n| n.attribute("href"));
        for link in links {
            let id = link.strip_prefix('#').unwrap();
            assert!(doc.descendants().any(|n| n.attribute("id") == Some(id)), "{link}");
        }
    }
}
