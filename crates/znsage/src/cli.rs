// SPDX-License-Identifier: GPL-2.0-only
//! The command line.

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, FromArgMatches, Parser, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::units::{parse_name, parse_size};

const STATUS: &str = "\
Exit status:
  0    done, nothing wrong
  1    something found: a corrupt page, a violated invariant, a problem (doctor)
  2    the command line, or a section of znsage.conf, makes no sense
  3    environment: not root, module missing or for another kernel, missing tool
  4    the device cannot be used, or not with these settings
  5    the device is in use or holds something
  6    not enough memory or swap space
  7    the kernel refused, or an I/O error
  130  interrupted; what had been done was undone, or (sim sweep) is kept

Environment:
  ZNSAGE_MODULE  path of a znsage.ko to load instead of the installed module";

const SETTINGS: &str = "\
Settings:
  policy=NAME    what decides which pages are written together: single, cpu,
                 process, vma, cgroup, heat, or that of a module
  victim=NAME    how garbage collection chooses a zone if the policy does not:
                 greedy, cost-benefit, age
  gc-low=ZONES   garbage collection begins when fewer zones are empty ...
  gc-high=ZONES  ... and ends at so many
  pace=PERCENT   of the room left, when garbage collection is to be done with a
                 zone; 0: as fast as it can
  deadline=TIME  longest time a page waits for its chunk to fill: 500us, 5ms

All are checked before the first is changed; if one fails, all stay.";

/// Swap on zoned block devices.
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
    /// Turn a zoned device into swap and enable it
    #[command(
        override_usage = "znsage on [OPTIONS] <DEVICE>\n       znsage on --profile <FILE> [OPTIONS] <DEVICE>\n       znsage on --config <SECTION>"
    )]
    On(OnCommand),
    /// Disable the swap, give the device back, empty it
    Off(OffArgs),
    /// Show all zoned devices, their limits, and which `on` can use
    List,
    /// Look at the machine: what is in the way of swap on znsage, and what to do
    Doctor,
    /// Show the devices, their counters and latencies
    Status(StatusArgs),
    /// Watch the devices live, on a terminal
    Top(TopArgs),
    /// Change settings of a device that is on
    #[command(override_usage = "znsage set [OPTIONS] [DEVICE] KEY=VALUE...", after_help = SETTINGS)]
    Set(SetArgs),
    /// Walk the maps of live devices and report every violated invariant
    Check(CheckArgs),
    /// Swap real memory under a limit, verify every page, measure
    Bench(BenchArgs),
    /// Measure what a zoned device can do, and recommend settings; all that is
    /// on it is lost
    Probe(ProbeArgs),
    /// One HTML page with charts of results of bench, probe and sim
    Report(ReportArgs),
    /// Simulate swap on an SSD, in virtual time
    Sim {
        #[command(subcommand)]
        command: crate::sim::Command,
    },
    /// Units of systemd for the sections of znsage.conf, into the first directory
    #[command(hide = true)]
    Generator(GeneratorArgs),
    /// The process whose memory `bench` limits
    #[command(hide = true)]
    BenchWorker,
}

/// What `on` is told: a device with settings, a device and a file of settings,
/// or the section of znsage.conf that has both.
#[derive(Debug)]
pub enum OnCommand {
    Device(Box<OnArgs>),
    Profile(Profile),
    Section(String),
}

/// Settings of a file, and what the command line says of them.
#[derive(Debug)]
pub struct Profile {
    pub file: PathBuf,
    pub device: String,
    /// Keys and values of the options that were given; they count more.
    pub given: Vec<(String, String)>,
}

const CONFIG: &str = "config";
const PROFILE: &str = "profile";

