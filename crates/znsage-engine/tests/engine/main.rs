// SPDX-License-Identifier: GPL-2.0-only
//! Tests of the engine against a reference model.
//!
//! `host` drives the engine as the module does and knows, after every step,
//! what must be true; `device` is a zoned device that refuses what a real one
//! would. `property` lets chance choose the steps, `directed` walks through
//! the cases that deserve a name.

mod batch;
mod check;
mod device;
mod directed;
mod held_back;
mod host;
mod options;
mod outages;
mod property;
mod recover;
mod refusals;
mod rng;
mod shared;
mod waf;
mod window;
