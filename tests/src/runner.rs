// SPDX-License-Identifier: GPL-2.0-only
//! Runs cases one after the other and prints their results.

use std::io::{stdout, Write};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::exit;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use crate::cleanup;
use crate::guest;
use crate::kmsg::Log;
use crate::outcome::Outcome;

/// The command that a case is part of.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Tier {
    /// `make test`; `.ci/run` also on an older kernel
    Each,
    /// `make test`
    Quick,
    /// `.ci/run`
    More,
    /// `make test-all`
    Full,
}

impl Tier {
    pub fn name(self) -> &'static str {
        match self {
            Tier::Each => "each",
            Tier::Quick => "quick",
            Tier::More => "more",
            Tier::Full => "full",
        }
    }

    pub fn parse(name: &str) -> Option<Tier> {
        [Tier::Each, Tier::Quick, Tier::More, Tier::Full]
            .into_iter()
            .find(|tier| tier.name() == name)
    }
}

/// One case: a name such as `block::discard`, its tier, and the function.
#[derive(Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    pub tier: Tier,
    pub run: fn(&mut Log) -> Outcome,
}

/// `cases![area: one, two (full), three (each)]` lists these functions as cases, with
/// their tiers; `one` is in the quick tier.
#[macro_export]
macro_rules! cases {
    ($area:ident: $($case:ident $(($tier:ident))?),+ $(,)?) => {
        pub const CASES: &[$crate::runner::Case] = &[
            $($crate::runner::Case {
                name: concat!(stringify!($area), "::", stringify!($case)),
                tier: $crate::cases!(@tier $($tier)?),
                run: $case,
            }),+
        ];
    };
    (@tier) => { $crate::runner::Tier::Quick };
    (@tier each) => { $crate::runner::Tier::Each };
    (@tier more) => { $crate::runner::Tier::More };
    (@tier full) => { $crate::runner::Tier::Full };
}

/// A case that takes longer than this, times `guest::slowness()`, hangs. The machine
/// cannot be trusted afterwards.
const LONGEST: Duration = Duration::from_secs(200);

static PASSED: AtomicUsize = AtomicUsize::new(0);
static FAILED: AtomicUsize = AtomicUsize::new(0);

/// When the running case last made progress, in milliseconds since the suite started.
static PROGRESS: AtomicU64 = AtomicU64::new(0);
static EPOCH: OnceLock<Instant> = OnceLock::new();

fn clock() -> Duration {
    EPOCH.get_or_init(Instant::now).elapsed()
}

/// Long cases call this as they make progress, so that the watchdog does not end them.
pub fn still_alive() {
    PROGRESS.store(clock().as_millis() as u64, Relaxed);
}

/// Runs the cases and returns the number of failures.
pub fn run(cases: &[Case]) -> Outcome<usize> {
    let mut log = Log::open()?;
    clock();
    thread::spawn(watch);
    println!("running {} cases", cases.len());
    for case in cases {
        still_alive();
        print!("test {} ... ", case.name);
        let _ = stdout().flush();
        let begin = clock();
        let reasons = run_one(case, &mut log);
        print_verdict(&reasons, clock() - begin);
    }
    print_closing();
    Ok(FAILED.load(Relaxed))
}

/// Everything that went wrong; empty if the case passed.
fn run_one(case: &Case, log: &mut Log) -> Vec<String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| (case.run)(log)));
    let outcome = outcome.unwrap_or_else(|_| Err("it panicked".to_string()));
    let failed = outcome.is_err();
    let mut reasons: Vec<String> = outcome.err().into_iter().collect();
    let left = cleanup::clean();
    // A failed case usually leaves something behind: not worth a second message.
    if !failed || left.iter().any(|what| what.contains("status")) {
        reasons.extend(left);
    }
    reasons.extend(log.alarms().into_iter().map(|line| format!("kernel: {line}")));
    reasons
}

/// A broken kernel gives many reasons; this many are printed.
const MOST_REASONS: usize = 25;

fn print_verdict(reasons: &[String], took: Duration) {
    let seconds = took.as_secs_f64();
    if reasons.is_empty() {
        PASSED.fetch_add(1, Relaxed);
        println!("ok ({seconds:.1} s)");
        return;
    }
    FAILED.fetch_add(1, Relaxed);
    println!("FAILED ({seconds:.1} s)");
    for reason in reasons.iter().take(MOST_REASONS) {
        println!("    {reason}");
    }
}

fn print_closing() {
    println!("\nvm-suite: {} passed, {} failed", PASSED.load(Relaxed), FAILED.load(Relaxed));
}

/// The watchdog: when a case hangs, prints the stacks of blocked tasks and ends the suite.
fn watch() {
    let longest = LONGEST * guest::slowness();
    loop {
        thread::sleep(Duration::from_secs(1));
        let progress = Duration::from_millis(PROGRESS.load(Relaxed));
        if clock() - progress < longest {
            continue;
        }
        println!("FAILED (hangs for {} s; blocked tasks follow)", longest.as_secs());
        let _ = guest::write("/proc/sysrq-trigger", "w");
        thread::sleep(Duration::from_secs(1));
        if let Ok(log) = guest::ok(&["dmesg"]) {
            let lines: Vec<&str> = log.lines().collect();
            println!("{}", lines[lines.len().saturating_sub(150)..].join("\n"));
        }
        FAILED.fetch_add(1, Relaxed);
        print_closing();
        exit(1);
    }
}
