// SPDX-License-Identifier: GPL-2.0-only
//! Processes with a limit on their memory. A child runs a closure and stops
//! at points where its parent may look around before it lets it go on.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::PathBuf;

use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitStatus};
use nix::unistd::{fork, pipe, ForkResult, Pid};

use crate::ensure;
use crate::guest;
use crate::outcome::{Context, Outcome};

pub const GROUPS: &str = "/sys/fs/cgroup";
/// What the names of the suite's groups begin with.
pub const PREFIX: &str = "vm-suite-";

/// A cgroup that ends, with all that is in it, when the value does.
pub struct Group {
    path: PathBuf,
}

impl Group {
    /// `limit` in bytes. Pages may go to swap, but not to zswap.
    pub fn new(name: &str, limit: u64) -> Outcome<Group> {
        guest::write(&format!("{GROUPS}/cgroup.subtree_control"), "+memory")
            .context("hand the memory controller down")?;
        let group = Group { path: format!("{GROUPS}/{PREFIX}{name}").into() };
        fs::create_dir(&group.path).context("make a cgroup")?;
        group.set("memory.max", &limit.to_string())?;
        group.set("memory.zswap.max", "0")?;
        Ok(group)
    }

    pub fn set(&self, file: &str, value: &str) -> Outcome {
        let path = self.path.join(file);
        fs::write(&path, value).context(format!("{} := {value}", path.display()))
    }

    /// Its memory on swap, in bytes.
    pub fn swapped(&self) -> Outcome<u64> {
        guest::read_number(&self.path.join("memory.swap.current").to_string_lossy())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        remove_group(&self.path.to_string_lossy());
    }
}

/// Asks the group of this process for memory. It gives what it has.
pub fn reclaim(bytes: usize) -> Outcome {
    let line = guest::read("/proc/self/cgroup")?;
    let group = line.strip_prefix("0::").ok_or("there is no cgroup v2")?;
    match guest::write(&format!("{GROUPS}{group}/memory.reclaim"), &bytes.to_string()) {
        Err(e) if e.raw_os_error() != Some(libc::EAGAIN) => Err(format!("memory.reclaim: {e}")),
        _ => Ok(()),
    }
}

/// Kills what is in a group and removes it.
pub fn remove_group(path: &str) -> bool {
    let _ = fs::write(format!("{path}/cgroup.kill"), "1");
    guest::eventually(20.0, || fs::remove_dir(path).is_ok() || !guest::exists(path))
}

/// The parent's end.
pub struct Child {
    pid: Pid,
    from: BufReader<File>,
    to: File,
}

/// The child's end.
pub struct Link {
    from: File,
    to: File,
}

const POINT: &str = "point";

impl Link {
    /// Tells the parent that this point is reached, and waits for its word.
    pub fn point(&mut self) -> Outcome {
        writeln!(self.to, "{POINT}").context("tell the parent")?;
        self.from.read_exact(&mut [0]).context("wait for the parent")
    }
}

/// Runs `body` in a child, in the group if there is one.
pub fn spawn(group: Option<&Group>, body: impl FnOnce(&mut Link) -> Outcome) -> Outcome<Child> {
    let (from_child, to_parent) = pipe().context("pipe")?;
    let (from_parent, to_child) = pipe().context("pipe")?;
    // SAFETY: the child only runs code that a process of one thread may run:
    // the other thread here, the watchdog, holds no lock over a fork.
    match unsafe { fork() }.context("fork")? {
        ForkResult::Parent { child } => {
            Ok(Child { pid: child, from: BufReader::new(from_child.into()), to: to_child.into() })
        }
        ForkResult::Child => {
            drop((from_child, to_child));
            let mut link = Link { from: from_parent.into(), to: to_parent.into() };
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                if let Some(group) = group {
                    group.set("cgroup.procs", "0")?;
                }
                body(&mut link)
            }))
            .unwrap_or_else(|_| Err("it panicked".to_string()));
            if let Err(e) = &outcome {
                let _ = writeln!(link.to, "{}", e.replace('\n', " "));
            }
            // SAFETY: ends this process and nothing else; what the parent's
            // values own here must not be dropped twice.
            unsafe { libc::_exit(i32::from(outcome.is_err())) }
        }
    }
}

impl Child {
    /// Waits until the child reaches its next point.
    pub fn reach(&mut self) -> Outcome {
        let mut line = String::new();
        self.from.read_line(&mut line).context("listen to the child")?;
        ensure!(!line.is_empty(), "the child died{}", self.obituary());
        ensure!(line.trim_end() == POINT, "{}", line.trim_end());
        Ok(())
    }

    pub fn go_on(&mut self) -> Outcome {
        self.to.write_all(&[1]).context("tell the child to go on")
    }

    fn obituary(&self) -> String {
        waitpid(self.pid, None).map_or(String::new(), |status| format!(": {status:?}"))
    }

    /// Waits for its end, which has to be a good one.
    pub fn join(mut self) -> Outcome {
        let mut rest = String::new();
        self.from.read_to_string(&mut rest).context("listen to the child")?;
        let status = waitpid(self.pid, None).context("wait for the child")?;
        let rest = rest.trim_end();
        ensure!(rest.is_empty(), "{rest}");
        ensure!(matches!(status, WaitStatus::Exited(_, 0)), "the child ended with {status:?}");
        Ok(())
    }

    /// Waits for its end by a signal.
    pub fn dies_of(mut self, signal: Signal) -> Outcome {
        let mut rest = String::new();
        self.from.read_to_string(&mut rest).context("listen to the child")?;
        let status = waitpid(self.pid, None).context("wait for the child")?;
        ensure!(
            matches!(status, WaitStatus::Signaled(_, s, _) if s == signal),
            "the child ended with {status:?} instead of {signal}: {}",
            rest.trim_end()
        );
        Ok(())
    }

    pub fn kill(self) -> Outcome {
        kill(self.pid, Signal::SIGKILL).context("kill the child")?;
        waitpid(self.pid, None).map(drop).context("wait for the child")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_stop_at_points() {
        let mut child = spawn(None, |link| {
            link.point()?;
            link.point()
        })
        .unwrap();
        child.reach().unwrap();
        child.go_on().unwrap();
        child.reach().unwrap();
        child.go_on().unwrap();
        child.join().unwrap();
    }

    #[test]
    fn children_tell_why_they_failed() {
        let child = spawn(None, |_| Err("no luck".to_string())).unwrap();
        assert_eq!(child.join().unwrap_err(), "no luck");
        let mut child = spawn(None, |_| Err("no luck".to_string())).unwrap();
        assert_eq!(child.reach().unwrap_err(), "no luck");
        let child = spawn(None, |link| link.point()).unwrap();
        child.kill().unwrap();
    }
}
