// SPDX-License-Identifier: GPL-2.0-only
//! `znsage-sim sweep`: many runs from one file.

use std::fmt::Write;
use std::fs;
use std::sync::Mutex;

use serde_json::json;

use crate::sweep::{drive, Point, Runs, RunsError, Sweep};

use super::args::SweepArgs;
use super::progress::Progress;
use super::{threads, usage, Error, Outcome, Result, Status};

impl From<RunsError> for Error {
    fn from(e: RunsError) -> Self {
        Error { status: Status::Io, message: e.to_string() }
    }
}

pub fn sweep(args: &SweepArgs) -> Result<Outcome> {
    let name = args.file.to_string_lossy();
    let text = fs::read_to_string(&args.file).map_err(|e| usage(format!("{name}: {e}")))?;
    let pair = |pair: &String| match pair.split_once('=') {
        Some((key, value)) => Ok((key.to_string(), value.to_string())),
        None => Err(usage(format!("--set {pair}: KEY=VALUE expected"))),
    };
    let set = args.set.iter().map(pair).collect::<Result<Vec<_>>>()?;
    let sweep = Sweep::parse(&name, &text, &set).map_err(usage)?;
    let (i, n) = args.shard.unwrap_or((1, 1));
    let points: Vec<&Point> = sweep.points.iter().skip(i - 1).step_by(n).collect();
    let runs = Runs::new(&args.runs);
    if args.list {
        let lines = points.iter().map(|point| line(&sweep, point, &runs)).collect();
        return Ok(Outcome::fine(lines, json!(null)));
    }
    let driven = {
        let progress = Mutex::new(Progress::new());
        drive(&runs, &points, threads(args.threads), |driven| {
            let mut progress = progress.lock().expect("nobody panics with it");
            let (done, all) = (driven.done(), points.len());
            let left = progress.left(driven.ran, all - done);
            progress.show(|| format!("{done} of {all} runs done{left}"));
        })?
    };
    let panicked = driven.panicked.iter().map(|i| points[*i]).collect();
    report(&sweep, &points, &runs, panicked, driven.ran)
}

/// A point as a line of JSON.
fn line(sweep: &Sweep, point: &Point, runs: &Runs) -> String {
    let file = runs.file(&point.spec);
    let json = json!({
        "name": point.name,
        "point": sweep.values(point),
        "seed": point.spec.seed,
        "file": file,
        "done": runs.has(&file),
    });
    format!("{json}\n")
}

/// Most points of a kind that are described.
const MOST: usize = 5;

fn report(
    sweep: &Sweep,
    points: &[&Point],
    runs: &Runs,
    panicked: Vec<&Point>,
    ran: usize,
) -> Result<Outcome> {
    let (mut failed, mut wrong) = (Vec::new(), Vec::new());
    for point in points {
        let file = runs.file(&point.spec);
        if panicked.iter().any(|p| p.spec == point.spec) {
            continue;
        }
        let stored = runs.read(&file)?;
        match (&stored.error, &stored.result) {
            (Some(e), _) => failed.push(format!("{}: {e}", sweep.describe(point))),
            (None, Some(r)) if !r.wrong.is_empty() => {
                wrong.push(format!("{}: {}", sweep.describe(point), r.wrong.join("; ")));
            }
            _ => {}
        }
    }
    let panicked: Vec<String> = panicked.iter().map(|point| sweep.describe(point)).collect();
    let mut text = format!("{} points, {} of them ran now\n", points.len(), ran);
    for (which, what) in [
        (&failed, "cannot run"),
        (&wrong, "violated an invariant"),
        (&panicked, "ended the simulator by a panic, and have no result"),
    ] {
        if !which.is_empty() {
            let _ = writeln!(text, "{} {what}:", which.len());
            which.iter().take(MOST).for_each(|point| text += &format!("  {point}\n"));
        }
        if which.len() > MOST {
            text += "  ...\n";
        }
    }
    let json = json!({
        "points": points.len(),
        "ran": ran,
        "failed": failed,
        "wrong": wrong,
        "panicked": panicked,
    });
    let fine = failed.is_empty() && wrong.is_empty() && panicked.is_empty();
    Ok(Outcome { text, json, status: if fine { Status::Fine } else { Status::Wrong } })
}
