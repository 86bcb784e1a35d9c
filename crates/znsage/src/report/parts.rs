// SPDX-License-Identifier: GPL-2.0-only
//! Parts of pages that several kinds of results use.

use serde_json::Value;
use znsage_sim::chart::{number, Axis, Bar, BarChart, BarSeries, Group, LineChart, Look, Series};
use znsage_sim::html::{Block, Cell, CellKind, Section, Table};
use znsage_sim::spec::SystemKind;

use super::Named;
use crate::machine::Machine;
use crate::units;

/// Groups of bars that fit into a chart; the tables have all.
const MOST_GROUPS: usize = 16;

/// Longest label of a series.
const LONGEST_LABEL: usize = 40;

/// Number of different looks.
pub const MOST_SERIES: usize = 7;

/// A title as a link target: letters, digits and `-`.
pub fn id(title: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    title.chars().map(plain).collect()
}

/// Shortens a text to a label.
fn short(text: &str) -> String {
    text.chars().take(LONGEST_LABEL).collect()
}

pub fn section(title: &str, blocks: Vec<Block>) -> Section {
    Section { id: id(title), title: title.to_string(), blocks }
}

/// Name and look of a series.
pub struct Key {
    pub label: String,
    pub look: Look,
}

/// Names of results: the system if that is unique, otherwise the file.
pub fn keys<T>(results: &[Named<T>], system: impl Fn(&T) -> String) -> Vec<Key> {
    let systems: Vec<String> = results.iter().map(|r| system(&r.result)).collect();
    let distinct = (1..systems.len()).all(|i| !systems[..i].contains(&systems[i]));
    let look = |i: usize, name: &str| match SystemKind::ALL.into_iter().find(|s| s.name() == name) {
        Some(kind) if distinct => Look::system(kind),
        _ => Look::other(i),
    };
    let label = |i: usize| match distinct {
        true => short(&systems[i]),
        false => short(&results[i].name),
    };
    (0..results.len()).map(|i| Key { label: label(i), look: look(i, &systems[i]) }).collect()
}

/// A bar for each group and result. None without values.
pub fn bars(
    (title, subtitle, axis): (&str, &str, &str),
    keys: &[Key],
    groups: Vec<(String, Vec<Option<f64>>)>,
) -> Option<Block> {
    let known = |(_, values): &(String, Vec<Option<f64>>)| values.iter().flatten().any(sane);
    let groups: Vec<Group> = groups
        .into_iter()
        .filter(known)
        .take(MOST_GROUPS)
        .map(|(label, values)| Group {
            label: short(&label),
            bars: values.into_iter().map(|v| v.filter(sane).map(Bar::of)).collect(),
        })
        .collect();
    if groups.is_empty() {
        return None;
    }
    let series = keys.iter().map(|key| BarSeries {
        label: key.label.clone(),
        look: key.look,
        published: false,
    });
    let chart = BarChart {
        title: title.into(),
        subtitle: subtitle.into(),
        // The groups' names say what they are.
        x: String::new(),
        y: Axis::from_zero(axis),
        series: series.collect(),
        groups,
    };
    Some(Block::Svg(chart.svg()))
}

/// A line of a chart.
pub fn line(label: &str, look: Look, points: Vec<(f64, f64)>) -> Series {
    let points = points.into_iter().filter(|(x, y)| sane(x) && sane(y)).collect();
    Series { label: short(label), look, published: false, line: true, points, spread: Vec::new() }
}

/// True for numbers that an axis can show.
fn sane(x: &f64) -> bool {
    x.abs() < 1e15
}

/// A chart of lines; None without lines.
pub fn lines(title: &str, subtitle: &str, x: Axis, y: Axis, series: Vec<Series>) -> Option<Block> {
    let series: Vec<Series> =
        series.into_iter().filter(|s| !s.points.is_empty()).take(MOST_SERIES).collect();
    if series.is_empty() {
        return None;
    }
    let chart = LineChart { title: title.into(), subtitle: subtitle.into(), x, y, series };
    Some(Block::Svg(chart.svg()))
}

