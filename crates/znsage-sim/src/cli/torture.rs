// SPDX-License-Identifier: GPL-2.0-only
//! `znsage-sim torture`: runs random seeds until stopped.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::time::{clock_gettime, ClockId};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::time::{to_secs, Ns};
use crate::torture::{self, Campaign, Counts, Failure, Sabotage, Summary};

use super::args::TortureArgs;
use super::progress::Progress;
use super::{print, threads, usage, Outcome, Result, Status};

/// CPU time without a finished seed after which a seed counts as stuck.
const STUCK: Duration = Duration::from_secs(60);

pub fn torture(args: &TortureArgs, json: bool) -> Result<Outcome> {
    if args.trace && json {
        return Err(usage("--trace prints text and cannot be used with --json"));
    }
    let summary = match args.seed {
        Some(seed) => one(seed, args.trace),
        None => many(args),
    };
    let mut text = to_text(&summary);
    if let (Some(_), Some(failure)) = (args.seed, summary.failures.first()) {
        text += "zones at that time:\n";
        failure.zones.iter().for_each(|zone| text += &format!("  {zone}\n"));
    }
    let status = if summary.failures.is_empty() { Status::Fine } else { Status::Wrong };
    Ok(Outcome { text, json: json!({ "torture": summary }), status })
}

fn print_event(at: Ns, what: fmt::Arguments) {
    // If output is lost, the summary at the end most likely is, too: an error.
    let _ = print(&format!("{:>14.3} {what}\n", at as f64 / 1e3));
}