impl Args for OnCommand {
    fn augment_args(command: clap::Command) -> clap::Command {
        OnArgs::augment_args(command)
            .mut_arg("device", |device| device.required(false).required_unless_present(CONFIG))
            .arg(
                Arg::new(CONFIG)
                    .long(CONFIG)
                    .value_name("SECTION")
                    .help(
                        "Instead of all others: take device and settings from this section of \
                         /etc/znsage.conf. No error if the device is on already",
                    )
                    .value_parser(parse_section)
                    // The group of all others, which clap makes.
                    .conflicts_with("OnArgs"),
            )
            .arg(
                Arg::new(PROFILE)
                    .long(PROFILE)
                    .value_name("FILE")
                    .help(
                        "Take settings from what `znsage probe --profile` wrote, as far as no \
                         option gives another one",
                    )
                    .value_parser(clap::value_parser!(PathBuf))
                    .conflicts_with(CONFIG),
            )
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for OnCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        if let Some(section) = matches.get_one::<String>(CONFIG) {
            return Ok(OnCommand::Section(section.clone()));
        }
        let args = OnArgs::from_arg_matches(matches)?;
        Ok(match matches.get_one::<PathBuf>(PROFILE) {
            None => OnCommand::Device(Box::new(args)),
            Some(file) => OnCommand::Profile(Profile {
                file: file.clone(),
                device: args.device,
                given: given(matches),
            }),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Options of `on` as they were written, as settings of a file.
fn given(matches: &ArgMatches) -> Vec<(String, String)> {
    let grammar = OnArgs::augment_args(clap::Command::new("on"));
    let options = grammar.get_arguments().filter_map(|arg| Some((arg.get_id(), arg.get_long()?)));
    let given = options
        .filter(|(id, _)| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine));
    let setting = |(id, key): (&clap::Id, &str)| {
        let raw = matches.get_raw(id.as_str()).and_then(|mut raw| raw.next());
        // A flag has no value.
        let value = raw.map_or("yes".into(), |value| value.to_string_lossy());
        (key.to_string(), value.into_owned())
    };
    given.map(setting).collect()
}

/// The name of a section of znsage.conf.
fn parse_section(text: &str) -> Result<String, String> {
    match crate::conf::is_name(text) {
        true => Ok(text.to_string()),
        false => Err(format!("`{text}` cannot be the name of a section")),
    }
}

#[derive(Debug, Args)]
pub struct GeneratorArgs {
    /// Where units go; the other two, for those that come before and after the
    /// administrator's, are not used
    #[arg(required = true, num_args = 1..=3, value_name = "DIRECTORY")]
    pub directories: Vec<String>,
}

#[derive(Debug, Args)]
pub struct OnArgs {
    /// A zoned block device, e.g. /dev/nvme1n1
    pub device: String,

    /// Swap space, e.g. 8G [default: what over-provisioning leaves]
    #[arg(long, value_parser = parse_size)]
    pub size: Option<u64>,

    /// Percent of the device held back to keep garbage collection cheap
    #[arg(long, value_name = "PERCENT", default_value_t = 12,
          value_parser = clap::value_parser!(u8).range(0..=90))]
    pub over_provisioning: u8,

    /// What decides which pages are written together: single, cpu, process,
    /// vma, cgroup, heat, or the policy of a module [default: the module's]
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub policy: Option<String>,

    /// How garbage collection chooses a zone if the policy does not: greedy,
    /// cost-benefit or age [default: the module's]
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub victim: Option<String>,

    /// Bytes in one append [default: what the device prefers]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub chunk: Option<u64>,

    /// Pad appends to a multiple of this, for devices that take whole units
    /// only [default: one page]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub write_unit: Option<u64>,

    /// Priority among swap areas, 0 to 32767 [default: the kernel's, below
    /// all present areas]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=32767))]
    pub priority: Option<u16>,

    /// Longest time a page waits for its chunk to fill [default: 5000]
    #[arg(long, value_name = "N")]
    pub deadline_us: Option<u32>,

    /// Zones that only garbage collection may open [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub reserve: Option<u32>,

    /// Zones that each stream writes at a time [default: what the device's limit
    /// on open zones and the number of its zones allow]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub stripe: Option<u32>,

    /// GC is to be done with a zone when swap-out has used up this part of the
    /// room that is left, in percent; 0: as soon as it can
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=100))]
    pub pace: Option<u32>,

    /// Encrypt pages on the device, with a random key that ends with `off`, the
    /// kernel or the power [default: off]
    #[arg(long, value_enum, value_name = "HOW")]
    pub encrypt: Option<Encrypt>,

    /// Take the device although it holds something; all of it is lost
    #[arg(long)]
    pub force: bool,
}

impl OnArgs {
    /// As `znsage on DEVICE` has them, without further options.
    pub fn plain(device: &str) -> Self {
        let words = ["on", "--", device];
        let matches = Self::augment_args(clap::Command::new("on")).try_get_matches_from(words);
        let args = matches.and_then(|matches| Self::from_arg_matches(&matches));
        args.expect("`on` needs nothing but a device")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Encrypt {
    /// As they are in memory
    Off,
    /// AES-256 in XTS mode
    AesXts,
}

impl Encrypt {
    /// As the module has it.
    pub fn name(self) -> &'static str {
        match self {
            Encrypt::Off => "off",
            Encrypt::AesXts => "aes-xts",
        }
    }
}

#[derive(Debug, Args)]
pub struct OffArgs {
    /// /dev/znsageN or the backing device [default: all]
    pub device: Option<String>,

