// SPDX-License-Identifier: GPL-2.0-only
//! All figures on one page.

use super::model::{with_spread, Across, Claim, Figure, Loss, Verdict};
use super::published::{Reading, Stated};
use super::scale::Scale;
use crate::chart::{difference, number};
use crate::device::Params;
use crate::html::{Block, Cell, CellKind, Page, Section, Table};

/// The page.
pub fn page(figures: &[Figure], scale: &Scale) -> Page {
    let mut intro = vec![Block::Text(
        "Published results about swap on SSDs beside what this simulator gives for them. Hollow \
         is published, solid is simulated."
            .into(),
    )];
    intro.push(Block::Text(summary(figures)));
    intro.push(Block::Small(scale.text()));
    let mut sections = vec![Section {
        id: "claims".into(),
        title: "All claims".into(),
        blocks: vec![Block::Table(summary_table(figures))],
    }];
    if let Some(section) = losses(figures) {
        sections.push(section);
    }
    sections.extend(figures.iter().map(section));
    sections.push(method());
    Page { title: "Published figures, simulated".into(), intro, sections }
}

fn summary(figures: &[Figure]) -> String {
    let count =
        |v: Verdict| figures.iter().flat_map(|f| &f.claims).filter(|c| c.verdict == v).count();
    let all: usize = figures.iter().map(|f| f.claims.len()).sum();
    format!(
        "Of {all} published numbers, {} are reproduced within their tolerance, {} come out in the \
         same direction only, {} are not reproduced.",
        count(Verdict::Reproduced),
        count(Verdict::SameDirection),
        count(Verdict::NotReproduced)
    )
}

fn section(f: &Figure) -> Section {
    let mut blocks = vec![Block::Small(f.source.clone()), Block::Svg(f.svg())];
    if !f.claims.is_empty() {
        blocks.push(Block::Table(claims(&f.claims)));
    }
    blocks.extend(f.about.iter().cloned().map(Block::Text));
    let lost: Vec<String> = f.losses().iter().map(Loss::text).collect();
    if !lost.is_empty() {
        let text = "Here znsage is behind the best published system: ";
        blocks.push(Block::Text(format!("{text}{}.", lost.join("; "))));
    }
    if !f.notes.is_empty() {
        blocks.push(Block::List(f.notes.clone()));
    }
    blocks.push(Block::Folded("All values".into(), vec![Block::Table(values(f))]));
    blocks.push(Block::Small(format!("Files: {0}.svg, {0}.csv", f.id)));
    Section { id: f.id.into(), title: f.title.clone(), blocks }
}

/// All claims, without the reasons.
fn summary_table(figures: &[Figure]) -> Table {
    let head = ["Figure", "Claim", "Published", "Simulated", "Difference", "Verdict"];
    let all = figures.iter().flat_map(|f| f.claims.iter().map(move |c| (f, c)));
    let rows = all.map(|(f, c)| {
        let mut row = vec![Cell::text(f.id).link(f.id)];
        row.extend(cells(c));
        row
    });
    Table { head: head.map(String::from).to_vec(), rows: rows.collect() }
}

fn claims(all: &[Claim]) -> Table {
    let head = ["Claim", "Published", "Simulated", "Difference", "Verdict", "Likely reason"];
    let rows = all.iter().map(|c| {
        let mut row = cells(c).to_vec();
        row.push(Cell::text(c.reason.clone()));
        row
    });
    Table { head: head.map(String::from).to_vec(), rows: rows.collect() }
}

fn cells(c: &Claim) -> [Cell; 5] {
    let p = &c.published;
    let unit = match p.unit.as_str() {
        "" => String::new(),
        "times" => "x".into(),
        unit => format!(" {unit}"),
    };
    let mark = match p.reading {
        Reading::Text => "",
        Reading::Plot => " (read off the plot)",
        Reading::Derived => " (derived)",
    };
    let kind = match c.verdict {
        Verdict::Reproduced => CellKind::Good,
        Verdict::SameDirection => CellKind::Fair,
        Verdict::NotReproduced => CellKind::Bad,
    };
    [
        Cell::text(format!("{}{mark}", p.what)),
        Cell::number(format!("{}{unit}", p.is.text())),
        Cell::number(c.simulated_text()),
        Cell::number(c.difference()),
        Cell::text(c.verdict_text()).kind(kind),
    ]
}

