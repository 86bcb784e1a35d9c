// SPDX-License-Identifier: GPL-2.0-only
//! `znsage bench`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::units::parse_size;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Every page equally likely
    Random,
    /// Each thread walks through its share again and again
    Sequential,
    /// A few pages often, most rarely (exponent 0.99)
    Zipf,
    /// A key-value store with the sizes and the mix of Facebook's ETC pool:
    /// 30 reads of an item for each write, keys equally likely
    Etc,
}

impl Pattern {
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Random => "random",
            Pattern::Sequential => "sequential",
            Pattern::Zipf => "zipf",
            Pattern::Etc => "etc",
        }
    }

    /// None if the pattern decides what is written.
    pub fn write_ratio(self, asked: f64) -> Option<f64> {
        (self != Pattern::Etc).then_some(asked)
    }
}

/// A size, or `none` for no limit.
fn parse_limit(text: &str) -> Result<u64, String> {
    match text {
        "none" => Ok(u64::MAX),
        size => parse_size(size),
    }
}

#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Memory to fill and access [default: four times the limit]
    #[arg(long, value_parser = parse_size, conflicts_with = "utilization")]
    pub size: Option<u64>,

    /// Memory that may stay resident; `none` runs without a limit
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = parse_limit)]
    pub memory_limit: u64,

    /// Memory within the limit that zswap may use, if it is on
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = parse_size)]
    pub zswap_limit: u64,

    /// Threads that access the memory [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,

    /// Order of the accesses
    #[arg(long, value_enum, default_value_t = Pattern::Random)]
    pub pattern: Pattern,

    /// Share of the accesses that change the page, 0 to 1; ignored with `etc`
    #[arg(long, value_name = "RATIO", default_value_t = 0.5, value_parser = parse_ratio)]
    pub write_ratio: f64,

    /// How long to access the memory after the fill
    #[arg(long, value_name = "N", default_value_t = 30.0, value_parser = parse_seconds)]
    pub seconds: f64,

    /// Access the memory this long before measuring begins
    #[arg(long, value_name = "N", default_value_t = 0.0, value_parser = parse_seconds)]
    pub warmup: f64,

    /// Choose the size so that live blocks fill this share of the znsage device
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub utilization: Option<f64>,

    /// Stop once the znsage device or, on stock swap, the area was written this many
    /// times over, or after --seconds
    #[arg(long, value_name = "TIMES", value_parser = parse_seconds)]
    pub rewrites: Option<f64>,

    /// Fill the memory and stop
    #[arg(long)]
    pub fill_only: bool,

    /// The share of each page that compression saves, roughly, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = parse_ratio)]
    pub compressible: f64,

    /// Read and verify every page once more at the end
    #[arg(long)]
    pub verify: bool,

    /// Let the kernel use huge pages
    #[arg(long)]
    pub thp: bool,

    /// Write a line of JSON to FILE every half second
    #[arg(long, value_name = "FILE")]
    pub samples: Option<PathBuf>,

    /// Record the kernel's requests to the znsage device, for `znsage-sim run
    /// --trace`; compressed if the name ends in .gz
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Seed of the contents and the accesses [default: the time]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

fn parse_within(text: &str, max: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(n) if (0.0..=max).contains(&n) => Ok(n),
        _ => Err(format!("`{text}` is not a number from 0 to {max}")),
    }
}

fn parse_ratio(text: &str) -> Result<f64, String> {
    parse_within(text, 1.0)
}

fn parse_percent(text: &str) -> Result<f64, String> {
    parse_within(text, 100.0)
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    parse_within(text, 1e6)
}
