// SPDX-License-Identifier: GPL-2.0-only
//! Command lines and JSON output of fio.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::record::Speed;
use crate::bench::Latency;
use crate::error::{reason, Error, Kind, Result};
use crate::sys::Sys;

const MIB: f64 = (1 << 20) as f64;

/// Identical threads, each with its own zones.
#[derive(Clone, Debug)]
pub struct Job {
    pub rw: &'static str,
    pub bytes: u64,
    pub depth: u64,
    /// Start and length of its range.
    pub offset: u64,
    pub size: u64,
    /// Number of threads, and the distance of their starts.
    pub threads: u64,
    pub apart: u64,
    /// Ends after this many bytes, or after the time of the run.
    pub limit: Option<u64>,
    /// Writes zones of this many bytes, each from its beginning to its end, in random order.
    pub virtual_zone: Option<u64>,
}

impl Job {
    pub fn new(rw: &'static str, bytes: u64, (offset, size): (u64, u64)) -> Job {
        let (depth, threads, apart) = (1, 1, 0);
        let (limit, virtual_zone) = (None, None);
        Job { rw, bytes, depth, offset, size, threads, apart, limit, virtual_zone }
    }

    fn words(&self, i: usize, seconds: f64) -> Vec<String> {
        let mut words = vec![
            format!("--name=job{i}"),
            match self.virtual_zone {
                Some(zone) => format!("--rw={}:{}", self.rw, zone / self.bytes),
                None => format!("--rw={}", self.rw),
            },
            format!("--bs={}", self.bytes),
            format!("--iodepth={}", self.depth),
            format!("--offset={}", self.offset),
            format!("--size={}", self.size),
            format!("--numjobs={}", self.threads),
        ];
        if self.threads > 1 {
            words.push(format!("--offset_increment={}", self.apart));
        }
        if let Some(zone) = self.virtual_zone {
            words.push("--rw_sequencer=sequential".to_string());
            words.push(format!("--blockalign={zone}"));
        }
        match self.limit {
            Some(bytes) => words.push(format!("--io_size={bytes}")),
            None => {
                words.push("--time_based".to_string());
                words.push(format!("--runtime={}ms", (seconds * 1e3).ceil()));
            }
        }
        words.push("--stonewall".to_string());
        words
    }
}

/// Jobs of one fio process, run one after the other.
#[derive(Clone, Debug)]
pub struct Run {
    pub jobs: Vec<Job>,
    /// Time of each job without another end.
    pub seconds: f64,
    /// The device has zones.
    pub zoned: bool,
}

impl Run {
    pub fn words(&self, device: &str, engine: &str) -> Vec<String> {
        let mut words: Vec<String> = [
            "fio",
            "--output-format=json",
            "--direct=1",
            "--thread",
            "--group_reporting",
            "--randrepeat=0",
            "--norandommap",
        ]
        .map(String::from)
        .to_vec();
        if self.zoned {
            words.push("--zonemode=zbd".to_string());
        }
        words.push(format!("--filename={device}"));
        words.push(format!("--ioengine={engine}"));
        for (i, job) in self.jobs.iter().enumerate() {
            words.extend(job.words(i, self.seconds));
        }
        words
    }
}

/// The part of the JSON that is used.
#[derive(Debug, Deserialize)]
pub struct Output {
    pub jobs: Vec<Done>,
}