fn values(f: &Figure) -> Table {
    let x = match &f.x {
        Across::Numbers(axis) => axis.label.clone(),
        Across::Names(what, _) => what.to_string(),
    };
    let head =
        vec!["Series".into(), x, "Published".into(), "Simulated".into(), "Difference".into()];
    let rows = f.rows();
    let rows = rows.iter().map(|r| {
        let difference = r.difference().map(|d| format!("{d:+.1} %")).unwrap_or_default();
        vec![
            Cell::text(r.series.name.clone()),
            Cell::number(r.x.clone()),
            Cell::number(r.published.map(Stated::text).unwrap_or_default()),
            Cell::number(r.simulated.map(|v| with_spread(v, r.spread)).unwrap_or_default()),
            Cell::number(difference),
        ]
    });
    Table { head, rows: rows.collect() }
}

/// Where this project's engine is behind.
fn losses(figures: &[Figure]) -> Option<Section> {
    let head = ["Figure", "At", "znsage", "Best published system", "It has", "znsage is off by"];
    let all = figures.iter().flat_map(|f| f.losses().into_iter().map(move |l| (f, l)));
    let row = |(f, l): (&Figure, Loss)| {
        vec![
            Cell::text(f.title.clone()).link(f.id),
            Cell::number(l.at),
            Cell::number(number(l.ours)),
            Cell::text(l.rival),
            Cell::number(number(l.theirs)),
            Cell::number(difference(l.theirs, l.ours)),
        ]
    };
    let rows: Vec<_> = all.map(row).collect();
    let text = "Places where a published system, simulated the same way, does better than znsage \
        by more than 1 %. What is compared, and its unit, is in the figure.";
    let table = Table { head: head.map(String::from).to_vec(), rows };
    (!table.rows.is_empty()).then(|| Section {
        id: "behind".into(),
        title: "Where znsage is behind".into(),
        blocks: vec![Block::Text(text.into()), Block::Table(table)],
    })
}

/// The method, and what was fitted.
fn method() -> Section {
    let text = |s: &str| Block::Text(s.into());
    let mut blocks = vec![
        text(
            "A claim counts as reproduced if the simulated value differs by no more than its \
             tolerance, which its verdict names, and is not on the other side of no effect. With \
             several seeds that is their mean. \"Same direction\" says no more than that the effect \
             has the published sign, however large it is (of what is no effect: that it is within \
             a factor of two).",
        ),
        text(
            "One value was fitted to one of these figures: that programs of the small-zone drive let \
             reads in, to the largest bandwidth of the thesis (hynix-fitted below). What software costs is mostly assumed, the same \
             for all systems. Where other parameters of devices were fitted, it was to \
             measurements of the device alone; all of them are:",
        ),
    ];
    let tuned: Vec<String> = Params::names()
        .flat_map(|name| {
            let text = Params::text(name).unwrap_or_default();
            let tuned = text.lines().filter(|l| l.contains("# [tuned]"));
            tuned.map(move |l| {
                format!("{name}: {}", l.split_whitespace().collect::<Vec<_>>().join(" "))
            })
        })
        .collect();
    blocks.push(Block::List(tuned));
    blocks.push(text(
        "Stock swap runs with the search for free slots of kernels before 6.12, unless it is said \
         otherwise: ZNSwap was measured on Linux 5.12. It decides about the write amplification of \
         the SSD. That becomes level only after about five times the device was written, which is \
         why so much is swapped out before anything is measured.",
    ));
    Section { id: "method".into(), title: "How this was made".into(), blocks }
}
