// SPDX-License-Identifier: GPL-2.0-only
//! `znsage-lab native`: the CPU time of a page in the module and in the rest of the kernel. The
//! kernel is User-Mode Linux, a program that perf samples; bench/README.md explains it.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use znsage_sim::stats::median;

use crate::files::{make_directory, read, read_json, write_json};
use crate::load::{self, Load};
use crate::model::{Sample, System, PAGE};
use crate::result::{Context, Result};
use crate::table::Table;

const KERNEL: &str = "build/kernels/7.3-uml";
const OUT: &str = "build/native";
const INIT: &str = "vm/uml-guest";
/// Samples for each second of CPU time.
const FREQUENCY: u32 = 10_000;
/// A copy of the guest's /proc/kallsyms, in the directory of the results.
pub const SYMBOLS: &str = "symbols";
/// Functions in the list of the longest.
const LONGEST: usize = 10;
/// An address this far behind the last symbol is in no function of the kernel.
const FAR: u64 = 1 << 16;

#[derive(clap::Args)]
pub struct Args {
    /// Repetitions; the medians count
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Read and write, with so much of the swap area in use [default: read only, half of it]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(1..=95))]
    full: Option<u64>,
}

/// What the guest writes.
#[derive(Serialize, Deserialize)]
pub struct Turn {
    /// When the benchmark began, in seconds since 1970.
    pub began: f64,
    pub samples: Vec<Sample>,
}

/// Whose a function is, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    Module,
    BlockLayer,
    NullBlk,
    Rest,
}

const PARTS: [Part; 4] = [Part::Module, Part::BlockLayer, Part::NullBlk, Part::Rest];

/// The phases of `znsage bench`, and which way their pages go.
const PHASES: [(&str, &str); 2] = [("fill", "out"), ("random", "in")];

/// One phase of one turn.
#[derive(Serialize)]
struct Cost {
    system: System,
    phase: &'static str,
    pages: u64,
    /// Nanoseconds a page.
    functions: BTreeMap<String, (Part, f64)>,
}

impl Cost {
    fn of(&self, part: Option<Part>) -> f64 {
        let those = self.functions.values().filter(|f| part.is_none_or(|p| p == f.0));
        // The sum of no number is -0.
        those.map(|f| f.1).fold(0.0, |sum, ns| sum + ns)
    }
}

pub fn run(args: &Args) -> Result<bool> {
    let before = Load::now();
    let block = block_layer()?;
    let mut costs = Vec::new();
    for round in 0..args.rounds {
        // The systems take turns in being first.
        let mut systems = System::BOTH;
        systems.rotate_left(round as usize % 2);
        for system in systems {
            eprintln!("[round {} of {}] {}", round + 1, args.rounds, system.name());
            costs.extend(turn(system, args.full, &block)?);
        }
    }
    write_json(&Path::new(OUT).join("result.json"), &costs)?;
    let others = before.zip(Load::now()).map(|(before, now)| now.others_since(&before));
    load::show(&to_text(&costs), &[], others);
    Ok(true)
}

/// The names of the functions below block/.
fn block_layer() -> Result<HashSet<String>> {
    let objects = format!("{KERNEL}/objects/block/built-in.a");
    let output = Command::new("nm").arg(&objects).output().context("nm")?;
    let list = String::from_utf8_lossy(&output.stdout);
    let names: HashSet<String> = functions(&list).map(|f| f.1.to_string()).collect();
    match names.is_empty() {
        true => Err(format!("nm finds no function in {objects}")),
        false => Ok(names),
    }
}

