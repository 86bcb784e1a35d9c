// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the engine once more, with a port whose atomics are the model
//! checker's. A violation is a panic, which passes through the C code on its
//! way out: -fexceptions.

use std::fs;
use std::path::Path;

fn main() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let engine = here.join("../../engine");
    let user = here.join("../../port/user");
    let include = here.join("../../include");

    for dir in [&engine, &user, &include, &here.join("port")] {
        println!("cargo:rerun-if-changed={}", dir.display());
    }
    println!("cargo:rerun-if-changed=src/host.c");

    let mut files: Vec<_> = fs::read_dir(&engine)
        .expect("engine/")
        .map(|f| f.expect("directory entry").path())
        .filter(|p| p.extension().is_some_and(|x| x == "c"))
        .collect();
    files.sort();
    cc::Build::new()
        .include(here.join("port"))
        .include(&engine)
        .include(&include)
        .files(files)
        .file("src/host.c")
        .std("gnu11")
        .opt_level(2)
        .debug(true)
        .flag("-fexceptions")
        .flag("-Wall")
        .flag("-Wextra")
        .flag("-Wno-unused-parameter")
        .flag("-Werror")
        .compile("zse_model");
}
