// SPDX-License-Identifier: GPL-2.0-only
//! Access to the machine. All commands use [`Sys`], so that tests can replace the
//! kernel with a directory for /sys, /proc and configfs, and hooks for the rest.

#[cfg(test)]
pub mod fake;
mod files;
mod real;
mod zoned;

pub use real::{parse_record, Real};

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Kind, Result};
use crate::zones::Zone;

/// The output of a program.
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

    /// The last line of its error messages, or of its output.
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

/// A line of the kernel log and its sequence number.
#[derive(Clone, Debug)]
pub struct LogLine {
    pub number: u64,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Regular,
    Directory,
    Other,
}

/// What a swap file depends on.
#[derive(Clone, Debug)]
pub struct Stat {
    pub kind: FileKind,
    /// Major and minor number of the file system's device.
    pub device: (u64, u64),
    pub owner: u32,
    pub mode: u32,
    pub bytes: u64,
    /// Less than `bytes` if there are holes.
    pub allocated: u64,
    /// FS_IMMUTABLE_FL and others of linux/fs.h.
    pub flags: u32,
    /// False if all reads as zeros since nothing was ever written.
    pub data: bool,
}

pub trait Sys {
    /// The directory that holds /sys, /proc and /dev: "/", or a fixture.
    fn root(&self) -> &Path;

    /// A path below the root; `path` is absolute.
    fn at(&self, path: &str) -> PathBuf {
        self.root().join(path.trim_start_matches('/'))
    }

    // Reading.

    fn read(&self, path: &str) -> io::Result<String> {
        std::fs::read_to_string(self.at(path))
    }

    fn read_bytes(&self, path: &str) -> io::Result<Vec<u8>> {
        std::fs::read(self.at(path))
    }

    /// Reads from `at` on until `to` is full or the file ends; returns how much.
    fn read_at(&self, path: &str, at: u64, to: &mut [u8]) -> io::Result<usize> {
        use nix::fcntl::{posix_fadvise, PosixFadviseAdvice::POSIX_FADV_DONTNEED};
        use std::os::unix::fs::FileExt;
        let (file, mut got) = (std::fs::File::open(self.at(path))?, 0);
        // The module bypasses the page cache; other files have nothing to drop.
        let _ = posix_fadvise(&file, at as i64, to.len() as i64, POSIX_FADV_DONTNEED);
        while got < to.len() {
            match file.read_at(&mut to[got..], at + got as u64)? {
                0 => break,
                n => got += n,
            }
        }
        Ok(got)
    }

    fn exists(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    /// The names in a directory, sorted; empty if it does not exist.
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

    /// The last component of the target of a symbolic link.
    fn link_name(&self, path: &str) -> io::Result<String> {
        let full = std::fs::canonicalize(self.at(path))?;
        let name = full.file_name().unwrap_or_default();
        Ok(name.to_string_lossy().into_owned())
    }

    /// The path without symbolic links.
    fn canonical(&self, path: &str) -> io::Result<String> {
        let (root, full) = (self.root().canonicalize()?, self.at(path).canonicalize()?);
        let below = full.strip_prefix(&root).unwrap_or(&full).to_string_lossy().into_owned();
        Ok(format!("/{}", below.trim_start_matches('/')))
    }

    fn stat(&self, path: &str) -> io::Result<Stat>;
    /// Bytes of the file system of a directory: all, and those that are free.
    fn room(&self, directory: &str) -> io::Result<(u64, u64)>;
    fn is_root(&self) -> bool;
    /// `uname -r`.
    fn release(&self) -> String;
    fn env(&self, name: &str) -> Option<String>;
    /// Major and minor number if `path` is a block device, else None.
    fn block_device(&self, path: &str) -> io::Result<Option<(u64, u64)>>;
    /// Opens the device exclusively and closes it again; EBUSY if it is in use.
    fn claim(&self, path: &str) -> io::Result<()>;
    fn zones(&self, path: &str) -> io::Result<Vec<Zone>>;
    /// The lines of the kernel log that name znsage; empty without permission.
    fn kernel_log(&self) -> Vec<LogLine>;
    /// True after Ctrl-C or SIGTERM.
    fn interrupted(&self) -> bool;

    // Writing.

    fn write(&self, path: &str, text: &str) -> io::Result<()>;
    /// Overwrites a part of a device that nobody uses, and waits until it is there.
    fn write_at(&self, path: &str, at: u64, bytes: &[u8]) -> io::Result<()>;
    /// Creates a file of the command, with its directory: below /run or /var, or a unit.
    fn save(&self, path: &str, text: &str) -> io::Result<()>;
    /// Creates a symbolic link of the command, with its directory.
    fn link(&self, path: &str, target: &str) -> io::Result<()>;
    /// Makes a swap file, or none.
    fn make_file(&self, path: &str, bytes: u64) -> io::Result<()>;
    /// Removes the data and the holes of a swap file.
    fn clear_file(&self, path: &str) -> io::Result<()>;
    /// Removes a file of the command, if it exists.
    fn forget(&self, path: &str) -> io::Result<()>;
    fn mkdir(&self, path: &str) -> io::Result<()>;
    fn rmdir(&self, path: &str) -> io::Result<()>;
    fn mount(&self, fstype: &str, path: &str) -> io::Result<()>;
    /// Runs a program to its end and calls `tick` several times a second. A signal to
    /// the command also ends the program.
    fn run(&self, argv: &[&str], tick: &mut dyn FnMut()) -> io::Result<Ran>;
    fn sleep(&self, time: Duration);
    /// Starts this program with a subcommand for a device, in the background. Returns
    /// when that says that it is ready.
    fn start_guard(&self, subcommand: &str, name: &str) -> io::Result<()>;
    /// Tells a process to end, and waits until it has.
    fn end(&self, pid: u32) -> io::Result<()>;
    /// As `claim`, but keeps the device until the result is dropped.
    fn hold(&self, path: &str) -> io::Result<Box<dyn std::any::Any>>;
    /// Resets `length` bytes of zones.
    fn reset_zones(&self, path: &str, start: u64, length: u64) -> io::Result<()>;
    /// Asks on the terminal; None if there is none.
    fn ask(&self, question: &str) -> io::Result<Option<String>>;
}

/// A path that does not depend on the current directory.
pub fn absolute(path: &str) -> Result<String> {
    let whole = std::path::absolute(path).map_err(|e| Error::io("find", path.as_ref(), e))?;
    Ok(whole.to_string_lossy().into_owned())
}

/// Refuses to `purpose` without root.
pub fn require_root(sys: &dyn Sys, purpose: &str) -> Result<()> {
    match sys.is_root() {
        true => Ok(()),
        false => Err(Error::new(Kind::Environment, format!("only root can {purpose}"))
            .hint("run it with sudo")),
    }
}
