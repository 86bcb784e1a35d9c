// SPDX-License-Identifier: GPL-2.0-only
//! `znsage-lab ssd`: swap on SSDs that collect garbage. The drives are the simulator's,
//! in real time, behind QEMU's NVMe device; bench/README.md explains the comparison.

use std::path::Path;
use std::str::FromStr;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use znsage::parsers::Phase;

use crate::files::write_json;
use crate::model::MIB;
use crate::result::Result;
use crate::table::{thousands, Table};
use crate::vm::{self, Clock, Vm};

const OUT: &str = "build/ssd";

/// The conventional drive, and the same whose garbage collection takes turns with writes. It is
/// not known which of them real drives resemble; stock swap's latencies lie between the two.
pub const MODEL: &str = "conventional";
pub const EVEN: &str = "conventional-even";

/// Of the conventional drive, as the kernel sees it.
pub const SIZE_MIB: u64 = 512;
/// The unit of the drive's garbage collection, and znsage's zone on it. As large as the
/// kernel's swap clusters; superblocks of real drives are larger than those.
const SUPERBLOCK_KIB: u64 = 1920;
/// The flash of both drives, in percent of `SIZE_MIB`: the zoned one shows all of it.
const FLASH_PERCENT: u64 = 107;

/// The swap area that znsage offers on the conventional drive, in percent of it. All
/// systems have so much of it in use as the level says.
const AREA_PERCENT: u64 = 88;

/// The kernel's swap allocator fills a cluster for each CPU; their pages share the drive's
/// superblocks. With a single CPU each superblock has pages of one cluster, which is what no
/// computer has.
pub const CPUS: u32 = 2;

const TIMEOUT: u32 = 1800;

/// Compare swap on SSDs that collect garbage
#[derive(clap::Args)]
pub struct Args {
    /// How full the swap area is, in percent
    #[arg(long, value_delimiter = ',', default_value = "50,70,90")]
    pub levels: Vec<u64>,
    #[arg(long, value_delimiter = ',', default_value = "random,zipf")]
    pub patterns: Vec<Pattern>,
    /// SYSTEM, zswap+SYSTEM behind zswap with lz4, SYSTEM@MODEL with another conventional drive:
    /// stock@conventional-even
    #[arg(long, value_delimiter = ',', default_value = "stock,discard,virtual,zones")]
    pub systems: Vec<Chosen>,
    /// Real time for each unit of the drive's: an emulated CPU is fast beside a slow drive
    #[arg(long, default_value_t = 32)]
    slowdown: u64,
    /// The area or device is written over so often before the measurement
    #[arg(long, default_value_t = 2.0)]
    rewrites: f64,
    #[arg(long, default_value_t = 1)]
    rounds: u32,
    /// Share of each page that compression takes away, about
    #[arg(long, default_value_t = 0.0)]
    compressible: f64,
    /// Share of the accesses that change the page
    #[arg(long, default_value_t = 0.5)]
    write_ratio: f64,
    /// Settings of znsage, as of `znsage on`: keep-slots,policy=single
    #[arg(long, value_delimiter = ',')]
    settings: Vec<String>,
    /// The guest's, one of those that the module is built for
    #[arg(long, value_name = "VERSION", default_value = vm::KERNEL)]
    kernel: String,
}

impl Args {
    /// What the demo shows: one level and uniform accesses.
    pub fn demo() -> Args {
        Args {
            levels: vec![80],
            patterns: vec![Pattern::Random],
            systems: vec![
                System::Stock.into(),
                Chosen { model: EVEN.into(), ..System::Stock.into() },
                System::Virtual.into(),
                System::Zones.into(),
            ],
            slowdown: 32,
            rewrites: 2.0,
            rounds: 1,
            compressible: 0.0,
            write_ratio: 0.5,
            settings: vec![],
            kernel: vm::KERNEL.to_string(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    Random,
    Zipf,
}

impl Pattern {
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Random => "random",
            Pattern::Zipf => "zipf",
        }
    }
}

/// What swaps, and on which drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum System {
    /// Linux's own swap.
    Stock,
    /// The same with `swapon --discard`.
    Discard,
    /// znsage on the same drive.
    Virtual,
    /// znsage on a zoned drive of the same flash.
    Zones,
    /// zram with lz4, which writes back to the drive.
    Zram,
    /// znsage on the conventional drive, pages compressed by lz4.
    VirtualLz4,
    /// znsage on the zoned drive, pages compressed by lz4.
    ZonesLz4,
    /// znsage on the zoned drive, pages compressed by zstd.
    ZonesZstd,
}

