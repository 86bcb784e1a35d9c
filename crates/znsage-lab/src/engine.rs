// SPDX-License-Identifier: GPL-2.0-only
//! The engine's own cost: engine/tests/bench measures it on the host, case by case.
//! bench/README.md says what is counted.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use znsage_sim::stats::median;

use crate::result::{Context, Result};
use crate::table::{thousands, Table};

/// The program that measures time and counts takes of locks.
const PROGRAM: &str = "build/engine/bench";
/// The same program, whose accesses to memory the compiler reports.
const LINES_PROGRAM: &str = "build/engine/bench-lines";
/// Pages swapped out where counting is slow and exact.
const COUNTED_PAGES: u32 = 65_536;
/// The cases whose instructions are figures.
const BATCHED: &str = "out-64x12";
const SINGLE: &str = "out-1x12";

/// What a case costs: per page, or per append of swap-out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    pub case: String,
    /// Pages.
    pub append: u32,
    pub streams: u32,
    pub victim: bool,
    pub threads: u32,
    /// CPU time a page swapped out, swapped in, freed.
    pub out_ns: f64,
    pub in_ns: Option<f64>,
    pub free_ns: Option<f64>,
    pub waf: Option<f64>,
    /// Takes of the engine lock per append.
    pub takes: f64,
    /// Takes of the engine lock per append of GC.
    pub gc_takes: Option<f64>,
    /// Takes of the streams' locks per append.
    pub stream_takes: f64,
    /// The share of the engine lock's takes that found it taken.
    pub contended: f64,
    /// How long an append holds the engine lock.
    pub held_ns: f64,
}

/// Distinct cache lines an append.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lines {
    pub case: String,
    /// Lines written under the engine lock, without maps. Each hold counts its lines anew.
    pub locked: f64,
    pub written: BTreeMap<String, f64>,
    pub read: BTreeMap<String, f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Case {
    pub timed: Timed,
    /// None where several threads swap.
    pub lines: Option<Lines>,
    pub instructions: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Engine {
    pub cases: Vec<Case>,
}

/// Runs all cases, the timed ones `rounds` times; the medians count.
pub fn measure(rounds: u32) -> Result<Engine> {
    let mut timed: Vec<Vec<Timed>> = Vec::new();
    for round in 1..=rounds {
        eprintln!("engine: round {round} of {rounds}");
        timed.push(json_lines(PROGRAM, &[])?);
    }
    eprintln!("engine: cache lines");
    let lines: Vec<Lines> = json_lines(LINES_PROGRAM, &["--pages", &COUNTED_PAGES.to_string()])?;
    let mut cases = Vec::new();
    for i in 0..timed[0].len() {
        let rounds: Vec<&Timed> = timed.iter().filter_map(|round| round.get(i)).collect();
        let timed = medians(&rounds);
        let lines = lines.iter().find(|l| l.case == timed.case).cloned();
        let instructions = match &lines {
            Some(_) => Some(instructions(&timed.case)?),
            None => None,
        };
        cases.push(Case { timed, lines, instructions });
    }
    Ok(Engine { cases })
}

/// The documents that the program prints, one a line.
fn json_lines<T: DeserializeOwned>(program: &str, arguments: &[&str]) -> Result<Vec<T>> {
    if !Path::new(program).exists() {
        return Err(format!("{program} is not built: make -C engine/tests bench"));
    }
    let out = Command::new(program)
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .context(format_args!("cannot start {program}"))?;
    if !out.status.success() {
        return Err(format!("{program}: {}", out.status));
    }
    parse(&String::from_utf8_lossy(&out.stdout)).context(program)
}

fn parse<T: DeserializeOwned>(text: &str) -> serde_json::Result<Vec<T>> {
    text.lines().map(serde_json::from_str).collect()
}

/// The rounds of one case: medians of what varies, the rest as in the first round.
fn medians(rounds: &[&Timed]) -> Timed {
    let any = |f: fn(&Timed) -> Option<f64>| {
        median(&rounds.iter().filter_map(|t| f(t)).collect::<Vec<f64>>())
    };
    let of = |f: fn(&Timed) -> f64| {
        median(&rounds.iter().map(|t| f(t)).collect::<Vec<f64>>()).unwrap_or(f64::NAN)
    };
    Timed {
        out_ns: of(|t| t.out_ns),
        in_ns: any(|t| t.in_ns),
        free_ns: any(|t| t.free_ns),
        waf: any(|t| t.waf),
        takes: of(|t| t.takes),
        gc_takes: any(|t| t.gc_takes),
        stream_takes: of(|t| t.stream_takes),
        contended: of(|t| t.contended),
        held_ns: of(|t| t.held_ns),
        ..rounds[0].clone()
    }
}

/// Instructions a page swapped out, counted by callgrind.
fn instructions(case: &str) -> Result<f64> {
    eprintln!("engine: instructions of {case}");
    let counts = format!("{PROGRAM}.callgrind");
    let pages = COUNTED_PAGES.to_string();
    let out = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=measured"])
        .arg(format!("--callgrind-out-file={counts}"))
        .args([PROGRAM, "--small", "--once", "--pages", &pages, case])
        .output()
        .context("cannot start valgrind (vm/setup test installs it)")?;
    if !out.status.success() {
        return Err(format!("valgrind: {}", String::from_utf8_lossy(&out.stderr)));
    }
    let text = fs::read_to_string(&counts).context(&counts)?;
    let total = total(&text).ok_or_else(|| format!("{counts}: measured() was not counted"))?;
    Ok(total as f64 / f64::from(COUNTED_PAGES))
}

/// The number of instructions in callgrind's file.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix("summary:"))?;
    line.trim().parse().ok().filter(|&n| n > 0)
}

