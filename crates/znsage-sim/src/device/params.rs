// SPDX-License-Identifier: GPL-2.0-only
//! The schema of the parameter files.
//!
//! Users copy a file of `devices/` and edit it. Each value there carries its
//! source or is marked as assumed. `load.rs` reads the files, `check.rs`
//! validates them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::time::{from_us, to_us, Ns, BLOCK};

/// The interface to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interface {
    /// Zones that are appended to and reset: needs the table `[zoned]`.
    Zoned,
    /// Any block may be written at any time: needs `[conventional]`.
    Conventional,
}

/// A parameter set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// A short name, for reports.
    pub name: String,
    /// One-line description.
    pub about: String,
    /// The interface to the host.
    pub interface: Interface,
    /// The flash chips.
    pub media: Media,
    /// Controller, link and write buffer.
    pub controller: Controller,
    /// The zoned interface.
    pub zoned: Option<Zoned>,
    /// The flash translation layer of a conventional SSD.
    pub conventional: Option<Conventional>,
    /// The commands of ZNS+, if the zoned device has them.
    pub zns_plus: Option<ZnsPlus>,
}

/// The flash chips.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Media {
    /// Buses between the controller and the chips.
    pub channels: u32,
    /// Dies in all; die `d` is on channel `d % channels`.
    pub dies: u32,
    /// Planes of a die; they read and program together.
    pub planes: u32,
    /// Flash page of one plane, bytes.
    #[serde(deserialize_with = "bytes")]
    pub page: u64,
    /// Pages of a plane that one program operation writes: 1 for SLC, 3 for
    /// TLC that is programmed in one shot.
    pub pages_per_program: u32,
    /// Reading a block of 4 KiB or less from the cells.
    #[serde(rename = "read_us", with = "us")]
    pub read: Ns,
    /// Reading more than a block of a page (of all planes) from the cells.
    #[serde(rename = "read_page_us", with = "us")]
    pub read_page: Ns,
    /// One program operation.
    #[serde(rename = "program_us", with = "us")]
    pub program: Ns,
    /// A program can be suspended for reads after each slice of this length; 0: reads
    /// wait for its end.
    #[serde(rename = "program_slice_us", with = "us")]
    pub program_slice: Ns,
    /// Time a program loses per suspension.
    #[serde(rename = "program_resume_us", with = "us")]
    pub program_resume: Ns,
    /// Maximum reads per suspension.
    pub reads_per_suspend: u32,
    /// What a read of the cells takes more or less: points (share of the reads from 0 to
    /// 1, microseconds), linear in between; none: it does not vary.
    #[serde(default)]
    pub read_jitter_us: Vec<(f64, f64)>,
    /// The same of a program operation.
    #[serde(default)]
    pub program_jitter_us: Vec<(f64, f64)>,
    /// Erasing an erase block.
    #[serde(rename = "erase_us", with = "us")]
    pub erase: Ns,
    /// Rate of a channel, 10^6 bytes a second.
    #[serde(rename = "channel_mb_s", with = "mb_s")]
    pub channel: u64,
}

/// Controller, link and write buffer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Commands that the device works on at a time; 0: no limit.
    pub queue_depth: u32,
    /// Latency of a read besides media and transfer.
    #[serde(rename = "read_us", with = "us")]
    pub read: Ns,
    /// Latency of a write into the write buffer, before its transfer.
    #[serde(rename = "write_us", with = "us")]
    pub write: Ns,
    /// What the latency of a write is more or less, as `media.read_jitter_us`.
    #[serde(default)]
    pub write_jitter_us: Vec<(f64, f64)>,
    /// Extra latency of an append over a write.
    #[serde(rename = "append_extra_us", with = "us")]
    pub append_extra: Ns,
    /// Controller time of a read command: the inverse of the maximum command rate.
    #[serde(rename = "read_command_us", with = "us")]
    pub read_command: Ns,
    /// Extra controller time per 4 KiB after the first.
    #[serde(rename = "read_command_block_us", with = "us")]
    pub read_command_block: Ns,
    /// Controller time of a write command.
    #[serde(rename = "write_command_us", with = "us")]
    pub write_command: Ns,
    /// Controller time of an append command.
    #[serde(rename = "append_command_us", with = "us")]
    pub append_command: Ns,
    /// Writes and appends below this size are transferred as if they had it, ...
    #[serde(deserialize_with = "bytes")]
    pub small_write: u64,
    /// ... and take this much more controller time.
    #[serde(rename = "small_write_command_us", with = "us")]
    pub small_write_command: Ns,
    /// Extra latency of a write while another is in flight.
    #[serde(rename = "overlap_us", with = "us")]
    pub overlap: Ns,
    /// Bytes a second to the host, in 10^6.
    #[serde(rename = "link_read_mb_s", with = "mb_s")]
    pub link_read: u64,
    /// Bytes a second from the host, in 10^6.
    #[serde(rename = "link_write_mb_s", with = "mb_s")]
    pub link_write: u64,
    /// Bytes a second from the write buffer to all chips, in 10^6; 0: only
    /// the chips limit it.
    #[serde(rename = "drain_mb_s", with = "mb_s")]
    pub drain: u64,
    /// Write buffer, bytes.
    #[serde(deserialize_with = "bytes")]
    pub buffer: u64,
    /// Is a write complete once it is in the buffer?
    pub early_completion: bool,
    /// Writes of 256 KiB that may wait for buffer room before reads wait too.
    pub waiting_writes: u32,
}

