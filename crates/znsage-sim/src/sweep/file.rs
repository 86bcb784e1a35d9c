// SPDX-License-Identifier: GPL-2.0-only
//! The sweep file: a spec whose table `[sweep]` holds lists.
//!
//! Keys outside `[sweep]` are those of a [`Spec`] and hold for all points; a
//! key `"device.KEY"`, in quotes, replaces a value of the device. Each key in
//! `[sweep]` has a list of values, and the points are all combinations, the
//! last key changing fastest. There may be several `[[sweep]]` tables. The key
//! `name` in one labels its points and does not change them.

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;
use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::Spanned;

use crate::device::{ParamError, Params};
use crate::spec::{literal, Spec, SpecError};

/// Most points of a file.
const MAX_POINTS: usize = 20_000;
/// Most lists in a table; there are fewer keys.
const MAX_LISTS: usize = 200;
/// Most points times lists, each of which takes memory and time.
const MAX_SETTINGS: usize = 300_000;

/// The table, or tables, of lists.
const SWEEP: &str = "sweep";
/// The label of a table.
const NAME: &str = "name";

/// A key or value of a sweep file that is refused.
pub type SweepError = ParamError;

/// One run of a sweep.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its table's.
    pub name: Option<String>,
    /// What is run.
    pub spec: Spec,
    /// Keys of its lists, each with the offset of its value, if the file has it.
    given: Vec<(String, Option<usize>)>,
}

/// A sweep file, expanded.
#[derive(Clone, Debug)]
pub struct Sweep {
    file: String,
    text: String,
    /// All runs, in the order of the file.
    pub points: Vec<Point>,
    /// Keys outside the lists, and their offsets.
    base: BTreeMap<String, usize>,
}

/// A key with its values, each with its offset in the file.
struct List {
    key: String,
    values: Vec<(toml::Value, Option<usize>)>,
}

/// A table of lists.
struct Table {
    name: Option<String>,
    lists: Vec<List>,
}

/// Why a point is refused.
enum Refusal {
    Spec(SpecError),
    Device(ParamError),
}

impl Sweep {
    /// Parses a sweep; `file` is its name in errors. `set` replaces values, of lists as well.
    ///
    /// # Errors
    /// If it is not TOML, has unknown keys, or has a value that is refused in every point that
    /// has it.
    pub fn parse(file: &str, text: &str, set: &[(String, String)]) -> Result<Sweep, SweepError> {
        let reader = Reader { file, text };
        let doc = DeTable::parse(text)
            .map_err(|e| reader.refuse("", e.span().map(|s| s.start), e.message()))?;
        let mut sweep = Sweep {
            file: file.into(),
            text: text.into(),
            points: Vec::new(),
            base: BTreeMap::new(),
        };
        let mut tables = Vec::new();
        let mut base = Vec::new();
        for (key, value) in doc.into_inner() {
            let (name, at) = (key.get_ref().to_string(), key.span().start);
            match name == SWEEP {
                true => tables = reader.tables(at, value)?,
                false => reader.flatten(name, at, value, &mut base)?,
            }
        }
        if tables.is_empty() {
            let what = "there is no table [sweep], whose lists make the points";
            return Err(reader.refuse("", None, what));
        }
        let mut spec = Spec::default();
        for (key, at, value) in base {
            spec.set_value(&key, reader.value(&key, value)?)
                .map_err(|e| reader.refuse(&key, Some(at), &e.what))?;
            sweep.base.insert(key, at);
        }
        for (key, value) in set {
            spec.set(key, value).map_err(|e| reader.refuse(key, None, &e.what))?;
            let lists = tables.iter_mut().flat_map(|table| &mut table.lists);
            for list in lists.filter(|list| list.key == *key) {
                list.values = vec![(literal(value), None)];
            }
        }
        let mut expand = Expand { reader: &reader, points: Vec::new(), seen: HashSet::new() };
        reader.count(&tables)?;
        for table in &tables {
            expand.cross(table, &spec, &table.lists, &mut Vec::new())?;
        }
        sweep.points = expand.points;
        sweep.check_values(&sweep.refused())?;
        Ok(sweep)
    }

    /// The keys of a point's lists with its values.
    pub fn values(&self, point: &Point) -> Map<String, Value> {
        let json = serde_json::to_value(&point.spec).expect("a spec is JSON");
        let value = |key: &String| (key.clone(), value_of(&point.spec, &json, key));
        point.given.iter().map(|(key, _)| value(key)).collect()
    }

    /// What distinguishes a point: `block SSD: utilization=60, seed=1`.
    pub fn describe(&self, point: &Point) -> String {
        let values = self.values(point);
        let words = values.iter().map(|(key, value)| match value {
            Value::String(text) => format!("{key}={text}"),
            other => format!("{key}={other}"),
        });
        let words = words.collect::<Vec<_>>().join(", ");
        match &point.name {
            Some(name) => format!("{name}: {words}"),
            None => words,
        }
    }

