// SPDX-License-Identifier: GPL-2.0-only
//! The rows of the tables of streams and cgroups, and their order.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde_json::Value;

use super::groups::Group;
use super::rates::{of_row, Seen};
use crate::counters;
use crate::details::Row as Stream;
use crate::units;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Streams,
    Groups,
}

/// A column of a table.
#[derive(Debug)]
pub struct Column {
    pub title: &'static str,
    /// Characters; the minimum for a column of words, which takes the rest.
    pub width: u16,
    /// Words are left-aligned, numbers right-aligned.
    pub words: bool,
    /// Columns with small ranks are shown first if room is short.
    pub rank: u8,
}

const fn number(title: &'static str, width: u16, rank: u8) -> Column {
    Column { title, width, words: false, rank }
}

const fn words(title: &'static str, width: u16, rank: u8) -> Column {
    Column { title, width, words: true, rank }
}

pub const STREAMS: [Column; 10] = [
    number("STREAM", 6, 0),
    number("WRITTEN/s", 9, 1),
    number("IN/s", 9, 2),
    number("GC/s", 9, 3),
    number("WAF", 6, 5),
    number("STALL/s", 7, 6),
    number("WAIT/s", 8, 8),
    number("ZONES", 5, 7),
    number("KEYS", 5, 9),
    words("LAST KEY", 18, 4),
];

pub const GROUPS: [Column; 5] = [
    number("SWAP", 9, 0),
    number("OUT/s", 9, 2),
    number("IN/s", 9, 3),
    number("PRESSURE", 8, 4),
    words("CGROUP", 12, 1),
];

impl Which {
    pub fn columns(self) -> &'static [Column] {
        match self {
            Which::Streams => &STREAMS,
            Which::Groups => &GROUPS,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Which::Streams => "stream",
            Which::Groups => "cgroup",
        }
    }
}

/// The text of a cell and its sort key; without one the text is the key.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub text: String,
    pub weight: Option<f64>,
}

/// One cell for each column.
pub type Row = Vec<Cell>;

fn cell(number: Option<f64>, show: impl Fn(f64) -> String) -> Cell {
    match number {
        Some(n) => Cell { text: show(n), weight: Some(n) },
        None => Cell { text: "-".to_string(), weight: Some(-1.0) },
    }
}

fn bytes(n: f64) -> String {
    units::size(n as u64)
}

/// A row for each stream. `before` is None at the first sample.
pub fn streams(
    before: Option<&Seen>,
    now: &Seen,
    groups: &[Group],
    seconds: f64,
    page: u64,
) -> Vec<Row> {
    let id = |row: &Stream| row.get("stream").and_then(Value::as_u64);
    let old: HashMap<u64, &Stream> = before
        .into_iter()
        .flat_map(|seen| &seen.details.streams)
        .filter_map(|row| Some((id(row)?, row)))
        .collect();
    let by_cgroup = now.device.policy == "cgroup";
    let row = |stream: &Stream| {
        let number = |name: &str| stream.get(name).and_then(Value::as_u64);
        let old = id(stream).and_then(|id| old.get(&id));
        let rate =
            |name: &str| of_row(old.and_then(|row| row.get(name)), stream.get(name), seconds);
        let page = page as f64;
        let count = |name: &str| cell(number(name).map(|n| n as f64), |n| n.to_string());
        let blocks = |name| number(name).unwrap_or(0);
        let waf =
            counters::waf(blocks("host_blocks"), blocks("gc_blocks"), blocks("padding_blocks"));
        vec![
            count("stream"),
            cell(rate("host_blocks").map(|n| n * page), bytes),
            cell(rate("read_blocks").map(|n| n * page), bytes),
            cell(rate("gc_blocks").map(|n| n * page), bytes),
            cell(waf, |n| format!("{n:.2}")),
            cell(rate("stalls"), |n| format!("{n:.1}")),
            cell(rate("stall_ns"), |n| units::micros(n / 1e3)),
            count("zones"),
            count("keys"),
            Cell { text: key(stream.get("key"), by_cgroup, groups), weight: None },
        ]
    };
    now.details.streams.iter().map(row).collect()
}

/// The module's key, or the cgroup with the policy `cgroup`.
fn key(value: Option<&Value>, by_cgroup: bool, groups: &[Group]) -> String {
    let Some(text) = value.and_then(Value::as_str) else {
        return "-".to_string();
    };
    let digits = text.trim_start_matches("0x").trim_start_matches('0');
    let id = u64::from_str_radix(digits, 16).ok();
    match groups.iter().find(|g| by_cgroup && Some(g.id) == id) {
        Some(group) => group.path.clone(),
        None if digits.is_empty() => "-".to_string(),
        None => format!("0x{digits}"),
    }
}

