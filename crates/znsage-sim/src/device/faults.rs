// SPDX-License-Identifier: GPL-2.0-only
//! Injected faults, drawn from a seed so that runs repeat.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::time::Ns;

/// Fault rates per million commands of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// Writes and appends that fail. The write pointer may have moved.
    pub append: u32,
    /// Reads that fail; a retry may succeed.
    pub read: u32,
    /// Resets that fail; the zone stays as it was.
    pub reset: u32,
    /// Finishes that fail; the zone stays as it was.
    pub finish: u32,
    /// Writes, appends, resets and finishes that find the zone read-only.
    pub read_only: u32,
    /// Commands of any kind that find the zone offline.
    pub offline: u32,
    /// Commands that complete late, so others may overtake them.
    pub delay: u32,
    /// Maximum delay.
    pub delay_max: Ns,
}

/// A plan and its generator.
#[derive(Clone, Debug)]
pub(super) struct Faults {
    plan: FaultPlan,
    rng: Pcg64Mcg,
}

/// The outcome drawn for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Fine,
    Media,
    ReadOnly,
    Offline,
}

/// The kind of command.
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

    /// The delay of a command.
    pub fn delay(&mut self) -> Ns {
        if self.plan.delay_max != 0 && self.strikes(self.plan.delay) {
            return self.rng.random_range(1..=self.plan.delay_max);
        }
        0
    }

    /// How many of `units` a failed write wrote.
    pub fn written(&mut self, units: u32) -> u32 {
        self.rng.random_range(0..=units)
    }
}
