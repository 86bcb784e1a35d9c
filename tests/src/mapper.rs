// SPDX-License-Identifier: GPL-2.0-only
//! A device-mapper device on top of another device. There is one at a time.

use crate::guest;
use crate::outcome::Outcome;

const NAME: &str = "vm-suite";

pub struct Mapped {
    node: String,
}

impl Mapped {
    /// `table` as `dmsetup create` takes it.
    pub fn new(table: &str) -> Outcome<Mapped> {
        guest::ok(&["dmsetup", "create", "--noudevsync", NAME, "--uuid", NAME, "--table", table])?;
        let columns = ["info", "-c", "--noheadings", "-o", "blkdevname", NAME];
        let name = guest::ok(&[&["dmsetup"], &columns[..]].concat())?;
        Ok(Mapped { node: format!("/dev/{}", name.trim()) })
    }

    pub fn node(&self) -> &str {
        &self.node
    }

    /// Replaces the table; requests in flight finish first. A file system above does not learn
    /// of it.
    pub fn becomes(&self, table: &str) -> Outcome {
        guest::ok(&["dmsetup", "reload", NAME, "--table", table])?;
        guest::ok(&["dmsetup", "resume", "--nolockfs", "--noudevsync", NAME]).map(drop)
    }

    pub fn remove(self) -> Outcome {
        remove()
    }
}

fn remove() -> Outcome {
    guest::ok(&["dmsetup", "remove", "--noudevsync", NAME]).map(drop)
}

/// Removes what a case has left. Returns what it was, and why it cannot be removed.
pub fn remove_all() -> Vec<String> {
    if !guest::exists(&format!("/dev/mapper/{NAME}")) {
        return Vec::new();
    }
    let mut left = vec![format!("the mapped device {NAME}")];
    left.extend(remove().err());
    left
}
