// SPDX-License-Identifier: GPL-2.0-only
//! `znsage-lab demo`: the same work on stock swap and on znsage, on modelled SSDs that
//! collect garbage; a table, result.json and the picture.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::result::Result;
use crate::ssd::{self, Record};
use crate::{files, picture, vm};

/// result.json of the demo.
#[derive(Serialize, Deserialize)]
pub struct Demo {
    pub machine: String,
    pub runs: Vec<Record>,
}

pub fn run() -> Result<bool> {
    let out = Path::new("build/demo");
    let (runs, sound) = ssd::compare(&ssd::Args::demo(), out)?;
    let document = Demo { machine: vm::machine(ssd::CPUS), runs };
    files::write_json(&out.join("result.json"), &document)?;
    show(&document, out)?;
    println!("picture: {0}/demo.png, {0}/demo.svg; numbers: {0}/result.json", out.display());
    Ok(sound)
}

/// Draws the picture and prints the table of an earlier run.
pub fn redraw(result: &Path) -> Result<bool> {
    show(&files::read_json(result)?, result.parent().unwrap_or(Path::new(".")))?;
    Ok(true)
}

fn show(document: &Demo, out: &Path) -> Result<()> {
    print!("{}", ssd::table(&document.runs));
    let svg = picture::draw(document);
    let png = picture::png::render(&svg)?;
    files::write(&out.join("demo.svg"), svg)?;
    files::write(&out.join("demo.png"), png)
}
