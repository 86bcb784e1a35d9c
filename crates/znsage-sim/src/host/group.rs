// SPDX-License-Identifier: GPL-2.0-only
//! Memory of a cgroup: which frames are where.

use std::collections::VecDeque;

/// Pages of a reclaim batch: `SWAP_CLUSTER_MAX`.
pub const BATCH: usize = 32;

/// Memory of a cgroup.
pub(super) struct Group {
    pub(super) limit: u32,
    pub(super) free: Vec<u32>,
    pub(super) inactive: VecDeque<u32>,
    pub(super) active: VecDeque<u32>,
    /// Written and unmapped; the next reclaim frees them.
    pub(super) clean: VecDeque<u32>,
    /// Tasks that wait for a frame.
    pub(super) waiters: VecDeque<u32>,
    /// Evictions and activations, modulo 2^32: the clock of refault distances.
    pub(super) age: u32,
    /// Active pages for each inactive one.
    pub(super) ratio: usize,
    /// Pages under writeback.
    pub(super) writeback: u32,
}

impl Group {
    pub(super) fn new(first: u32, limit: u32) -> Self {
        // inactive_is_low(): the square root of ten times the gigabytes.
        let gigabytes = u64::from(limit) >> 18;
        let ratio = if gigabytes == 0 { 1 } else { (10 * gigabytes).isqrt() as usize };
        Group {
            limit,
            free: (first..first + limit).rev().collect(),
            inactive: VecDeque::with_capacity(limit as usize),
            active: VecDeque::new(),
            clean: VecDeque::new(),
            waiters: VecDeque::new(),
            age: 0,
            ratio,
            writeback: 0,
        }
    }
}
