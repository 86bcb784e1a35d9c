// SPDX-License-Identifier: GPL-2.0-only
//! Processes with a memory limit. A child runs a closure and stops at points, where its parent
//! inspects the system before it lets the child continue.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::PathBuf;

use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitStatus};
use nix::unistd::{fork, pipe, ForkResult, Pid};

use crate::ensure;
use crate::guest;
use crate::outcome::{Context, Outcome};

pub const GROUPS: &str = "/sys/fs/cgroup";
/// All cgroups of the suite have names with this prefix.
pub const PREFIX: &str = "vm-suite-";

/// A cgroup; dropping it kills its processes and removes it.
pub struct Group {
    path: PathBuf,
}

impl Group {
    /// `limit` in bytes. Pages may go to swap, but not to zswap.
    pub fn new(name: &str, limit: u64) -> Outcome<Group> {
        let group = Group::unlimited(name)?;
        group.set("memory.max", &limit.to_string())?;
        group.set("memory.zswap.max", "0")?;
        Ok(group)
    }

    pub fn unlimited(name: &str) -> Outcome<Group> {
        guest::write(&format!("{GROUPS}/cgroup.subtree_control"), "+memory +io")
            .context("hand the controllers down")?;
        let group = Group { path: format!("{GROUPS}/{PREFIX}{name}").into() };
        fs::create_dir(&group.path).context("make a cgroup")?;
        Ok(group)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A group without a limit, nested in another one.
    pub fn within(outer: &Group, name: &str) -> Outcome<Group> {
        let group = Group { path: outer.path.join(name) };
        fs::create_dir(&group.path).context("make a cgroup in a cgroup")?;
        Ok(group)
    }

    pub fn set(&self, file: &str, value: &str) -> Outcome {
        let path = self.path.join(file);
        fs::write(&path, value).context(format!("{} := {value}", path.display()))
    }

    /// Lowers a limit below the current usage. Writing the limit at once would make the kernel
    /// kill.
    pub fn shrink(&self, limit: u64) -> Outcome {
        let current = self.path.join("memory.current");
        let is_below = || {
            // Each write makes the kernel reclaim what it can.
            let asked = self.set("memory.high", &limit.to_string());
            let now = asked.and_then(|()| guest::read_number(&current.to_string_lossy()));
            now.is_ok_and(|now| now <= limit)
        };
        ensure!(guest::eventually(60.0, is_below), "a cgroup does not shrink to {limit} bytes");
        self.set("memory.max", &limit.to_string())?;
        self.set("memory.high", "max")
    }

    pub fn current(&self) -> Outcome<u64> {
        guest::read_number(&self.path.join("memory.current").to_string_lossy())
    }

    /// The inode number of its directory, as `stat -c %i` prints.
    pub fn id(&self) -> Outcome<u64> {
        use std::os::unix::fs::MetadataExt;
        Ok(fs::metadata(&self.path).context("look at a cgroup")?.ino())
    }

    /// A value of `io.stat` for a device ("259:0"); 0 if it has none.
    pub fn io(&self, device: &str, what: &str) -> Outcome<u64> {
        let text = guest::read(&self.path.join("io.stat").to_string_lossy())?;
        let line = text.lines().find(|line| line.split(' ').next() == Some(device));
        let value = line.and_then(|line| {
            line.split(' ').find_map(|word| word.strip_prefix(&format!("{what}=")))
        });
        Ok(value.and_then(|v| v.parse().ok()).unwrap_or(0))
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

/// A file of the group of this process.
fn own(file: &str) -> Outcome<String> {
    let line = guest::read("/proc/self/cgroup")?;
    let group = line.strip_prefix("0::").ok_or("there is no cgroup v2")?;
    Ok(format!("{GROUPS}{group}/{file}"))
}

/// Reclaims up to this many bytes from the group of this process.
pub fn reclaim(bytes: u64) -> Outcome {
    match guest::write(&own("memory.reclaim")?, &bytes.to_string()) {
        Err(e) if e.raw_os_error() != Some(libc::EAGAIN) => Err(format!("memory.reclaim: {e}")),
        _ => Ok(()),
    }
}

/// Reclaims memory above `limit`, a little at a time: other processes of the group reclaim as
/// well.
pub fn reclaim_above(limit: u64) -> Outcome {
    const MOST: u64 = 2 << 20;
    match guest::read_number(&own("memory.current")?)?.saturating_sub(limit) {
        0 => Ok(()),
        excess => reclaim(excess.min(MOST)),
    }
}

/// Kills the processes of a group and removes it.
pub fn remove_group(path: &str) -> bool {
    let _ = fs::write(format!("{path}/cgroup.kill"), "1");
    guest::eventually(20.0, || fs::remove_dir(path).is_ok() || !guest::exists(path))
}

/// The parent's end of the connection.
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

/// Readable without waiting, or closed by the other side.
fn can_be_read(file: &File) -> bool {
    let mut word = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one open descriptor, and no timeout.
    unsafe { libc::poll(&mut word, 1, 0) > 0 }
}

const POINT: &str = "point";
const NUMBERS: &str = "numbers";

impl Link {
    /// Whether the parent has told it to continue. Does not wait, and leaves the message for
    /// `point()`.
    pub fn is_told(&self) -> bool {
        can_be_read(&self.from)
    }

    /// Sends numbers to the parent, which has to receive them.
    pub fn report(&mut self, numbers: &[u64]) -> Outcome {
        let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
        writeln!(self.to, "{NUMBERS} {}", words.join(" ")).context("tell the parent")
    }

    /// Tells the parent that this point is reached, and waits until it says to continue.
    pub fn point(&mut self) -> Outcome {
        writeln!(self.to, "{POINT}").context("tell the parent")?;
        self.from.read_exact(&mut [0]).context("wait for the parent")
    }
}

/// Runs `body` in a child process, in `group` if there is one.
pub fn spawn(group: Option<&Group>, body: impl FnOnce(&mut Link) -> Outcome) -> Outcome<Child> {
    let (from_child, to_parent) = pipe().context("pipe")?;
    let (from_parent, to_child) = pipe().context("pipe")?;
    // SAFETY: only this thread is copied. The other thread here, the watchdog, holds no lock
    // during a fork.
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
            // SAFETY: ends this process. Values of the parent on this stack must not be dropped
            // a second time.
            unsafe { libc::_exit(i32::from(outcome.is_err())) }
        }
    }
}

impl Child {
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits until the child reaches its next point.
    pub fn reach(&mut self) -> Outcome {
        let mut line = String::new();
        self.from.read_line(&mut line).context("listen to the child")?;
        ensure!(!line.is_empty(), "the child died{}", self.obituary());
        ensure!(line.trim_end() == POINT, "{}", line.trim_end());
        Ok(())
    }

