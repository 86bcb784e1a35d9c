// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's log. An alarming line fails the running case, unless the case has allowed it.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use crate::outcome::{Context, Outcome};

/// Words that no healthy kernel logs.
const ALARMS: &[&str] = &[
    "WARNING:",
    "BUG:",
    "BUG ",
    "Oops",
    "Call Trace",
    "general protection",
    "Kernel panic",
    "INFO: task",
    "blocked for more than",
    "soft lockup",
    "hard LOCKUP",
    "rcu: INFO",
    "rcu_sched",
    "possible recursive locking",
    "circular locking",
    "inconsistent lock state",
    "suspicious RCU",
    "sleeping function called",
    "KASAN",
    "UBSAN",
    "suspected memory leak",
    "lockdep is turned off",
    "refcount_t",
    "corruption",
    "invariant broken",
    "allocation failure",
    "Out of memory",
    "oom-kill",
    "Bad swap",
    "Bad page",
    "on swap-device",
    "Unused swap offset",
    "I/O error",
    "scheduling while atomic",
];

/// Alarming words in the module's own lines.
const OWN_ALARMS: &[&str] = &["failed", "refused", "cannot", "not enough"];

/// Logged for every unsigned module.
const UNSIGNED: &str = "module verification failed";

pub fn alarming(line: &str) -> bool {
    if line.contains(UNSIGNED) {
        return false;
    }
    ALARMS.iter().any(|words| line.contains(words))
        || line.starts_with("znsage") && OWN_ALARMS.iter().any(|words| line.contains(words))
}

pub struct Log {
    kmsg: File,
    allowed: Vec<String>,
    /// Lines since the case began.
    lines: Vec<String>,
    /// The kernel overwrote lines before they were read.
    lost: bool,
}

impl Log {
    /// Starts with the lines that are logged from now on.
    pub fn open() -> Outcome<Log> {
        let mut options = OpenOptions::new();
        let kmsg = options.read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg");
        let mut kmsg = kmsg.context("/dev/kmsg")?;
        kmsg.seek(SeekFrom::End(0)).context("/dev/kmsg")?;
        Ok(Log { kmsg, allowed: Vec::new(), lines: Vec::new(), lost: false })
    }

    /// Lines with these words are no alarm until the case ends.
    pub fn allow(&mut self, words: &str) {
        self.allowed.push(words.to_string());
    }

    /// Whether a line with these words was logged since the case began.
    pub fn has(&mut self, words: &str) -> bool {
        self.keep_up();
        self.lines.iter().any(|line| line.contains(words))
    }

    /// Number of lines with any of these words since the case began.
    pub fn count(&mut self, words: &[&str]) -> usize {
        self.keep_up();
        self.lines.iter().filter(|line| words.iter().any(|words| line.contains(words))).count()
    }

    /// Ends a case; returns the alarms that it did not allow.
    pub fn alarms(&mut self) -> Vec<String> {
        self.keep_up();
        let allowed = std::mem::take(&mut self.allowed);
        let lines = std::mem::take(&mut self.lines);
        let mut alarms: Vec<String> = lines
            .into_iter()
            .filter(|line| alarming(line) && !allowed.iter().any(|words| line.contains(words)))
            .collect();
        if std::mem::take(&mut self.lost) {
            alarms.push("(lines were lost: the log was overwritten)".to_string());
        }
        alarms
    }

    /// Reads new lines. Cases that make the kernel log more than its buffer holds call this
    /// themselves.
    pub fn keep_up(&mut self) {
        let mut record = [0; 8192];
        loop {
            match self.kmsg.read(&mut record) {
                Ok(0) => return,
                Ok(n) => self.lines.extend(text_of(&String::from_utf8_lossy(&record[..n]))),
                Err(e) if e.kind() == ErrorKind::BrokenPipe => self.lost = true,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}

/// A record is "priority,number,time,flags;text", followed by lines of details.
fn text_of(record: &str) -> Option<String> {
    let (_, text) = record.split_once(';')?;
    Some(text.lines().next()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_taken_apart() {
        let record = "6,339,5140900,-;znsage: a: b; c\n SUBSYSTEM=block\n";
        assert_eq!(text_of(record).as_deref(), Some("znsage: a: b; c"));
        assert_eq!(text_of("junk"), None);
    }

    #[test]
    fn alarms_are_told_from_news() {
        for line in [
            "WARNING: CPU: 0 PID: 12 at mm/swapfile.c:1",
            "znsage: invariant broken: z->moving < entries",
            "znsage: nvme0n1: append to zone 3 failed (-5)",
            "INFO: task swapoff:1 blocked for more than 30 seconds.",
            "BUG: KASAN: slab-use-after-free in znsage_end_io+0x10/0x20 [znsage]",
            "UBSAN: shift-out-of-bounds in kmod/disk.c:1:2",
            "BUG: KCSAN: data-race in zse_free [znsage] / zse_read [znsage]",
            "WARNING: possible circular locking dependency detected",
            "WARNING: suspicious RCU usage",
            "BUG: sleeping function called from invalid context at mm/slab.h:1",
            "BUG kmalloc-64 (Tainted: G           O      ): Poison overwritten",
            "pagealloc: memory corruption",
            "ODEBUG: free active (active state 0) object type: timer_list",
            "kmemleak: 1 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
            "BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0",
            "INFO: lockdep is turned off.",
        ] {
            assert!(alarming(line), "{line}");
        }
        for line in [
            "znsage: nvme0n1: znsage0 on nvme0n1: 100 MiB in 128 zones",
            "Adding 100000k swap on /dev/znsage0.  Priority:-2 extents:1 across:100000k SS",
            "null_blk: disk nullb0 created",
            "znsage: module verification failed: signature and/or required key missing",
        ] {
            assert!(!alarming(line), "{line}");
        }
    }
}
