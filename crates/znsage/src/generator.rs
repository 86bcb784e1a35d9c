// SPDX-License-Identifier: GPL-2.0-only
//! What systemd runs early in a start, and when it reads its units anew: makes
//! a service of each section of znsage.conf. docs/boot.md.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;

use crate::cli::{GeneratorArgs, OnArgs};
use crate::conf::{self, Conf, Section};
use crate::error::{Error, Result};
use crate::sys::Sys;

/// The command's other name, by which systemd calls it.
const NAME: &str = "znsage-generator";

const KERNEL_LOG: &str = "/dev/kmsg";

/// What systemd waits for `off`, which reads all that is swapped back into
/// memory: as many GiB as a slow device gives in the meantime.
const STOP: &str = "15min";

/// The words of the command line, whatever the command was called by.
pub fn words(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = args.collect();
    let called = words.first().and_then(|w| Path::new(w).file_name());
    if called.is_some_and(|name| name == NAME) {
        words.insert(1, "generator".into());
    }
    words
}

/// Writes the units of all sections; of one that makes no sense, a unit that
/// says so when it is started. `program` is this command's path.
pub fn run(sys: &dyn Sys, args: &GeneratorArgs, program: &str) -> Result<()> {
    // A container has no devices, and the first file system of a start has
    // neither the file nor the module.
    let container = sys.env("SYSTEMD_VIRTUALIZATION").is_some_and(|v| v.starts_with("container"));
    if container || sys.env("SYSTEMD_IN_INITRD").is_some_and(|v| v == "1") {
        return Ok(());
    }
    let conf = conf::read(sys);
    for unit in units(&conf, program) {
        unit.write(sys, args.directories.first().map_or(".", String::as_str))?;
    }
    let Some(e) = conf::complaint(conf.faults.iter()) else {
        return Ok(());
    };
    // Nobody reads what a generator prints.
    if sys.env("SYSTEMD_SCOPE").is_some() {
        for fault in &conf.faults {
            // It is a help to people, and not worth a failure.
            let _ = sys.write(KERNEL_LOG, &format!("<3>{NAME}: {fault}\n"));
        }
    }
    Err(e)
}

/// A service, and the units that want it.
pub struct Unit {
    pub name: String,
    pub text: String,
    pub wanted_by: Vec<String>,
}

impl Unit {
    fn write(&self, sys: &dyn Sys, directory: &str) -> Result<()> {
        let failed = |path: &str, e| Error::io("write", &sys.at(path), e);
        let path = format!("{directory}/{}", self.name);
        sys.save(&path, &self.text).map_err(|e| failed(&path, e))?;
        for unit in &self.wanted_by {
            let path = format!("{directory}/{unit}.wants/{}", self.name);
            sys.link(&path, &format!("../{}", self.name)).map_err(|e| failed(&path, e))?;
        }
        Ok(())
    }
}

pub fn units(conf: &Conf, program: &str) -> Vec<Unit> {
    let disks: Vec<String> =
        (0..conf.sections.len()).map(|n| format!("dev-znsage{n}.swap")).collect();
    conf.sections.iter().map(|section| unit(section, &disks.join(" "), program)).collect()
}

fn unit(section: &Section, disks: &str, program: &str) -> Unit {
    let device = section.args.as_ref().map(|args| device_unit(&args.device));
    let wanted_by = std::iter::once("swap.target".to_string()).chain(device.clone()).collect();
    Unit {
        name: format!("znsage@{}.service", section.name),
        text: head(section) + &order(device.as_deref(), disks) + &service(&section.name, program),
        wanted_by,
    }
}

fn head(section: &Section) -> String {
    let Section { name, file, args } = section;
    let of = |args: &OnArgs| format!(" on {}", args.device);
    let on = args.as_ref().map(of).unwrap_or_default();
    format!(
        "# Made by {NAME} of section [{name}]; `systemctl daemon-reload` makes it anew.\n\
         [Unit]\n\
         Description=Swap{}, section {name} of znsage.conf\n\
         Documentation=man:znsage.conf(5) man:znsage-on(8)\n\
         SourcePath={}\n",
        literal(&on),
        literal(file),
    )
}

/// As units of swap have it: with their device, before what needs memory, and
/// off before file systems are let go.
fn order(device: Option<&str>, disks: &str) -> String {
    let mut text = "DefaultDependencies=no\n".to_string();
    if let Some(device) = device {
        let _ = write!(text, "BindsTo={device}\nAfter={device}\n");
    }
    // A policy of a module of one's own comes with the first of these. systemd
    // mounts configfs as soon as it sees the module: not both at once. When the
    // machine stops, `off` is to find the swap as it left it; the numbers are
    // those that the disks of all sections get.
    let _ = write!(
        text,
        "After=systemd-modules-load.service sys-kernel-config.mount\n\
         Wants=sys-kernel-config.mount\n\
         After={disks}\n\
         Before=swap.target\n\
         Conflicts=umount.target\n\
         Before=umount.target\n"
    );
    text
}

fn service(name: &str, program: &str) -> String {
    let program = word(program);
    format!(
        "\n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         ExecStart={program} on --config {name}\n\
         ExecStop={program} off --config {name}\n\
         TimeoutStopSec={STOP}\n"
    )
}

/// Text in which % stands for itself.
fn literal(text: &str) -> String {
    text.replace('%', "%%")
}

/// A word of a command line of systemd's that stands for itself.
fn word(text: &str) -> String {
    if text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+".contains(c)) {
        return text.to_string();
    }
    let escaped = literal(text).replace('\\', "\\\\").replace('"', "\\\"").replace('$', "$$");
    format!("\"{escaped}\"")
}

/// systemd's name of a device, as `systemd-escape --path --suffix=device` has it.
pub fn device_unit(path: &str) -> String {
    let mut name = String::new();
    for byte in path.trim_matches('/').bytes() {
        match byte {
            b'/' => name.push('-'),
            b'.' if name.is_empty() => name += "\\x2e",
            b if b.is_ascii_alphanumeric() || b":_.".contains(&b) => name.push(b.into()),
            b => {
                let _ = write!(name, "\\x{b:02x}");
            }
        }
    }
    name + ".device"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices_are_systemds() {
        for (path, want) in [
            ("/dev/nvme1n1", "dev-nvme1n1.device"),
            ("/dev/disk/by-id/nvme-A_b.c", "dev-disk-by\\x2did-nvme\\x2dA_b.c.device"),
            ("/dev/disk/by-id/a\\x20b", "dev-disk-by\\x2did-a\\x5cx20b.device"),
            ("/dev/ü", "dev-\\xc3\\xbc.device"),
            ("/dev/.x", "dev-.x.device"),
        ] {
            assert_eq!(device_unit(path), want);
        }
    }

    #[test]
    fn it_is_called_by_either_name() {
        let words = |list: &[&str]| words(list.iter().map(OsString::from));
        assert_eq!(words(&["/usr/sbin/znsage", "on"]), ["/usr/sbin/znsage", "on"]);
        assert_eq!(
            words(&["/x/znsage-generator", "/a"]),
            ["/x/znsage-generator", "generator", "/a"]
        );
        assert!(words(&[]).is_empty());
    }

    #[test]
    fn words_stand_for_themselves() {
        assert_eq!(word("/usr/sbin/znsage"), "/usr/sbin/znsage");
        assert_eq!(word("/a b/%n\"$x\\"), "\"/a b/%%n\\\"$$x\\\\\"");
    }
}
