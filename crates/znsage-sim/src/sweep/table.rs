// SPDX-License-Identifier: GPL-2.0-only
//! Finished points as a table: a row a point, a column a value.
//!
//! Columns are, in this order: `index`; what describes the point, by the keys
//! of the spec (`znsage.over-provisioning` is `znsage_over_provisioning_percent`,
//! `device.zoned.max_open` is `device_zoned_max_open`); `outcome` (`result`,
//! `impossible` or `stuck`) and `why`, if it is not the first; and all of a
//! [`RunResult`](crate::RunResult), by the names of its fields joined by `_`
//! (`fault_latency_p99_us`, `waf_total`, `tenants_0_operations_s`).

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::store::{Entry, Outcome};

/// The values of a column; None where a row has none.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Truth values.
    Bool(Vec<Option<bool>>),
    /// Whole numbers.
    Int(Vec<Option<u64>>),
    /// Numbers.
    Float(Vec<Option<f64>>),
    /// Texts.
    Text(Vec<Option<String>>),
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its values.
    pub cells: Cells,
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// How many rows there are.
    pub rows: usize,
    /// All columns, with a value for each row.
    pub columns: Vec<Column>,
}

impl Table {
    /// The table of finished points, in their order.
    pub fn of<'a>(entries: impl Iterator<Item = &'a Entry>) -> Table {
        let mut raw = Raw::default();
        for entry in entries {
            raw.row(&leaves(entry));
        }
        let columns = raw.names.into_iter().map(|name| {
            let cells = cells(&raw.values[&name], raw.rows);
            Column { name, cells }
        });
        Table { rows: raw.rows, columns: columns.collect() }
    }

    /// Comma-separated values; the first line holds the names.
    pub fn to_csv(&self) -> Vec<u8> {
        let mut out = csv::Writer::from_writer(Vec::new());
        let mut write = |record: Vec<String>| {
            out.write_record(&record).expect("records of one length can be written to memory");
        };
        write(self.columns.iter().map(|c| c.name.clone()).collect());
        for row in 0..self.rows {
            write(self.columns.iter().map(|c| c.cells.text(row)).collect());
        }
        out.into_inner().expect("memory can be flushed")
    }

    /// The column of a name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }
}

impl Cells {
    /// The value in a row as text; empty if there is none.
    pub fn text(&self, row: usize) -> String {
        fn show<T: ToString>(value: &Option<T>) -> String {
            value.as_ref().map_or(String::new(), T::to_string)
        }
        match self {
            Cells::Bool(all) => show(&all[row]),
            Cells::Int(all) => show(&all[row]),
            Cells::Float(all) => show(&all[row]),
            Cells::Text(all) => show(&all[row]),
        }
    }

    /// The value in a row as a number, if it is one.
    pub fn number(&self, row: usize) -> Option<f64> {
        match self {
            Cells::Int(all) => all[row].map(|n| n as f64),
            Cells::Float(all) => all[row],
            Cells::Bool(_) | Cells::Text(_) => None,
        }
    }
}

/// The column name of a spec key.
pub fn column_name(key: &str) -> String {
    key.replace(['.', '-'], "_") + unit(key)
}

/// The unit of a spec key, as a suffix. Device keys have their unit in the
/// name.
fn unit(key: &str) -> &'static str {
    if key.starts_with("device.") {
        return "";
    }
    match key.rsplit('.').next() {
        _ if key.starts_with("costs.") => "_ns",
        Some("size" | "memory" | "chunk") => "_bytes",
        Some("utilization" | "over-provisioning") => "_percent",
        Some(
            "lookahead" | "think" | "service" | "deadline" | "map-cost" | "lock-hold"
            | "flush-after" | "remap-cost" | "trim-cost",
        ) => "_ns",
        _ => "",
    }
}

/// Names and values of a row, in order.
fn leaves(entry: &Entry) -> Vec<(String, Value)> {
    let mut row = vec![("index".to_string(), Value::from(entry.index))];
    row.extend(entry.point.iter().map(|(key, value)| (column_name(key), value.clone())));
    let (outcome, why) = match &entry.outcome {
        Outcome::Result(_) => ("result", None),
        Outcome::Impossible(why) => ("impossible", Some(why)),
        Outcome::Stuck(why) => ("stuck", Some(why)),
    };
    row.push(("outcome".into(), outcome.into()));
    row.extend(why.map(|why| ("why".into(), why.as_str().into())));
    if let Outcome::Result(result) = &entry.outcome {
        let Ok(Value::Object(mut fields)) = serde_json::to_value(result) else {
            unreachable!("a result is a table")
        };
        // The point already has the keys that describe the run.
        fields.retain(|name, _| !entry.point.contains_key(name));
        flatten("", fields, &mut row);
    }
    row
}

