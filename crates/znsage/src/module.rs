// SPDX-License-Identifier: GPL-2.0-only
//! Finds, loads and unloads the kernel module.

use crate::error::{reason, Error, Kind, Result};
use crate::sys::{absolute, Sys};

/// Path of a znsage.ko to use instead of the installed one.
pub const MODULE_ENV: &str = "ZNSAGE_MODULE";

const LOADED: &str = "/sys/module/znsage";

pub fn loaded(sys: &dyn Sys) -> bool {
    sys.exists(LOADED)
}

/// Where to load the module from.
#[derive(Debug, PartialEq, Eq)]
pub enum Source {
    Loaded,
    File(String),
    Installed,
}

/// Finds the module without loading it, and checks that it is built for the running
/// kernel.
pub fn find(sys: &dyn Sys) -> Result<Source> {
    if loaded(sys) {
        return Ok(Source::Loaded);
    }
    if let Some(path) = sys.env(MODULE_ENV) {
        let path = absolute(&path)?;
        check_file(sys, &path)?;
        return Ok(Source::File(path));
    }
    let found = sys.run(&["modprobe", "--dry-run", "znsage"], &mut || ()).map_err(no_kmod)?;
    match found.ok() {
        true => Ok(Source::Installed),
        false => Err(missing(sys)),
    }
}

fn no_kmod(e: std::io::Error) -> Error {
    Error::new(Kind::Environment, format!("cannot run modprobe: {}", reason(&e)))
        .hint("install the package kmod")
}

/// A file for another kernel is a likely mistake, and insmod's message is poor.
fn check_file(sys: &dyn Sys, path: &str) -> Result<()> {
    let image = sys.read_bytes(path).map_err(|e| {
        Error::new(Kind::Environment, format!("cannot read the module {path}: {}", reason(&e)))
            .hint(format!("{MODULE_ENV} names the znsage.ko to load"))
    })?;
    let release = sys.release();
    match vermagic(&image) {
        Some(built) if built == release => Ok(()),
        Some(built) => Err(Error::new(
            Kind::Environment,
            format!("{path} is built for kernel {built}, but {release} is running"),
        )
        .hint(format!("build the module against the headers of {release}"))),
        None => Err(Error::new(Kind::Environment, format!("{path} is not a kernel module"))),
    }
}

/// The kernel release in a module's "vermagic=RELEASE FLAGS..." record.
fn vermagic(image: &[u8]) -> Option<String> {
    record(image, "vermagic")
}

/// The first word of a "KEY=VALUE" record. The key `version` must not match
/// `srcversion`.
fn record(image: &[u8], key: &str) -> Option<String> {
    let key = format!("{key}=");
    let mut found = image.windows(key.len()).enumerate().filter(|(_, w)| *w == key.as_bytes());
    let (at, _) = found.find(|&(at, _)| at == 0 || !image[at - 1].is_ascii_lowercase())?;
    let word = image[at + key.len()..].split(|&b| b == b' ' || b == 0).next()?;
    String::from_utf8(word.to_vec()).ok()
}

/// The modules that a module file needs loaded before.
fn dependencies(sys: &dyn Sys, path: &str) -> Vec<String> {
    let list = sys.read_bytes(path).ok().and_then(|image| record(&image, "depends"));
    let names = list.iter().flat_map(|l| l.split(',')).filter(|name| !name.is_empty());
    names.map(str::to_string).collect()
}

/// The version of the module; None if it has none.
pub fn version(sys: &dyn Sys, source: &Source) -> Option<String> {
    let text = match source {
        Source::Loaded => sys.read(&format!("{LOADED}/version")).ok()?,
        Source::File(path) => record(&sys.read_bytes(path).ok()?, "version")?,
        Source::Installed => {
            let ran = sys.run(&["modinfo", "-F", "version", "znsage"], &mut || ()).ok()?;
            ran.ok().then_some(ran.stdout)?
        }
    };
    Some(text.trim().to_string()).filter(|t| !t.is_empty())
}

/// The error if the module is not installed for this kernel.
fn missing(sys: &dyn Sys) -> Error {
    let release = sys.release();
    let others: Vec<String> = sys
        .list("/lib/modules")
        .into_iter()
        .filter(|kernel| *kernel != release && holds_module(sys, kernel))
        .collect();
    let message = match others.as_slice() {
        [] => format!("the kernel module znsage is not installed for kernel {release}"),
        some => format!(
            "the kernel module znsage is installed for {}, but kernel {release} is running",
            some.join(", ")
        ),
    };
    Error::new(Kind::Environment, message).hint(format!(
        "`apt-get install znsage-dkms linux-headers-{release}` builds and installs it;\n\
         or set {MODULE_ENV} to the path of a znsage.ko for {release}"
    ))
}

