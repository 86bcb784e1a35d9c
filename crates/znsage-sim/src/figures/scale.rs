// SPDX-License-Identifier: GPL-2.0-only
//! How large the simulated devices and memories are.
//!
//! Published devices have 1 TB and more, and are written several times before
//! anything is measured. So they are scaled, as every run is (`crate::scale`).

use crate::spec::{SystemKind, WorkloadKind};
use crate::Spec;

/// A scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// Its name.
    pub name: &'static str,
    /// MiB of a device.
    pub mib: u64,
    /// Memory of the workload.
    pub memory_mib: u64,
    /// Swap-out before measuring, in device writes.
    pub warmup: f64,
    /// ... and while measuring.
    pub measure: f64,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Everything runs with so many seeds, this one and the next ones.
    pub seeds: u32,
}

impl Scale {
    /// The scale of the published figures.
    pub fn full() -> Scale {
        Scale {
            name: "full",
            mib: 4096,
            memory_mib: 32,
            warmup: 5.0,
            measure: 1.0,
            seed: 1,
            seeds: 3,
        }
    }

    /// For trying things: one seed, and less is written before the measurement. Devices
    /// have as many zones as in full: with fewer, those that are open or kept free weigh
    /// more, and systems would come out in another order.
    pub fn quick() -> Scale {
        Scale { name: "quick", warmup: 2.0, measure: 0.5, seeds: 1, ..Scale::full() }
    }

    /// The scale with each of its seeds alone.
    pub fn each_seed(&self) -> impl Iterator<Item = Scale> + '_ {
        (0..self.seeds).map(|i| Scale {
            seed: self.seed.wrapping_add(i.into()),
            seeds: 1,
            ..self.clone()
        })
    }

    /// Bytes of a device.
    pub fn bytes(&self) -> u64 {
        self.mib << 20
    }

    /// A run on a device of this scale.
    pub fn spec(
        &self,
        system: SystemKind,
        device: &str,
        workload: WorkloadKind,
        utilization: f64,
    ) -> Spec {
        let mut spec =
            Spec { system, device: device.into(), workload, utilization, ..Spec::default() };
        spec.size = Some(self.bytes());
        spec.seed = self.seed;
        spec.host.memory = self.memory_mib << 20;
        (spec.run.warmup, spec.run.measure) = (self.warmup, self.measure);
        spec
    }

    /// For the page.
    pub fn text(&self) -> String {
        let seeds = match self.seeds {
            1 => format!("seed {}", self.seed),
            n => format!(
                "{n} seeds from {} on: values are their means, error bars and ranges 95 % \
                 intervals of the means (Student's t)",
                self.seed
            ),
        };
        format!(
            "Scale \"{}\": devices of {} GiB, {} MiB of memory, {}. Devices keep their \
             number of zones, or have as many of 4 MiB as fit. Before anything is measured, {} \
             times the device's size is swapped out, then {} times while it is measured.",
            self.name,
            self.bytes() as f64 / (1u64 << 30) as f64,
            self.memory_mib,
            seeds,
            self.warmup,
            self.measure
        )
    }
}
