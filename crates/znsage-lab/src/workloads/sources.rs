// SPDX-License-Identifier: GPL-2.0-only
//! The program that is compiled: Lua, all of it. The crate `lua-src` brings it,
//! so cargo fetches it and checks what it fetched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;

const CRATE: &str = "lua-src";
const VERSION: &str = "547.0.0";

/// Where it is once it was fetched.
pub fn lua(out: &Path) -> PathBuf {
    out.join("sources/vendor").join(CRATE).join("lua-5.4.7")
}

pub fn fetch(out: &Path) -> Result<()> {
    if lua(out).exists() {
        return Ok(());
    }
    eprintln!("       Lua's source: fetching it by cargo");
    let dir = out.join("sources");
    let manifest = format!(
        "[package]\nname = \"sources\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n\
         [workspace]\n\n\
         [dependencies.{CRATE}]\nversion = \"={VERSION}\"\ndefault-features = false\n"
    );
    let write = |name: &str, text: &str| {
        let path = dir.join(name);
        fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
    };
    fs::create_dir_all(dir.join("src"))
        .map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
    write("Cargo.toml", &manifest)?;
    write("src/lib.rs", "")?;
    let output = Command::new("cargo")
        .args(["vendor", "--quiet", "vendor"])
        .current_dir(&dir)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("cannot run cargo: {e}; install Rust by rustup"))?;
    if !output.status.success() || !lua(out).exists() {
        return Err(format!(
            "cargo could not fetch {CRATE} {VERSION}; check the network:\n{}",
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    Ok(())
}
