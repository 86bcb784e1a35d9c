// SPDX-License-Identifier: GPL-2.0-only
//! Swap areas and memory in /proc; mkswap, swapon and swapoff.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{reason, Error, Kind, Result};
use crate::sys::{Ran, Sys};

/// The filler of znsage0 is znsage0-filler.
const FILLER: &str = "-filler";

/// The node of a device's filler.
pub fn filler_node(name: &str) -> String {
    format!("/dev/{name}{FILLER}")
}

/// A line of /proc/swaps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Area {
    pub path: String,
    pub bytes: u64,
    pub used_bytes: u64,
    pub priority: i64,
}

impl Area {
    /// The name without /dev/.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// `znsage on --keep-slots` adds it (kmod/filler.c).
    fn is_filler(&self) -> bool {
        let name = self.name();
        name.starts_with("znsage") && name.ends_with(FILLER)
    }

    pub fn free_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.used_bytes)
    }
}

/// All areas but the fillers, which hold nothing.
pub fn areas(sys: &dyn Sys) -> Vec<Area> {
    all(sys).into_iter().filter(|area| !area.is_filler()).collect()
}

pub fn fillers(sys: &dyn Sys) -> Vec<Area> {
    all(sys).into_iter().filter(Area::is_filler).collect()
}

fn all(sys: &dyn Sys) -> Vec<Area> {
    let text = sys.read("/proc/swaps").unwrap_or_default();
    text.lines().skip(1).filter_map(parse_area).collect()
}

fn parse_area(line: &str) -> Option<Area> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [path, _kind, size, used, priority] = fields[..] else {
        return None;
    };
    // Somebody has removed the node; the area is still in use.
    let path = path.trim_end_matches("\\040(deleted)");
    Some(Area {
        path: unescaped(path),
        bytes: kib(size)?,
        used_bytes: kib(used)?,
        priority: priority.parse().ok()?,
    })
}

/// A path as /proc writes it, with spaces and the like in octal.
pub fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut path = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let code = part.get(..3).and_then(|code| u8::from_str_radix(code, 8).ok());
        match code.filter(u8::is_ascii) {
            Some(code) => {
                path.push(code.into());
                path.push_str(&part[3..]);
            }
            None => path.extend(["\\", part]),
        }
    }
    path
}

/// KiB as bytes; None on overflow.
fn kib(text: &str) -> Option<u64> {
    text.parse::<u64>().ok()?.checked_mul(1024)
}

/// The swap area on /dev/NAME.
pub fn area(sys: &dyn Sys, name: &str) -> Option<Area> {
    areas(sys).into_iter().find(|a| a.name() == name)
}

/// The swap tier of areas with this priority, where the kernel has tiers. A line has a name,
/// an index, the lowest priority and the highest one.
pub fn tier(sys: &dyn Sys, priority: i64) -> Option<String> {
    let tiers = sys.read("/sys/kernel/mm/swap/tiers").ok()?;
    tiers.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[name, _, lowest, highest] = words.as_slice() else { return None };
        let priorities = lowest.parse().ok()?..=highest.parse().ok()?;
        priorities.contains(&priority).then(|| name.to_string())
    })
}

/// Is the node a swap area, or a filler?
pub fn is_on(sys: &dyn Sys, node: &str) -> bool {
    all(sys).iter().any(|area| area.path == node)
}

/// A node that somebody has removed, such as /dev/znsage0.
pub fn no_node(sys: &dyn Sys, node: &str) -> Option<Error> {
    if sys.exists(node) {
        return None;
    }
    let name = node.rsplit('/').next().unwrap_or(node);
    let numbers = sys.read(&format!("/sys/block/{name}/dev")).unwrap_or_default();
    let numbers = match numbers.trim() {
        "" => "MAJOR MINOR".to_string(),
        some => some.replace(':', " "),
    };
    let e =
        Error::new(Kind::Environment, format!("{node} is in use as swap, but its node is gone"));
    Some(e.hint(format!("`mknod {node} b {numbers}` makes it anew")))
}

