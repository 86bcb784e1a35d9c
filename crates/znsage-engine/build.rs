// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the engine with the user-space port. The flags are those of
//! engine/tests/Makefile; a compiler that does not take them is an error.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|f| f.expect("directory entry").path())
        .filter(|p| p.extension().is_some_and(|x| x == "c"))
        .collect();
    assert!(!files.is_empty(), "no C source in {}", dir.display());
    files.sort();
    files
}

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let engine = root.join("engine");
    let port = root.join("port/user");

    for dir in [&engine, &port] {
        println!("cargo:rerun-if-changed={}", dir.display());
    }
    println!("cargo:rerun-if-changed=src/layout.c");

    cc::Build::new()
        .files(sources(&engine))
        .file("src/layout.c")
        .include(&engine)
        .include(&port)
        .std("gnu11")
        .opt_level(2)
        .debug(true)
        .flag("-Wall")
        .flag("-Wextra")
        .flag("-Werror")
        .compile("zse");
}
