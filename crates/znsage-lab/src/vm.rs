// SPDX-License-Identifier: GPL-2.0-only
//! The host's side: starts vm/run with this very program in the guest,
//! shows what the guest says, and takes in what it leaves behind.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::load::Load;
use crate::table::clock;
use crate::Result;

const KERNEL: &str = "6.12";
/// One: with two, the emulator runs three busy threads on a machine of two
/// CPUs, and each TLB flush waits for a guest CPU that is not running.
const CPUS: u32 = 1;

/// vm/run's exit status for a guest that crashed or did not start.
const STATUS_VM: i32 = 125;
const ATTEMPTS: u32 = 3;

/// In the guest's directory once it has begun its work.
const STARTED: &str = "started";

/// What the guest's time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// This machine's.
    Real,
    /// Instructions done: the same on a busy machine as on an idle one.
    Instructions,
}

/// In a second of a guest whose clock counts them.
pub const INSTRUCTIONS_PER_S: f64 = 500e6;

/// One boot.
pub struct Vm<'a> {
    pub clock: Clock,
    pub conventional: Vec<&'a str>,
    pub zns: Vec<&'a str>,
    /// A port of this machine's loopback, and the guest's that it leads to.
    pub forward: Option<(u16, u16)>,
    /// What the guest is to do: `znsage-lab guest JOB`.
    pub job: &'a str,
    pub arguments: Vec<String>,
    /// Directory in the repository for what comes of it.
    pub out: &'a Path,
    pub timeout: u32,
}

/// What came of a boot.
pub struct Harvest<T> {
    pub document: T,
    /// Share of the machine's CPU time, 0 to 1, that other programs took.
    pub others: Option<f64>,
}

/// Runs the job and reads the document that it leaves in `out`/raw/runs.json.
pub fn collect<T: DeserializeOwned>(vm: &Vm) -> Result<Harvest<T>> {
    if !Path::new("vm/run").exists() {
        return Err("vm/run is not here: run this at the root of the repository".into());
    }
    let raw = vm.out.join("raw");
    // What an earlier run left must not be taken for this one's.
    let _ = fs::remove_dir_all(&raw);
    fs::create_dir_all(&raw).map_err(|e| format!("cannot make {}: {e}", raw.display()))?;
    let before = Load::now();
    boot(vm, &raw)?;
    let others = Load::now().zip(before).map(|(now, before)| now.others_since(&before));
    let path = raw.join("runs.json");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let document = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(Harvest { document, others })
}

/// An emulated kernel now and then dies on its way up, from a race between
/// the emulator's CPUs while the kernel patches its own code (`Oops: int3`).
/// That says nothing about what is to be measured: boot again. Once the guest
/// has begun its work nothing is tried twice.
fn boot(vm: &Vm, raw: &Path) -> Result<()> {
    let start = Instant::now();
    for attempt in 1.. {
        show(start, &format!("booting Debian's kernel {KERNEL} in QEMU"));
        let status = boot_once(vm, raw, start)?;
        if status.success() {
            break;
        }
        let died_early = status.code() == Some(STATUS_VM) && !raw.join(STARTED).exists();
        if !died_early || attempt == ATTEMPTS {
            return Err(format!("the guest did not finish its work ({status})"));
        }
        show(start, "the guest did not come up; once more");
    }
    Ok(())
}

fn boot_once(vm: &Vm, raw: &Path, start: Instant) -> Result<ExitStatus> {
    let program = std::env::current_exe().map_err(|e| format!("where am I: {e}"))?;
    let mut command = Command::new("vm/run");
    command.args(["--kernel", KERNEL, "--cpus", &CPUS.to_string()]);
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
    if let Some((here, there)) = vm.forward {
        command.args(["--forward", &format!("{here}:{there}")]);
    }
    command.arg("--").arg(program).args(["guest", vm.job, "--out"]).arg(raw);
    command.args(&vm.arguments);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot start vm/run: {e}"))?;
    if let Some(errors) = child.stderr.take() {
        relay(start, errors);
    }
    child.wait().map_err(|e| format!("vm/run: {e}"))
}

/// Called in the guest: from here on it is not the emulator's fault.
pub fn started(raw: &Path) -> Result<()> {
    fs::write(raw.join(STARTED), "").map_err(|e| format!("cannot write to {}: {e}", raw.display()))
}

/// Everything that the guest says, with the time at which it came.
fn relay(start: Instant, from: impl Read) {
    for line in BufReader::new(from).split(b'\n').map_while(std::io::Result::ok) {
        show(start, String::from_utf8_lossy(&line).trim_end());
    }
}

fn show(start: Instant, text: &str) {
    eprintln!("{:>5}  {text}", clock(start.elapsed().as_secs()));
}

/// What the figures were measured on, in a line.
pub fn machine() -> String {
    let accelerated = std::env::var("ACCEL").is_ok_and(|v| v == "kvm");
    let how = if accelerated { "KVM" } else { "software emulation" };
    let qemu = Command::new("qemu-system-x86_64").arg("--version").output();
    let version = qemu.map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
    let version = version.as_deref().unwrap_or("").split_whitespace().nth(3).unwrap_or("");
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let processor = processor(&cpuinfo);
    format!("{CPUS} CPU in QEMU {version} ({how}), on {cpus} CPUs, {processor}")
}

fn processor(cpuinfo: &str) -> String {
    let name = cpuinfo.lines().find_map(|l| l.strip_prefix("model name")?.split_once(": "));
    name.map_or("an unknown processor".to_string(), |(_, name)| name.trim().to_string())
}

pub fn write_json(path: &Path, document: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(document).expect("plain data");
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
    fs::write(path, text + "\n").map_err(|e| format!("cannot write {}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_has_a_name() {
        let text = "processor\t: 0\nmodel name\t: Example CPU @ 2.00GHz\nflags: x\n";
        assert_eq!(processor(text), "Example CPU @ 2.00GHz");
        assert_eq!(processor(""), "an unknown processor");
    }
}
