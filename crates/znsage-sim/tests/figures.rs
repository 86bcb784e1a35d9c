// SPDX-License-Identifier: GPL-2.0-only
//! Figures at the smallest scale: the numbers mean nothing, but all files are
//! complete, well-formed and repeatable.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use roxmltree::{Document, ParsingOptions};
use znsage_sim::chart::Mark;
use znsage_sim::figures::{self, Definition, Figure, Publication, Scale};

fn smallest() -> Scale {
    Scale {
        name: "smallest",
        mib: 320,
        memory_mib: 8,
        warmup: 0.05,
        measure: 0.05,
        seed: 1,
        seeds: 2,
    }
}

fn choose(ids: &[&str]) -> Vec<Definition> {
    figures::select(&ids.iter().map(|s| s.to_string()).collect::<Vec<_>>()).unwrap()
}

fn make(chosen: &[Definition], threads: usize) -> Vec<Figure> {
    figures::make(chosen, &smallest(), threads, &mut |_, _, _| ())
}

fn write(dir: &Path, figures: &[Figure]) -> Vec<(String, String)> {
    figures::prepare(dir).unwrap();
    let files = figures::write(dir, figures, &smallest()).unwrap();
    let name = |p: &Path| p.file_name().unwrap().to_str().unwrap().to_string();
    files.iter().map(|p| (name(p), fs::read_to_string(p).unwrap())).collect()
}

const CHEAP: [&str; 3] = ["mapping-memory", "zns-plus-copy-bandwidth", "znsage-2025-fig8"];

#[test]
fn files_are_complete_and_well_formed() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("new/figures");
    let made = make(&choose(&CHEAP), 1);
    let files = write(&out, &made);
    let names: Vec<&str> = files.iter().map(|f| f.0.as_str()).collect();
    assert_eq!(names.len(), 2 * CHEAP.len() + 2);
    let on_disk = fs::read_dir(&out).unwrap().count();
    assert_eq!(on_disk, names.len(), "nothing else is left there");
    for (name, text) in &files {
        let ending = name.rsplit('.').next().unwrap();
        match ending {
            "svg" => drop(Document::parse(text).unwrap_or_else(|e| panic!("{name}: {e}"))),
            "json" => {
                let json: serde_json::Value = serde_json::from_str(text).unwrap();
                assert_eq!(json["figures"].as_array().unwrap().len(), CHEAP.len());
            }
            "csv" => {
                let mut rows = csv::Reader::from_reader(text.as_bytes());
                let rows: Vec<_> = rows.records().map(Result::unwrap).collect();
                assert!(!rows.is_empty(), "{name}");
                assert!(rows.iter().any(|r| !r[4].is_empty()), "{name}: nothing simulated");
            }
            _ => page_is_sound(text, &made),
        }
    }
}

fn page_is_sound(html: &str, made: &[Figure]) {
    let options = ParsingOptions { allow_dtd: true, ..Default::default() };
    let page = Document::parse_with_options(html, options).unwrap();
    let ids: BTreeSet<&str> = page.descendants().filter_map(|n| n.attribute("id")).collect();
    for f in made {
        assert!(ids.contains(f.id), "{}", f.id);
    }
    for link in page.descendants().filter_map(|n| n.attribute("href")) {
        assert!(ids.contains(link.strip_prefix('#').unwrap()), "{link}");
    }
    let pictures =
        page.descendants().filter(|n| n.has_tag_name("svg") || n.tag_name().name() == "svg");
    assert_eq!(pictures.count(), made.len());
    // Nothing is loaded from elsewhere.
    for attribute in ["src", "xlink:href"] {
        assert!(!html.contains(&format!("{attribute}=")));
    }
}

#[test]
fn figures_do_not_depend_on_threads() {
    let dir = tempfile::tempdir().unwrap();
    let chosen = choose(&CHEAP);
    let one = write(&dir.path().join("one"), &make(&chosen, 1));
    let two = write(&dir.path().join("two"), &make(&chosen, 2));
    assert_eq!(one, two);
}

/// The markers of variants.
const SAYS_HOW: [Mark; 5] = [Mark::Cross, Mark::Plus, Mark::Dash, Mark::Bowtie, Mark::Hourglass];

/// Every figure can be made: its runs and its published values exist.
#[test]
fn every_figure_is_made() {
    // Skip the run that writes 10 GB whatever the scale.
    let slow = ["analysis-bandwidth"];
    let chosen: Vec<_> = figures::all().into_iter().filter(|f| !slow.contains(&f.id)).collect();
    for f in make(&chosen, 2) {
        assert!(!f.rows().is_empty() && !f.about.is_empty() && !f.source.is_empty(), "{}", f.id);
        assert!(f.notes.iter().all(|n| !n.starts_with("A run failed")), "{}: {:?}", f.id, f.notes);
        for c in &f.claims {
            assert!(c.simulated.is_some(), "{}: {}", f.id, c.published.what);
        }
        Document::parse(&f.svg()).unwrap();
        for (i, a) in f.series.iter().enumerate() {
            for b in &f.series[i + 1..] {
                let (one, other) = (a.look, b.look);
                assert!(one.colour != other.colour, "{}: {} and {}", f.id, a.name, b.name);
                // The marker of a variant says how it differs, whichever system it is of.
                let says_how = SAYS_HOW.contains(&one.mark);
                assert!(one.mark != other.mark || says_how, "{}: {}", f.id, b.name);
            }
        }
    }
}

#[test]
fn published_values_have_a_source() {
    let mut all = 0;
    for name in Publication::names() {
        let p = Publication::load(name);
        let ids: BTreeSet<&str> = p.values.iter().map(|v| v.id.as_str()).collect();
        assert_eq!(ids.len(), p.values.len(), "{name}: an id is there twice");
        for v in &p.values {
            for text in [&v.what, &v.place, &v.source] {
                assert!(text.len() > 3, "{name}: {}", v.id);
            }
            assert!(v.is.number().is_finite());
        }
        all += ids.len();
    }
    assert!(all > 40);
}

#[test]
fn figure_names_are_unique() {
    let all = figures::all();
    let ids: BTreeSet<&str> = all.iter().map(|f| f.id).collect();
    assert_eq!(ids.len(), all.len());
    let e = figures::select(&["fig1".into()]).err().unwrap();
    assert!(e.contains("`fig1`") && e.contains("znswap-waf, "), "{e}");
    assert_eq!(figures::select(&[]).unwrap().len(), all.len());
}
