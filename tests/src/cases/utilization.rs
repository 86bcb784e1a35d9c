// SPDX-License-Identifier: GPL-2.0-only
//! Random writes at a given utilization, while GC rewrites the device several times: every page
//! is right, and the WAF is within the bound of log cleaning.

use super::devices::MAIN;
use crate::device::Device;
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::outcome::Outcome;

crate::cases![utilization:
    percent_20 (full), percent_40 (full), percent_60 (full), percent_80 (full),
    percent_90 (full)];

/// Tolerance of the mean utilization, as a part of 1.
const NEAR: f64 = 0.04;
/// Tolerance upwards while swap is less than half full: until then the kernel keeps the slots
/// of pages that are in memory, 20 of 128 MiB.
const FEW_FREED: f64 = 0.16;

fn at(percent: u32, over_provisioning: &str, rewrites: f64, most_waf: f64) -> Outcome {
    let options = ["--over-provisioning", over_provisioning];
    let device = Device::on(&guest::device(MAIN)?, &options)?;
    // Pages of readahead use both memory and a slot: a device this small would be fuller than
    // asked for, or too full.
    let bench = guest::without_read_ahead(|| {
        device.bench(&[
            "--utilization",
            &percent.to_string(),
            "--rewrites",
            &rewrites.to_string(),
            "--seconds",
            &(120 * guest::slowness()).to_string(),
            // The first accesses free the slots of pages that were written twice during the
            // fill.
            "--warmup",
            "3",
            "--write-ratio",
            "0.9",
        ])
    })?;
    let (waf, done, used) = (bench.waf(), bench.rewrites(), bench.utilization());
    print!("{:.1} % full, WAF {waf:.2} ... ", 100.0 * used);
    ensure!(done >= rewrites, "the device was written {done:.2} times, not {rewrites}");
    let above = used - f64::from(percent) / 100.0;
    let most_above = if percent < 40 { FEW_FREED } else { NEAR };
    ensure!(-NEAR < above && above < most_above, "utilization was {used:.3}");
    ensure!(waf <= most_waf, "WAF {waf:.3}, at most {most_waf:.3} is allowed");
    ensure!(device.counter("zone_resets")? > 0, "no zone was reset");
    device.finish_sound()
}

fn percent_20(_: &mut Log) -> Outcome {
    at(20, "12", 1.1, 1.12)
}

fn percent_40(_: &mut Log) -> Outcome {
    at(40, "12", 1.5, 1.12)
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
