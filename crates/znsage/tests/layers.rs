// SPDX-License-Identifier: GPL-2.0-only
//! The layers in lib.rs: a module uses only modules of lower layers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// All modules by name, with the number of their layer, up to `parsers`.
fn layers() -> BTreeMap<String, usize> {
    let (mut layers, mut layer) = (BTreeMap::new(), 0);
    for line in fs::read_to_string("src/lib.rs").unwrap().lines() {
        match line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
            Some(name) => layers.insert(name.to_string(), layer),
            None if line.starts_with("pub mod parsers") => break,
            None => {
                layer += usize::from(line.is_empty());
                None
            }
        };
    }
    layers
}

fn files(path: &Path, found: &mut Vec<PathBuf>) {
    match fs::read_dir(path) {
        Ok(entries) => entries.for_each(|entry| files(&entry.unwrap().path(), found)),
        Err(_) => found.push(path.to_path_buf()),
    }
}

/// The modules in `crate::NAME` and `crate::{NAME, NAME::...}`.
fn used(text: &str) -> Vec<&str> {
    let first =
        |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let mut names = Vec::new();
    for rest in text.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            None => names.push(&rest[..first(rest)]),
            Some(list) => {
                let list = &list[..list.find(';').unwrap_or(list.len())];
                let mut depth = 0;
                for part in list.split_inclusive([',', '{', '}']) {
                    let name = part.trim();
                    if depth == 0 && !name.is_empty() {
                        names.push(&name[..first(name)]);
                    }
                    depth += i32::from(part.ends_with('{')) - i32::from(part.ends_with('}'));
                }
            }
        }
    }
    names
}

#[test]
fn modules_use_only_lower_layers() {
    let layers = layers();
    assert!(layers.len() > 30, "{layers:?}");
    for (module, layer) in &layers {
        let mut sources = Vec::new();
        files(&Path::new("src").join(module), &mut sources);
        sources.retain(|path| path.extension().is_some());
        sources
            .extend(Some(format!("src/{module}.rs").into()).filter(|path: &PathBuf| path.exists()));
        assert!(!sources.is_empty(), "{module}");
        for path in sources {
            for name in used(&fs::read_to_string(&path).unwrap()) {
                let below = name == module || layers.get(name).is_none_or(|other| other < layer);
                assert!(below, "{}: {name} is not below {module}", path.display());
            }
        }
    }
}