impl System {
    pub fn title(self) -> &'static str {
        match self {
            System::Stock => "stock swap",
            System::Discard => "stock swap, discards",
            System::Virtual => "znsage, virtual zones",
            System::Zones => "znsage, zoned drive",
            System::Zram => "zram lz4, written back",
            System::VirtualLz4 => "znsage, virtual zones, lz4",
            System::ZonesLz4 => "znsage, zoned drive, lz4",
            System::ZonesZstd => "znsage, zoned drive, zstd",
        }
    }

    /// Is it on the zoned drive?
    pub fn is_zoned(self) -> bool {
        matches!(self, System::Zones | System::ZonesLz4 | System::ZonesZstd)
    }

    pub fn is_znsage(self) -> bool {
        !matches!(self, System::Stock | System::Discard | System::Zram)
    }

    pub fn compresses(self) -> bool {
        !matches!(self, System::Stock | System::Discard | System::Virtual | System::Zones)
    }
}

/// A system, what is in front of it, and the conventional drive in place of the usual one.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    pub system: System,
    pub zswap: bool,
    pub model: String,
}

impl From<System> for Chosen {
    fn from(system: System) -> Chosen {
        Chosen { system, zswap: false, model: MODEL.into() }
    }
}

impl FromStr for Chosen {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Chosen, String> {
        let (system, model) = text.split_once('@').unwrap_or((text, MODEL));
        let behind = system.strip_prefix("zswap+");
        let system = System::from_str(behind.unwrap_or(system), false)?;
        if behind.is_some() && system == System::Zram {
            return Err("zram compresses; zswap in front of it is not measured".into());
        }
        Ok(Chosen { system, zswap: behind.is_some(), model: model.into() })
    }
}

/// A system on its drive.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct OnDrive {
    #[arg(long)]
    pub system: System,
    /// Is it behind zswap with lz4?
    #[arg(long)]
    pub zswap: bool,
    /// The simulator's device, if it is a conventional one.
    #[arg(long)]
    pub model: String,
    /// The drive's size, bytes.
    #[arg(long)]
    pub drive: u64,
    /// Size of virtual zones.
    #[arg(long)]
    pub zone_kib: u64,
    /// Options of `znsage on` without their dashes.
    #[arg(long)]
    pub settings: Vec<String>,
}

impl OnDrive {
    pub fn new(system: System) -> OnDrive {
        OnDrive::of(system.into())
    }

    fn of(Chosen { system, zswap, model }: Chosen) -> OnDrive {
        let drive = SIZE_MIB << 20;
        OnDrive { system, zswap, model, drive, zone_kib: SUPERBLOCK_KIB, settings: vec![] }
    }

    /// As the guest's command line has it.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            format!("--system={}", argument(self.system)),
            format!("--model={}", self.model),
            format!("--drive={}", self.drive),
            format!("--zone-kib={}", self.zone_kib),
        ];
        if self.zswap {
            arguments.push("--zswap".into());
        }
        arguments.extend(self.settings.iter().map(|setting| format!("--settings={setting}")));
        arguments
    }

    fn title(&self) -> String {
        let mut title = self.system.title().to_string();
        if self.zswap {
            title += ", behind zswap lz4";
        }
        if self.model != MODEL {
            title += &format!(", {}", self.model);
        }
        for setting in &self.settings {
            title += &format!(", {setting}");
        }
        title
    }
}

/// One system under one load.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct Turn {
    #[command(flatten)]
    #[serde(flatten)]
    pub on: OnDrive,
    #[arg(long)]
    pub pattern: Pattern,
    /// Memory that is swapped out, bytes.
    #[arg(long)]
    pub used: u64,
    #[arg(long)]
    pub rewrites: f64,
    #[arg(long)]
    pub compressible: f64,
    #[arg(long)]
    pub write_ratio: f64,
}

