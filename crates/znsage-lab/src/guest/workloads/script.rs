// SPDX-License-Identifier: GPL-2.0-only
//! The loads of bench/loads.py.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::group::Group;
use super::load::{Load, Meter, Outcome, Part};
use crate::guest::program::call;
use crate::result::{Context, Result};
use crate::workloads::model::{Metric, Setting, Sizes, Workload};
use crate::workloads::{LOADS, PYTHON};

/// Makes the load small: it then reads the interpreter and its modules, and does little else.
const SMALL: &str = "0.001";

pub struct Script {
    workload: Workload,
    sizes: Sizes,
    /// The result of the run in memory.
    digest: String,
}

/// What the program prints.
#[derive(Deserialize)]
struct Report {
    digest: serde_json::Value,
    #[serde(flatten)]
    values: BTreeMap<String, f64>,
}

impl Script {
    /// Runs the program once outside of any group. Within one, the kernel would drop its code
    /// and read it again and again from the host's files.
    pub fn new(workload: Workload) -> Result<Script> {
        call(PYTHON, &[LOADS, workload.name(), SMALL])?;
        Ok(Script { workload, sizes: Sizes::default(), digest: String::new() })
    }

    fn title(&self) -> &'static str {
        match self.workload {
            Workload::Stress => "stress-ng",
            Workload::List => "Python, a list",
            Workload::Flip => "Pillow flips an image",
            Workload::Bfs => "breadth-first search",
            _ => "pandas in forked processes",
        }
    }
}

impl Load for Script {
    fn parts(&self) -> Vec<Part> {
        let mut metrics = vec![Metric::new("time", "Time", "s")];
        if self.workload == Workload::Sandbox {
            metrics.push(Metric::new("median", "Wake-up and work, median", "us"));
            metrics.push(Metric::new("longest", "Wake-up and work, longest", "us"));
        }
        vec![Part { name: self.workload.name(), title: self.title(), metrics }]
    }

    fn measure(&mut self, setting: Setting) -> Result<Vec<Outcome>> {
        let name = self.workload.name();
        let group = Group::new(name)?;
        if let Some(limit) = self.sizes.limit(setting) {
            group.limit(limit)?;
        }
        let meter = Meter::start()?;
        let output = group.finish(group.command(PYTHON).args([LOADS, name]), name)?;
        let took = meter.seconds();
        let report: Report = serde_json::from_str(&output).context(name)?;
        let digest = report.digest.to_string();
        if setting == Setting::Memory {
            let memory_bytes = group.peak()?;
            self.sizes = Sizes { memory_bytes, limit_bytes: memory_bytes / 2 };
            self.digest = digest;
        } else if digest != self.digest {
            return Err(format!("{name}: {digest}, but {} in memory", self.digest));
        }
        let mut outcome = meter.stop([("time", took)], "the same result".to_string())?;
        outcome.values.extend(report.values);
        Ok(vec![outcome])
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }
}
