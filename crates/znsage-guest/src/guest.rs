// SPDX-License-Identifier: GPL-2.0-only
//! The virtual machine: its files, programs, devices, memory.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::ensure;
use crate::outcome::{Context, Outcome};

/// Time limit of a program that a case runs, in seconds.
const PATIENCE: u32 = 150;

/// Factor for every time limit, from tests/run: an emulated machine on a busy host is slow.
pub fn slowness() -> u32 {
    let factor = std::env::var("SLOWNESS").ok().and_then(|factor| factor.parse().ok());
    factor.filter(|factor| *factor > 0).unwrap_or(1)
}

/// A number from the environment, which tests/run passes on.
pub fn asked_for(name: &str, usual: u64) -> Outcome<u64> {
    match std::env::var(name) {
        Ok(text) if !text.is_empty() => text.parse().context(format!("{name} is `{text}`")),
        _ => Ok(usual),
    }
}

/// The outputs of a program, and how it ended.
#[derive(Debug)]
pub struct Ran {
    /// Exit status, or 128 plus the signal's number as in a shell.
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn said(&self) -> String {
        format!("{}{}", self.stdout, self.stderr).trim().replace('\n', " | ")
    }
}

impl From<Output> for Ran {
    fn from(out: Output) -> Self {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let status = out.status;
        Ran {
            status: status.code().unwrap_or(128 + status.signal().unwrap_or(0)),
            stdout: text(&out.stdout),
            stderr: text(&out.stderr),
        }
    }
}

/// A command with a time limit. After SIGTERM it has a minute to clean up.
pub fn command(argv: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.arg("--kill-after=60").arg((PATIENCE * slowness()).to_string()).args(argv);
    command
}

pub fn run(argv: &[&str]) -> Outcome<Ran> {
    command(argv).output().map(Ran::from).context(format!("run {}", argv[0]))
}

/// Runs a program that must succeed; returns its output.
pub fn ok(argv: &[&str]) -> Outcome<String> {
    let ran = run(argv)?;
    ensure!(ran.status == 0, "`{}`: status {}: {}", argv.join(" "), ran.status, ran.said());
    Ok(ran.stdout)
}

pub fn read(path: &str) -> Outcome<String> {
    fs::read_to_string(path).map(|t| t.trim_end().to_string()).context(path)
}

pub fn read_number(path: &str) -> Outcome<u64> {
    let text = read(path)?;
    text.parse().context(format!("{path} holds `{text}`"))
}

/// A single write(2), which attributes of sysfs and configfs require.
pub fn write(path: &str, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

/// A write that the kernel must refuse with `errno`.
pub fn refuses(path: &str, text: &str, errno: i32) -> Outcome {
    let wanted = io::Error::from_raw_os_error(errno);
    match write(path, text) {
        Ok(()) => Err(format!("{path} took `{text}` instead of: {wanted}")),
        Err(e) if e.raw_os_error() == Some(errno) => Ok(()),
        Err(e) => Err(format!("{path}: `{text}` is refused with `{e}` instead of `{wanted}`")),
    }
}

/// The numbers of a disk's stat file, in the order of the kernel's Documentation/block/stat.rst.
pub fn block_stat(disk: &str) -> Outcome<Vec<u64>> {
    let text = read(&format!("/sys/block/{disk}/stat"))?;
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    ensure!(numbers.len() >= 17, "stat of {disk}: {text}");
    Ok(numbers)
}

pub fn exists(path: &str) -> bool {
    Path::new(path).exists()
}

/// The names in a directory, sorted; none if it does not exist.
pub fn list(path: &str) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// A device by the name that vm/run gave it: ZNS0, CONV0, ...
pub fn device(name: &str) -> Outcome<String> {
    std::env::var(name).map_err(|_| format!("this case needs ${name}; see tests/run"))
}

/// The major and minor version of the kernel.
pub fn kernel() -> (u32, u32) {
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split('.').map_while(|n| n.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// A line "KEY: NUMBER" or "KEY NUMBER" of a table such as /proc/meminfo.
pub fn table(path: &str, key: &str) -> Outcome<u64> {
    let text = read(path)?;
    lookup(&text, key).ok_or_else(|| format!("{path} has no {key}"))
}

fn lookup(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?.trim_end_matches(':');
        (name == key).then(|| words.next()?.parse().ok())?
    })
}

/// A value of /proc/meminfo, in bytes.
pub fn memory(key: &str) -> Outcome<u64> {
    Ok(table("/proc/meminfo", key)? * 1024)
}

/// A kernel setting; dropping it restores the old value.
pub struct Setting {
    path: String,
    usual: String,
}

impl Setting {
    pub fn set(path: &str, value: &str) -> Outcome<Setting> {
        let usual = read(path)?;
        write(path, value).context(path)?;
        Ok(Setting { path: path.to_string(), usual })
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        let _ = write(&self.path, &self.usual);
    }
}

/// Compacts memory. This also drains the per-CPU batches of recent pages, where reclaim does
/// not find them.
pub fn compact() -> Outcome {
    const COMPACT: &str = "/proc/sys/vm/compact_memory";
    write(COMPACT, "1").context(COMPACT)
}

/// Turns swap readahead off while `body` runs.
pub fn without_read_ahead<T>(body: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let _off = Setting::set("/proc/sys/vm/page-cluster", "0")?;
    body()
}

/// Waits until `so` holds, for at most `seconds` times `slowness()`; returns whether it did.
pub fn eventually(seconds: f64, mut so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs_f64(seconds) * slowness();
    loop {
        if so() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        sleep(Duration::from_millis(20));
    }
}

/// The paths of the swap areas in use.
pub fn swaps() -> Vec<String> {
    let text = read("/proc/swaps").unwrap_or_default();
    let paths = text.lines().skip(1).filter_map(|l| l.split_whitespace().next());
    paths.map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read() {
        let text = "MemFree:  12 kB\nthp_swpout 3\nthp_swpout_fallback 4\n";
        assert_eq!(lookup(text, "MemFree"), Some(12));
        assert_eq!(lookup(text, "thp_swpout"), Some(3));
        assert_eq!(lookup(text, "thp"), None);
    }

    #[test]
    fn programs_are_run() {
        let ran = run(&["sh", "-c", "echo out; echo bad >&2; exit 3"]).unwrap();
        assert_eq!((ran.status, ran.said().as_str()), (3, "out | bad"));
        assert_eq!(ok(&["echo", "x"]).unwrap(), "x\n");
        assert!(ok(&["sh", "-c", "echo why; exit 4"]).unwrap_err().contains("status 4: why"));
    }
}
