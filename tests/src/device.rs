// SPDX-License-Identifier: GPL-2.0-only
//! A znsage device that a case has turned on.

use std::fs::File;
use std::{env, io};

use serde_json::Value;

use crate::direct::Disk;
use crate::ensure;
use crate::guest::{self, Ran};
use crate::memory::Memory;
use crate::outcome::{Context, Outcome};
use crate::pattern::PAGE;
use crate::table::{mounted, sum, table, Row, DEBUGFS};
use crate::zones;

pub const CONFIG: &str = "/sys/kernel/config/znsage";

pub fn znsage(arguments: &[&str]) -> Outcome<Ran> {
    guest::run(&[&["znsage"], arguments].concat())
}

/// Runs `znsage --json`, which must succeed, and parses its output.
pub fn znsage_json(arguments: &[&str]) -> Outcome<Value> {
    let text = guest::ok(&[&["znsage", "--json"], arguments].concat())?;
    serde_json::from_str(&text).context(format!("znsage {} prints no JSON", arguments[0]))
}

pub fn module_path() -> Outcome<String> {
    std::env::var("ZNSAGE_MODULE").map_err(|_| "ZNSAGE_MODULE is not set: build it".to_string())
}

pub fn load_module() -> Outcome {
    if !guest::exists("/sys/module/znsage") {
        let path = module_path()?;
        let depends = guest::ok(&["modinfo", "-F", "depends", &path])?;
        for module in depends.trim().split(',').filter(|name| !name.is_empty()) {
            guest::ok(&["modprobe", module])?;
        }
        guest::ok(&["insmod", &path])?;
    }
    Ok(())
}

pub struct Device {
    /// Such as znsage0.
    pub name: String,
    /// The path of the device below.
    pub backing: String,
}

impl Device {
    /// Turns swap on with the command.
    pub fn on(backing: &str, options: &[&str]) -> Outcome<Device> {
        let report = znsage_json(&[&["on", backing], options].concat())?;
        let name = report["device"]["name"].as_str().ok_or("`on --json` tells no name")?;
        let device = Device { name: name.to_string(), backing: backing.to_string() };
        ensure!(guest::swaps().contains(&device.node()), "{name} is not in /proc/swaps");
        Ok(device)
    }

    /// Attaches by configfs, without making it swap.
    pub fn attach(backing: &str, settings: &[(&str, &str)]) -> Outcome<Device> {
        load_module()?;
        let item = format!("{CONFIG}/suite");
        std::fs::create_dir(&item).context(&item)?;
        for (attribute, value) in [&[("backing", backing)], settings, &[("power", "1")]].concat() {
            let path = format!("{item}/{attribute}");
            guest::write(&path, value).context(format!("{path} := {value}"))?;
        }
        let index = guest::read(&format!("{item}/index"))?;
        Ok(Device { name: format!("znsage{index}"), backing: backing.to_string() })
    }

    pub fn node(&self) -> String {
        format!("/dev/{}", self.name)
    }

    pub fn attribute(&self, file: &str) -> String {
        format!("/sys/block/{}/znsage/{file}", self.name)
    }

    pub fn counter(&self, file: &str) -> Outcome<u64> {
        guest::read_number(&self.attribute(file))
    }

    /// What tells most of its condition, for the message of a failed test.
    pub fn condition(&self) -> String {
        const FILES: [&str; 5] =
            ["write_window", "live_blocks", "read_errors", "write_errors", "stalls"];
        let show = |file| {
            let text = guest::read(&self.attribute(file)).unwrap_or_else(|e| e);
            format!("{file}: {}", text.replace('\n', ", "))
        };
        FILES.map(show).join("\n")
    }

    /// A table in debugfs.
    pub fn table(&self, file: &str) -> Outcome<Vec<Row>> {
        mounted("debugfs", DEBUGFS, "znsage")?;
        table(&format!("{DEBUGFS}/znsage/{}/{file}", self.name))
    }

    /// A row for each zone.
    pub fn zones(&self) -> Outcome<Vec<Row>> {
        self.table("zones")
    }

    /// How many operations of a kind were timed.
    pub fn timed(&self, what: &str) -> Outcome<u64> {
        let mut rows = self.table("latency")?;
        rows.retain(|row| row["below_us"] != "total_ns");
        sum(&rows, what)
    }

    pub fn disk(&self) -> Outcome<Disk> {
        Disk::open(&self.node())
    }

    /// Writes the first `slots` so often, and verifies what was written last. The device does
    /// not swap.
    pub fn rewrite(&self, slots: usize, rounds: u64) -> Outcome {
        let disk = self.disk()?;
        let mut memory = Memory::new(slots * PAGE)?;
        for key in 1..=rounds {
            memory.fill(0..slots, key);
            disk.write_slots(&memory, 0..slots).context("write")?;
        }
        disk.read_slots(&mut memory, 0..slots).context("read")?;
        memory.verify(0..slots, rounds)
    }