    /// The error of a point, with the line of its key.
    fn locate(&self, point: &Point, refusal: &Refusal) -> SweepError {
        let refuse = |line, key: &str, what: &str| {
            let what = format!("{what} ({})", self.describe(point));
            SweepError { file: self.file.clone(), line, key: key.into(), what }
        };
        let e = match refusal {
            Refusal::Spec(e) => return refuse(self.line(point, &e.key), &e.key, &e.what),
            Refusal::Device(e) => e,
        };
        let key = format!("device.{}", e.key);
        if let Some(line) = self.line(point, &key) {
            return refuse(Some(line), &key, &e.what);
        }
        if e.line.is_some() {
            let ParamError { file, line, .. } = e.clone();
            return SweepError { file, line, ..refuse(None, &e.key, &e.what) };
        }
        // A key of the spec, or the device itself, is refused.
        let name = if e.key.is_empty() { "device" } else { e.key.as_str() };
        refuse(self.line(point, name), name, &format!("{}: {}", e.file, e.what))
    }

    /// The line of a key, or of the first key in the table it names.
    fn line(&self, point: &Point, key: &str) -> Option<usize> {
        let given = point.given.iter().map(|(k, at)| (k, *at));
        let all = || given.clone().chain(self.base.iter().map(|(k, at)| (k, Some(*at))));
        let within = |k: &str| k.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'));
        let found = all().find(|(k, _)| *k == key).or_else(|| all().find(|(k, _)| within(k)));
        found?.1.map(|at| line_of(&self.text, at))
    }

    /// Points whose spec or parameters are refused, by their number. Some others are
    /// refused when they run: this needs no memory.
    fn refused(&self) -> BTreeMap<usize, Refusal> {
        let mut known = BTreeMap::new();
        let mut refused = BTreeMap::new();
        for (i, Point { spec, .. }) in self.points.iter().enumerate() {
            let params = known
                .entry((&spec.device, &spec.device_set))
                .or_insert_with(|| Params::load(&spec.device, &spec.device_set).err());
            if let Err(e) = spec.check() {
                refused.insert(i, Refusal::Spec(e));
            } else if let Some(e) = params {
                refused.insert(i, Refusal::Device(e.clone()));
            }
        }
        refused
    }

    /// Refuses a value that is in no possible point: it is a mistake.
    fn check_values(&self, refused: &BTreeMap<usize, Refusal>) -> Result<(), SweepError> {
        let fine = self.points.iter().enumerate().filter(|(i, _)| !refused.contains_key(i));
        let fine: HashSet<_> = fine.flat_map(|(_, p)| &p.given).collect();
        for (i, refusal) in refused {
            let point = &self.points[*i];
            if point.given.iter().any(|value| !fine.contains(value)) || fine.is_empty() {
                return Err(self.locate(point, refusal));
            }
        }
        Ok(())
    }
}

/// The value of a key of the spec, or of a replaced device parameter.
fn value_of(spec: &Spec, json: &Value, key: &str) -> Value {
    if let Some(key) = key.strip_prefix("device.") {
        let set = spec.device_set.iter().rev().find(|(k, _)| k == key);
        return set.map_or(Value::Null, |(_, text)| {
            // A number stays one; anything else is text.
            serde_json::from_str(text).ok().filter(Value::is_number).unwrap_or(text.as_str().into())
        });
    }
    key.split('.').try_fold(json, |json, name| json.get(name)).cloned().unwrap_or(Value::Null)
}

/// All combinations.
struct Expand<'a> {
    reader: &'a Reader<'a>,
    points: Vec<Point>,
    /// The names of the points with their specs, as JSON.
    seen: HashSet<(Option<String>, String)>,
}

impl Expand<'_> {
    fn cross(
        &mut self,
        table: &Table,
        spec: &Spec,
        lists: &[List],
        given: &mut Vec<(String, Option<usize>)>,
    ) -> Result<(), SweepError> {
        let Some((List { key, values }, rest)) = lists.split_first() else {
            let (name, spec) = (table.name.clone(), spec.clone());
            let json = serde_json::to_string(&spec).expect("a spec is JSON");
            if self.seen.insert((name.clone(), json)) {
                self.points.push(Point { name, spec, given: given.clone() });
            }
            return Ok(());
        };
        for (value, at) in values {
            let mut spec = spec.clone();
            spec.set_value(key, value.clone())
                .map_err(|e| self.reader.refuse(key, *at, &e.what))?;
            given.push((key.clone(), *at));
            self.cross(table, &spec, rest, given)?;
            given.pop();
        }
        Ok(())
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// The text of the file, for the lines of errors.
struct Reader<'a> {
    file: &'a str,
    text: &'a str,
}

