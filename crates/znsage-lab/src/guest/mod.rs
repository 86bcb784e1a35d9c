// SPDX-License-Identifier: GPL-2.0-only
//! The guest's part, run by root in the virtual machine. It reports progress on
//! standard error; the host adds the time.

mod bench;
mod bound;
mod compress;
mod density;
mod latency;
mod native;
mod nvme_tcp;
mod program;
mod ssd;
mod swap;
mod vmstat;
mod work;
mod workloads;
mod zram;

use std::path::PathBuf;
use std::process::{Child, Command};

use crate::model::System;
use crate::result::{Context, Result};
use crate::vm::started;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    job: Job,
}

#[derive(clap::Args)]
struct Wanted {
    /// Directory for the results
    #[arg(long)]
    out: PathBuf,
    #[arg(long)]
    figures: Vec<String>,
    #[arg(long)]
    rounds: u32,
    #[arg(long)]
    busy: u32,
}

/// Loops that use the CPU, until it is dropped.
struct Busy(Option<Child>);

impl Busy {
    fn new(loops: u32) -> Result<Busy> {
        let mut command = Command::new("stress-ng");
        command.args(["--quiet", "--cpu", &loops.to_string()]);
        Ok(Busy(match loops {
            0 => None,
            _ => Some(command.spawn().context("stress-ng")?),
        }))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // It ends its loops.
            let _ = Command::new("kill").arg(child.id().to_string()).status();
            let _ = child.wait();
        }
    }
}

#[derive(clap::Subcommand)]
enum Job {
    /// Measure what the figures need
    Bench(Wanted),
    /// Measure stock swap and znsage on devices with latency
    Latency(Wanted),
    /// Measure one system on a device in memory
    Native {
        #[arg(long)]
        out: PathBuf,
        #[arg(long)]
        system: System,
        #[arg(long)]
        full: Option<u64>,
    },
    /// Measure one system on a modelled SSD
    Ssd {
        #[arg(long)]
        out: PathBuf,
        #[command(flatten)]
        turn: crate::ssd::Turn,
    },
    /// Measure how many idle processes one system bears on a modelled SSD
    Density {
        #[arg(long)]
        out: PathBuf,
        #[command(flatten)]
        density: density::Args,
    },
    /// One of those processes
    Idle {
        #[arg(long)]
        seed: u64,
    },
    /// Run real programs
    Workloads {
        #[arg(long)]
        out: PathBuf,
        #[arg(long)]
        workloads: Vec<String>,
        #[arg(long)]
        systems: Vec<String>,
        #[arg(long)]
        rounds: u32,
    },
}

pub fn run(args: &Args) -> Result<()> {
    started(match &args.job {
        Job::Idle { seed } => return density::idle(*seed),
        Job::Density { out, .. }
        | Job::Native { out, .. }
        | Job::Ssd { out, .. }
        | Job::Workloads { out, .. } => out,
        Job::Bench(wanted) | Job::Latency(wanted) => &wanted.out,
    })?;
    match &args.job {
        Job::Bench(Wanted { out, figures, rounds, busy }) => {
            let _busy = Busy::new(*busy)?;
            bench::run(out, figures, *rounds)
        }
        Job::Latency(Wanted { out, figures, rounds, busy }) => {
            let _busy = Busy::new(*busy)?;
            latency::run(out, figures, *rounds)
        }
        Job::Density { out, density } => density::run(out, density),
        Job::Idle { .. } => Ok(()),
        Job::Native { out, system, full } => native::run(out, *system, *full),
        Job::Ssd { out, turn } => ssd::run(out, turn),
        Job::Workloads { out, workloads, systems, rounds } => {
            workloads::run(out, workloads, systems, *rounds)
        }
    }
}
