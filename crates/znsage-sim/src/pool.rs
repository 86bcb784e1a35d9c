// SPDX-License-Identifier: GPL-2.0-only
//! Work on many threads, with results delivered one by one.
//!
//! Plain threads that take the next item. Items are long, few and independent,
//! so work stealing would not help, and plain threads can be abandoned when
//! the user interrupts.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Polling interval of `stop`.
const LOOK: Duration = Duration::from_millis(50);

/// Result of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All items are done.
    Done,
    /// It was stopped; running items are abandoned, and their threads end with the
    /// process.
    Stopped,
}

/// Default number of threads: one per processor.
pub fn default_jobs() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Runs `work` on each item, in order, on `jobs` threads. Passes each finished
/// item and its result to `done`; None if it panicked. Polls `stop`.
///
/// # Errors If `done` fails; no further item begins then.
pub fn each<T, R, E>(
    jobs: usize,
    items: Vec<T>,
    work: impl Fn(&T) -> R + Send + Sync + 'static,
    mut stop: impl FnMut() -> bool,
    mut done: impl FnMut(T, Option<R>) -> Result<(), E>,
) -> Result<End, E>
where
    T: Send + 'static,
    R: Send + 'static,
{
    let mut left = items.len();
    let threads = jobs.clamp(1, left.max(1));
    let items = Arc::new(Mutex::new(items.into_iter()));
    let work = Arc::new(work);
    let (send, receive) = mpsc::channel();
    for _ in 0..threads {
        let (items, work, send) = (items.clone(), work.clone(), send.clone());
        thread::spawn(move || loop {
            let next = items.lock().expect("nobody panics with it").next();
            let Some(item) = next else { return };
            let result = catch_unwind(AssertUnwindSafe(|| work(&item))).ok();
            if send.send((item, result)).is_err() {
                return;
            }
        });
    }
    // Drops the remaining items, so that no thread begins another.
    let abandon = || items.lock().expect("nobody panics with it").by_ref().for_each(drop);
    while left > 0 {
        if stop() {
            abandon();
            return Ok(End::Stopped);
        }
        match receive.recv_timeout(LOOK) {
            Ok((item, result)) => {
                left -= 1;
                if let Err(e) = done(item, result) {
                    abandon();
                    return Err(e);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => unreachable!("this function holds a sender"),
        }
    }
    Ok(End::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn squares(jobs: usize) -> Vec<u64> {
        let mut all = vec![0; 100];
        let end = each(
            jobs,
            (0..100u64).collect(),
            |i| i * i,
            || false,
            |i, square| {
                all[i as usize] = square.unwrap();
                Ok::<_, Infallible>(())
            },
        );
        assert_eq!(end, Ok(End::Done));
        all
    }

    #[test]
    fn every_item_is_done_once() {
        let want: Vec<u64> = (0..100).map(|i| i * i).collect();
        assert_eq!(squares(1), want);
        assert_eq!(squares(7), want);
    }

    #[test]
    fn panic_affects_only_its_item() {
        let mut bad = Vec::new();
        let work = |i: &u32| assert_ne!(*i, 3, "a panic that belongs to the test");
        let end = each(
            2,
            (0..6).collect(),
            work,
            || false,
            |i, result| {
                bad.extend(result.is_none().then_some(i));
                Ok::<_, Infallible>(())
            },
        );
        assert_eq!((end, bad), (Ok(End::Done), vec![3]));
    }

    #[test]
    fn stops_on_request_and_on_error() {
        let mut seen = 0;
        let asked = std::cell::Cell::new(0);
        let stop = || asked.replace(asked.get() + 1) >= 5;
        let end = each(
            1,
            (0..1000).collect(),
            |_: &u32| (),
            stop,
            |_, _| {
                seen += 1;
                Ok::<_, Infallible>(())
            },
        );
        assert_eq!(end, Ok(End::Stopped));
        assert!(seen < 10);
        let end = each(2, vec![1, 2, 3], |_| (), || false, |i, _| Err(i));
        assert!(end.is_err());
    }

    #[test]
    fn nothing_to_do_is_done() {
        let end = each(4, vec![], |_: &u32| (), || false, |_, _| Ok::<_, Infallible>(()));
        assert_eq!(end, Ok(End::Done));
    }
}
