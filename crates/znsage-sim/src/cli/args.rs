// SPDX-License-Identifier: GPL-2.0-only
//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

const STATUS: &str = "\
Exit status:
  0    done, nothing wrong
  1    an invariant was violated, or a run failed
  2    invalid command line, file or device
  3    a file cannot be read or written";

/// Simulates swap on SSDs, in virtual time.
#[derive(Debug, Parser)]
#[command(name = "znsage-sim", version, after_help = STATUS)]
pub struct Cli {
    /// Print one JSON document and nothing else on standard output
    #[arg(long, global = true)]
    pub json: bool,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one system on one device under one workload
    Run(Box<RunArgs>),
    /// Run all combinations of lists of values
    Sweep(SweepArgs),
    /// Make a device file of what `znsage probe` measured, and compare both
    Calibrate(CalibrateArgs),
    /// Make a trace for `run --trace` of blkparse's text or of an iolog of fio
    Import(ImportArgs),
    /// Print all keys of a run with their defaults, as a file for --spec
    Spec,
    /// List the built-in devices, or print one of them as a file to copy and edit
    Devices {
        /// Which one to print
        name: Option<String>,
    },
    /// Measure a device alone: latencies, writers side by side, its steady state
    Device {
        /// A built-in device, or the path of a file
        name: String,
    },
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
    /// A built-in device (`znsage-sim devices`) or the path of a file
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

    /// Directory of results, as of `sweep`: a run that is there is not repeated
    #[arg(long, value_name = "DIR")]
    pub runs: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct SweepArgs {
    /// What to run: values of a run as for `run --spec`, and a table [sweep] of
    /// lists; all their combinations are run
    pub file: PathBuf,

    /// Directory of the results, one file for each run. Runs that are there are not
    /// repeated; several processes may share it
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub runs: PathBuf,

    /// Replace a value of the file, also a list
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Only every N-th point, from the I-th on; I is from 1 to N
    #[arg(long, value_name = "I/N", value_parser = shard)]
    pub shard: Option<(usize, usize)>,

    /// Runs at a time [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,

    /// Run nothing; print a line of JSON for each point: its values, its file, and whether
    /// that is there
    #[arg(long, conflicts_with = "json")]
    pub list: bool,
}

/// Parses `I/N`.
fn shard(text: &str) -> Result<(usize, usize), String> {
    let parsed = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match parsed {
        Some((i, n)) if (1..=n).contains(&i) => Ok((i, n)),
        _ => Err("I/N is expected, with I from 1 to N".into()),
    }
}

#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// What `znsage probe --save` or `znsage --json probe` wrote
    pub probe: PathBuf,

    /// The device file to write, for `run --device`
    pub device: PathBuf,

    /// The built-in device that has what the probe does not measure [default: the one whose
    /// writes are nearest]
    #[arg(long, value_name = "NAME")]
    pub base: Option<String>,
}

#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Output of blkparse, or an iolog of fio (version 2 or 3); may be compressed with gzip
    pub file: PathBuf,

    /// The trace to write; it is compressed if the name ends in .gz
    pub trace: PathBuf,

    /// Take only requests to this device (MAJOR,MINOR; in iologs, the file's name)
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,

    /// The event of blkparse that counts: Q is a request of the kernel, D one to the
    /// drive, C a completion, which does not say whose it was
    #[arg(long, value_name = "LETTER", default_value = "Q", value_parser = action)]
    pub action: char,
}

/// Parses an action of blkparse.
fn action(text: &str) -> Result<char, String> {
    let letter = text.chars().next().filter(|_| text.len() == 1);
    letter.filter(|c| "QDC".contains(*c)).ok_or_else(|| "Q, D or C is expected".into())
}
