// SPDX-License-Identifier: GPL-2.0-only
//! Runs `znsage bench` and reads its results.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use znsage::parsers::{Phase, Report};

use crate::course;
use crate::files::read;
use crate::model::{Run, Sample, System};
use crate::result::{Context, Result};
use crate::table::thousands;

pub struct Work<'a> {
    pub system: System,
    /// The name of the phase in the results.
    pub phase: &'a str,
    /// Arguments of `znsage bench`.
    pub arguments: Vec<String>,
}

/// The arguments that all figures share.
pub fn common(limit: u64) -> Vec<String> {
    threads(limit, 4)
}

/// The arguments for this number of threads.
pub fn threads(limit: u64, nr: u32) -> Vec<String> {
    vec![format!("--memory-limit={limit}"), format!("--threads={nr}"), "--seed=1".to_string()]
}

/// The report, and the counters over time.
pub struct Measured {
    system: System,
    pub report: Report,
    pub samples: Vec<Sample>,
}

pub fn measure(work: &Work, raw: &Path) -> Result<Measured> {
    let file = raw.join(format!("{:?}-{}.samples", work.system, work.phase).to_lowercase());
    let report = report(work.system.name(), &work.arguments, &file)?;
    for phase in &report.phases {
        eprintln!("  {}: {}: {}", work.system.name(), phase.phase, summary(phase));
    }
    Ok(Measured { system: work.system, report, samples: samples(&file)? })
}

/// Runs `znsage bench` and shows its progress, with `who` in front.
pub fn report(who: &str, arguments: &[String], samples: &Path) -> Result<Report> {
    let text = bench(who, arguments, samples)?;
    serde_json::from_str(&text)
        .map_err(|_| format!("`znsage bench {}` failed: {}", arguments.join(" "), complaint(&text)))
}

/// Returns what `znsage bench` prints. With exit status 1 that is a report, too, of
/// corrupt pages.
fn bench(who: &str, arguments: &[String], samples: &Path) -> Result<String> {
    let mut child = Command::new("znsage")
        .args(["bench", "--json", "--samples"])
        .arg(samples)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("znsage bench")?;
    let errors = child.stderr.take();
    let prefix = format!("  {who}");
    let relay = std::thread::spawn(move || relay(&prefix, errors));
    let mut text = String::new();
    if let Some(mut output) = child.stdout.take() {
        output.read_to_string(&mut text).context("znsage bench")?;
    }
    child.wait().context("znsage bench")?;
    let _ = relay.join();
    Ok(text)
}

/// The message of the document that it prints in place of a report.
fn complaint(text: &str) -> String {
    let document: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    document["error"]["message"].as_str().unwrap_or(text.trim()).to_string()
}

impl Measured {
    /// A system that loses data has no figures.
    pub fn sound(&self) -> Result<()> {
        match self.report.corrupt_pages {
            0 => Ok(()),
            n => Err(format!("{n} corrupt pages")),
        }
    }

    /// The phase that bench calls `name`, as `phase` of the results.
    pub fn run(&self, name: &str, phase: &str) -> Result<Run> {
        let phases = &self.report.phases;
        let found = phases.iter().rfind(|p| p.phase == name);
        let found = found.ok_or_else(|| format!("znsage bench has no phase {name}"))?;
        let verified = phases.iter().filter(|p| p.phase != "fill").map(|p| p.ops).sum();
        Ok(Run {
            system: self.system,
            config: self.report.config.clone(),
            measured: Phase { phase: phase.to_string(), ..found.clone() },
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
        eprintln!("{prefix}: {line}");
    }
}

fn samples(file: &Path) -> Result<Vec<Sample>> {
    let text = read(file)?;
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<std::result::Result<_, _>>().context(file.display())
}

fn summary(phase: &Phase) -> String {
    let speed = match phase.latency_us {
        None => format!("{:.1} MiB/s", phase.mib_per_s),
        Some(_) => format!("{} pages/s", thousands(phase.ops_per_s)),
    };
    let waf = phase.waf.map_or(String::new(), |w| format!(", WAF {w:.2}"));
    format!("{speed}{waf}, {} corrupt pages", phase.corrupt_pages)
}
