// SPDX-License-Identifier: GPL-2.0-only
//! `sort` of a file with a buffer for all of it, and less memory than that.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use super::group::{drop_caches, Disk, Group, DISK};
use super::load::{Load, Meter, Outcome, Part};
use super::random::Random;
use crate::result::{Context, Result};
use crate::workloads::model::{Metric, Setting, Sizes};

const INPUT: &str = "lines";
const OUTPUT: &str = "sorted";

/// Size of the file.
const BYTES: u64 = 64 << 20;
/// Letters of a line, at most; there are at least eight.
const LONGEST: u64 = 1000;

/// Larger than the file, so that `sort` makes no temporary files.
const BUFFER: &str = "--buffer-size=128M";

pub struct Sort {
    /// Of the input.
    lines: Lines,
    sizes: Sizes,
}

/// The number of lines, and the sum of their hashes, which is the same in any order.
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
        eprintln!("  a file of random lines is written");
        let path = Disk::path(INPUT);
        let what = format!("cannot write {}", path.display());
        let mut file = BufWriter::new(File::create(&path).context(&what)?);
        let lines = write_lines(&mut file, BYTES).context(&what)?;
        file.flush().context(&what)?;
        Ok(Sort { lines, sizes: Sizes::default() })
    }

    fn sort(&self, group: &Group) -> Result<()> {
        let mut command = group.command("sort");
        command
            .env("LC_ALL", "C")
            .args([BUFFER, "--parallel=1", "--temporary-directory", DISK, "--output"])
            .arg(Disk::path(OUTPUT))
            .arg(Disk::path(INPUT));
        group.finish(&mut command, "sort").map(drop)
    }

    fn verify(&self) -> Result<String> {
        let path = Disk::path(OUTPUT);
        let lines = read_sorted(&path)?;
        if lines != self.lines {
            return Err(format!(
                "the lines of sort's output, {}, are not those of its input, {}",
                lines.count, self.lines.count
            ));
        }
        let _ = std::fs::remove_file(&path);
        Ok(format!("{} lines, in order and complete", lines.count))
    }
}

/// Writes lines of random letters and lengths.
fn write_lines(to: &mut impl Write, bytes: u64) -> std::io::Result<Lines> {
    let mut random = Random(1);
    let (mut lines, mut written, mut line) = (Lines::default(), 0, Vec::new());
    while written < bytes {
        line.clear();
        let length = 8 + random.next() % (LONGEST - 8);
        while (line.len() as u64) < length {
            line.extend(random.next().to_le_bytes().map(|b| b'a' + b % 26));
        }
        line.truncate(length as usize);
        lines.add(&line);
        line.push(b'\n');
        to.write_all(&line)?;
        written += line.len() as u64;
    }
    Ok(lines)
}

/// Reads a file; an error if a line is less than the one before it.
fn read_sorted(path: &Path) -> Result<Lines> {
    let what = format!("cannot read {}", path.display());
    let file = BufReader::with_capacity(1 << 20, File::open(path).context(&what)?);
    let (mut lines, mut last) = (Lines::default(), Vec::new());
    for line in file.split(b'\n') {
        let line = line.context(&what)?;
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
        if let Some(limit) = self.sizes.limit(setting) {
            group.limit(limit)?;
        }
        let meter = Meter::start()?;
        self.sort(&group)?;
        let took = meter.seconds();
        let mut outcome = meter.stop([("time", took)], String::new())?;
        if setting == Setting::Memory {
            // The group's peak includes cached files. sort itself has the file and a
            // table of its lines.
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
    fn sums_do_not_depend_on_the_order() {
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
    fn lost_and_changed_lines_show() {
        let all = read_sorted(file(b"a\nb\nc\n").path()).unwrap();
        assert_ne!(read_sorted(file(b"a\nc\n").path()).unwrap(), all);
        assert_ne!(read_sorted(file(b"a\nb\nd\n").path()).unwrap(), all);
        assert_ne!(read_sorted(file(b"a\nb\nb\n").path()).unwrap(), all);
    }
}
