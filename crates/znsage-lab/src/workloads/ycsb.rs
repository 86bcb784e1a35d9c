// SPDX-License-Identifier: GPL-2.0-only
//! YCSB on this machine, for memcached in the guest: the guest asks for a load
//! or a run when its memcached is as it should be, and gets the figures.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Result;

/// Where memcached listens in the guest.
pub const GUEST_PORT: u16 = 11211;

/// Connections that ask at once, each for one record after the other.
const THREADS: u32 = 8;

const LOOK: Duration = Duration::from_millis(100);

/// Longer than any run.
const PATIENCE: Duration = Duration::from_secs(1200);

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Insert all records.
    Load,
    /// Read and update them.
    Run { seconds: u32, reads: f64 },
}

/// What the guest wants done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    pub records: u64,
    pub action: Action,
}

/// Of all requests; latencies, in microseconds, of reads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    pub seconds: f64,
    pub requests: u64,
    pub requests_per_s: f64,
    /// Reads whose every field was compared with what was inserted.
    pub verified: u64,
    pub read_us: Option<Percentiles>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Done(Figures),
    Failed(String),
}

/// The files of the `n`-th order in the directory that guest and host share.
fn files(raw: &Path, n: u32) -> (PathBuf, PathBuf) {
    (raw.join(format!("ycsb-{n}.order")), raw.join(format!("ycsb-{n}.answer")))
}

/// In the guest: has the host do it, and waits.
pub fn ask(raw: &Path, n: u32, order: &Order) -> Result<Figures> {
    let (question, answer) = files(raw, n);
    put(&question, order)?;
    for _ in 0..PATIENCE.as_millis() / LOOK.as_millis() {
        if let Ok(text) = fs::read_to_string(&answer) {
            let answer: Answer = serde_json::from_str(&text).map_err(|e| format!("YCSB: {e}"))?;
            return match answer {
                Answer::Done(figures) => Ok(figures),
                Answer::Failed(message) => Err(message),
            };
        }
        std::thread::sleep(LOOK);
    }
    Err(format!("YCSB gave no answer for {} s", PATIENCE.as_secs()))
}

/// Renamed, so that nobody sees half of it.
fn put(path: &Path, document: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(document).expect("plain data");
    let new = path.with_extension("new");
    fs::write(&new, text)
        .and_then(|()| fs::rename(&new, path))
        .map_err(|e| format!("cannot write {}: {e}", path.display()))
}

/// YCSB, ready to be run.
pub struct Client {
    raw: PathBuf,
    /// Forwarded to memcached's in the guest.
    pub port: u16,
}

impl Client {
    /// Maven fetches YCSB, as this machine has it configured, and compiles the
    /// binding; nothing that is there already.
    pub fn prepare(out: &Path) -> Result<Client> {
        eprintln!("       YCSB: fetching what is not here yet, by Maven");
        let output = Command::new("mvn")
            .args(["--quiet", "--batch-mode", "--file", "bench/ycsb/pom.xml", "package"])
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("cannot run mvn: {e}; `vm/setup workloads` installs it"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let errors: Vec<&str> = said.lines().filter(|l| l.contains("ERROR")).take(4).collect();
            return Err(format!(
                "Maven could not make YCSB ready; check the network and Maven's settings:\n{}",
                errors.join("\n")
            ));
        }
        // Free now, and hardly taken before the guest is up.
        let free = TcpListener::bind(("127.0.0.1", 0)).and_then(|l| l.local_addr());
        let port = free.map_err(|e| format!("no port is free on the loopback: {e}"))?.port();
        let raw = out.join("raw");
        // Orders of an earlier run, which nobody waits for.
        let _ = fs::remove_dir_all(&raw);
        Ok(Client { raw, port })
    }

