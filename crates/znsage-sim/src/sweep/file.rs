// SPDX-License-Identifier: GPL-2.0-only
//! The sweep file: a spec whose table `[sweep]` holds lists.
//!
//! Keys outside `[sweep]` are those of a [`Spec`] and hold for all points; a
//! key `"device.KEY"`, in quotes, replaces a value of the device. Each key in
//! `[sweep]` has a list of values, and the points are all combinations, the
//! last key changing fastest. Several `[[sweep]]` tables are concatenated;
//! points they share run once.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::Spanned;

use super::error::SweepError;
use super::store::{Header, MAX_POINTS};
use crate::device::{ParamError, Params};
use crate::run::RunError;
use crate::spec::Spec;

/// Most lists in a table; there are fewer keys.
const MAX_LISTS: usize = 200;
/// Most points times lists, each of which takes memory and time.
const MAX_SETTINGS: usize = 300_000;

/// The table, or tables, of lists.
const SWEEP: &str = "sweep";
/// Impossible points are listed instead of refused.
const SKIP: &str = "skip-impossible";
/// Keys in every label, whether they vary or not.
const ALWAYS: [&str; 5] = ["system", "device", "workload", "utilization", "seed"];

/// One run of a sweep.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its number, from 0.
    pub index: usize,
    /// What is run.
    pub spec: Spec,
    /// Keys of its lists, each with the offset of its value.
    given: Vec<(String, usize)>,
}

/// A device's name and replaced values.
type Device<'a> = (&'a str, &'a [(String, String)]);

/// A sweep file, expanded.
#[derive(Clone, Debug)]
pub struct Sweep {
    file: String,
    text: String,
    /// All runs, by their index.
    pub points: Vec<Point>,
    /// Are impossible points listed instead of refused?
    pub skip_impossible: bool,
    /// Keys whose value varies among points, in the file's order.
    varying: Vec<String>,
    /// Keys outside the lists, and their offsets.
    base: BTreeMap<String, usize>,
    digest: String,
}

/// A key with its values, each with its offset in the file.
struct List {
    key: String,
    values: Vec<(toml::Value, usize)>,
}

impl Sweep {
    /// Parses a sweep; `file` is its name in errors.
    ///
    /// # Errors If it is not TOML, has unknown keys, or a point is impossible; with
    /// `skip-impossible` only if a value is refused in every point that has it.
    pub fn parse(file: &str, text: &str) -> Result<Sweep, SweepError> {
        let reader = Reader { file, text };
        let doc = DeTable::parse(text)
            .map_err(|e| reader.refuse("", e.span().map(|s| s.start), e.message()))?;
        let mut sweep = Sweep {
            file: file.into(),
            text: text.into(),
            points: Vec::new(),
            skip_impossible: false,
            varying: Vec::new(),
            base: BTreeMap::new(),
            digest: String::new(),
        };
        let mut blocks = Vec::new();
        let mut base = Vec::new();
        for (key, value) in doc.into_inner() {
            match (key.get_ref().as_ref(), value.get_ref()) {
                (SWEEP, _) => blocks = reader.blocks(key.span().start, value)?,
                (SKIP, DeValue::Boolean(skip)) => sweep.skip_impossible = *skip,
                (SKIP, _) => {
                    return Err(reader.refuse(SKIP, Some(key.span().start), "true or false"))
                }
                (name, _) => {
                    let name = name.to_string();
                    reader.flatten(name, key.span().start, value, &mut base)?;
                }
            }
        }
        if blocks.is_empty() {
            let what = "there is no table [sweep], whose lists make the points";
            return Err(reader.refuse("", None, what));
        }
        let mut spec = Spec::default();
        for (key, at, value) in base {
            spec.set_value(&key, reader.value(&key, value)?)
                .map_err(|e| reader.refuse(&key, Some(at), &e.what))?;
            sweep.base.insert(key, at);
        }
        let mut expand = Expand { reader: &reader, points: Vec::new(), seen: HashSet::new() };
        reader.count(&blocks)?;
        for block in &blocks {
            expand.cross(&spec, block, &mut Vec::new())?;
        }
        sweep.points = expand.points;
        sweep.varying = varying(&blocks, &sweep.points);
        let refused = sweep.look_at_all();
        sweep.check_values(&refused)?;
        Ok(sweep)
    }

    /// The first line of its store.
    pub fn header(&self) -> Header {
        Header::new(&self.digest, self.points.len())
    }

