// SPDX-License-Identifier: GPL-2.0-only
//! `znsage probe`: measures by fio which requests, and how many zones at once, a zoned
//! device writes well; on one without zones, or in a swap file, which size of virtual zones.
//! Destroys all data there and leaves it empty, also after a failure.

mod advise;
mod fio;
mod measure;
mod plan;
mod ready;
pub mod record;
mod sizes;
mod steps;
mod work;

use std::time::Instant;

use serde_json::Value;

use crate::cli::{OnArgs, ProbeArgs};
use crate::contents::Holds;
use crate::device::{self, Backing};
use crate::error::{Error, Kind, Result};
use crate::machine::Machine;
use crate::sys::{require_root, Sys};
use crate::{queue, swapfile, units};

use plan::{Layout, Plan};
pub use ready::Ready;
use record::{Device, Probe};

pub struct Report {
    pub probe: Probe,
    /// Written files.
    written: Vec<String>,
    /// Files that could not be written. The result is printed anyway.
    pub unsaved: Vec<String>,
}

/// Checks everything, and asks the user.
pub fn prepare(sys: &dyn Sys, args: &ProbeArgs, page: u64) -> Result<Ready> {
    require_root(sys, "measure a device")?;
    let backing = match swapfile::named(sys, &args.device)? {
        Some(path) => swapfile::inspect(sys, &path, &OnArgs::plain(&path))?,
        None => device::inspect(sys, &args.device)?,
    };
    let holds = Holds::look(sys, &backing, args.force)?;
    // The question below is about any other data.
    if let (false, Some(what)) = (args.force, holds.known()) {
        return Err(Error::new(Kind::Data, format!("{} has {what}", backing.path))
            .hint("--force takes the device; what is on it is lost"));
    }
    crate::resume::check(sys, &backing.path, &backing.name)?;
    let layout = Layout::of(sys, &backing, page)?;
    let zones = backing.zones.as_ref().map_or(0, |zones| zones.number);
    let plan = Plan::of(args.quick, &layout);
    let fio = fio::find(sys)?;
    let file = |path: &Option<std::path::PathBuf>| path.as_deref().map(|p| output_path(sys, p));
    let (profile, save) = (file(&args.profile).transpose()?, file(&args.save).transpose()?);
    let held = sys.hold(&backing.path).map_err(|e| Error::io("open", &sys.at(&backing.path), e))?;
    if !args.yes {
        ask_user(sys, &backing, steps::estimate(&plan, &layout))?;
    }
    Ok(Ready { backing, zones, layout, plan, fio, profile, save, _held: held })
}

/// An absolute path in an existing directory: otherwise the result would be lost
/// after minutes of measuring.
fn output_path(sys: &dyn Sys, path: &std::path::Path) -> Result<String> {
    let whole = std::path::absolute(path).map_err(|e| Error::io("name", path, e))?;
    let directory = whole.parent().unwrap_or(&whole).to_string_lossy().into_owned();
    match sys.exists(&directory) && !sys.at(&whole.to_string_lossy()).is_dir() {
        true => Ok(whole.to_string_lossy().into_owned()),
        false => Err(Error::new(Kind::Usage, format!("cannot write {}", path.display()))
            .hint("name a file in an existing directory")),
    }
}

fn ask_user(sys: &dyn Sys, backing: &Backing, seconds: f64) -> Result<()> {
    let question = format!(
        "All data on {} ({}) will be lost; this takes about {}. Type yes to continue: ",
        backing.path,
        units::size(backing.usable_bytes),
        units::duration(seconds)
    );
    let answer = sys.ask(&question).map_err(|e| Error::io("ask on", "the terminal".as_ref(), e))?;
    match answer.as_deref() {
        Some("yes") => Ok(()),
        Some(_) => Err(Error::new(Kind::Interrupted, "nothing was changed")),
        None => Err(Error::new(
            Kind::Usage,
            format!("{} would be overwritten, and there is no terminal to ask", backing.path),
        )
        .hint("--yes continues without asking")),
    }
}

