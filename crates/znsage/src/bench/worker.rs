// SPDX-License-Identifier: GPL-2.0-only
//! The process with limited memory. Runs one phase for each order of the parent, and
//! ends at the end of its standard input.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::arena::{self, Arena};
use super::phase::{self, Running, Share};
use super::protocol::{Event, Order, Outcome, Setup};
use crate::cli::Pattern;

/// How often the parent gets progress.
const TICK: Duration = Duration::from_millis(100);

struct Worker {
    setup: Setup,
    orders: Receiver<Order>,
    arena: Arena,
    /// Generation of each page; 0 before it is filled.
    generations: Vec<u8>,
    /// Pages filled so far.
    pages: usize,
    /// Number of phases so far; seeds the accesses of each.
    phases: u64,
}

pub fn main() -> ExitCode {
    // The worker must not outlive a killed parent.
    let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL);
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = say(&Event::Failed { message });
            ExitCode::FAILURE
        }
    }
}

fn say(event: &Event) -> Result<(), String> {
    let mut line = serde_json::to_string(event).map_err(|e| e.to_string())?;
    line.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|e| format!("the parent is gone: {e}"))
}

fn serve() -> Result<(), String> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(|e| format!("no setup: {e}"))?;
    let setup: Setup = serde_json::from_str(&line).map_err(|e| format!("bad setup: {e}"))?;
    if let Some(procs) = &setup.cgroup_procs {
        std::fs::write(procs, "0").map_err(|e| format!("cannot enter {procs}: {e}"))?;
    }
    let mut worker = Worker::new(setup)?;
    say(&Event::Ready)?;
    while let Ok(order) = worker.orders.recv() {
        if let Some(outcome) = worker.handle(order)? {
            say(&Event::Done(outcome))?;
        }
    }
    Ok(())
}

/// Reads orders in a thread, so that `Stop` arrives during a phase.
fn listen() -> Receiver<Order> {
    let (sender, orders) = mpsc::channel();
    std::thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            let Ok(order) = serde_json::from_str(&line) else {
                break;
            };
            if sender.send(order).is_err() {
                break;
            }
        }
    });
    orders
}

impl Worker {
    fn new(setup: Setup) -> Result<Worker, String> {
        let generations = vec![0; setup.max_pages as usize];
        let orders = listen();
        // Lock memory before mapping the arena, which must not be locked.
        arena::lock_present_memory();
        let bytes = (setup.max_pages * setup.page_bytes) as usize;
        let arena = Arena::map(bytes, setup.huge_pages)
            .map_err(|e| format!("cannot map {bytes} bytes of memory: {e}"))?;
        Ok(Worker { setup, orders, arena, generations, pages: 0, phases: 0 })
    }

    fn page_words(&self) -> usize {
        self.setup.page_bytes as usize / size_of::<u64>()
    }

    fn handle(&mut self, order: Order) -> Result<Option<Outcome>, String> {
        self.phases += 1;
        let outcome = match order {
            Order::Resize { pages } if pages as usize >= self.pages => {
                let old = std::mem::replace(&mut self.pages, pages as usize);
                self.run(old, None, &|share, running| phase::fill(share, running))?
            }
            Order::Resize { pages } => self.trim(pages as usize)?,
            Order::Verify => self.run(0, None, &|share, running| phase::verify(share, running))?,
            Order::Access { pattern, write_ratio, seconds } => {
                let time = Duration::from_secs_f64(seconds);
                self.run(0, Some((pattern, write_ratio)), &|share, running| {
                    phase::access(share, running, time)
                })?
            }
            // Too late: the phase has ended.
            Order::Stop => return Ok(None),
        };
        Ok(Some(outcome))
    }

    fn trim(&mut self, pages: usize) -> Result<Outcome, String> {
        let words = self.page_words();
        self.arena
            .discard(pages * words..self.pages * words)
            .map_err(|e| format!("cannot free memory: {e}"))?;
        self.generations[pages..self.pages].fill(0);
        self.pages = pages;
        Ok(Outcome::default())
    }

    /// Runs a job on all threads, each with a share of the pages from `first` on, and
    /// reports progress.
    fn run(
        &mut self,
        first: usize,
        order: Option<(Pattern, f64)>,
        job: phase::Job,
    ) -> Result<Outcome, String> {
        let running = Running::new(self.setup.threads as usize);
        let mut shares = Share::split(
            &mut self.arena[first * self.setup.page_bytes as usize / 8..],
            &mut self.generations[first..self.pages],
            first,
            &self.setup,
            self.phases,
        );
        if let Some((pattern, write_ratio)) = order {
            shares.iter_mut().for_each(|share| share.choose(pattern, write_ratio));
        }
        let start = Instant::now();
        let orders = &self.orders;
        std::thread::scope(|scope| {
            let threads: Vec<_> = shares
                .into_iter()
                .map(|share| {
                    let running = &running;
                    scope.spawn(move || job(share, running))
                })
                .collect();
            while !threads.iter().all(|t| t.is_finished()) {
                match orders.recv_timeout(TICK) {
                    Err(RecvTimeoutError::Timeout) => {}
                    // A `Stop`, or the parent is gone.
                    _ => running.stop(),
                }
                for what in running.take_findings() {
                    say(&Event::Corrupt { what })?;
                }
                say(&Event::Tick { ops: running.ops() })?;
            }
            let mut total = phase::Tally::default();
            for thread in threads {
                let tally = thread.join().map_err(|_| "a thread of the worker panicked")?;
                total.add(tally);
            }
            for what in running.take_findings() {
                say(&Event::Corrupt { what })?;
            }
            Ok(total.outcome(start))
        })
    }
}