    /// Label of a point: the keys that describe any run, and those that vary.
    pub fn label(&self, point: &Point) -> Map<String, Value> {
        let more = self.varying.iter().map(String::as_str).filter(|key| !ALWAYS.contains(key));
        let mut label = label(&point.spec, ALWAYS.into_iter().chain(more));
        if point.spec.workload.is_from_file() {
            // The file determines utilization; the result has it.
            label.shift_remove("utilization");
        }
        label
    }

    /// What distinguishes a point: `system=znsage, utilization=60`.
    pub fn describe(&self, point: &Point) -> String {
        let label = label(&point.spec, self.varying.iter().map(String::as_str));
        let words = label.iter().map(|(key, value)| match value {
            Value::String(text) => format!("{key}={text}"),
            other => format!("{key}={other}"),
        });
        words.collect::<Vec<_>>().join(", ")
    }

    /// The error of a point, with the line of its key.
    pub fn locate(&self, point: &Point, error: RunError) -> SweepError {
        let (key, what) = match error {
            RunError::Spec(e) => (e.key, e.what),
            RunError::Device(e) => return self.locate_param(point, e),
            RunError::Trace(e) => ("load.trace".into(), e.to_string()),
            RunError::Stuck(e) => (String::new(), e.to_string()),
        };
        let line = self.line(point, &key);
        self.refuse(point, line, key, what)
    }

    fn locate_param(&self, point: &Point, e: ParamError) -> SweepError {
        let key = format!("device.{}", e.key);
        if let Some(line) = self.line(point, &key) {
            return self.refuse(point, Some(line), key, e.what);
        }
        let ParamError { file, line, key, what } = e;
        if line.is_some() {
            let what = self.with_point(point, what);
            return SweepError::File { file, line, key, what };
        }
        // A key of the spec, or the device itself, is refused.
        let name = if key.is_empty() { "device" } else { key.as_str() };
        let what = format!("{file}: {what}");
        self.refuse(point, self.line(point, name), name.into(), what)
    }

    fn refuse(&self, point: &Point, line: Option<usize>, key: String, what: String) -> SweepError {
        let what = self.with_point(point, what);
        SweepError::File { file: self.file.clone(), line, key, what }
    }

    fn with_point(&self, point: &Point, what: String) -> String {
        match self.describe(point) {
            words if words.is_empty() => what,
            words => format!("{what} ({words})"),
        }
    }

    /// The line of a key, or of the first key in the table it names.
    fn line(&self, point: &Point, key: &str) -> Option<usize> {
        let all = || point.given.iter().map(|(k, at)| (k, at)).chain(&self.base);
        let within = |k: &str| k.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'));
        let found = all().find(|(k, _)| *k == key).or_else(|| all().find(|(k, _)| within(k)));
        found.map(|(_, at)| line_of(&self.text, *at))
    }

    /// Checks the spec and the parameters of each point, which needs no memory, and
    /// computes the digest; returns the errors.
    fn look_at_all(&mut self) -> BTreeMap<usize, RunError> {
        let mut hash = Sha256::new();
        let mut known: BTreeMap<Device, Result<Params, ParamError>> = BTreeMap::new();
        let mut traces = BTreeMap::new();
        let mut refused = BTreeMap::new();
        for Point { index, spec, .. } in &self.points {
            let params = known
                .entry((&spec.device, &spec.device_set))
                .or_insert_with(|| Params::load(&spec.device, &spec.device_set));
            if let Err(e) = spec.check() {
                refused.insert(*index, e.into());
            } else if let Err(e) = params {
                refused.insert(*index, e.clone().into());
            }
            hash.update(serde_json::to_vec(spec).expect("a spec is JSON"));
            // The files of a device or a trace may change under the same name.
            hash.update(format!("{params:?}"));
            if let Some(path) = &spec.load.trace {
                hash.update(traces.entry(path).or_insert_with(|| digest_of(path)));
            }
        }
        self.digest = hash.finalize().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        refused
    }

    /// Refuses impossible points; with `skip-impossible` only if a value of a list is in
    /// no possible point, as then the value is wrong.
    fn check_values(&self, refused: &BTreeMap<usize, RunError>) -> Result<(), SweepError> {
        let of = |index: &usize| self.locate(&self.points[*index], refused[index].clone());
        if !self.skip_impossible {
            return refused.keys().next().map_or(Ok(()), |index| Err(of(index)));
        }
        let fine = self.points.iter().filter(|p| !refused.contains_key(&p.index));
        let fine: HashSet<&(String, usize)> = fine.flat_map(|p| &p.given).collect();
        for index in refused.keys() {
            if self.points[*index].given.iter().any(|value| !fine.contains(value)) {
                return Err(of(index));
            }
        }
        Ok(())
    }
}

