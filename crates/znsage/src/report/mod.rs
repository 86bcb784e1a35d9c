// SPDX-License-Identifier: GPL-2.0-only
//! `znsage report`: an HTML page of results that other commands printed with `--json`
//! or wrote to files. `znsage_sim::chart` and `html` draw it; the modules here choose
//! what to draw.

mod bench;
mod course;
mod parts;
mod probe;
mod run;
mod sweep;
mod workloads;

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::{json, Value};
use znsage_sim::html::{Block, Page, Section};

use crate::cli::ReportArgs;
use crate::error::{Error, Kind, Result};
use crate::sys::Sys;
use crate::units;

#[derive(Debug)]
pub struct Report {
    pub file: PathBuf,
    pub bytes: usize,
    pub charts: usize,
    pub results: usize,
}

/// A result and its name on the page.
struct Named<T> {
    name: String,
    result: T,
}

/// The results of a page by kind.
#[derive(Default)]
struct Results {
    benches: Vec<Named<bench::Bench>>,
    courses: Vec<Named<course::Course>>,
    workloads: Vec<Named<workloads::Workloads>>,
    runs: Vec<Named<znsage_sim::result::RunResult>>,
    probes: Vec<Named<crate::probe::record::Probe>>,
    /// Sweeps make their own pages, because they know the varied parameters.
    sweeps: Vec<Named<Page>>,
}

const KINDS: &str =
    "it reads the output of `znsage --json bench`, `probe` and `sim run`, files of `bench \
     --samples` and `make bench-workloads`, and the directory of a `sim sweep`";

pub fn run(sys: &dyn Sys, args: &ReportArgs) -> Result<Report> {
    let file = args.output.clone().unwrap_or_else(|| args.results[0].with_extension("html"));
    if args.results.contains(&file) {
        return Err(Error::new(Kind::Usage, format!("{} is one of the results", file.display()))
            .hint("-o names the page to write"));
    }
    let mut results = Results::default();
    for path in &args.results {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            let page = sweep::page(path)?;
            results.sweeps.push(Named { name, result: page });
            continue;
        }
        let text = sys.read(&absolute(path)).map_err(|e| Error::io("read", path, e).hint(KINDS))?;
        results.take(name, path, &text)?;
    }
    let html = results.page().render();
    sys.save(&absolute(&file), &html)
        .map_err(|e| Error::io("write", &file, e).hint("-o FILE writes the page elsewhere"))?;
    let charts = html.matches("<svg ").count();
    Ok(Report { file, bytes: html.len(), charts, results: args.results.len() })
}

/// The page of one result, for fuzzing.
pub fn page_of(text: &str) -> Result<String> {
    let mut results = Results::default();
    results.take("result".to_string(), Path::new("result.json"), text)?;
    Ok(results.page().render())
}

/// `Sys` needs absolute paths.
fn absolute(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    path.to_string_lossy().into_owned()
}

impl Results {
    /// Adds a document; its keys identify the command that wrote it.
    fn take(&mut self, name: String, path: &Path, text: &str) -> Result<()> {
        let document: Value = match serde_json::from_str(text) {
            Ok(document) => document,
            // One document per line; the last line may be cut off.
            Err(_) if course::is(text) => {
                let result = course::read(text);
                self.courses.push(Named { name, result });
                return Ok(());
            }
            Err(e) => {
                let what = format!("{} is not a result: {e}", path.display());
                return Err(Error::new(Kind::Usage, what).hint(KINDS));
            }
        };
        let has = |key: &str| document.get(key).is_some();
        if has("error") {
            let message = document["error"]["message"].as_str().unwrap_or("it failed");
            let what = format!("{} is an error: {message}", path.display());
            return Err(Error::new(Kind::Usage, what).hint("run the command again that wrote it"));
        }
        if let Some(version) = document.get("version").filter(|version| **version != 1) {
            let what = format!("{} has version {version}", path.display());
            return Err(
                Error::new(Kind::Usage, what).hint("this znsage reads version 1: use a newer one")
            );
        }
        if has("phases") {
            self.benches.push(Named { name, result: read(path, document)? });
        } else if has("workloads") {
            self.workloads.push(Named { name, result: read(path, document)? });
        } else if has("parallelism") {
            self.probes.push(Named { name, result: read(path, document)? });
        } else if document.pointer("/result/fault_latency").is_some() {
            let result = document["result"].clone();
            self.runs.push(Named { name, result: read(path, result)? });
        } else if let Some(store) = sweep::store(&document) {
            let result = sweep::page(&store)?;
            self.sweeps.push(Named { name, result });
        } else if has("t") {
            self.courses.push(Named { name, result: course::read(text) });
        } else {
            let what = format!("{} is not a result with a page", path.display());
            return Err(Error::new(Kind::Usage, what).hint(KINDS));
        }
        Ok(())
    }

    fn page(&self) -> Page {
        let (mut sections, mut titles) = (Vec::new(), Vec::new());
        let mut add = |title, nothing: bool, make: &dyn Fn() -> Vec<Section>| {
            if !nothing {
                titles.push(title);
                sections.extend(make());
            }
        };
        add("Device analysis", self.probes.is_empty(), &|| probe::sections(&self.probes));
        add("Swap benchmark", self.benches.is_empty(), &|| bench::sections(&self.benches));
        add("Course of a benchmark", self.courses.is_empty(), &|| course::sections(&self.courses));
        add("Real programs", self.workloads.is_empty(), &|| workloads::sections(&self.workloads));
        add("Simulated swap", self.runs.is_empty(), &|| run::sections(&self.runs));
        let mut intro = Vec::new();
        for sweep in &self.sweeps {
            titles.push("Simulated swap, sweep");
            intro.extend(sweep.result.intro.clone());
            sections.extend(sweep.result.sections.iter().map(|s| part_of(&sweep.name, s)));
        }
        intro.push(Block::Small(
            "Point at a chart for its values; a click on an entry of its legend hides or shows \
             the series."
                .into(),
        ));
        titles.dedup();
        Page { title: format!("znsage: {}", titles.join(", ").to_lowercase()), intro, sections }
    }
}

/// A section of one of several sweeps.
fn part_of(sweep: &str, section: &Section) -> Section {
    let title = format!("{sweep}: {}", section.title);
    Section { id: parts::id(&title), title, blocks: section.blocks.clone() }
}

fn read<T: DeserializeOwned>(path: &Path, document: Value) -> Result<T> {
    serde_json::from_value(document).map_err(|e| {
        let what = format!("{} is not a complete result: {e}", path.display());
        Error::new(Kind::Usage, what).hint("another version of znsage may have written it")
    })
}

impl Report {
    pub fn to_text(&self) -> String {
        let count = |n: usize, what| units::counted(n as u64, what);
        let charts =
            format!("{} of {}", count(self.charts, "chart"), count(self.results, "result"));
        format!("{}: {charts}, {} KiB\n", self.file.display(), self.bytes.div_ceil(1024))
    }

    pub fn to_json(&self) -> Value {
        json!({
            "version": 1,
            "file": self.file,
            "size_bytes": self.bytes,
            "charts": self.charts,
            "results": self.results,
        })
    }
}
