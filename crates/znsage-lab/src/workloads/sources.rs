// SPDX-License-Identifier: GPL-2.0-only
//! The source of Lua, to be compiled. It comes with the crate `lua-src`, so that cargo
//! fetches and verifies it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::files::{make_directory, write};
use crate::result::{Context, Result};

const CRATE: &str = "lua-src";
const VERSION: &str = "547.0.0";

/// The directory of the source, once it is fetched.
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
    make_directory(&dir.join("src"))?;
    write(&dir.join("Cargo.toml"), manifest)?;
    write(&dir.join("src/lib.rs"), "")?;
    let output = Command::new("cargo")
        .args(["vendor", "--quiet", "vendor"])
        .current_dir(&dir)
        .stdin(Stdio::null())
        .output()
        .context("cannot run cargo (rustup installs it)")?;
    if !output.status.success() || !lua(out).exists() {
        return Err(format!(
            "cargo could not fetch {CRATE} {VERSION}; check the network:\n{}",
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    Ok(())
}
