// SPDX-License-Identifier: GPL-2.0-only
//! The command line.

mod bench;
mod columns;
mod on;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::units::parse_section;

pub use bench::{BenchArgs, Pattern};
pub use columns::{Cell, ListColumn, StatusColumn, TableArgs};
pub use on::{Compress, On, OnArgs, OnCommand, Profile};

const STATUS: &str = "\
Exit status:
  0    done, nothing wrong
  1    damage or a problem found: corrupt page, violated invariant, doctor
  2    invalid command line, or invalid section of znsage.conf
  13   environment: not root, module missing or for another kernel, missing tool
  14   the device cannot be used, or not with these settings
  15   the device is in use
  16   not enough memory or swap space
  17   the kernel refused, or an I/O error
  18   the device holds data; --yes takes it
  130  interrupted; changes are undone

Environment:
  ZNSAGE_MODULE  path of a znsage.ko to load instead of the installed module";

const SETTINGS: &str = "\
Settings:
  policy=NAME    which pages are written together: single, cpu, cgroup, heat,
                 or the name of a BPF policy
  victim=NAME    how garbage collection chooses its victim zone if the policy
                 does not: greedy, cost-benefit, age
  gc-low=ZONES   garbage collection starts when fewer zones are empty ...
  gc-high=ZONES  ... and stops at this many
  pace=PERCENT   how much of a zone garbage collection keeps free for swap-out,
                 as both go on; 0: it works as fast as it can
  deadline=TIME  longest time a page waits for its chunk to fill: 500us, 5ms
  compress=HOW   how pages are compressed from now on: off, lz4, zstd; only on a
                 device that was turned on with --compress

All settings are checked before the first one changes. If one fails, none changes.";

/// Swap on SSDs, with or without zones.
#[derive(Debug, Parser)]
#[command(version, after_help = STATUS)]
pub struct Cli {
    /// Print one JSON document and nothing else on standard output
    #[arg(long, global = true)]
    pub json: bool,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Turn a device or a file into swap and enable it
    #[command(
        override_usage = "znsage on [OPTIONS] <DEVICE>\n       znsage on --profile <FILE> [OPTIONS] <DEVICE>\n       znsage on --config <SECTION>"
    )]
    On(On),
    /// Disable the swap, release the device and empty it
    Off(OffArgs),
    /// Show all zoned devices, their limits, and which ones `on` can use
    List(ListArgs),
    /// Check this machine: what prevents or slows swap on znsage, and what to do
    Doctor,
    /// Show the devices, their counters and latencies
    Status(StatusArgs),
    /// Watch the devices live, on a terminal
    Top(TopArgs),
    /// Change settings of a device that is on
    #[command(override_usage = "znsage set [OPTIONS] [DEVICE] KEY=VALUE...", after_help = SETTINGS)]
    Set(SetArgs),
    /// Load and unload policies in BPF (kernels from 6.12)
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Start the guard again after it was killed. `on` starts one for an overcommitted
    /// device (--compress with a large --size), and with --keep-slots
    Guard(GuardArgs),
    /// Walk the maps of live devices and report every violated invariant
    Check(CheckArgs),
    /// Swap real memory under a limit, verify every page, measure
    Bench(BenchArgs),
    /// Estimate how far compression would shrink the pages of running programs
    Estimate(EstimateArgs),
    /// Measure what a zoned device can do, and recommend settings; destroys all
    /// data on it
    Probe(ProbeArgs),
    /// Write a systemd unit for each section of znsage.conf to the first directory
    #[command(hide = true)]
    Generator(GeneratorArgs),
    /// The process whose memory `bench` limits
    #[command(hide = true)]
    BenchWorker,
    /// The guard itself
    #[command(hide = true)]
    GuardWorker { name: String },
}

#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Load the policy of a BPF object file; it stays until `policy unload`
    Load {
        /// Compiled by clang -O2 -g -target bpf
        file: PathBuf,
    },
    /// Unload a policy; devices that use it go back to the default
    Unload {
        /// As in the program, and in `znsage set policy=NAME`
        name: String,
    },
}

