// SPDX-License-Identifier: GPL-2.0-only
//! The guard: a process for each device whose swap area promises more than the
//! device certainly holds, or that has a filler.
//!
//! While the kernel sees a free slot, it goes on writing pages there and does not
//! kill. So no slot may be free that the device cannot fill. The guard occupies slots
//! in time, with pages of zeros, which take no block of the device ([`held`],
//! [`plan`]), and turns the filler off before the last other slot is used ([`worker`]).

mod held;
mod plan;
pub mod worker;

use serde_json::json;

use crate::counters;
use crate::error::{reason, Error, Kind, Result};
use crate::swaps;
use crate::sys::{require_root, Sys};

#[derive(Debug)]
pub struct Report {
    name: String,
}

/// `znsage guard`.
pub fn run(sys: &dyn Sys, device: &str) -> Result<Report> {
    require_root(sys, "guard a swap device")?;
    let name = counters::find(sys, device)?.name;
    if !is_needed(sys, &name) {
        return Err(Error::new(Kind::Usage, format!("{name} needs no guard"))
            .hint("it is not overcommitted (--compress with a large --size), and has no filler"));
    }
    start(sys, &name)?;
    Ok(Report { name })
}

impl Report {
    pub fn to_json(&self) -> serde_json::Value {
        json!({"version": 1, "name": self.name})
    }

    pub fn to_text(&self) -> String {
        format!("{} is guarded\n", self.name)
    }
}

/// Does the swap area have more slots than the device has room for incompressible pages?
/// False if the module does not report its room.
pub fn promises(sys: &dyn Sys, name: &str) -> bool {
    let bytes = |file| counters::value::<u64>(sys, name, file);
    match (bytes("certain_bytes"), bytes("size_bytes")) {
        (Ok(certain), Ok(size)) => certain < size,
        _ => false,
    }
}

pub fn is_needed(sys: &dyn Sys, name: &str) -> bool {
    promises(sys, name) || sys.exists(&swaps::filler_node(name))
}

/// The guard that runs for a device.
fn pid(sys: &dyn Sys, name: &str) -> Option<u32> {
    let pid = sys.read(&worker::record(name)).ok()?.trim().parse().ok()?;
    let line = sys.read(&format!("/proc/{pid}/cmdline")).ok()?;
    let mut words = line.split_terminator('\0').skip(1);
    (words.next() == Some(worker::COMMAND) && words.next() == Some(name)).then_some(pid)
}

/// What the guard of a device has on swap: slots that are free once it has ended.
pub fn held_bytes(sys: &dyn Sys, name: &str) -> u64 {
    let Some(pid) = pid(sys, name) else { return 0 };
    let status = sys.read(&format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSwap:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}

/// Starts the guard of a device unless it runs.
pub fn start(sys: &dyn Sys, name: &str) -> Result<()> {
    if pid(sys, name).is_some() {
        return Ok(());
    }
    sys.start_guard(worker::COMMAND, name).map_err(|e| {
        Error::new(Kind::Kernel, format!("cannot start the guard of {name}: {}", reason(&e)))
    })
}

/// Ends the guard of a device, if there is one: its slots are free then.
pub fn end(sys: &dyn Sys, name: &str) -> Result<()> {
    if let Some(pid) = pid(sys, name) {
        sys.end(pid).map_err(|e| {
            Error::new(Kind::Kernel, format!("cannot end the guard of {name}: {}", reason(&e)))
        })?;
    }
    let path = worker::record(name);
    sys.forget(&path).map_err(|e| Error::io("remove", &sys.at(&path), e))
}

/// What is wrong if a device needs a guard and has none, and what to do.
pub fn missing(sys: &dyn Sys, name: &str) -> Option<(String, String)> {
    let is_on = swaps::area(sys, name).is_some();
    if !is_on || !is_needed(sys, name) || pid(sys, name).is_some() {
        return None;
    }
    let what = match promises(sys, name) {
        true => "promises more than the device certainly holds",
        false => "has a filler",
    };
    Some((
        format!("{name} {what}, and its guard does not run: the machine may hang when it is full"),
        format!("run `znsage guard {name}`"),
    ))
}
