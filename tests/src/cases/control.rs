// SPDX-License-Identifier: GPL-2.0-only
//! Several processes write random values to the files that control a device, while it swaps.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;

use super::devices::MAIN;
use crate::child::{spawn, Child, Group, Link};
use crate::device::{Device, CONFIG};
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::memory::Memory;
use crate::outcome::{Context, Outcome};
use crate::pattern::Random;

crate::cases![control: random_writes (full)];

const MIB: usize = 1 << 20;
const WRITERS: u64 = 3;
const WRITES: usize = 4000;
/// Files of an attached device; 0644 in sysfs.
const SETTINGS: [&str; 7] =
    ["policy", "victim", "gc_low", "gc_high", "pace", "deadline_us", "time_reads"];
/// Files of an item in configfs.
const ITEM: [&str; 15] = [
    "backing",
    "size",
    "over_provisioning",
    "policy",
    "victim",
    "chunk",
    "write_unit",
    "reserve",
    "pace",
    "stripe",
    "gc_low",
    "gc_high",
    "deadline_us",
    "force",
    "power",
];
/// A second item, which is never attached.
const SPARE: &str = "random";
/// Errors that a refused write may return.
const REFUSALS: [i32; 8] = [
    libc::EINVAL,
    libc::EBUSY,
    libc::EPERM,
    libc::EACCES,
    libc::ERANGE,
    libc::ENOENT,
    libc::E2BIG,
    libc::EFBIG,
];
const WORDS: [&str; 13] = [
    "\n",
    " ",
    "0",
    "1",
    "single",
    "cpu",
    "cgroup",
    "heat",
    "greedy",
    "cost-benefit",
    "age",
    "y",
    "nonsense",
];

/// Words; small numbers, limits and numbers beyond them; bytes of any length up to more than a
/// page. Never an empty value, for which configfs returns EFAULT itself. `power` of the
/// attached device gets them, too: in use, it must stay attached.
fn value(random: &mut Random) -> Vec<u8> {
    let around = random.below(5) as u64;
    match random.below(8) {
        0 | 1 => WORDS[random.below(WORDS.len())].into(),
        2 => format!("{}\n", random.below(100)).into(),
        3 => format!("{}", random.below(2_000_000)).into(),
        4 => format!("{}", (1u64 << random.below(64)).wrapping_add(around).wrapping_sub(2)).into(),
        5 => format!("-{:#x}\n", random.next()).into(),
        6 => vec![b"90 x\0"[random.below(5)]; 1 + random.below(9000)],
        _ => (0..1 + random.below(64)).map(|_| random.next() as u8).collect(),
    }
}

/// Writes at random, and counts for each file how many values it accepted and refused.
fn write_at_random(files: &[String], seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let mut counts: BTreeMap<&str, [u32; 2]> = BTreeMap::new();
    for _ in 0..WRITES {
        let path = &files[random.below(files.len())];
        let value = value(&mut random);
        // The kernel reads all of these as "on", and would log why it fails.
        let on = value.first().is_some_and(|first| b"1yYtToO".contains(first));
        if on && path.ends_with(&format!("{SPARE}/power")) {
            continue;
        }
        let written = OpenOptions::new().write(true).open(path).and_then(|mut f| f.write(&value));
        let refused = match written {
            Ok(_) => 0,
            Err(e) if e.raw_os_error().is_some_and(|n| REFUSALS.contains(&n)) => 1,
            Err(e) => {
                let value = String::from_utf8_lossy(&value);
                return Err(format!("{path} := `{}`: {e}", value.escape_debug()));
            }
        };
        counts.entry(path).or_default()[refused] += 1;
    }
    ensure!(counts.len() == files.len(), "only {} files were written", counts.len());
    ensure!(counts.values().any(|n| n[0] > 0), "every value was refused");
    ensure!(counts.values().all(|n| n[1] > 0), "a file accepted every value: {counts:?}");
    Ok(())
}

/// Swaps until it has gone through its memory `rounds` times.
fn swap(link: &mut Link, bytes: usize, rounds: u64) -> Outcome {
    let mut memory = Memory::new(bytes)?;
    let pages = memory.pages();
    memory.fill(0..pages, 1);
    link.point()?;
    let mut random = Random::new(7);
    let mut keys = vec![1; pages];
    for key in 2..rounds * pages as u64 {
        let page = random.below(pages);
        memory.verify(page..page + 1, keys[page])?;
        memory.fill(page..page + 1, key);
        keys[page] = key;
    }
    (0..pages).try_for_each(|page| memory.verify(page..page + 1, keys[page]))
}

fn random_writes(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    let name = device.backing.rsplit('/').next().unwrap_or_default();
    let spare = format!("{CONFIG}/{SPARE}");
    fs::create_dir(&spare).context(&spare)?;
    let mut files: Vec<String> = SETTINGS.iter().map(|file| device.attribute(file)).collect();
    files.extend(ITEM.iter().map(|file| format!("{CONFIG}/{name}/{file}")));
    files.extend(ITEM.iter().map(|file| format!("{spare}/{file}")));

    let group = Group::new("swapping", 16 << 20)?;
    let mut worker = spawn(Some(&group), |link| swap(link, 40 * MIB, 2))?;
    worker.reach()?;
    worker.go_on()?;
    let writers = (0..WRITERS)
        .map(|seed| spawn(None, |_| write_at_random(&files, seed)))
        .collect::<Outcome<Vec<Child>>>()?;
    writers.into_iter().try_for_each(Child::join)?;
    worker.join()?;

    fs::remove_dir(&spare).context(&spare)?;
    let power = guest::read(&format!("{CONFIG}/{name}/power"))?;
    ensure!(power == "1", "power is `{power}`, though the device is in use");
    ensure!(device.counter("host_blocks")? > 0, "nothing was swapped out");
    device.finish_sound()
}