/// Memory that is available without swapping.
pub fn available_memory(sys: &dyn Sys) -> Result<u64> {
    let text = sys.read("/proc/meminfo").unwrap_or_default();
    text.lines()
        .find_map(|l| l.strip_prefix("MemAvailable:"))
        .and_then(|l| kib(l.trim().strip_suffix(" kB")?.trim()))
        .ok_or_else(|| Error::new(Kind::Kernel, "/proc/meminfo has no MemAvailable"))
}

/// Runs a tool of util-linux; its failure is an error.
fn tool(sys: &dyn Sys, argv: &[&str], tick: &mut dyn FnMut()) -> Result<Ran> {
    let ran = sys.run(argv, tick).map_err(|e| {
        Error::new(Kind::Environment, format!("cannot run {}: {}", argv[0], reason(&e)))
            .hint(format!("install the package that contains `{}`", argv[0]))
    })?;
    if sys.interrupted() && !ran.ok() {
        return Err(Error::interrupted());
    }
    match ran.ok() {
        true => Ok(ran),
        false => Err(Error::new(Kind::Kernel, format!("{} failed: {}", argv[0], ran.complaint()))),
    }
}

pub fn make(sys: &dyn Sys, node: &str) -> Result<()> {
    tool(sys, &["mkswap", node], &mut || ()).map(drop)
}

/// Without a priority the kernel puts the area below all present ones.
pub fn enable(sys: &dyn Sys, node: &str, priority: Option<u16>) -> Result<()> {
    let number = priority.map(|p| p.to_string());
    let mut argv = vec!["swapon"];
    if let Some(number) = &number {
        argv.extend(["-p", number]);
    }
    argv.push(node);
    tool(sys, &argv, &mut || ()).map(drop)
}

/// How often to check another swapoff, and how many checks without progress.
const PAUSE: Duration = Duration::from_millis(200);
const IDLE: u32 = 50;

/// Takes long, because every page is read back. If another swapoff is running, such
/// as systemd's at shutdown, the kernel refuses ours until that one ends.
pub fn disable(sys: &dyn Sys, node: &str, tick: &mut dyn FnMut()) -> Result<()> {
    if let Some(e) = no_node(sys, node) {
        return Err(e);
    }
    let (mut idle, mut before) = (0, u64::MAX);
    loop {
        let Err(e) = tool(sys, &["swapoff", node], tick) else { return Ok(()) };
        let Some(area) = all(sys).into_iter().find(|a| a.path == node) else { return Ok(()) };
        idle = if area.used_bytes < before { 0 } else { idle + 1 };
        before = area.used_bytes;
        if !e.message.contains("Invalid argument") || idle >= IDLE || sys.interrupted() {
            return Err(e);
        }
        tick();
        sys.sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::fake::Fake;

    #[test]
    fn tiers_have_ranges_of_priorities() {
        let fake = Fake::new();
        assert_eq!(tier(&fake, 1), None);
        let tiers = "Name  Idx  PrioStart  PrioEnd\nfast  0    50         32767\nslow  1    -1         49\n";
        fake.put("/sys/kernel/mm/swap/tiers", tiers);
        for (priority, name) in [(50, "fast"), (49, "slow"), (-1, "slow"), (-2, "")] {
            assert_eq!(tier(&fake, priority).unwrap_or_default(), name, "{priority}");
        }
    }

    #[test]
    fn proc_swaps_parses() {
        let area = parse_area("/dev/znsage0    partition\t230396\t\t1024\t\t-2").unwrap();
        assert_eq!(area.name(), "znsage0");
        assert_eq!(area.bytes, 230_396 * 1024);
        assert_eq!(area.used_bytes, 1 << 20);
        assert_eq!(area.priority, -2);
        let area = parse_area(r"/dev/znsage0\040(deleted) partition 230396 1024 -2").unwrap();
        assert_eq!(area.path, "/dev/znsage0");
        assert_eq!(parse_area(r"/a\040b\x\134 file 4 0 -2").unwrap().path, r"/a b\x\");
        assert_eq!(parse_area("garbage"), None);
        assert_eq!(parse_area(&format!("/dev/a partition {} 0 -2", u64::MAX)), None);
        assert_eq!((kib("7"), kib(&u64::MAX.to_string())), (Some(7168), None));
    }
}
