// SPDX-License-Identifier: GPL-2.0-only
//! Random writes at a utilization, with GC rewriting the device again and
//! again: every page right, no more written than log cleaning has to.

use super::devices::MAIN;
use crate::device::Device;
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::outcome::Outcome;

crate::cases![utilization: percent_20, percent_40, percent_60, percent_80, percent_90];

/// How far from the wanted utilization the accesses may be, of 1.
const NEAR: f64 = 0.03;

fn at(percent: u32, over_provisioning: &str, rewrites: f64, most_waf: f64) -> Outcome {
    let device = Device::on(&guest::device(MAIN)?, &["--over-provisioning", over_provisioning])?;
    let bench = device.bench(&[
        "--utilization",
        &percent.to_string(),
        "--rewrites",
        &rewrites.to_string(),
        "--seconds",
        "90",
        "--write-ratio",
        "0.9",
    ])?;
    let (waf, done, used) = (bench.waf(), bench.rewrites(), bench.utilization());
    ensure!(done >= rewrites, "the device was written {done:.2} times, not {rewrites}");
    ensure!((used - f64::from(percent) / 100.0).abs() < NEAR, "utilization was {used:.3}");
    ensure!(waf <= most_waf, "WAF {waf:.2}, at most {most_waf} is allowed");
    ensure!(device.counter("zone_resets")? > 0, "no zone was reset");
    device.finish_sound()
}

fn percent_20(_: &mut Log) -> Outcome {
    at(20, "12", 1.2, 1.12)
}

fn percent_40(_: &mut Log) -> Outcome {
    at(40, "12", 2.0, 1.12)
}

fn percent_60(_: &mut Log) -> Outcome {
    at(60, "12", 3.0, 1.48)
}

fn percent_80(_: &mut Log) -> Outcome {
    at(80, "12", 3.0, 2.7)
}

fn percent_90(_: &mut Log) -> Outcome {
    at(90, "7", 3.0, 5.2)
}
