// SPDX-License-Identifier: GPL-2.0-only
//! The cases, in the order in which they run: the basics come first.

mod block;
mod bpf;
mod command;
mod compress;
mod control;
mod conventional;
mod errors;
mod faults;
mod file;
mod filler;
mod full;
mod hibernation;
mod isolation;
mod kernel;
mod life;
mod lifecycle;
mod policy;
mod pressure;
mod privacy;
mod probe;
mod process;
mod refusals;
mod scsi;
mod shapes;
mod shortage;
mod statistics;
mod swapfile;
mod torture;
mod trace;
mod utilization;

use crate::devices;
use crate::runner::Case;

pub fn all() -> Vec<Case> {
    [
        lifecycle::CASES,
        utilization::CASES,
        trace::CASES,
        process::CASES,
        policy::CASES,
        bpf::CASES,
        isolation::CASES,
        block::CASES,
        shapes::CASES,
        scsi::CASES,
        conventional::CASES,
        life::CASES,
        file::CASES,
        swapfile::CASES,
        compress::CASES,
        filler::CASES,
        full::CASES,
        privacy::CASES,
        probe::CASES,
        statistics::CASES,
        command::CASES,
        control::CASES,
        errors::CASES,
        faults::CASES,
        shortage::CASES,
        pressure::CASES,
        hibernation::CASES,
        torture::CASES,
        refusals::CASES,
        kernel::CASES,
    ]
    .concat()
}
