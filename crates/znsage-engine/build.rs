// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the engine with the user-space port. The flags are those of
//! engine/tests/Makefile. With ZNSAGE_COVERAGE set, the engine counts executed
//! branches; see engine/tests/coverage.

use std::env;
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
    // Asked at run time: a copied target directory has a program built elsewhere.
    let root = env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let root = Path::new(&root).join("../..");
    let engine = root.join("engine");
    let port = root.join("port/user");

    for dir in [&engine, &port, &root.join("include")] {
        println!("cargo:rerun-if-changed={}", dir.display());
    }
    println!("cargo:rerun-if-changed=src/layout.c");
    println!("cargo:rerun-if-changed=policies");

    let include = root.join("include");
    let mut zse = build(&[&engine, &port, &include]);
    println!("cargo:rerun-if-env-changed=ZNSAGE_COVERAGE");
    if env::var_os("ZNSAGE_COVERAGE").is_some() {
        // Unoptimized, so that branches stay as written; several threads count.
        zse.opt_level(0).flag("--coverage").flag("-fprofile-update=atomic");
        println!("cargo:rustc-link-arg=--coverage");
    }
    zse.files(sources(&engine))
        .file(port.join("policy/registry.c"))
        .file("src/layout.c")
        .compile("zse");
    // Several in one program: their init and exit need names of their own.
    for policy in ["sepbit", "oracle"] {
        build(&[&include, &port])
            .file(format!("policies/{policy}.c"))
            .define("znsage_policy_init", format!("znsage_{policy}_init").as_str())
            .define("znsage_policy_exit", format!("znsage_{policy}_exit").as_str())
            .compile(&format!("zse_{policy}"));
    }
}

fn build(include: &[&Path]) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .includes(include)
        .std("gnu11")
        .opt_level(2)
        .debug(true)
        .flag("-Wall")
        .flag("-Wextra")
        .flag("-Wno-unused-parameter")
        .flag("-Werror");
    build
}