    /// What `on --config` turned on. No error if it is off already
    #[arg(long, value_name = "SECTION", value_parser = parse_section, conflicts_with = "device")]
    pub config: Option<String>,

    /// Try even if memory seems too short to take the pages back
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Show a row for each stream, too
    #[arg(long)]
    pub streams: bool,

    /// Print metrics for Prometheus, in its text format
    #[arg(long, conflicts_with = "streams")]
    pub prometheus: bool,
}

#[derive(Debug, Args)]
pub struct TopArgs {
    /// The device to begin with: /dev/znsageN or the backing device [default: the
    /// first]
    pub device: Option<String>,

    /// Time from one look to the next, 0.1 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = parse_interval)]
    pub interval: f64,

    /// Draw with nothing but ASCII; where the locale is not UTF-8, this is so anyway
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
pub struct CheckArgs {
    /// /dev/znsageN or the backing device [default: all]
    pub device: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Every page equally likely
    Random,
    /// Each thread walks through its share again and again
    Sequential,
    /// Few pages often, most seldom (exponent 0.99)
    Zipf,
    /// A key-value store with the sizes and the mix of Facebook's ETC pool:
    /// 30 reads of an item to one that is set, keys equally likely
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

    /// None: what is changed is a part of the pattern.
    pub fn write_ratio(self, asked: f64) -> Option<f64> {
        (self != Pattern::Etc).then_some(asked)
    }
}

/// The memory that the worker may keep: bytes, or `none`.
pub fn parse_limit(text: &str) -> Result<u64, String> {
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

    /// Threads that access the memory [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,

    /// Order of the accesses
    #[arg(long, value_enum, default_value_t = Pattern::Random)]
    pub pattern: Pattern,

    /// Share of the accesses that change the page, 0 to 1; `etc` has its own
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

    /// Stop accessing once the znsage device was written this many times over,
    /// at the latest after --seconds
    #[arg(long, value_name = "TIMES", value_parser = parse_seconds)]
    pub rewrites: Option<f64>,

    /// Fill the memory and stop
    #[arg(long)]
    pub fill_only: bool,

    /// Read and verify every page once more at the end
    #[arg(long)]
    pub verify: bool,

    /// Let the kernel use huge pages
    #[arg(long)]
    pub thp: bool,

    /// Write a line of JSON to FILE every half second
    #[arg(long, value_name = "FILE")]
    pub samples: Option<PathBuf>,

    /// Record what the kernel asks of the znsage device, for `znsage sim run
    /// --trace`; a name that ends in .gz is compressed
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Number that the contents and the accesses derive from [default: the time]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

#[derive(Debug, Args)]
pub struct ProbeArgs {
    /// A zoned block device that nobody uses, e.g. /dev/nvme1n1
    pub device: String,

    /// Overwrite the device without asking
    #[arg(long)]
    pub yes: bool,

    /// Half a minute instead of three, to see whether it works: numbers scatter
    #[arg(long)]
    pub quick: bool,

    /// Take the device although it holds something; all of it is lost
    #[arg(long)]
    pub force: bool,

    /// Write the recommended settings to FILE, for `znsage on --profile FILE`
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,

    /// Write the result as JSON to FILE, for `znsage report FILE`
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// What `znsage --json bench`, `probe` or `sim run` printed, the samples of
    /// `bench`, the result of `make bench-workloads`, or the directory of a `sim
    /// sweep`; results of the same sort share charts
    #[arg(required = true, value_name = "RESULT")]
    pub results: Vec<PathBuf>,

    /// The page to write [default: the first RESULT with .html at its end]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

fn parse_within(text: &str, max: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(n) if (0.0..=max).contains(&n) => Ok(n),
        _ => Err(format!("`{text}` is no number from 0 to {max}")),
    }
}

fn parse_interval(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(n) if (0.1..=3600.0).contains(&n) => Ok(n),
        _ => Err(format!("`{text}` is no number of seconds from 0.1 to 3600")),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn json_is_understood_everywhere() {
        for words in [&["znsage", "--json", "status"], &["znsage", "status", "--json"]] {
            assert!(Cli::try_parse_from(words).unwrap().json);
        }
    }
}
