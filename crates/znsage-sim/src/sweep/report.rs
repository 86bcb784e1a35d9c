// SPDX-License-Identifier: GPL-2.0-only
//! A sweep as a page: charts of the main results, and a table of all points.
//!
//! Each number that varies gets a chart per result, with lines for the other
//! keys that vary; runs that differ only in their seed are averaged. If only
//! names vary, the charts have bars.

use std::collections::BTreeSet;

use super::table::{Column, Table};
use crate::chart::{number, Axis, Bar, BarChart, BarSeries, Group, LineChart, Look, Scale, Series};
use crate::html::{Block, Cell, CellKind, Page, Section, Table as HtmlTable};
use crate::spec::SystemKind;
use crate::stats::estimate;

/// Most lines of a chart: as many as there are looks.
const MOST_SERIES: usize = 7;
/// Most rows of the table; the other files have all.
const MOST_ROWS: usize = 2000;
/// Most values on an axis that each get a tick.
const MOST_TICKS: usize = 12;
/// An axis is logarithmic if its values span this factor.
const WIDE: f64 = 16.0;

/// A result that has charts.
struct Metric {
    column: &'static str,
    title: &'static str,
    axis: &'static str,
    scale: Scale,
}

const METRICS: [Metric; 4] = [
    Metric {
        column: "bandwidth_mb_s",
        title: "Swap bandwidth, in and out",
        axis: "swapped in and out, MB/s",
        scale: Scale::Linear,
    },
    Metric {
        column: "waf_total",
        title: "Write amplification",
        axis: "WAF, blocks programmed for each page",
        scale: Scale::Linear,
    },
    Metric {
        column: "fault_latency_p99_us",
        title: "99 % of page faults take at most",
        axis: "99th percentile of page faults, us",
        scale: Scale::Log,
    },
    Metric {
        column: "operations_s",
        title: "Accesses or requests of the workload",
        axis: "accesses or requests, 1/s",
        scale: Scale::Linear,
    },
];

/// The page of a table. Its bytes depend only on the table.
pub fn page(table: &Table) -> Page {
    let keys = varying(table);
    let names: Vec<&str> = keys.iter().map(|c| c.name.as_str()).collect();
    let mut intro = vec![Block::Text(match names.is_empty() {
        true => "One point.".into(),
        false => format!("What varies: {}.", names.join(", ")),
    })];
    for (outcome, what) in [
        ("impossible", "cannot be run; the table says why"),
        ("stuck", "began but could not go on; the table says why"),
    ] {
        let n = (0..table.rows).filter(|row| text(table, "outcome", *row) == outcome).count();
        if n > 0 {
            intro.push(Block::Text(format!("{n} of {} points {what}.", table.rows)));
        }
    }
    let seeds = keys.iter().any(|c| c.name == "seed");
    if seeds {
        let what = "Charts show means over the seeds, with 95 % intervals (Student's t).";
        intro.push(Block::Small(what.into()));
    }
    let keys: Vec<&Column> = keys.into_iter().filter(|c| c.name != "seed").collect();
    let mut sections = charts(table, &keys);
    sections.push(points(table));
    let title = format!("Sweep of {} points", table.rows);
    Page { title, intro, sections }
}

/// Columns of the spec whose value varies.
fn varying(table: &Table) -> Vec<&Column> {
    let spec = table.columns.iter().skip(1).take_while(|c| c.name != "outcome");
    let varies = |c: &&Column| (1..table.rows).any(|row| c.cells.text(row) != c.cells.text(0));
    spec.filter(varies).collect()
}

fn text(table: &Table, name: &str, row: usize) -> String {
    table.column(name).map_or(String::new(), |c| c.cells.text(row))
}

fn is_number(column: &Column, rows: usize) -> bool {
    (0..rows).all(|row| column.cells.number(row).is_some() || column.cells.text(row).is_empty())
}

/// A section for each number that varies; if none does, one with bars.
fn charts(table: &Table, keys: &[&Column]) -> Vec<Section> {
    let numbers: Vec<&Column> = keys.iter().copied().filter(|c| is_number(c, table.rows)).collect();
    let mut sections: Vec<Section> = numbers.iter().map(|x| lines(table, keys, x)).collect();
    if let (true, Some(names)) = (numbers.is_empty(), keys.first()) {
        sections.push(bars(table, keys, names));
    }
    sections
}

