// SPDX-License-Identifier: GPL-2.0-only
//! A program under test, and how its measurements are made.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use crate::files;
use crate::result::Result;
use crate::workloads::model::{Metric, Run, Setting, Sizes};

/// One measurement.
pub struct Outcome {
    pub seconds: f64,
    pub pages_in: u64,
    pub pages_out: u64,
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
            values: self.values,
            verified: self.verified,
        })
    }
}

/// Measures time and swapped pages.
pub struct Meter {
    start: Instant,
    pages: (u64, u64),
}

impl Meter {
    pub fn start() -> Result<Meter> {
        Ok(Meter { start: Instant::now(), pages: swapped()? })
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
        let now = swapped()?;
        Ok(Outcome {
            seconds,
            pages_in: now.0 - self.pages.0,
            pages_out: now.1 - self.pages.1,
            values: values.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
            verified,
        })
    }
}

/// Pages swapped in and out since the boot.
fn swapped() -> Result<(u64, u64)> {
    let text = files::read(Path::new("/proc/vmstat"))?;
    let count = |name: &str| {
        let mut values = text.lines().filter_map(|l| l.strip_prefix(name)?.trim().parse().ok());
        values.next().ok_or_else(|| format!("/proc/vmstat has no {name}"))
    };
    Ok((count("pswpin ")?, count("pswpout ")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(pages_in: u64, pages_out: u64) -> Outcome {
        Outcome {
            seconds: 1.0,
            pages_in,
            pages_out,
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
