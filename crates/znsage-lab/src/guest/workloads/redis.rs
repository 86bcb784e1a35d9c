// SPDX-License-Identifier: GPL-2.0-only
//! Redis, and a background save: the process that it forks reads every page, also those
//! in swap, while requests go on.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use znsage_sim::stats::percentile;

use super::group::{Disk, Group, Server, DISK};
use super::load::{Load, Meter, Outcome, Part};
use super::random::Random;
use super::resp::{command, field, Client, Reply};
use crate::files;
use crate::result::{Context, Result};
use crate::workloads::model::{Metric, Setting, Sizes};

const SOCKET: &str = "/run/workloads-redis";
const SNAPSHOT: &str = "dump.rdb";

/// 64 MiB. A value fills a page, because the save visits keys in the order of their
/// hashes, and would read a page once for each value on it.
const KEYS: usize = 16_000;
const VALUE: usize = 4000;

/// Keys that are set or verified at once.
const BATCH: usize = 100;

/// Before the save: the warm-up, and the measurement.
const SETTLE: Duration = Duration::from_secs(2);
const BEFORE: Duration = Duration::from_secs(6);

/// One request in this many sets its key.
const SET_EVERY: u64 = 10;

/// Between requests, to leave time of the one CPU to the save.
const PAUSE: Duration = Duration::from_millis(4);

pub struct Redis {
    client: Client,
    /// How often each key was set, modulo 256.
    versions: Vec<u8>,
    random: Random,
    sizes: Sizes,
    _server: Server,
    group: Group,
}

fn name(key: usize) -> String {
    format!("key:{key:08}")
}

/// The value of a key after this many sets; no two values are alike.
fn value(key: usize, version: u8) -> Vec<u8> {
    let mut random = Random(((key as u64 + 1) << 8) | u64::from(version));
    (0..VALUE / 8).flat_map(|_| random.next().to_le_bytes()).collect()
}

impl Redis {
    pub fn start() -> Result<Redis> {
        let group = Group::new("redis")?;
        // A fork asks for twice the memory, and uses little of it.
        files::write(Path::new("/proc/sys/vm/overcommit_memory"), "1")?;
        let options = [
            ["--port", "0"],
            ["--unixsocket", SOCKET],
            ["--dir", DISK],
            ["--dbfilename", SNAPSHOT],
            ["--save", ""],
            ["--appendonly", "no"],
            ["--rdbcompression", "no"],
        ];
        let mut command = group.command("redis-server");
        command.args(options.concat()).stdout(Stdio::null());
        let server = Server::start(&mut command, "redis-server")?;
        let client = connect()?;
        let mut redis = Redis {
            client,
            versions: vec![0; KEYS],
            random: Random(1),
            sizes: Sizes::default(),
            _server: server,
            group,
        };
        redis.fill()?;
        let memory_bytes = redis.group.resident()?;
        redis.sizes = Sizes { memory_bytes, limit_bytes: memory_bytes / 2 };
        Ok(redis)
    }

    fn fill(&mut self) -> Result<()> {
        eprintln!("  {KEYS} keys are set");
        for first in (0..KEYS).step_by(BATCH) {
            let keys = first..(first + BATCH).min(KEYS);
            let sets: Vec<Vec<u8>> = keys
                .clone()
                .map(|key| command(&[b"SET", name(key).as_bytes(), &value(key, 0)]))
                .collect();
            self.client.send(&sets.concat())?;
            for _ in keys {
                self.client.reply()?;
            }
        }
        Ok(())
    }

    /// Makes requests one after the other until `over`, verifies the replies, and returns
    /// latencies in microseconds.
    fn requests(&mut self, mut over: impl FnMut() -> Result<bool>) -> Result<Vec<f64>> {
        let mut latencies = Vec::new();
        while !over()? {
            let random = self.random.next();
            let key = (random >> 32) as usize % KEYS;
            let set = random.is_multiple_of(SET_EVERY);
            let name = name(key);
            if set {
                self.versions[key] = self.versions[key].wrapping_add(1);
            }
            let holds = value(key, self.versions[key]);
            let start = Instant::now();
            let reply = match set {
                true => self.client.ask(&[b"SET", name.as_bytes(), &holds])?,
                false => self.client.ask(&[b"GET", name.as_bytes()])?,
            };
            latencies.push(start.elapsed().as_secs_f64() * 1e6);
            std::thread::sleep(PAUSE);
            if !set && reply != Reply::Text(holds) {
                return Err(format!("{name} does not hold what it was set to"));
            }
        }
        Ok(latencies)
    }

    fn requests_for(&mut self, time: Duration) -> Result<Vec<f64>> {
        let end = Instant::now() + time;
        self.requests(|| Ok(Instant::now() >= end))
    }

