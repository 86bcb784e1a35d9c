// SPDX-License-Identifier: GPL-2.0-only
//! The commands but `bench` and `sim` against a machine that behaves like a
//! kernel with the module, down to the errors.

mod afterwards;
mod diagnosis;
mod generating;
mod listing;
mod machine;
mod metrics;
mod printed;
mod probing;
mod refusals;
mod schema;
mod sections;
mod setting;
mod turning_on;

pub use printed::{compare_json, compare_text};
