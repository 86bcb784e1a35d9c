// SPDX-License-Identifier: GPL-2.0-only
//! `znsage-lab`: the demo and the benchmarks. The same program runs on the
//! host (boots a virtual machine, shows, compares, draws) and in the guest
//! (turns swap on and off, runs `znsage bench`, notes what it reports).

mod bench;
mod course;
mod demo;
mod figures;
mod guest;
mod load;
mod model;
mod picture;
mod simulator;
mod stats;
mod table;
mod vm;
mod workloads;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A sentence for the person at the terminal is all that anybody can use.
pub type Result<T> = std::result::Result<T, String>;

/// The demo and the benchmarks of znsage.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Stock swap and znsage side by side, in one virtual machine
    Demo,
    /// Measure the figures that znsage is held against
    Bench(bench::Args),
    /// Real programs on stock swap and on znsage
    Workloads(workloads::Args),
    /// Draw the picture and print the table of an earlier demo again
    Redraw {
        /// Its result.json
        #[arg(default_value = "build/demo/result.json")]
        result: PathBuf,
    },
    /// What runs in the virtual machine
    #[command(hide = true)]
    Guest(guest::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Demo => demo::run(),
        Command::Bench(args) => bench::run(&args),
        Command::Workloads(args) => workloads::run(&args),
        Command::Redraw { result } => demo::redraw(&result),
        Command::Guest(args) => guest::run(&args).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("znsage-lab: {message}");
            ExitCode::FAILURE
        }
    }
}
