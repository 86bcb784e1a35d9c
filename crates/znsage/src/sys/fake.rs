// SPDX-License-Identifier: GPL-2.0-only
//! A machine for tests: a directory replaces /sys, /proc and /dev, hooks replace the
//! kernel and programs, and any step can fail.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::{FileKind, LogLine, Ran, Stat, Sys};
use crate::zones::Zone;

type PathHook = Box<dyn Fn(&Fake, &str)>;
type WriteHook = Box<dyn Fn(&Fake, &str, &str) -> io::Result<()>>;
type RunHook = Box<dyn Fn(&Fake, &[&str]) -> Ran>;

pub struct Fake {
    dir: TempDir,
    pub root_user: Cell<bool>,
    pub env: RefCell<BTreeMap<String, String>>,
    /// Block devices by path.
    pub blocks: RefCell<BTreeMap<String, (u64, u64)>>,
    /// Swap files by path.
    pub files: RefCell<BTreeMap<String, Stat>>,
    /// Of every file system: all bytes, and free ones.
    pub room: Cell<(u64, u64)>,
    /// The answer to a question; None without a terminal.
    pub answer: RefCell<Option<String>>,
    pub claim_error: Cell<Option<i32>>,
    pub zones: RefCell<Vec<Zone>>,
    pub log: RefCell<Vec<LogLine>>,
    /// All writing operations, in order.
    pub effects: RefCell<Vec<String>>,
    /// The effect with this index fails.
    pub fail_effect: Cell<Option<usize>>,
    /// A signal arrives with the effect with this index.
    pub signal_effect: Cell<Option<usize>>,
    faults: RefCell<Vec<(String, i32)>>,
    mkdir_hook: RefCell<Option<PathHook>>,
    mount_hook: RefCell<Option<PathHook>>,
    write_hook: RefCell<Option<WriteHook>>,
    run_hook: RefCell<Option<RunHook>>,
}

impl Fake {
    pub fn new() -> Self {
        Fake {
            dir: TempDir::new().expect("a place for temporary files"),
            root_user: Cell::new(true),
            env: RefCell::default(),
            blocks: RefCell::default(),
            files: RefCell::default(),
            room: Cell::new((100 << 30, 50 << 30)),
            answer: RefCell::default(),
            claim_error: Cell::default(),
            zones: RefCell::default(),
            log: RefCell::default(),
            effects: RefCell::default(),
            fail_effect: Cell::default(),
            signal_effect: Cell::default(),
            faults: RefCell::default(),
            mkdir_hook: RefCell::default(),
            mount_hook: RefCell::default(),
            write_hook: RefCell::default(),
            run_hook: RefCell::default(),
        }
    }

    /// Creates a file, with its directories.
    pub fn put(&self, path: &str, text: &str) {
        let full = self.at(path);
        fs::create_dir_all(full.parent().expect("below the root")).unwrap();
        fs::write(full, text).unwrap();
    }

    pub fn put_dir(&self, path: &str) {
        fs::create_dir_all(self.at(path)).unwrap();
    }

    pub fn put_link(&self, path: &str, target: &str) {
        let full = self.at(path);
        fs::create_dir_all(full.parent().expect("below the root")).unwrap();
        std::os::unix::fs::symlink(self.at(target), full).unwrap();
    }

    pub fn remove(&self, path: &str) {
        let full = self.at(path);
        match full.is_dir() {
            true => fs::remove_dir_all(full).unwrap(),
            false => fs::remove_file(full).unwrap(),
        }
    }

    pub fn on_mkdir(&self, hook: impl Fn(&Fake, &str) + 'static) {
        *self.mkdir_hook.borrow_mut() = Some(Box::new(hook));
    }

    pub fn on_mount(&self, hook: impl Fn(&Fake, &str) + 'static) {
        *self.mount_hook.borrow_mut() = Some(Box::new(hook));
    }

    pub fn on_write(&self, hook: impl Fn(&Fake, &str, &str) -> io::Result<()> + 'static) {
        *self.write_hook.borrow_mut() = Some(Box::new(hook));
    }

