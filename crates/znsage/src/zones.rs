// SPDX-License-Identifier: GPL-2.0-only
//! Reads the zones of a device with the BLKREPORTZONE ioctl.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// The ioctl counts in sectors of 512 bytes for every device.
const SECTOR: u64 = 512;

/// Zones per call: a reply of 16 KiB.
const BATCH: usize = 256;

const TYPE_SEQUENTIAL_REQUIRED: u8 = 2;
const COND_EMPTY: u8 = 0x1;
const COND_READONLY: u8 = 0xd;
const COND_OFFLINE: u8 = 0xf;

/// The kernel sets this flag if `BlkZone::capacity` is valid (since Linux 5.9).
const REPORT_CAPACITY: u32 = 1;

/// `struct blk_zone` of linux/blkzoned.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct BlkZone {
    start: u64,
    len: u64,
    wp: u64,
    kind: u8,
    cond: u8,
    non_seq: u8,
    reset: u8,
    resv: [u8; 4],
    capacity: u64,
    reserved: [u8; 24],
}

/// `struct blk_zone_report`; the zones follow it.
#[repr(C)]
pub struct BlkZoneReport {
    sector: u64,
    nr_zones: u32,
    flags: u32,
}

#[repr(C)]
struct Answer {
    head: BlkZoneReport,
    zones: [BlkZone; BATCH],
}

// SAFETY (of the function that the macro makes): the caller passes a report
// with room for `nr_zones` zones behind it.
nix::ioctl_readwrite!(blk_report_zones, 0x12, 130, BlkZoneReport);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Empty,
    /// Partly or fully written.
    Written,
    /// Read-only or offline.
    Dead,
}

#[derive(Clone, Copy, Debug)]
pub struct Zone {
    /// Bytes that can be written.
    pub capacity: u64,
    /// False for conventional zones.
    pub sequential: bool,
    pub state: State,
}

impl BlkZone {
    fn translate(&self, flags: u32) -> Zone {
        let sectors = if flags & REPORT_CAPACITY != 0 { self.capacity } else { self.len };
        Zone {
            capacity: sectors * SECTOR,
            sequential: self.kind == TYPE_SEQUENTIAL_REQUIRED,
            state: match self.cond {
                COND_EMPTY => State::Empty,
                COND_READONLY | COND_OFFLINE => State::Dead,
                _ => State::Written,
            },
        }
    }
}

/// All zones of an open device, in order.
pub fn report(device: &File) -> io::Result<Vec<Zone>> {
    let mut zones = Vec::new();
    let mut next = 0;
    loop {
        // SAFETY: the struct holds integers only; zero is a value of each.
        let mut answer: Box<Answer> = Box::new(unsafe { std::mem::zeroed() });
        answer.head.sector = next;
        answer.head.nr_zones = BATCH as u32;
        let report = std::ptr::from_mut(&mut *answer).cast::<BlkZoneReport>();
        // SAFETY: `report` points to an Answer: the head and room for BATCH zones,
        // as `nr_zones` says.
        unsafe { blk_report_zones(device.as_raw_fd(), report) }?;
        let got = (answer.head.nr_zones as usize).min(BATCH);
        let Some(last) = answer.zones[..got].last() else {
            return Ok(zones);
        };
        next = last.start + last.len;
        let flags = answer.head.flags;
        zones.extend(answer.zones[..got].iter().map(|z| z.translate(flags)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[test]
    fn layout_matches_the_kernel() {
        assert_eq!(size_of::<BlkZone>(), 64);
        assert_eq!(offset_of!(BlkZone, wp), 16);
        assert_eq!(offset_of!(BlkZone, kind), 24);
        assert_eq!(offset_of!(BlkZone, cond), 25);
        assert_eq!(offset_of!(BlkZone, capacity), 32);
        assert_eq!(size_of::<BlkZoneReport>(), 16);
        assert_eq!(offset_of!(BlkZoneReport, nr_zones), 8);
        assert_eq!(offset_of!(BlkZoneReport, flags), 12);
        assert_eq!(offset_of!(Answer, zones), 16);
    }

    #[test]
    fn ioctl_number_matches_the_kernel() {
        assert_eq!(
            nix::request_code_readwrite!(0x12, 130, size_of::<BlkZoneReport>()),
            0xc010_1282
        );
    }

    #[test]
    fn capacity_may_be_smaller_than_the_zone() {
        let zone = BlkZone {
            start: 0,
            len: 8192,
            wp: 0,
            kind: TYPE_SEQUENTIAL_REQUIRED,
            cond: COND_EMPTY,
            non_seq: 0,
            reset: 0,
            resv: [0; 4],
            capacity: 6144,
            reserved: [0; 24],
        };
        assert_eq!(zone.translate(REPORT_CAPACITY).capacity, 3 << 20);
        assert_eq!(zone.translate(0).capacity, 4 << 20);
        assert_eq!(zone.translate(0).state, State::Empty);
        let conventional = BlkZone { kind: 1, cond: 0, ..zone };
        assert!(!conventional.translate(0).sequential);
    }
}