/// Boots the kernel under perf; the guest runs one benchmark.
fn turn(system: System, full: Option<u64>, block: &HashSet<String>) -> Result<Vec<Cost>> {
    let here = std::env::current_dir().context("where am I")?;
    let out = here.join(OUT).join("raw");
    // Results of an earlier run.
    let _ = fs::remove_dir_all(&out);
    make_directory(&out)?;
    let (data, log) = (out.join("perf.data"), out.join("console.log"));
    let console = File::create(&log).context(log.display())?;
    let status = Command::new("perf")
        .args(["record", "-q", "-e", "cpu-clock:u", "-k", "CLOCK_REALTIME"])
        .args(["-F", &FREQUENCY.to_string(), "-o"])
        .arg(&data)
        .args(["--", &format!("{KERNEL}/boot/vmlinuz"), "mem=3G", "seccomp=on", "con=null"])
        .args([
            "con0=null,fd:1",
            "console=tty0",
            "root=none",
            "rootfstype=hostfs",
            "ro",
            "panic=-1",
        ])
        .arg(format!("init={}", here.join(INIT).display()))
        .arg("--")
        .arg(&out)
        .arg(std::env::current_exe().context("where am I")?)
        .args(["guest", "native", "--system", &format!("{system:?}").to_lowercase(), "--out"])
        .arg(&out)
        .args(full.map(|percent| format!("--full={percent}")))
        .stdin(Stdio::null())
        .stdout(console.try_clone().context("the console")?)
        .stderr(console)
        .status()
        .context("cannot start perf (vm/setup native installs it)")?;
    let turn: Turn = read_json(&out.join("runs.json"))
        .map_err(|e| format!("{e}; perf ended with {status}: see {}", log.display()))?;
    let symbols = read(&out.join(SYMBOLS))?;
    let symbols = Symbols::new(&symbols, block);
    let script = Command::new("perf")
        .args(["script", "-F", "pid,time,ip", "-i"])
        .arg(&data)
        .output()
        .context("perf script")?;
    let hits = hits(&String::from_utf8_lossy(&script.stdout));
    let cost = |&(phase, way)| cost(system, phase, way, &turn, &symbols, &hits);
    PHASES.iter().map(cost).collect()
}

/// The time and the address of each sample in the kernel's process, which is the first one.
fn hits(script: &str) -> Vec<(f64, u64)> {
    let mut kernel = None;
    let parse = |line: &str| {
        let mut words = line.split_whitespace();
        let pid: u32 = words.next()?.parse().ok()?;
        let time = words.next()?.trim_end_matches(':').parse().ok()?;
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        (pid == *kernel.get_or_insert(pid)).then_some((time, address))
    };
    script.lines().filter_map(parse).collect()
}

/// Between the first and the last look at the counters in this phase.
fn cost(
    system: System,
    phase: &'static str,
    way: &'static str,
    turn: &Turn,
    symbols: &Symbols,
    hits: &[(f64, u64)],
) -> Result<Cost> {
    let mut looks = turn.samples.iter().filter(|s| s.phase == phase);
    let (first, last) = looks.next().zip(looks.next_back()).ok_or("the phase was too short")?;
    let bytes = |s: &Sample| if way == "out" { s.bytes_out } else { s.bytes_in };
    let pages = (bytes(last) - bytes(first)) / PAGE;
    let during = turn.began + first.t..turn.began + last.t;
    let mut functions = BTreeMap::new();
    for (name, part) in
        hits.iter().filter(|h| during.contains(&h.0)).filter_map(|h| symbols.find(h.1))
    {
        functions.entry(name.to_string()).or_insert((part, 0.0)).1 +=
            1e9 / f64::from(FREQUENCY) / pages as f64;
    }
    Ok(Cost { system, phase: way, pages, functions })
}

/// Address, name and module of the functions in a list of symbols.
fn functions(list: &str) -> impl Iterator<Item = (u64, &str, Option<&str>)> {
    list.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let kind = words.next()?;
        kind.eq_ignore_ascii_case("t").then_some((address, words.next()?, words.next()))
    })
}

struct Symbols<'a>(Vec<(u64, &'a str, Part)>);

