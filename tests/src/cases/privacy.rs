// SPDX-License-Identifier: GPL-2.0-only
//! What others can see of swapped-out pages: somebody who reads the device below, and
//! users without privileges.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::{setgid, setgroups, setuid, Gid, Uid};

use super::block;
use super::devices::{MAIN, MEDIUM, TIGHT};
use crate::child::{spawn, Child, Group};
use crate::device::{load_module, znsage, znsage_json, Device, CONFIG};
use crate::direct::Disk;
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::memory::Memory;
use crate::outcome::{Context, Outcome};
use crate::pattern::PAGE;
use crate::table::{mounted, DEBUGFS};
use crate::zones;

crate::cases![privacy:
    off_unless_asked_for (full), requests (each), swap_at_80 (full), padding (full),
    on_the_device (full), compressed (each), no_cipher (full), users];

const ENCRYPT: [&str; 2] = ["--encrypt", "aes-xts"];

fn off_unless_asked_for(_: &mut Log) -> Outcome {
    load_module()?;
    let item = format!("{CONFIG}/suite");
    fs::create_dir(&item).context(&item)?;
    let setting = format!("{item}/encrypt");
    ensure!(guest::read(&setting)? == "off", "the default is not off");
    for wrong in ["", "aes", "aes-xts-plain", "1"] {
        guest::refuses(&setting, &format!("{wrong}\n"), libc::EINVAL)?;
    }
    fs::remove_dir(&item).context(&item)?;

    let backing = guest::device(MAIN)?;
    let shown = |wanted: &str, device: Device| -> Outcome {
        let is = guest::read(&device.attribute("encrypt"))?;
        ensure!(is == wanted, "encrypt is {is}, not {wanted}");
        let status = znsage_json(&["status"])?["devices"][0]["encrypt"].clone();
        ensure!(status == wanted, "status --json: {status}");
        let text = guest::ok(&["znsage", "status"])?;
        ensure!(text.contains(&format!("encryption: {wanted}\n")), "status: {text}");
        // The setting is fixed while the device is attached.
        let setting = format!("{CONFIG}/{}/encrypt", guest::read(&device.attribute("config"))?);
        ensure!(guest::read(&setting)? == wanted, "{setting} is not {wanted}");
        guest::refuses(&setting, "off", libc::EBUSY)?;
        ensure!(guest::write(&device.attribute("encrypt"), "off").is_err(), "sysfs takes it");
        device.finish_sound()
    };
    shown("off", Device::on(&backing, &[])?)?;
    shown("off", Device::on(&backing, &["--encrypt", "off"])?)?;
    shown("aes-xts", Device::on(&backing, &ENCRYPT)?)
}

/// Reads of many pages, whose blocks are consecutive or not, or were never written.
fn requests(_: &mut Log) -> Outcome {
    let settings = [("size", "25165824"), ("policy", "cpu"), ("encrypt", "aes-xts")];
    block::requests_at_random(Device::attach(&guest::device(MAIN)?, &settings)?)
}

/// `bench` verifies all pages, as in the cases of `utilization`. The device is small,
/// because emulated cipher instructions are very slow.
fn swap_at_80(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(TIGHT)?, &ENCRYPT)?;
    let accesses = "--utilization 80 --rewrites 0.8 --seconds 60 --write-ratio 0.9";
    let accesses: Vec<&str> = accesses.split(' ').collect();
    let bench = guest::without_read_ahead(|| device.bench(&accesses))?;
    print!("{:.1} % full ... ", 100.0 * bench.utilization());
    ensure!(device.counter("gc_blocks")? > 1000, "GC had little to do");
    device.finish_sound()
}

/// Appends with padding, which is not encrypted.
fn padding(_: &mut Log) -> Outcome {
    let options = ["--write-unit", "16K", "--chunk", "64K"];
    let device = Device::on(&guest::device(TIGHT)?, &[&ENCRYPT[..], &options].concat())?;
    device.bench(&["--size", "32M", "--seconds", "3"])?;
    ensure!(device.counter("padding_blocks")? > 0, "nothing was padded");
    device.finish_sound()
}

