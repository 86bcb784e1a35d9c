// SPDX-License-Identifier: GPL-2.0-only
//! Resets zones through the block layer.
#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;

/// The unit of the block layer's ioctls.
const SECTOR: u64 = 512;

/// `struct blk_zone_range` of linux/blkzoned.h.
#[repr(C)]
pub struct BlkZoneRange {
    sector: u64,
    nr_sectors: u64,
}

// SAFETY (of the function that the macro makes): the caller passes a range.
nix::ioctl_write_ptr!(blk_reset_zone, 0x12, 131, BlkZoneRange);

/// Resets all zones in a range.
pub fn reset(path: &str, start: u64, length: u64) -> io::Result<()> {
    let device = OpenOptions::new().write(true).open(path)?;
    let range = BlkZoneRange { sector: start / SECTOR, nr_sectors: length / SECTOR };
    // SAFETY: the ioctl only reads the range, which outlives the call.
    unsafe { blk_reset_zone(device.as_raw_fd(), &range) }?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ioctl_number_matches_the_kernel() {
        let size = std::mem::size_of::<BlkZoneRange>();
        assert_eq!(nix::request_code_write!(0x12, 131, size), 0x4010_1283);
    }
}