/// What the guest measured. Times are real ones.
#[derive(Debug, Serialize, Deserialize)]
pub struct Measured {
    pub kernel: String,
    pub phase: Phase,
    /// In the measured window.
    pub flash: Flash,
    /// From the beginning of the work, twice a second.
    pub series: Vec<Flash>,
}

/// The drive's counters beside the kernel's, in blocks of 4 KiB and in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flash {
    /// Pages that the kernel swapped out.
    pub swapped_out: u64,
    /// Blocks that the host wrote.
    pub written: u64,
    /// Blocks that the flash was written.
    pub programmed: u64,
}

impl Flash {
    pub fn since(&self, before: &Flash) -> Flash {
        Flash {
            swapped_out: self.swapped_out - before.swapped_out,
            written: self.written - before.written,
            programmed: self.programmed - before.programmed,
        }
    }

    /// Flash writes for each page swapped out.
    pub fn a_page(&self) -> f64 {
        self.programmed as f64 / self.swapped_out.max(1) as f64
    }

    /// The drive's own write amplification.
    fn drive(&self) -> f64 {
        self.programmed as f64 / self.written.max(1) as f64
    }
}

/// A line of result.json.
#[derive(Serialize, Deserialize)]
pub struct Record {
    pub percent: u64,
    pub round: u32,
    pub slowdown: u64,
    pub accelerator: String,
    #[serde(flatten)]
    pub turn: Turn,
    #[serde(flatten)]
    pub measured: Measured,
}

impl Record {
    /// In the drive's time, as the rest.
    pub fn swap_out_mb_per_s(&self) -> f64 {
        self.megabytes(self.measured.phase.swap_out_mib_per_s)
    }

    fn swap_in_mb_per_s(&self) -> f64 {
        self.megabytes(self.measured.phase.swap_in_mib_per_s)
    }

    fn accesses_per_s(&self) -> f64 {
        self.measured.phase.ops_per_s * self.slowdown as f64
    }

    fn megabytes(&self, mib_per_s: f64) -> f64 {
        mib_per_s * MIB / 1e6 * self.slowdown as f64
    }

    /// What 99 % of the accesses take at most.
    pub fn p99_ms(&self) -> f64 {
        self.measured.phase.latency_us.map_or(0.0, |l| l.p99) / 1000.0 / self.slowdown as f64
    }
}

pub fn run(args: &Args) -> Result<bool> {
    let (records, sound) = compare(args, Path::new(OUT))?;
    print!("{}", table(&records));
    Ok(sound)
}

/// Measures each system in turn; all that was measured, and whether nothing failed. Writes
/// result.json as it goes.
pub fn compare(args: &Args, out: &Path) -> Result<(Vec<Record>, bool)> {
    let mut records: Vec<Record> = Vec::new();
    let mut sound = true;
    for &pattern in &args.patterns {
        for &percent in &args.levels {
            for round in 0..args.rounds {
                let mut systems = args.systems.clone();
                let n = systems.len();
                // The systems take turns in being first.
                systems.rotate_left(round as usize % n);
                for chosen in systems {
                    let used = (SIZE_MIB << 20) * AREA_PERCENT / 100 * percent / 100;
                    let mut on = OnDrive::of(chosen);
                    if on.system.is_znsage() {
                        on.settings.clone_from(&args.settings);
                    }
                    eprintln!("[{}, {} {percent} %]", on.title(), pattern.name());
                    let turn = Turn {
                        on,
                        pattern,
                        used,
                        rewrites: args.rewrites,
                        compressible: args.compressible,
                        write_ratio: args.write_ratio,
                    };
                    let drives = drives(&turn.on.model, args.slowdown);
                    match measure(out, &args.kernel, &turn, &drives) {
                        Ok(measured) => records.push(Record {
                            percent,
                            round,
                            slowdown: args.slowdown,
                            accelerator: vm::accelerator(),
                            turn,
                            measured,
                        }),
                        Err(message) => {
                            eprintln!("  {message}");
                            sound = false;
                        }
                    }
                    write_json(&out.join("result.json"), &records)?;
                }
            }
        }
    }
    Ok((records, sound))
}

