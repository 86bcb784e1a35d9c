// SPDX-License-Identifier: GPL-2.0-only
//! Records in /var/lib which drives hold what znsage left there: after a power
//! failure, or an `off` that could not empty the drive. `on` takes such a drive again
//! without a question.
//!
//! A record names the drive by its serial number, and the part of it. While the device
//! is on, it proves that this part was swap when the machine stopped, not that nobody
//! has written there since; a signature of another format shows that. After `off`, a
//! checksum of a sample must match, too.

use serde::{Deserialize, Serialize};

use crate::contents::{Sample, Signature};
use crate::error::{Error, Result};
use crate::sys::Sys;
use crate::undo::Undo;
use crate::{device, queue};

pub const DIRECTORY: &str = "/var/lib/znsage";
/// The label of the swap areas of `on`.
pub const LABEL: &str = "znsage";

/// Where the kernel has a name of the drive that no other drive has.
const SERIALS: [&str; 6] =
    ["wwid", "device/wwid", "serial", "device/serial", "device/cid", "dm/uuid"];

/// A drive, or a partition of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    serial: String,
    /// In sectors.
    start: u64,
    bytes: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    place: Place,
    /// The UUID of the swap area.
    uuid: String,
    /// What a sample showed after `off`; None while the device is on.
    left: Option<u32>,
}

/// Whose is what is on a device?
#[derive(Debug, PartialEq, Eq)]
pub enum Owner {
    Znsage,
    Unknown,
    /// Its swap header is znsage's, but not the one that is recorded.
    Other(String),
}

fn place(sys: &dyn Sys, name: &str) -> Option<Place> {
    let disk = queue::disk_of(sys, name);
    let serial = SERIALS.iter().find_map(|file| {
        let text = sys.read(&format!("/sys/block/{disk}/{file}")).ok()?;
        Some(text.trim().to_string()).filter(|text| !text.is_empty())
    })?;
    let start = match disk == name {
        true => 0,
        false => {
            let text = sys.read(&format!("{}/start", queue::directory(sys, name)));
            text.ok()?.trim().parse().ok()?
        }
    };
    Some(Place { serial, start, bytes: device::size(sys, name)? })
}

/// Each with its path.
fn all(sys: &dyn Sys) -> Vec<(String, Record)> {
    let paths = sys.list(DIRECTORY).into_iter().map(|name| format!("{DIRECTORY}/{name}"));
    let read = |path: String| {
        let record = serde_json::from_str(&sys.read(&path).ok()?).ok()?;
        Some((path, record))
    };
    paths.filter_map(read).collect()
}

fn of(sys: &dyn Sys, name: &str) -> Option<(String, Record)> {
    let place = place(sys, name)?;
    all(sys).into_iter().find(|(_, record)| record.place == place)
}

/// Judges by the record of the device. `sample` is None on a zoned device.
pub fn owner(
    sys: &dyn Sys,
    name: &str,
    signatures: &[Signature],
    sample: Option<&Sample>,
) -> Owner {
    let header = match signatures {
        [] => None,
        [one] if one.format == "swap" && one.label.as_deref() == Some(LABEL) => one.uuid.clone(),
        _ => return Owner::Unknown,
    };
    let other = |why: String| Owner::Other(format!("the swap area on it is of znsage, but {why}"));
    let Some((path, record)) = of(sys, name) else {
        return match header {
            Some(_) => other(format!(
                "{DIRECTORY} has no record of this drive: another machine may have used it"
            )),
            None => Owner::Unknown,
        };
    };
    if let Some(uuid) = header.filter(|uuid| *uuid != record.uuid) {
        return other(format!("its UUID {uuid} is not the one in {path}"));
    }
    match record.left {
        Some(sum) if sample.map(Sample::sum) != Some(sum) => Owner::Unknown,
        _ => Owner::Znsage,
    }
}

/// Records that the device is on; returns the UUID for its swap area, and why there is
/// no record: swap must work with a full disk, too. A drive without a serial number has
/// none.
pub fn begin(sys: &dyn Sys, name: &str, undo: &mut Undo) -> Result<(String, Option<Error>)> {
    const UUID: &str = "/proc/sys/kernel/random/uuid";
    let uuid = sys.read(UUID).map_err(|e| Error::io("read", &sys.at(UUID), e))?.trim().to_string();
    let Some(place) = place(sys, name) else { return Ok((uuid, None)) };
    let old = of(sys, name).map(|(_, record)| record);
    let path = path_of(&place);
    undo.push("restore the record of the device", {
        let path = path.clone();
        move |sys| match &old {
            Some(record) => save(sys, &path, record),
            None => forget_file(sys, &path),
        }
    });
    let saved = save(sys, &path, &Record { place, uuid: uuid.clone(), left: None });
    Ok((uuid, saved.err()))
}

/// The device is off. `left` is what is still on it, if that is known.
pub fn end(sys: &dyn Sys, name: &str, left: Option<&Sample>) -> Result<()> {
    match (of(sys, name), left) {
        (Some((path, _)), Some(left)) if left.data.is_empty() => forget_file(sys, &path),
        (Some((path, record)), Some(left)) => {
            save(sys, &path, &Record { left: Some(left.sum()), ..record })
        }
        _ => Ok(()),
    }
}

/// A name from the serial number, which may have any characters.
fn path_of(place: &Place) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = place.serial.chars().map(plain).take(100).collect();
    format!("{DIRECTORY}/{name}-{}", place.start)
}

fn save(sys: &dyn Sys, path: &str, record: &Record) -> Result<()> {
    let text = serde_json::to_string(record).expect("it has only strings and numbers");
    sys.save(path, &(text + "\n")).map_err(|e| Error::io("write", &sys.at(path), e))
}

fn forget_file(sys: &dyn Sys, path: &str) -> Result<()> {
    sys.forget(path).map_err(|e| Error::io("remove", &sys.at(path), e))
}