    /// `znsage check`.
    pub fn check(&self) -> Outcome {
        let said = guest::ok(&["znsage", "check", &self.node()])?;
        ensure!(said == format!("{}: ok\n", self.name), "znsage check: {said}");
        Ok(())
    }

    pub fn swapoff(&self) -> Outcome {
        guest::ok(&["swapoff", &self.node()]).map(drop)
    }

    /// After swapoff.
    pub fn nothing_lives(&self) -> Outcome {
        for file in ["live_blocks", "slots_used"] {
            let left = self.counter(file)?;
            ensure!(left == 0, "after swapoff, {file} is {left}");
        }
        Ok(())
    }

    /// The end of most cases: the maps are sound, swapoff works, nothing is live, and the zones
    /// below are empty, unless it is a file.
    pub fn finish(self) -> Outcome {
        let backing = self.backing.clone();
        self.end()?;
        match backing.starts_with("/dev/") {
            true => zones::all_empty(&backing),
            false => Ok(()),
        }
    }

    /// As `finish()`, for devices whose zones can no longer be reset.
    pub fn end(self) -> Outcome {
        self.check()?;
        if guest::swaps().contains(&self.node()) {
            self.swapoff()?;
            self.nothing_lives()?;
            self.check()?;
        }
        guest::ok(&["znsage", "off", &self.node()]).map(drop)
    }

    /// As `finish()`; also, there were no errors.
    pub fn finish_sound(self) -> Outcome {
        for file in ["write_errors", "read_errors", "zones_retired"] {
            let n = self.counter(file)?;
            ensure!(n == 0, "{file} is {n}");
        }
        self.finish()
    }

    /// Runs `znsage bench` and returns what it measured of this device.
    pub fn bench(&self, arguments: &[&str]) -> Outcome<Bench> {
        let report = bench(arguments)?;
        let phases = report["phases"].as_array().ok_or("the report has no phases")?;
        let access = phases.iter().find(|p| !p["device"].is_null() && !p["latency_us"].is_null());
        let access = access.ok_or("the report has no access phase")?;
        Ok(Bench { access: access.clone() })
    }
}

/// Runs `znsage bench` with a memory limit of 20 MiB. No page may be corrupt.
pub fn bench(arguments: &[&str]) -> Outcome<Value> {
    bench_within("20M", arguments)
}

/// The same with another limit.
pub fn bench_within(limit: &str, arguments: &[&str]) -> Outcome<Value> {
    into_memory("znsage");
    let common = ["bench", "--memory-limit", limit, "--verify"];
    let report = znsage_json(&[&common, arguments].concat())?;
    ensure!(report["corrupt_pages"] == 0, "corrupt pages: {}", report["corrupt"]);
    let mut phases = report["phases"].as_array().into_iter().flatten();
    ensure!(phases.any(|p| p["phase"] == "verify"), "the report has no verification");
    Ok(report)
}

/// Reads the program into the page cache, outside of the benchmark's cgroup. The benchmark
/// locks its memory: its own text would take 6 MiB of the limit.
fn into_memory(program: &str) {
    for directory in env::split_paths(&env::var_os("PATH").unwrap_or_default()) {
        let file = File::open(directory.join(program));
        let _ = file.and_then(|mut file| io::copy(&mut file, &mut io::sink()));
    }
}

/// The access phase of a benchmark.
pub struct Bench {
    access: Value,
}

impl Bench {
    fn device(&self, counter: &str) -> u64 {
        self.access["device"][counter].as_u64().unwrap_or(0)
    }

    pub fn waf(&self) -> f64 {
        self.access["waf"].as_f64().unwrap_or(f64::NAN)
    }

    pub fn swapped_out(&self) -> u64 {
        self.access["pages_swapped_out"].as_u64().unwrap_or(0)
    }

    pub fn swapped_in(&self) -> u64 {
        self.access["pages_swapped_in"].as_u64().unwrap_or(0)
    }

    pub fn utilization(&self) -> f64 {
        self.access["utilization"]["mean"].as_f64().unwrap_or(f64::NAN)
    }

    /// How many times the device was written in full.
    pub fn rewrites(&self) -> f64 {
        let written =
            self.device("host_blocks") + self.device("gc_blocks") + self.device("padding_blocks");
        written as f64 / self.device("blocks_total").max(1) as f64
    }
}

/// The number of blocks in this many bytes.
pub const fn blocks(bytes: u64) -> u64 {
    bytes / PAGE as u64
}
