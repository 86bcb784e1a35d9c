// SPDX-License-Identifier: GPL-2.0-only
//! A section of znsage.conf that is on: which device it has, also after the
//! file was changed or the device got another name.

use crate::cli::OnArgs;
use crate::counters;
use crate::device;
use crate::error::{Error, Kind, Result};
use crate::on::{self, Report};
use crate::sys::Sys;
use crate::undo::Undo;
use crate::{conf, swaps};

const DIRECTORY: &str = "/run/znsage";
const ENDING: &str = ".section";

fn record(section: &str) -> String {
    format!("{DIRECTORY}/{section}{ENDING}")
}

/// Notes the kernel's name of the device.
pub fn remember(sys: &dyn Sys, section: &str, backing: &str, undo: &mut Undo) -> Result<()> {
    let path = record(section);
    undo.push("forget the section", {
        let path = path.clone();
        move |sys| sys.forget(&path).map_err(|e| Error::io("remove", &sys.at(&path), e))
    });
    sys.save(&path, backing).map_err(|e| Error::io("write", &sys.at(&path), e))
}

/// The device is off: no section has it any more.
pub fn forget(sys: &dyn Sys, backing: &str) -> Result<()> {
    for name in sys.list(DIRECTORY).into_iter().filter(|name| name.ends_with(ENDING)) {
        let path = format!("{DIRECTORY}/{name}");
        if sys.read(&path).is_ok_and(|text| text.trim() == backing) {
            sys.forget(&path).map_err(|e| Error::io("remove", &sys.at(&path), e))?;
        }
    }
    Ok(())
}

/// The kernel's name of the device that a section has: what was noted, or else
/// what the file says. None if that is not there.
pub fn backing(sys: &dyn Sys, section: &str) -> Result<Option<String>> {
    if let Ok(name) = sys.read(&record(section)) {
        return Ok(Some(name.trim().to_string()));
    }
    let conf = conf::read(sys);
    let path = &conf.section(section)?.device;
    match sys.exists(path) {
        true => device::locate(sys, path).map(|(_, name)| Some(name)),
        false => Ok(None),
    }
}

/// What there is to tell if the device is on, whoever turned it on.
pub fn already(sys: &dyn Sys, args: &OnArgs) -> Result<Option<Report>> {
    if !sys.exists(&args.device) {
        return Ok(None);
    }
    let (path, name) = device::locate(sys, &args.device)?;
    let Some(device) = counters::all(sys)?.into_iter().find(|d| d.backing == name) else {
        return Ok(None);
    };
    match swaps::area(sys, &device.name) {
        Some(_) => on::report(sys, device, &path).map(Some),
        None => Err(Error::new(
            Kind::Busy,
            format!("{path} is behind {}, which is not used as swap", device.name),
        )
        .hint(format!("`znsage off {}` first", device.name))),
    }
}

/// What stands in the way of a device at the start of a machine is mostly what
/// was swapped when the power went.
pub fn told(e: Error, section: &str) -> Error {
    if e.kind != Kind::Busy || !e.hint.as_ref().is_some_and(|hint| hint.contains("--force")) {
        return e;
    }
    let hint = e.hint.clone().unwrap_or_default();
    e.hint(format!(
        "{hint}\nif it is swap of before the power went, or the machine could not empty it:\n\
         `force = yes` in section {section} takes it each time, whatever it holds"
    ))
}
