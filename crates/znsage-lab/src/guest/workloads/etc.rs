// SPDX-License-Identifier: GPL-2.0-only
//! The page accesses of Facebook's ETC pool: `znsage bench --pattern etc`.

use std::path::{Path, PathBuf};

use super::load::{Load, Meter, Outcome, Part};
use crate::guest::work;
use crate::result::Result;
use crate::workloads::model::{Metric, Setting, Sizes, ZRAM_MEMORY};

const SIZES: Sizes = Sizes { memory_bytes: 128 << 20, limit_bytes: 64 << 20 };

/// Seconds of the warm-up and of the measurement.
const WARMUP: u32 = 4;
const SECONDS: u32 = 15;

pub struct Etc {
    raw: PathBuf,
    runs: u32,
}

impl Etc {
    pub fn new(raw: &Path) -> Etc {
        Etc { raw: raw.to_path_buf(), runs: 0 }
    }
}

fn arguments(setting: Setting) -> Vec<String> {
    let limit = SIZES.limit(setting).map_or("none".to_string(), |bytes| bytes.to_string());
    let mut arguments = vec![
        "--pattern=etc".to_string(),
        format!("--size={}", SIZES.memory_bytes),
        format!("--memory-limit={limit}"),
        "--threads=4".to_string(),
        "--seed=1".to_string(),
        format!("--warmup={WARMUP}"),
        format!("--seconds={SECONDS}"),
        "--verify".to_string(),
    ];
    arguments.extend((setting == Setting::Zswap).then(|| format!("--zswap-limit={ZRAM_MEMORY}")));
    arguments
}

impl Load for Etc {
    fn parts(&self) -> Vec<Part> {
        let metrics = vec![
            Metric::new("pages", "Accesses", "pages/s"),
            Metric::new("p50", "Access, median", "us"),
            Metric::new("p99", "Access, 99 %", "us"),
        ];
        vec![Part { name: "etc", title: "ETC mix, znsage bench", metrics }]
    }

    fn measure(&mut self, setting: Setting) -> Result<Vec<Outcome>> {
        self.runs += 1;
        let samples = self.raw.join(format!("etc-{}.samples", self.runs));
        let meter = Meter::start()?;
        let report = work::report(setting.name(), &arguments(setting), &samples)?;
        if report.corrupt_pages > 0 {
            return Err(format!("{} corrupt pages", report.corrupt_pages));
        }
        let found = report.phases.iter().find(|p| p.phase == "etc");
        let phase = found.ok_or("znsage bench has no phase etc")?;
        let latency = phase.latency_us.ok_or("znsage bench tells no latency")?;
        let values = [("pages", phase.ops_per_s), ("p50", latency.p50), ("p99", latency.p99)];
        let others = report.phases.iter().filter(|p| p.phase != "fill");
        let verified: u64 = others.map(|p| p.ops).sum();
        Ok(vec![meter.stop(values, format!("{verified} pages verified"))?])
    }

    fn sizes(&self) -> Sizes {
        SIZES
    }
}
