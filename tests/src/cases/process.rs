// SPDX-License-Identifier: GPL-2.0-only
//! Processes with swapped memory: fork, share, exit.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use super::devices::{CONVENTIONAL, MAIN};
use crate::child::{spawn, Group};
use crate::cleanup::MOUNT;
use crate::device::{blocks, Device};
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::memory::Memory;
use crate::outcome::{Context, Outcome};
use crate::pattern::{self, PAGE};

crate::cases![process:
    fork_shares_swapped_pages (each), tmpfs_pages (each), exit_frees (each),
    swapoff_under_load (each)];

const MIB: usize = 1 << 20;

/// Freed slots that the kernel may keep for a while: two caches of 64 for each CPU, and
/// clusters of readahead.
const LINGERING: u64 = 1024;

fn most_of(device: &Device, bytes: usize) -> Outcome {
    let used = device.counter("slots_used")?;
    let all = blocks(bytes as u64);
    ensure!(used >= all * 9 / 10, "of {all} pages only {used} are swapped out");
    Ok(())
}

/// Waits until the device is nearly empty.
fn freed(device: &Device, what: &str) -> Outcome {
    let mut used = 0;
    let few = guest::eventually(10.0, || {
        used = device.counter("live_blocks").unwrap_or(u64::MAX);
        used <= LINGERING
    });
    ensure!(few, "after {what}, {used} blocks are alive");
    Ok(())
}

/// After a fork both processes share a swapped page, until one of them writes to it.
fn fork_shares_swapped_pages(_: &mut Log) -> Outcome {
    const SIZE: usize = 32 * MIB;
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    // Where reclaim is slow, `memory.max` would kill; `memory.high` makes the process wait.
    let group = Group::new("fork", 2 * SIZE as u64)?;
    group.set("memory.high", &(SIZE / 2).to_string())?;
    let mut parent = spawn(Some(&group), |link| {
        let mut memory = Memory::new(SIZE)?;
        let (all, half) = (0..memory.pages(), 0..memory.pages() / 2);
        let rest = half.end..all.end;
        memory.fill(all.clone(), 1);
        memory.page_out()?;
        link.point()?;
        let mut child = spawn(None, |link| {
            memory.verify(all.clone(), 1)?;
            memory.fill(half.clone(), 2);
            link.point()?;
            memory.verify(half.clone(), 2)?;
            memory.verify(rest.clone(), 1)
        })?;
        memory.verify(all.clone(), 1)?;
        child.reach()?;
        memory.start_page_out()?;
        memory.verify(all.clone(), 1)?;
        child.go_on()?;
        memory.fill(rest, 3);
        memory.verify(half, 1)?;
        child.join()
    })?;
    parent.reach()?;
    most_of(&device, SIZE)?;
    parent.go_on()?;
    parent.join()?;
    freed(&device, "both have exited")?;
    device.finish_sound()
}

/// Pages of tmpfs files are shared memory, which the kernel swaps by other code than anonymous
/// memory.
fn tmpfs_pages(_: &mut Log) -> Outcome {
    const SIZE: usize = 32 * MIB;
    const STEP: usize = MIB;
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    fs::create_dir_all(MOUNT).context(MOUNT)?;
    guest::ok(&["mount", "-t", "tmpfs", "-o", "size=64M", "tmpfs", MOUNT])?;
    let path = format!("{MOUNT}/file");
    let group = Group::new("tmpfs", 16 << 20)?;

    let mut child = spawn(Some(&group), |link| {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.context(&path)?;
        let mut buffer = Memory::new(STEP)?;
        for (i, offset) in (0..SIZE).step_by(STEP).enumerate() {
            buffer.fill(0..STEP / PAGE, 100 + i as u64);
            file.write_all_at(buffer.bytes(), offset as u64).context(&path)?;
        }
        link.point()?;
        for _ in 0..2 {
            for (i, offset) in (0..SIZE).step_by(STEP).enumerate() {
                file.read_exact_at(buffer.bytes_mut(), offset as u64).context(&path)?;
                buffer.verify(0..STEP / PAGE, 100 + i as u64)?;
            }
        }
        Ok(())
    })?;
    child.reach()?;
    ensure!(
        device.counter("slots_used")? >= blocks((SIZE - 20 * MIB) as u64),
        "the file is not swapped out"
    );
    child.go_on()?;
    child.join()?;
    fs::remove_file(&path).context(&path)?;
    freed(&device, "the file was deleted")?;
    guest::ok(&["umount", MOUNT])?;
    device.finish_sound()
}

fn exit_frees(_: &mut Log) -> Outcome {
    const SIZE: usize = 32 * MIB;
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    let group = Group::new("exit", 16 << 20)?;
    for end_by_kill in [false, true] {
        let mut child = spawn(Some(&group), |link| {
            let mut memory = Memory::new(SIZE)?;
            memory.fill(0..SIZE / PAGE, 1);
            memory.page_out()?;
            link.point()
        })?;
        child.reach()?;
        most_of(&device, SIZE)?;
        match end_by_kill {
            true => child.kill()?,
            false => child.go_on().and_then(|()| child.join())?,
        }
        freed(&device, "the process ended")?;
    }
    device.finish_sound()
}

/// Pages move from one swap area to another while a process uses them.
fn swapoff_under_load(_: &mut Log) -> Outcome {
    const SIZE: usize = 64 * MIB;
    let other = guest::device(CONVENTIONAL)?;
    let device = Device::on(&guest::device(MAIN)?, &["--priority", "10"])?;
    guest::ok(&["mkswap", &other])?;
    guest::ok(&["swapon", "--priority", "1", &other])?;
    let group = Group::new("load", 24 << 20)?;

    let mut child = spawn(Some(&group), |link| {
        let mut memory = Memory::new(SIZE)?;
        let pages = memory.pages();
        let mut keys = vec![1; pages];
        memory.fill(0..pages, 1);
        link.point()?;
        let mut random = pattern::Random::new(1);
        for key in 2..10_000 {
            let page = random.below(pages);
            memory.verify(page..page + 1, keys[page])?;
            memory.fill(page..page + 1, key);
            keys[page] = key;
        }
        link.point()?;
        (0..pages).try_for_each(|page| memory.verify(page..page + 1, keys[page]))
    })?;
    child.reach()?;
    ensure!(group.swapped()? > 30 << 20, "too little is swapped out");
    child.go_on()?;
    device.swapoff()?;
    device.nothing_lives()?;
    child.reach()?;
    child.go_on()?;
    child.join()?;
    guest::ok(&["swapoff", &other])?;
    device.finish_sound()
}
