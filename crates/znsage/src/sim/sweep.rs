// SPDX-License-Identifier: GPL-2.0-only
//! `znsage sim sweep` and `merge`: many runs from one file.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::json;
use znsage_sim::pool;
use znsage_sim::sweep::merge::Merged;
use znsage_sim::sweep::{
    default_dir, drive, output, Driven, Entry, Outcome, Plan, Shard, Stage, Sweep, SweepError,
};

use crate::cli::sim::{MergeArgs, SweepArgs};
use crate::error::{reason, Error, Kind, Result};
use crate::interrupt;
use crate::outcome::Outcome as Report;
use crate::progress;
use crate::units;

impl From<SweepError> for Error {
    fn from(e: SweepError) -> Self {
        let kind = match &e {
            SweepError::File { .. } | SweepError::Store { .. } => Kind::Usage,
            SweepError::Busy(_) => Kind::Busy,
            SweepError::Io { .. } => Kind::Kernel,
        };
        let (message, hint) = match &e {
            SweepError::Io { verb, path, error } => {
                (format!("cannot {verb} {}: {}", path.display(), reason(error)), None)
            }
            other => (other.to_string(), other.hint()),
        };
        Error { kind, message, hint }
    }
}

pub fn jobs(given: Option<u16>) -> usize {
    given.map_or_else(pool::default_jobs, usize::from)
}

pub fn sweep(args: &SweepArgs) -> Result<Report> {
    let text = fs::read_to_string(&args.file)
        .map_err(|e| Error::new(Kind::Usage, format!("{}: {}", args.file.display(), reason(&e))))?;
    let sweep = Sweep::parse(&args.file.to_string_lossy(), &text)?;
    let dir = args.out.clone().unwrap_or_else(|| default_dir(&args.file));
    let plan = Plan { shard: args.shard, dir, jobs: jobs(args.jobs) };
    let driven = {
        let mut shown = Shown::new();
        drive(&sweep, &plan, interrupt::seen, |progress| shown.show(progress))?
    };
    if driven.stopped {
        let (done, all) = (driven.entries.len(), driven.points);
        return Err(Error::new(
            Kind::Interrupted,
            format!("interrupted, {done} of {all} points done"),
        )
        .hint("run the same command to continue"));
    }
    if let Some(first) = driven.panicked.first() {
        let n = driven.panicked.len();
        let what =
            format!("the simulator failed at {n} of {} points, first at {first}", driven.points);
        return Err(Error::new(Kind::Failure, what)
            .hint("the other points are finished and kept; report the message above"));
    }
    let files = match args.shard == Shard::WHOLE {
        true => output::write(&plan.dir, &driven.entries)?,
        false => vec![plan.dir.join(args.shard.file_name())],
    };
    Ok(report(&driven, args.shard, &files))
}

fn report(driven: &Driven, shard: Shard, files: &[PathBuf]) -> Report {
    let mut text = format!("{} points", driven.points);
    if shard != Shard::WHOLE {
        let _ = write!(text, " in part {shard}");
    }
    if driven.before > 0 {
        let _ = write!(text, ", {} of them done before", driven.before);
    }
    text.push('\n');
    let mut report = summary(&driven.entries, text, files);
    if shard != Shard::WHOLE {
        report.text += "`znsage sim merge` joins the parts\n";
    }
    report
}

/// The outcome of the points and the names of the files.
fn summary(entries: &BTreeMap<usize, Entry>, mut text: String, files: &[PathBuf]) -> Report {
    let (mut impossible, mut stuck, mut wrong) = (0, 0, 0);
    for entry in entries.values() {
        match &entry.outcome {
            Outcome::Impossible(_) => impossible += 1,
            Outcome::Stuck(_) => stuck += 1,
            Outcome::Result(r) => wrong += usize::from(!r.wrong.is_empty()),
        }
    }
    for (n, what) in [
        (impossible, "cannot be run"),
        (stuck, "started but got stuck"),
        (wrong, "ended with a violated invariant"),
    ] {
        if n > 0 {
            let _ = writeln!(text, "{n} {what}: see the results");
        }
    }
    for file in files {
        let _ = writeln!(text, "{}", file.display());
    }
    let json = json!({
        "version": 1,
        "points": entries.len(),
        "impossible": impossible,
        "stuck": stuck,
        "wrong": wrong,
        "files": files.iter().map(|f| f.display().to_string()).collect::<Vec<_>>(),
    });
    Report { text, json, damage: wrong > 0 }
}

pub fn merge(args: &MergeArgs) -> Result<Report> {
    let mut merged = Merged::read(&args.parts)?;
    let missing = merged.missing();
    if !missing.is_empty() && !args.partial {
        return Err(incomplete(&merged, &missing));
    }
    merged.write(&args.out)?;
    let files = output::write(&args.out, &merged.entries)?;
    let mut text = format!("{} of {} points", merged.entries.len(), merged.header.points);
    let missing = merged.missing();
    if !missing.is_empty() {
        let _ = write!(text, ", missing {}", ranges(&missing));
    }
    text.push('\n');
    let mut report = summary(&merged.entries, text, &files);
    report.json["missing"] = missing.into();
    Ok(report)
}

fn incomplete(merged: &Merged, missing: &[usize]) -> Error {
    let all = merged.header.points;
    let what = format!("{} of {all} points are missing: {}", missing.len(), ranges(missing));
    let shards: Vec<_> =
        merged.missing_shards().iter().map(|shard| format!("--shard {shard}")).collect();
    let hint = match shards.is_empty() {
        true => "`znsage sim sweep` runs them; --partial writes what there is".into(),
        false => format!(
            "`znsage sim sweep` with {} runs them; --partial writes what there is",
            shards.join(", ")
        ),
    };
    Error::new(Kind::Usage, what).hint(hint)
}