/// The zoned interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zoned {
    /// Zones.
    pub zones: u32,
    /// Zone size: bytes between the starts of two zones.
    #[serde(deserialize_with = "bytes")]
    pub zone_size: u64,
    /// Zone capacity, bytes.
    #[serde(deserialize_with = "bytes")]
    pub zone_capacity: u64,
    /// Write unit, bytes.
    #[serde(deserialize_with = "bytes")]
    pub write_unit: u64,
    /// Open zones at a time; 0: no limit.
    pub max_open: u32,
    /// Active zones at a time; 0: no limit.
    pub max_active: u32,
    /// Largest append, bytes.
    #[serde(deserialize_with = "bytes")]
    pub max_append: u64,
    /// Does the kernel emulate zone append by writes, so that a zone takes one write at
    /// a time?
    #[serde(default)]
    pub emulated_append: bool,
    /// Dies a zone is striped over.
    pub dies_per_zone: u32,
    /// Latency of an explicit open.
    #[serde(rename = "open_us", with = "us")]
    pub open: Ns,
    /// Latency of an explicit close.
    #[serde(rename = "close_us", with = "us")]
    pub close: Ns,
    /// Extra latency of the first write to an empty zone.
    #[serde(rename = "first_write_us", with = "us")]
    pub first_write: Ns,
    /// Reset of a full or partly written zone: points (occupancy from 0 to 1,
    /// microseconds), linear in between.
    pub reset_us: Vec<(f64, f64)>,
    /// Reset of a finished zone, by its occupancy before the finish.
    pub reset_finished_us: Vec<(f64, f64)>,
    /// Rate at which finish fills the rest of a zone, 10^6 bytes a second; 0: it fills
    /// nothing.
    #[serde(rename = "finish_mb_s", with = "mb_s")]
    pub finish: u64,
    /// Finish of an empty zone, which is not filled.
    #[serde(rename = "finish_empty_us", with = "us")]
    pub finish_empty: Ns,
    /// Shortest finish of one that is not empty.
    #[serde(rename = "finish_us", with = "us")]
    pub finish_min: Ns,
    /// Does a reset occupy the zone's dies, or is the erase deferred at no cost?
    pub reset_occupies_dies: bool,
}

/// Which full superblock garbage collection empties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Victim {
    /// The one with the fewest valid blocks.
    Greedy,
    /// The oldest.
    Fifo,
}

/// The commands of ZNS+ (`zone_compaction`, `TL_open`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZnsPlus {
    /// May data move within a chip without leaving it?
    pub copyback: bool,
    /// Latency of `zone_compaction`, `TL_open` and the end of a log, besides the flash
    /// work.
    #[serde(rename = "command_us", with = "us")]
    pub command: Ns,
}

