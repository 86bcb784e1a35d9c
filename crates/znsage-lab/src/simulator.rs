// SPDX-License-Identifier: GPL-2.0-only
//! CPU time and memory of `znsage-sim`, measured on the host.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::result::{Context, Result};

const PROGRAM: &str = "target/release/znsage-sim";
/// Between looks at the process.
const LOOK: Duration = Duration::from_millis(20);
/// Ticks of CPU time in a second, as user space sees them (USER_HZ).
const TICKS: f64 = 100.0;

/// A run of the simulator, and its cost.
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

/// Runs with swap devices of 1, 8 and 512 GiB.
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

/// The peak memory and the CPU time of a process.
fn look(pid: u32) -> Option<(u64, f64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The fields after the name, which may contain anything: state is field 3, utime and
    // stime are 14 and 15.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some((kib << 10, ticks as f64 / TICKS))
}

fn simulate(gib: u64, measure: &str) -> Result<Simulated> {
    let mut child = Command::new(PROGRAM)
        .args(["--json", "run", "--system", "znsage", "--device", "zn540"])
        .args(["--size", &format!("{gib}G"), "--utilization", "80"])
        // Small zones, so that the smallest device has enough of them.
        .args(["--set", "device.zoned.zone_capacity=8 MiB", "--set", "host.memory=64M"])
        .args(["--set", "run.warmup=0", "--set", &format!("run.measure={measure}")])
        .stdout(Stdio::piped())
        .spawn()
        .context(format_args!("cannot start {PROGRAM}"))?;
    let (mut peak_bytes, mut cpu_seconds) = (0, 0.0);
    // Its output fits the pipe, so it never waits for the reader.
    while child.try_wait().context(PROGRAM)?.is_none() {
        if let Some((peak, cpu)) = look(child.id()) {
            (peak_bytes, cpu_seconds) = (peak, cpu);
        }
        thread::sleep(LOOK);
    }
    let out = child.wait_with_output().context(PROGRAM)?;
    let json: serde_json::Value = serde_json::from_slice(&out.stdout)
        .map_err(|e| format!("{PROGRAM} run: {e} ({})", out.status))?;
    let value = |key: &str| {
        let found = json["result"].pointer(key).and_then(serde_json::Value::as_u64);
        found.ok_or_else(|| format!("{PROGRAM} run: no {key} in {json}"))
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
    /// Million page operations a second of CPU time.
    pub fn speed(&self) -> (f64, String) {
        let m = &self.medium;
        let detail = format!("{} in {:.1} s of CPU time", m.page_operations, m.cpu_seconds);
        (m.page_operations as f64 / m.cpu_seconds / 1e6, detail)
    }

    /// Bytes a page, beside the engine's maps. The difference of two sizes leaves out
    /// what does not depend on the size.
    pub fn bytes_a_page(&self) -> (f64, String) {
        let (a, b) = (&self.small, &self.medium);
        let more = |f: fn(&Simulated) -> u64| f(b) as f64 - f(a) as f64;
        let pages = more(|s| s.pages);
        let (all, maps) = (more(|s| s.peak_bytes) / pages, more(|s| s.map_bytes) / pages);
        (all - maps, format!("{all:.1}, {maps:.1} of it the engine's maps"))
    }

    /// The peak memory of the large run, in GiB.
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
    fn own_process_has_memory_and_time() {
        let (peak, cpu) = look(std::process::id()).unwrap();
        assert!(peak > 1 << 20 && cpu >= 0.0, "{peak} {cpu}");
        assert_eq!(look(u32::MAX), None);
    }

    #[test]
    fn bytes_a_page_are_a_difference() {
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
