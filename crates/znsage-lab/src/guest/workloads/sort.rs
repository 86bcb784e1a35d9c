// SPDX-License-Identifier: GPL-2.0-only
//! `sort` of a file, with a buffer as large as the file and less memory than
//! that.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use super::group::{drop_caches, Disk, Group, DISK};
use super::{Load, Meter, Outcome, Part};
use crate::guest::say;
use crate::workloads::model::{Metric, Setting, Sizes};
use crate::Result;

const INPUT: &str = "lines";
const OUTPUT: &str = "sorted";

/// The file, and the longest of its lines; the shortest is of eight letters.
const BYTES: u64 = 64 << 20;
const LONGEST: u64 = 1000;

/// More than the file, so that no part of it is sorted by itself and put into
/// a file of its own.
const BUFFER: &str = "--buffer-size=128M";

pub struct Sort {
    /// Of the input.
    lines: Lines,
    sizes: Sizes,
}

/// How many, and a sum of their hashes: the same in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Lines {
    count: u64,
    sum: u64,
}

impl Lines {
    fn add(&mut self, line: &[u8]) {
        let mut hasher = DefaultHasher::new();
        line.hash(&mut hasher);
        self.count += 1;
        self.sum = self.sum.wrapping_add(hasher.finish());
    }
}

impl Sort {
    pub fn new() -> Result<Sort> {
        say("  a file of random lines is written");
        let path = Disk::path(INPUT);
        let failed = |e: std::io::Error| format!("cannot write {}: {e}", path.display());
        let mut file = BufWriter::new(File::create(&path).map_err(failed)?);
        let lines = write_lines(&mut file, BYTES).map_err(failed)?;
        file.flush().map_err(failed)?;
        Ok(Sort { lines, sizes: Sizes::default() })
    }

    fn sort(&self, group: &Group) -> Result<()> {
        let output = group
            .command("sort")
            .env("LC_ALL", "C")
            .args([BUFFER, "--parallel=1", "--temporary-directory", DISK, "--output"])
            .arg(Disk::path(OUTPUT))
            .arg(Disk::path(INPUT))
            .output()
            .map_err(|e| format!("cannot run sort: {e}"))?;
        group.unharmed()?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!(
                "sort failed ({}): {}",
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            )),
        }
    }

    fn verify(&self) -> Result<String> {
        let path = Disk::path(OUTPUT);
        let lines = read_sorted(&path)?;
        if lines != self.lines {
            return Err(format!(
                "sort's output has not the lines of its input ({} and {}, or others)",
                lines.count, self.lines.count
            ));
        }
        let _ = std::fs::remove_file(&path);
        Ok(format!("{} lines, in order and complete", lines.count))
    }
}

/// Random letters, the lengths random too.
fn write_lines(to: &mut impl Write, bytes: u64) -> std::io::Result<Lines> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let (mut lines, mut written, mut line) = (Lines::default(), 0, Vec::new());
    while written < bytes {
        line.clear();
        let length = 8 + random() % (LONGEST - 8);
        while (line.len() as u64) < length {
            line.extend(random().to_le_bytes().map(|b| b'a' + b % 26));
        }
        line.truncate(length as usize);
        lines.add(&line);
        line.push(b'\n');
        to.write_all(&line)?;
        written += line.len() as u64;
    }
    Ok(lines)
}

/// The lines of a file; an error if one is less than that before it.
fn read_sorted(path: &Path) -> Result<Lines> {
    let failed = |e: std::io::Error| format!("cannot read {}: {e}", path.display());
    let file = BufReader::with_capacity(1 << 20, File::open(path).map_err(failed)?);
    let (mut lines, mut last) = (Lines::default(), Vec::new());
    for line in file.split(b'\n') {
        let line = line.map_err(failed)?;
        if line < last {
            return Err(format!("line {} of sort's output is out of order", lines.count + 1));
        }
        lines.add(&line);
        last = line;
    }
    Ok(lines)
}

impl Load for Sort {
    fn parts(&self) -> Vec<Part> {
        let metrics = vec![Metric::new("time", "Time", "s")];
        vec![Part { name: "sort", title: "sort", metrics }]
    }

    fn measure(&mut self, setting: Setting) -> Result<Vec<Outcome>> {
        drop_caches()?;
        let group = Group::new("sort")?;
        if setting.system().is_some() {
            group.limit(self.sizes.limit_bytes)?;
        }
        let meter = Meter::start()?;
        self.sort(&group)?;
        let took = meter.seconds();
        let mut outcome = meter.stop([("time", took)], String::new())?;
        if setting == Setting::Memory {
            // Its peak counts the files, too, which the kernel keeps as long as
            // there is room: what sort itself has is the file and its table.
            let memory_bytes = BYTES + self.lines.count * 32;
            self.sizes = Sizes { memory_bytes, limit_bytes: memory_bytes * 3 / 4 };
        }
        outcome.verified = self.verify()?;
        Ok(vec![outcome])
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text).unwrap();
        file
    }

    #[test]
    fn lines_are_the_same_in_any_order() {
        let mut text = Vec::new();
        let written = write_lines(&mut text, 20_000).unwrap();
        assert!(text.len() >= 20_000 && written.count > 20);
        let mut sorted: Vec<&[u8]> = text.split_inclusive(|&b| b == b'\n').collect();
        sorted.sort();
        assert_eq!(read_sorted(file(&sorted.concat()).path()), Ok(written));
        sorted.swap(3, 4);
        let failed = read_sorted(file(&sorted.concat()).path()).unwrap_err();
        assert_eq!(failed, "line 5 of sort's output is out of order");
    }

    #[test]
    fn a_line_that_is_lost_or_changed_shows() {
        let all = read_sorted(file(b"a\nb\nc\n").path()).unwrap();
        assert_ne!(read_sorted(file(b"a\nc\n").path()).unwrap(), all);
        assert_ne!(read_sorted(file(b"a\nb\nd\n").path()).unwrap(), all);
        assert_ne!(read_sorted(file(b"a\nb\nb\n").path()).unwrap(), all);
    }
}
