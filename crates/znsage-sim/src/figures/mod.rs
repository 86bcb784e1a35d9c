// SPDX-License-Identifier: GPL-2.0-only
//! Every published figure, simulated: published values, simulated values, and
//! the difference.
//!
//! One file per publication lists its figures, with the runs each needs and
//! how to make it from them. `published/` has the published values, each with
//! its source. All runs come first, each once, then all figures.

mod analysis;
mod device;
mod mapping;
mod model;
mod page;
mod party;
mod published;
mod runs;
mod scale;
mod thesis;
mod write;
mod zns_plus;
mod znsage_2025;
mod znswap;

pub use model::{Across, Better, Claim, Figure, Loss, Row, Series, Verdict};
pub use page::page;
pub use published::{Publication, Published, Reading, Stated};
pub use runs::{Definition, Job, Outcomes};
pub use scale::Scale;
pub use write::{prepare, write, WriteError};

/// All figures, in page order.
pub fn all() -> Vec<Definition> {
    let publications = [
        znswap::FIGURES,
        thesis::FIGURES,
        znsage_2025::FIGURES,
        analysis::FIGURES,
        zns_plus::FIGURES,
        mapping::FIGURES,
    ];
    publications.concat()
}

/// The figures with these names; all if `ids` is empty.
///
/// # Errors If a name is unknown; the text lists the known ones.
pub fn select(ids: &[String]) -> Result<Vec<Definition>, String> {
    let all = all();
    if let Some(unknown) = ids.iter().find(|id| all.iter().all(|f| f.id != **id)) {
        let known: Vec<&str> = all.iter().map(|f| f.id).collect();
        return Err(format!("no figure is called `{unknown}`; there are {}", known.join(", ")));
    }
    Ok(all.into_iter().filter(|f| ids.is_empty() || ids.iter().any(|id| id == f.id)).collect())
}

/// Runs what the figures need, with each seed of the scale and `threads` runs at a time,
/// and makes the figures.
///
/// A failed run is not an error: its figure says so.
pub fn make(
    definitions: &[Definition],
    scale: &Scale,
    threads: usize,
    progress: &mut dyn FnMut(usize, usize, &str),
) -> Vec<Figure> {
    let seeds: Vec<Scale> = scale.each_seed().collect();
    let all = |d: &Definition| seeds.iter().flat_map(|s| (d.jobs)(s)).collect::<Vec<Job>>();
    let outcomes = Outcomes::of(definitions.iter().flat_map(all).collect(), threads, progress);
    let one = |d: &Definition, seed: &Scale| {
        let mut figure = (d.make)(seed, &outcomes);
        let failures = outcomes.failures(&(d.jobs)(seed)).into_iter();
        figure.notes.extend(failures.map(|f| format!("A run failed: {f}.")));
        figure
    };
    let figures = definitions
        .iter()
        .map(|d| Figure::over_seeds(seeds.iter().map(|seed| one(d, seed)).collect()));
    figures.collect()
}
