// SPDX-License-Identifier: GPL-2.0-only
//! A modelled SSD that is addressed by bytes, as a disk is.
//!
//! The models know nothing of the data; the plugin keeps that. Times are the model's.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use znsage_sim::device::params::Interface;
use znsage_sim::device::{ConventionalSsd, DeviceCounters, Fault, ParamError, Params, ZnsSsd};
use znsage_sim::time::{Ns, BLOCK};

/// Blocks of a write with which a new drive is filled.
const FILL: u32 = 64;

/// What is behind the disk.
#[derive(Debug)]
pub enum Ssd {
    /// Any block may be written; the drive collects garbage.
    Conventional(ConventionalSsd),
    /// QEMU's NVMe device keeps the states and write pointers of the zones. It writes
    /// below a write pointer never, and zeroes all of a zone to reset it.
    Zoned(ZnsSsd),
}

/// When a command completes, or why it failed.
pub type Done = Result<Ns, Fault>;

/// First block and number of all blocks that bytes touch.
fn blocks(offset: u64, bytes: u64) -> (u64, u64) {
    let first = offset / BLOCK;
    (first, (offset + bytes).div_ceil(BLOCK) - first)
}

impl Ssd {
    /// A drive of these parameters, with `size` bytes for the host.
    ///
    /// # Errors
    /// If the parameters and the size do not fit.
    pub fn new(params: &Params, size: u64) -> Result<Ssd, ParamError> {
        Ok(match params.interface {
            Interface::Conventional => {
                Ssd::Conventional(ConventionalSsd::new(params, Some(size), 1)?)
            }
            Interface::Zoned => Ssd::Zoned(ZnsSsd::new(params, Some(size), 1)?),
        })
    }

    /// Writes all of a conventional drive, then as many blocks again at random, as years
    /// of use would. A zoned one stays empty: no zone can be written before it is reset.
    /// Returns when that is done.
    pub fn wear(&mut self, seed: u64) -> Ns {
        let Ssd::Conventional(ssd) = self else { return 0 };
        let (all, mut now) = (ssd.blocks(), 0);
        for first in (0..all).step_by(FILL as usize) {
            now = ssd.write(now, first, FILL.min((all - first) as u32));
        }
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        for _ in 0..all {
            now = ssd.write(now, rng.random_range(0..all), 1);
        }
        now
    }

    /// Counters since the drive was made.
    pub fn counters(&self) -> &DeviceCounters {
        match self {
            Ssd::Conventional(ssd) => ssd.counters(),
            Ssd::Zoned(ssd) => ssd.counters(),
        }
    }

    /// Reads; returns the completion time, as all of the following do. Callers come in
    /// order of `now`.
    pub fn read(&mut self, now: Ns, offset: u64, bytes: u64) -> Done {
        let (first, count) = blocks(offset, bytes);
        match self {
            Ssd::Conventional(ssd) => Ok(ssd.read(now, first, count as u32)),
            Ssd::Zoned(ssd) => each_zone(ssd, first, count, |ssd, zone, offset, count| {
                // QEMU answers a read above the write pointer, and its writes may pass
                // one another on their way here: such blocks are in no flash yet.
                let written = ssd.zone(zone).write_pointer.saturating_sub(offset).min(count);
                match written {
                    0 => Ok(now),
                    _ => ssd.read(now, zone, offset, written),
                }
            }),
        }
    }

    /// Writes.
    pub fn write(&mut self, now: Ns, offset: u64, bytes: u64) -> Done {
        let (first, count) = blocks(offset, bytes);
        match self {
            Ssd::Conventional(ssd) => Ok(ssd.write(now, first, count as u32)),
            Ssd::Zoned(ssd) => each_zone(ssd, first, count, |ssd, zone, _, count| {
                // In order of arrival, as appends are placed.
                ssd.append(now, zone, count).map(|appended| appended.done)
            }),
        }
    }

    /// Frees blocks that lie in the range as a whole.
    pub fn trim(&mut self, now: Ns, offset: u64, bytes: u64) -> Done {
        let Ssd::Conventional(ssd) = self else { return Ok(now) };
        let (first, end) = (offset.div_ceil(BLOCK), (offset + bytes) / BLOCK);
        Ok(match end.saturating_sub(first) {
            0 => now,
            count => ssd.trim(now, first, count),
        })
    }

