// SPDX-License-Identifier: GPL-2.0-only
//! `znsage sim`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use znsage_sim::sweep::Shard;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one system on one device under one workload
    Run(Box<RunArgs>),
    /// Run all combinations of lists of values; writes tables and a report
    Sweep(SweepArgs),
    /// Join the parts of a sweep that ran in several places
    Merge(MergeArgs),
    /// Test the engine with errors, late completions and badly timed frees, one
    /// random seed after another
    Torture(TortureArgs),
    /// Simulate published figures: pictures, tables, and a page with all
    Figures(FiguresArgs),
    /// List the built-in devices, or print one of them as a file to copy and edit
    Devices {
        /// Which one to print
        name: Option<String>,
    },
}

impl Command {
    /// True if the command checks for Ctrl-C; the signal ends the others.
    pub fn checks_interrupts(&self) -> bool {
        matches!(self, Command::Sweep(_))
    }
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// How pages are swapped: znsage, stock, znswap, ... [default: znsage]
    #[arg(long)]
    pub system: Option<String>,

    /// Placement, for systems that have a choice
    #[arg(long)]
    pub policy: Option<String>,

    /// Your own placement policy for znsage, as C source (see include/znsage.h);
    /// it is compiled with $CC, or cc
    #[arg(long, value_name = "FILE", conflicts_with = "policy")]
    pub policy_source: Option<PathBuf>,

    #[command(flatten)]
    pub what: SpecArgs,
}

/// Options of every simulated run.
#[derive(Debug, Args)]
pub struct SpecArgs {
    /// A built-in device (`znsage sim devices`) or the path of a file
    /// [default: one of the type that the system needs]
    #[arg(long)]
    pub device: Option<String>,

    /// Size of the device, e.g. 16G: its zones shrink, their number stays, if they
    /// hold 4 MiB at least [default: 64G; with --trace, what the trace needs]
    #[arg(long)]
    pub size: Option<String>,

    /// Access pattern: uniform, sequential, zipf, etc, ycsb-a, ...
    #[arg(long)]
    pub workload: Option<String>,

    /// Replay a recording of `znsage bench --trace` or trace/record; or run programs
    /// that touch the pages that trace/pages recorded, one for each thread
    #[arg(long, value_name = "FILE", conflicts_with = "workload")]
    pub trace: Option<PathBuf>,

    /// Pages on the device, percent of its capacity
    #[arg(long, value_name = "PERCENT")]
    pub utilization: Option<String>,

    /// Seed of all random numbers: the same seed gives the same result
    #[arg(long)]
    pub seed: Option<String>,

    /// Any value of the run or (`device.KEY`) of the device
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// A TOML file of values; options override it
    #[arg(long, value_name = "FILE")]
    pub spec: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct SweepArgs {
    /// What to run: values of a run as for `sim run --spec`, and a table
    /// [sweep] of lists; all their combinations are run
    pub file: PathBuf,

    /// Directory of the results; finished runs there are not repeated [default:
    /// FILE with .sweep instead of .toml]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Only part I of N, from 1 to N; `merge` joins the parts
    #[arg(long, value_name = "I/N", default_value_t = Shard::WHOLE)]
    pub shard: Shard,

    /// Runs at a time [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
}

#[derive(Debug, Args)]
pub struct MergeArgs {
    /// Output of `sweep --shard`: directories, or their runs*.jsonl
    #[arg(required = true)]
    pub parts: Vec<PathBuf>,

    /// Directory for the joined results
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,

    /// Write the results even if points are missing
    #[arg(long)]
    pub partial: bool,
}

#[derive(Debug, Args)]
pub struct TortureArgs {
    /// How many seeds [default: until interrupted]
    #[arg(long, value_name = "N")]
    pub seeds: Option<u64>,

    /// The first seed [default: 0 with --seeds, otherwise the time]
    #[arg(long, value_name = "N")]
    pub first: Option<u64>,

    /// Stop after this many seconds
    #[arg(long, value_name = "N", conflicts_with = "minutes",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub seconds: Option<u32>,

    /// Stop after this many minutes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub minutes: Option<u32>,

    /// Seeds at a time; does not change the result [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,

    /// Continue after a seed has failed
    #[arg(long)]
    pub keep_going: bool,

    /// Run only this seed
    #[arg(long, value_name = "N", conflicts_with_all = ["seeds", "first", "seconds", "minutes"])]
    pub seed: Option<u64>,

    /// Print every event of the seed
    #[arg(long, requires = "seed")]
    pub trace: bool,
}

#[derive(Debug, Args)]
pub struct FiguresArgs {
    /// Directory for the pictures, tables and index.html; made if missing
    #[arg(long, value_name = "DIR", required_unless_present = "list")]
    pub out: Option<PathBuf>,

    /// Only these figures, e.g. znswap-waf,mapping-memory
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub only: Vec<String>,

    /// One seed and shorter runs, for a trial; the numbers are inaccurate
    #[arg(long)]
    pub quick: bool,

    /// Seed of all random numbers: the same seed gives the same files
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Run everything with so many seeds; pictures show means and intervals [default: 3, with
    /// --quick 1]
    #[arg(long, value_name = "N")]
    pub seeds: Option<NonZeroU32>,

    /// Runs at a time [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,

    /// List the figures instead
    #[arg(long)]
    pub list: bool,
}