    pub fn on_run(&self, hook: impl Fn(&Fake, &[&str]) -> Ran + 'static) {
        *self.run_hook.borrow_mut() = Some(Box::new(hook));
    }

    /// Creates a regular file that takes this much of the file system.
    pub fn put_file(&self, path: &str, bytes: u64) {
        self.put(path, "");
        let regular = Stat { kind: FileKind::Regular, bytes, allocated: bytes, ..OTHER };
        self.files.borrow_mut().insert(path.into(), regular);
    }

    /// Every effect whose description contains `what` fails with `errno`.
    pub fn fail_at(&self, what: &str, errno: i32) {
        self.faults.borrow_mut().push((what.to_string(), errno));
    }

    /// All files and their contents, all directories.
    pub fn snapshot(&self) -> BTreeMap<String, String> {
        fn walk(base: &Path, dir: &Path, found: &mut BTreeMap<String, String>) {
            for entry in fs::read_dir(dir).unwrap().flatten() {
                let path = entry.path();
                let name = path.strip_prefix(base).unwrap().display().to_string();
                if path.is_dir() && !path.is_symlink() {
                    found.insert(name, "directory".into());
                    walk(base, &path, found);
                } else {
                    found.insert(name, fs::read_to_string(&path).unwrap_or_default());
                }
            }
        }
        let mut found = BTreeMap::new();
        walk(self.dir.path(), self.dir.path(), &mut found);
        found
    }

    fn effect(&self, what: String) -> io::Result<()> {
        let index = self.effects.borrow().len();
        let fault = self.faults.borrow().iter().find(|(part, _)| what.contains(part)).map(|f| f.1);
        self.effects.borrow_mut().push(what);
        match fault.or((self.fail_effect.get() == Some(index)).then_some(libc::EIO)) {
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
            None => Ok(()),
        }
    }
}

/// A file of root on the device 8:1.
const OTHER: Stat = Stat {
    kind: FileKind::Other,
    device: (8, 1),
    owner: 0,
    mode: 0o600,
    bytes: 0,
    allocated: 0,
    flags: 0,
    data: false,
};

impl Sys for Fake {
    fn root(&self) -> &Path {
        self.dir.path()
    }

    fn is_root(&self) -> bool {
        self.root_user.get()
    }

    fn release(&self) -> String {
        "6.12.0-test".to_string()
    }

    fn env(&self, name: &str) -> Option<String> {
        self.env.borrow().get(name).cloned()
    }

    fn block_device(&self, path: &str) -> io::Result<Option<(u64, u64)>> {
        if !self.exists(path) {
            return Err(io::Error::from_raw_os_error(libc::ENOENT));
        }
        Ok(self.blocks.borrow().get(path).copied())
    }

    fn stat(&self, path: &str) -> io::Result<Stat> {
        match self.files.borrow().get(path) {
            Some(stat) => Ok(stat.clone()),
            None if !self.exists(path) => Err(io::Error::from_raw_os_error(libc::ENOENT)),
            None if self.at(path).is_dir() => Ok(Stat { kind: FileKind::Directory, ..OTHER }),
            None => Ok(OTHER),
        }
    }

    fn room(&self, _directory: &str) -> io::Result<(u64, u64)> {
        Ok(self.room.get())
    }

    fn claim(&self, _path: &str) -> io::Result<()> {
        match self.claim_error.get() {
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
            None => Ok(()),
        }
    }

    fn zones(&self, _path: &str) -> io::Result<Vec<Zone>> {
        match self.root_user.get() {
            true => Ok(self.zones.borrow().clone()),
            false => Err(io::Error::from_raw_os_error(libc::EACCES)),
        }
    }

    fn kernel_log(&self) -> Vec<LogLine> {
        self.log.borrow().clone()
    }

    fn interrupted(&self) -> bool {
        let signal = self.signal_effect.get();
        signal.is_some_and(|index| self.effects.borrow().len() > index)
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        self.effect(format!("write {path} {}", text.trim()))?;
        let before = self.read(path)?;
        self.put(path, text);
        match &*self.write_hook.borrow() {
            // The hook may change the text, or refuse it.
            Some(hook) => hook(self, path, text.trim()).inspect_err(|_| self.put(path, &before)),
            None => Ok(()),
        }
    }

