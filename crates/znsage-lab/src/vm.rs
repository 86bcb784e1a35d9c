// SPDX-License-Identifier: GPL-2.0-only
//! The host's side: starts this program in a guest by vm/run, shows the guest's
//! messages, and reads its results.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use serde::de::DeserializeOwned;

use crate::files::{make_directory, read_json, write};
use crate::load::Load;
use crate::result::{Context, Result};
use crate::table::clock;

/// The kernel for everything that is measured on one kernel only.
pub const KERNEL: &str = "6.12";
/// CPUs of a guest, unless the work wants more. With two, the emulator has three busy threads
/// on a machine of two CPUs, and each TLB flush waits for a guest CPU that is not running.
pub const CPUS: u32 = 1;

/// The exit statuses of vm/run for a guest that crashed or did not start, and for one that
/// QEMU crashed.
const STATUS_VM: i32 = 125;
const STATUS_EMULATION: i32 = 123;
const ATTEMPTS: u32 = 3;

/// The guest creates this file when it begins its work.
const STARTED: &str = "started";

/// The clock of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Real time.
    Real,
    /// Executed instructions: the same on a busy machine as on an idle one.
    Instructions,
}

/// The speed of a guest whose clock counts instructions.
pub const INSTRUCTIONS_PER_S: f64 = 500e6;

/// One boot.
pub struct Vm<'a> {
    /// The kernel's name in vm/run.
    pub kernel: &'a str,
    pub cpus: u32,
    pub clock: Clock,
    pub conventional: Vec<&'a str>,
    pub zns: Vec<&'a str>,
    /// The guest runs `znsage-lab guest JOB`.
    pub job: &'a str,
    pub arguments: Vec<String>,
    /// Directory in the repository for the results.
    pub out: &'a Path,
    pub timeout: u32,
}

/// The results of a boot.
pub struct Harvest<T> {
    pub document: T,
    /// The share of other programs in the machine's CPU time, 0 to 1.
    pub others: Option<f64>,
}

/// Runs the job and reads the document that it writes to `out`/raw/runs.json.
pub fn collect<T: DeserializeOwned>(vm: &Vm) -> Result<Harvest<T>> {
    if !Path::new("vm/run").exists() {
        return Err("vm/run is not here: run this at the root of the repository".into());
    }
    let raw = vm.out.join("raw");
    // Results of an earlier run.
    let _ = fs::remove_dir_all(&raw);
    make_directory(&raw)?;
    let before = Load::now();
    boot(vm, &raw)?;
    let others = Load::now().zip(before).map(|(now, before)| now.others_since(&before));
    Ok(Harvest { document: read_json(&raw.join("runs.json"))?, others })
}

/// Boots the guest, again if it dies before it begins its work: an emulated kernel now
/// and then does, from a race between the emulator's CPUs while the kernel patches its
/// own code (`Oops: int3`).
fn boot(vm: &Vm, raw: &Path) -> Result<()> {
    let start = Instant::now();
    for attempt in 1.. {
        show(start, &format!("booting Debian's kernel {} in QEMU", vm.kernel));
        let status = boot_once(vm, raw, start)?;
        if status.success() {
            break;
        }
        let died = matches!(status.code(), Some(STATUS_VM | STATUS_EMULATION));
        let died_early = died && !raw.join(STARTED).exists();
        if !died_early || attempt == ATTEMPTS {
            return Err(format!("the guest did not finish its work ({status})"));
        }
        show(start, "the guest did not come up; once more");
    }
    Ok(())
}

fn boot_once(vm: &Vm, raw: &Path, start: Instant) -> Result<ExitStatus> {
    let program = std::env::current_exe().context("where am I")?;
    let mut command = Command::new("vm/run");
    command.args(["--kernel", vm.kernel, "--cpus", &vm.cpus.to_string()]);
    if vm.clock == Clock::Instructions {
        command.args(["--clock", "instructions"]);
    }
    command.args(["--timeout", &vm.timeout.to_string()]);
    for spec in &vm.conventional {
        command.args(["--conventional", spec]);
    }
    for spec in &vm.zns {
        command.args(["--zns", spec]);
    }
    command.arg("--").arg(program).args(["guest", vm.job, "--out"]).arg(raw);
    command.args(&vm.arguments);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start vm/run")?;
    if let Some(errors) = child.stderr.take() {
        relay(start, errors);
    }
    child.wait().context("vm/run")
}

/// The guest calls it as it begins its work, and is not booted again after that.
pub fn started(raw: &Path) -> Result<()> {
    write(&raw.join(STARTED), "")
}

/// Shows the guest's messages with their time.
fn relay(start: Instant, from: impl Read) {
    for line in BufReader::new(from).split(b'\n').map_while(std::io::Result::ok) {
        show(start, String::from_utf8_lossy(&line).trim_end());
    }
}

fn show(start: Instant, text: &str) {
    eprintln!("{:>5}  {text}", clock(start.elapsed().as_secs()));
}

/// What vm/run runs guests with in real time: `kvm`, or `tcg` for software emulation.
pub fn accelerator() -> String {
    let output = Command::new("vm/accel").output();
    output.map_or_else(|_| "tcg".into(), |o| String::from_utf8_lossy(&o.stdout).trim().into())
}

/// The machine, for a line above the results.
pub fn machine(guest_cpus: u32) -> String {
    let how = if accelerator() == "kvm" { "KVM" } else { "software emulation" };
    let qemu = Command::new("qemu-system-x86_64").arg("--version").output();
    let version = qemu.map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
    let version = version.as_deref().unwrap_or("").split_whitespace().nth(3).unwrap_or("");
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let plural = if guest_cpus == 1 { "" } else { "s" };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let processor = processor(&cpuinfo);
    format!("{guest_cpus} CPU{plural} in QEMU {version} ({how}), on {cpus} CPUs, {processor}")
}

fn processor(cpuinfo: &str) -> String {
    let name = cpuinfo.lines().find_map(|l| l.strip_prefix("model name")?.split_once(": "));
    name.map_or("an unknown processor".to_string(), |(_, name)| name.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_name_is_found() {
        let text = "processor\t: 0\nmodel name\t: Example CPU @ 2.00GHz\nflags: x\n";
        assert_eq!(processor(text), "Example CPU @ 2.00GHz");
        assert_eq!(processor(""), "an unknown processor");
    }
}
