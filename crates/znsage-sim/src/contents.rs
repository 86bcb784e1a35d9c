// SPDX-License-Identifier: GPL-2.0-only
//! How far pages shrink: the sizes of real programs' pages, as `znsage estimate --json` found
//! them.
//!
//! Each page has its place in the distribution, from the shortest to the longest. When it is
//! written again it gets another one near that. So all pages together keep the distribution,
//! and a page that hardly shrinks goes on to hardly shrink.

use std::{fs, io};

use serde::Deserialize;
use znsage_engine::LEAST_PART;

use crate::rng::{mix, unit};
use crate::spec::{CompressKind, SpecError};

/// The programs whose pages come with the simulator; contents/README.md says how they ran.
const KNOWN: [(&str, &str); 2] = [
    ("gcc", include_str!("../contents/gcc.json")),
    ("memcached", include_str!("../contents/memcached.json")),
];

/// Pages that do not shrink.
const NOISE: &str = "noise";

/// Blocks of a page in the measured sizes, and of one that does not shrink: its header takes
/// another.
const MEASURED: u32 = 64;
const LONGEST: u32 = MEASURED + 1;

/// A page written again moves in the distribution by less than this.
const DRIFT: f64 = 0.05;

/// What `znsage estimate --json` says, as far as it matters here.
#[derive(Deserialize)]
struct Estimate {
    processes: Vec<Process>,
}

#[derive(Deserialize)]
struct Process {
    bytes_in_memory: u64,
    sampled_pages: u64,
    lz4_sizes: Vec<u64>,
    zstd_sizes: Vec<u64>,
}

/// The sizes of pages.
#[derive(Clone, Debug)]
pub struct Contents {
    /// Up to which place in the distribution pages take so many blocks or fewer.
    up_to: Vec<f64>,
    compress: CompressKind,
    seed: u64,
}

impl Contents {
    /// The contents of this name: one of the known programs', `noise`, or a file that
    /// `znsage estimate --json` wrote.
    ///
    /// # Errors
    /// If there is no such file, or it is none of these.
    pub fn load(name: &str, compress: CompressKind, seed: u64) -> Result<Contents, SpecError> {
        let refuse = |what: String| SpecError { key: "load.contents".into(), what };
        if name == NOISE {
            let mut sizes = vec![0.0; LONGEST as usize + 1];
            sizes[LONGEST as usize] = 1.0;
            return Ok(Contents::of(&sizes, compress, seed));
        }
        let text = match KNOWN.iter().find(|known| known.0 == name) {
            Some(known) => known.1.to_string(),
            None => fs::read_to_string(name).map_err(|e| refuse(no_file(name, &e)))?,
        };
        let sizes = parse(&text, compress).map_err(refuse)?;
        Ok(Contents::of(&sizes, compress, seed))
    }

    fn of(sizes: &[f64], compress: CompressKind, seed: u64) -> Contents {
        let all: f64 = sizes.iter().sum();
        let mut sum = 0.0;
        let up_to = sizes.iter().map(|pages| {
            sum += pages;
            sum / all
        });
        Contents { up_to: up_to.collect(), compress, seed }
    }

    /// The blocks that a page takes when it is written for the `nth` time of all pages, if a page
    /// of the device has `pack` blocks; 0: it repeats a word. Without compression a page is a
    /// block.
    pub fn blocks(&self, page: u32, nth: u64, pack: u32) -> u32 {
        let own = unit(mix(self.seed ^ mix(page.into())));
        let now = unit(mix(self.seed ^ mix(nth) ^ mix(u64::from(page) << 32)));
        // Reflected at the ends, so that every place stays equally likely.
        let at = (own + DRIFT * (2.0 * now - 1.0)).abs();
        let at = if at > 1.0 { 2.0 - at } else { at };
        let blocks = self.up_to.partition_point(|&up_to| up_to <= at) as u32;
        match (blocks.min(LONGEST), self.compress) {
            (0, _) => 0,
            (_, CompressKind::Off) => 1,
            (blocks, _) => (blocks * pack).div_ceil(MEASURED).max(pack / LEAST_PART),
        }
    }
}

fn no_file(name: &str, e: &io::Error) -> String {
    let known: Vec<&str> = KNOWN.iter().map(|known| known.0).collect();
    format!("{name}: {e}; known are {}, {NOISE}, or a file", known.join(", "))
}

/// The pages of each size. Programs weigh as much as their memory.
fn parse(text: &str, compress: CompressKind) -> Result<Vec<f64>, String> {
    let estimate: Estimate =
        serde_json::from_str(text).map_err(|e| format!("not of `znsage estimate --json`: {e}"))?;
    let mut all = vec![0.0; LONGEST as usize + 1];
    for p in &estimate.processes {
        let sizes = match compress {
            CompressKind::Zstd => &p.zstd_sizes,
            CompressKind::Lz4 | CompressKind::Off => &p.lz4_sizes,
        };
        if sizes.len() > all.len() {
            return Err(format!("sizes beyond {LONGEST} blocks of 64 bytes"));
        }
        let weight = p.bytes_in_memory as f64 / p.sampled_pages.max(1) as f64;
        all.iter_mut().zip(sizes).for_each(|(sum, pages)| *sum += *pages as f64 * weight);
    }
    match all.iter().sum::<f64>() > 0.0 {
        true => Ok(all),
        false => Err("no page was measured".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean part of a page that pages take.
    fn mean(c: &Contents, pack: u32) -> f64 {
        let sum: u64 = (0..40_000).map(|page| u64::from(c.blocks(page, 7, pack))).sum();
        sum as f64 / (40_000.0 * f64::from(pack))
    }

    #[test]
    fn programs_shrink_as_was_measured() {
        let load = |name, how| Contents::load(name, how, 1).unwrap();
        let (gcc, memcached) = ((0.31, 0.19), (0.55, 0.41));
        for (name, (lz4, zstd)) in [("gcc", gcc), ("memcached", memcached)] {
            for (how, want) in [(CompressKind::Lz4, lz4), (CompressKind::Zstd, zstd)] {
                let is = mean(&load(name, how), 64);
                assert!((is - want).abs() < 0.05, "{name} {how}: {is}, should be {want}");
            }
        }
        assert_eq!(mean(&load("noise", CompressKind::Lz4), 64), 65.0 / 64.0);
        assert_eq!(load("noise", CompressKind::Off).blocks(3, 4, 1), 1);
    }

    #[test]
    fn a_page_stays_near_its_size() {
        let c = Contents::load("gcc", CompressKind::Lz4, 1).unwrap();
        let sizes = |page| (0..200).map(move |nth| (page, nth));
        let (mut near, mut apart) = (0, 0);
        for (page, nth) in (0..50).flat_map(sizes) {
            let (is, again) = (c.blocks(page, nth, 64), c.blocks(page, nth + 1, 64));
            near += is.abs_diff(again);
            apart += is.abs_diff(c.blocks(page + 1, nth, 64));
        }
        assert!(near > 0 && 2 * near < apart, "{near}, {apart} between two pages");
    }

    #[test]
    fn what_is_no_estimate_is_refused() {
        let e = Contents::load("/nowhere", CompressKind::Lz4, 1).unwrap_err();
        assert!(e.key == "load.contents" && e.what.contains("gcc, memcached, noise"), "{e}");
        assert!(parse("{}", CompressKind::Lz4).is_err());
        assert!(parse(r#"{"processes": []}"#, CompressKind::Lz4).is_err());
    }
}
