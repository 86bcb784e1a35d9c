// SPDX-License-Identifier: GPL-2.0-only
//! Where the kernel looks for a hibernated system: not on a device that znsage
//! takes, nor on a disk of znsage's, which is not there when the kernel starts.
//! That nothing hibernates while a device is on is up to the module.

use crate::error::{Error, Kind, Result};
use crate::sys::Sys;

const SYSFS: &str = "/sys/power/resume";
const CMDLINE: &str = "/proc/cmdline";

/// What names a device to resume from, and the kernel's name of it.
pub struct Resume {
    pub said: String,
    pub name: String,
}

/// All that it is told by: none on a machine that never hibernates.
pub fn told(sys: &dyn Sys) -> impl Iterator<Item = Resume> {
    [from_sysfs(sys), from_cmdline(sys)].into_iter().flatten()
}

/// Refuses a backing device, by its path and the kernel's name, if the kernel
/// resumes from it, and any if it is to resume from swap on znsage.
pub fn check(sys: &dyn Sys, path: &str, backing: &str) -> Result<()> {
    for Resume { said, name } in told(sys) {
        let partition = sys.exists(&format!("/sys/block/{backing}/{name}"));
        let why = if name == backing || partition {
            format!("{path} is where the kernel looks for a hibernated system ({said})")
        } else if is_znsage(&name) {
            format!("the kernel cannot resume from {name}, as it is told to ({said})")
        } else {
            continue;
        };
        return Err(Error::new(Kind::Busy, why).hint(format!(
            "name a swap area that is not znsage's: MAJOR:MINOR in {SYSFS} for now,\n\
             and resume= on the kernel's command line for the next start"
        )));
    }
    Ok(())
}

fn is_znsage(name: &str) -> bool {
    name.strip_prefix("znsage").is_some_and(|n| n.parse::<u32>().is_ok())
}

/// The kernel's name of the device with such numbers, if there is one.
fn by_numbers(sys: &dyn Sys, numbers: &str) -> Option<String> {
    sys.link_name(&format!("/sys/dev/block/{numbers}")).ok()
}

/// "MAJOR:MINOR", 0:0 if there is none. An initramfs that finds the device by
/// its UUID or label writes it there.
fn from_sysfs(sys: &dyn Sys) -> Option<Resume> {
    let numbers = sys.read(SYSFS).ok()?.trim().to_string();
    let name = by_numbers(sys, &numbers)?;
    Some(Resume { said: format!("{SYSFS} is {numbers}"), name })
}

/// The last resume= is the one that counts. If it is a UUID or a label, it is
/// left to [`from_sysfs`].
fn from_cmdline(sys: &dyn Sys) -> Option<Resume> {
    let line = sys.read(CMDLINE).ok()?;
    let device = line.split_whitespace().rev().find_map(|word| word.strip_prefix("resume="))?;
    let name = match sys.block_device(device) {
        Ok(Some((major, minor))) => by_numbers(sys, &format!("{major}:{minor}"))?,
        // A disk of znsage's that is not there yet.
        _ => match device.strip_prefix("/dev/") {
            Some(name) => name.to_string(),
            None => by_numbers(sys, device)?,
        },
    };
    Some(Resume { said: format!("resume={device}"), name })
}
