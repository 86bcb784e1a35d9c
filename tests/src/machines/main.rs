// SPDX-License-Identifier: GPL-2.0-only
//! `machine-suite`: whole machines that start with systemd and the installed packages. It
//! runs on the host, with an image that tests/machines makes.

mod agent;
mod boot;
mod file;
mod hold;
mod lines;
mod machine;
mod qmp;
mod remote;
mod story;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use znsage_guest::outcome::Outcome;

/// Tests znsage in whole machines.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start, stop, configuration mistakes, late devices
    Boot(machine::Parts),
    /// Two machines, one swapping to the other's device
    Remote(machine::Parts),
    /// In a machine: swap memory out, and verify it on request
    Hold {
        /// For files that carry requests and answers
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