/// Measures, and leaves the device empty.
pub fn run(sys: &dyn Sys, ready: &Ready) -> Result<Report> {
    let begun = Instant::now();
    let machine = Machine::look(sys);
    let mut probe = Probe {
        device: describe(sys, ready),
        kernel: sys.release(),
        fio: ready.fio.clone(),
        engine: fio::engine(sys).to_string(),
        plan: ready.plan.name.to_string(),
        seconds: 0.0,
        parallelism: Vec::new(),
        zone_sizes: Vec::new(),
        recommended: Vec::new(),
        notes: Vec::new(),
        machine,
    };
    let measured = steps::all(sys, ready, &mut probe);
    let empty = ready.reset(sys);
    measured.map_err(|e| with_device_state(e, &ready.backing.path, &empty))?;
    empty?;
    probe.seconds = begun.elapsed().as_secs_f64();
    probe.recommended = advise::settings(&probe, &ready.layout);
    notes(&mut probe, ready);
    Ok(save(sys, ready, probe))
}

/// Adds the state of the device to an error.
fn with_device_state(e: Error, path: &str, empty: &Result<()>) -> Error {
    let left = match empty {
        Ok(()) => format!("{path} is empty"),
        Err(why) => format!("{path} is not empty: {why}"),
    };
    match e.hint.clone() {
        Some(hint) => e.hint(format!("{hint}\n{left}")),
        None => e.hint(left),
    }
}

fn describe(sys: &dyn Sys, ready: &Ready) -> Device {
    let (backing, layout) = (&ready.backing, &ready.layout);
    let name = &backing.name;
    let disk = queue::disk_of(sys, name);
    let model = sys.read(&format!("/sys/block/{disk}/device/model")).ok();
    Device {
        path: backing.path.clone(),
        name: name.clone(),
        model: model.map(|m| m.trim().to_string()).filter(|m| !m.is_empty()),
        size_bytes: backing.usable_bytes,
        zones: ready.zones,
        zone_capacity_bytes: layout.capacity,
        write_unit_bytes: queue::attribute(sys, name, "zone_write_granularity")
            .and_then(|text| text.parse().ok()),
        append_max_bytes: layout.append_max,
        max_open_zones: queue::limit(sys, name, "max_open_zones"),
        max_active_zones: queue::limit(sys, name, "max_active_zones"),
    }
}

fn notes(probe: &mut Probe, ready: &Ready) {
    let emulated = probe.device.model.as_ref().is_some_and(|m| m.contains("QEMU"));
    if emulated || probe.machine.virtual_machine {
        let what = if emulated { "the device" } else { "the machine" };
        probe.notes.push(format!(
            "{what} is emulated: numbers and recommendations describe the emulation"
        ));
    }
    if ready.plan.name == "quick" {
        probe.notes.push("this was a quick probe, for a trial; its numbers vary".into());
    }
}

fn save(sys: &dyn Sys, ready: &Ready, probe: Probe) -> Report {
    let mut report = Report { written: Vec::new(), unsaved: Vec::new(), probe };
    let document = format!("{:#}\n", report.probe.to_json());
    let profile = advise::profile(&report.probe);
    for (path, text) in [(&ready.profile, profile), (&ready.save, document)] {
        let Some(path) = path else { continue };
        match sys.save(path, &text) {
            Ok(()) => report.written.push(path.clone()),
            Err(e) => report.unsaved.push(Error::io("write", path.as_ref(), e).message),
        }
    }
    report
}

impl Report {
    pub fn to_json(&self) -> Value {
        self.probe.to_json()
    }

    pub fn to_text(&self) -> String {
        let mut text = self.probe.to_text();
        for path in &self.written {
            text += &format!("{path}\n");
        }
        for why in &self.unsaved {
            text += &format!("{why}\n");
        }
        text
    }
}
