// SPDX-License-Identifier: GPL-2.0-only
//! `znsage on`: its options are also the keys of znsage.conf and of profiles.

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, ValueEnum};

use crate::units::{parse_deadline, parse_name, parse_section, parse_size};

#[derive(Debug)]
pub struct On {
    pub command: OnCommand,
    pub dry_run: bool,
}

/// The three forms of `on`: a device with options, a device with a file of
/// settings, or a section of znsage.conf, which names device and settings.
#[derive(Debug)]
pub enum OnCommand {
    Device(Box<OnArgs>),
    Profile(Profile),
    Section(String),
}

#[derive(Debug)]
pub struct Profile {
    pub file: PathBuf,
    pub device: String,
    /// Options on the command line as key and value; they override the file.
    pub given: Vec<(String, String)>,
}

const CONFIG: &str = "config";
const PROFILE: &str = "profile";
const DRY_RUN: &str = "dry-run";

impl Args for On {
    fn augment_args(command: clap::Command) -> clap::Command {
        OnArgs::augment_args(command)
            .mut_arg("device", |device| device.required(false).required_unless_present(CONFIG))
            .arg(
                Arg::new(CONFIG)
                    .long(CONFIG)
                    .value_name("SECTION")
                    .help(
                        "Take device and settings from this section of /etc/znsage.conf; excludes \
                         all other options. No error if the device is on already",
                    )
                    .value_parser(parse_section)
                    // clap puts all options of a struct into a group with its name.
                    .conflicts_with("OnArgs"),
            )
            .arg(
                Arg::new(PROFILE)
                    .long(PROFILE)
                    .value_name("FILE")
                    .help(
                        "Take settings from a file that `znsage probe --profile` wrote; options \
                         override it",
                    )
                    .value_parser(clap::value_parser!(PathBuf))
                    .conflicts_with(CONFIG),
            )
            .arg(
                Arg::new(DRY_RUN)
                    .long(DRY_RUN)
                    .help("Say what the device holds and what `on` would do; change nothing")
                    .action(ArgAction::SetTrue),
            )
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for On {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(On { command: OnCommand::of(matches)?, dry_run: matches.get_flag(DRY_RUN) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl OnCommand {
    fn of(matches: &ArgMatches) -> Result<Self, clap::Error> {
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
}

/// The options on the command line, as lines of a file would have them.
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

#[derive(Debug, Args)]
pub struct OnArgs {
    /// A disk or partition, with zones or without, e.g. /dev/nvme1n1; or a swap file on
    /// ext4 or XFS, which is made if it does not exist
    pub device: String,

    /// Swap space, e.g. 8G [default: all that over-provisioning leaves].
    /// A new file is a fifth larger, for garbage collection
    #[arg(long, value_parser = parse_size)]
    pub size: Option<u64>,

    /// Size of the zones that znsage makes on a device without zones [default: what
    /// suits the device, up to 256 MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub zone_size: Option<u64>,

    /// Percent of the device held back to keep garbage collection cheap
    #[arg(long, value_name = "PERCENT", default_value_t = 12,
          value_parser = clap::value_parser!(u8).range(0..=90))]
    pub over_provisioning: u8,

    /// Which pages are written together: single, cpu, cgroup, heat, or the name
    /// of a BPF policy [default: the module's]
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub policy: Option<String>,

    /// How garbage collection chooses its victim zone if the policy does not:
    /// greedy, cost-benefit or age [default: the module's]
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub victim: Option<String>,

    /// Bytes in one append [default: what the device prefers, or more while it is busy]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub chunk: Option<u64>,

    /// Pad appends to a multiple of this, for devices that accept only whole
    /// units [default: one page]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub write_unit: Option<u64>,

    /// Priority among swap areas, 0 to 32767 [default: the kernel's, below
    /// all present areas]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=32767))]
    pub priority: Option<u16>,

    /// Longest time a page waits for its chunk to fill, 100us to 1s [default: 5ms]
    #[arg(long, value_name = "TIME", value_parser = parse_deadline)]
    pub deadline: Option<u64>,

    /// Zones that only garbage collection may open [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub reserve: Option<u32>,

    /// Zones that each stream writes at a time [default: as many as the device's
    /// limit on open zones and its number of zones allow]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub stripe: Option<u32>,

    /// How much of a zone garbage collection keeps free for swap-out, in percent, as both
    /// go on; 0: it works as fast as it can
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=100))]
    pub pace: Option<u32>,

    /// Garbage collection starts when fewer zones are empty [default: what suits the
    /// device]
    #[arg(long, value_name = "ZONES", value_parser = clap::value_parser!(u32).range(1..))]
    pub gc_low: Option<u32>,

    /// Garbage collection stops when this many zones are empty [default: what suits
    /// the device]
    #[arg(long, value_name = "ZONES", value_parser = clap::value_parser!(u32).range(1..))]
    pub gc_high: Option<u32>,

    /// Encrypt pages on the device, with a random key that is lost at `off`, a
    /// reboot or a power failure [default: off]
    #[arg(long, value_enum, value_name = "HOW")]
    pub encrypt: Option<Encrypt>,

    /// Compress pages on the device; some pages shrink to a third, some not at all
    /// [default: off]
    #[arg(long, value_enum, value_name = "HOW")]
    pub compress: Option<Compress>,

    /// Keep on the device what was read back and is unchanged, so that it need not be
    /// written again. Adds a second swap area, which stays empty: the kernel then
    /// reports nearly twice as much swap as there is. Without --priority, the device
    /// gets 0
    #[arg(long)]
    pub keep_slots: bool,

    /// Never discard a device without zones, for drives whose discards are slow. The drive
    /// then copies dead pages as if they were in use, and they stay on it after `off`
    #[arg(long)]
    pub no_discard: bool,

    /// Take the device even if it holds data, without asking; the data is lost
    #[arg(long, visible_alias = "yes")]
    pub force: bool,
}

impl OnArgs {
    /// As `znsage on DEVICE` parses, without options.
    pub fn plain(device: &str) -> Self {
        let words = ["on", "--", device];
        let matches = Self::augment_args(clap::Command::new("on")).try_get_matches_from(words);
        let args = matches.and_then(|matches| Self::from_arg_matches(&matches));
        args.expect("`on` requires only a device")
    }
}

impl OnArgs {
    /// Are pages to be compressed?
    pub fn compresses(&self) -> bool {
        self.compress.is_some_and(|how| how != Compress::Off)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compress {
    /// Pages are written uncompressed
    Off,
    /// Takes little of the CPU
    Lz4,
    /// Makes pages smaller, and takes more of the CPU
    Zstd,
}

impl Compress {
    /// The module's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Compress::Off => "off",
            Compress::Lz4 => "lz4",
            Compress::Zstd => "zstd",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Encrypt {
    /// Pages are written unencrypted
    Off,
    /// AES-256 in XTS mode
    AesXts,
}

impl Encrypt {
    /// The module's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Encrypt::Off => "off",
            Encrypt::AesXts => "aes-xts",
        }
    }
}
