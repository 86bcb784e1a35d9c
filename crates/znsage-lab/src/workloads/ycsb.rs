// SPDX-License-Identifier: GPL-2.0-only
//! YCSB on the host, for memcached in the guest. The guest orders a load or a run when its
//! memcached is ready, and gets the figures.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::files;
use crate::result::{Context, Result};

/// The port of memcached in the guest.
pub const GUEST_PORT: u16 = 11211;

/// Connections that make requests at the same time.
const THREADS: u32 = 8;

/// Between looks for a file.
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

/// The guest's order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    pub records: u64,
    pub action: Action,
}

/// Counts of all requests, and latencies of reads in microseconds.
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

/// The guest sends an order and waits for the answer.
pub fn ask(raw: &Path, n: u32, order: &Order) -> Result<Figures> {
    let (question, answer) = files(raw, n);
    put(&question, order)?;
    for _ in 0..PATIENCE.as_millis() / LOOK.as_millis() {
        if let Ok(text) = fs::read_to_string(&answer) {
            let answer: Answer = serde_json::from_str(&text).context("YCSB")?;
            return match answer {
                Answer::Done(figures) => Ok(figures),
                Answer::Failed(message) => Err(message),
            };
        }
        std::thread::sleep(LOOK);
    }
    Err(format!("YCSB gave no answer for {} s", PATIENCE.as_secs()))
}

/// Writes a file so that it appears as a whole.
fn put(path: &Path, document: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(document).expect("plain data");
    let new = path.with_extension("new");
    files::write(&new, text)?;
    fs::rename(&new, path).context(format_args!("cannot write {}", path.display()))
}

/// An installed YCSB.
pub struct Client {
    raw: PathBuf,
    /// Of the host's loopback, forwarded to memcached in the guest.
    pub port: u16,
}

impl Client {
    /// Has Maven fetch YCSB, with the machine's settings, and compile the binding, unless
    /// they are there.
    pub fn prepare(out: &Path) -> Result<Client> {
        eprintln!("       YCSB: fetching what is not here yet, by Maven");
        let output = Command::new("mvn")
            .args(["--quiet", "--batch-mode", "--file", "bench/ycsb/pom.xml", "package"])
            .stdin(Stdio::null())
            .output()
            .context("cannot run mvn (`vm/setup workloads` installs it)")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let errors: Vec<&str> = said.lines().filter(|l| l.contains("ERROR")).take(4).collect();
            return Err(format!(
                "Maven could not make YCSB ready; check the network and Maven's settings:\n{}",
                errors.join("\n")
            ));
        }
        // It is free now, and most likely still when the guest is up.
        let free = TcpListener::bind(("127.0.0.1", 0)).and_then(|l| l.local_addr());
        let port = free.context("no port is free on the loopback")?.port();
        let raw = out.join("raw");
        // Orders of an earlier run.
        let _ = fs::remove_dir_all(&raw);
        Ok(Client { raw, port })
    }

    /// Carries out the guest's orders while `work` runs.
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
            let done = serde_json::from_str(&text).context("the guest");
            let done = match done.and_then(|order| self.run(&order)) {
                Ok(figures) => Answer::Done(figures),
                Err(message) => Answer::Failed(message),
            };
            // Without an answer, the guest's wait times out.
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
            .context("cannot run java (`vm/setup workloads` installs it)")?;
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

/// The arguments of java. Workloads A and B differ in the mix; the rest is YCSB's default
/// (zipfian, ten fields of 100 bytes). With `dataintegrity` a field's value follows from
/// its key, so that YCSB can verify reads. `writeallfields` is for the binding, which
/// stores whole records.
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

/// Values by operation and name: YCSB prints `[READ], 95thPercentileLatency(us), 812`.
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
    // Misses, errors and wrong values.
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
    fn figures_are_parsed() {
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
    fn misses_errors_and_gaps_fail() {
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
    fn load_has_no_read_latencies() {
        let said = "[OVERALL], RunTime(ms), 500\n[OVERALL], Throughput(ops/sec), 18\n\
                    [INSERT], Return=OK, 9\n";
        let load = Order { records: 9, action: Action::Load };
        let got = figures(&parse(said), &load).unwrap();
        assert_eq!((got.requests, got.read_us), (9, None));
    }

    #[test]
    fn java_gets_the_order() {
        let list = arguments(&RUN, 4711).join(" ");
        for part in ["memcached.port=4711", "readproportion=0.95", "-t -threads 8"] {
            assert!(list.contains(part), "{part}: {list}");
        }
        assert!(list.contains("updateproportion=0.05"), "{list}");
    }

    #[test]
    fn orders_and_answers_are_files() {
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