    /// Obeys the guest's orders for as long as `work` takes.
    pub fn serve<T>(&self, work: impl FnOnce() -> T) -> T {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| self.obey(&over));
            let result = work();
            over.store(true, Relaxed);
            result
        })
    }

    fn obey(&self, over: &AtomicBool) {
        let mut n = 1;
        while !over.load(Relaxed) {
            let (question, answer) = files(&self.raw, n);
            let Ok(text) = fs::read_to_string(&question) else {
                std::thread::sleep(LOOK);
                continue;
            };
            let done = serde_json::from_str(&text).map_err(|e| format!("the guest: {e}"));
            let done = match done.and_then(|order| self.run(&order)) {
                Ok(figures) => Answer::Done(figures),
                Err(message) => Answer::Failed(message),
            };
            // The guest notices when nothing comes.
            if let Err(message) = put(&answer, &done) {
                eprintln!("       {message}");
            }
            n += 1;
        }
    }

    fn run(&self, order: &Order) -> Result<Figures> {
        let output = Command::new("java")
            .args(arguments(order, self.port))
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("cannot run java: {e}; `vm/setup workloads` installs it"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let told = errors.lines().find(|l| l.contains("Exception"));
            let told = told.or(errors.lines().last()).unwrap_or("it does not say why");
            return Err(format!("YCSB failed ({}): {}", output.status, told.trim()));
        }
        figures(&parse(&said), order)
    }
}

/// Workloads A and B are these mixes with the other values as YCSB has them
/// (zipfian, ten fields of 100 bytes). `dataintegrity` makes a field's value
/// follow from its key, so that reads can be verified; the binding stores
/// records whole.
fn arguments(order: &Order, port: u16) -> Vec<String> {
    let mut list: Vec<String> = ["-cp", "build/ycsb/lib/*", "site.ycsb.Client", "-db", "Memcached"]
        .map(String::from)
        .into();
    let mut set = |name: &str, value: String| list.extend(["-p".into(), format!("{name}={value}")]);
    set("workload", "site.ycsb.workloads.CoreWorkload".into());
    set("memcached.port", port.to_string());
    set("recordcount", order.records.to_string());
    for name in ["dataintegrity", "writeallfields"] {
        set(name, "true".into());
    }
    set("hdrhistogram.percentiles", "50,95,99".into());
    match order.action {
        Action::Load => list.push("-load".into()),
        Action::Run { seconds, reads } => {
            set("requestdistribution", "zipfian".into());
            set("readproportion", format!("{reads}"));
            set("updateproportion", format!("{:.2}", 1.0 - reads));
            set("operationcount", i32::MAX.to_string());
            set("maxexecutiontime", seconds.to_string());
            list.push("-t".into());
        }
    }
    list.extend(["-threads".into(), THREADS.to_string()]);
    list
}

/// `[READ], 95thPercentileLatency(us), 812` as (READ, 95thPercentileLatency(us)).
type Said = BTreeMap<(String, String), f64>;

fn parse(text: &str) -> Said {
    let line = |line: &str| {
        let mut parts = line.split(", ");
        let operation = parts.next()?.strip_prefix('[')?.strip_suffix(']')?;
        let (name, value) = (parts.next()?, parts.next()?.trim().parse().ok()?);
        Some(((operation.to_string(), name.to_string()), value))
    };
    text.lines().filter_map(line).collect()
}

