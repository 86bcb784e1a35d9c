// SPDX-License-Identifier: GPL-2.0-only
//! `znsage policy`: loads and unloads policies in BPF.
//!
//! A loaded policy is a link pinned in the BPF file system. The kernel keeps it as long as the
//! file exists, so it outlives this process and ends with the file.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::{MapCore, MapType, ObjectBuilder, PrintLevel};
use serde_json::json;

use crate::cli::PolicyCommand;
use crate::configfs;
use crate::error::{reason, Error, Kind, Result};
use crate::sys::{require_root, Sys};

const BPFFS: &str = "/sys/fs/bpf";
const PINS: &str = "/sys/fs/bpf/znsage";

#[derive(Debug)]
pub struct Report {
    done: &'static str,
    policy: String,
}

impl Report {
    pub fn to_json(&self) -> serde_json::Value {
        json!({"version": 1, "done": self.done, "policy": self.policy})
    }

    pub fn to_text(&self) -> String {
        match self.done {
            "loaded" => format!("loaded {0}; to use it: znsage set policy={0}\n", self.policy),
            done => format!("{done} {}\n", self.policy),
        }
    }
}

pub fn run(sys: &dyn Sys, command: &PolicyCommand) -> Result<Report> {
    match command {
        PolicyCommand::Load { file } => load(sys, file),
        PolicyCommand::Unload { name } => unload(sys, name),
    }
}

fn load(sys: &dyn Sys, file: &Path) -> Result<Report> {
    require_root(sys, "load a policy")?;
    supported(sys)?;
    ensure_mounted(sys)?;
    let before = known(sys);
    let mut link = attach(file)?;
    // The name is in the program; the module lists it now.
    let policy = known(sys).difference(&before).next().cloned().ok_or_else(|| {
        Error::new(Kind::Kernel, format!("{} is attached but is no policy", file.display()))
    })?;
    let pin = format!("{PINS}/{policy}");
    link.pin(&pin)
        .map_err(|e| Error::new(Kind::Kernel, format!("cannot keep the policy as {pin}: {e:#}")))?;
    Ok(Report { done: "loaded", policy })
}

fn unload(sys: &dyn Sys, name: &str) -> Result<Report> {
    require_root(sys, "unload a policy")?;
    if name.contains('/') || !sys.list(PINS).iter().any(|n| n == name) {
        let loaded = sys.list(PINS);
        return Err(Error::new(Kind::Usage, format!("no BPF policy `{name}` is loaded")).hint(
            match loaded.is_empty() {
                true => "none is loaded".to_string(),
                false => format!("loaded: {}", loaded.join(", ")),
            },
        ));
    }
    let path = format!("{PINS}/{name}");
    std::fs::remove_file(sys.at(&path)).map_err(|e| Error::io("remove", &sys.at(&path), e))?;
    Ok(Report { done: "unloaded", policy: name.to_string() })
}

fn known(sys: &dyn Sys) -> BTreeSet<String> {
    let text = sys.read(&configfs::policies()).unwrap_or_default();
    text.lines().map(str::to_string).collect()
}

/// Fails with the module's reason if it takes no policies in BPF.
fn supported(sys: &dyn Sys) -> Result<()> {
    let path = configfs::bpf();
    let answer = sys.read(&path).map_err(|e| {
        let error = Error::new(
            Kind::Environment,
            format!("the module takes no policies in BPF: cannot read {path}: {}", reason(&e)),
        );
        error.hint("load the module first (`modprobe znsage`), of the same version as this command")
    })?;
    match answer.trim().strip_prefix("no: ") {
        Some(why) => {
            let what = format!("the module takes no policies in BPF: {why}");
            Err(Error::new(Kind::Environment, what)
                .hint("docs/dev/policies.md says what they need"))
        }
        None => Ok(()),
    }
}

fn ensure_mounted(sys: &dyn Sys) -> Result<()> {
    let mounts = sys.read("/proc/mounts").unwrap_or_default();
    if !mounts.lines().any(|l| l.split(' ').nth(1) == Some(BPFFS)) {
        sys.mount("bpf", BPFFS).map_err(|e| Error::io("mount bpf on", &sys.at(BPFFS), e))?;
    }
    if !sys.exists(PINS) {
        sys.mkdir(PINS).map_err(|e| Error::io("create", &sys.at(PINS), e))?;
    }
    Ok(())
}

/// What libbpf says while it loads: the verifier's log, which tells what is wrong.
static COMPLAINTS: Mutex<String> = Mutex::new(String::new());

fn note(_: PrintLevel, text: String) {
    COMPLAINTS.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
}

/// What the kernel means by this: it only says that the module refuses the function.
fn rules(log: &str) -> &'static str {
    match log.contains("attach to unsupported member") {
        true => {
            "\nno function of a policy may sleep, and place() and survivor() may not loop by may_goto, \
             iterators or global functions: see docs/dev/policies.md"
        }
        false => "",
    }
}

/// Loads the program and attaches its policy. It ends with the link, unless that is pinned.
fn attach(file: &Path) -> Result<libbpf_rs::Link> {
    let failed = |what: &str, e: libbpf_rs::Error| {
        let log = COMPLAINTS.lock().unwrap_or_else(PoisonError::into_inner);
        let error = Error::new(Kind::Kernel, format!("cannot {what} {}: {e:#}", file.display()));
        match log.trim() {
            "" => error,
            text => error.hint(format!("{text}{}", rules(text))),
        }
    };
    libbpf_rs::set_print(Some((PrintLevel::Warn, note)));
    let open = ObjectBuilder::default().open_file(file).map_err(|e| failed("read", e))?;
    let mut object = open.load().map_err(|e| failed("load", e))?;
    let mut policies =
        object.maps_mut().filter(|m| m.map_type() == MapType::StructOps).collect::<Vec<_>>();
    match policies.as_mut_slice() {
        [policy] => policy.attach_struct_ops().map_err(|e| {
            failed("attach", e).hint(
                "the name of the policy is taken (`cat /sys/kernel/config/znsage/policies`), or \
                 is not of 1 to 15 letters, digits, - and _",
            )
        }),
        some => Err(Error::new(
            Kind::Usage,
            format!("{} holds {} policies, and must hold one", file.display(), some.len()),
        )
        .hint("include/znsage.bpf.h: ZNSAGE_POLICY")),
    }
}
