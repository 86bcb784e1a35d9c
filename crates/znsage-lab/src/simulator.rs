// SPDX-License-Identifier: GPL-2.0-only
//! What `znsage sim` takes of the machine it runs on: CPU time and memory of a
//! process of its own. No virtual machine is needed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Result;

const PROGRAM: &str = "target/release/znsage";
const LOOK: Duration = Duration::from_millis(20);
/// Linux tells CPU time to user space in hundredths of a second (USER_HZ).
const TICKS: f64 = 100.0;

/// A run of the simulator and what it took.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Simulated {
    /// Bytes of the swap device.
    pub size: u64,
    pub pages: u64,
    pub page_operations: u64,
    /// Of the engine's maps.
    pub map_bytes: u64,
    pub cpu_seconds: f64,
    pub peak_bytes: u64,
}

/// What the figures need: a run of a minute, its like of an eighth of the
/// size, and a swap device of 512 GiB.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Simulations {
    pub small: Simulated,
    pub medium: Simulated,
    pub large: Simulated,
}

pub fn measure() -> Result<Simulations> {
    if !Path::new(PROGRAM).exists() {
        return Err(format!("{PROGRAM} is not built: make tools"));
    }
    let run = |gib: u64, measure: &str| {
        eprintln!("simulating a swap device of {gib} GiB");
        simulate(gib, measure)
    };
    Ok(Simulations { small: run(1, "0.5")?, medium: run(8, "2")?, large: run(512, "0.05")? })
}

/// The most memory and the CPU time of a process so far.
fn look(pid: u32) -> Option<(u64, f64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the name, which may hold anything: state is field 3, utime and
    // stime are 14 and 15.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some((kib << 10, ticks as f64 / TICKS))
}

fn simulate(gib: u64, measure: &str) -> Result<Simulated> {
    let mut child = Command::new(PROGRAM)
        .args(["--json", "sim", "run", "--system", "znsage", "--device", "zn540"])
        .args(["--size", &format!("{gib}G"), "--utilization", "80"])
        // Enough zones for the smallest, too.
        .args(["--set", "device.zoned.zone_capacity=8 MiB", "--set", "host.memory=64M"])
        .args(["--set", "run.warmup=0", "--set", &format!("run.measure={measure}")])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot start {PROGRAM}: {e}"))?;
    let (mut peak_bytes, mut cpu_seconds) = (0, 0.0);
    // What it prints fits the pipe, so it never waits for this side.
    while child.try_wait().map_err(|e| format!("{PROGRAM}: {e}"))?.is_none() {
        if let Some((peak, cpu)) = look(child.id()) {
            (peak_bytes, cpu_seconds) = (peak, cpu);
        }
        thread::sleep(LOOK);
    }
    let out = child.wait_with_output().map_err(|e| format!("{PROGRAM}: {e}"))?;
    let json: serde_json::Value = serde_json::from_slice(&out.stdout)
        .map_err(|e| format!("{PROGRAM} sim run: {e} ({})", out.status))?;
    let value = |key: &str| {
        let found = json["result"].pointer(key).and_then(serde_json::Value::as_u64);
        found.ok_or_else(|| format!("{PROGRAM} sim run: no {key} in {json}"))
    };
    Ok(Simulated {
        size: gib << 30,
        pages: value("/pages")?,
        page_operations: value("/page_operations")?,
        map_bytes: value("/mapping/ram_bytes")?,
        cpu_seconds,
        peak_bytes,
    })
}

impl Simulations {
    /// Page operations for each second of CPU time, in millions.
    pub fn speed(&self) -> (f64, String) {
        let m = &self.medium;
        let detail = format!("{} in {:.1} s of CPU time", m.page_operations, m.cpu_seconds);
        (m.page_operations as f64 / m.cpu_seconds / 1e6, detail)
    }

    /// Bytes for each page, beside the engine's maps: from two sizes, so that
    /// what is there anyhow does not count.
    pub fn bytes_a_page(&self) -> (f64, String) {
        let (a, b) = (&self.small, &self.medium);
        let more = |f: fn(&Simulated) -> u64| f(b) as f64 - f(a) as f64;
        let pages = more(|s| s.pages);
        let (all, maps) = (more(|s| s.peak_bytes) / pages, more(|s| s.map_bytes) / pages);
        (all - maps, format!("{all:.1}, of which the engine's maps {maps:.1}"))
    }

    /// Most memory of the large run, GiB.
    pub fn large_gib(&self) -> (f64, String) {
        let l = &self.large;
        let detail = format!("{} pages, {:.0} s of CPU time", l.pages, l.cpu_seconds);
        (l.peak_bytes as f64 / f64::from(1 << 30), detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_can_be_looked_at() {
        let (peak, cpu) = look(std::process::id()).unwrap();
        assert!(peak > 1 << 20 && cpu >= 0.0, "{peak} {cpu}");
        assert_eq!(look(u32::MAX), None);
    }

    #[test]
    fn figures_are_of_the_differences() {
        let at = |pages, map_bytes, peak_bytes| Simulated {
            pages,
            map_bytes,
            peak_bytes,
            page_operations: 3_000_000,
            cpu_seconds: 1.5,
            ..Simulated::default()
        };
        let s = Simulations {
            small: at(100, 800, 10_000),
            medium: at(1100, 8800, 30_000),
            large: at(0, 0, 3 << 30),
        };
        assert_eq!(s.speed().0, 2.0);
        assert_eq!(s.bytes_a_page().0, 12.0);
        assert_eq!(s.large_gib().0, 3.0);
    }
}