fn figures(said: &Said, order: &Order) -> Result<Figures> {
    let find =
        |operation: &str, name: &str| said.get(&(operation.to_string(), name.to_string())).copied();
    let get = |operation: &str, name: &str| {
        find(operation, name).ok_or_else(|| format!("YCSB did not print [{operation}], {name}"))
    };
    // Whatever was not right: a miss, an error, a value that was not inserted.
    if let Some(((operation, name), n)) =
        said.iter().find(|((_, name), _)| name.starts_with("Return=") && name != "Return=OK")
    {
        return Err(format!("YCSB: {n} times {operation} had {name}"));
    }
    let of = |operation: &str| find(operation, "Return=OK").unwrap_or(0.0) as u64;
    let requests = of("INSERT") + of("READ") + of("UPDATE");
    let read_us = match order.action {
        Action::Load if requests != order.records => {
            return Err(format!("YCSB inserted {requests} records of {}", order.records));
        }
        Action::Load => None,
        Action::Run { .. } => Some(Percentiles {
            p50: get("READ", "50thPercentileLatency(us)")?,
            p95: get("READ", "95thPercentileLatency(us)")?,
            p99: get("READ", "99thPercentileLatency(us)")?,
        }),
    };
    if of("VERIFY") != of("READ") {
        return Err(format!("YCSB verified {} of {} reads", of("VERIFY"), of("READ")));
    }
    Ok(Figures {
        seconds: get("OVERALL", "RunTime(ms)")? / 1e3,
        requests,
        requests_per_s: get("OVERALL", "Throughput(ops/sec)")?,
        verified: of("VERIFY"),
        read_us,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
Loading workload...
[OVERALL], RunTime(ms), 15012
[OVERALL], Throughput(ops/sec), 1998.4
[TOTAL_GCs_G1_Young_Generation], Count, 3
[READ], Operations, 1900
[READ], AverageLatency(us), 1204.5
[READ], 50thPercentileLatency(us), 801
[READ], 95thPercentileLatency(us), 3021
[READ], 99thPercentileLatency(us), 7039
[READ], Return=OK, 1900
[VERIFY], Return=OK, 1900
[UPDATE], Return=OK, 100
";
    const RUN: Order = Order { records: 50, action: Action::Run { seconds: 15, reads: 0.95 } };

    #[test]
    fn figures_are_read() {
        let got = figures(&parse(SAID), &RUN).unwrap();
        let read_us = Some(Percentiles { p50: 801.0, p95: 3021.0, p99: 7039.0 });
        let want = Figures {
            seconds: 15.012,
            requests: 2000,
            requests_per_s: 1998.4,
            verified: 1900,
            read_us,
        };
        assert_eq!(got, want);
    }

    #[test]
    fn what_is_wrong_is_no_result() {
        let failed = |text: &str, order: &Order| figures(&parse(text), order).unwrap_err();
        let missed = SAID.to_string() + "[READ], Return=NOT_FOUND, 1\n";
        assert_eq!(failed(&missed, &RUN), "YCSB: 1 times READ had Return=NOT_FOUND");
        let corrupt = SAID.replace("[VERIFY], Return=OK, 1900", "[VERIFY], Return=OK, 1899");
        assert!(failed(&corrupt, &RUN).contains("verified 1899 of 1900"));
        assert!(failed("", &RUN).contains("did not print [READ], 50th"));
        let load = Order { records: 9, action: Action::Load };
        assert_eq!(failed("[INSERT], Return=OK, 8", &load), "YCSB inserted 8 records of 9");
    }

    #[test]
    fn a_load_has_no_reads() {
        let said = "[OVERALL], RunTime(ms), 500\n[OVERALL], Throughput(ops/sec), 18\n\
                    [INSERT], Return=OK, 9\n";
        let load = Order { records: 9, action: Action::Load };
        let got = figures(&parse(said), &load).unwrap();
        assert_eq!((got.requests, got.read_us), (9, None));
    }

    #[test]
    fn orders_reach_java() {
        let list = arguments(&RUN, 4711).join(" ");
        for part in ["memcached.port=4711", "readproportion=0.95", "-t -threads 8"] {
            assert!(list.contains(part), "{part}: {list}");
        }
        assert!(list.contains("updateproportion=0.05"), "{list}");
    }

    #[test]
    fn guest_and_host_talk_by_files() {
        let dir = tempfile::tempdir().unwrap();
        let order = Order { records: 5, action: Action::Load };
        let (question, answer) = files(dir.path(), 1);
        let failed = std::thread::scope(|scope| {
            let asked = scope.spawn(|| ask(dir.path(), 1, &order));
            while !question.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            let seen: Order =
                serde_json::from_str(&fs::read_to_string(&question).unwrap()).unwrap();
            assert_eq!(seen, order);
            put(&answer, &Answer::Failed("no java".to_string())).unwrap();
            asked.join().unwrap()
        });
        assert_eq!(failed.unwrap_err(), "no java");
    }
}
