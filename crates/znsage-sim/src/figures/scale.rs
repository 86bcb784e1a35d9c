// SPDX-License-Identifier: GPL-2.0-only
//! How large the simulated devices and memories are.
//!
//! Published devices have 1 TB and more, and are written several times before
//! anything is measured. Write amplification depends on the number of zones
//! and on how full they are, not on their size, as long as a zone has many
//! pages. So zones are small here, and operations on a whole zone are shorter
//! in proportion.

use crate::spec::{SystemKind, WorkloadKind};
use crate::Spec;

/// A scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// Its name.
    pub name: &'static str,
    /// Zones of a device.
    pub zones: u64,
    /// MiB of a zone on the ZN540, whose real ones have 1077.
    pub zone_mib: u64,
    /// Memory of the workload.
    pub memory_mib: u64,
    /// Swap-out before measuring, in device writes.
    pub warmup: f64,
    /// ... and while measuring.
    pub measure: f64,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// Times of a reset of a ZN540's zone, as `devices/zn540.toml` has them:
/// parts that are written, microseconds.
const ZN540_RESET: [(f64, f64); 6] = [
    (0.0, 1610.0),
    (0.0625, 5160.0),
    (0.125, 6050.0),
    (0.25, 7880.0),
    (0.5, 11320.0),
    (1.0, 15810.0),
];
const ZN540_ZONE_MIB: f64 = 1077.0;

impl Scale {
    /// The scale of the published figures.
    pub fn full() -> Scale {
        Scale {
            name: "full",
            zones: 512,
            zone_mib: 8,
            memory_mib: 32,
            warmup: 5.0,
            measure: 1.0,
            seed: 1,
        }
    }

    /// For trying things: values are off, mostly on nearly full devices.
    pub fn quick() -> Scale {
        Scale {
            name: "quick",
            zones: 128,
            zone_mib: 4,
            memory_mib: 16,
            warmup: 1.0,
            measure: 0.5,
            ..Scale::full()
        }
    }

    /// Bytes of a device.
    pub fn bytes(&self) -> u64 {
        (self.zones * self.zone_mib) << 20
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
        spec.device_set = self.zone_size(device);
        spec
    }

    /// Settings that shrink a device's zones.
    fn zone_size(&self, device: &str) -> Vec<(String, String)> {
        let set = |key: &str, value: String| (format!("zoned.{key}"), value);
        match device {
            "zn540" => {
                let smaller = self.zone_mib as f64 / ZN540_ZONE_MIB;
                let points =
                    ZN540_RESET.map(|(part, us)| format!("[{part:?}, {:?}]", us * smaller));
                vec![
                    set("zone_capacity", format!("{} MiB", self.zone_mib)),
                    set("reset_us", format!("[{}]", points.join(", "))),
                ]
            }
            // Whole write units of 192 KiB. The erase stays: it is one erase
            // of one die, however much of it a zone is; a zone is a twelfth of
            // the real one, and so is its erase.
            "hynix" => {
                let kib = self.zone_mib * 1024 / 192 * 192;
                let us = 3000 * kib / (96 * 1024);
                vec![
                    set("zone_size", format!("{kib} KiB")),
                    set("zone_capacity", format!("{kib} KiB")),
                    set("reset_us", format!("[[0, 1], [1, {us}]]")),
                    ("media.erase_us".into(), us.to_string()),
                ]
            }
            d if d.starts_with("zns-plus") => {
                let us = 3000 * self.zone_mib / 128;
                vec![
                    set("zone_size", format!("{} MiB", self.zone_mib)),
                    set("zone_capacity", format!("{} MiB", self.zone_mib)),
                    set("reset_us", format!("[[0, 1], [1, {us}]]")),
                    ("media.erase_us".into(), us.to_string()),
                ]
            }
            _ => vec![],
        }
    }

    /// For the page.
    pub fn text(&self) -> String {
        format!(
            "Scale \"{}\": devices of {} GiB in {} zones of {} MiB, {} MiB of memory, seed {}. \
             Before anything is measured, {} times the device's size is swapped out, then {} times \
             while it is measured.",
            self.name,
            self.bytes() as f64 / (1u64 << 30) as f64,
            self.zones,
            self.zone_mib,
            self.memory_mib,
            self.seed,
            self.warmup,
            self.measure
        )
    }
}
