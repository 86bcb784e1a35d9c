// SPDX-License-Identifier: GPL-2.0-only
//! `machine-suite`: whole machines with systemd and the installed packages. Runs on the host,
//! from the files that tests/machines makes.

mod agent;
mod boot;
mod hold;
mod lines;
mod machine;
mod qmp;
mod remote;
mod story;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use znsage_tests::outcome::Outcome;

/// Tests znsage in whole machines.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start, stop, mistakes, late devices
    Boot(machine::Parts),
    /// Two machines, one with its swap on the other's device
    Remote(machine::Parts),
    /// In a machine: memory that is swapped out, and verified on request
    Hold {
        /// Directory for its messages
        directory: PathBuf,
        mib: usize,
    },
}

fn main() -> ExitCode {
    let done: Outcome<bool> = match Cli::parse().command {
        Command::Boot(parts) => boot::run(&parts),
        Command::Remote(parts) => remote::run(&parts),
        Command::Hold { directory, mib } => hold::run(&directory, mib).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("machine-suite: {message}");
            ExitCode::FAILURE
        }
    }
}
