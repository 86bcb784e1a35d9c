// SPDX-License-Identifier: GPL-2.0-only
//! A cgroup for the programs under test: what is in it has a limit of memory,
//! or none, and ends with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::guest::call;
use crate::Result;

const MOUNT: &str = "/sys/fs/cgroup";

/// Processes that were killed are gone after a moment.
const REMOVE_TRIES: u32 = 100;
const REMOVE_PAUSE: Duration = Duration::from_millis(100);

pub struct Group {
    path: PathBuf,
}

impl Group {
    /// Without a limit at first.
    pub fn new(name: &str) -> Result<Group> {
        let path = Path::new(MOUNT).join(format!("workload-{name}"));
        write(&Path::new(MOUNT).join("cgroup.subtree_control"), "+memory")?;
        fs::create_dir(&path).map_err(|e| format!("cannot make {}: {e}", path.display()))?;
        Ok(Group { path })
    }

    /// A command that runs in the group.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("sh");
        let enter = "echo 0 > \"$0\" && exec \"$@\"";
        command.args(["-c", enter]).arg(self.path.join("cgroup.procs")).arg(program);
        command
    }

    /// Has the kernel swap out what is more. By memory.high first, which
    /// reclaims and does no more; memory.max kills when that takes long.
    pub fn limit(&self, bytes: u64) -> Result<()> {
        self.set("memory.high", &bytes.to_string())?;
        self.set("memory.max", &bytes.to_string())?;
        self.set("memory.high", "max")
    }

    pub fn release(&self) -> Result<()> {
        self.set("memory.max", "max")
    }

    /// Bytes that it has in memory now.
    pub fn resident(&self) -> Result<u64> {
        self.number("memory.current")
    }

    /// The most that it had.
    pub fn peak(&self) -> Result<u64> {
        self.number("memory.peak")
    }

    /// An error if the kernel killed one of its processes for want of memory.
    pub fn unharmed(&self) -> Result<()> {
        let events = self.read("memory.events")?;
        let kills = events.lines().find_map(|l| l.strip_prefix("oom_kill "));
        match kills {
            Some("0") => Ok(()),
            _ => Err("the kernel killed it: the limit leaves it too little memory".to_string()),
        }
    }

    fn number(&self, file: &str) -> Result<u64> {
        let text = self.read(file)?;
        text.trim().parse().map_err(|_| format!("{file} of a cgroup is `{}`", text.trim()))
    }

    fn read(&self, file: &str) -> Result<String> {
        let path = self.path.join(file);
        fs::read_to_string(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))
    }

    fn set(&self, file: &str, value: &str) -> Result<()> {
        write(&self.path.join(file), value)
    }
}

fn write(path: &Path, value: &str) -> Result<()> {
    fs::write(path, value).map_err(|e| format!("cannot write {value} to {}: {e}", path.display()))
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.set("cgroup.kill", "1");
        for _ in 0..REMOVE_TRIES {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(REMOVE_PAUSE);
        }
    }
}

/// A program that serves others until the value ends.
pub struct Server(Child);

impl Server {
    pub fn start(command: &mut Command, name: &str) -> Result<Server> {
        let child = command.stdin(Stdio::null()).spawn();
        child.map(Server).map_err(|e| format!("cannot run {name}: {e}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A file system on the disk beside the swap devices, for as long as it lives.
/// Memory is no place for files here: what they take would count.
pub struct Disk;

/// Where it is mounted.
pub const DISK: &str = "/run/workloads";

impl Disk {
    pub fn mount() -> Result<Disk> {
        let device = crate::guest::swap::device("CONV1")?;
        call("mkfs.ext4", &["-q", "-F", &device])?;
        fs::create_dir_all(DISK).map_err(|e| format!("cannot make {DISK}: {e}"))?;
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

/// Written back, and then forgotten: each measurement reads its files anew.
pub fn drop_caches() -> Result<()> {
    call("sync", &[])?;
    write(Path::new("/proc/sys/vm/drop_caches"), "1")
}
