// SPDX-License-Identifier: GPL-2.0-only
//! Compares docs/json.md with the documents in tests/printed/json: the tables list
//! every value with its type, and nothing else. Counters are those of docs/monitor.md.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

/// Types by keys such as `devices[].zones.total`; `*` stands for any name.
type Table = BTreeMap<String, Types>;

#[derive(Clone)]
struct Types {
    names: Vec<String>,
    /// Taken from another table: not all of its keys need to occur.
    borrowed: bool,
}

/// `a.{b,c}` as `a.b` and `a.c`.
fn spelled_out(key: &str) -> Vec<String> {
    let parts = key.split_once('{').and_then(|(a, rest)| Some((a, rest.split_once('}')?)));
    let Some((before, (names, after))) = parts else { return vec![key.to_string()] };
    names.split(',').flat_map(|name| spelled_out(&format!("{before}{name}{after}"))).collect()
}

/// The files with numbers that docs/monitor.md lists, as keys of `status`.
fn files() -> Vec<String> {
    const WORDS: [&str; 5] = ["backing", "latency", "zones", "policy_ejected", "stream_table"];
    let text = fs::read_to_string("../../docs/monitor.md").unwrap();
    let values = text.split("\n## ").find(|part| part.starts_with("Values\n")).unwrap();
    let cells = values.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let names = cells.filter(|cell| !cell.contains(':')).flat_map(|cell| cell.split(", "));
    let names = names.map(|name| name.trim_matches('`'));
    let numbers = names.filter(|name| !WORDS.contains(name) && !name.ends_with("_states"));
    let states = ["total", "empty", "open", "full", "retired", "unused"];
    let is_state = |name: &&str| name.strip_prefix("zones_").is_some_and(|s| states.contains(&s));
    let files: Vec<String> = numbers.filter(|n| !is_state(n)).map(str::to_string).collect();
    assert!(files.len() > 40, "{files:?}");
    files
}

/// The rows by the headings above them: key and types.
fn rows(text: &str) -> Vec<(String, String, String)> {
    let mut all = Vec::new();
    let mut heading = String::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            heading = title.trim_matches('`').to_string();
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", key, types, _, ""] = cells[..] else { continue };
        let Some(key) = key.strip_prefix('`').and_then(|k| k.strip_suffix('`')) else { continue };
        all.push((heading.clone(), key.to_string(), types.to_string()));
    }
    all
}

/// The tables by the headings above them.
fn tables(text: &str) -> BTreeMap<String, Table> {
    let mut all: BTreeMap<String, Table> = BTreeMap::new();
    let mut borrows = Vec::new();
    for (heading, key, types) in rows(text) {
        let table = all.entry(heading.clone()).or_default();
        if let Some(lender) = types.strip_prefix("as ") {
            let (prefix, lender) = lender.split_once(" of ").expect("a key and a command");
            borrows.push((heading, key, prefix.replace('`', ""), lender.replace('`', "")));
            continue;
        }
        let names = types.split(" or ").map(str::to_string).collect();
        let types = Types { names, borrowed: false };
        let keys = match key.strip_suffix("FILE") {
            Some(before) => files().iter().map(|file| format!("{before}{file}")).collect(),
            None => spelled_out(&key),
        };
        for key in keys {
            assert!(table.insert(key.clone(), types.clone()).is_none(), "{key} is there twice");
        }
    }
    for (heading, key, prefix, lender) in borrows {
        let lent: Vec<_> = all[&lender]
            .iter()
            .filter_map(|(k, types)| Some((format!("{key}{}", k.strip_prefix(&prefix)?), types)))
            .map(|(k, types)| (k, Types { borrowed: true, ..types.clone() }))
            .collect();
        assert!(!lent.is_empty(), "{lender} has no {prefix}");
        all.get_mut(&heading).unwrap().extend(lent);
    }
    let version = Types { names: vec!["integer".to_string()], borrowed: false };
    for (_, table) in all.iter_mut().filter(|(command, _)| *command != "error") {
        table.insert("version".to_string(), version.clone());
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
        "bench", "check", "doctor", "error", "estimate", "list", "off", "on", "probe", "set",
        "status",
    ];
    assert_eq!(commands, want);
    for command in commands {
        matches(command, &documents(command));
    }
}

/// Compares the table of a command with documents of it, which must have every key
/// between them.
fn matches(command: &str, documents: &[Value]) {
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
        let right = types.names.iter().any(|t| t == is || (t == "number" && *is == "integer"));
        assert!(right, "{command}: {key} is {is}, said to be {:?}", types.names);
    }
    for pattern in table.iter().filter(|(_, types)| !types.borrowed).map(|(pattern, _)| pattern) {
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
fn braces_are_spelled_out() {
    assert_eq!(spelled_out("a[].{b,c}.{d}"), ["a[].b.d", "a[].c.d"]);
    assert_eq!(spelled_out("a.b"), ["a.b"]);
}

#[test]
fn patterns_match_names() {
    assert!(fits("a[].*.b", "a[].x.b") && fits("a", "a"));
    assert!(!fits("a.*", "a") && !fits("a[].b", "a.b") && !fits("a.*", "a.b.c"));
}
