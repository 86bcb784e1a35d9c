// SPDX-License-Identifier: GPL-2.0-only
//! What runs in the virtual machine, as root.

mod bench;
mod bound;
mod demo;
mod swap;
mod work;
mod workloads;

use std::path::PathBuf;
use std::process::Command;

use crate::vm::started;
use crate::Result;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    job: Job,
}

#[derive(clap::Subcommand)]
enum Job {
    /// The demo's phases
    Demo {
        /// Where the results go
        #[arg(long)]
        out: PathBuf,
    },
    /// The measurements behind the figures
    Bench {
        #[arg(long)]
        out: PathBuf,
        #[arg(long)]
        figures: Vec<String>,
        #[arg(long)]
        rounds: u32,
    },
    /// Real programs
    Workloads {
        #[arg(long)]
        out: PathBuf,
        #[arg(long)]
        workloads: Vec<String>,
        #[arg(long)]
        rounds: u32,
    },
}

pub fn run(args: &Args) -> Result<()> {
    let (Job::Demo { out } | Job::Bench { out, .. } | Job::Workloads { out, .. }) = &args.job;
    started(out)?;
    match &args.job {
        Job::Demo { out } => demo::run(out),
        Job::Bench { out, figures, rounds } => bench::run(out, figures, *rounds),
        Job::Workloads { out, workloads, rounds } => workloads::run(out, workloads, *rounds),
    }
}

/// Says how far things are; the host puts the time in front.
fn say(text: &str) {
    eprintln!("{text}");
}

/// Runs a program that either works or tells why not.
fn call(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|e| format!("cannot run {program}: {e}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!(
            "{program} {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}
