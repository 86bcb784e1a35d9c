// SPDX-License-Identifier: GPL-2.0-only
//! A program under test, and how its measurements are made.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use crate::files;
use crate::guest::swap::device;
use crate::guest::vmstat::Swapped;
use crate::result::Result;
use crate::workloads::model::{Metric, Run, Setting, Sizes};

/// One measurement.
pub struct Outcome {
    pub seconds: f64,
    pub pages_in: u64,
    pub pages_out: u64,
    pub bytes_written: u64,
    pub values: BTreeMap<String, f64>,
    pub verified: String,
}

/// A program, or a mix of its requests, and the values that are measured of it.
pub struct Part {
    pub name: &'static str,
    pub title: &'static str,
    pub metrics: Vec<Metric>,
}

/// A program that is started once and then measured in every setting.
pub trait Load {
    fn parts(&self) -> Vec<Part>;

    /// Measures each part. The setting's swap is on.
    fn measure(&mut self, setting: Setting) -> Result<Vec<Outcome>>;

    /// Known after the measurement in memory.
    fn sizes(&self) -> Sizes;
}

impl Outcome {
    /// Refuses an outcome in which a workload swapped in memory, or did not swap in one
    /// of the others.
    pub fn run(self, setting: Setting, round: u32) -> Result<Run> {
        let swapped = (self.pages_in > 0, self.pages_out > 0);
        match (setting, swapped) {
            (Setting::Memory, (false, false)) => (),
            (Setting::Memory, _) => return Err("it swapped where it should not".to_string()),
            (_, (true, true)) => (),
            _ => {
                return Err(format!(
                    "it did not swap on {} ({} pages in, {} out): its limit is too large",
                    setting.name(),
                    self.pages_in,
                    self.pages_out
                ))
            }
        }
        Ok(Run {
            setting,
            round,
            seconds: self.seconds,
            pages_swapped_in: self.pages_in,
            pages_swapped_out: self.pages_out,
            bytes_written: self.bytes_written,
            values: self.values,
            verified: self.verified,
        })
    }
}

/// Measures time, swapped pages and what the devices write.
pub struct Meter {
    start: Instant,
    swapped: Swapped,
    written: u64,
}

impl Meter {
    pub fn start() -> Result<Meter> {
        Ok(Meter { start: Instant::now(), swapped: Swapped::now()?, written: written()? })
    }

    pub fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    pub fn stop<const N: usize>(
        self,
        values: [(&str, f64); N],
        verified: String,
    ) -> Result<Outcome> {
        let seconds = self.seconds();
        let now = Swapped::now()?;
        Ok(Outcome {
            seconds,
            pages_in: now.pages_in - self.swapped.pages_in,
            pages_out: now.pages_out - self.swapped.pages_out,
            bytes_written: written()? - self.written,
            values: values.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
            verified,
        })
    }
}

/// Bytes that the swap devices have written since the boot.
fn written() -> Result<u64> {
    const FIELD: usize = 6;
    const SECTOR: u64 = 512;
    let mut sectors = 0;
    for name in ["CONV0", "ZNS0"] {
        let node = device(name)?;
        let path = Path::new("/sys/class/block").join(node.trim_start_matches("/dev/"));
        let stat = files::read(&path.join("stat"))?;
        let field = stat.split_whitespace().nth(FIELD).and_then(|n| n.parse::<u64>().ok());
        sectors += field.ok_or_else(|| format!("stat of {node} is {stat:?}"))?;
    }
    Ok(sectors * SECTOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(pages_in: u64, pages_out: u64) -> Outcome {
        Outcome {
            seconds: 1.0,
            pages_in,
            pages_out,
            bytes_written: 0,
            values: BTreeMap::new(),
            verified: String::new(),
        }
    }

    #[test]
    fn outcome_without_swapping_is_an_error() {
        assert!(outcome(5, 5).run(Setting::Znsage, 1).is_ok());
        assert!(outcome(0, 0).run(Setting::Memory, 1).is_ok());
        for (pages_in, pages_out) in [(0, 0), (0, 9), (9, 0)] {
            let failed = outcome(pages_in, pages_out).run(Setting::Stock, 1).unwrap_err();
            assert!(failed.contains("did not swap on stock swap"), "{failed}");
        }
        assert!(outcome(1, 0).run(Setting::Memory, 1).is_err());
    }
}