/// A row for each cgroup; `before` has the groups of the previous sample.
pub fn groups(before: &[Group], now: &[Group], seconds: f64) -> Vec<Row> {
    let old: HashMap<u64, &Group> = before.iter().map(|g| (g.id, g)).collect();
    let row = |group: &Group| {
        let rate = |bytes: fn(&Group) -> Option<u64>| {
            let more = bytes(group)?.checked_sub(bytes(old.get(&group.id)?)?)?;
            (seconds > 0.0).then(|| more as f64 / seconds)
        };
        vec![
            cell(Some(group.swap_bytes as f64), bytes),
            cell(rate(|g| g.out_bytes), bytes),
            cell(rate(|g| g.in_bytes), bytes),
            cell(group.pressure, |n| format!("{n:.1} %")),
            Cell { text: group.path.clone(), weight: None },
        ]
    };
    now.iter().map(row).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    pub column: usize,
    pub reverse: bool,
}

/// Sorts large numbers and early words first, or reversed.
pub fn sort(rows: &mut [Row], order: Order) {
    let compare = |a: &Row, b: &Row| -> Ordering {
        let (Some(a), Some(b)) = (a.get(order.column), b.get(order.column)) else {
            return Ordering::Equal;
        };
        let forward = match (a.weight, b.weight) {
            (Some(a), Some(b)) => b.total_cmp(&a),
            _ => a.text.cmp(&b.text),
        };
        if order.reverse {
            forward.reverse()
        } else {
            forward
        }
    };
    rows.sort_by(compare);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::details::table;

    fn seen(text: &str, policy: &str) -> Seen {
        let mut seen = Seen::default();
        seen.device.policy = policy.to_string();
        seen.details.streams = table(text);
        seen
    }

    fn texts(row: &Row) -> Vec<&str> {
        row.iter().map(|c| c.text.as_str()).collect()
    }

    const HEAD: &str =
        "stream host_blocks gc_blocks padding_blocks read_blocks stalls stall_ns zones keys key\n";

    #[test]
    fn streams_have_rates() {
        let before = seen(&format!("{HEAD}0 100 0 0 0 0 0 1 1 0x00000000000000ff\n"), "cgroup");
        let now = seen(
            &format!(
                "{HEAD}0 356 128 0 512 3 9000000 2 1 0x00000000000000ff\n7 1 0 0 0 0 0 1 0 0x0\n"
            ),
            "cgroup",
        );
        let group = Group { id: 255, path: "a/b".into(), ..Group::default() };
        let rows = streams(Some(&before), &now, &[group], 2.0, 4096);
        assert_eq!(
            texts(&rows[0]),
            ["0", "512 KiB", "1 MiB", "256 KiB", "1.36", "1.5", "4500 us", "2", "1", "a/b"]
        );
        assert_eq!(texts(&rows[1]), ["7", "-", "-", "-", "1.00", "-", "-", "1", "0", "-"]);
        let first = streams(None, &now, &[], 0.0, 4096);
        assert_eq!(texts(&first[0])[1..4], ["-", "-", "-"]);
        assert_eq!(texts(&first[0])[9], "0xff");
        assert!(rows.iter().chain(&first).all(|row| row.len() == STREAMS.len()));
    }

    #[test]
    fn keys_of_other_policies_are_no_cgroups() {
        let now = seen(&format!("{HEAD}0 1 0 0 0 0 0 1 1 0xff\n"), "keys");
        let group = Group { id: 255, path: "a/b".into(), ..Group::default() };
        assert_eq!(streams(None, &now, &[group], 1.0, 4096)[0][9].text, "0xff");
    }

    #[test]
    fn table_without_columns_is_shown() {
        let rows = streams(None, &seen("stream\n3\n", "cpu"), &[], 1.0, 4096);
        assert_eq!(texts(&rows[0]), ["3", "-", "-", "-", "-", "-", "-", "-", "-", "-"]);
    }

    #[test]
    fn groups_have_rates_with_the_io_controller() {
        let group = |bytes| Group {
            path: "a".into(),
            id: 1,
            swap_bytes: 1 << 20,
            in_bytes: None,
            out_bytes: bytes,
            pressure: Some(2.25),
        };
        let rows = groups(&[group(Some(0))], &[group(Some(8192))], 2.0);
        assert_eq!(texts(&rows[0]), ["1 MiB", "4 KiB", "-", "2.2 %", "a"]);
        assert_eq!(texts(&groups(&[], &[group(None)], 2.0)[0])[1], "-");
        assert_eq!(rows[0].len(), GROUPS.len());
    }

    #[test]
    fn rows_are_sorted_by_any_column() {
        let group =
            |path: &str, swap_bytes| Group { path: path.into(), swap_bytes, ..Group::default() };
        let mut rows = groups(&[], &[group("b", 2), group("a", 10), group("c", 7)], 1.0);
        let mut sorted = |column, reverse| {
            sort(&mut rows, Order { column, reverse });
            rows.iter().map(|row| row[4].text.clone()).collect::<String>()
        };
        assert_eq!(sorted(0, false), "acb");
        assert_eq!(sorted(0, true), "bca");
        assert_eq!(sorted(4, false), "abc");
        assert_eq!(sorted(4, true), "cba");
        assert_eq!(sorted(99, false), "cba");
    }
}
