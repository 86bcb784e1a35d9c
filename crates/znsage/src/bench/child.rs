// SPDX-License-Identifier: GPL-2.0-only
//! The parent's end of the worker process.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use super::protocol::{Event, Order, Setup};
use crate::error::{Error, Kind, Result};

/// With less free swap space than this, swap counts as full: CPUs cache some slots.
const SOME_LEFT: u64 = 4 << 20;

/// The worker process; killed when dropped.
pub struct Worker {
    child: Child,
    orders: ChildStdin,
    events: Receiver<Event>,
}

impl Worker {
    pub fn start(setup: &Setup) -> Result<Worker> {
        let failed = |e: &dyn std::fmt::Display| {
            Error::new(Kind::Kernel, format!("cannot start the worker: {e}"))
        };
        let program = std::env::current_exe().map_err(|e| failed(&e))?;
        let mut child = Command::new(program)
            .arg("bench-worker")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| failed(&e))?;
        let orders = child.stdin.take().ok_or_else(|| failed(&"no input"))?;
        let output = child.stdout.take().ok_or_else(|| failed(&"no output"))?;
        let mut worker = Worker { child, orders, events: listen(output) };
        worker.line(&serde_json::to_string(setup).expect("plain data"));
        Ok(worker)
    }

    pub fn order(&mut self, order: &Order) {
        self.line(&serde_json::to_string(order).expect("plain data"));
    }

    fn line(&mut self, text: &str) {
        // `event` reports a worker that died, with the reason.
        let _ = self.orders.write_all(format!("{text}\n").as_bytes());
    }

    /// The next event, or None after `timeout`. An error has the exit status.
    pub fn event(&mut self, timeout: Duration) -> std::result::Result<Option<Event>, ExitStatus> {
        match self.events.recv_timeout(timeout) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(self.child.wait().unwrap_or(ExitStatus::from_raw(0)))
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(output: ChildStdout) -> Receiver<Event> {
    let (sender, events) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(io::Result::ok) {
            let Ok(event) = serde_json::from_str(&line) else {
                break;
            };
            if sender.send(event).is_err() {
                break;
            }
        }
    });
    events
}

/// Why a worker ended early. `swap_left` is the lowest free swap space observed.
pub fn why_ended(status: ExitStatus, oom_kills: u64, swap_left: Option<u64>) -> Error {
    match status.signal() {
        Some(libc::SIGKILL) if oom_kills > 0 && swap_left.is_some_and(|left| left > SOME_LEFT) => {
            Error::new(
                Kind::Space,
                "the kernel killed the worker: it found no memory to reclaim within --memory-limit",
            )
            .hint("swap space was free, but swapped-out pages were still in flight:\nchoose a larger --memory-limit, or fewer --threads")
        }
        Some(libc::SIGKILL) if oom_kills > 0 => Error::new(
            Kind::Space,
            "the kernel killed the worker: no memory, and no swap space left",
        )
        .hint(
            "choose a smaller --size, or add swap; on a nearly full device also turn off\n\
             swap readahead, whose copies hold both memory and swap: sysctl vm.page-cluster=0",
        ),
        Some(libc::SIGBUS) => Error::new(
            Kind::Failure,
            "a swapped-out page could not be read back (the worker got SIGBUS)",
        )
        .hint("see `dmesg` and the read errors in `znsage status`"),
        Some(libc::SIGKILL) => Error::new(Kind::Kernel, "the worker was killed")
            .hint("`dmesg` shows whether the kernel killed it because memory ran out"),
        Some(n) => Error::new(Kind::Kernel, format!("signal {n} killed the worker")),
        None => Error::new(Kind::Kernel, format!("the worker ended early ({status})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn obituaries_name_the_cause() {
        let by = |signal| ExitStatus::from_raw(signal);
        assert_eq!(why_ended(by(libc::SIGKILL), 1, None).kind, Kind::Space);
        let full = why_ended(by(libc::SIGKILL), 1, Some(1 << 20)).message;
        let slow = why_ended(by(libc::SIGKILL), 1, Some(1 << 30)).message;
        assert!(full.contains("no swap space left") && slow.contains("--memory-limit"));
        assert_eq!(why_ended(by(libc::SIGKILL), 0, None).kind, Kind::Kernel);
        assert_eq!(why_ended(by(libc::SIGBUS), 0, None).kind, Kind::Failure);
    }
}