fn one(seed: u64, trace: bool) -> Summary {
    let outcome =
        torture::run(seed, Sabotage::None, trace.then_some(print_event as torture::Trace));
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

fn many(args: &TortureArgs) -> Summary {
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
        progress.show(|| line(so_far, begun.elapsed()));
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
        for seed in torture::under_way() {
            let again = torture::replay(seed);
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

fn line(s: &Summary, took: Duration) -> String {
    let c = &s.counts;
    format!(
        "{} seeds, {:.0} per second; {} failed; faults: {} append, {} read, {} reset, {} finish, {} zones; {} million pages verified",
        s.seeds,
        s.seeds as f64 / took.as_secs_f64(),
        s.failures.len(),
        c.append_errors,
        c.read_errors + c.gc_read_errors,
        c.reset_errors,
        c.finish_errors,
        c.zones_read_only + c.zones_offline,
        c.verified / 1_000_000
    )
}

fn to_text(s: &Summary) -> String {
    let mut text = String::new();
    for failure in &s.failures {
        describe(&mut text, failure);
    }
    let seeds = match s.seeds {
        0 => "none".into(),
        1 => format!("{}", s.first),
        n => format!("{n}, from {} to {}", s.first, s.first + n - 1),
    };
    let failed = match s.failures.len() {
        0 => "nothing wrong".into(),
        n => format!("{n} failed"),
    };
    counts(&mut text, &format!("{seeds}: {failed}"), &s.counts);
    text
}

fn describe(text: &mut String, f: &Failure) {
    let _ = writeln!(text, "seed {} failed after {:.6} s of virtual time:", f.seed, to_secs(f.at));
    f.wrong.iter().for_each(|wrong| *text += &format!("  {wrong}\n"));
    *text += "drawn parameters:\n";
    f.scenario.lines().for_each(|line| *text += &format!("  {line}\n"));
    let _ = writeln!(text, "to reproduce: {}\n", torture::replay(f.seed));
}

fn list(of: &BTreeMap<String, u64>) -> String {
    match of.is_empty() {
        true => "none".into(),
        false => of.iter().map(|(what, n)| format!("{n} {what}")).collect::<Vec<_>>().join(", "),
    }
}

/// Operations, injected faults, results.
fn counts(text: &mut String, seeds: &str, c: &Counts) {
    let mut line = |label: &str, what: String| {
        let _ = writeln!(text, "{label:<10}{what}");
    };
    line("seeds", seeds.into());
    line(
        "ran",
        format!(
            "{} events, {:.3} s of virtual time, {} full checks, {} of them as on a live device",
            c.events,
            c.virtual_us as f64 / 1e6,
            c.checks,
            c.live_checks
        ),
    );
    line(
        "pages",
        format!(
            "{} swapped out, {} raw, {} acknowledged, {} moved by GC, {} read, {} verified, {} freed",
            c.swapped_out, c.raw_written, c.written, c.moved, c.read, c.verified, c.frees
        ),
    );
    line(
        "packed",
        format!(
            "{} of the acknowledged, {} of the verified; {} refused by a full log; {} pages repeated a word",
            c.packed, c.packed_verified, c.no_room, c.filled
        ),
    );
    line(
        "waits",
        format!(
            "{} for a zone, {} for a chunk, {} for a write; {} commands ended out of order",
            c.waits, c.starved, c.busy_reads, c.reordered
        ),
    );
    line("faults", list(&c.faults));
    line(
        "appends",
        format!(
            "{} failed; {} pages abandoned: {} kept in memory, {} raw writes refused",
            c.append_errors, c.failed_pages, c.kept, c.raw_failed
        ),
    );
    line(
        "reads",
        format!(
            "{} failed: {} processes got SIGBUS, {} readahead pages failed, {} lost at swapoff, {} raw reads retried by page",
            c.read_errors, c.sigbus, c.readahead_failed, c.poisoned, c.raw_retried
        ),
    );
    line(
        "GC",
        format!(
            "{} reads failed: {} pages were lost; {} dead ends",
            c.gc_read_errors, c.gc_lost, c.dead_ends
        ),
    );
    line(
        "zones",
        format!(
            "{} resets and {} finishes failed, {} turned read-only and {} offline; {} outages; {} were retired, {} reset",
            c.reset_errors,
            c.finish_errors,
            c.zones_read_only,
            c.zones_offline,
            c.outages,
            c.zones_retired,
            c.resets
        ),
    );
    line(
        "full",
        format!("{} pages found no slot, {} times no page could be swapped out", c.no_slot, c.oom),
    );
    line("machine", format!("{} processes ended, {} swapoffs", c.exits, c.swapoffs));
    line("last events", String::new());
    for (moment, n) in &c.moments {
        line("", format!("{n:>9} {moment}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sim(words: &str) -> Result<Outcome> {
        let words: Vec<&str> = ["torture"].into_iter().chain(words.split(' ')).collect();
        super::super::tests::sim(&words)
    }

    #[test]
    fn number_of_threads_does_not_change_the_result() {
        let one = sim("--seeds 6 --threads 1").unwrap();
        let three = sim("--seeds 6 --threads 3 --first 0").unwrap();
        assert!(one.status == Status::Fine, "{}", one.text);
        assert_eq!(one.text, three.text);
        assert_eq!(one.json, three.json);
        assert!(one.text.starts_with("seeds     6, from 0 to 5: nothing wrong\n"), "{}", one.text);
    }

    #[test]
    fn single_seed_gives_the_same_result() {
        let alone = sim("--seed 7").unwrap();
        let among = sim("--seeds 1 --first 7").unwrap();
        assert_eq!(alone.text, among.text);
    }

    #[test]
    fn failure_says_how_to_reproduce_it() {
        let failure = Failure {
            seed: 42,
            at: 1_500_000,
            wrong: vec!["slot 3 is Lost".into()],
            scenario: "device   8 zones\nload     none".into(),
            zones: vec![],
        };
        let s = Summary { first: 40, seeds: 3, failures: vec![failure], ..Summary::default() };
        let text = to_text(&s);
        for part in [
            "seed 42 failed after 0.001500 s of virtual time:\n  slot 3 is Lost\n",
            "  device   8 zones\n",
            "to reproduce: znsage-sim torture --seed 42 --trace\n",
            "seeds     3, from 40 to 42: 1 failed\n",
        ] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
    }
}
