// SPDX-License-Identifier: GPL-2.0-only
//! `znsage-lab`: the demo and the benchmarks. The same program runs on the
//! host, where it boots a virtual machine and shows the results, and in the
//! guest, where it turns swap on and off and runs `znsage bench`.

mod bench;
mod course;
mod demo;
mod density;
mod engine;
mod figures;
mod files;
mod guest;
mod load;
mod model;
mod native;
mod result {
    //! Errors are sentences for the person at the terminal.
    pub use znsage_guest::outcome::{Context, Outcome as Result};
}
mod select;
mod simulator;
mod ssd;
mod table;
mod vm;
mod workloads;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The demo and the benchmarks of znsage.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run stock swap and znsage side by side, in one virtual machine
    Demo,
    /// Measure the figures and compare them with their targets
    Bench(bench::Args),
    /// Count the idle processes that fit on SSDs that collect garbage
    Density(density::Args),
    /// Sample where the CPU time of a page goes
    Native(native::Args),
    /// Compare swap on SSDs that collect garbage, which the simulator models
    Ssd(ssd::Args),
    /// Run real programs on stock swap and on znsage
    Workloads(workloads::Args),
    /// Run the part that belongs in the virtual machine
    #[command(hide = true)]
    Guest(guest::Args),
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    // The results in docs/ are from software emulation.
    if !matches!(command, Command::Demo) && std::env::var_os("ACCEL").is_none() {
        std::env::set_var("ACCEL", "tcg");
    }
    let done = match command {
        Command::Demo => demo::run(),
        Command::Bench(args) => bench::run(&args),
        Command::Density(args) => density::run(&args),
        Command::Native(args) => native::run(&args),
        Command::Ssd(args) => ssd::run(&args),
        Command::Workloads(args) => workloads::run(&args),
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
