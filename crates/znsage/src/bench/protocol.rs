// SPDX-License-Identifier: GPL-2.0-only
//! What the two processes of a benchmark say to each other, a line of JSON
//! at a time. The parent stays outside of the memory limit and gives orders
//! on the worker's standard input; the worker answers on its output.

use serde::{Deserialize, Serialize};

use crate::cli::Pattern;

/// The first line to the worker.
#[derive(Debug, Serialize, Deserialize)]
pub struct Setup {
    /// File to write to in order to enter the cgroup.
    pub cgroup_procs: Option<String>,
    /// Room to map; what is filled of it is told by `Resize`.
    pub max_pages: u64,
    pub page_bytes: u64,
    pub threads: u32,
    pub seed: u64,
    pub huge_pages: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Order {
    /// Fill up to this number of pages, or give the last ones back.
    Resize {
        pages: u64,
    },
    Access {
        pattern: Pattern,
        write_ratio: f64,
        seconds: f64,
    },
    /// Read every page once.
    Verify,
    /// End the running phase early.
    Stop,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    Ready,
    /// Several times a second while a phase runs.
    Tick {
        ops: u64,
    },
    Corrupt {
        what: String,
    },
    Done(Outcome),
    /// The worker cannot go on.
    Failed {
        message: String,
    },
}

/// A phase that has ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    pub seconds: f64,
    /// Pages accessed.
    pub ops: u64,
    /// Of these, changed.
    pub writes: u64,
    pub corrupt: u64,
    pub latency_us: Option<Latency>,
}

/// From the first touch of a page until its first word was there, plus, if
/// it is written, the time of the first store. Verifying and rewriting the
/// page does not count.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Latency {
    pub mean: f64,
    pub p50: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub max: f64,
}
