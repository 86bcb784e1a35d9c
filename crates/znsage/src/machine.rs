// SPDX-License-Identifier: GPL-2.0-only
//! The machine of a measurement, for its report.

use serde::{Deserialize, Serialize};

use crate::sys::Sys;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Model name.
    pub cpu: Option<String>,
    pub cpus: u64,
    pub memory_bytes: Option<u64>,
    /// A hypervisor may distort times.
    pub virtual_machine: bool,
}

impl Machine {
    pub fn look(sys: &dyn Sys) -> Machine {
        let cpuinfo = sys.read("/proc/cpuinfo").unwrap_or_default();
        let value = |key: &str| {
            let of = |line: &str| {
                let (name, value) = line.split_once(':')?;
                (name.trim() == key).then(|| value.trim().to_string())
            };
            cpuinfo.lines().find_map(of)
        };
        let cpus = cpuinfo.lines().filter(|l| l.starts_with("processor")).count() as u64;
        let meminfo = sys.read("/proc/meminfo").unwrap_or_default();
        let total = meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:"));
        let kib: Option<u64> = total.and_then(|t| t.split_whitespace().next()?.parse().ok());
        let flags = value("flags").unwrap_or_default();
        Machine {
            cpu: value("model name"),
            cpus: cpus.max(1),
            memory_bytes: kib.and_then(|n| n.checked_mul(1024)),
            virtual_machine: flags.split(' ').any(|flag| flag == "hypervisor"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::fake::Fake;

    #[test]
    fn machine_is_read_from_proc() {
        let fake = Fake::new();
        let cpu = "processor\t: 0\nmodel name\t: Test 9000\nflags\t\t: fpu hypervisor\n";
        fake.put("/proc/cpuinfo", &(cpu.to_string() + &cpu.replace(": 0", ": 1")));
        fake.put("/proc/meminfo", "MemTotal:  2048 kB\n");
        let machine = Machine::look(&fake);
        assert_eq!(machine.cpu.as_deref(), Some("Test 9000"));
        assert_eq!((machine.cpus, machine.memory_bytes), (2, Some(2 << 20)));
        assert!(machine.virtual_machine);
        let unknown = Machine::look(&Fake::new());
        assert_eq!((unknown.cpu, unknown.cpus, unknown.memory_bytes), (None, 1, None));
    }
}
