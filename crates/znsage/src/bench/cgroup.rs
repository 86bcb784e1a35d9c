// SPDX-License-Identifier: GPL-2.0-only
//! A cgroup with a memory limit that lives as long as the benchmark.

use std::io;
use std::time::Duration;

use crate::cgroups;
use crate::error::{Error, Kind, Result};
use crate::sys::Sys;

/// The group's name without the process id of the benchmark.
const PREFIX: &str = "znsage-bench-";

const USUAL_MOUNT: &str = "/sys/fs/cgroup";

/// The group of a process that just ended may be busy for a moment.
const REMOVE_TRIES: u32 = 50;
const REMOVE_PAUSE: Duration = Duration::from_millis(100);

pub struct Cgroup<'a> {
    sys: &'a dyn Sys,
    path: String,
}

impl<'a> Cgroup<'a> {
    /// Creates the group without limit on swap. Of `limit` zswap may use `zswap`; what it keeps
    /// does not reach the device.
    pub fn create(sys: &'a dyn Sys, limit: u64, zswap: u64) -> Result<Self> {
        let mount = hierarchy(sys)?;
        remove_orphans(sys, &mount);
        let path = format!("{mount}/{PREFIX}{}", std::process::id());
        sys.mkdir(&path).map_err(|e| refused(sys, &path, e))?;
        let group = Cgroup { sys, path };
        group.set("memory.max", &limit.to_string())?;
        let zswap = zswap.to_string();
        for (file, value) in [("memory.swap.max", "max"), ("memory.zswap.max", &zswap)] {
            if sys.exists(&format!("{}/{file}", group.path)) {
                group.set(file, value)?;
            }
        }
        Ok(group)
    }

    fn set(&self, file: &str, value: &str) -> Result<()> {
        let path = format!("{}/{file}", self.path);
        let written = self.sys.write(&path, value);
        written.map_err(|e| refused(self.sys, &path, e))
    }

    /// The file to which a process writes "0" to enter the group.
    pub fn procs(&self) -> String {
        format!("{}/cgroup.procs", self.path)
    }

    /// A number in a table with a "key value" pair per line.
    pub fn number(&self, file: &str, key: &str) -> Option<u64> {
        let text = self.sys.read(&format!("{}/{file}", self.path)).ok()?;
        lookup(&text, key)
    }

    /// Bytes charged to the group.
    pub fn held(&self) -> Option<u64> {
        self.sys.read(&format!("{}/memory.current", self.path)).ok()?.trim().parse().ok()
    }

    pub fn oom_kills(&self) -> u64 {
        self.number("memory.events", "oom_kill").unwrap_or(0)
    }
}

impl Drop for Cgroup<'_> {
    fn drop(&mut self) {
        for _ in 0..REMOVE_TRIES {
            match self.sys.rmdir(&self.path) {
                Err(e) if e.raw_os_error() == Some(libc::EBUSY) => self.sys.sleep(REMOVE_PAUSE),
                _ => return,
            }
        }
    }
}

/// Removes groups of killed benchmarks.
fn remove_orphans(sys: &dyn Sys, mount: &str) {
    for name in sys.list(mount) {
        let Some(pid) = name.strip_prefix(PREFIX) else {
            continue;
        };
        if !sys.exists(&format!("/proc/{pid}")) {
            // It may be in use, or removed already.
            let _ = sys.rmdir(&format!("{mount}/{name}"));
        }
    }
}

pub fn lookup(table: &str, key: &str) -> Option<u64> {
    table
        .lines()
        .find_map(|l| l.strip_prefix(key)?.strip_prefix(' '))
        .and_then(|n| n.trim().parse().ok())
}

fn refused(sys: &dyn Sys, path: &str, e: io::Error) -> Error {
    match e.kind() {
        io::ErrorKind::PermissionDenied => Error::new(
            Kind::Environment,
            "a memory limit needs a cgroup, which only root can create",
        )
        .hint("run it with sudo"),
        _ => Error::io("set up", &sys.at(path), e),
    }
}

