// SPDX-License-Identifier: GPL-2.0-only
//! Tests of the engine against a reference model.
//!
//! `host` drives the engine as the module does and knows what must hold after every
//! step; `device` is a zoned device that refuses what a real one would. `property`
//! takes random steps; the other files have named cases.

mod batch;
mod check;
mod device;
mod directed;
mod held_back;
mod host;
mod lost;
mod options;
mod outages;
mod packed;
mod property;
mod recover;
mod refusals;
mod rng;
mod shared;
mod waf;
mod window;