/// The conventional drive and the zoned one, as vm/run wants them.
pub fn drives(model: &str, slowdown: u64) -> (String, String) {
    let flash = (SIZE_MIB << 10) * FLASH_PERCENT / 100 / SUPERBLOCK_KIB * 2;
    (
        format!("model={model},size={SIZE_MIB}M,superblock={SUPERBLOCK_KIB}K,slowdown={slowdown}"),
        format!(
            "model=zn540,size={flash}M,zone=2M,capacity={SUPERBLOCK_KIB}K,open=14,active=14,\
             slowdown={slowdown}"
        ),
    )
}

/// Each turn has a boot and a drive of its own, so all drives were used alike.
fn measure(
    out: &Path,
    kernel: &str,
    turn: &Turn,
    (conventional, zns): &(String, String),
) -> Result<Measured> {
    let mut vm = Vm { kernel, ..guest("ssd", out) };
    vm.arguments = turn.on.arguments();
    vm.arguments.extend([
        format!("--pattern={}", argument(turn.pattern)),
        format!("--used={}", turn.used),
        format!("--rewrites={}", turn.rewrites),
        format!("--compressible={}", turn.compressible),
        format!("--write-ratio={}", turn.write_ratio),
    ]);
    match turn.on.system {
        system if system.is_zoned() => vm.zns = vec![zns],
        _ => vm.conventional = vec![conventional],
    }
    Ok(vm::collect(&vm)?.document)
}

/// A guest without drives.
pub fn guest<'a>(job: &'a str, out: &'a Path) -> Vm<'a> {
    Vm {
        kernel: vm::KERNEL,
        cpus: CPUS,
        clock: Clock::Real,
        conventional: vec![],
        zns: vec![],
        job,
        arguments: vec![],
        out,
        timeout: TIMEOUT,
    }
}

/// A value as the command line has it.
fn argument(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |v| v.get_name().to_string())
}

/// In the drive's time.
pub fn table(records: &[Record]) -> String {
    let mut table = Table::new(&[
        "accesses, area used",
        "system",
        "accesses/s",
        "out, MB/s",
        "in, MB/s",
        "p99, ms",
        "flash writes a page",
        "drive's WAF",
    ]);
    for r in records {
        table.row([
            format!("{}, {} %", r.turn.pattern.name(), r.percent),
            r.turn.on.title(),
            thousands(r.accesses_per_s()),
            format!("{:.0}", r.swap_out_mb_per_s()),
            format!("{:.0}", r.swap_in_mb_per_s()),
            format!("{:.1}", r.p99_ms()),
            format!("{:.2}", r.measured.flash.a_page()),
            format!("{:.2}", r.measured.flash.drive()),
        ]);
    }
    let pages: u64 = records.iter().map(|r| r.measured.flash.swapped_out).sum();
    let kernel = records.first().map_or("none", |r| &r.measured.kernel);
    let pages = thousands(pages as f64);
    table.to_text()
        + &format!("\nKernel {kernel}; {pages} pages were swapped out while it was measured.\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_may_have_another_drive() {
        assert_eq!("zones".parse(), Ok(Chosen::from(System::Zones)));
        let other = Chosen { model: EVEN.into(), ..System::Stock.into() };
        assert_eq!("stock@conventional-even".parse(), Ok(other));
        let behind = Chosen { zswap: true, ..System::VirtualLz4.into() };
        assert_eq!("zswap+virtual-lz4".parse(), Ok(behind));
        assert!("zswap+zram".parse::<Chosen>().is_err());
        assert!("swap@real-a".parse::<Chosen>().is_err());
    }

    #[test]
    fn flash_writes_are_those_of_the_window() {
        let before = Flash { swapped_out: 100, written: 150, programmed: 200 };
        let after = Flash { swapped_out: 200, written: 350, programmed: 500 };
        let flash = after.since(&before);
        assert_eq!((flash.a_page(), flash.drive()), (3.0, 1.5));
    }
}
