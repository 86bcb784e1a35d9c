// SPDX-License-Identifier: GPL-2.0-only
//! Makes a service for each section of znsage.conf. systemd runs this early at boot,
//! and when it reloads its units. See docs/guide.md.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;

use crate::cli::{GeneratorArgs, OnArgs};
use crate::conf::{self, Conf, Section};
use crate::error::{Error, Result};
use crate::service;
use crate::sys::Sys;
use crate::systemd::{device_unit, literal, word};

/// The name by which systemd runs the command.
const NAME: &str = "znsage-generator";

const KERNEL_LOG: &str = "/dev/kmsg";

/// How long systemd waits for `off`, which reads all swapped pages back: enough for
/// many GiB from a slow device.
const STOP: &str = "15min";

/// The words of the command line. Under its other name the command is `generator`.
pub fn words(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = args.collect();
    let called = words.first().and_then(|w| Path::new(w).file_name());
    if called.is_some_and(|name| name == NAME) {
        words.insert(1, "generator".into());
    }
    words
}

/// Writes the units of all sections. The unit of an invalid section fails with an
/// error message, and so does one for faults outside of all sections. Without a
/// directory, only reports the faults. `program` is the path of this command.
pub fn run(sys: &dyn Sys, args: &GeneratorArgs, program: &str) -> Result<()> {
    // A container has no devices, an initrd neither the file nor the module.
    let container = sys.env("SYSTEMD_VIRTUALIZATION").is_some_and(|v| v.starts_with("container"));
    if container || sys.env("SYSTEMD_IN_INITRD").is_some_and(|v| v == "1") {
        return Ok(());
    }
    let conf = conf::read(sys);
    if let Some(directory) = args.directories.first() {
        for unit in units(&conf, program, &mounts(sys)) {
            unit.write(sys, directory)?;
        }
    }
    let Some(e) = conf::complaint(conf.faults.iter()) else {
        return Ok(());
    };
    // Nobody reads the output of a generator.
    if sys.env("SYSTEMD_SCOPE").is_some() && !args.directories.is_empty() {
        for fault in &conf.faults {
            // A failure here must not hide the fault.
            let _ = sys.write(KERNEL_LOG, &format!("<3>{NAME}: {fault}\n"));
        }
    }
    Err(e)
}

/// Those that the records of drives need (record.rs). systemd mounts a tmpfs after swap.
fn mounts(sys: &dyn Sys) -> String {
    let fstab = sys.read("/etc/fstab").unwrap_or_default();
    let on_disk = |directory: &str| {
        fstab.lines().any(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields.get(1) == Some(&directory) && fields.get(2) != Some(&"tmpfs")
        })
    };
    let units = [("/var", " var.mount"), ("/var/lib", " var-lib.mount")];
    let units = units.into_iter().filter(|(directory, _)| on_disk(directory));
    units.fold("systemd-remount-fs.service".to_string(), |all, (_, unit)| all + unit)
}

/// A service and the units that want it.
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

/// They start after `mounts`.
pub fn units(conf: &Conf, program: &str, mounts: &str) -> Vec<Unit> {
    let disks: Vec<String> =
        (0..conf.sections.len()).map(|n| format!("dev-znsage{n}.swap")).collect();
    let after = format!("{mounts}\nAfter={}", disks.join(" "));
    let sections = conf.sections.iter().map(|section| unit(section, &after, program));
    let nobodys = conf.faults.iter().any(|fault| fault.section.is_none());
    sections.chain(nobodys.then(|| complainer(program))).collect()
}

fn unit(section: &Section, after: &str, program: &str) -> Unit {
    let path = section.args.as_ref().map(|args| args.device.as_str());
    let (device, file) = match path {
        Some(path) if path.starts_with("/dev/") => (Some(device_unit(path)), None),
        path => (None, path),
    };
    // The device starts it when it appears. Without that, nothing waits for it.
    let target = (!section.nofail || file.is_some()).then(|| "swap.target".to_string());
    let order = order(device.as_deref(), file, after);
    Unit {
        name: service::unit(&section.name),
        text: head(section) + &order + &commands(&section.name, program),
        wanted_by: target.into_iter().chain(device).collect(),
    }
}

/// Fails with the faults of no section, so that `systemctl --failed` shows them.
fn complainer(program: &str) -> Unit {
    Unit {
        name: "znsage-conf.service".to_string(),
        text: format!(
            "# Made by {NAME}, because a line of znsage.conf belongs to no section.\n\
             [Unit]\n\
             Description=Mistakes in znsage.conf\n\
             Documentation=man:znsage.conf(5)\n\
             \n\
             [Service]\n\
             Type=oneshot\n\
             ExecStart={} generator\n",
            word(program)
        ),
        wanted_by: vec!["multi-user.target".to_string()],
    }
}

fn head(section: &Section) -> String {
    let Section { name, file, args, .. } = section;
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

/// The order of swap units: after their device, or the file system of their file, before
/// services that need memory, and stopped before file systems are unmounted.
fn order(device: Option<&str>, file: Option<&str>, after: &str) -> String {
    let mut text = "DefaultDependencies=no\n".to_string();
    // BindsTo= would not start it without the device, so that nothing fails.
    if let Some(device) = device {
        let _ = write!(text, "Wants={device}\nAfter={device}\nStopPropagatedFrom={device}\n");
    }
    if let Some(file) = file {
        let _ = writeln!(text, "RequiresMountsFor={}", word(file));
    }
    // systemd-modules-load may load the module. systemd mounts configfs as soon as
    // it sees the module, so wait for that. The swap units come after those of the
    // disks, so that systemd stops them before; sections get the first numbers.
    let _ = write!(
        text,
        "After=systemd-modules-load.service sys-kernel-config.mount\n\
         Wants=sys-kernel-config.mount\n\
         After={after}\n\
         Before=swap.target\n\
         Conflicts=umount.target\n\
         Before=umount.target\n"
    );
    text
}

fn commands(name: &str, program: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_program_name_works() {
        let words = |list: &[&str]| words(list.iter().map(OsString::from));
        assert_eq!(words(&["/usr/sbin/znsage", "on"]), ["/usr/sbin/znsage", "on"]);
        assert_eq!(
            words(&["/x/znsage-generator", "/a"]),
            ["/x/znsage-generator", "generator", "/a"]
        );
        assert!(words(&[]).is_empty());
    }
}
