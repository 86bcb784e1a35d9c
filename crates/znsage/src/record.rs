// SPDX-License-Identifier: GPL-2.0-only
//! Records in /var/lib of drives that hold what znsage left: after a power failure, or
//! because `off` could not empty the drive. `on` takes such a drive without a question.
//!
//! While the device is on, a record proves that the drive was swap when the machine
//! stopped, not that nobody has written to it since; a signature shows that, since the
//! module writes none. After `off`, a checksum of a sample must match, too.

use serde::{Deserialize, Serialize};

use crate::contents::{Holds, Sample};
use crate::device::{self, Backing};
use crate::error::{Error, Kind, Result};
use crate::queue;
use crate::sys::Sys;
use crate::undo::Undo;

const DIRECTORY: &str = "/var/lib/znsage";

/// Files in sysfs with a name of the disk that is unique.
const SERIALS: [&str; 5] = ["wwid", "device/wwid", "serial", "device/cid", "dm/uuid"];

/// A disk, or a partition of it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    serial: String,
    /// In sectors.
    start: u64,
    bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    place: Place,
    /// The checksum of what `off` left; None while the device is on.
    left: Option<u32>,
}

impl Place {
    /// None if the disk has no serial number, or is gone. A file needs no record: the file
    /// system knows that nothing was written to it.
    fn of(sys: &dyn Sys, name: &str) -> Option<Place> {
        if queue::is_file(name) {
            return None;
        }
        let disk = queue::disk_of(sys, name);
        let read = |path: String| sys.read(&path).ok().map(|text| text.trim().to_string());
        let serial = SERIALS.iter().find_map(|file| {
            read(format!("/sys/block/{disk}/{file}")).filter(|text| !text.is_empty())
        })?;
        let start = match disk == name {
            true => 0,
            false => read(format!("{}/start", queue::directory(sys, name)))?.parse().ok()?,
        };
        Some(Place { serial, start, bytes: device::size(sys, name)? })
    }

    /// A serial number may have any characters.
    fn path(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = self.serial.chars().map(plain).take(100).collect();
        format!("{DIRECTORY}/{name}-{}", self.start)
    }

    fn record(&self, sys: &dyn Sys) -> Option<Record> {
        let record: Record = serde_json::from_str(&sys.read(&self.path()).ok()?).ok()?;
        (record.place == *self).then_some(record)
    }

    fn save(self, sys: &dyn Sys, left: Option<u32>) -> Result<()> {
        let path = self.path();
        let record = Record { place: self, left };
        let text = serde_json::to_string(&record).expect("it has strings and numbers");
        sys.save(&path, &(text + "\n")).map_err(|e| Error::io("write", &sys.at(&path), e))
    }
}

fn forget(sys: &dyn Sys, path: &str) -> Result<()> {
    sys.forget(path).map_err(|e| Error::io("remove", &sys.at(path), e))
}

/// The error of `on` if the device holds data of others.
pub fn check_owner(sys: &dyn Sys, backing: &Backing, holds: &Holds) -> Result<()> {
    match holds.any() {
        Some(what) if !is_own(sys, &backing.name, holds) => {
            Err(Error::new(Kind::Data, format!("{} has {what}", backing.path))
                .hint("--yes takes it; what is on it is lost"))
        }
        _ => Ok(()),
    }
}

/// Did znsage leave what the device holds?
fn is_own(sys: &dyn Sys, name: &str, holds: &Holds) -> bool {
    let record = Place::of(sys, name).and_then(|place| place.record(sys));
    holds.signatures.is_empty()
        && record.is_some_and(|record| {
            record.left.is_none_or(|sum| holds.sample.as_ref().is_some_and(|s| s.sum() == sum))
        })
}

/// Records that the device is on. A drive without a serial number gets no record.
pub fn begin(sys: &dyn Sys, name: &str, undo: &mut Undo) -> Result<()> {
    let Some(place) = Place::of(sys, name) else { return Ok(()) };
    let path = place.path();
    undo.push("forget the record of the device", move |sys| forget(sys, &path));
    place.save(sys, None)
}

/// The device is off. `left` is what a device without zones still holds.
pub fn end(sys: &dyn Sys, name: &str, left: Option<&Sample>) -> Result<()> {
    let Some(place) = Place::of(sys, name) else { return Ok(()) };
    match left.filter(|sample| !sample.is_blank()) {
        Some(sample) => place.save(sys, Some(sample.sum())),
        None => forget(sys, &place.path()),
    }
}
