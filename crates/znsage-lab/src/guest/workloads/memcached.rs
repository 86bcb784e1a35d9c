// SPDX-License-Identifier: GPL-2.0-only
//! memcached, whose clients are YCSB's on the host: workloads B and A.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::group::{Group, Server};
use super::load::{Load, Meter, Outcome, Part};
use crate::result::{Context, Result};
use crate::workloads::model::{Metric, Setting, Sizes};
use crate::workloads::ycsb::{ask, Action, Figures, Order, Percentiles, GUEST_PORT};

/// Some 100 MiB: an item takes a chunk of 1.4 KiB for ten fields, their names and its
/// header.
const RECORDS: u64 = 70_000;

/// The warm-up, which swaps in the pages that are used most, and the measurement.
const WARMUP: u32 = 4;
const SECONDS: u32 = 15;

const MIXES: [(&str, &str, f64); 2] = [
    ("memcached-b", "memcached, YCSB B (95/5)", 0.95),
    ("memcached-a", "memcached, YCSB A (50/50)", 0.5),
];

pub struct Memcached {
    raw: PathBuf,
    orders: u32,
    sizes: Sizes,
    _server: Server,
    group: Group,
}

impl Memcached {
    pub fn start(raw: &Path) -> Result<Memcached> {
        let group = Group::new("memcached")?;
        // Only the group limits its memory.
        let port = GUEST_PORT.to_string();
        let mut command = group.command("memcached");
        command
            .args(["-u", "root", "-l", "0.0.0.0", "-U", "0", "-t", "1", "-m", "800", "-p", &port]);
        let server = Server::start(&mut command, "memcached")?;
        let mut memcached = Memcached {
            raw: raw.to_path_buf(),
            orders: 0,
            sizes: Sizes::default(),
            _server: server,
            group,
        };
        memcached.wait()?;
        eprintln!("  YCSB inserts {RECORDS} records");
        let loaded = memcached.ask(Action::Load)?;
        eprintln!("  it took {:.0} s", loaded.seconds);
        let memory_bytes = memcached.group.resident()?;
        memcached.sizes = Sizes { memory_bytes, limit_bytes: memory_bytes / 2 };
        Ok(memcached)
    }

    fn wait(&self) -> Result<()> {
        for _ in 0..100 {
            if TcpStream::connect(("127.0.0.1", GUEST_PORT)).is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(format!("memcached does not listen at port {GUEST_PORT}"))
    }

    fn ask(&mut self, action: Action) -> Result<Figures> {
        self.orders += 1;
        ask(&self.raw, self.orders, &Order { records: RECORDS, action })
    }

    fn mix(&mut self, reads: f64) -> Result<Outcome> {
        self.ask(Action::Run { seconds: WARMUP, reads })?;
        let meter = Meter::start()?;
        let found = self.ask(Action::Run { seconds: SECONDS, reads })?;
        self.sound()?;
        let verified = format!("{} reads verified, none missed", found.verified);
        let Percentiles { p50, p95, p99 } = found.read_us.ok_or("YCSB tells no latency")?;
        let values = [("requests", found.requests_per_s), ("p50", p50), ("p95", p95), ("p99", p99)];
        meter.stop(values, verified)
    }

    /// Checks that all records are there and none was evicted.
    fn sound(&self) -> Result<()> {
        self.group.unharmed()?;
        let stats = self.stats()?;
        for (name, want) in [("evictions", 0), ("curr_items", RECORDS), ("get_misses", 0)] {
            match stat(&stats, name) {
                Some(n) if n == want => (),
                Some(n) => return Err(format!("memcached: {name} is {n}, not {want}")),
                None => return Err(format!("memcached does not tell its {name}")),
            }
        }
        Ok(())
    }

    fn stats(&self) -> Result<String> {
        let what = "memcached's stats";
        let mut server = TcpStream::connect(("127.0.0.1", GUEST_PORT)).context(what)?;
        server.write_all(b"stats\r\n").context(what)?;
        let mut text = String::new();
        for line in BufReader::new(server).lines() {
            let line = line.context(what)?;
            if line.trim() == "END" {
                break;
            }
            text += &line;
            text.push('\n');
        }
        Ok(text)
    }
}

/// `STAT evictions 0`
fn stat(stats: &str, name: &str) -> Option<u64> {
    let mut lines = stats.lines().filter_map(|l| l.strip_prefix("STAT ")?.split_once(' '));
    lines.find(|(key, _)| *key == name)?.1.trim().parse().ok()
}

impl Load for Memcached {
    fn parts(&self) -> Vec<Part> {
        let metrics = || {
            vec![
                Metric::new("requests", "Requests", "requests/s"),
                Metric::new("p50", "Reads, median", "us"),
                Metric::new("p95", "Reads, 95 %", "us"),
                Metric::new("p99", "Reads, 99 %", "us"),
            ]
        };
        MIXES.map(|(name, title, _)| Part { name, title, metrics: metrics() }).into()
    }

    fn measure(&mut self, setting: Setting) -> Result<Vec<Outcome>> {
        if let Some(limit) = self.sizes.limit(setting) {
            self.group.limit(limit)?;
        }
        let outcomes = MIXES.map(|(_, _, reads)| self.mix(reads));
        // Its memory must fit again before swap is turned off.
        self.group.release()?;
        outcomes.into_iter().collect()
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stats_are_parsed() {
        let stats = "STAT curr_items 70000\r\nSTAT evictions 0\r\nSTAT version 1.6.18\r\n";
        assert_eq!(stat(stats, "curr_items"), Some(70_000));
        assert_eq!(stat(stats, "evictions"), Some(0));
        assert_eq!(stat(stats, "items"), None);
        assert_eq!(stat(stats, "version"), None);
    }
}