impl Symbols<'_> {
    fn new<'a>(list: &'a str, block: &HashSet<String>) -> Symbols<'a> {
        let part = |name: &str, module: Option<&str>| match module {
            Some("[znsage]") => Part::Module,
            Some("[null_blk]") => Part::NullBlk,
            None if block.contains(name) => Part::BlockLayer,
            _ => Part::Rest,
        };
        let mut all: Vec<_> = functions(list).map(|(a, n, m)| (a, n, part(n, m))).collect();
        all.sort_by_key(|symbol| symbol.0);
        Symbols(all)
    }

    fn find(&self, address: u64) -> Option<(&str, Part)> {
        let after = self.0.partition_point(|symbol| symbol.0 <= address);
        let (start, name, part) = *self.0.get(after.checked_sub(1)?)?;
        (address - start < FAR).then_some((name, part))
    }
}

fn to_text(costs: &[Cost]) -> String {
    let mut table = Table::new(&[
        "us a page",
        "module",
        "block layer",
        "null_blk",
        "rest of the kernel",
        "all",
    ]);
    let mut lists = String::new();
    for (_, way) in PHASES {
        for system in System::BOTH.into_iter().rev() {
            let those = || costs.iter().filter(|c| c.phase == way && c.system == system);
            let us = |part| {
                let values: Vec<f64> = those().map(|c| c.of(part) / 1e3).collect();
                median(&values).map_or("-".to_string(), |m| format!("{m:.2}"))
            };
            let mut row = vec![format!("{way}, {}", system.name())];
            row.extend(PARTS.map(Some).into_iter().chain([None]).map(us));
            table.row(row);
        }
        lists += &format!("\nns a page {way}:{}", longest(costs, way));
    }
    table.to_text() + &lists
}

/// The functions of the module that take longest, means of all turns.
fn longest(costs: &[Cost], way: &str) -> String {
    let turns: Vec<_> =
        costs.iter().filter(|c| c.phase == way && c.system == System::Znsage).collect();
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, (_, ns)) in
        turns.iter().flat_map(|c| &c.functions).filter(|f| f.1 .0 == Part::Module)
    {
        *sums.entry(name).or_default() += ns / turns.len() as f64;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
    let show = |(name, ns): &(&str, f64)| format!(" {name} {ns:.0}");
    sums.iter().take(LONGEST).map(show).collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "\
60000000 T _stext
60000100 T submit_bio
60000200 t memcpy
70001000 t write_head\t[znsage]
70009000 t null_submit\t[null_blk]
60000180 d a_table
";
    const SCRIPT: &str = "\
 7 10.000000:         60000104
 7 11.000000:         60000204
 7 11.500000:         70001020
 7 11.600000:         70001040
 7 11.700000:         70009000
 8 11.700000:         60000104
 7 11.900000:         60000104
 7 11.950000:     7f0060000104
";

    fn look(t: f64, pages: u64) -> Sample {
        let phase = "fill".to_string();
        let bytes_out = pages * PAGE;
        Sample {
            t,
            phase,
            bytes_in: 0,
            bytes_out,
            host_blocks: None,
            gc_blocks: None,
            padding_blocks: None,
        }
    }

    #[test]
    fn time_is_that_of_a_page_in_each_part() {
        let block = HashSet::from(["submit_bio".to_string()]);
        let symbols = Symbols::new(SYMBOLS, &block);
        let turn = Turn { began: 9.5, samples: vec![look(1.0, 10), look(2.0, 50), look(3.0, 110)] };
        let found = |phase| cost(System::Znsage, phase, "out", &turn, &symbols, &hits(SCRIPT));
        let cost = found("fill").unwrap();
        assert_eq!(cost.pages, 100);
        assert_eq!(PARTS.map(|part| cost.of(Some(part))), [2e3, 1e3, 1e3, 1e3]);
        assert_eq!(cost.of(None), 5e3);
        assert!(found("random").is_err());
        let text = to_text(&[cost]);
        let row =
            "| out, znsage     |   2.00 |        1.00 |     1.00 |               1.00 | 5.00 |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("ns a page out: write_head 2000\n"), "{text}");
    }
}
