// SPDX-License-Identifier: GPL-2.0-only
//! One `znsage bench`, and what it leaves.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use super::say;
use crate::course;
use crate::model::{Phase, Report, Run, Sample, System};
use crate::table::thousands;
use crate::Result;

pub struct Work<'a> {
    pub system: System,
    /// What the phase is called in the results.
    pub phase: &'a str,
    /// `znsage bench` with these.
    pub arguments: Vec<String>,
}

/// What came of it: the report, and the course of the counters.
pub struct Measured {
    system: System,
    pub report: Report,
    samples: Vec<Sample>,
}

pub fn measure(work: &Work, raw: &Path) -> Result<Measured> {
    let file = raw.join(format!("{:?}-{}.samples", work.system, work.phase).to_lowercase());
    let report = report(work.system.name(), &work.arguments, &file)?;
    for phase in &report.phases {
        say(&format!("  {}: {}: {}", work.system.name(), phase.name, summary(phase)));
    }
    Ok(Measured { system: work.system, report, samples: samples(&file)? })
}

/// Runs `znsage bench`; `who` stands before what it says of its progress.
pub fn report(who: &str, arguments: &[String], samples: &Path) -> Result<Report> {
    let text = bench(who, arguments, samples)?;
    serde_json::from_str(&text)
        .map_err(|_| format!("`znsage bench {}` failed: {}", arguments.join(" "), complaint(&text)))
}

/// Runs it to its end, shows its progress, and returns what it prints. With
/// exit status 1 that is a report too, of damage.
fn bench(who: &str, arguments: &[String], samples: &Path) -> Result<String> {
    let failed = |e: std::io::Error| format!("znsage bench: {e}");
    let mut child = Command::new("znsage")
        .args(["bench", "--json", "--samples"])
        .arg(samples)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let errors = child.stderr.take();
    let prefix = format!("  {who}");
    let relay = std::thread::spawn(move || relay(&prefix, errors));
    let mut text = String::new();
    if let Some(mut output) = child.stdout.take() {
        output.read_to_string(&mut text).map_err(failed)?;
    }
    child.wait().map_err(failed)?;
    let _ = relay.join();
    Ok(text)
}

/// The message in the document that stands for a report when there is none.
fn complaint(text: &str) -> String {
    let document: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    document["error"]["message"].as_str().unwrap_or(text.trim()).to_string()
}

impl Measured {
    /// The phase that bench calls `name`, as the results' `phase`.
    pub fn run(&self, name: &str, phase: &str) -> Result<Run> {
        let phases = &self.report.phases;
        let found = phases.iter().rfind(|p| p.name == name);
        let found = found.ok_or_else(|| format!("znsage bench has no phase {name}"))?;
        let verified = phases.iter().filter(|p| p.name != "fill").map(|p| p.ops).sum();
        Ok(Run {
            system: self.system,
            phase: phase.to_string(),
            config: self.report.config.clone(),
            measured: found.clone(),
            verified_pages: verified,
            course: course::points(&self.samples, name, found),
        })
    }
}

fn relay(prefix: &str, from: Option<impl Read>) {
    let Some(from) = from else {
        return;
    };
    for line in BufReader::new(from).lines().map_while(std::io::Result::ok) {
        say(&format!("{prefix}: {line}"));
    }
}

fn samples(file: &Path) -> Result<Vec<Sample>> {
    let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<std::result::Result<_, _>>().map_err(|e| format!("{}: {e}", file.display()))
}

fn summary(phase: &Phase) -> String {
    let speed = match phase.latency_us {
        None => format!("{:.1} MiB/s", phase.mib_per_s),
        Some(_) => format!("{} pages/s", thousands(phase.ops_per_s)),
    };
    let waf = phase.waf.map_or(String::new(), |w| format!(", WAF {w:.2}"));
    format!("{speed}{waf}, {} corrupt pages", phase.corrupt_pages)
}
