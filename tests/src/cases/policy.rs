// SPDX-License-Identifier: GPL-2.0-only
//! Policies, and changes of them under load; and all that processes do with
//! their pages while GC runs.

use std::thread::sleep;
use std::time::Duration;

use super::devices::MAIN;
use crate::child::{spawn, Child, Group, Link};
use crate::device::{Device, CONFIG};
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::memory::Memory;
use crate::outcome::{Context, Outcome};
use crate::pattern::{self, PAGE};

crate::cases![policy:
    cgroup (full), heat (full), unknown_is_refused,
    switched_under_load (full), pages_in_all_ways (full)];

const MIB: usize = 1 << 20;

pub fn set(device: &Device, file: &str, value: &str) -> Outcome {
    let path = device.attribute(file);
    guest::write(&path, value).context(format!("{path} := {value}"))
}

/// Random writes at 80 % utilization, every page verified.
fn at_80(policy: &str) -> Outcome {
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    set(&device, "policy", policy)?;
    let bench = guest::without_read_ahead(|| {
        device.bench(&["--utilization", "80", "--rewrites", "0.6", "--seconds", "40"])
    })?;
    print!("{policy}: WAF {:.2} ... ", bench.waf());
    ensure!(guest::read(&device.attribute("policy"))? == policy, "the policy has changed");
    let refused = device.counter("policy_refused")?;
    ensure!(refused == 0, "{refused} answers were refused");
    device.finish_sound()
}

fn cgroup(_: &mut Log) -> Outcome {
    at_80("cgroup")
}

fn heat(_: &mut Log) -> Outcome {
    at_80("heat")
}

fn unknown_is_refused(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    for (file, value) in [("policy", "nonsense"), ("policy", ""), ("victim", "nonsense")] {
        let before = guest::read(&device.attribute(file))?;
        guest::refuses(&device.attribute(file), &format!("{value}\n"), libc::EINVAL)?;
        guest::refuses(&device.attribute(file), &"x".repeat(1000), libc::EINVAL)?;
        let after = guest::read(&device.attribute(file))?;
        ensure!(before == after, "{file} was {before} and is {after}");
    }
    device.finish_sound()
}

/// Writes and verifies pages at random until it is told to end.
fn work(link: &mut Link, size: usize) -> Outcome {
    let mut memory = Memory::new(size)?;
    let pages = memory.pages();
    let mut keys = vec![1; pages];
    memory.fill(0..pages, 1);
    link.point()?;
    let mut random = pattern::Random::new(size as u64);
    let mut key = 1;
    while !link.is_told() {
        key += 1;
        let page = random.below(pages);
        memory.verify(page..page + 1, keys[page])?;
        memory.fill(page..page + 1, key);
        keys[page] = key;
    }
    (0..pages).try_for_each(|page| memory.verify(page..page + 1, keys[page]))
}

/// Two workers in groups of their own run while `meanwhile` does.
pub fn under_load(meanwhile: impl FnOnce() -> Outcome) -> Outcome {
    const SIZE: usize = 40 * MIB;
    let groups = [Group::new("one", 16 << 20)?, Group::new("two", 16 << 20)?];
    let mut children = groups
        .iter()
        .map(|group| spawn(Some(group), |link| work(link, SIZE)))
        .collect::<Outcome<Vec<Child>>>()?;
    for child in &mut children {
        child.reach()?;
        child.go_on()?;
    }
    meanwhile()?;
    children.into_iter().try_for_each(|mut child| {
        child.go_on()?;
        child.join()
    })
}

fn switched_under_load(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    under_load(|| {
        for round in 0..20 {
            for policy in ["single", "cgroup", "heat", "cpu"] {
                set(&device, "policy", policy)?;
            }
            for victim in ["greedy", "cost-benefit", "age"] {
                set(&device, "victim", victim)?;
            }
            // Sometimes faster than the workers, sometimes slower.
            sleep(Duration::from_millis(20 * (round % 5)));
        }
        Ok(())
    })?;
    device.finish_sound()
}

pub fn known() -> Outcome<Vec<String>> {
    Ok(guest::read(&format!("{CONFIG}/policies"))?.lines().map(str::to_string).collect())
}

/// Makes GC clean all it can, with watermarks that it cannot reach.
pub fn force_gc(device: &Device) -> Outcome {
    let zones = device.counter("zones_total")?;
    set(device, "gc_high", &(zones - 1).to_string())?;
    set(device, "gc_low", &(zones - 2).to_string())
}

/// Reads every other page, which is then in memory and keeps its slot. Frees and writes the
/// others, whose slots are then free: all zones are half valid. (A write alone may keep the
/// slot of a page that readahead has read.)
fn read_half_write_half(memory: &mut Memory) -> Outcome {
    for page in 0..memory.pages() {
        match page % 2 {
            0 => memory.verify(page..page + 1, 1)?,
            _ => {
                memory.forget(page)?;
                memory.fill(page..page + 1, 2);
            }
        }
    }
    Ok(())
}

fn verify_halves(memory: &Memory) -> Outcome {
    (0..memory.pages()).try_for_each(|page| memory.verify(page..page + 1, 1 + page as u64 % 2))
}

/// Processes do everything with their pages, repeatedly, while GC runs: read, write,
/// fork, write in the child, MADV_PAGEOUT, exit.
fn pages_in_all_ways(_: &mut Log) -> Outcome {
    const SIZE: usize = 16 * MIB;
    const ROUNDS: usize = 6;
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    let groups = [Group::new("roomy", 128 << 20)?, Group::new("tight", 18 << 20)?];
    let body = |_: &mut Link| {
        for _ in 0..ROUNDS {
            let mut memory = Memory::new(SIZE)?;
            memory.fill(0..SIZE / PAGE, 1);
            memory.start_page_out()?;
            memory.verify(0..SIZE / PAGE, 1)?;
            memory.start_page_out()?;
            read_half_write_half(&mut memory)?;
            let child = spawn(None, |_| {
                verify_halves(&memory)?;
                memory.start_page_out()?;
                memory.fill(0..SIZE / PAGE / 4, 9);
                memory.start_page_out()?;
                memory.verify(0..SIZE / PAGE / 4, 9)
            })?;
            verify_halves(&memory)?;
            memory.start_page_out()?;
            verify_halves(&memory)?;
            child.join()?;
            verify_halves(&memory)?;
        }
        Ok(())
    };
    let children = groups.iter().map(|g| spawn(Some(g), body)).collect::<Outcome<Vec<_>>>()?;
    force_gc(&device)?;
    children.into_iter().try_for_each(Child::join)?;
    device.finish_sound()
}
