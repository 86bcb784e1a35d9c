// SPDX-License-Identifier: GPL-2.0-only
//! `znsage probe`, with fio, on devices with few open zones: it leaves the device empty, and
//! `on` accepts what it recommends.

use std::fs;
use std::process::Stdio;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;

use super::devices::{LARGE, ONE_OPEN, TIGHT};
use crate::device::{znsage_json, Device};
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::outcome::{Context, Outcome};
use crate::zones;

crate::cases![probe: four_open (full), one_open (full), interrupted];

const PROFILE: &str = "/run/znsage-suite.conf";

fn settings_are_taken(device: &str) -> Outcome {
    let backing = guest::device(device)?;
    let found = znsage_json(&["probe", "--yes", "--quick", "--profile", PROFILE, &backing])?;
    zones::all_empty(&backing)?;
    for series in ["request", "zones"] {
        let points = found["parallelism"].as_array().ok_or("no such table")?;
        let fast = |p: &&serde_json::Value| {
            p["varies"] == series && p["latency_us"]["p99"].as_f64() > Some(0.0)
        };
        ensure!(points.iter().any(|p| fast(&p)), "{series}: {found}");
    }
    let device = Device::on(&backing, &["--profile", PROFILE])?;
    let chunk = found["recommended"][0]["value"].as_str().ok_or("nothing is recommended")?;
    let kib = device.counter("chunk_bytes")? / 1024;
    ensure!(chunk == format!("{kib}K"), "a chunk of {chunk} became {kib} KiB");
    fs::remove_file(PROFILE).context(PROFILE)?;
    device.finish_sound()
}

fn four_open(_: &mut Log) -> Outcome {
    settings_are_taken(TIGHT)
}

fn one_open(_: &mut Log) -> Outcome {
    settings_are_taken(ONE_OPEN)
}

/// While fio runs, the device is busy for others; after a signal it is empty.
fn interrupted(_: &mut Log) -> Outcome {
    let backing = guest::device(LARGE)?;
    let mut probe = guest::command(&["znsage", "probe", "--yes", &backing]);
    let probe = probe.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().context("znsage")?;
    let written = guest::eventually(30.0, || zones::all_empty(&backing).is_err());
    let other = guest::run(&["znsage", "on", "--force", &backing])?;
    kill(Pid::from_raw(probe.id() as i32), Signal::SIGTERM).context("interrupt it")?;
    let ran = guest::Ran::from(probe.wait_with_output().context("wait for it")?);
    ensure!(written, "nothing was written: {}", ran.said());
    ensure!(other.status == 15 && other.stderr.contains("in use"), "on: {}", other.said());
    ensure!(ran.stderr.contains("interrupted"), "it says: {}", ran.said());
    zones::all_empty(&backing)
}
