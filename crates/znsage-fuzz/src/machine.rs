// SPDX-License-Identifier: GPL-2.0-only
//! A machine described by text.
//!
//! `== /a/path` starts a file. A file in /dev is a block device. `== $ program` has the
//! exit status of a program and its output. `== zones` has a line for each zone:
//! capacity, 1 if sequential, and state (0 empty, 1 written, 2 dead). `== log` has
//! records of the kernel log.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use znsage::parsers::{log_record, FileKind, LogLine, Ran, Stat, State, Sys, Zone};

const ENOENT: i32 = 2;

/// A machine in memory.
#[derive(Debug, Default)]
pub struct Machine {
    files: RefCell<BTreeMap<String, Vec<u8>>>,
}

impl Machine {
    /// Splits the text into the part before the first file, and the machine.
    pub fn parse(data: &[u8]) -> (&[u8], Machine) {
        let (mut before, mut files) = (None, BTreeMap::new());
        let (mut name, mut content) = (None, Vec::new());
        let mut rest = data;
        while !rest.is_empty() {
            let end = rest.iter().position(|&b| b == b'\n').map_or(rest.len(), |at| at + 1);
            let (line, after) = rest.split_at(end);
            match line.strip_prefix(b"== ") {
                Some(title) => {
                    let title = String::from_utf8_lossy(title).trim_end().to_string();
                    before.get_or_insert(&data[..data.len() - rest.len()]);
                    name.replace(title).map(|n| files.insert(n, std::mem::take(&mut content)));
                }
                None => content.extend_from_slice(line),
            }
            if name.is_none() {
                content.clear();
            }
            rest = after;
        }
        name.map(|n| files.insert(n, content));
        (before.unwrap_or(data), Machine { files: RefCell::new(files) })
    }

    fn text(&self, name: &str) -> Option<String> {
        let files = self.files.borrow();
        files.get(name).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}

fn no_entry<T>() -> io::Result<T> {
    Err(io::Error::from_raw_os_error(ENOENT))
}

impl Sys for Machine {
    fn root(&self) -> &Path {
        Path::new("/")
    }

    fn read(&self, path: &str) -> io::Result<String> {
        let bytes = self.read_bytes(path)?;
        String::from_utf8(bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
    }

    fn read_bytes(&self, path: &str) -> io::Result<Vec<u8>> {
        self.files.borrow().get(path).cloned().map_or_else(no_entry, Ok)
    }

    fn exists(&self, path: &str) -> bool {
        let within = |name: &String| name.strip_prefix(path).is_some_and(|r| r.starts_with('/'));
        let files = self.files.borrow();
        files.contains_key(path) || files.keys().any(within)
    }

    fn list(&self, path: &str) -> Vec<String> {
        let files = self.files.borrow();
        let below = files.keys().filter_map(|name| name.strip_prefix(path)?.strip_prefix('/'));
        let mut names: Vec<_> =
            below.map(|rest| rest.split('/').next().unwrap_or_default().to_string()).collect();
        names.sort();
        names.dedup();
        names
    }

    fn directories(&self, path: &str) -> Vec<String> {
        let names = self.list(path).into_iter();
        names.filter(|name| !self.list(&format!("{path}/{name}")).is_empty()).collect()
    }

    /// A hash of the path.
    fn inode(&self, path: &str) -> io::Result<u64> {
        match self.exists(path) {
            true => Ok(path.bytes().fold(1, |n, b| n * 31 % 0xffff_fffb + u64::from(b))),
            false => no_entry(),
        }
    }

    fn link_name(&self, path: &str) -> io::Result<String> {
        match self.text(path) {
            Some(target) => Ok(target.trim().rsplit('/').next().unwrap_or_default().to_string()),
            None => no_entry(),
        }
    }

    fn is_root(&self) -> bool {
        true
    }

    fn release(&self) -> String {
        "6.12.0-test".into()
    }

    fn env(&self, name: &str) -> Option<String> {
        self.text(&format!("${name}")).map(|value| value.trim().to_string())
    }

    fn block_device(&self, path: &str) -> io::Result<Option<(u64, u64)>> {
        match self.exists(path) {
            true => Ok(path.starts_with("/dev/").then_some((259, 0))),
            false => no_entry(),
        }
    }

    fn canonical(&self, path: &str) -> io::Result<String> {
        self.exists(path).then(|| path.to_string()).map_or_else(no_entry, Ok)
    }

    fn stat(&self, path: &str) -> io::Result<Stat> {
        let kind = match self.files.borrow().contains_key(path) {
            true => FileKind::Regular,
            false if self.exists(path) => FileKind::Directory,
            false => return no_entry(),
        };
        let (bytes, device) = (1 << 30, (259, 0));
        let (owner, mode, flags) = (0, 0o600, 0);
        Ok(Stat { kind, device, owner, mode, bytes, allocated: bytes, flags, data: false })
    }

    fn room(&self, _: &str) -> io::Result<(u64, u64)> {
        Ok((1 << 40, 1 << 39))
    }

    fn make_file(&self, path: &str, _: u64) -> io::Result<()> {
        self.save(path, "")
    }

    fn clear_file(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn claim(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn zones(&self, _: &str) -> io::Result<Vec<Zone>> {
        let text = self.text("zones").unwrap_or_default();
        let zone = |line: &str| {
            let mut words = line.split_whitespace();
            let capacity = words.next()?.parse().ok()?;
            let sequential = words.next()? == "1";
            let state = match words.next()? {
                "0" => State::Empty,
                "1" => State::Written,
                _ => State::Dead,
            };
            Some(Zone { capacity, sequential, state })
        };
        Ok(text.lines().filter_map(zone).collect())
    }

    fn kernel_log(&self) -> Vec<LogLine> {
        self.text("log").unwrap_or_default().lines().filter_map(log_record).collect()
    }

    fn interrupted(&self) -> bool {
        false
    }

    fn write_at(&self, _path: &str, _at: u64, _bytes: &[u8]) -> io::Result<()> {
        no_entry()
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        match self.files.borrow_mut().get_mut(path) {
            Some(file) => {
                *file = text.into();
                Ok(())
            }
            None => no_entry(),
        }
    }

    fn save(&self, path: &str, text: &str) -> io::Result<()> {
        self.files.borrow_mut().insert(path.into(), text.into());
        Ok(())
    }

    fn link(&self, path: &str, target: &str) -> io::Result<()> {
        self.save(path, target)
    }

    fn forget(&self, path: &str) -> io::Result<()> {
        self.files.borrow_mut().remove(path);
        Ok(())
    }

    fn mkdir(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn rmdir(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn mount(&self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn run(&self, argv: &[&str], tick: &mut dyn FnMut()) -> io::Result<Ran> {
        tick();
        let Some(text) = self.text(&format!("$ {}", argv[0])) else { return no_entry() };
        let (status, said) = text.split_once('\n').unwrap_or((&text, ""));
        let status = status.trim().parse().ok();
        Ok(Ran { status, stdout: said.into(), stderr: String::new() })
    }

    fn start_guard(&self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn end(&self, _: u32) -> io::Result<()> {
        Ok(())
    }

    fn sleep(&self, _: Duration) {}

    fn hold(&self, _: &str) -> io::Result<Box<dyn std::any::Any>> {
        Ok(Box::new(()))
    }

    fn reset_zones(&self, _: &str, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn ask(&self, _: &str) -> io::Result<Option<String>> {
        Ok(self.text("$answer").map(|text| text.trim().to_string()))
    }
}