/// A line for each latency distribution: name, look, and microseconds for each of the
/// percentiles.
pub fn percentiles(title: &str, what: &str, all: Vec<(String, Look, [f64; 4])>) -> Option<Block> {
    const PERCENTILES: [&str; 4] = ["half of them", "99 %", "99.9 %", "all"];
    let ticks = PERCENTILES.iter().enumerate();
    let x = Axis {
        ticks: ticks.map(|(i, name)| (i as f64, name.to_string())).collect(),
        ..Axis::new("are not longer")
    };
    let series = all.into_iter().map(|(label, look, values)| {
        let points = values.iter().enumerate().map(|(i, us)| (i as f64, *us));
        line(&label, look, points.filter(|p| p.1 > 0.0).collect())
    });
    lines(title, what, x, Axis::log("us"), series.collect())
}

/// A table with a row for each key and a column for each object.
pub fn settings(columns: &[(String, &Value)]) -> Block {
    let mut names: Vec<&String> = Vec::new();
    for (_, value) in columns {
        for name in value.as_object().into_iter().flat_map(|map| map.keys()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let head = std::iter::once(String::new()).chain(columns.iter().map(|c| c.0.clone()));
    let row = |name: &&String| {
        let cell = |(_, value): &(String, &Value)| Cell::text(shown(name, &value[name.as_str()]));
        std::iter::once(Cell::text(title(name))).chain(columns.iter().map(cell)).collect()
    };
    Block::Table(Table { head: head.collect(), rows: names.iter().map(row).collect() })
}

/// The title of a key, without its unit, which stands at the value.
fn title(key: &str) -> String {
    let plain = ["_bytes", "_percent", "_us", "_seconds"]
        .iter()
        .find_map(|unit| key.strip_suffix(unit))
        .unwrap_or(key);
    plain.replace('_', " ")
}

fn shown(key: &str, value: &Value) -> String {
    match value {
        Value::Null => "-".to_string(),
        Value::Bool(b) => if *b { "yes" } else { "no" }.to_string(),
        Value::String(text) => text.clone(),
        Value::Number(n) if key == "seed" => n.to_string(),
        Value::Number(n) => {
            let x = n.as_f64().unwrap_or(0.0);
            match n.as_u64() {
                Some(bytes) if key.ends_with("_bytes") => units::size(bytes),
                _ if key.ends_with("_percent") => format!("{} %", number(x)),
                _ if key.ends_with("_us") => units::micros(x),
                _ => number(x),
            }
        }
        other => other.to_string(),
    }
}

/// The machines of the results, one per column.
pub fn machines<'a>(all: impl Iterator<Item = (String, Option<&'a Machine>, String)>) -> Block {
    let head = ["Result", "Processor", "CPUs", "Memory", "Kernel"].map(String::from).to_vec();
    let row = |(name, machine, kernel): (String, Option<&Machine>, String)| {
        let mut row = vec![Cell::text(name)];
        row.extend(match machine {
            Some(m) => vec![
                Cell::text(m.cpu.clone().unwrap_or("-".into())),
                Cell::number(m.cpus.to_string()),
                Cell::number(m.memory_bytes.map_or("-".into(), units::size)),
            ],
            None => vec![Cell::text("-"), Cell::number("-"), Cell::number("-")],
        });
        row.push(Cell::text(kernel));
        row
    };
    Block::Table(Table { head, rows: all.map(row).collect() })
}

/// A table; the first `words` columns are left-aligned.
pub fn table(head: &[&str], words: usize, rows: Vec<Vec<String>>) -> Block {
    let cell = |(i, text): (usize, String)| match i < words {
        true => Cell::text(text),
        false => Cell::number(text),
    };
    let row = |row: Vec<String>| row.into_iter().enumerate().map(cell).collect();
    Block::Table(Table {
        head: head.iter().map(|h| h.to_string()).collect(),
        rows: rows.into_iter().map(row).collect(),
    })
}

/// A highlighted line.
pub fn verdict(what: &str, good: bool) -> Block {
    let kind = if good { CellKind::Good } else { CellKind::Bad };
    let row = vec![Cell::text(what).kind(kind)];
    Block::Table(Table { head: vec!["Verdict".into()], rows: vec![row] })
}