/// Words that identify pages of a key: a few of each page, none of them zero.
fn words_of(memory: &Memory) -> HashSet<u64> {
    (0..memory.pages()).flat_map(|p| [0, 1, 100, 511].map(|w| memory.page(p)[w])).collect()
}

/// How many of the words are on a device. Reads all of it, not only mapped blocks.
fn found_on(device: &str, words: &HashSet<u64>) -> Outcome<usize> {
    let disk = Disk::open_to_read(device)?;
    let mut part = Memory::new(128 << 10)?;
    let mut found = HashSet::new();
    let mut at = 0;
    while at < disk.bytes() {
        disk.read_at(part.bytes_mut(), at).context(format!("read {device} at {at}"))?;
        found.extend(part.iter().filter(|&w| *w != 0 && words.contains(w)).copied());
        at += part.bytes().len() as u64;
    }
    Ok(found.len())
}

/// A process that fills this many pages by a key and swaps them out. It verifies them
/// when the parent lets it continue.
fn swap_out(group: &Group, pages: usize, key: u64) -> Outcome<Child> {
    let mut child = spawn(Some(group), |link| {
        let mut memory = Memory::new(pages * PAGE)?;
        memory.fill(0..pages, key);
        memory.page_out()?;
        link.point()?;
        memory.verify(0..pages, key)
    })?;
    child.reach()?;
    Ok(child)
}

/// Unless encrypted, the contents of a process's memory are on the device below. In both
/// cases they are gone once znsage is off.
fn on_the_device(_: &mut Log) -> Outcome {
    const PAGES: usize = 2048;
    let backing = guest::device(MAIN)?;
    for (options, key) in [(&[][..], 11), (&ENCRYPT[..], 12)] {
        let encrypts = !options.is_empty();
        let device = Device::on(&backing, options)?;
        let group = Group::new("secret", 64 << 20)?;
        let mut child = swap_out(&group, PAGES, key)?;
        let mut memory = Memory::new(PAGES * PAGE)?;
        memory.fill(0..PAGES, key);
        let words = words_of(&memory);
        let found = found_on(&backing, &words)?;
        print!("{found} of {} words ... ", words.len());
        if encrypts {
            ensure!(found == 0, "{found} words of the process are on the device");
        } else {
            // Some pages may stay in memory.
            ensure!(found > words.len() * 9 / 10, "only {found} words were found");
        }
        child.go_on()?;
        child.join()?;
        drop(group);
        device.finish_sound()?;
        let found = found_on(&backing, &words)?;
        ensure!(found == 0, "{found} words are still on the device, which is off");
    }
    moved_by_gc(&guest::device(TIGHT)?)
}

/// Compressed pages: of some bytes, of half a page, and one that does not shrink.
fn compressed(_: &mut Log) -> Outcome {
    const PAGES: usize = 512;
    const TEXT: &[u8] = b"nobody may read this on the device ";
    let backing = guest::device(MAIN)?;
    let mut memory = Memory::new(PAGES * PAGE)?;
    memory.fill(0..PAGES, 1);
    for (page, bytes) in memory.bytes_mut().chunks_mut(PAGE).enumerate() {
        let noise = [0, PAGE / 2, PAGE - TEXT.len()][page % 3];
        for (to, from) in bytes[noise..].iter_mut().zip(TEXT.iter().cycle()) {
            *to = *from;
        }
    }
    let want = memory.bytes().to_vec();
    for encrypt in ["off", "aes-xts"] {
        let settings = [("compress", "lz4"), ("encrypt", encrypt), ("force", "1")];
        let device = Device::attach(&backing, &settings)?;
        let disk = device.disk()?;
        memory.bytes_mut().copy_from_slice(&want);
        disk.write_slots(&memory, 0..PAGES).context("write")?;
        memory.bytes_mut().fill(0);
        disk.read_slots(&mut memory, 0..PAGES).context("read")?;
        ensure!(memory.bytes() == &want[..], "what was read is not what was written");
        let (blocks, pages) = (device.counter("host_blocks")?, device.counter("host_pages")?);
        ensure!(blocks * 10 < pages * 6, "{blocks} blocks for {pages} pages");
        let mut there = vec![0; 8 << 20];
        File::open(&backing).and_then(|mut f| f.read_exact(&mut there)).context(&backing)?;
        let found = there.windows(TEXT.len()).filter(|&bytes| bytes == TEXT).count();
        ensure!((found == 0) == (encrypt != "off"), "encrypt {encrypt}: found {found} times");
        device.rewrite(2000, 4)?;
        drop(disk);
        device.finish_sound()?;
    }
    Ok(())
}