/// `0-3, 7`; shortened if there are many.
fn ranges(sorted: &[usize]) -> String {
    const MOST: usize = 10;
    let mut all: Vec<(usize, usize)> = Vec::new();
    for &n in sorted {
        match all.last_mut() {
            Some((_, last)) if *last + 1 == n => *last = n,
            _ => all.push((n, n)),
        }
    }
    let show = |&(a, b): &(usize, usize)| match a == b {
        true => a.to_string(),
        false => format!("{a}-{b}"),
    };
    let mut words: Vec<_> = all.iter().take(MOST).map(show).collect();
    if all.len() > MOST {
        words.push("...".into());
    }
    words.join(", ")
}

/// Shows done and remaining points, and the time left.
struct Shown {
    line: progress::Progress,
    begun: Option<(Stage, Instant)>,
}

impl Shown {
    fn new() -> Self {
        Shown { line: progress::Progress::new(), begun: None }
    }

    fn show(&mut self, p: znsage_sim::sweep::Progress) {
        let begun = match self.begun {
            Some((stage, begun)) if stage == p.stage => begun,
            _ => self.begun.insert((p.stage, Instant::now())).1,
        };
        let took = begun.elapsed().as_secs_f64();
        self.line.show(|| match p.stage {
            Stage::Checking => format!("checked {} of {} points", p.done, p.todo),
            Stage::Running => {
                format!("{} of {} runs done{}", p.done, p.todo, left(p.done, p.todo, took))
            }
        });
    }
}

/// Rate and time left; empty before the first point is done.
fn left(done: usize, todo: usize, took: f64) -> String {
    if done == 0 {
        return String::new();
    }
    let each = took / done as f64;
    let left = each * (todo - done) as f64;
    format!(", {:.1} per minute, {} left", 60.0 / each, units::duration(left))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::tests::sim;
    use std::path::Path;

    const FILE: &str = r#"
        size = "192M"
        device = "zn540"
        host = { memory = "8M", threads = 2, cpus = 2 }
        run = { warmup = 0.1, measure = 0.1 }
        "device.zoned.zone_capacity" = "3 MiB"
        [sweep]
        utilization = [30, 50]
        seed = [1, 2]
    "#;

    fn words<'a>(dir: &'a Path, rest: &[&'a str]) -> Vec<String> {
        rest.iter().map(|w| w.replace('@', dir.to_str().unwrap())).collect()
    }

    fn run(dir: &Path, rest: &[&str]) -> Result<Report> {
        let words = words(dir, rest);
        sim(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    #[test]
    fn a_sweep_and_its_merged_parts_give_the_same_files() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        fs::write(dir.join("a.toml"), FILE).unwrap();
        let report = run(dir, &["sweep", "@/a.toml", "--jobs", "2"]).unwrap();
        assert!(report.text.starts_with("4 points\n"), "{}", report.text);
        let again = run(dir, &["sweep", "@/a.toml", "--jobs", "1"]).unwrap();
        assert!(again.text.starts_with("4 points, 4 of them done before"), "{}", again.text);

        let part = ["sweep", "@/a.toml", "--jobs", "1", "--out", "@/parts", "--shard"];
        let shard = |s| run(dir, &[&part[..], &[s]].concat()).unwrap();
        assert!(shard("2/2").text.starts_with("2 points in part 2/2\n"));
        let merge = ["merge", "@/parts", "--out", "@/all"];
        let e = run(dir, &merge).err().unwrap();
        assert_eq!(e.message, "2 of 4 points are missing: 0, 2");
        assert!(e.hint.unwrap().contains("--shard 1/2 "));
        assert!(!dir.join("all").exists());
        run(dir, &["merge", "@/parts", "--out", "@/some", "--partial"]).unwrap();
        shard("1/2");
        let report = run(dir, &merge).unwrap();
        assert!(report.text.starts_with("4 of 4 points\n"), "{}", report.text);
        for name in [output::CSV, output::PARQUET, output::REPORT] {
            let read = |at: &str| fs::read(dir.join(at).join(name)).unwrap();
            assert!(read("a.sweep") == read("all"), "{name}");
            assert!(read("a.sweep") != read("some"), "{name}");
        }
        // A partial merge can be completed later.
        run(dir, &["sweep", "@/a.toml", "--jobs", "1", "--out", "@/some"]).unwrap();
        let read = |at: &str| fs::read(dir.join(at).join(output::CSV)).unwrap();
        assert!(read("a.sweep") == read("some"));
    }

    #[test]
    fn errors_name_file_and_line() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        fs::write(dir.join("a.toml"), FILE.replace("[30, 50]", "[30, 100]")).unwrap();
        for (words, kind, part) in [
            (&["sweep", "@/b.toml"][..], Kind::Usage, "b.toml: No such file"),
            (&["sweep", "@/a.toml"], Kind::Usage, "a.toml:8: utilization: 100 is not"),
            (&["merge", "@", "--out", "@/x"], Kind::Usage, "there is no store"),
            (&["merge", "@/a.toml", "--out", "@/x"], Kind::Usage, "a.toml: line 1: "),
            (&["merge", "@/none", "--out", "@/x"], Kind::Kernel, "cannot read "),
        ] {
            let e = run(dir, words).err().unwrap();
            assert_eq!(e.kind, kind, "{}", e.message);
            assert!(e.message.contains(part), "{}", e.message);
        }
    }

    #[test]
    fn ranges_and_times_are_short() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2, 5, 7-8");
        assert_eq!(ranges(&(0..40).step_by(2).collect::<Vec<_>>()).matches(',').count(), 10);
        assert_eq!(left(3, 9, 30.0), ", 6.0 per minute, 60 s left");
    }
}