    /// Receives the numbers that the child reports.
    pub fn numbers<const N: usize>(&mut self) -> Outcome<[u64; N]> {
        let mut line = String::new();
        self.from.read_line(&mut line).context("listen to the child")?;
        ensure!(!line.is_empty(), "the child died{}", self.obituary());
        let words =
            line.trim_end().strip_prefix(NUMBERS).ok_or_else(|| line.trim_end().to_string())?;
        let numbers: Vec<u64> = words.split_whitespace().filter_map(|w| w.parse().ok()).collect();
        numbers.try_into().map_err(|_| format!("the child reports:{words}"))
    }

    /// Whether the child has sent a message or ended. Does not wait.
    pub fn has_spoken(&self) -> bool {
        !self.from.buffer().is_empty() || can_be_read(self.from.get_ref())
    }

    pub fn go_on(&mut self) -> Outcome {
        self.to.write_all(&[1]).context("tell the child to go on")
    }

    fn obituary(&self) -> String {
        waitpid(self.pid, None).map_or(String::new(), |status| format!(": {status:?}"))
    }

    /// Waits for the child to end; it must succeed.
    pub fn join(mut self) -> Outcome {
        let mut rest = String::new();
        self.from.read_to_string(&mut rest).context("listen to the child")?;
        let status = waitpid(self.pid, None).context("wait for the child")?;
        let rest = rest.trim_end();
        ensure!(rest.is_empty(), "{rest}");
        ensure!(matches!(status, WaitStatus::Exited(_, 0)), "the child ended with {status:?}");
        Ok(())
    }

    /// Waits for the child to be killed by a signal.
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
    fn children_report_and_are_told() {
        let mut child = spawn(None, |link| {
            link.point()?;
            while !link.is_told() {
                std::thread::yield_now();
            }
            link.report(&[7, 8])
        })
        .unwrap();
        child.reach().unwrap();
        child.go_on().unwrap();
        child.go_on().unwrap();
        assert_eq!(child.numbers().unwrap(), [7, 8]);
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
