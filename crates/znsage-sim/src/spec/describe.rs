// SPDX-License-Identifier: GPL-2.0-only
//! All keys of a spec with their defaults and what they are, as a file to copy and edit. The
//! words are the comments of the structs themselves, so that there is one place for them.

use std::fmt::Write;

use super::schema::{
    CompressKind, PlacementKind, PolicyKind, Spec, SystemKind, VictimKind, WorkloadKind,
};

/// The sources of the structs.
const SOURCES: [&str; 2] = [include_str!("schema.rs"), include_str!("../host/costs.rs")];

/// A field of a struct: its key, its type, its comment.
struct Field<'a> {
    key: String,
    kind: &'a str,
    lines: Vec<&'a str>,
}

/// The fields of a struct, in the order of its source.
fn fields(name: &str) -> Vec<Field<'static>> {
    let head = format!("pub struct {name} {{");
    let source = SOURCES.iter().find_map(|source| source.split_once(&head));
    let (_, body) = source.expect("the sources have every struct");
    let (mut fields, mut lines) = (Vec::new(), Vec::new());
    for line in body.lines().skip(1).map(str::trim).take_while(|line| *line != "}") {
        if let Some(words) = line.strip_prefix("///") {
            lines.push(words.trim());
        } else if let Some((key, kind)) = line.strip_prefix("pub ").and_then(|l| l.split_once(": "))
        {
            let (key, kind) = (key.replace('_', "-"), kind.trim_end_matches(','));
            fields.push(Field { key, kind, lines: std::mem::take(&mut lines) });
        }
    }
    fields
}

/// The values of an enumeration.
fn choices(kind: &str) -> Option<Vec<&'static str>> {
    fn names<T: Copy>(all: &[T], name: fn(T) -> &'static str) -> Option<Vec<&'static str>> {
        Some(all.iter().map(|one| name(*one)).collect())
    }
    match kind {
        "SystemKind" => names(&SystemKind::ALL, SystemKind::name),
        "WorkloadKind" => names(&WorkloadKind::ALL, WorkloadKind::name),
        "PolicyKind" => names(&PolicyKind::ALL, PolicyKind::name),
        "PlacementKind" => names(&PlacementKind::ALL, PlacementKind::name),
        "VictimKind" => names(&VictimKind::ALL, VictimKind::name),
        "CompressKind" => names(&CompressKind::ALL, CompressKind::name),
        _ => None,
    }
}

/// The default spec as TOML, with a comment at each key.
pub fn describe() -> String {
    let defaults = toml::Table::try_from(Spec::default()).expect("a spec is a table");
    let mut text = String::from("# \"device.KEY\" = VALUE replaces a value of the device.\n");
    let (tables, keys): (Vec<_>, Vec<_>) = fields("Spec")
        .into_iter()
        .filter(|field| field.key != "device-set")
        .partition(|field| defaults.get(&field.key).is_some_and(toml::Value::is_table));
    keys.iter().for_each(|field| write(&mut text, field, defaults.get(&field.key)));
    for table in tables {
        let _ = writeln!(text, "\n# {}\n[{}]", table.lines.join("\n# "), table.key);
        for field in fields(table.kind) {
            write(&mut text, &field, defaults[&table.key].get(&field.key));
        }
    }
    text
}

/// A key without a default is a comment.
fn write(text: &mut String, field: &Field, default: Option<&toml::Value>) {
    let _ = writeln!(text, "\n# {}", field.lines.join("\n# "));
    if let Some(names) = choices(field.kind) {
        let _ = writeln!(text, "# One of {}.", names.join(", "));
    }
    let _ = match default {
        Some(value) => writeln!(text, "{} = {value}", field.key),
        None => writeln!(text, "# {} =", field.key),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_its_default_and_a_comment() {
        let text = describe();
        assert_eq!(Spec::parse(&text).unwrap(), Spec::default(), "{text}");
        let json = serde_json::to_value(Spec::default()).unwrap();
        let mut n = 0;
        for (key, value) in json.as_object().unwrap() {
            let keys = value.as_object().map_or(vec![key], |table| table.keys().collect());
            for key in keys.into_iter().filter(|key| *key != "device-set") {
                n += 1;
                let at = format!("\n{key} = ");
                let without = format!("\n# {key} =\n");
                assert!(text.contains(&at) || text.contains(&without), "{key} in\n{text}");
            }
        }
        assert!(n > 70, "{n}");
        assert!(!text.contains("\n# \n"), "a key without a comment in\n{text}");
        assert!(text.contains("# One of greedy, cost-benefit, age.\nvictim = \"age\"\n"), "{text}");
    }
}
