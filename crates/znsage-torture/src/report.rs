// SPDX-License-Identifier: GPL-2.0-only
//! What a campaign prints.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use znsage_sim::time::to_secs;

use crate::{replay, Counts, Failure, Summary};

/// How far it is.
pub(super) fn line(s: &Summary, took: Duration) -> String {
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

/// All of it.
pub(super) fn text(s: &Summary) -> String {
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
    counts(&mut text, format!("{seeds}: {failed}"), &s.counts);
    text
}

fn describe(text: &mut String, f: &Failure) {
    let _ = writeln!(text, "seed {} failed after {:.6} s of virtual time:", f.seed, to_secs(f.at));
    f.wrong.iter().for_each(|wrong| *text += &format!("  {wrong}\n"));
    *text += "drawn parameters:\n";
    f.scenario.lines().for_each(|line| *text += &format!("  {line}\n"));
    let _ = writeln!(text, "to reproduce: {}\n", replay(f.seed));
}

fn list(of: &BTreeMap<String, u64>) -> String {
    match of.is_empty() {
        true => "none".into(),
        false => of.iter().map(|(what, n)| format!("{n} {what}")).collect::<Vec<_>>().join(", "),
    }
}

/// A label, and what is said of it.
type Line = (&'static str, String);

/// Operations, injected faults, results.
fn counts(text: &mut String, seeds: String, c: &Counts) {
    let lines = [("seeds", seeds)].into_iter().chain(operations(c)).chain(errors(c)).chain(ends(c));
    for (label, what) in lines {
        let _ = writeln!(text, "{label:<10}{what}");
    }
    for (moment, n) in &c.moments {
        let _ = writeln!(text, "{:<10}{n:>9} {moment}", "");
    }
}

fn operations(c: &Counts) -> [Line; 4] {
    let Counts { events, checks, live_checks, .. } = c;
    let Counts { swapped_out, raw_written, written, moved, read, verified, frees, .. } = c;
    let Counts { packed, packed_verified, no_room, filled, .. } = c;
    let Counts { waits, starved, busy_reads, reordered, .. } = c;
    let seconds = c.virtual_us as f64 / 1e6;
    [
        ("ran", format!("{events} events, {seconds:.3} s of virtual time, {checks} full checks, {live_checks} of them as on a live device")),
        ("pages", format!("{swapped_out} swapped out, {raw_written} raw, {written} acknowledged, {moved} moved by GC, {read} read, {verified} verified, {frees} freed")),
        ("packed", format!("{packed} of the acknowledged, {packed_verified} of the verified; {no_room} refused by a full log; {filled} pages repeated a word")),
        ("waits", format!("{waits} for a zone, {starved} for a chunk, {busy_reads} for a write; {reordered} commands ended out of order")),
    ]
}

fn errors(c: &Counts) -> [Line; 4] {
    let Counts { append_errors, failed_pages, kept, raw_failed, .. } = c;
    let Counts { read_errors, sigbus, readahead_failed, poisoned, raw_retried, .. } = c;
    let Counts { gc_read_errors, gc_lost, dead_ends, .. } = c;
    [
        ("faults", list(&c.faults)),
        ("appends", format!("{append_errors} failed; {failed_pages} pages abandoned: {kept} kept in memory, {raw_failed} raw writes refused")),
        ("reads", format!("{read_errors} failed: {sigbus} processes got SIGBUS, {readahead_failed} readahead pages failed, {poisoned} lost at swapoff, {raw_retried} raw reads retried by page")),
        ("GC", format!("{gc_read_errors} reads failed: {gc_lost} pages were lost; {dead_ends} dead ends")),
    ]
}

fn ends(c: &Counts) -> [Line; 4] {
    let Counts { reset_errors, finish_errors, zones_read_only, zones_offline, outages, .. } = c;
    let Counts { zones_retired, resets, no_slot, oom, exits, swapoffs, .. } = c;
    [
        ("zones", format!("{reset_errors} resets and {finish_errors} finishes failed, {zones_read_only} turned read-only and {zones_offline} offline; {outages} outages; {zones_retired} were retired, {resets} reset")),
        ("full", format!("{no_slot} pages found no slot, {oom} times no page could be swapped out")),
        ("machine", format!("{exits} processes ended, {swapoffs} swapoffs")),
        ("last events", String::new()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let text = super::text(&s);
        for part in [
            "seed 42 failed after 0.001500 s of virtual time:\n  slot 3 is Lost\n",
            "  device   8 zones\n",
            "to reproduce: znsage-torture --seed 42 --trace\n",
            "seeds     3, from 40 to 42: 1 failed\n",
        ] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
    }
}