/// The mount point of cgroup v2, with the memory controller enabled.
fn hierarchy(sys: &dyn Sys) -> Result<String> {
    let mount = match cgroups::mount(sys) {
        Some(point) => point,
        None => {
            let done = sys.mount("cgroup2", USUAL_MOUNT);
            done.map_err(|e| refused(sys, USUAL_MOUNT, e))?;
            USUAL_MOUNT.to_string()
        }
    };
    if !cgroups::controllers(sys, &mount).iter().any(|c| c == "memory") {
        return Err(Error::new(
            Kind::Environment,
            format!("cgroup v2 on {mount} has no memory controller"),
        )
        .hint("boot with systemd.unified_cgroup_hierarchy=1 and without cgroup_disable=memory,\nor measure without a limit: --memory-limit none"));
    }
    let subtree = format!("{mount}/cgroup.subtree_control");
    let given = sys.read(&subtree).unwrap_or_default();
    if !given.split_whitespace().any(|c| c == "memory") {
        sys.write(&subtree, "+memory").map_err(|e| refused(sys, &subtree, e))?;
    }
    Ok(mount)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::fake::Fake;

    fn tree(controllers: &str) -> Fake {
        let fake = Fake::new();
        fake.put("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
        fake.put("/sys/fs/cgroup/cgroup.controllers", controllers);
        fake.put("/sys/fs/cgroup/cgroup.subtree_control", "");
        fake
    }

    #[test]
    fn limit_is_set_and_the_group_is_removed() {
        let fake = tree("cpu io memory pids\n");
        fake.on_mkdir(|fake, path| {
            fake.put(&format!("{path}/memory.max"), "max");
            fake.put(&format!("{path}/memory.swap.max"), "0");
        });
        let group = Cgroup::create(&fake, 1 << 28, 0).unwrap();
        let read = |file: &str| fake.read(&format!("{}/{file}", group.path)).unwrap();
        assert_eq!(read("memory.max"), "268435456");
        assert_eq!(read("memory.swap.max"), "max");
        assert_eq!(fake.read("/sys/fs/cgroup/cgroup.subtree_control").unwrap(), "+memory");
        let path = group.path.clone();
        drop(group);
        assert!(!fake.exists(&path));
    }

    #[test]
    fn missing_memory_controller_is_an_environment_error() {
        let fake = tree("cpu io\n");
        let e = Cgroup::create(&fake, 1 << 28, 0).err().unwrap();
        assert_eq!(e.kind, Kind::Environment);
        assert!(e.message.contains("memory controller"));
    }

    #[test]
    fn partly_set_up_group_is_removed() {
        let fake = tree("memory\n");
        fake.fail_at("memory.max", libc::EIO);
        assert!(Cgroup::create(&fake, 1 << 28, 0).is_err());
        assert_eq!(fake.list("/sys/fs/cgroup"), ["cgroup.controllers", "cgroup.subtree_control"]);
    }

    #[test]
    fn groups_of_killed_benchmarks_are_removed() {
        let fake = tree("memory\n");
        fake.on_mkdir(|fake, path| fake.put(&format!("{path}/memory.max"), "max"));
        fake.put_dir("/sys/fs/cgroup/znsage-bench-1111");
        fake.put_dir("/sys/fs/cgroup/znsage-bench-2222");
        fake.put_dir("/proc/2222");
        let group = Cgroup::create(&fake, 1 << 28, 0).unwrap();
        assert!(!fake.exists("/sys/fs/cgroup/znsage-bench-1111"));
        assert!(fake.exists("/sys/fs/cgroup/znsage-bench-2222"));
        drop(group);
    }

    #[test]
    fn tables_parse() {
        let table = "oom 3\noom_kill 1\noom_kill_x 7\n";
        assert_eq!(lookup(table, "oom_kill"), Some(1));
        assert_eq!(lookup(table, "none"), None);
    }
}