fn flatten(prefix: &str, fields: Map<String, Value>, row: &mut Vec<(String, Value)>) {
    for (name, value) in fields {
        let name = format!("{prefix}{name}");
        match value {
            Value::Object(fields) => flatten(&format!("{name}_"), fields, row),
            Value::Array(all) if all.first().is_some_and(Value::is_object) => {
                let all = all.into_iter().enumerate().map(|(i, v)| (i.to_string(), v)).collect();
                flatten(&format!("{name}_"), all, row);
            }
            Value::Array(all) => {
                let texts: Vec<_> = all.iter().map(text).collect();
                row.push((name, texts.join("; ").into()));
            }
            value => row.push((name, value)),
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Columns under construction; any row may add new ones.
#[derive(Default)]
struct Raw {
    names: Vec<String>,
    values: HashMap<String, Vec<(usize, Value)>>,
    rows: usize,
}

impl Raw {
    fn row(&mut self, leaves: &[(String, Value)]) {
        // Insert a new column after its predecessor in the row.
        let mut at = 0;
        for (name, value) in leaves.iter().filter(|(_, value)| !value.is_null()) {
            if self.names.get(at) != Some(name) {
                match self.names.iter().position(|n| n == name) {
                    Some(found) => at = found,
                    None => self.names.insert(at, name.clone()),
                }
            }
            at += 1;
            self.values.entry(name.clone()).or_default().push((self.rows, value.clone()));
        }
        self.rows += 1;
    }
}

/// The values of a column in the narrowest type that holds all of them.
fn cells(values: &[(usize, Value)], rows: usize) -> Cells {
    fn fill<T: Clone>(
        values: &[(usize, Value)],
        rows: usize,
        of: impl Fn(&Value) -> Option<T>,
    ) -> Vec<Option<T>> {
        let mut all = vec![None; rows];
        for (row, value) in values {
            all[*row] = of(value);
        }
        all
    }
    let every = |is: fn(&Value) -> bool| values.iter().all(|(_, value)| is(value));
    if every(Value::is_boolean) {
        Cells::Bool(fill(values, rows, Value::as_bool))
    } else if every(Value::is_u64) {
        Cells::Int(fill(values, rows, Value::as_u64))
    } else if every(Value::is_number) {
        Cells::Float(fill(values, rows, Value::as_f64))
    } else {
        Cells::Text(fill(values, rows, |value| Some(text(value))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(index: usize, point: Value, outcome: Outcome) -> Entry {
        let Value::Object(point) = point else { panic!("a point is a table") };
        Entry { index, point, outcome }
    }

    #[test]
    fn columns_are_typed_and_in_order() {
        let no = |why: &str| Outcome::Impossible(why.into());
        let entries = [
            entry(0, json!({"system": "a", "utilization": 60.0, "znsage.chunk": 4096}), no("x")),
            entry(1, json!({"system": "b", "utilization": 60.5, "load.zipf": 1.5}), no("y, \"z\"")),
        ];
        let table = Table::of(entries.iter());
        let names: Vec<_> = table.columns.iter().map(|c| c.name.as_str()).collect();
        let want = "index system utilization_percent load_zipf znsage_chunk_bytes outcome why";
        assert_eq!(names.join(" "), want);
        assert_eq!(table.columns[0].cells, Cells::Int(vec![Some(0), Some(1)]));
        assert_eq!(table.columns[4].cells, Cells::Int(vec![Some(4096), None]));
        assert_eq!(table.columns[3].cells, Cells::Float(vec![None, Some(1.5)]));
        let csv = String::from_utf8(table.to_csv()).unwrap();
        assert_eq!(
            csv.lines().skip(1).collect::<Vec<_>>(),
            ["0,a,60,,4096,impossible,x", "1,b,60.5,1.5,,impossible,\"y, \"\"z\"\"\""]
        );
    }

    #[test]
    fn mixed_values_become_text() {
        let values = [(0, json!(1)), (2, json!("a"))];
        let cells = cells(&values, 3);
        assert_eq!(cells, Cells::Text(vec![Some("1".into()), None, Some("a".into())]));
        assert_eq!(cells.number(0), None);
    }
}