    /// Saves; returns the latencies of requests meanwhile and the seconds it took.
    fn save(&mut self) -> Result<(Vec<f64>, f64)> {
        let mut watcher = connect()?;
        let start = Instant::now();
        let said = self.client.text(&["BGSAVE"])?;
        if !said.starts_with("Background saving started") {
            return Err(format!("Redis: {said}"));
        }
        let mut next = start;
        let latencies = self.requests(|| {
            if Instant::now() < next {
                return Ok(false);
            }
            next = Instant::now() + Duration::from_millis(50);
            let info = watcher.text(&["INFO", "persistence"])?;
            Ok(field(&info, "rdb_bgsave_in_progress") == Some("0"))
        })?;
        let took = start.elapsed().as_secs_f64();
        let info = watcher.text(&["INFO", "persistence"])?;
        match field(&info, "rdb_last_bgsave_status") {
            Some("ok") => Ok((latencies, took)),
            other => Err(format!("the save failed ({})", other.unwrap_or("no status"))),
        }
    }

    /// Checks the values of all keys, and the file.
    fn verify(&mut self) -> Result<String> {
        self.group.unharmed()?;
        for first in (0..KEYS).step_by(BATCH) {
            let keys: Vec<usize> = (first..(first + BATCH).min(KEYS)).collect();
            let names: Vec<String> = keys.iter().map(|&key| name(key)).collect();
            let mut words: Vec<&[u8]> = vec![b"MGET"];
            words.extend(names.iter().map(|name| name.as_bytes()));
            let held = self.client.ask(&words)?;
            let wanted = keys.iter().map(|&key| Reply::Text(value(key, self.versions[key])));
            if held != Reply::List(wanted.collect()) {
                return Err(format!("one of {BATCH} keys from {} on is not as set", names[0]));
            }
        }
        match self.client.ask(&[b"DBSIZE"])? {
            Reply::Number(n) if n == KEYS as i64 => (),
            other => return Err(format!("Redis has {other:?} keys, not {KEYS}")),
        }
        check_file(&Disk::path(SNAPSHOT))?;
        Ok(format!("{KEYS} keys verified, and in the file"))
    }
}

fn connect() -> Result<Client> {
    for _ in 0..100 {
        if let Ok(client) = Client::connect(Path::new(SOCKET)) {
            return Ok(client);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Err(format!("Redis does not listen at {SOCKET}"))
}

/// Checks the file with Redis's own checker, and removes it.
fn check_file(path: &Path) -> Result<()> {
    let output =
        Command::new("redis-check-rdb").arg(path).output().context("cannot run redis-check-rdb")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let keys = keys_read(&said);
    if !output.status.success() || keys != Some(KEYS) {
        let end: Vec<&str> = said.lines().rev().take(2).collect();
        return Err(format!("the file that was saved is not right: {}", end.join("; ")));
    }
    std::fs::remove_file(path).context(format_args!("cannot remove {}", path.display()))
}

/// `[info] 16000 keys read`
fn keys_read(said: &str) -> Option<usize> {
    said.lines().find_map(|l| l.strip_suffix(" keys read")?.rsplit(' ').next()?.parse().ok())
}

impl Load for Redis {
    fn parts(&self) -> Vec<Part> {
        let metrics = vec![
            Metric::new("save", "Save", "s"),
            Metric::new("before-p50", "Requests before, median", "us"),
            Metric::new("before-p99", "Requests before, 99 %", "us"),
            Metric::new("during-p50", "Requests meanwhile, median", "us"),
            Metric::new("during-p99", "Requests meanwhile, 99 %", "us"),
        ];
        vec![Part { name: "redis", title: "Redis, background save", metrics }]
    }

    fn measure(&mut self, setting: Setting) -> Result<Vec<Outcome>> {
        if let Some(limit) = self.sizes.limit(setting) {
            self.group.limit(limit)?;
        }
        self.requests_for(SETTLE)?;
        let meter = Meter::start()?;
        let before = self.requests_for(BEFORE)?;
        let (during, took) = self.save()?;
        let of = |sample: &[f64], share| percentile(sample, share).unwrap_or(f64::NAN);
        let values = [
            ("save", took),
            ("before-p50", of(&before, 0.5)),
            ("before-p99", of(&before, 0.99)),
            ("during-p50", of(&during, 0.5)),
            ("during-p99", of(&during, 0.99)),
        ];
        let mut outcome = meter.stop(values, String::new())?;
        eprintln!("  {}: saved in {took:.1} s; verifying", setting.name());
        outcome.verified = self.verify()?;
        self.group.release()?;
        Ok(vec![outcome])
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_read_parses_the_checkers_output() {
        let said = "[offset 0] Checking RDB file dump.rdb\n\
                    [offset 123] \\o/ RDB looks OK! \\o/\n[info] 16000 keys read\n\
                    [info] 0 expires\n[info] 0 already expired\n";
        assert_eq!(keys_read(said), Some(16_000));
        assert_eq!(keys_read("[info] 0 expires\n"), None);
    }

    #[test]
    fn values_differ() {
        let mut all: Vec<Vec<u8>> = (0..50).flat_map(|k| [value(k, 0), value(k, 1)]).collect();
        assert!(all.iter().all(|v| v.len() == VALUE));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 100);
    }
}