/// Rows that share a line or colour.
struct Line {
    label: String,
    /// The system, if only that distinguishes it from the others.
    system: Option<SystemKind>,
    look: Look,
    rows: Vec<usize>,
}

/// Groups rows with a result by what varies besides `x`.
fn split(table: &Table, keys: &[&Column], x: &Column) -> Vec<Line> {
    let rows: Vec<usize> =
        (0..table.rows).filter(|row| text(table, "outcome", *row) == "result").collect();
    let others = telling(keys.iter().copied().filter(|c| c.name != x.name), &rows);
    let mut lines: Vec<Line> = Vec::new();
    for row in rows {
        let values: Vec<String> = others.iter().filter_map(|c| value(c, row)).collect();
        let label = values.join(", ");
        match lines.iter_mut().find(|line| line.label == label) {
            Some(line) => line.rows.push(row),
            None => {
                let system = system(&others, row);
                lines.push(Line { label, system, look: Look::other(0), rows: vec![row] });
            }
        }
    }
    if let [line] = &mut lines[..] {
        if line.label.is_empty() {
            line.label = text(table, "system", line.rows[0]);
        }
    }
    lines
}

/// Columns that distinguish rows beyond the previous ones; a device may follow
/// from the system.
fn telling<'a>(columns: impl Iterator<Item = &'a Column>, rows: &[usize]) -> Vec<&'a Column> {
    let mut kept = Vec::new();
    let mut parts: Vec<String> = vec![String::new(); rows.len()];
    let count = |parts: &[String]| parts.iter().collect::<BTreeSet<_>>().len();
    for column in columns {
        let with = rows.iter().zip(&parts);
        let finer: Vec<_> =
            with.map(|(row, part)| format!("{part}\n{}", column.cells.text(*row))).collect();
        if count(&finer) > count(&parts) {
            kept.push(column);
            parts = finer;
        }
    }
    kept
}

/// Keeps as many lines as a chart has room for, each with its own look, and
/// makes a note about the others.
fn fit(mut lines: Vec<Line>) -> (Vec<Line>, Option<Block>) {
    let more = lines.len().saturating_sub(MOST_SERIES);
    lines.truncate(MOST_SERIES);
    for (n, line) in lines.iter_mut().enumerate() {
        line.look = line.system.map_or(Look::other(n), Look::system);
    }
    let what = "more are in the tables; a chart has room for";
    (lines, (more > 0).then(|| Block::Small(format!("{more} {what} {MOST_SERIES}."))))
}

/// A value for a label; plain names need no key.
fn value(column: &Column, row: usize) -> Option<String> {
    let text = column.cells.text(row);
    match column.name.as_str() {
        _ if text.is_empty() => None,
        "system" | "device" | "workload" => Some(text),
        name => {
            let (what, unit) = split_unit(name);
            let value = shown(column, row).unwrap_or(text);
            let unit = if unit == "bytes" { String::new() } else { format!(" {unit}") };
            Some(format!("{} {value}{unit}", what.replace('_', " ")).trim_end().into())
        }
    }
}

/// Sizes as people write them.
fn shown(column: &Column, row: usize) -> Option<String> {
    column.cells.number(row).map(|x| tick(&column.name, x))
}

fn tick(name: &str, x: f64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.iter().find(|(shift, _)| x >= (1u64 << shift) as f64);
    match unit.filter(|_| name.ends_with("_bytes")) {
        Some((shift, unit)) => format!("{} {unit}", number(x / (1u64 << shift) as f64)),
        None => number(x),
    }
}

/// The name of a column without its unit, and the unit.
fn split_unit(name: &str) -> (&str, &'static str) {
    let units = [
        ("_percent", "%"),
        ("_bytes", "bytes"),
        ("_mb_s", "MB/s"),
        ("_ns", "ns"),
        ("_us", "us"),
        ("_ms", "ms"),
        ("_s", "s"),
    ];
    let found = units.iter().find_map(|(end, unit)| Some((name.strip_suffix(end)?, *unit)));
    found.unwrap_or((name, ""))
}

/// A column for people, with its unit: `utilization, %`.
fn described(name: &str) -> String {
    let (what, unit) = split_unit(name);
    let what = what.replace('_', " ");
    match unit {
        "" => what,
        unit => format!("{what}, {unit}"),
    }
}

