// SPDX-License-Identifier: GPL-2.0-only
//! A cgroup for the programs under test, the programs in it, and the disk for their
//! files.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use znsage_guest::{child, guest};

use crate::files;
use crate::guest::program::call;
use crate::result::{Context, Result};

/// A cgroup. Its processes are killed when it is dropped.
pub struct Group(child::Group);

impl Group {
    /// A group without a limit.
    pub fn new(name: &str) -> Result<Group> {
        child::Group::unlimited(name).map(Group)
    }

    /// A group within this one, which then has no processes of its own.
    pub fn child(&self, name: &str) -> Result<Group> {
        self.0.set("cgroup.subtree_control", "+memory")?;
        child::Group::within(&self.0, name).map(Group)
    }

    /// A command that runs in the group.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("sh");
        let enter = "echo 0 > \"$0\" && exec \"$@\"";
        command.args(["-c", enter]).arg(self.0.file("cgroup.procs")).arg(program);
        command
    }

    /// Limits the group, and has the kernel swap out the rest. memory.high comes first
    /// because it only reclaims: memory.max kills if that takes long.
    pub fn limit(&self, bytes: u64) -> Result<()> {
        self.0.set("memory.high", &bytes.to_string())?;
        self.0.set("memory.max", &bytes.to_string())?;
        self.0.set("memory.high", "max")
    }

    pub fn release(&self) -> Result<()> {
        self.0.set("memory.max", "max")
    }

    /// Bytes in memory now.
    pub fn resident(&self) -> Result<u64> {
        self.0.current()
    }

    /// The most bytes in memory so far.
    pub fn peak(&self) -> Result<u64> {
        guest::read_number(&self.0.file("memory.peak").to_string_lossy())
    }

    /// Runs a command of the group to its end, and returns its output.
    pub fn finish(&self, command: &mut Command, name: &str) -> Result<String> {
        let output = command.output().context(format_args!("cannot run {name}"))?;
        self.unharmed()?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => {
                let errors = String::from_utf8_lossy(&output.stderr);
                let first: Vec<&str> = errors.lines().take(3).collect();
                Err(format!("{name} failed ({}): {}", output.status, first.join("; ")))
            }
        }
    }

    /// An error if the kernel killed a process of the group to free memory.
    pub fn unharmed(&self) -> Result<()> {
        let events = files::read(&self.0.file("memory.events"))?;
        let kills = events.lines().find_map(|l| l.strip_prefix("oom_kill "));
        match kills {
            Some("0") => Ok(()),
            _ => Err("the kernel killed it: the limit leaves it too little memory".to_string()),
        }
    }
}

/// A server that is killed when dropped.
pub struct Server(Child);

impl Server {
    pub fn start(command: &mut Command, name: &str) -> Result<Server> {
        let child = command.stdin(Stdio::null()).spawn();
        child.map(Server).context(format_args!("cannot run {name}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A file system on the disk beside the swap devices, unmounted when dropped. Files in
/// memory would count as memory.
pub struct Disk;

/// Where it is mounted.
pub const DISK: &str = "/run/workloads";

impl Disk {
    pub fn mount() -> Result<Disk> {
        let device = crate::guest::swap::device("CONV1")?;
        call("mkfs.ext4", &["-q", "-F", &device])?;
        files::make_directory(Path::new(DISK))?;
        call("mount", &[&device, DISK])?;
        Ok(Disk)
    }

    pub fn path(name: &str) -> PathBuf {
        Path::new(DISK).join(name)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = call("umount", &[DISK]);
    }
}

/// Makes the next measurement read its files from the disk.
pub fn drop_caches() -> Result<()> {
    call("sync", &[])?;
    files::write(Path::new("/proc/sys/vm/drop_caches"), "1")
}
