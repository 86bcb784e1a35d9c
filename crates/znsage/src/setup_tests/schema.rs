// SPDX-License-Identifier: GPL-2.0-only
//! Compares docs/json.md with the documents in tests/printed/json: the tables list
//! every value with its type, and nothing else.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

/// Types by keys such as `devices[].zones.total`; `*` stands for any name.
type Table = BTreeMap<String, Vec<String>>;

/// The tables by the headings above them.
fn tables(text: &str) -> BTreeMap<String, Table> {
    let mut all: BTreeMap<String, Table> = BTreeMap::new();
    let mut heading = String::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            heading = title.trim_matches('`').to_string();
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", key, types, _, ""] = cells[..] else { continue };
        let Some(key) = key.strip_prefix('`').and_then(|k| k.strip_suffix('`')) else { continue };
        let types = types.split(" or ").map(str::to_string).collect();
        let twice = all.entry(heading.clone()).or_default().insert(key.to_string(), types);
        assert!(twice.is_none(), "{key} is there twice");
    }
    all
}

/// All values other than objects and arrays, by key.
fn leaves(value: &Value, key: String, found: &mut Vec<(String, &'static str)>) {
    let below = |name: &str| match key.as_str() {
        "" => name.to_string(),
        key => format!("{key}.{name}"),
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(name, v)| leaves(v, below(name), found)),
        Value::Array(list) => list.iter().for_each(|v| leaves(v, format!("{key}[]"), found)),
        Value::Null => found.push((key, "null")),
        Value::Bool(_) => found.push((key, "boolean")),
        Value::String(_) => found.push((key, "string")),
        Value::Number(n) if n.is_f64() => found.push((key, "number")),
        Value::Number(_) => found.push((key, "integer")),
    }
}

fn fits(pattern: &str, key: &str) -> bool {
    let (pattern, key) = (pattern.split('.'), key.split('.'));
    pattern.clone().count() == key.clone().count()
        && pattern.zip(key).all(|(p, k)| p == "*" || p == k)
}

/// The documents of a command: COMMAND.json and COMMAND-*.json.
fn documents(command: &str) -> Vec<Value> {
    let entries = fs::read_dir("tests/printed/json").unwrap().flatten();
    let of = |name: &str| {
        let stem = name.strip_suffix(".json").expect("a document");
        stem.split('-').next() == Some(command)
    };
    entries
        .filter(|entry| of(entry.file_name().to_str().unwrap()))
        .map(|entry| serde_json::from_str(&fs::read_to_string(entry.path()).unwrap()).unwrap())
        .collect()
}

#[test]
fn documentation_matches_the_documents() {
    let text = fs::read_to_string("../../docs/json.md").unwrap();
    let tables = tables(&text);
    let commands: Vec<&str> = tables.keys().map(String::as_str).collect();
    let want = [
        "bench",
        "check",
        "doctor",
        "error",
        "estimate",
        "list",
        "off",
        "on",
        "probe",
        "report",
        "set",
        "sim advise",
        "status",
    ];
    assert_eq!(commands, want);
    for command in commands.into_iter().filter(|c| *c != "sim advise") {
        matches(command, &documents(command));
    }
}

/// Compares the table of a command with documents of it, which must have every key
/// between them. The tests of `sim advise` make theirs.
pub fn matches(command: &str, documents: &[Value]) {
    let text = fs::read_to_string("../../docs/json.md").unwrap();
    let table = &tables(&text)[command];
    assert!(!documents.is_empty(), "{command}");
    let mut seen = Vec::new();
    for document in documents {
        leaves(document, String::new(), &mut seen);
    }
    for (key, is) in &seen {
        let row = table.iter().find(|(pattern, _)| fits(pattern, key));
        let (_, types) = row.unwrap_or_else(|| panic!("{command}: {key} ({is}) is missing"));
        // A number may happen to be an integer.
        let right = types.iter().any(|t| t == is || (t == "number" && *is == "integer"));
        assert!(right, "{command}: {key} is {is}, said to be {types:?}");
    }
    for pattern in table.keys() {
        let of_some = seen.iter().any(|(key, _)| fits(pattern, key));
        assert!(of_some, "{command}: there is no {pattern}");
    }
}

#[test]
fn every_document_has_a_version() {
    for entry in fs::read_dir("tests/printed/json").unwrap().flatten() {
        let document: Value =
            serde_json::from_str(&fs::read_to_string(entry.path()).unwrap()).unwrap();
        let is_error = document.get("error").is_some();
        assert!(is_error || document["version"] == 1, "{:?}", entry.path());
    }
}

#[test]
fn patterns_match_names() {
    assert!(fits("a[].*.b", "a[].x.b") && fits("a", "a"));
    assert!(!fits("a.*", "a") && !fits("a[].b", "a.b") && !fits("a.*", "a.b.c"));
}