/// The flash translation layer of a conventional SSD.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conventional {
    /// Bytes of flash.
    #[serde(deserialize_with = "bytes")]
    pub flash: u64,
    /// Flash hidden from the host, as a part of what the host sees.
    pub over_provisioning: f64,
    /// The part of what the host sees that is measured, as a partition; ...
    pub partition: f64,
    /// ... and the part that holds other data, which stay as they are. What is left is trimmed.
    pub other_data: f64,
    /// Bytes of a superblock, the unit of garbage collection: an erase block
    /// of each plane of each die.
    #[serde(deserialize_with = "bytes")]
    pub superblock: u64,
    /// Garbage collection starts at this many free superblocks.
    pub gc_low: u32,
    /// Which full superblock is emptied.
    pub gc_victim: Victim,
    /// When the victim is emptied.
    pub gc_pace: Pace,
    /// Controller time of a TRIM command, ...
    #[serde(rename = "trim_us", with = "us")]
    pub trim: Ns,
    /// ... plus this per 4 KiB.
    #[serde(rename = "trim_block_us", with = "us")]
    pub trim_block: Ns,
    /// TRIM frees only whole, aligned ranges of this size, bytes.
    #[serde(deserialize_with = "bytes")]
    pub trim_granularity: u64,
    /// Flexible Data Placement: what is written to each of so many streams gets
    /// superblocks of its own.
    pub write_streams: u32,
}

/// When garbage collection empties its victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pace {
    /// All of it at once, while writes wait.
    Burst,
    /// A little with each write, so that the victim is empty when its room is needed.
    Even,
}

/// A duration: a number of microseconds, with or without a fraction.
mod us {
    use super::*;

    pub fn serialize<S: Serializer>(time: &Ns, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_f64(to_us(*time))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Ns, D::Error> {
        let us = f64::deserialize(d)?;
        match (0.0..1e12).contains(&us) {
            true => Ok(from_us(us)),
            false => Err(serde::de::Error::custom(format!("{us} is no number of microseconds"))),
        }
    }
}

/// A rate: a number of 10^6 bytes a second.
mod mb_s {
    use super::*;

    pub fn serialize<S: Serializer>(rate: &u64, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_f64(*rate as f64 / 1e6)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
        let mb = f64::deserialize(d)?;
        match (0.0..1e9).contains(&mb) {
            true => Ok((mb * 1e6).round() as u64),
            false => Err(serde::de::Error::custom(format!("{mb} is no rate in MB/s"))),
        }
    }
}

/// A size: bytes as a number, or a string such as "192 KiB" or "1 TB".
pub(crate) fn bytes<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a size: a number of bytes or a string like \"96 MiB\"")]
    enum Size {
        Number(u64),
        Text(String),
    }
    match Size::deserialize(d)? {
        Size::Number(n) => Ok(n),
        Size::Text(t) => parse_size(&t).ok_or_else(|| {
            serde::de::Error::custom(format!("\"{t}\" is no size; try \"96 MiB\" or \"1 TB\""))
        }),
    }
}

/// Digits after the point of a size.
const MAX_FRACTION: usize = 9;

/// Parses "4096", "192 KiB" or "96M" (binary), "1 TB" (decimal) into bytes. A
/// fraction is fine if it yields whole bytes.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let unit: u64 = match text[digits..].trim() {
        "" | "B" => 1,
        "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        "T" | "TiB" => 1 << 40,
        "KB" | "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = text[..digits].split_once('.').unwrap_or((&text[..digits], ""));
    if whole.len() + fraction.len() == 0 || fraction.len() > MAX_FRACTION {
        return None;
    }
    // In integers: as a float, 2^53 + 1 bytes would be 2^53.
    let number: u128 = format!("{whole}{fraction}").parse().ok()?;
    let (bytes, scale) = (number.checked_mul(unit.into())?, 10u128.pow(fraction.len() as u32));
    (bytes % scale == 0 && bytes / scale < 1 << 63).then_some((bytes / scale) as u64)
}

impl Media {
    /// Bytes that one read of the cells returns: a page of each plane.
    pub fn sense(&self) -> u64 {
        self.page * u64::from(self.planes)
    }

    /// Bytes that one program operation writes.
    pub fn program_unit(&self) -> u64 {
        self.sense() * u64::from(self.pages_per_program)
    }
}

/// Blocks of a size in bytes; `check.rs` has made sure it is a multiple.
pub(crate) fn blocks(bytes: u64) -> u32 {
    (bytes / BLOCK) as u32
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("4096", 4096),
            ("192 KiB", 192 << 10),
            ("96M", 96 << 20),
            ("1.5 GiB", 3 << 29),
            ("1 TB", 1_000_000_000_000),
            ("0.5K", 512),
            (".5K", 512),
            ("9007199254740993", (1 << 53) + 1),
            ("9223372036854775807", i64::MAX as u64),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for text in [
            "",
            "MiB",
            "-1",
            "1 PiB",
            "0.3 B",
            "1e3",
            "9999999 TiB",
            "1..5K",
            ".",
            "9223372036854775808",
        ] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }
}
