// SPDX-License-Identifier: GPL-2.0-only
//! The machine as the command sees it. Everything that reads or changes the
//! system goes through [`Sys`], so that a test can stand in for a kernel: a
//! directory for /sys, /proc and configfs, and a script for the rest.

#[cfg(test)]
pub mod fake;
mod real;
mod zoned;

pub use real::{parse_record, Real};

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::zones::Zone;

/// What a program said before it ended.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    /// Exit status; None if a signal ended it.
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn ok(&self) -> bool {
        self.status == Some(0)
    }

    /// The last thing it complained about, without "program: " in front.
    pub fn complaint(&self) -> String {
        let text = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
        match text.lines().rev().find(|l| !l.trim().is_empty()) {
            Some(line) => line.trim().to_string(),
            None => match self.status {
                Some(n) => format!("exit status {n}"),
                None => "it was killed".to_string(),
            },
        }
    }
}

/// A line of the kernel's log and its running number.
#[derive(Clone, Debug)]
pub struct LogLine {
    pub number: u64,
    pub text: String,
}

/// What may be done to zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneCommand {
    Reset,
    Finish,
}

/// Appends by several threads at once.
#[derive(Clone, Debug)]
pub struct Appends {
    pub path: String,
    /// Of the device, what its addresses count in.
    pub block: u64,
    /// From one zone's start to the next one's.
    pub zone: u64,
    /// Of one append.
    pub bytes: u64,
    pub time: Duration,
    /// For each thread where its zones begin, one to be filled after the other.
    pub lanes: Vec<Vec<u64>>,
}

/// What a thread appended.
#[derive(Clone, Debug)]
pub struct Lane {
    pub bytes: u64,
    pub time: Duration,
    /// Nanoseconds of each append.
    pub times: Histogram<u64>,
}

pub trait Sys {
    /// The directory that holds /sys, /proc and /dev: "/", or a fixture.
    fn root(&self) -> &Path;

    /// A path below the root; `path` is absolute.
    fn at(&self, path: &str) -> PathBuf {
        self.root().join(path.trim_start_matches('/'))
    }

    // Looking in.

    fn read(&self, path: &str) -> io::Result<String> {
        std::fs::read_to_string(self.at(path))
    }

    fn read_bytes(&self, path: &str) -> io::Result<Vec<u8>> {
        std::fs::read(self.at(path))
    }

    fn exists(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    /// The names in a directory, sorted; nothing if it does not exist.
    fn list(&self, path: &str) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.at(path))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// The directories in a directory, sorted.
    fn directories(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.at(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter(|entry| entry.file_type().is_ok_and(|t| t.is_dir()))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    fn inode(&self, path: &str) -> io::Result<u64> {
        use std::os::unix::fs::MetadataExt;
        Ok(std::fs::metadata(self.at(path))?.ino())
    }

    /// The last component of where a symbolic link leads.
    fn link_name(&self, path: &str) -> io::Result<String> {
        let full = std::fs::canonicalize(self.at(path))?;
        let name = full.file_name().unwrap_or_default();
        Ok(name.to_string_lossy().into_owned())
    }

    fn is_root(&self) -> bool;
    /// `uname -r`.
    fn release(&self) -> String;
    fn env(&self, name: &str) -> Option<String>;
    /// Major and minor number if `path` is a block device, else None.
    fn block_device(&self, path: &str) -> io::Result<Option<(u64, u64)>>;
    /// Opens the device exclusively and closes it again: EBUSY if in use.
    fn claim(&self, path: &str) -> io::Result<()>;
    fn zones(&self, path: &str) -> io::Result<Vec<Zone>>;
    /// The kernel log's lines that name znsage; empty where it is locked.
    fn kernel_log(&self) -> Vec<LogLine>;
    /// Ctrl-C was pressed, or SIGTERM came.
    fn interrupted(&self) -> bool;

    // Changing things.

    fn write(&self, path: &str, text: &str) -> io::Result<()>;
    /// Makes a file of our own, with its directory: below /run, or a unit.
    fn save(&self, path: &str, text: &str) -> io::Result<()>;
    /// Makes a symbolic link of our own, with its directory.
    fn link(&self, path: &str, target: &str) -> io::Result<()>;
    /// Removes such a file; it need not be there.
    fn forget(&self, path: &str) -> io::Result<()>;
    fn mkdir(&self, path: &str) -> io::Result<()>;
    fn rmdir(&self, path: &str) -> io::Result<()>;
    fn mount(&self, fstype: &str, path: &str) -> io::Result<()>;
    /// Runs a program to its end and calls `tick` some times a second. Who
    /// interrupts this one ends that one, too.
    fn run(&self, argv: &[&str], tick: &mut dyn FnMut()) -> io::Result<Ran>;
    fn sleep(&self, time: Duration);
    /// As `claim`, until the answer is dropped.
    fn hold(&self, path: &str) -> io::Result<Box<dyn std::any::Any>>;
    /// Resets or finishes all zones from `start` on, bytes; how long that took.
    fn command_zones(
        &self,
        path: &str,
        command: ZoneCommand,
        start: u64,
        length: u64,
    ) -> io::Result<Duration>;
    /// Appends to an NVMe device, without the block layer.
    fn append(&self, what: &Appends) -> io::Result<Vec<Lane>>;
    /// Asks whoever sits at the terminal; None if there is nobody.
    fn ask(&self, question: &str) -> io::Result<Option<String>>;
}
