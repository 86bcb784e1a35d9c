// SPDX-License-Identifier: GPL-2.0-only
//! The command `znsage-torture`: runs random seeds until stopped.

use std::fmt;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use nix::time::{clock_gettime, ClockId};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use znsage_sim::cli::progress::Progress;
use znsage_sim::cli::{print, threads, Status};
use znsage_sim::time::Ns;

use crate::{replay, report, run, under_way, Campaign, Sabotage, Summary, Trace};

/// CPU time without a finished seed after which a seed counts as stuck.
const STUCK: Duration = Duration::from_secs(60);

const STATUS: &str = "\
Exit status:
  0    nothing wrong
  1    a seed has failed
  2    invalid command line
  3    standard output cannot be written";

/// Tests the engine with errors, late completions and badly timed frees, one random seed
/// after another
#[derive(Debug, Parser)]
#[command(name = "znsage-torture", version, after_help = STATUS)]
struct Args {
    /// Print one JSON document and nothing else on standard output
    #[arg(long)]
    json: bool,

    /// How many seeds [default: until interrupted]
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,

    /// The first seed [default: 0 with --seeds, otherwise the time]
    #[arg(long, value_name = "N")]
    first: Option<u64>,

    /// Stop after this many seconds
    #[arg(long, value_name = "N", conflicts_with = "minutes",
        value_parser = clap::value_parser!(u32).range(1..))]
    seconds: Option<u32>,

    /// Stop after this many minutes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    minutes: Option<u32>,

    /// Seeds at a time; does not change the result [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Continue after a seed has failed
    #[arg(long)]
    keep_going: bool,

    /// Run only this seed
    #[arg(long, value_name = "N", conflicts_with_all = ["seeds", "first", "seconds", "minutes"])]
    seed: Option<u64>,

    /// Print every event of the seed
    #[arg(long, requires = "seed", conflicts_with = "json")]
    trace: bool,
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let args = Args::parse();
    let summary = summary(&args);
    let printed = match args.json {
        true => print(&format!("{:#}\n", json!({ "torture": summary }))),
        false => print(&text(&args, &summary)),
    };
    match (printed, summary.failures.is_empty()) {
        (Err(_), _) => Status::Io.into(),
        (_, true) => Status::Fine.into(),
        (_, false) => Status::Wrong.into(),
    }
}

fn summary(args: &Args) -> Summary {
    match args.seed {
        Some(seed) => one(seed, args.trace),
        None => many(args),
    }
}

fn text(args: &Args, summary: &Summary) -> String {
    let mut text = report::text(summary);
    if let (Some(_), Some(failure)) = (args.seed, summary.failures.first()) {
        text += "zones at that time:\n";
        failure.zones.iter().for_each(|zone| text += &format!("  {zone}\n"));
    }
    text
}

fn print_event(at: Ns, what: fmt::Arguments) {
    // If output is lost, the summary at the end most likely is, too: an error.
    let _ = print(&format!("{:>14.3} {what}\n", at as f64 / 1e3));
}

fn one(seed: u64, trace: bool) -> Summary {
    let outcome = run(seed, Sabotage::None, trace.then_some(print_event as Trace));
    Summary {
        first: seed,
        seeds: 1,
        counts: outcome.counts,
        failures: outcome.failure.into_iter().collect(),
    }
}

/// A seed that was most likely never used: the time.
fn new_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    now.as_millis() as u64
}

fn many(args: &Args) -> Summary {
    let campaign = Campaign {
        first: args.first.unwrap_or_else(|| if args.seeds.is_some() { 0 } else { new_seed() }),
        seeds: args.seeds,
        jobs: threads(args.threads),
        keep_going: args.keep_going,
        sabotage: Sabotage::None,
    };
    let minutes = args.minutes.map(|m| 60 * u64::from(m));
    let limit = args.seconds.map(u64::from).or(minutes).map(Duration::from_secs);
    let begun = Instant::now();
    let mut progress = Progress::new();
    let alive = watch();
    // What was found is reported after Ctrl-C as well.
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))
            .expect("these signals can be caught");
    }
    campaign.run(|so_far| {
        alive.fetch_add(1, Ordering::Relaxed);
        progress.show(|| report::line(so_far, begun.elapsed()));
        if interrupted.load(Ordering::Relaxed)
            || limit.is_some_and(|limit| begun.elapsed() >= limit)
        {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })
}

/// Ends the process if a seed is stuck in an endless loop. A seed takes a fraction of
/// a second. The caller increments the returned number while it makes progress.
fn watch() -> Arc<AtomicU64> {
    let alive = Arc::new(AtomicU64::new(0));
    let watched = Arc::downgrade(&alive);
    std::thread::spawn(move || {
        let mut before = (0, worked());
        while let Some(number) = watched.upgrade().map(|n| n.load(Ordering::Relaxed)) {
            if number != before.0 {
                before = (number, worked());
            } else if worked() - before.1 > STUCK {
                break;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        if watched.strong_count() == 0 {
            return;
        }
        for seed in under_way() {
            let again = replay(seed);
            eprintln!("seed {seed} does not end; to reproduce: {again}");
        }
        std::process::exit(Status::Wrong as i32);
    });
    alive
}

/// CPU time of all threads; real time would mislead on a busy machine.
fn worked() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn torture(words: &str) -> (String, Summary) {
        let args = Args::parse_from(["znsage-torture"].into_iter().chain(words.split(' ')));
        let summary = summary(&args);
        (text(&args, &summary), summary)
    }

    #[test]
    fn number_of_threads_does_not_change_the_result() {
        let one = torture("--seeds 6 --threads 1");
        assert_eq!(one, torture("--seeds 6 --threads 3 --first 0"));
        assert!(one.1.failures.is_empty(), "{}", one.0);
        assert!(one.0.starts_with("seeds     6, from 0 to 5: nothing wrong\n"), "{}", one.0);
    }

    #[test]
    fn single_seed_gives_the_same_result() {
        assert_eq!(torture("--seed 7"), torture("--seeds 1 --first 7"));
    }
}