#[derive(Debug, Args)]
pub struct EstimateArgs {
    /// Processes; those of a cgroup are in its file cgroup.procs
    #[arg(required = true, value_name = "PID")]
    pub pids: Vec<u32>,

    /// Pages of each process to compress, chosen at random
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u64).range(1..))]
    pub pages: u64,

    /// Seed of the choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Debug, Args)]
pub struct GeneratorArgs {
    /// The directory for units. The other two, for units of higher and lower
    /// precedence than the administrator's, are not used. Without any, only the faults
    /// are reported
    #[arg(num_args = 0..=3, value_name = "DIRECTORY")]
    pub directories: Vec<String>,
}

#[derive(Debug, Args)]
pub struct OffArgs {
    /// /dev/znsageN or the backing device [default: all]
    pub device: Option<String>,

    /// Turn off what `on --config SECTION` turned on. No error if it is off already
    #[arg(long, value_name = "SECTION", value_parser = parse_section, conflicts_with = "device")]
    pub config: Option<String>,

    /// Try even if there seems to be too little free memory
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct StatusArgs {
    /// /dev/znsageN or the backing device [default: all]
    pub device: Option<String>,

    /// Add a row for each stream
    #[arg(long)]
    pub streams: bool,

    /// Print metrics for Prometheus, in its text format
    #[arg(long, conflicts_with_all = ["streams", "output", "noheadings", "bytes"])]
    pub prometheus: bool,

    #[command(flatten)]
    pub table: TableArgs<StatusColumn>,
}

#[derive(Debug, Args)]
pub struct TopArgs {
    /// The device to show first: /dev/znsageN or the backing device [default: the
    /// first]
    pub device: Option<String>,

    /// Time between two updates, 0.1 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = parse_interval)]
    pub interval: f64,

    /// Draw with ASCII characters only; implied if the locale is not UTF-8
    #[arg(long)]
    pub ascii: bool,
}

#[derive(Debug, Args)]
pub struct SetArgs {
    /// /dev/znsageN or the backing device, if there are several; then settings
    #[arg(value_name = "[DEVICE] KEY=VALUE", required = true)]
    pub words: Vec<String>,
}

#[derive(Debug, Args)]
pub struct ListArgs {
    /// A disk or partition, with zones or without [default: all zoned devices]
    pub device: Option<String>,

    /// Also disks and partitions without zones, on which `on` makes virtual ones
    #[arg(long, conflicts_with = "device")]
    pub all: bool,

    #[command(flatten)]
    pub table: TableArgs<ListColumn>,
}

#[derive(Debug, Args)]
pub struct GuardArgs {
    /// /dev/znsageN or the backing device
    pub device: String,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// /dev/znsageN or the backing device [default: all]
    pub device: Option<String>,
}

#[derive(Debug, Args)]
pub struct ProbeArgs {
    /// A block device that is not in use, e.g. /dev/nvme1n1, or a swap file
    pub device: String,

    /// Overwrite the device without asking
    #[arg(long)]
    pub yes: bool,

    /// Measure less, for a trial; the numbers vary
    #[arg(long)]
    pub quick: bool,

    /// Take the device even if it holds data; the data is lost
    #[arg(long)]
    pub force: bool,

    /// Write the recommended settings to FILE, for `znsage on --profile FILE`
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,

    /// Write the result as JSON to FILE
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
}

fn parse_interval(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(n) if (0.1..=3600.0).contains(&n) => Ok(n),
        _ => Err(format!("`{text}` is not a number of seconds from 0.1 to 3600")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammar_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn json_is_a_global_option() {
        for words in [&["znsage", "--json", "status"], &["znsage", "status", "--json"]] {
            assert!(Cli::try_parse_from(words).unwrap().json);
        }
    }
}
