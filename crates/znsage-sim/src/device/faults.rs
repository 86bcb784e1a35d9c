// SPDX-License-Identifier: GPL-2.0-only
//! Faults on purpose, drawn from a seed: a run with them can be repeated.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::time::Ns;

/// How often what goes wrong, in a million commands of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// Writes and appends that fail. The write pointer may have moved.
    pub append: u32,
    /// Reads that fail, once.
    pub read: u32,
    /// Resets that fail; the zone stays as it was.
    pub reset: u32,
    /// Finishes that fail; the zone stays as it was.
    pub finish: u32,
    /// Writes, appends, resets and finishes that find the zone read-only.
    pub read_only: u32,
    /// Commands of any kind that find the zone offline.
    pub offline: u32,
    /// Commands that complete late, and so may pass others.
    pub delay: u32,
    /// They are late by up to this.
    pub delay_max: Ns,
}

/// A plan at work.
#[derive(Clone, Debug)]
pub(super) struct Faults {
    plan: FaultPlan,
    rng: Pcg64Mcg,
}

/// What a command meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Fine,
    Media,
    ReadOnly,
    Offline,
}

/// What kind of command asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    Write,
    Read,
    Reset,
    Finish,
}

impl Faults {
    pub fn new(plan: FaultPlan, seed: u64) -> Faults {
        Faults { plan, rng: Pcg64Mcg::seed_from_u64(seed) }
    }

    fn strikes(&mut self, per_million: u32) -> bool {
        per_million != 0 && self.rng.random_range(0..1_000_000) < per_million
    }

    pub fn fate(&mut self, asks: Asks) -> Fate {
        let media = match asks {
            Asks::Write => self.plan.append,
            Asks::Read => self.plan.read,
            Asks::Reset => self.plan.reset,
            Asks::Finish => self.plan.finish,
        };
        if self.strikes(self.plan.offline) {
            Fate::Offline
        } else if asks != Asks::Read && self.strikes(self.plan.read_only) {
            Fate::ReadOnly
        } else if self.strikes(media) {
            Fate::Media
        } else {
            Fate::Fine
        }
    }

    /// By how much a command is late.
    pub fn delay(&mut self) -> Ns {
        if self.plan.delay_max != 0 && self.strikes(self.plan.delay) {
            return self.rng.random_range(1..=self.plan.delay_max);
        }
        0
    }

    /// How many of `units` a failed write has written.
    pub fn written(&mut self, units: u32) -> u32 {
        self.rng.random_range(0..=units)
    }
}
