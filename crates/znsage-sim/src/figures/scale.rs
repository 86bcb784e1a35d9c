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
}

impl Scale {
    /// The scale of the published figures.
    pub fn full() -> Scale {
        Scale { name: "full", mib: 4096, memory_mib: 32, warmup: 5.0, measure: 1.0, seed: 1 }
    }

    /// For trying things: values are off, mostly on nearly full devices.
    pub fn quick() -> Scale {
        Scale {
            name: "quick",
            mib: 2048,
            memory_mib: 16,
            warmup: 2.0,
            measure: 0.5,
            ..Scale::full()
        }
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
        format!(
            "Scale \"{}\": devices of {} GiB, {} MiB of memory, seed {}. Devices keep their \
             number of zones, or have as many of 4 MiB as fit. Before anything is measured, {} \
             times the device's size is swapped out, then {} times while it is measured.",
            self.name,
            self.bytes() as f64 / (1u64 << 30) as f64,
            self.memory_mib,
            self.seed,
            self.warmup,
            self.measure
        )
    }
}
