// SPDX-License-Identifier: GPL-2.0-only
//! The module's configfs directory: one item a device.

use std::io;
use std::time::Duration;

use crate::error::{reason, Error, Kind, Result};
use crate::sys::Sys;

const MOUNT: &str = "/sys/kernel/config";
const GROUP: &str = "/sys/kernel/config/znsage";

/// udev looks into a device that was just closed; the module refuses to let
/// it go meanwhile.
const POWER_OFF_TRIES: u32 = 50;
const POWER_OFF_PAUSE: Duration = Duration::from_millis(100);

pub fn item(name: &str) -> String {
    format!("{GROUP}/{name}")
}

/// The names of all policies that a device could have.
pub fn policies() -> String {
    format!("{GROUP}/policies")
}

/// Makes the module's directory visible.
pub fn ensure_mounted(sys: &dyn Sys) -> Result<()> {
    if sys.exists(GROUP) {
        return Ok(());
    }
    let mounts = sys.read("/proc/mounts").unwrap_or_default();
    let mounted = mounts
        .lines()
        .any(|l| l.split(' ').nth(1) == Some(MOUNT) && l.split(' ').nth(2) == Some("configfs"));
    if !mounted {
        // systemd does the same as soon as it sees the module, perhaps now.
        if let Err(e) = sys.mount("configfs", MOUNT) {
            if !sys.exists(GROUP) {
                return Err(Error::io("mount configfs on", &sys.at(MOUNT), e));
            }
        }
    }
    match sys.exists(GROUP) {
        true => Ok(()),
        false => {
            Err(Error::new(Kind::Kernel, format!("the module is loaded but {GROUP} is not there"))
                .hint("is another module with the name znsage loaded?"))
        }
    }
}

/// All items, powered or not.
pub fn items(sys: &dyn Sys) -> Vec<String> {
    sys.list(GROUP).into_iter().filter(|n| sys.exists(&format!("{GROUP}/{n}/power"))).collect()
}

pub fn powered(sys: &dyn Sys, name: &str) -> bool {
    sys.read(&format!("{}/power", item(name))).is_ok_and(|t| t.trim() == "1")
}

pub fn create(sys: &dyn Sys, name: &str) -> Result<()> {
    let path = item(name);
    sys.mkdir(&path).map_err(|e| Error::io("create", &sys.at(&path), e))
}

pub fn remove(sys: &dyn Sys, name: &str) -> Result<()> {
    let path = item(name);
    sys.rmdir(&path).map_err(|e| Error::io("remove", &sys.at(&path), e))
}

/// Writes a setting. The kernel's EINVAL becomes a sentence.
pub fn set(sys: &dyn Sys, name: &str, attribute: &str, value: &str) -> Result<()> {
    let path = format!("{}/{attribute}", item(name));
    sys.write(&path, &format!("{value}\n")).map_err(|e| match e.raw_os_error() {
        Some(libc::EINVAL | libc::ERANGE) => {
            Error::new(Kind::Device, format!("the module refuses {attribute} = {value}"))
                .hint("the value is out of range; the kernel log (`dmesg`) tells more")
        }
        Some(libc::ENOENT) => {
            Error::new(Kind::Environment, format!("the module knows no setting `{attribute}`"))
                .hint("command and module are of different versions: install the same of both")
        }
        _ => Error::io("write", &sys.at(&path), e),
    })
}

pub fn power_on(sys: &dyn Sys, name: &str) -> io::Result<()> {
    sys.write(&format!("{}/power", item(name)), "1\n")
}

/// The number N of /dev/znsageN.
pub fn index(sys: &dyn Sys, name: &str) -> Result<u64> {
    let path = format!("{}/index", item(name));
    let text = sys.read(&path).map_err(|e| Error::io("read", &sys.at(&path), e))?;
    text.trim()
        .parse()
        .map_err(|_| Error::new(Kind::Kernel, format!("{path} holds `{}`", text.trim())))
}

/// Detaches; waits a while for others to close the disk.
pub fn power_off(sys: &dyn Sys, name: &str) -> Result<()> {
    let path = format!("{}/power", item(name));
    for attempt in 1.. {
        match sys.write(&path, "0\n") {
            Ok(()) => return Ok(()),
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) && attempt < POWER_OFF_TRIES => {
                sys.sleep(POWER_OFF_PAUSE);
            }
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) => {
                return Err(Error::new(
                    Kind::Busy,
                    format!("the device of {name} is still open somewhere"),
                )
                .hint("`fuser -v /dev/znsage*` tells where; try again after that"));
            }
            Err(e) => {
                return Err(Error::new(
                    Kind::Kernel,
                    format!("cannot turn {name} off: {}", reason(&e)),
                ))
            }
        }
    }
    unreachable!("the loop above returns")
}
