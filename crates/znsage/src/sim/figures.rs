// SPDX-License-Identifier: GPL-2.0-only
//! `znsage sim figures`: simulates published figures.

use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use serde_json::json;
use znsage_sim::figures::{self, Figure, Loss, Scale, WriteError};

use super::sweep;
use crate::cli::sim::FiguresArgs;
use crate::error::{Error, Kind, Result};
use crate::outcome::Outcome;
use crate::progress::Progress;

pub fn make(args: &FiguresArgs) -> Result<Outcome> {
    let chosen =
        figures::select(&args.only).map_err(|e| Error::new(Kind::Usage, format!("--only: {e}")))?;
    if args.list {
        let ids: Vec<&str> = chosen.iter().map(|f| f.id).collect();
        let json = json!({"version": 1, "figures": ids});
        return Ok(Outcome { text: ids.join("\n") + "\n", json, damage: false });
    }
    let out = args.out.as_deref().expect("clap asks for it");
    figures::prepare(out).map_err(|e| unwritable(out, e))?;
    let scale = if args.quick { Scale::quick() } else { Scale::full() };
    let seeds = args.seeds.map_or(scale.seeds, |n| n.get());
    let scale = Scale { seed: args.seed, seeds, ..scale };
    let begun = Instant::now();
    let made = {
        let mut progress = Progress::new();
        let mut show = |done: usize, of: usize, last: &str| {
            progress.show(|| format!("{done} of {of} runs done, the last: {last}"));
        };
        figures::make(&chosen, &scale, sweep::jobs(args.jobs), &mut show)
    };
    let files = figures::write(out, &made, &scale).map_err(|e| unwritable(out, e))?;
    let mut text = to_text(&made);
    let (n, took) = (files.len(), begun.elapsed().as_secs_f64());
    let page = out.join("index.html");
    let _ = writeln!(text, "{n} files in {took:.0} s; see {}", page.display());
    let json = json!({
        "version": 1,
        "files": files,
        "figures": made.iter().map(Figure::to_json).collect::<Vec<_>>(),
    });
    Ok(Outcome { text, json, damage: false })
}

fn unwritable(out: &Path, e: WriteError) -> Error {
    let error = match out.exists() && !out.is_dir() {
        true => return Error::new(Kind::Usage, format!("--out {}: is a file", out.display())),
        false => Error::io("write", &e.path, e.error),
    };
    error.hint("--out must name a directory that you can write to")
}

/// A line for each claim.
fn to_text(figures: &[Figure]) -> String {
    let mut text = String::new();
    for f in figures {
        let _ = writeln!(text, "{}: {}", f.id, f.title);
        for c in &f.claims {
            let simulated = c.simulated_text();
            let _ = writeln!(
                text,
                "  published {:12} simulated {simulated:24} {:9} {}: {}",
                c.published.is.text(),
                c.difference(),
                c.verdict_text(),
                c.published.what
            );
        }
        let lost: Vec<String> = f.losses().iter().map(Loss::text).collect();
        if !lost.is_empty() {
            let _ = writeln!(text, "  znsage is behind {}", lost.join("; "));
        }
        for note in f.notes.iter().filter(|n| n.starts_with("A run failed")) {
            let _ = writeln!(text, "  {note}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn figures(words: &[&str]) -> Result<Outcome> {
        let words = ["znsage", "sim", "figures"].iter().chain(words);
        match crate::cli::Cli::try_parse_from(words).unwrap().command {
            crate::cli::Command::Sim { command } => super::super::run(&command, false),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_figure_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let words = ["--quick", "--only", "mapping-memory", "--jobs", "1", "--out"];
        let report = figures(&[&words[..], &[out.to_str().unwrap()]].concat()).unwrap();
        assert!(report.text.contains("published 24 "), "{}", report.text);
        assert_eq!(report.json["figures"][0]["id"], "mapping-memory");
        assert!(out.join("mapping-memory.svg").exists() && out.join("index.html").exists());
    }

    #[test]
    fn figures_are_listed() {
        let report = figures(&["--list"]).unwrap();
        assert!(report.text.lines().any(|l| l == "znswap-waf"));
    }

    #[test]
    fn invalid_options_are_refused_before_any_run() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let file = file.to_str().unwrap();
        let below = format!("{file}/below");
        for (words, kind, part) in [
            (
                vec!["--out", "/tmp", "--only", "fig1"],
                Kind::Usage,
                "no figure is called `fig1`; there",
            ),
            (vec!["--out", file], Kind::Usage, "is a file"),
            (vec!["--out", &below], Kind::Kernel, "Not a directory"),
            (vec!["--out", "/proc/no"], Kind::Kernel, "cannot write /proc/no: "),
        ] {
            let e = figures(&words).err().unwrap();
            assert!(e.kind == kind && e.message.contains(part), "{words:?}: {}", e.message);
        }
    }
}
