// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's fault injection (CONFIG_FAULT_INJECTION), which the debug kernels have.

use std::fs;

use crate::guest;
use crate::outcome::{Context, Outcome};

pub const DEBUGFS: &str = "/sys/kernel/debug";

/// More than any case waits for.
const MANY: u64 = 1_000_000;

/// A fault injection point of the kernel; dropping it stops the faults.
pub struct Injection {
    directory: String,
}

impl Injection {
    /// A directory of debugfs or configfs; None if this kernel does not have it.
    pub fn at(directory: String) -> Outcome<Option<Injection>> {
        if !guest::exists(&format!("{directory}/probability")) {
            print!("no fault injection in this kernel ... ");
            return Ok(None);
        }
        let injection = Injection { directory };
        injection.set("probability", "0")?;
        injection.set("verbose", "0")?;
        injection.set("times", &MANY.to_string())?;
        Ok(Some(injection))
    }

    /// Allocations: "failslab" or "fail_page_alloc".
    pub fn of_memory(what: &str) -> Outcome<Option<Injection>> {
        let injection = Injection::at(format!("{DEBUGFS}/{what}"))?;
        if let Some(injection) = &injection {
            // Also allocations that may sleep.
            injection.set("ignore-gfp-wait", "0")?;
            if what == "fail_page_alloc" {
                injection.set("min-order", "0")?;
                injection.set("ignore-gfp-highmem", "0")?;
            }
        }
        Ok(injection)
    }

    pub fn set(&self, file: &str, value: &str) -> Outcome {
        let path = format!("{}/{file}", self.directory);
        guest::write(&path, value).context(format!("{path} := {value}"))
    }

    /// Only calls with a function of the module on the stack.
    pub fn only_of_module(&self) -> Outcome {
        let (first, last) = code_of_module()?;
        self.set("require-start", &format!("{first:#x}"))?;
        self.set("require-end", &format!("{last:#x}"))
    }

    pub fn percent(&self, percent: u32) -> Outcome {
        self.set("probability", &percent.to_string())
    }

    /// The number of faults so far.
    pub fn count(&self) -> Outcome<u64> {
        Ok(MANY - guest::read_number(&format!("{}/times", self.directory))?)
    }
}

impl Drop for Injection {
    fn drop(&mut self) {
        let _ = guest::write(&format!("{}/probability", self.directory), "0");
        for (file, usual) in [("require-start", "0x0"), ("require-end", "0xffffffffffffffff")] {
            let _ = guest::write(&format!("{}/{file}", self.directory), usual);
        }
    }
}

/// The addresses of the module's functions.
fn code_of_module() -> Outcome<(u64, u64)> {
    let text = fs::read_to_string("/proc/kallsyms").context("/proc/kallsyms")?;
    range_of(&text, "[znsage]").ok_or("/proc/kallsyms has no functions of znsage".to_string())
}

fn range_of(symbols: &str, module: &str) -> Option<(u64, u64)> {
    /// Longer than any function.
    const LONGEST: u64 = 0x2000;
    let addresses = symbols.lines().filter(|line| line.ends_with(module)).filter_map(|line| {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        words.next().filter(|kind| kind.eq_ignore_ascii_case("t")).map(|_| address)
    });
    let (first, last) = addresses
        .fold((u64::MAX, 0), |(first, last), address| (first.min(address), last.max(address)));
    (first <= last).then_some((first, last + LONGEST))
}

/// Makes this thread's N-th call that can fail do so.
pub struct Nth;

impl Nth {
    const FILE: &'static str = "/proc/thread-self/fail-nth";

    pub fn set(n: u64) -> Outcome {
        guest::write(Nth::FILE, &n.to_string()).context(Nth::FILE)
    }

    /// Ends the injection; returns whether there was such a call.
    pub fn met() -> Outcome<bool> {
        let left = guest::read_number(Nth::FILE)?;
        Nth::set(0)?;
        Ok(left == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modules_code_is_found() {
        let symbols = "\
ffffffff81000000 T _stext
ffffffffc0201000 t znsage_read\t[znsage]
ffffffffc0200000 T znsage_write\t[znsage]
ffffffffc0300000 d znsage_ida\t[znsage]
ffffffffc0400000 t null_map\t[null_blk]
";
        assert_eq!(range_of(symbols, "[znsage]"), Some((0xffffffffc0200000, 0xffffffffc0203000)));
        assert_eq!(range_of(symbols, "[nvme]"), None);
    }
}
