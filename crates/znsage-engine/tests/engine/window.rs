// SPDX-License-Identifier: GPL-2.0-only
//! The number of chunks in flight on devices of different speeds.

use std::collections::VecDeque;

use znsage_engine::{Append, Engine};

use crate::refusals::plain;

const MS: u64 = 1_000_000;
const CHUNKS: u32 = 64;

/// A host that always has pages to write, and a device that takes one chunk at a time.
struct Writer {
    e: Engine,
    now: u64,
    slot: u32,
    in_flight: VecDeque<Append>,
    written: Vec<u32>,
}

impl Writer {
    fn new() -> Self {
        let mut cfg = plain();
        cfg.nr_chunks = CHUNKS;
        let written = vec![0; cfg.nr_zones as usize];
        let e = Engine::new(&cfg).expect("this is valid");
        Writer { e, now: MS, slot: 0, in_flight: VecDeque::new(), written }
    }

    fn fill(&mut self) {
        // Always the same few slots: zones die, and GC has nothing to do.
        while let Some(added) = self.e.add(0, self.slot, self.now) {
            self.slot = (self.slot + 1) % 8;
            if let Some(chunk) = added.full {
                let append = self.e.append_start(chunk, self.now);
                self.in_flight.extend(append);
                self.work();
            }
        }
        self.work();
    }

    fn work(&mut self) {
        use znsage_engine::Op;
        while let Some(op) = self.e.next_op() {
            match op {
                Op::Append(append) => self.in_flight.push_back(append),
                Op::Reset(reset) => {
                    self.written[reset.zone() as usize] = 0;
                    self.e.reset_done(reset, true);
                }
                Op::Finish(finish) => {
                    self.e.finish_done(finish, true);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// The device ends `n` chunks at intervals of `each` nanoseconds.
    fn end(&mut self, n: u32, each: u64) {
        for _ in 0..n {
            self.fill();
            let append = self.in_flight.pop_front().expect("a chunk is always in flight");
            self.now += each;
            let (zone, blocks) = (append.zone as usize, append.nr + append.padding);
            let at = self.written[zone];
            self.written[zone] += blocks;
            let end = self.e.append_done(append, Some(at));
            self.e.chunk_put(end.ended.expect("all of it was appended"), self.now);
        }
        self.fill();
    }

    fn window(&self) -> u64 {
        self.e.stats().write_window
    }
}

#[test]
fn a_fast_device_gets_all_chunks() {
    let mut w = Writer::new();
    w.end(1000, MS / 10);
    assert_eq!(w.window(), u64::from(CHUNKS));
}

#[test]
fn a_slow_device_gets_few_chunks_but_never_none() {
    let mut w = Writer::new();
    w.end(200, 40 * MS);
    let least = w.e.stats().streams + 4;
    assert_eq!(w.window(), least);
    assert!(w.in_flight.len() >= 4, "{} in flight", w.in_flight.len());
}

#[test]
fn chunks_in_flight_take_about_25_ms() {
    let mut w = Writer::new();
    w.end(1000, MS);
    let takes = w.in_flight.len() as u64;
    assert!((12..=28).contains(&takes), "{takes} chunks of 1 ms");
}

#[test]
fn a_device_that_recovers_gets_all_chunks_again() {
    let mut w = Writer::new();
    w.end(200, 40 * MS);
    w.end(3000, MS / 10);
    assert_eq!(w.window(), u64::from(CHUNKS));
}

#[test]
fn one_slow_moment_shrinks_the_window_once() {
    let mut w = Writer::new();
    w.end(1000, MS / 10);
    w.end(1, 40 * MS);
    // All chunks in flight took that long; only the first one counts.
    w.end(w.in_flight.len() as u32, MS / 1000);
    assert!(w.window() >= u64::from(CHUNKS) * 3 / 4, "{}", w.window());
}
