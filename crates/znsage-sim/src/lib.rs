// SPDX-License-Identifier: GPL-2.0-only
//! Swap on zoned and conventional SSDs in virtual time.
//!
//! A run puts a *system* (how pages are swapped) between a *workload* (who
//! touches which page) and a *device*. Time is virtual and counted in integer
//! nanoseconds ([`time::Ns`]); the same seed gives the same result, bit for
//! bit, on every machine.
//!
//! Modules form layers; each imports only from earlier ones in this list:
//!
//! 1. [`time`], [`rng`], [`stats`], `counters`, [`event`]
//! 2. [`device`], [`host`]
//! 3. [`spec`], [`trace`]
//! 4. [`workload`], [`system`]
//! 5. [`sim`], [`mod@result`], [`course`], [`mod@run`]: one run
//! 6. [`sweep`]: many runs; [`alone`]: a device without a host; [`calibrate`]
//! 7. [`cli`]: the command
//!
//! Files of a directory form layers too: the types they share are in a
//! `types.rs` or `state.rs` below them.

#![forbid(unsafe_code)]

pub mod alone;
pub mod calibrate;
pub mod cli;
pub mod contents;
mod counters;
pub mod course;
pub mod device;
pub mod event;
pub mod host;
pub mod result;
pub mod rng;
pub mod run;
pub mod scale;
pub mod sim;
pub mod spec;
pub mod stats;
pub mod sweep;
pub mod system;
pub mod time;
pub mod trace;
pub mod workload;

pub use result::RunResult;
pub use run::{check, run, run_watched, RunError};
pub use spec::Spec;
