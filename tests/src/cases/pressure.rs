// SPDX-License-Identifier: GPL-2.0-only
//! The whole machine is short of memory, not a cgroup: kswapd and direct reclaim are at work,
//! and the OOM killer kills.

use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::mman::{mlockall, MlockAllFlags};
use nix::sys::signal::Signal;

use super::devices::MEDIUM;
use super::kernel::KMEMLEAK;
use crate::child::{spawn, Child, Link};
use crate::device::Device;
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::memory::Memory;
use crate::outcome::{Context, Outcome};
use crate::pattern::{Random, PAGE};

crate::cases![pressure: whole_machine (more)];

const MIB: usize = 1 << 20;
/// Memory that the hog leaves to the others.
const LEFT: u64 = 96 << 20;
const WORKERS: u64 = 4;
/// Workers grow by this much in turn.
const STEP: usize = MIB;
/// Utilization of the swap area; less where kmemleak needs tens of MiB of memory for its
/// records.
const PERCENT: u64 = 95;
const PERCENT_WITH_NOTES: u64 = 75;
const RUN: Duration = Duration::from_secs(20);
/// Limit for one access, in seconds.
const BOUND: u64 = 30;

/// -1000: never killed by the OOM killer; 1000: killed first.
fn choose_for_death(score: &str) -> Outcome {
    guest::write("/proc/self/oom_score_adj", score).context("oom_score_adj")
}

/// Locks all memory but LEFT.
fn hog() -> Outcome<Child> {
    let size = guest::memory("MemAvailable")?.saturating_sub(LEFT) as usize;
    let mut child = spawn(None, move |link| {
        choose_for_death("-1000")?;
        mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE).context("mlockall")?;
        let mut memory = Memory::new(size / PAGE * PAGE)?;
        memory.bytes_mut().fill(1);
        link.point()
    })?;
    child.reach()?;
    Ok(child)
}

/// A worker's memory: parts of STEP bytes, with a key for each page.
struct Worker {
    parts: Vec<Memory>,
    keys: Vec<Vec<u64>>,
    random: Random,
}

impl Worker {
    fn grow(&mut self) -> Outcome {
        let mut part = Memory::new(STEP)?;
        part.huge_pages(false)?;
        part.fill(0..STEP / PAGE, 1);
        self.parts.push(part);
        self.keys.push(vec![1; STEP / PAGE]);
        Ok(())
    }

    /// Reads, verifies and writes a page; returns the time it took.
    fn access(&mut self, key: u64) -> Outcome<Duration> {
        let (part, page) = (self.random.below(self.parts.len()), self.random.below(STEP / PAGE));
        let begin = Instant::now();
        self.parts[part].verify(page..page + 1, self.keys[part][page])?;
        self.parts[part].fill(page..page + 1, key);
        let took = begin.elapsed();
        self.keys[part][page] = key;
        Ok(took)
    }

    fn verify(&self) -> Outcome {
        for (part, keys) in self.parts.iter().zip(&self.keys) {
            for (page, key) in keys.iter().enumerate() {
                part.verify(page..page + 1, *key)?;
            }
        }
        Ok(())
    }
}

/// Grows at each point while `growing` is set. Then accesses pages until the parent says to
/// stop, and reports the number of accesses and the longest one in microseconds.
fn work(link: &mut Link, growing: &Memory, seed: u64) -> Outcome {
    choose_for_death("-900")?;
    mlockall(MlockAllFlags::MCL_CURRENT).context("mlockall")?;
    let mut worker = Worker { parts: Vec::new(), keys: Vec::new(), random: Random::new(seed) };
    loop {
        worker.grow()?;
        link.point()?;
        if growing.page(0)[0] == 0 {
            break;
        }
    }
    let (mut accesses, mut longest) = (0, Duration::ZERO);
    while !link.is_told() {
        longest = longest.max(worker.access(accesses + 2)?);
        accesses += 1;
    }
    worker.verify()?;
    link.report(&[accesses, longest.as_micros() as u64])
}

/// Allocates memory until the kernel kills it.
fn glutton() -> Outcome<Child> {
    spawn(None, |_| {
        choose_for_death("1000")?;
        let mut parts = Vec::new();
        loop {
            let mut part = Memory::new(STEP)?;
            part.bytes_mut().fill(2);
            parts.push(part);
        }
    })
}

fn whole_machine(log: &mut Log) -> Outcome {
    for words in ["Out of memory", "oom-kill", "Call Trace"] {
        log.allow(words);
    }
    // Of drivers that can do without the memory, and of the process that is killed.
    for mode in ["0x820(GFP_ATOMIC)", "0x140dca(GFP_HIGHUSER_MOVABLE"] {
        log.allow(&format!("page allocation failure: order:0, mode:{mode}"));
    }
    let device = Device::on(&guest::device(MEDIUM)?, &[])?;
    let _short = guest::Setting::set("/proc/sys/vm/min_free_kbytes", "1024")?;
    // The suite itself must survive.
    let _stays = guest::Setting::set("/proc/self/oom_score_adj", "-1000")?;
    let _eager = guest::Setting::set("/proc/sys/vm/swappiness", "200")?;
    let slots = device.counter("size_bytes")? / PAGE as u64;
    let mut growing = Memory::shared(PAGE)?;
    growing.bytes_mut().fill(1);
    let hog = hog()?;
    let start = |seed| spawn(None, |link| work(link, &growing, seed));
    let mut workers = (0..WORKERS).map(start).collect::<Outcome<Vec<Child>>>()?;
    let used = || Ok::<u64, String>(device.counter("slots_used")? * 100 / slots);
    let percent = if guest::exists(KMEMLEAK) { PERCENT_WITH_NOTES } else { PERCENT };
    loop {
        workers.iter_mut().try_for_each(Child::reach)?;
        if used()? >= percent {
            break;
        }
        workers.iter_mut().try_for_each(Child::go_on)?;
    }
    growing.bytes_mut().fill(0);
    workers.iter_mut().try_for_each(Child::go_on)?;
    print!("{} % full ... ", used()?);
    glutton()?.dies_of(Signal::SIGKILL)?;
    sleep(RUN);
    print!("then {} % ... ", used()?);
    workers.iter_mut().try_for_each(Child::go_on)?;
    let (mut accesses, mut longest) = (0, 0);
    for mut worker in workers {
        let [n, us] = worker.numbers()?;
        worker.join()?;
        ensure!(n > 100, "a worker has had {n} pages");
        accesses += n;
        longest = longest.max(us);
    }
    print!("{accesses} accesses, the longest {} ms, WAF {:.2} ... ", longest / 1000, waf(&device)?);
    ensure!(device.counter("gc_blocks")? > 0, "GC had nothing to do");
    let bound = BOUND * u64::from(guest::slowness()) * 1_000_000;
    ensure!(longest < bound, "an access took {longest} us");
    hog.kill()?;
    device.finish_sound()
}

fn waf(device: &Device) -> Outcome<f64> {
    let host = device.counter("host_blocks")? as f64;
    Ok(1.0 + device.counter("gc_blocks")? as f64 / host)
}
