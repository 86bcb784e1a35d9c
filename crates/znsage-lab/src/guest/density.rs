// SPDX-License-Identifier: GPL-2.0-only
//! Idle processes in cgroups, woken at random. Half of a process is zero; it touches a
//! tenth of its memory when it wakes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::ssd::{on, Drive};
use super::workloads::group::Group;
use crate::density::Step;
use crate::files::{read, write_json};
use crate::model::PAGE;
use crate::result::{Context, Result};
use crate::ssd::{Flash, OnDrive};

/// A tenth of 200 MiB.
const PAGES: u64 = 5120;
/// Pages that are touched at a time: a program's data lies together.
const TOGETHER: u64 = 16;
/// The memory limit of all processes together.
const MEMORY: u64 = 64 << 20;
/// Processes that are awake at a time.
const AWAKE: usize = 8;

/// How many times the drive is written over before the first step, and before each later one.
const OVERWRITES: (f64, f64) = (1.5, 0.4);
/// At the measurement's speed, but not yet measured.
const SETTLE: Duration = Duration::from_secs(12);
const MEASURE: Duration = Duration::from_secs(60);
/// A step begins after this time even if the drive was not written over.
const PATIENCE: Duration = Duration::from_secs(240);

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    drive: OnDrive,
    /// Numbers of processes, ascending
    #[arg(long)]
    processes: Vec<usize>,
}

pub fn run(out: &Path, args: &Args) -> Result<()> {
    let (node, drive) = Drive::of(&args.drive)?;
    let swap = on(&args.drive, &node)?;
    let group = Group::new("density")?;
    group.limit(MEMORY)?;
    let mut crowd = Crowd { group, members: Vec::new() };
    let mut steps: Vec<Step> = Vec::new();
    for &processes in &args.processes {
        let times = if steps.is_empty() { OVERWRITES.0 } else { OVERWRITES.1 };
        let blocks = (args.drive.drive as f64 * times) as u64 / PAGE;
        match step(&mut crowd, &drive, processes, blocks) {
            Ok(step) => {
                eprintln!("  {processes} processes, {:.0} % used: {step:?}", step.used * 100.0);
                steps.push(step);
                write_json(&out.join("runs.json"), &steps)?;
            }
            // The area is full, and the kernel has killed one.
            Err(_) if !steps.is_empty() && crowd.group.unharmed().is_err() => {
                eprintln!("  {processes} processes do not fit");
                break;
            }
            Err(message) => return Err(message),
        }
    }
    drop(crowd);
    swap.off()
}

fn step(crowd: &mut Crowd, drive: &Drive, processes: usize, blocks: u64) -> Result<Step> {
    drive.hurry(true)?;
    crowd.grow(processes)?;
    let (start, since) = (drive.look()?, Instant::now());
    while drive.look()?.written - start.written < blocks && since.elapsed() < PATIENCE {
        crowd.wake_for(Duration::from_secs(2))?;
    }
    drive.hurry(false)?;
    crowd.wake_for(SETTLE)?;
    measure(crowd, drive, processes)
}

fn measure(crowd: &Crowd, drive: &Drive, processes: usize) -> Result<Step> {
    let before: Flash = drive.look()?;
    let start = Instant::now();
    let mut latencies = crowd.wake_for(MEASURE)?;
    let seconds = start.elapsed().as_secs_f64();
    latencies.sort_by(f64::total_cmp);
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share).round() as usize];
    Ok(Step {
        processes,
        used: used()?,
        wakes: latencies.len(),
        wakes_per_s: latencies.len() as f64 / seconds,
        p50_s: at(0.5),
        p99_s: at(0.99),
        flash: drive.look()?.since(&before),
    })
}

/// The used share of the swap area, 0 to 1.
fn used() -> Result<f64> {
    let text = read(Path::new("/proc/swaps"))?;
    let line = text.lines().nth(1).ok_or("no swap area is on")?;
    let mut numbers = line.split_whitespace().filter_map(|word| word.parse::<f64>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(size), Some(used)) => Ok(used / size),
        _ => Err(format!("/proc/swaps has `{line}`")),
    }
}

