// SPDX-License-Identifier: GPL-2.0-only
//! The engine of znsage (`engine/`, portable C) for Rust: tests and the
//! simulator drive it as the kernel module does.
//!
//! [`Engine`] is a thin safe wrapper: each method calls the C function of the same name
//! and allocates nothing. The engine hands out values that cannot be copied (a chunk to
//! append, a zone to reset), and the call that reports the end of one takes it back. So
//! the compiler enforces the rules of engine.h: a chunk has one owner, an append ends
//! once.
//!
//! What its hosts decide as the module does is here, too: `driver.rs`.
//!
//! All unsafe code of the engine's users is here.

mod callbacks;
mod config;
mod contents;
mod driver;
mod engine;
mod handed;
pub mod last_words;
mod source;
mod sys;

pub use config::{Config, Policy, Refusal, Victim};
pub use driver::Part;
pub use engine::{Engine, Violation, ZoneInfo};
pub use handed::{
    Added, Append, AppendEnd, Ended, Failed, Filled, GcRead, Look, Oddity, Op, Read, ReadHold,
    ZoneOp,
};
pub use sys::{znsage_page as PageOwner, zse_entry as Entry, zse_stats as Stats};
pub use sys::{zse_stream_info as StreamInfo, NONE};
pub use sys::{
    ZSE_DEPTH as DEPTH, ZSE_LEAST_PART as LEAST_PART, ZSE_MAX_BLOCKS as MAX_BLOCKS,
    ZSE_MAX_ENTRIES as MAX_ENTRIES,
};