/// GC copies ciphertext.
fn moved_by_gc(backing: &str) -> Outcome {
    let settings = [("size", "25165824"), ("encrypt", "aes-xts"), ("policy", "single")];
    let device = Device::attach(backing, &settings)?;
    let disk = device.disk()?;
    let mut memory = Memory::new(disk.slots() * PAGE)?;
    memory.fill(0..disk.slots(), 21);
    disk.write_slots(&memory, 0..disk.slots()).context("write")?;
    // Rewrite every other 64 KiB repeatedly, so that all zones are partly stale.
    for _ in 0..16 {
        for slot in (0..disk.slots()).step_by(32) {
            disk.write_slots(&memory, slot..slot + 16).context("write again")?;
        }
        if device.counter("gc_blocks")? > 500 {
            break;
        }
    }
    let moved = device.counter("gc_blocks")?;
    ensure!(moved > 500, "GC moved only {moved} blocks");
    let found = found_on(backing, &words_of(&memory))?;
    ensure!(found == 0, "{found} words are on the device");
    let mut read = Memory::new(disk.slots() * PAGE)?;
    disk.read_slots(&mut read, 0..disk.slots()).context("read")?;
    read.verify(0..disk.slots(), 21)?;
    drop(disk);
    device.finish_sound()
}

/// Removes the ciphers from the kernel, and keeps it from loading them again.
fn without_ciphers(body: impl FnOnce() -> Outcome) -> Outcome {
    const LOADER: &str = "/proc/sys/kernel/modprobe";
    for module in ["aesni_intel", "xts"] {
        let _ = guest::run(&["modprobe", "-r", module]);
    }
    let usual = guest::read(LOADER)?;
    guest::write(LOADER, "/bin/false").context(LOADER)?;
    let outcome = match guest::read("/proc/crypto")?.contains("xts(aes)") {
        true => Err("the kernel does not unload xts(aes)".to_string()),
        false => body(),
    };
    guest::write(LOADER, &usual).context(LOADER)?;
    outcome
}

/// A kernel without the cipher: everything but encryption works. An attach with
/// encryption sets nothing up, and the message says what to do.
fn no_cipher(_: &mut Log) -> Outcome {
    // Kernels since 7.3 have the cipher built in.
    if guest::read("/proc/crypto")?.contains("xts-aes-lib") {
        print!("this kernel cannot be without it ... ");
        return Ok(());
    }
    let backing = guest::device(MAIN)?;
    without_ciphers(|| {
        let ran = znsage(&[&["on", &backing], &ENCRYPT[..]].concat())?;
        ensure!(ran.status == 13, "status {}: {}", ran.status, ran.said());
        for says in ["the kernel has no cipher xts(aes)", "modprobe xts"] {
            ensure!(ran.stderr.contains(says), "it does not say `{says}`: {}", ran.said());
        }
        ensure!(guest::swaps().is_empty(), "there is a swap area");
        ensure!(guest::list(CONFIG).iter().all(|n| !n.starts_with("nvme")), "a device is left");
        zones::all_empty(&backing)?;
        Device::on(&backing, &[])?.finish_sound()
    })?;
    Device::on(&backing, &ENCRYPT)?.finish_sound()
}

/// All files below a directory; links are not followed.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files.extend(files_below(&entry.path())),
            Ok(kind) if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
    files
}

fn mode_is(path: &Path, forbidden: u32) -> Outcome {
    let what = path.display();
    let meta = fs::metadata(path).context(&what)?;
    ensure!(meta.uid() == 0, "{what} belongs to {}", meta.uid());
    let mode = meta.mode() & 0o7777;
    ensure!(mode & forbidden == 0, "{what} has the mode {mode:o}");
    Ok(())
}

