// SPDX-License-Identifier: GPL-2.0-only
//! Deterministic simulation testing of the engine: `znsage sim torture`.
//!
//! From one seed everything is drawn: the shape of the device, the settings,
//! the load, which errors there are and how often, how late commands complete.
//! The engine is driven step by step as the kernel module drives it, under a
//! kernel that swaps pages, and a user of the raw disk. What every page must
//! hold is known all the time, and whatever the engine says is compared with
//! that. A seed gives the same run on every machine.

mod actors;
mod bio;
mod campaign;
mod chunks;
mod counts;
mod draw;
mod kernel;
mod media;
mod model;
mod module;
mod pages;
mod run;
mod seed;
mod state;
mod types;

pub use campaign::{Campaign, Summary};
pub use counts::Counts;
pub use seed::{replay, run, under_way};
pub use types::{Failure, Outcome, Sabotage, Trace};
