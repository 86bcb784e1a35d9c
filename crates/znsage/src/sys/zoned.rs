// SPDX-License-Identifier: GPL-2.0-only
//! Zone commands, for `probe` to time: reset and finish through the block layer,
//! append through the NVMe driver.
#![allow(unsafe_code)]

use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::{Appends, Lane, ZoneCommand};
use crate::interrupt;

/// The unit of the block layer's ioctls.
const SECTOR: u64 = 512;

/// `struct blk_zone_range` of linux/blkzoned.h.
#[repr(C)]
pub struct BlkZoneRange {
    sector: u64,
    nr_sectors: u64,
}

// SAFETY (of the functions that the macros make): the caller passes a range.
nix::ioctl_write_ptr!(blk_reset_zone, 0x12, 131, BlkZoneRange);
nix::ioctl_write_ptr!(blk_finish_zone, 0x12, 136, BlkZoneRange);

/// Sends the command to all zones in a range; returns how long it took.
pub fn command(path: &str, command: ZoneCommand, start: u64, length: u64) -> io::Result<Duration> {
    let device = OpenOptions::new().write(true).open(path)?;
    let begun = Instant::now();
    send(&device, command, start, length)?;
    Ok(begun.elapsed())
}

fn send(device: &File, command: ZoneCommand, start: u64, length: u64) -> io::Result<()> {
    let range = BlkZoneRange { sector: start / SECTOR, nr_sectors: length / SECTOR };
    // SAFETY: both ioctls only read the range, which outlives the call.
    unsafe {
        match command {
            ZoneCommand::Reset => blk_reset_zone(device.as_raw_fd(), &range),
            ZoneCommand::Finish => blk_finish_zone(device.as_raw_fd(), &range),
        }
    }?;
    Ok(())
}

/// `struct nvme_passthru_cmd` of linux/nvme_ioctl.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct PassthruCmd {
    opcode: u8,
    flags: u8,
    rsvd1: u16,
    nsid: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    addr: u64,
    metadata_len: u32,
    data_len: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}

// SAFETY (of the functions that the macros make): the caller passes a command
// whose address points to `data_len` bytes.
nix::ioctl_none_bad!(nvme_id, nix::request_code_none!(b'N', 0x40));
nix::ioctl_readwrite!(nvme_io, b'N', 0x43, PassthruCmd);

const ZONE_APPEND: u8 = 0x7d;

/// A page-aligned buffer.
struct Buffer {
    at: *mut u8,
    layout: Layout,
}

impl Buffer {
    fn new(bytes: usize) -> io::Result<Buffer> {
        let layout = Layout::from_size_align(bytes.max(1), 4096)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
        // SAFETY: the layout is not empty.
        let at = unsafe { alloc_zeroed(layout) };
        match at.is_null() {
            true => Err(io::ErrorKind::OutOfMemory.into()),
            false => Ok(Buffer { at, layout }),
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout and is freed once.
        unsafe { dealloc(self.at, self.layout) }
    }
}

/// Appends with a thread per lane for the given time. Lanes with the same zones share
/// them. A lane whose zones are full ends early.
pub fn appends(what: &Appends) -> io::Result<Vec<Lane>> {
    let device = OpenOptions::new().read(true).write(true).open(&what.path)?;
    // SAFETY: it takes no argument.
    let nsid = unsafe { nvme_id(device.as_raw_fd()) }? as u32;
    let at: Vec<AtomicUsize> = what.lanes.iter().map(|_| AtomicUsize::new(0)).collect();
    std::thread::scope(|scope| {
        let lane = |i: usize| {
            // Lanes that share zones share the index of the current one.
            let same = what.lanes.iter().position(|l| *l == what.lanes[i]).unwrap_or(i);
            let (device, at) = (&device, &at[same]);
            scope.spawn(move || append_lane(device, nsid, what, &what.lanes[i], at))
        };
        let threads: Vec<_> = (0..what.lanes.len()).map(lane).collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))
            .collect()
    })
}

fn append_lane(
    device: &File,
    nsid: u32,
    what: &Appends,
    zones: &[u64],
    at: &AtomicUsize,
) -> io::Result<Lane> {
    let buffer = Buffer::new(what.bytes as usize)?;
    let mut times = Histogram::<u64>::new(3).map_err(io::Error::other)?;
    let (begun, mut bytes) = (Instant::now(), 0);
    while begun.elapsed() < what.time && !interrupt::seen() {
        let now = at.load(Ordering::Acquire);
        let Some(zone) = zones.get(now) else { break };
        let lba = zone / what.block;
        let mut command = PassthruCmd {
            opcode: ZONE_APPEND,
            nsid,
            addr: buffer.at as u64,
            data_len: what.bytes as u32,
            cdw10: lba as u32,
            cdw11: (lba >> 32) as u32,
            cdw12: (what.bytes / what.block - 1) as u32,
            ..PassthruCmd::default()
        };
        let sent = Instant::now();
        // SAFETY: the command points to the buffer, which has that length and
        // outlives the call.
        let status = unsafe { nvme_io(device.as_raw_fd(), &mut command) }?;
        match status {
            0 => {
                let ns = sent.elapsed().as_nanos() as u64;
                // The histogram resizes itself.
                times.record(ns).map_err(io::Error::other)?;
                bytes += what.bytes;
            }
            s if zone_has_no_room(s) => {
                // Finish the zone, or it counts as active when the next one opens.
                send(device, ZoneCommand::Finish, *zone, what.zone)?;
                let _ = at.compare_exchange(now, now + 1, Ordering::AcqRel, Ordering::Acquire);
            }
            s => {
                return Err(io::Error::other(format!(
                    "the device refuses an append, status {s:#x}"
                )))
            }
        }
    }
    Ok(Lane { bytes, time: begun.elapsed(), times })
}

/// Zone Boundary Error or Zone Is Full, ignoring the Do Not Retry bit.
fn zone_has_no_room(status: i32) -> bool {
    matches!(status & 0x7ff, 0x1b8 | 0x1b9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[test]
    fn layouts_match_the_kernel() {
        assert_eq!(size_of::<BlkZoneRange>(), 16);
        assert_eq!(size_of::<PassthruCmd>(), 72);
        assert_eq!(offset_of!(PassthruCmd, addr), 24);
        assert_eq!(offset_of!(PassthruCmd, data_len), 36);
        assert_eq!(offset_of!(PassthruCmd, cdw10), 40);
        assert_eq!(offset_of!(PassthruCmd, result), 68);
    }

    #[test]
    fn ioctl_numbers_match_the_kernel() {
        assert_eq!(nix::request_code_write!(0x12, 131, size_of::<BlkZoneRange>()), 0x4010_1283);
        assert_eq!(nix::request_code_write!(0x12, 136, size_of::<BlkZoneRange>()), 0x4010_1288);
        assert_eq!(nix::request_code_none!(b'N', 0x40), 0x4e40);
        assert_eq!(nix::request_code_readwrite!(b'N', 0x43, size_of::<PassthruCmd>()), 0xc048_4e43);
    }

    #[test]
    fn full_zones_differ_from_errors() {
        assert!(zone_has_no_room(0x1b8) && zone_has_no_room(0x41b9));
        assert!(!zone_has_no_room(0x1ba) && !zone_has_no_room(0x02));
    }
}