    /// Zeroes: a reset, if it is all of a zone. A conventional drive only frees the blocks,
    /// whose data the plugin zeroes.
    pub fn zero(&mut self, now: Ns, offset: u64, bytes: u64) -> Done {
        let Ssd::Zoned(ssd) = self else { return self.trim(now, offset, bytes) };
        let (first, count) = blocks(offset, bytes);
        let size = ssd.geometry().zone_size_blocks;
        each_zone(ssd, first, count, |ssd, zone, _, count| match count == size {
            true => ssd.reset(now, zone),
            false => Ok(now),
        })
    }
}

/// Calls `act` with zone, offset and number of blocks for each part of a range; returns the
/// latest time.
fn each_zone(
    ssd: &mut ZnsSsd,
    mut first: u64,
    mut count: u64,
    mut act: impl FnMut(&mut ZnsSsd, u32, u32, u32) -> Done,
) -> Done {
    let size = u64::from(ssd.geometry().zone_size_blocks);
    let mut done = 0;
    while count > 0 {
        let (zone, offset) = (first / size, first % size);
        let part = count.min(size - offset);
        done = done.max(act(ssd, zone as u32, offset as u32, part as u32)?);
        (first, count) = (first + part, count - part);
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn zoned() -> Ssd {
        let set = [("zone_size", "4 MiB"), ("zone_capacity", "4 MiB")];
        let set = set.map(|(key, value)| (format!("zoned.{key}"), value.to_string()));
        Ssd::new(&Params::load("zn540", &set).unwrap(), 64 * MIB).unwrap()
    }

    fn conventional() -> Ssd {
        Ssd::new(&Params::load("conventional", &[]).unwrap(), 128 * MIB).unwrap()
    }

    #[test]
    fn a_worn_drive_copies_and_one_whose_blocks_were_trimmed_does_not() {
        let mut ssd = conventional();
        let now = ssd.wear(1);
        let copied = ssd.counters().copied_blocks;
        assert!(copied > 128 * MIB / BLOCK, "{copied}");
        let mut now = ssd.trim(now, 0, 128 * MIB).unwrap();
        for offset in (0..128 * MIB).step_by(MIB as usize) {
            now = ssd.write(now, offset, MIB).unwrap();
        }
        // What its victim held at the time of the trim.
        let more = ssd.counters().copied_blocks - copied;
        assert!(more < 1000, "{more}");
    }

    #[test]
    fn zeroing_a_zone_resets_it() {
        let mut ssd = zoned();
        let mut now = 0;
        for round in 1..=3 {
            for offset in (4 * MIB..8 * MIB).step_by(MIB as usize) {
                now = ssd.write(now, offset, MIB).unwrap();
            }
            now = ssd.zero(now, 4 * MIB, 4 * MIB).unwrap();
            assert_eq!(ssd.counters().resets, round);
            assert_eq!(ssd.counters().written_blocks, round * 4 * MIB / BLOCK);
        }
        let part = ssd.zero(now, 0, MIB).unwrap();
        assert_eq!((part, ssd.counters().resets), (now, 3));
    }

    #[test]
    fn reads_above_the_write_pointer_cost_nothing() {
        let mut ssd = zoned();
        assert_eq!(ssd.read(5, 0, BLOCK), Ok(5));
        let now = ssd.write(5, 0, MIB).unwrap();
        assert!(ssd.read(now, 0, BLOCK).unwrap() > now);
        assert_eq!(ssd.read(now, 3 * MIB, BLOCK), Ok(now));
    }

    #[test]
    fn writes_into_a_full_zone_fail() {
        let mut ssd = zoned();
        for _ in 0..4 {
            ssd.write(0, 0, MIB).unwrap();
        }
        assert!(ssd.write(0, 0, BLOCK).is_err());
        ssd.zero(0, 0, 4 * MIB).unwrap();
        ssd.write(0, 0, BLOCK).unwrap();
    }

    #[test]
    fn bytes_are_counted_in_all_blocks_that_they_touch() {
        assert_eq!(blocks(0, 1), (0, 1));
        assert_eq!(blocks(4095, 2), (0, 2));
        assert_eq!(blocks(8192, 4096), (2, 1));
    }
}
