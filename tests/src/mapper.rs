// SPDX-License-Identifier: GPL-2.0-only
//! A device that the device mapper makes of another one. There is one at a time.

use crate::guest;
use crate::outcome::Outcome;

const NAME: &str = "vm-suite";

pub struct Mapped {
    node: String,
}

impl Mapped {
    /// `table` as `dmsetup create` takes it.
    pub fn new(table: &str) -> Outcome<Mapped> {
        guest::ok(&["dmsetup", "create", "--noudevsync", NAME, "--table", table])?;
        let columns = ["info", "-c", "--noheadings", "-o", "blkdevname", NAME];
        let name = guest::ok(&[&["dmsetup"], &columns[..]].concat())?;
        Ok(Mapped { node: format!("/dev/{}", name.trim()) })
    }

    pub fn node(&self) -> &str {
        &self.node
    }

    /// Made of something else from now on; what is under way ends first.
    pub fn becomes(&self, table: &str) -> Outcome {
        guest::ok(&["dmsetup", "reload", NAME, "--table", table])?;
        guest::ok(&["dmsetup", "resume", "--noudevsync", NAME]).map(drop)
    }

    pub fn remove(self) -> Outcome {
        remove()
    }
}

fn remove() -> Outcome {
    guest::ok(&["dmsetup", "remove", "--noudevsync", NAME]).map(drop)
}

/// Takes down what a case has left; says what it was, and why it does not go.
pub fn remove_all() -> Vec<String> {
    if !guest::exists(&format!("/dev/mapper/{NAME}")) {
        return Vec::new();
    }
    let mut left = vec![format!("the mapped device {NAME}")];
    left.extend(remove().err());
    left
}