/// The user who must not be able to do anything.
const NOBODY: u32 = 65534;

fn become_nobody() -> Outcome {
    setgroups(&[]).context("setgroups")?;
    setgid(Gid::from_raw(NOBODY)).context("setgid")?;
    setuid(Uid::from_raw(NOBODY)).context("setuid")
}

fn denied<T>(what: &str, result: std::io::Result<T>) -> Outcome {
    match result {
        Ok(_) => Err(format!("a user may {what}")),
        Err(e) if matches!(e.kind(), ErrorKind::PermissionDenied) => Ok(()),
        // In a directory that users cannot enter.
        Err(e) => Err(format!("a user fails to {what} with `{e}`")),
    }
}

/// Is this an address in the kernel's memory?
fn is_address(word: &str) -> bool {
    let digits = word.trim_start_matches("0x");
    digits.len() == 16 && digits.starts_with("ffff")
}

fn try_as_a_user(nodes: &[String], settings: &[PathBuf], secret: &[PathBuf]) -> Outcome {
    become_nobody()?;
    for node in nodes {
        for flags in [0, libc::O_DIRECT] {
            let open = OpenOptions::new().read(true).custom_flags(flags).open(node);
            denied(&format!("read {node}"), open)?;
        }
        denied(&format!("write {node}"), OpenOptions::new().write(true).open(node))?;
    }
    for path in settings {
        denied(&format!("write {}", path.display()), OpenOptions::new().write(true).open(path))?;
        let mode = fs::Permissions::from_mode(0o666);
        let changed = fs::set_permissions(path, mode);
        denied(&format!("change the mode of {}", path.display()), changed)?;
    }
    for path in secret {
        denied(&format!("read {}", path.display()), File::open(path))?;
    }
    // Files that anybody can read have numbers and names, but no addresses.
    for path in settings.iter().filter(|p| !secret.contains(p)) {
        let mut text = String::new();
        if File::open(path).and_then(|mut f| f.read_to_string(&mut text)).is_ok() {
            let address = text.split_whitespace().find(|w| is_address(w));
            ensure!(address.is_none(), "{} shows {address:?}", path.display());
        }
    }
    denied("set up a device", fs::create_dir(format!("{CONFIG}/users")))?;
    let ran = guest::run(&["swapoff", &nodes[0]])?;
    ensure!(ran.status != 0, "a user may swapoff");
    Ok(())
}

/// Users without privileges can read no page and change nothing.
fn users(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(MEDIUM)?, &["--policy", "cgroup"])?;
    mounted("debugfs", DEBUGFS, "znsage")?;
    let group = Group::new("secret", 64 << 20)?;
    let mut child = swap_out(&group, 1024, 31)?;
    let config = guest::read(&device.attribute("config"))?;
    let sysfs = PathBuf::from(format!("/sys/block/{}/znsage", device.name));
    let debugfs = PathBuf::from(format!("{DEBUGFS}/znsage"));
    let mut settings = files_below(&sysfs);
    settings.extend(files_below(Path::new(CONFIG)));
    let debug = files_below(&debugfs);
    ensure!(settings.len() > 50 && !debug.is_empty(), "{} files were found", settings.len());
    ensure!(settings.iter().any(|p| p.ends_with(format!("{config}/power"))), "no power");
    let secret: Vec<PathBuf> = [vec![sysfs.join("check")], debug.clone()].concat();

    let nodes = [device.node(), device.backing.clone()];
    for node in &nodes {
        // A distribution's rules may let a group of administrators read disks.
        mode_is(Path::new(node), 0o007)?;
    }
    settings.iter().try_for_each(|path| mode_is(path, 0o022))?;
    mode_is(Path::new(CONFIG), 0o022)?;
    mode_is(Path::new(DEBUGFS), 0o077)?;
    mode_is(&sysfs.join("check"), 0o077)?;
    let all = [settings, debug].concat();
    spawn(None, |_| try_as_a_user(&nodes, &all, &secret))?.join()?;
    child.go_on()?;
    child.join()?;
    drop(group);
    device.finish_sound()
}
