// SPDX-License-Identifier: GPL-2.0-only
//! `vm-suite`: what can only be proven on a running kernel. Runs as root in
//! the virtual machine that tests/run starts, never on a machine that matters.

mod cases;
mod cleanup;
mod device;
mod direct;
mod inject;
mod kmsg;
mod load;
mod mapper;
mod null_blk;
mod runner;
mod sleep;
mod table;
mod torture;
mod zones;

use std::process::ExitCode;

use runner::Case;
use znsage_tests::{child, document, ensure, guest, memory, outcome, pattern};

const USAGE: &str = "\
usage: vm-suite [--brief] [--list] [NAME...]

Runs the cases whose names contain one of NAME, all without any.
  --brief  of these, only those that say something of the kernel
  --list   print their names instead";

fn selected(all: &[Case], wanted: &[String]) -> Vec<Case> {
    let is_wanted =
        |case: &&Case| wanted.is_empty() || wanted.iter().any(|w| case.name.contains(w.as_str()));
    all.iter().filter(is_wanted).copied().collect()
}

fn main() -> ExitCode {
    let (options, wanted): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|a| a.starts_with('-'));
    let (mut all, mut list) = (cases::all(), false);
    for option in &options {
        match option.as_str() {
            "--brief" => all = cases::brief(),
            "--list" => list = true,
            _ => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let cases = selected(&all, &wanted);
    if list {
        cases.iter().for_each(|case| println!("{}", case.name));
        return ExitCode::SUCCESS;
    }
    if cases.is_empty() {
        eprintln!("vm-suite: no case is named like that; --list shows them");
        return ExitCode::from(2);
    }
    if !guest::read("/proc/cmdline").is_ok_and(|t| t.contains("virtme")) {
        eprintln!(
            "vm-suite: it takes down swap and modules: run it by tests/run, in a virtual machine"
        );
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
        assert_eq!(selected(&all, &[]).len(), all.len());
        let one = selected(&all, &["kernel::".to_string()]);
        assert!(one.iter().all(|c| c.name.starts_with("kernel::")));
    }
}