impl Engine {
    fn case(&self, name: &str) -> Option<&Case> {
        self.cases.iter().find(|c| c.timed.case == name)
    }

    /// The largest value of the cases that have one.
    fn worst(&self, value: impl Fn(&Case) -> Option<f64>) -> Option<(f64, String)> {
        let of = |c: &Case| value(c).map(|v| (v, c.timed.case.clone()));
        self.cases.iter().filter_map(of).max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// The numbers of the figures, and the cases that they are from.
    pub fn numbers(&self) -> [(&'static str, Option<(f64, String)>); 5] {
        let alone = |value: fn(&Case, &Lines) -> f64| {
            self.worst(|c| c.lines.as_ref().map(|lines| value(c, lines)))
        };
        [
            ("engine-takes", alone(|c, _| c.timed.takes)),
            ("engine-lines", alone(|_, lines| lines.locked)),
            ("engine-64", self.instructions_of(BATCHED)),
            ("engine-1", self.instructions_of(SINGLE)),
            ("engine-threads", self.threads()),
        ]
    }

    fn instructions_of(&self, name: &str) -> Option<(f64, String)> {
        let victim = self.case(&format!("{name}-victim"))?.instructions?;
        let detail = format!("{name}; {victim:.0} beside GC");
        Some((self.case(name)?.instructions?, detail))
    }

    /// CPU time a page swapped out beside GC: with several threads, to that with one.
    fn threads(&self) -> Option<(f64, String)> {
        let ratio = |c: &Case| {
            let one = self
                .cases
                .iter()
                .map(|c| &c.timed)
                .find(|t| t.in_ns.is_some() && t.threads == 1 && t.append == c.timed.append)?;
            (c.timed.threads > 1).then(|| c.timed.out_ns / one.out_ns)
        };
        self.worst(ratio)
    }

    /// A table of all cases.
    pub fn to_text(&self) -> String {
        let mut table = Table::new(&[
            "engine",
            "ns a page: out",
            "in",
            "free",
            "instructions",
            "takes an append",
            "contended",
            "ns held",
            "lines under it",
            "written",
            "read",
        ]);
        let number = |v: Option<f64>| v.map_or("-".to_string(), thousands);
        for Case { timed: t, lines, instructions } in &self.cases {
            let sum = |of: fn(&Lines) -> &BTreeMap<String, f64>| {
                lines.as_ref().map(|l| of(l).iter().filter(|l| l.0 != "maps").map(|l| l.1).sum())
            };
            table.row([
                t.case.clone(),
                number(Some(t.out_ns)),
                number(t.in_ns),
                number(t.free_ns),
                number(*instructions),
                format!("{:.2}", t.takes),
                format!("{:.2} %", 100.0 * t.contended),
                number(Some(t.held_ns)),
                lines.as_ref().map_or("-".to_string(), |l| format!("{:.1}", l.locked)),
                number(sum(|l| &l.written)),
                number(sum(|l| &l.read)),
            ]);
        }
        table.to_text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMED: &str = r#"{"case":"out-1x12","append":1,"streams":12,"victim":false,"threads":1,"pages":10,"appends":10,"out_ns":500.0,"takes":4.000,"stream_takes":2.000,"contended":0.0000,"held_ns":100.0}"#;
    const MIXED: &str = r#"{"case":"mix-1x12-1","append":1,"streams":12,"victim":false,"threads":1,"pages":10,"appends":10,"out_ns":400.0,"in_ns":90.0,"free_ns":80.0,"waf":4.56,"gc_takes":7.91,"takes":4.1,"stream_takes":2.0,"contended":0.01,"held_ns":100.0}"#;
    const LINES: &str = r#"{"case":"out-1x12","locked":11.00,"written":{"engine":3.00,"maps":2.00},"read":{"engine":9.00,"maps":0.00}}"#;

    fn case() -> Case {
        Case {
            timed: parse(TIMED).unwrap().remove(0),
            lines: Some(parse(LINES).unwrap().remove(0)),
            instructions: Some(1000.0),
        }
    }

    #[test]
    fn rounds_count_by_their_medians() {
        let rounds = [500.0, 900.0, 400.0].map(|out_ns| Timed { out_ns, ..case().timed });
        let got = medians(&rounds.iter().collect::<Vec<_>>());
        assert_eq!(got, Timed { out_ns: 500.0, ..case().timed });
    }

    #[test]
    fn threads_compare_with_one_of_the_same_appends() {
        let one: Timed = parse(MIXED).unwrap().remove(0);
        let two = Timed { case: "mix-1x12-2".into(), threads: 2, out_ns: 600.0, ..one.clone() };
        let batch = Timed { append: 64, out_ns: 100.0, ..one.clone() };
        let mixed = |timed| Case { timed, ..Case::default() };
        let engine = Engine { cases: [case().timed, batch, one, two].map(mixed).into() };
        assert_eq!(engine.threads(), Some((1.5, "mix-1x12-2".to_string())));
    }

    #[test]
    fn callgrind_file_has_the_total() {
        assert_eq!(total("events: Ir\nsummary: 19130909\n\n"), Some(19130909));
        assert_eq!(total("events: Ir\nsummary: 0\n"), None);
        assert_eq!(total("events: Ir\n"), None);
    }

    #[test]
    fn figures_are_the_worst_case() {
        let mut other = case();
        other.timed.case = "out-1x12-victim".to_string();
        other.timed.takes = 5.0;
        other.instructions = Some(1500.0);
        let engine = Engine { cases: vec![case(), other] };
        let [takes, _, batched, single, threads] = engine.numbers().map(|(_, number)| number);
        assert_eq!(takes, Some((5.0, "out-1x12-victim".to_string())));
        assert_eq!(single, Some((1000.0, "out-1x12; 1500 beside GC".to_string())));
        assert_eq!((batched, threads), (None, None));
        assert!(engine.to_text().contains("| out-1x12        |"), "{}", engine.to_text());
    }
}