#[derive(Debug, Deserialize)]
pub struct Done {
    #[serde(default)]
    error: i64,
    write: Side,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Side {
    bw_bytes: u64,
    iops: f64,
    clat_ns: Clat,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Clat {
    mean: f64,
    max: f64,
    percentile: BTreeMap<String, f64>,
}

impl Done {
    pub fn speed(&self) -> Speed {
        let side = &self.write;
        let at = |key: &str| side.clat_ns.percentile.get(key).copied().unwrap_or(0.0) / 1e3;
        Speed {
            mib_per_s: side.bw_bytes as f64 / MIB,
            ops_per_s: side.iops,
            latency_us: Latency {
                mean: side.clat_ns.mean / 1e3,
                p50: at("50.000000"),
                p99: at("99.000000"),
                p99_9: at("99.900000"),
                max: side.clat_ns.max / 1e3,
            },
        }
    }
}

/// Parses the output of fio, which may print warnings before the document.
pub fn parse(text: &str) -> std::result::Result<Output, String> {
    let begin = text.find('{').ok_or("it printed no JSON")?;
    serde_json::from_str(&text[begin..]).map_err(|e| format!("its JSON is not valid: {e}"))
}

/// The version of fio, or an error that names its package.
pub fn find(sys: &dyn Sys) -> Result<String> {
    let ran = sys.run(&["fio", "--version"], &mut || ()).map_err(|e| {
        Error::new(Kind::Environment, format!("cannot run fio: {}", reason(&e)))
            .hint("install the package fio: apt-get install fio")
    })?;
    match ran.ok() {
        true => Ok(ran.stdout.trim().to_string()),
        false => {
            Err(Error::new(Kind::Environment, format!("fio does not work: {}", ran.complaint()))
                .hint("`fio --version` must work; reinstall the package fio"))
        }
    }
}

/// io_uring, unless the administrator disabled it.
pub fn engine(sys: &dyn Sys) -> &'static str {
    let disabled = sys.read("/proc/sys/kernel/io_uring_disabled");
    match disabled.is_ok_and(|text| text.trim() == "2") {
        true => "libaio",
        false => "io_uring",
    }
}

/// Runs all jobs.
pub fn run(sys: &dyn Sys, words: &[String], tick: &mut dyn FnMut()) -> Result<Output> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let failed = |why: String| {
        Error::new(Kind::Kernel, format!("fio failed: {why}"))
            .hint("the kernel log (`dmesg`) may show why")
    };
    let ran = sys.run(&words, tick).map_err(|e| failed(reason(&e)))?;
    if sys.interrupted() {
        return Err(Error::interrupted());
    }
    if !ran.ok() {
        return Err(failed(ran.complaint()));
    }
    let output = parse(&ran.stdout).map_err(failed)?;
    match output.jobs.iter().find(|job| job.error != 0) {
        Some(job) => {
            let e = std::io::Error::from_raw_os_error(job.error as i32);
            Err(failed(reason(&e)))
        }
        None => Ok(output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_parses() {
        let text = r#"fio: a warning
            {"fio version": "fio-3.33", "jobs": [{"error": 0,
             "write": {"bw_bytes": 2097152, "iops": 512.0,
              "clat_ns": {"mean": 1500.0, "max": 9000, "percentile":
               {"50.000000": 1000, "99.000000": 5000, "99.900000": 8000}}}}]}"#;
        let output = parse(text).unwrap();
        let speed = output.jobs[0].speed();
        assert_eq!((speed.mib_per_s, speed.ops_per_s), (2.0, 512.0));
        assert_eq!((speed.latency_us.p50, speed.latency_us.max), (1.0, 9.0));
        assert!(parse("fio: no").is_err() && parse("{").is_err());
    }

    #[test]
    fn jobs_wait_for_the_previous_one() {
        let job = Job::new("write", 4096, (0, 1 << 20));
        let limited = Job { limit: Some(8192), ..job.clone() };
        let run = Run { jobs: vec![job, limited], seconds: 1.5, zoned: true };
        let words = run.words("/dev/x", "io_uring");
        let count = |word: &str| words.iter().filter(|w| *w == word).count();
        assert_eq!(count("--stonewall"), 2);
        assert_eq!((count("--runtime=1500ms"), count("--io_size=8192")), (1, 1));
        assert_eq!(count("--zonemode=zbd"), 1);
    }

    #[test]
    fn virtual_zones_are_written_in_order() {
        let job = Job { virtual_zone: Some(1 << 20), ..Job::new("randwrite", 65536, (0, 1 << 30)) };
        let run = Run { jobs: vec![job], seconds: 1.0, zoned: false };
        let words = run.words("/dev/x", "io_uring");
        let has = |word: &str| words.iter().any(|w| w == word);
        assert!(has("--rw=randwrite:16") && has("--rw_sequencer=sequential"));
        assert!(has("--blockalign=1048576") && !has("--zonemode=zbd"));
    }
}
