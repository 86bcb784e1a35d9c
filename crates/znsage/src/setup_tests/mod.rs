// SPDX-License-Identifier: GPL-2.0-only
//! All commands but `bench` and `sim`, on a machine that behaves like a kernel with
//! the module, down to the errors. Most tests are cases in tests/cases.

mod cases;
mod generating;
mod life;
mod machine;
mod metrics;
mod pages;
mod printed;
mod probing;
pub mod schema;
mod settings;
mod undo;

pub use printed::{compare_json, compare_text};
