// SPDX-License-Identifier: GPL-2.0-only
//! What names a swap area for the next start: /etc/fstab, and the initramfs that looks
//! for a hibernated system. A partition that znsage takes loses its UUID and label; a unit
//! that waits for them delays the boot.

use crate::sys::Sys;

const FSTAB: &str = "/etc/fstab";
const CMDLINE: &str = "/proc/cmdline";

/// The files of initramfs-tools; the last one wins.
const INITRAMFS: [&str; 2] =
    ["/etc/initramfs-tools/initramfs.conf", "/etc/initramfs-tools/conf.d/resume"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// File and line, or the kernel's command line.
    pub place: String,
    /// UUID=..., LABEL=... or a path.
    pub spec: String,
    /// The kernel's name of the device, None if there is none; the path of a file.
    pub name: Option<String>,
    pub cure: &'static str,
}

/// All settings that name a swap area.
pub fn mentions(sys: &dyn Sys) -> Vec<Mention> {
    let found = [fstab(sys), initramfs(sys), cmdline(sys)];
    found.concat()
}

fn mention(sys: &dyn Sys, place: String, spec: &str, cure: &'static str) -> Option<Mention> {
    let name = match path(spec) {
        // The numbers of a device.
        None => return None,
        Some(path) if path.starts_with("/dev/") => sys.link_name(&path).ok(),
        Some(path) => Some(sys.canonical(&path).unwrap_or(path)),
    };
    Some(Mention { place, spec: spec.to_string(), name, cure })
}

/// The path that udev gives the device, or of a file.
fn path(spec: &str) -> Option<String> {
    let spec = spec.replace('"', "");
    let (kind, value) = match spec.split_once('=') {
        Some(pair) => pair,
        None => return spec.starts_with('/').then_some(spec),
    };
    let directory = match kind {
        "UUID" => "by-uuid",
        "LABEL" => "by-label",
        "PARTUUID" => "by-partuuid",
        "PARTLABEL" => "by-partlabel",
        _ => return None,
    };
    Some(format!("/dev/disk/{directory}/{value}"))
}

/// The lines of a file with their numbers, without comments.
fn lines<'a>(text: &'a str, file: &str) -> impl Iterator<Item = (String, &'a str)> {
    let place = format!("{file}:");
    let all = text.lines().enumerate().map(move |(n, l)| (format!("{place}{}", n + 1), l.trim()));
    all.filter(|(_, line)| !line.starts_with('#'))
}

/// Lines that systemd does not wait for are fine.
fn fstab(sys: &dyn Sys) -> Vec<Mention> {
    let text = sys.read(FSTAB).unwrap_or_default();
    let of = |(place, line): (String, &str)| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [spec, _, "swap", rest @ ..] = &fields[..] else { return None };
        let options = rest.first().copied().unwrap_or_default();
        let found = mention(sys, place, spec, "remove the line; znsage.conf replaces it")?;
        let waits = !options.split(',').any(|option| matches!(option, "noauto" | "nofail"));
        (waits || found.name.is_some()).then_some(found)
    };
    lines(&text, FSTAB).filter_map(of).collect()
}

fn initramfs(sys: &dyn Sys) -> Vec<Mention> {
    let mut last = Vec::new();
    for file in INITRAMFS {
        let text = sys.read(file).unwrap_or_default();
        for (place, line) in lines(&text, file) {
            if let Some(spec) = line.strip_prefix("RESUME=") {
                let cure = "write RESUME=none there and run `update-initramfs -u`";
                last = mention(sys, place, spec, cure).into_iter().collect();
            }
        }
    }
    last
}

fn cmdline(sys: &dyn Sys) -> Vec<Mention> {
    let text = sys.read(CMDLINE).unwrap_or_default();
    let last = text.split_whitespace().rev().find_map(|word| word.strip_prefix("resume="));
    let cure = "remove resume= from the kernel's command line (/etc/default/grub, `update-grub`)";
    let of = |spec| mention(sys, CMDLINE.to_string(), spec, cure);
    last.and_then(of).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::fake::Fake;

    #[test]
    fn settings_that_name_swap_are_found() {
        let fake = Fake::new();
        fake.put("/dev/sda2", "");
        fake.put_link("/dev/disk/by-uuid/a-b", "/dev/sda2");
        fake.put(
            "/etc/fstab",
            "# <file system> swap\nUUID=r / ext4 defaults 0 1\nUUID=a-b none swap sw 0 0\n\
             LABEL=\"x\" none swap defaults\n/dev/sdb1 none swap noauto\n/swapfile none swap sw\n\
             /dev/sda2 swap swap nofail\n",
        );
        fake.put("/etc/initramfs-tools/initramfs.conf", "RESUME=UUID=old\n");
        fake.put("/etc/initramfs-tools/conf.d/resume", "#RESUME=/dev/x\nRESUME=UUID=a-b\n");
        fake.put("/proc/cmdline", "quiet resume=/dev/sda2 resume=LABEL=gone ro\n");
        let found = mentions(&fake);
        let found: Vec<_> =
            found.iter().map(|m| (m.place.as_str(), m.spec.as_str(), m.name.as_deref())).collect();
        assert_eq!(
            found,
            [
                ("/etc/fstab:3", "UUID=a-b", Some("sda2")),
                ("/etc/fstab:4", "LABEL=\"x\"", None),
                ("/etc/fstab:6", "/swapfile", Some("/swapfile")),
                ("/etc/fstab:7", "/dev/sda2", Some("sda2")),
                ("/etc/initramfs-tools/conf.d/resume:2", "UUID=a-b", Some("sda2")),
                ("/proc/cmdline", "LABEL=gone", None),
            ]
        );
        fake.put("/etc/initramfs-tools/conf.d/resume", "RESUME=none\n");
        fake.put("/proc/cmdline", "resume=8:2\n");
        assert_eq!(mentions(&fake).len(), 4);
    }
}
