// SPDX-License-Identifier: GPL-2.0-only
//! Deterministic simulation testing of the engine.
//!
//! A seed determines everything: the shape of the device, settings, load,
//! errors and their rates, delays of commands. The engine is driven step by
//! step as the kernel module drives it, by a kernel that swaps pages and a
//! user of the raw disk. A model knows what every page must hold and checks
//! each answer of the engine. A seed gives the same run on every machine.

mod actors;
mod bio;
mod campaign;
mod chunks;
pub mod cli;
mod content;
mod counts;
mod draw;
mod kernel;
mod media;
mod model;
mod module;
mod pages;
mod report;
mod run;
mod seed;
mod state;
mod types;

pub use campaign::{Campaign, Summary};
pub use counts::Counts;
pub use seed::{replay, run, under_way};
pub use types::{Failure, Outcome, Sabotage, Trace};
