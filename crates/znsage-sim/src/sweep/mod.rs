// SPDX-License-Identifier: GPL-2.0-only
//! Many runs from one file, kept by content.
//!
//! [`Sweep`] is the file, expanded into points. [`Runs`] is a directory of results, a file a
//! run, named by all that the result depends on. [`drive()`] runs the points that it lacks.

mod drive;
mod file;
mod runs;

pub use drive::{drive, Driven};
pub use file::{Point, Sweep, SweepError};
pub use runs::{Runs, RunsError, Step, Stored};
