// SPDX-License-Identifier: GPL-2.0-only
//! Traces of the requests to a swap area, which `znsage bench --trace` and `trace/record`
//! write, and recordings of the pages that a program touches, by `trace/pages`.
//! docs/dev/trace-format.md describes both formats.

mod accesses;
mod file;
mod import;
mod survey;

pub use accesses::Accesses;
pub use file::{Line, Op, Reader, Record, TraceError, Writer, HEADER, MAX_CPUS, MAX_TIME};
pub use import::{import, Choice, Import};
pub use survey::{survey, Needs};
