// SPDX-License-Identifier: GPL-2.0-only
//! Many runs from one file: the cross product of lists, on all cores or
//! several machines, into tables.
//!
//! [`Sweep`] is the file, expanded into points. [`Store`] keeps what is
//! finished, a line a run, so that a sweep can stop and go on at any time.
//! [`Shard`] is one machine's part of the points. [`drive()`] runs what is left
//! of them on the threads of [`crate::pool`], [`merge`] joins parts. [`table`],
//! [`parquet`], [`report`] and [`output`] are what comes out, the same bytes whatever the
//! number of threads, shards and interruptions.

mod drive;
mod error;
mod file;
pub mod merge;
pub mod output;
pub mod parquet;
pub mod report;
mod shard;
mod store;
pub mod table;

pub use drive::{default_dir, drive, Driven, Plan, Progress, Stage};
pub use error::SweepError;
pub use file::{Point, Sweep};
pub use shard::Shard;
pub use store::{Entry, Header, Outcome, Store, MAX_POINTS};
