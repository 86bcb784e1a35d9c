// SPDX-License-Identifier: GPL-2.0-only
//! The device that the kernel resumes from: never a backing device, nor a znsage
//! disk, which does not exist when the kernel starts.

use crate::error::{Error, Kind, Result};
use crate::sys::Sys;

const SYSFS: &str = "/sys/power/resume";
const CMDLINE: &str = "/proc/cmdline";

/// A device to resume from: the setting that names it, and the kernel's name.
pub struct Resume {
    pub setting: String,
    pub name: String,
}

/// All devices to resume from; none on a machine that never hibernates.
pub fn devices(sys: &dyn Sys) -> impl Iterator<Item = Resume> {
    [from_sysfs(sys), from_cmdline(sys)].into_iter().flatten()
}

/// Refuses a backing device that the kernel resumes from, and any device if the
/// kernel is told to resume from znsage.
pub fn check(sys: &dyn Sys, path: &str, backing: &str) -> Result<()> {
    for Resume { setting, name } in devices(sys) {
        let partition = sys.exists(&format!("/sys/block/{backing}/{name}"));
        let why = if name == backing || partition {
            format!("{path} is where the kernel looks for a hibernated system ({setting})")
        } else if is_znsage(&name) {
            format!("the kernel is told to resume from {name}, which is impossible ({setting})")
        } else {
            continue;
        };
        return Err(Error::new(Kind::Busy, why).hint(format!(
            "name another swap area: MAJOR:MINOR in {SYSFS} for now,\n\
             and resume= on the kernel command line for the next boot"
        )));
    }
    Ok(())
}

fn is_znsage(name: &str) -> bool {
    name.strip_prefix("znsage").is_some_and(|n| n.parse::<u32>().is_ok())
}

/// The kernel's name of the device MAJOR:MINOR, if it exists.
fn by_numbers(sys: &dyn Sys, numbers: &str) -> Option<String> {
    sys.link_name(&format!("/sys/dev/block/{numbers}")).ok()
}

/// The file has MAJOR:MINOR, or 0:0 for none. An initramfs that finds the device by
/// UUID or label writes it there.
fn from_sysfs(sys: &dyn Sys) -> Option<Resume> {
    let numbers = sys.read(SYSFS).ok()?.trim().to_string();
    let name = by_numbers(sys, &numbers)?;
    Some(Resume { setting: format!("{SYSFS} is {numbers}"), name })
}

/// The last resume= applies. [`from_sysfs`] covers UUIDs and labels.
fn from_cmdline(sys: &dyn Sys) -> Option<Resume> {
    let line = sys.read(CMDLINE).ok()?;
    let device = line.split_whitespace().rev().find_map(|word| word.strip_prefix("resume="))?;
    let name = match sys.block_device(device) {
        Ok(Some((major, minor))) => by_numbers(sys, &format!("{major}:{minor}"))?,
        // A znsage disk that does not exist yet.
        _ => match device.strip_prefix("/dev/") {
            Some(name) => name.to_string(),
            None => by_numbers(sys, device)?,
        },
    };
    Some(Resume { setting: format!("resume={device}"), name })
}