/// The system of a row, if only the system distinguishes the lines.
fn system(others: &[&Column], row: usize) -> Option<SystemKind> {
    let [only] = others else { return None };
    let name = only.cells.text(row);
    SystemKind::ALL.into_iter().find(|s| only.name == "system" && s.name() == name)
}

fn lines(table: &Table, keys: &[&Column], x: &Column) -> Section {
    let mut all = split(table, keys, x);
    // Drop lines where `x` does not vary, unless it varies in none.
    let places =
        |line: &Line| line.rows.iter().map(|row| x.cells.text(*row)).collect::<BTreeSet<_>>().len();
    if all.iter().any(|line| places(line) > 1) {
        all.retain(|line| places(line) > 1);
    }
    let (lines, left_out) = fit(all);
    let mut blocks: Vec<Block> = left_out.into_iter().collect();
    for metric in &METRICS {
        let Some(y) = table.column(metric.column) else { continue };
        let series: Vec<Series> = lines.iter().filter_map(|l| line(l, x, y, metric)).collect();
        if series.is_empty() {
            continue;
        }
        let y_axis = match metric.scale {
            Scale::Log => Axis::log(metric.axis),
            _ => Axis::from_zero(metric.axis),
        };
        let chart = LineChart {
            title: metric.title.into(),
            subtitle: format!("by {}", described(&x.name)),
            x: x_axis(x, &series),
            y: y_axis,
            series,
        };
        blocks.push(Block::Svg(chart.svg()));
    }
    Section { id: x.name.replace('_', "-"), title: described(&x.name), blocks }
}

/// The means of a line's rows at each `x`, from left to right.
fn line(line: &Line, x: &Column, y: &Column, metric: &Metric) -> Option<Series> {
    let mut at: Vec<(f64, Vec<f64>)> = Vec::new();
    for row in &line.rows {
        let (Some(x), Some(y)) = (x.cells.number(*row), y.cells.number(*row)) else { continue };
        match at.iter_mut().find(|(there, _)| *there == x) {
            Some((_, values)) => values.push(y),
            None => at.push((x, vec![y])),
        }
    }
    at.sort_by(|a, b| a.0.total_cmp(&b.0));
    let several = at.iter().any(|(_, values)| values.len() > 1);
    let means = at.iter().filter_map(|(x, values)| Some((*x, estimate(values)?)));
    // Without faults there is no latency.
    let means = means.filter(|p| metric.scale == Scale::Linear || p.1.mean > 0.0);
    let (points, spread): (Vec<_>, Vec<_>) =
        means.map(|(x, e)| ((x, e.mean), (e.low, e.high))).unzip();
    (!points.is_empty()).then(|| Series {
        label: line.label.clone(),
        look: line.look,
        published: false,
        line: true,
        points,
        spread: if several { spread } else { Vec::new() },
    })
}

fn x_axis(x: &Column, series: &[Series]) -> Axis {
    let mut values: Vec<f64> = series.iter().flat_map(|s| &s.points).map(|p| p.0).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let (first, last) = (values[0], values[values.len() - 1]);
    let mut axis = match first > 0.0 && last / first >= WIDE {
        true => Axis::log(described(&x.name)),
        false => Axis::new(described(&x.name)),
    };
    if values.len() <= MOST_TICKS {
        axis.ticks = values.into_iter().map(|v| (v, tick(&x.name, v))).collect();
    }
    axis
}

