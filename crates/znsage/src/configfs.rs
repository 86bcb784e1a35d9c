// SPDX-License-Identifier: GPL-2.0-only
//! The module's configfs directory: one item per device.

use std::io;
use std::time::Duration;

use crate::error::{reason, Error, Kind, Result};
use crate::sys::Sys;

const MOUNT: &str = "/sys/kernel/config";
const GROUP: &str = "/sys/kernel/config/znsage";

/// udev opens a device that was just closed. The module does not detach an open device.
const POWER_OFF_TRIES: u32 = 50;
const POWER_OFF_PAUSE: Duration = Duration::from_millis(100);

/// The module's limit for the name of an item, in bytes.
const LONGEST: usize = 63;

/// Of a device, by name or path, its name; of a file, its path with `-` instead of `/`. If
/// the path has a `-`, or is too long, the name of the file and a checksum of the path.
pub fn item_name(device: &str) -> String {
    let Some(path) = device.trim_start_matches("/dev/").strip_prefix('/') else {
        return device.trim_start_matches("/dev/").to_string();
    };
    if path.len() <= LONGEST && !path.contains('-') {
        return path.replace('/', "-");
    }
    let mut crc = flate2::Crc::new();
    crc.update(path.as_bytes());
    let sum = format!("-{:08x}", crc.sum());
    let file = path.rsplit('/').next().unwrap_or_default();
    let fits = (0..=LONGEST - sum.len()).rev().find_map(|end| file.get(..end));
    fits.unwrap_or_default().to_string() + &sum
}

pub fn item(name: &str) -> String {
    format!("{GROUP}/{}", item_name(name))
}

/// The file that lists all policies.
pub fn policies() -> String {
    format!("{GROUP}/policies")
}

/// The file that says whether there can be policies in BPF.
pub fn bpf() -> String {
    format!("{GROUP}/bpf")
}

/// Mounts configfs if necessary.
pub fn ensure_mounted(sys: &dyn Sys) -> Result<()> {
    if sys.exists(GROUP) {
        return Ok(());
    }
    let mounts = sys.read("/proc/mounts").unwrap_or_default();
    let mounted = mounts
        .lines()
        .any(|l| l.split(' ').nth(1) == Some(MOUNT) && l.split(' ').nth(2) == Some("configfs"));
    if !mounted {
        // systemd mounts it, too, as soon as it sees the module.
        if let Err(e) = sys.mount("configfs", MOUNT) {
            if !sys.exists(GROUP) {
                return Err(Error::io("mount configfs on", &sys.at(MOUNT), e));
            }
        }
    }
    match sys.exists(GROUP) {
        true => Ok(()),
        false => Err(Error::new(
            Kind::Kernel,
            format!("the module is loaded but {GROUP} does not exist"),
        )
        .hint("check that no other module with the name znsage is loaded")),
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

/// Removes the item of a device, by name or path, that a killed `znsage on` left.
/// Returns false if there is none.
pub fn remove_unpowered(sys: &dyn Sys, device: &str) -> Result<bool> {
    let name = item_name(device);
    let found = items(sys).contains(&name) && !powered(sys, &name);
    if found {
        remove(sys, &name)?;
    }
    Ok(found)
}

/// Writes a setting.
pub fn set(sys: &dyn Sys, name: &str, attribute: &str, value: &str) -> Result<()> {
    let path = format!("{}/{attribute}", item(name));
    sys.write(&path, &format!("{value}\n")).map_err(|e| match e.raw_os_error() {
        Some(libc::EINVAL | libc::ERANGE) => {
            Error::new(Kind::Device, format!("the module refuses {attribute} = {value}"))
                .hint("the value is out of range; the kernel log (`dmesg`) may show why")
        }
        Some(libc::ENOENT) => {
            Error::new(Kind::Environment, format!("the module has no setting `{attribute}`")).hint(
                "command and module have different versions: install the same version of both",
            )
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

/// Detaches the device; waits a while for other programs to close the disk.
pub fn power_off(sys: &dyn Sys, name: &str) -> Result<()> {
    let path = format!("{}/power", item(name));
    for attempt in 1.. {
        match sys.write(&path, "0\n") {
            Ok(()) => return Ok(()),
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) && attempt < POWER_OFF_TRIES => {
                sys.sleep(POWER_OFF_PAUSE);
            }
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) => {
                return Err(Error::new(Kind::Busy, format!("the device of {name} is still open"))
                    .hint(
                    "`fuser -v /dev/znsage*` shows which program has it open; end it and try again",
                ));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_differ_and_fit() {
        for (device, name) in [
            ("nvme1n1", "nvme1n1"),
            ("/dev/nvme1n1", "nvme1n1"),
            ("/var/lib/znsage.swap", "var-lib-znsage.swap"),
            ("/a/b", "a-b"),
            ("/a-b", "a-b-35c2229e"),
            ("/a/b-c", "b-c-25e363cb"),
            ("/a-b/c", "c-bddcc9c2"),
        ] {
            assert_eq!(item_name(device), name, "{device}");
        }
        let long =
            |end: &str| item_name(&format!("/{}/{}{end}", "d".repeat(60), "\u{e9}".repeat(50)));
        assert!(long("a").len() <= LONGEST && long("a") != long("b"), "{}", long("a"));
        assert_eq!(item_name(&long("a")), long("a"));
    }
}