/// Keys whose value varies among points, in the file's order.
fn varying(blocks: &[Vec<List>], points: &[Point]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    let json = |p: &Point| serde_json::to_value(&p.spec).expect("a spec is JSON");
    let specs: Vec<Value> = points.iter().map(json).collect();
    for List { key, .. } in blocks.iter().flatten() {
        let mut values = points.iter().zip(&specs).map(|(p, json)| value_of(&p.spec, json, key));
        let first = values.next();
        if !keys.contains(key) && values.any(|v| Some(v) != first) {
            keys.push(key.clone());
        }
    }
    keys
}

fn label<'a>(spec: &Spec, keys: impl Iterator<Item = &'a str>) -> Map<String, Value> {
    let json = serde_json::to_value(spec).expect("a spec is JSON");
    keys.map(|key| (key.to_string(), value_of(spec, &json, key))).collect()
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
    /// The specs of the points, as JSON.
    seen: HashSet<String>,
}

impl Expand<'_> {
    fn cross(
        &mut self,
        spec: &Spec,
        lists: &[List],
        given: &mut Vec<(String, usize)>,
    ) -> Result<(), SweepError> {
        let Some((List { key, values }, rest)) = lists.split_first() else {
            if self.seen.insert(serde_json::to_string(spec).expect("a spec is JSON")) {
                let (index, spec) = (self.points.len(), spec.clone());
                self.points.push(Point { index, spec, given: given.clone() });
            }
            return Ok(());
        };
        for (value, at) in values {
            let mut spec = spec.clone();
            spec.set_value(key, value.clone())
                .map_err(|e| self.reader.refuse(key, Some(*at), &e.what))?;
            given.push((key.clone(), *at));
            self.cross(&spec, rest, given)?;
            given.pop();
        }
        Ok(())
    }
}

/// The digest of a file. An unreadable file counts as empty; the check of its
/// points refuses it.
fn digest_of(path: &Path) -> Vec<u8> {
    let mut hash = Sha256::new();
    if let Ok(mut file) = File::open(path) {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(n @ 1..) = file.read(&mut buffer) {
            hash.update(&buffer[..n]);
        }
    }
    hash.finalize().to_vec()
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
        SweepError::File { file, line, key, what }
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
    fn blocks(&self, at: usize, value: Spanned<DeValue<'a>>) -> Result<Vec<Vec<List>>, SweepError> {
        match value.into_inner() {
            DeValue::Table(table) => Ok(vec![self.lists(at, table)?]),
            DeValue::Array(tables) => tables
                .into_iter()
                .map(|value| match value.into_inner() {
                    DeValue::Table(table) => self.lists(at, table),
                    _ => Err(self.refuse(SWEEP, Some(at), "a table of lists is expected")),
                })
                .collect(),
            _ => Err(self.refuse(SWEEP, Some(at), "a table of lists is expected")),
        }
    }

    /// Refuses too many combinations. Counts duplicates too, as they are found only
    /// after they are made.
    fn count(&self, blocks: &[Vec<List>]) -> Result<(), SweepError> {
        let combinations = |block: &Vec<List>| {
            block.iter().map(|list| list.values.len()).fold(1, usize::saturating_mul)
        };
        let all = blocks.iter().map(combinations).fold(0, usize::saturating_add);
        if all > MAX_POINTS {
            return Err(self.refuse(SWEEP, None, &format!("more than {MAX_POINTS} points")));
        }
        if blocks.iter().any(|block| block.len() > MAX_LISTS) {
            return Err(self.refuse(SWEEP, None, &format!("more than {MAX_LISTS} lists")));
        }
        // Bounded by the two limits above, so no overflow.
        if blocks.iter().map(|block| combinations(block) * block.len()).sum::<usize>()
            > MAX_SETTINGS
        {
            let what = format!("more than {MAX_SETTINGS} settings, points times lists");
            return Err(self.refuse(SWEEP, None, &what));
        }
        Ok(())
    }

    /// The lists of a table. A single value is a list of one.
    fn lists(&self, at: usize, table: DeTable<'a>) -> Result<Vec<List>, SweepError> {
        let mut leaves = Vec::new();
        for (name, value) in table {
            let at = name.span().start;
            self.flatten(name.get_ref().to_string(), at, value, &mut leaves)?;
        }
        // The parser sorts keys by name.
        leaves.sort_by_key(|(_, at, _)| *at);
        if leaves.is_empty() {
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
                Ok((self.value(&key, value)?, at))
            });
            let values = values.collect::<Result<_, SweepError>>()?;
            Ok(List { key, values })
        };
        leaves.into_iter().map(list).collect()
    }
}