fn bars(table: &Table, keys: &[&Column], names: &Column) -> Section {
    let (lines, left_out) = fit(split(table, keys, names));
    let mut blocks: Vec<Block> = left_out.into_iter().collect();
    let mut groups: Vec<String> = Vec::new();
    for row in lines.iter().flat_map(|line| &line.rows) {
        let name = names.cells.text(*row);
        if !groups.contains(&name) {
            groups.push(name);
        }
    }
    for metric in &METRICS {
        let Some(y) = table.column(metric.column) else { continue };
        let bar = |line: &Line, name: &str| {
            let rows = line.rows.iter().filter(|row| names.cells.text(**row) == name);
            let values: Vec<f64> = rows.filter_map(|row| y.cells.number(*row)).collect();
            let e = estimate(&values)?;
            Some(Bar::of(e.mean).with((values.len() > 1).then_some((e.low, e.high))))
        };
        let group = |name: &String| Group {
            label: name.clone(),
            bars: lines.iter().map(|line| bar(line, name)).collect(),
        };
        let series = |line: &Line| BarSeries {
            label: line.label.clone(),
            look: line.look,
            published: false,
        };
        let chart = BarChart {
            title: metric.title.into(),
            subtitle: format!("by {}", described(&names.name)),
            x: described(&names.name),
            y: Axis::from_zero(metric.axis),
            series: lines.iter().map(series).collect(),
            groups: groups.iter().map(group).collect(),
        };
        blocks.push(Block::Svg(chart.svg()));
    }
    Section { id: names.name.replace('_', "-"), title: described(&names.name), blocks }
}

/// All points: what varies, the main results, or why there are none.
fn points(table: &Table) -> Section {
    let mut columns: Vec<&Column> = table.columns.iter().take(1).chain(varying(table)).collect();
    let more = METRICS.iter().map(|m| m.column).chain(["counts_stalls", "outcome", "why"]);
    let seen: BTreeSet<String> = columns.iter().map(|c| c.name.clone()).collect();
    columns.extend(more.filter(|name| !seen.contains(*name)).filter_map(|n| table.column(n)));
    let cell = |column: &&Column, row: usize| match column.cells.number(row) {
        Some(_) if column.name == "index" || column.name == "seed" => {
            Cell::number(column.cells.text(row))
        }
        Some(x) => Cell::number(tick(&column.name, x)),
        None => {
            let text = Cell::text(column.cells.text(row));
            match text.text.as_str() {
                "impossible" => text.kind(CellKind::Fair),
                "stuck" => text.kind(CellKind::Bad),
                _ => text,
            }
        }
    };
    let rows = 0..table.rows.min(MOST_ROWS);
    let html = HtmlTable {
        head: columns.iter().map(|c| c.name.clone()).collect(),
        rows: rows.map(|row| columns.iter().map(|c| cell(c, row)).collect()).collect(),
    };
    let mut blocks = vec![Block::Table(html)];
    if table.rows > MOST_ROWS {
        let what = format!("The first {MOST_ROWS} of {} points.", table.rows);
        blocks.insert(0, Block::Small(what));
    }
    let what = "All columns are in results.csv and results.parquet.";
    blocks.push(Block::Small(what.into()));
    Section { id: "points".into(), title: "Points".into(), blocks }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::store::{Entry, Outcome};
    use crate::sweep::table::column_name;
    use serde_json::json;

    fn entry(index: usize, point: serde_json::Value, why: &str) -> Entry {
        let serde_json::Value::Object(point) = point else { panic!("a point is a table") };
        Entry { index, point, outcome: Outcome::Impossible(why.into()) }
    }

    #[test]
    fn names_of_columns_have_units() {
        for (key, name) in [
            ("znsage.over-provisioning", "znsage_over_provisioning_percent"),
            ("host.memory", "host_memory_bytes"),
            ("costs.touch", "costs_touch_ns"),
            ("device.zoned.reset_us", "device_zoned_reset_us"),
            ("seed", "seed"),
        ] {
            assert_eq!(column_name(key), name);
        }
        assert_eq!(tick("znsage_chunk_bytes", 196608.0), "192 KiB");
        assert_eq!(tick("utilization_percent", 60.0), "60");
        for (name, text) in [
            ("utilization_percent", "utilization, %"),
            ("znsage_chunk_bytes", "znsage chunk, bytes"),
            ("device_zoned_reset_us", "device zoned reset, us"),
            ("seed", "seed"),
        ] {
            assert_eq!(described(name), text);
        }
    }

    #[test]
    fn page_without_results_gives_reasons() {
        let entries = [
            entry(0, json!({"system": "a", "utilization": 60.0}), "no <room>"),
            entry(1, json!({"system": "a", "utilization": 70.0}), "none either"),
        ];
        let html = page(&Table::of(entries.iter())).render();
        assert!(html.contains("What varies: utilization_percent."), "{html}");
        assert!(html.contains("2 of 2 points cannot be run"), "{html}");
        assert!(html.contains("no &lt;room&gt;"), "{html}");
    }
}
