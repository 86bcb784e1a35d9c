// SPDX-License-Identifier: GPL-2.0-only
//! `vm-suite`: tests that need a running kernel with the module. tests/run runs it as root
//! in a virtual machine; it would take down the swap of a real one.

mod cases;
mod cleanup;
mod device;
mod devices;
mod direct;
mod kmsg;
mod load;
mod mapper;
mod runner;
mod sleep;
mod table;
mod torture;
mod zones;

use std::process::ExitCode;

use runner::{Case, Tier};
use znsage_guest::{child, ensure, guest, inject, memory, null_blk, outcome, pattern, scsi_debug};
use znsage_tests::document;

const USAGE: &str = "\
usage: vm-suite [--tier each|quick|more|full] [--list] [NAME...]

Runs the cases whose names contain one of NAME; without NAME, all cases.
  --tier   each: only those of the quick tier that other kernels run as well; quick: what
           `make test` runs; more: only those that .ci/run adds; full: only the rest, and those.
           With any, the final ones of `kernel`
  --list   print the names of the cases and their tiers instead";

#[derive(Default)]
struct Arguments {
    tier: Option<Tier>,
    list: bool,
    names: Vec<String>,
}

fn parse(mut words: impl Iterator<Item = String>) -> Option<Arguments> {
    let mut arguments = Arguments::default();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--tier" => arguments.tier = Some(Tier::parse(&words.next()?)?),
            "--list" => arguments.list = true,
            option if option.starts_with('-') => return None,
            _ => arguments.names.push(word),
        }
    }
    Some(arguments)
}

fn selected(tier: Option<Tier>, names: &[String]) -> Vec<Case> {
    let is_of = |c: &Case, tier: Tier| match tier {
        Tier::Each | Tier::Quick => c.tier <= tier,
        Tier::More => c.tier == tier,
        Tier::Full => c.tier > Tier::Quick,
    };
    let in_tier = |c: &Case| tier.is_none_or(|t| is_of(c, t)) || c.name.starts_with("kernel::");
    let named = |c: &Case| names.is_empty() || names.iter().any(|n| c.name.contains(n.as_str()));
    cases::all().into_iter().filter(|case| in_tier(case) && named(case)).collect()
}

fn main() -> ExitCode {
    let Some(arguments) = parse(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let cases = selected(arguments.tier, &arguments.names);
    if arguments.list {
        cases.iter().for_each(|case| println!("{} ({})", case.name, case.tier.name()));
        return ExitCode::SUCCESS;
    }
    if cases.is_empty() {
        eprintln!("vm-suite: no such case; --list shows them");
        return ExitCode::from(2);
    }
    if !guest::read("/proc/cmdline").is_ok_and(|t| t.contains("virtme")) {
        eprintln!("vm-suite: this is no virtual machine of tests/run, and the cases turn off swap");
        return ExitCode::from(2);
    }
    match runner::run(&cases) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("vm-suite: {e}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_can_be_selected() {
        let all = cases::all();
        let mut names: Vec<_> = all.iter().map(|c| c.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
        assert_eq!(selected(None, &[]).len(), all.len());
        let one = selected(None, &["kernel::".to_string()]);
        assert!(one.iter().all(|c| c.name.starts_with("kernel::")));
        let number = |tier| selected(Some(tier), &[]).len();
        assert_eq!(number(Tier::Quick) + number(Tier::Full), all.len() + one.len());
        assert!(one.len() < number(Tier::Each) && number(Tier::Each) < number(Tier::Quick));
        assert!(one.len() < number(Tier::More) && number(Tier::More) < number(Tier::Full));
    }

    #[test]
    fn arguments_are_parsed() {
        let parse = |line: &str| parse(line.split(' ').map(str::to_string));
        let arguments = parse("--tier full --list a b").unwrap();
        assert!(arguments.tier == Some(Tier::Full) && arguments.list);
        assert_eq!(arguments.names, ["a", "b"]);
        assert!(parse("--tier").is_none() && parse("--tier some").is_none());
        assert!(parse("--brief").is_none());
    }
}
