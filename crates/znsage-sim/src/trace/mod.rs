// SPDX-License-Identifier: GPL-2.0-only
//! Traces of the requests to a swap area. docs/trace-format.md describes the
//! format; `znsage bench --trace` writes it.

mod file;
mod survey;

pub use file::{Line, Op, Reader, Record, TraceError, Writer, HEADER, MAX_CPUS, MAX_TIME};
pub use survey::{survey, Needs};
