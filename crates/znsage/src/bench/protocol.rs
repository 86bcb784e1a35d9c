// SPDX-License-Identifier: GPL-2.0-only
//! The protocol of the two processes of a benchmark: lines of JSON. The parent sends
//! orders to the worker's standard input; the worker replies on its output.

use serde::{Deserialize, Serialize};

use crate::cli::Pattern;

/// The first line to the worker.
#[derive(Debug, Serialize, Deserialize)]
pub struct Setup {
    /// The file that a process writes to enter the cgroup.
    pub cgroup_procs: Option<String>,
    /// Pages to map. `Resize` says how many to fill.
    pub max_pages: u64,
    pub page_bytes: u64,
    pub threads: u32,
    pub seed: u64,
    pub huge_pages: bool,
    /// The share of each page that compression saves, roughly.
    pub compressible: f64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Order {
    /// Fill up to this number of pages, or free the last ones.
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
    /// Sent several times a second during a phase.
    Tick {
        ops: u64,
    },
    Corrupt {
        what: String,
    },
    Done(Outcome),
    /// The worker cannot continue.
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
    /// Pages written.
    pub writes: u64,
    pub corrupt: u64,
    pub latency_us: Option<Latency>,
}

/// Time from the first touch of a page until its first word arrives, plus the first
/// store if it is written. Verifying and rewriting do not count.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Latency {
    pub mean: f64,
    pub p50: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub max: f64,
}