fn holds_module(sys: &dyn Sys, kernel: &str) -> bool {
    sys.read(&format!("/lib/modules/{kernel}/modules.dep")).is_ok_and(|t| t.contains("/znsage.ko"))
}

/// Loads the module unless it is loaded.
pub fn load(sys: &dyn Sys, source: &Source) -> Result<()> {
    let argv: &[&str] = match source {
        Source::Loaded => return Ok(()),
        Source::File(path) => {
            // insmod does not load dependencies, and tells if one is missing.
            for name in dependencies(sys, path) {
                let _ = sys.run(&["modprobe", &name], &mut || ());
            }
            &["insmod", path]
        }
        Source::Installed => &["modprobe", "znsage"],
    };
    let ran = sys.run(argv, &mut || ()).map_err(no_kmod)?;
    if ran.ok() {
        return Ok(());
    }
    if sys.interrupted() {
        return Err(Error::interrupted());
    }
    let mut e = Error::new(
        Kind::Environment,
        format!("kernel {} refuses the module: {}", sys.release(), ran.complaint()),
    );
    // The errors of the kernel for a signature that is missing or by an unknown key.
    let unsigned = ["Key was rejected", "Operation not permitted", "Required key not available"];
    let refused = unsigned.iter().any(|text| ran.complaint().contains(text));
    e = match only_signed(sys).filter(|_| refused) {
        Some(why) => e.hint(format!("the kernel takes only signed modules ({why}):\n{SIGN}")),
        None => e.hint("`dmesg` may show why"),
    };
    Err(e)
}

/// How to sign the module.
pub const SIGN: &str = "DKMS signs what it builds: `mokutil --import /var/lib/dkms/mok.pub`, reboot, and confirm \
                        the key on the firmware's screen;\n\
                        `dkms build --force` and `dkms install --force` sign a module that was built before";

/// Why the kernel takes only signed modules; None if it takes others, too. Secure Boot
/// alone does not do that, but most distributions' kernels then set lockdown.
pub fn only_signed(sys: &dyn Sys) -> Option<String> {
    let boot = if secure_boot(sys) { ", as Secure Boot is on" } else { "" };
    let lockdown = sys.read("/sys/kernel/security/lockdown").unwrap_or_default();
    let level = lockdown.split_whitespace().find_map(|w| w.strip_prefix('[')?.strip_suffix(']'));
    if let Some(level) = level.filter(|level| *level != "none") {
        return Some(format!("lockdown is {level}{boot}"));
    }
    let enforced = sys.read("/sys/module/module/parameters/sig_enforce");
    enforced.is_ok_and(|t| t.trim() == "Y").then(|| format!("module.sig_enforce is set{boot}"))
}

/// The variable of the firmware has four bytes of attributes, and then 1.
fn secure_boot(sys: &dyn Sys) -> bool {
    const VARIABLE: &str =
        "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
    sys.read_bytes(VARIABLE).is_ok_and(|bytes| bytes.get(4) == Some(&1))
}

/// Who signed the module that [`load`] would load; None if nobody did.
pub fn signer(sys: &dyn Sys, source: &Source) -> Option<String> {
    let name = match source {
        Source::Loaded => return None,
        Source::File(path) => path,
        Source::Installed => "znsage",
    };
    let ran = sys.run(&["modinfo", "-F", "signer", name], &mut || ()).ok()?;
    Some(ran.stdout.trim().to_string()).filter(|signer| ran.ok() && !signer.is_empty())
}

/// Does the kernel have a key of that name? None if it cannot be seen: root sees the
/// kernel's keys, by the names in their certificates.
pub fn has_key(sys: &dyn Sys, signer: &str) -> Option<bool> {
    let keys = sys.read("/proc/keys").ok()?;
    let mut known = keys.lines().filter(|line| line.contains(" asymmetri ")).peekable();
    known.peek()?;
    Some(known.any(|line| line.contains(&format!(" asymmetri {signer}: "))))
}

/// Unloads the module; fails while it is in use.
pub fn unload(sys: &dyn Sys) -> std::result::Result<(), String> {
    match sys.run(&["rmmod", "znsage"], &mut || ()) {
        Ok(ran) if ran.ok() => Ok(()),
        Ok(ran) => Err(ran.complaint()),
        Err(e) => Err(reason(&e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vermagic_is_found() {
        let image =
            b"\x7fELF..\0license=GPL\0vermagic=6.1.0-30-amd64 SMP mod_unload\0name=znsage\0";
        assert_eq!(vermagic(image).as_deref(), Some("6.1.0-30-amd64"));
        let image = b"\0srcversion=A7\0version=0.1.0\0vermagic=6.1.0 SMP\0";
        assert_eq!(record(image, "version").as_deref(), Some("0.1.0"));
        assert_eq!(vermagic(b"no such thing"), None);
    }
}