/// The processes, each in a group of its own within one that limits them all.
struct Crowd {
    group: Group,
    members: Vec<Mutex<Member>>,
}

impl Crowd {
    fn grow(&mut self, processes: usize) -> Result<()> {
        while self.members.len() < processes {
            let n = self.members.len();
            self.members.push(Mutex::new(Member::start(&self.group, n)?));
        }
        Ok(())
    }

    /// Wakes processes at random, some at a time, and returns how long each took, seconds.
    fn wake_for(&self, time: Duration) -> Result<Vec<f64>> {
        let end = Instant::now() + time;
        let all: Result<Vec<Vec<f64>>> = std::thread::scope(|scope| {
            let wakers: Vec<_> =
                (0..AWAKE).map(|n| scope.spawn(move || self.wake_until(end, n as u64))).collect();
            wakers.into_iter().map(|w| w.join().map_err(|_| "a waker died")?).collect()
        });
        let all = all?.concat();
        self.group.unharmed()?;
        match all.is_empty() {
            true => Err("no process woke up in time".to_string()),
            false => Ok(all),
        }
    }

    fn wake_until(&self, end: Instant, waker: u64) -> Result<Vec<f64>> {
        let mut random = Pcg64Mcg::seed_from_u64(waker);
        let mut latencies = Vec::new();
        while Instant::now() < end {
            let member = &self.members[random.random_range(0..self.members.len())];
            // Those that are awake are not woken.
            if let Ok(mut member) = member.try_lock() {
                latencies.push(member.wake()?);
            }
        }
        Ok(latencies)
    }
}

struct Member {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    _group: Group,
}

impl Member {
    fn start(crowd: &Group, number: usize) -> Result<Member> {
        let group = crowd.child(&number.to_string())?;
        let program = std::env::current_exe().context("where am I")?;
        let mut command = group.command(&program.to_string_lossy());
        command.args(["guest", "idle", "--seed", &(number + 1).to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start a process")?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (to, from) = pipes.ok_or("a process has no pipes")?;
        let mut member = Member { child, to, from: BufReader::new(from), _group: group };
        member.answer()?;
        Ok(member)
    }

    fn wake(&mut self) -> Result<f64> {
        let start = Instant::now();
        self.to.write_all(b"wake\n").context("a process died")?;
        self.answer()?;
        Ok(start.elapsed().as_secs_f64())
    }

    fn answer(&mut self) -> Result<()> {
        let mut line = String::new();
        self.from.read_line(&mut line).context("a process died")?;
        match line.trim() {
            "ok" => Ok(()),
            other => Err(format!("a process says `{other}`")),
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The process itself: touches memory for each line that it gets.
pub fn idle(seed: u64) -> Result<()> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut memory = vec![0u64; (PAGES * PAGE / 8) as usize];
    let pages: &mut [u64] = &mut memory;
    for page in 0..PAGES {
        // The other half is zero, but has been written, too.
        let value = if has_data(page) { seed ^ page << 32 } else { 0 };
        pages[word(page)] = std::hint::black_box(value);
    }
    println!("ok");
    for line in std::io::stdin().lines() {
        line.context("standard input")?;
        for _ in 0..PAGES / 10 / TOGETHER {
            let first = random.random_range(0..PAGES / TOGETHER) * TOGETHER;
            for page in first..first + TOGETHER {
                touch(pages, seed, page);
            }
        }
        println!("ok");
    }
    Ok(())
}

/// Verifies a page; every second page with data is written.
fn touch(pages: &mut [u64], seed: u64, page: u64) {
    let want = if has_data(page) { seed ^ page << 32 } else { 0 };
    let at = word(page);
    if std::hint::black_box(pages[at]) != want {
        println!("page {page} is {:#x} instead of {want:#x}", pages[at]);
        std::process::exit(1);
    }
    if has_data(page) && page.is_multiple_of(4) {
        pages[at + 1] += 1;
    }
}

fn has_data(page: u64) -> bool {
    page.is_multiple_of(2)
}

fn word(page: u64) -> usize {
    (page * PAGE / 8) as usize
}