    /// Only bytes that the device's file already has.
    fn write_at(&self, path: &str, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.effect(format!("write {path} at {at}"))?;
        let mut whole = fs::read(self.at(path))?;
        let to = whole.iter_mut().skip(at as usize);
        to.zip(bytes).for_each(|(old, new)| *old = *new);
        fs::write(self.at(path), whole)
    }

    fn save(&self, path: &str, text: &str) -> io::Result<()> {
        self.effect(format!("save {path} {text}"))?;
        self.put(path, text);
        Ok(())
    }

    fn link(&self, path: &str, target: &str) -> io::Result<()> {
        self.effect(format!("link {path} {target}"))?;
        let full = self.at(path);
        fs::create_dir_all(full.parent().expect("below the root"))?;
        std::os::unix::fs::symlink(target, full)
    }

    fn make_file(&self, path: &str, bytes: u64) -> io::Result<()> {
        self.effect(format!("make {path} of {bytes} bytes"))?;
        self.put_file(path, bytes);
        Ok(())
    }

    fn clear_file(&self, path: &str) -> io::Result<()> {
        self.effect(format!("clear {path}"))?;
        let bytes = self.stat(path)?.bytes;
        self.put_file(path, bytes);
        Ok(())
    }

    fn forget(&self, path: &str) -> io::Result<()> {
        if self.exists(path) {
            self.effect(format!("forget {path}"))?;
            self.files.borrow_mut().remove(path);
            self.remove(path);
        }
        Ok(())
    }

    fn mkdir(&self, path: &str) -> io::Result<()> {
        self.effect(format!("mkdir {path}"))?;
        fs::create_dir(self.at(path))?;
        if let Some(hook) = &*self.mkdir_hook.borrow() {
            hook(self, path);
        }
        Ok(())
    }

    /// As in configfs and cgroupfs, removes the files, too.
    fn rmdir(&self, path: &str) -> io::Result<()> {
        self.effect(format!("rmdir {path}"))?;
        fs::remove_dir_all(self.at(path))
    }

    fn mount(&self, fstype: &str, path: &str) -> io::Result<()> {
        let done = self.effect(format!("mount {fstype} {path}"));
        // If the mount failed, another process may have mounted it.
        if let Some(hook) = &*self.mount_hook.borrow() {
            hook(self, path);
        }
        done
    }

    fn start_guard(&self, subcommand: &str, name: &str) -> io::Result<()> {
        const PID: u32 = 4242;
        self.effect(format!("guard {name}"))?;
        self.put(&format!("/run/znsage/{name}.guard"), &format!("{PID}\n"));
        self.put(&format!("/proc/{PID}/cmdline"), &format!("znsage\0{subcommand}\0{name}\0"));
        Ok(())
    }

    fn end(&self, pid: u32) -> io::Result<()> {
        self.effect(format!("end {pid}"))?;
        self.remove(&format!("/proc/{pid}"));
        Ok(())
    }

    fn run(&self, argv: &[&str], tick: &mut dyn FnMut()) -> io::Result<Ran> {
        self.effect(format!("run {}", argv.join(" ")))?;
        tick();
        match &*self.run_hook.borrow() {
            Some(hook) => Ok(hook(self, argv)),
            None => panic!("unexpected program: {argv:?}"),
        }
    }

    fn sleep(&self, _time: Duration) {}

    fn hold(&self, path: &str) -> io::Result<Box<dyn std::any::Any>> {
        self.claim(path)?;
        Ok(Box::new(()))
    }

    fn reset_zones(&self, path: &str, start: u64, length: u64) -> io::Result<()> {
        self.effect(format!("reset {path} {start}+{length}"))
    }

    fn ask(&self, question: &str) -> io::Result<Option<String>> {
        self.effect(format!("ask {question}"))?;
        Ok(self.answer.borrow().clone())
    }
}
