// SPDX-License-Identifier: GPL-2.0-only
//! Figures as files: `ID.svg` and `ID.csv` for each, `index.html` and
//! `figures.json` for all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::model::Figure;
use super::page::page;
use super::published::Stated;
use super::scale::Scale;
use crate::chart::standalone;

/// A file that could not be written.
#[derive(Debug)]
pub struct WriteError {
    /// Which one.
    pub path: PathBuf,
    /// Why.
    pub error: io::Error,
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> WriteError + '_ {
    move |error| WriteError { path: path.into(), error }
}

/// Makes the directory and checks, before the runs, that it is writable.
///
/// # Errors If it is not a directory, or not writable.
pub fn prepare(dir: &Path) -> Result<(), WriteError> {
    fs::create_dir_all(dir).map_err(at(dir))?;
    let probe = dir.join(".figures");
    fs::write(&probe, b"").map_err(at(dir))?;
    fs::remove_file(&probe).map_err(at(&probe))
}

/// Writes the figures to a directory, replacing existing files.
///
/// # Errors
/// If a file cannot be written.
pub fn write(dir: &Path, figures: &[Figure], scale: &Scale) -> Result<Vec<PathBuf>, WriteError> {
    let mut written = Vec::new();
    let mut put = |name: String, text: String| {
        let path = dir.join(name);
        fs::write(&path, text).map_err(at(&path))?;
        written.push(path);
        Ok(())
    };
    for f in figures {
        put(format!("{}.svg", f.id), standalone(&f.svg()))?;
        put(format!("{}.csv", f.id), table(f))?;
    }
    let json = json!({
        "version": 1,
        "scale": scale.name,
        "seed": scale.seed,
        "seeds": scale.seeds,
        "figures": figures.iter().map(Figure::to_json).collect::<Vec<_>>(),
    });
    put("figures.json".into(), format!("{json:#}\n"))?;
    put("index.html".into(), page(figures, scale).render())?;
    Ok(written)
}

/// A row for each value. Numbers are in full.
fn table(f: &Figure) -> String {
    let mut out = csv::Writer::from_writer(Vec::new());
    let head = [
        "series",
        "x",
        "published",
        "published_to",
        "simulated",
        "simulated_low",
        "simulated_high",
        "difference_percent",
    ];
    let number = |v: Option<f64>| v.map(|v| format!("{v}")).unwrap_or_default();
    let row = |r: &super::model::Row| {
        let (low, high) = match r.published {
            Some(Stated::Range(a, b)) => (Some(a), Some(b)),
            // Bounds are in the claims; a bare number would be misread.
            Some(Stated::Above(_) | Stated::Below(_)) | None => (None, None),
            Some(Stated::Value(v)) => (Some(v), None),
        };
        let difference = r.difference().map(|d| format!("{d:.2}")).unwrap_or_default();
        let (x, name) = (r.x.clone(), r.series.name.clone());
        let (from, to) = (r.spread.map(|s| s.0), r.spread.map(|s| s.1));
        [
            name,
            x,
            number(low),
            number(high),
            number(r.simulated),
            number(from),
            number(to),
            difference,
        ]
    };
    let rows = f.rows();
    let all = std::iter::once(head.map(String::from)).chain(rows.iter().map(row));
    for record in all {
        out.write_record(&record).expect("memory takes all");
    }
    let bytes = out.into_inner().expect("memory takes all");
    String::from_utf8(bytes).expect("made of strings")
}

impl Figure {
    /// All of it, for programs.
    pub fn to_json(&self) -> serde_json::Value {
        let rows = self.rows();
        let values = rows.iter().map(|r| {
            json!({
                "series": r.series.name,
                "x": r.x,
                "published": r.published,
                "simulated": r.simulated,
                "spread": r.spread,
                "difference_percent": r.difference(),
            })
        });
        json!({
            "id": self.id,
            "title": self.title,
            "source": self.source,
            "unit": self.y.label,
            "better": self.better,
            "values": values.collect::<Vec<_>>(),
            "claims": self.claims,
            "losses": self.losses(),
            "about": self.about,
            "notes": self.notes,
        })
    }
}
