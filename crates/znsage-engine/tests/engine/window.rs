// SPDX-License-Identifier: GPL-2.0-only
//! The blocks in flight on devices of different rates and latencies.

use std::collections::VecDeque;

use znsage_engine::{Append, Engine, Op};

use crate::refusals::plain;

const US: u64 = 1000;
const MS: u64 = 1000 * US;
const CHUNKS: u32 = 64;
const CHUNK: u64 = 16;

/// A device that transfers one append after the other and answers after its latency.
#[derive(Clone, Copy)]
struct Speed {
    block: u64,
    latency: u64,
}

impl Speed {
    /// Blocks in flight that keep it busy.
    fn busy(self) -> u64 {
        (self.latency + CHUNK * self.block) / self.block
    }
}

/// A host that always has pages to write.
struct Writer {
    e: Engine,
    now: u64,
    slot: u32,
    speed: Speed,
    /// When the device has transferred all that it was sent.
    transferred: u64,
    in_flight: VecDeque<(u64, Append)>,
    written: Vec<u32>,
    blocks: u64,
}

impl Writer {
    fn new(speed: Speed) -> Self {
        Writer::with_appends(speed, CHUNK as u32)
    }

    /// Chunks may grow to appends of `longest` blocks.
    fn with_appends(speed: Speed, longest: u32) -> Self {
        let mut cfg = plain();
        (cfg.nr_chunks, cfg.chunk_pages, cfg.batch_pages) = (CHUNKS, longest, CHUNK as u32);
        (cfg.nr_zones, cfg.zone_blocks) = (40, 256);
        let written = vec![0; cfg.nr_zones as usize];
        let e = Engine::new(&cfg).expect("this is valid");
        let in_flight = VecDeque::new();
        Writer { e, now: MS, slot: 0, speed, transferred: 0, in_flight, written, blocks: 0 }
    }

    fn send(&mut self, append: Append) {
        let blocks = u64::from(append.nr + append.padding);
        self.transferred = self.transferred.max(self.now) + blocks * self.speed.block;
        self.in_flight.push_back((self.transferred + self.speed.latency, append));
    }

    fn fill(&mut self) {
        // Always the same few slots: zones die, and GC has nothing to do.
        while let Some(added) = self.e.add(0, self.slot, self.now) {
            self.slot = (self.slot + 1) % 8;
            if let Some(chunk) = added.full {
                if let Some(append) = self.e.append_start(chunk, self.now) {
                    self.send(append);
                }
                self.work();
            }
        }
        self.work();
    }

    fn work(&mut self) {
        while let Some(op) = self.e.next_op(self.now) {
            match op {
                Op::Append(append) => self.send(append),
                Op::Zone(op) => {
                    if op.resets() {
                        self.written[op.zone() as usize] = 0;
                    }
                    self.e.zone_done(op, true);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// The device ends `n` appends.
    fn end(&mut self, n: u32) {
        for _ in 0..n {
            self.fill();
            let (done, append) = self.in_flight.pop_front().expect("something is in flight");
            self.now = self.now.max(done);
            let (zone, blocks) = (append.zone as usize, append.nr + append.padding);
            let at = self.written[zone];
            self.written[zone] += blocks;
            self.blocks += u64::from(blocks);
            let end = self.e.append_done(append, Some(at), self.now);
            if let Some(ended) = end.ended {
                self.e.chunk_put(ended);
            }
        }
        self.fill();
    }

    /// Of the time that `n` appends take, the share in which the device transfers.
    fn busy(&mut self, n: u32) -> f64 {
        let (since, before) = (self.now, self.blocks);
        self.end(n);
        ((self.blocks - before) * self.speed.block) as f64 / (self.now - since) as f64
    }

    fn window(&self) -> u64 {
        self.e.stats().write_window
    }
}

/// The window over some cycles, at its most.
fn widest(w: &mut Writer) -> u64 {
    (0..2000)
        .map(|_| {
            w.end(1);
            w.window()
        })
        .max()
        .unwrap_or(0)
}

#[test]
fn a_device_with_latency_is_kept_busy() {
    // 500 MB/s, 2 ms.
    let mut w = Writer::new(Speed { block: 8 * US, latency: 2 * MS });
    w.end(500);
    let busy = w.busy(2000);
    assert!(busy > 0.9, "busy {busy} of the time");
    let (widest, enough) = (widest(&mut w), w.speed.busy());
    assert!(widest > enough && widest < 3 * enough, "{widest}, {enough} are enough");
}

#[test]
fn a_quick_device_has_a_short_queue() {
    // 2 GB/s, 80 us.
    let mut w = Writer::new(Speed { block: 2 * US, latency: 80 * US });
    w.end(500);
    let busy = w.busy(2000);
    assert!(busy > 0.9, "busy {busy} of the time");
    let widest = widest(&mut w);
    assert!(widest <= 3 * w.speed.busy(), "{widest} in flight");
}

#[test]
fn a_slow_device_gets_few_chunks_but_never_none() {
    // 10 MB/s: an append takes 6.4 ms, its queue all the time that there is.
    let mut w = Writer::new(Speed { block: 400 * US, latency: 0 });
    w.end(500);
    assert!(w.busy(500) > 0.99);
    let widest = widest(&mut w);
    assert!((4 * CHUNK..=10 * CHUNK).contains(&widest), "{widest} in flight");
}

#[test]
fn the_window_follows_a_device_that_changes() {
    let quick = Speed { block: 2 * US, latency: 80 * US };
    let far = Speed { block: 8 * US, latency: 2 * MS };
    let mut w = Writer::new(quick);
    w.end(500);
    w.speed = far;
    w.end(3000);
    let busy = w.busy(2000);
    assert!(busy > 0.9, "busy {busy} of the time");
    w.speed = quick;
    w.end(5000);
    let widest = widest(&mut w);
    assert!(widest <= 4 * quick.busy(), "{widest} in flight");
}

/// Blocks of the longest of `n` appends.
fn longest(w: &mut Writer, n: u32) -> u32 {
    (0..n).fold(0, |most, _| {
        w.end(1);
        most.max(w.in_flight.iter().map(|(_, a)| a.nr + a.padding).max().unwrap_or(0))
    })
}

#[test]
fn appends_grow_where_they_take_long() {
    let far = Speed { block: US, latency: 4 * MS };
    let mut w = Writer::with_appends(far, 4 * CHUNK as u32);
    assert_eq!(u64::from(longest(&mut w, 200)), 4 * CHUNK);
}

#[test]
fn appends_that_grow_put_no_more_in_flight() {
    let near = Speed { block: US, latency: 10 * US };
    let mut w = Writer::with_appends(near, 4 * CHUNK as u32);
    for _ in 0..2000 {
        w.end(1);
        let blocks: u32 = w.in_flight.iter().map(|(_, a)| a.nr + a.padding).sum();
        assert!(u64::from(blocks) <= 10 * CHUNK, "{blocks} in flight");
    }
    let widest = widest(&mut w);
    assert!(widest <= 10 * CHUNK, "{widest} in flight");
}