/// A key, its offset, its value.
type Leaf<'a> = (String, usize, Spanned<DeValue<'a>>);

impl<'a> Reader<'a> {
    fn refuse(&self, key: &str, at: Option<usize>, what: &str) -> SweepError {
        let (file, key, what) = (self.file.into(), key.into(), what.into());
        let line = at.map(|at| line_of(self.text, at));
        SweepError { file, line, key, what }
    }

    fn value(&self, key: &str, value: Spanned<DeValue>) -> Result<toml::Value, SweepError> {
        let at = value.span().start;
        toml::Value::deserialize(ValueDeserializer::from(value))
            .map_err(|e| self.refuse(key, Some(at), e.message()))
    }

    /// Flattens a table, in the order of the file.
    fn flatten(
        &self,
        key: String,
        at: usize,
        value: Spanned<DeValue<'a>>,
        leaves: &mut Vec<Leaf<'a>>,
    ) -> Result<(), SweepError> {
        if !matches!(value.get_ref(), DeValue::Table(_)) {
            leaves.push((key, at, value));
            return Ok(());
        }
        let DeValue::Table(table) = value.into_inner() else { unreachable!("it is one") };
        for (name, value) in table {
            let (path, at) = (format!("{key}.{}", name.get_ref()), name.span().start);
            self.flatten(path, at, value, leaves)?;
        }
        Ok(())
    }

    /// `[sweep]`, or each `[[sweep]]`.
    fn tables(&self, at: usize, value: Spanned<DeValue<'a>>) -> Result<Vec<Table>, SweepError> {
        match value.into_inner() {
            DeValue::Table(table) => Ok(vec![self.table(at, table)?]),
            DeValue::Array(tables) => tables
                .into_iter()
                .map(|value| match value.into_inner() {
                    DeValue::Table(table) => self.table(at, table),
                    _ => Err(self.refuse(SWEEP, Some(at), "a table of lists is expected")),
                })
                .collect(),
            _ => Err(self.refuse(SWEEP, Some(at), "a table of lists is expected")),
        }
    }

    /// Refuses too many combinations. Counts duplicates too, as they are found only
    /// after they are made.
    fn count(&self, tables: &[Table]) -> Result<(), SweepError> {
        let combinations = |table: &Table| {
            table.lists.iter().map(|list| list.values.len()).fold(1, usize::saturating_mul)
        };
        let all = tables.iter().map(combinations).fold(0, usize::saturating_add);
        if all > MAX_POINTS {
            return Err(self.refuse(SWEEP, None, &format!("more than {MAX_POINTS} points")));
        }
        if tables.iter().any(|table| table.lists.len() > MAX_LISTS) {
            return Err(self.refuse(SWEEP, None, &format!("more than {MAX_LISTS} lists")));
        }
        // Bounded by the two limits above, so no overflow.
        let settings = |table: &Table| combinations(table) * table.lists.len();
        if tables.iter().map(settings).sum::<usize>() > MAX_SETTINGS {
            let what = format!("more than {MAX_SETTINGS} settings, points times lists");
            return Err(self.refuse(SWEEP, None, &what));
        }
        Ok(())
    }

    /// A table. A single value is a list of one.
    fn table(&self, at: usize, table: DeTable<'a>) -> Result<Table, SweepError> {
        let mut leaves = Vec::new();
        let mut label = None;
        for (name, value) in table {
            let at = name.span().start;
            if name.get_ref() == NAME {
                let DeValue::String(text) = value.get_ref() else {
                    return Err(self.refuse(NAME, Some(at), "a text is expected"));
                };
                label = Some(text.to_string());
                continue;
            }
            self.flatten(name.get_ref().to_string(), at, value, &mut leaves)?;
        }
        // The parser sorts keys by name.
        leaves.sort_by_key(|(_, at, _)| *at);
        if leaves.is_empty() && label.is_none() {
            return Err(self.refuse(SWEEP, Some(at), "there are no lists in it"));
        }
        let list = |(key, at, value): Leaf| {
            let span = value.span().start;
            let values = match value.into_inner() {
                DeValue::Array(values) if values.is_empty() => {
                    return Err(self.refuse(&key, Some(at), "the list is empty"));
                }
                DeValue::Array(values) => values.into_iter().collect(),
                one => vec![Spanned::new(span..span, one)],
            };
            let values = values.into_iter().map(|value| {
                let at = value.span().start;
                Ok((self.value(&key, value)?, Some(at)))
            });
            let values = values.collect::<Result<_, SweepError>>()?;
            Ok(List { key, values })
        };
        let lists = leaves.into_iter().map(list).collect::<Result<_, SweepError>>()?;
        Ok(Table { name: label, lists })
    }
}
