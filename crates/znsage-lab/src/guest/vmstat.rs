// SPDX-License-Identifier: GPL-2.0-only
//! Pages that were swapped since the boot.

use std::path::Path;

use crate::files;
use crate::result::Result;

/// Both numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Swapped {
    /// Pages that came back to memory: from the device, or from zswap.
    pub pages_in: u64,
    /// Pages that left memory: to the device, or into zswap. Pages that zswap writes to the
    /// device later do not count again.
    pub pages_out: u64,
}

impl Swapped {
    pub fn now() -> Result<Swapped> {
        Swapped::parse(&files::read(Path::new("/proc/vmstat"))?)
    }

    fn parse(vmstat: &str) -> Result<Swapped> {
        let find = |name: &str| -> Option<u64> {
            let mut lines = vmstat.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
        };
        let stock = |name| find(name).ok_or_else(|| format!("/proc/vmstat has no {name}"));
        let zswap = |name| find(name).unwrap_or(0);
        Ok(Swapped {
            pages_in: stock("pswpin")? + zswap("zswpin"),
            pages_out: stock("pswpout")? + zswap("zswpout") - zswap("zswpwb"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zswap_counts_once() {
        let stock = "pswpin 5\npswpout 100\n";
        assert_eq!(Swapped::parse(stock), Ok(Swapped { pages_in: 5, pages_out: 100 }));
        // 30 of the 100 went through zswap, which has 20 more.
        let zswap = format!("{stock}zswpin 1\nzswpout 50\nzswpwb 30\n");
        assert_eq!(Swapped::parse(&zswap), Ok(Swapped { pages_in: 6, pages_out: 120 }));
        assert!(Swapped::parse("pswpin 5\n").is_err());
    }
}
