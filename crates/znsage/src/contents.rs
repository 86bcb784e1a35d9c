// SPDX-License-Identifier: GPL-2.0-only
//! What a device holds: signatures of known formats, written zones, and on a device
//! without zones any other data.

use std::ops::Range;

use serde::Deserialize;

use crate::device::{Backing, SECTOR};
use crate::error::{reason, Error, Kind, Result};
use crate::sys::Sys;
use crate::{queue, units};

/// The smallest page.
const PAGE: usize = 4096;
/// A sample has this many pages at the start, as many at the end, and some in between.
const EDGE: u64 = 16;
const BETWEEN: u64 = 256;

/// Of a file system, swap area, RAID member or partition table, as wipefs prints it.
#[derive(Clone, Debug, Deserialize)]
pub struct Signature {
    offset: String,
    #[serde(rename = "type")]
    pub format: String,
}

#[derive(Deserialize)]
struct Listing {
    signatures: Vec<Signature>,
}

#[derive(Debug)]
pub struct Holds {
    pub signatures: Vec<Signature>,
    /// The number of usable zones.
    written_zones: u64,
    zones: u64,
    /// Data on a device without zones.
    pub sample: Option<Sample>,
    /// Data in a file. It knows what was ever written, so no sample is needed.
    data: bool,
}

impl Holds {
    /// Unknown: with `force`, nothing is looked for.
    pub fn look(sys: &dyn Sys, backing: &Backing, force: bool) -> Result<Holds> {
        let path = &backing.path;
        if let Some(file) = &backing.file {
            let signatures =
                if file.data { signatures(sys, path).unwrap_or_default() } else { Vec::new() };
            return Ok(Holds {
                signatures,
                written_zones: 0,
                zones: 0,
                sample: None,
                data: file.data,
            });
        }
        let signatures = match signatures(sys, path) {
            Err(_) if force => Vec::new(),
            found => found?,
        };
        let (written_zones, zones) =
            backing.zones.as_ref().map_or((0, 0), |zones| (zones.written, zones.number));
        let sample = match backing.zones {
            Some(_) => None,
            None => match Sample::take(sys, path, backing.usable_bytes) {
                Err(e) if !force => return Err(Error::io("read", &sys.at(path), e)),
                sample => sample.ok(),
            },
        };
        Ok(Holds { signatures, written_zones, zones, sample, data: false })
    }

    /// Signatures or written zones.
    pub fn known(&self) -> Option<String> {
        let mut formats: Vec<String> =
            self.signatures.iter().map(|s| format!("`{}`", s.format)).collect();
        formats.dedup();
        match (formats.as_slice(), self.written_zones) {
            ([], 0) => None,
            ([], n) => Some(format!("data in {n} of {} zones", self.zones)),
            ([one], _) => Some(format!("a signature of {one}")),
            (several, _) => Some(format!("signatures of {}", several.join(", "))),
        }
    }

    pub fn any(&self) -> Option<String> {
        let sampled = || self.sample.as_ref()?.describe();
        self.known().or_else(sampled).or_else(|| self.data.then(|| "data".to_string()))
    }

    /// Other tools must not take the device for what it was, now or later.
    pub fn wipe(&self, sys: &dyn Sys, backing: &Backing) -> Result<()> {
        let path = backing.path.as_str();
        if let Some(file) = &backing.file {
            return match file.clear {
                true => sys.clear_file(path).map_err(|e| Error::io("clear", &sys.at(path), e)),
                false => Ok(()),
            };
        }
        if self.signatures.is_empty() {
            return Ok(());
        }
        if backing.zones.is_none() {
            return wipefs(sys, &["wipefs", "--all", "--force", path]).map(drop);
        }
        // The module resets the other zones.
        let zones = sys.zones(path).map_err(|e| Error::io("report", &sys.at(path), e))?;
        let bytes = queue::limit(sys, &backing.name, "chunk_sectors").unwrap_or(0) * SECTOR;
        let conventional = |s: &&Signature| {
            let offset = u64::from_str_radix(s.offset.trim_start_matches("0x"), 16).ok();
            let zone = offset.and_then(|offset| offset.checked_div(bytes));
            zone.and_then(|n| zones.get(n as usize)).is_some_and(|z| !z.sequential)
        };
        self.signatures.iter().filter(conventional).try_for_each(|s| {
            wipefs(sys, &["wipefs", "--force", "--offset", &s.offset, path]).map(drop)
        })
    }
}

fn signatures(sys: &dyn Sys, path: &str) -> Result<Vec<Signature>> {
    let text = wipefs(sys, &["wipefs", "--json", path])?;
    match serde_json::from_str::<Listing>(&text) {
        Ok(listing) => Ok(listing.signatures),
        Err(_) if text.trim().is_empty() => Ok(Vec::new()),
        Err(e) => {
            Err(Error::new(Kind::Kernel, format!("wipefs --json {path} prints no list: {e}")))
        }
    }
}

fn wipefs(sys: &dyn Sys, argv: &[&str]) -> Result<String> {
    let line = argv.join(" ");
    let ran = sys.run(argv, &mut || ()).map_err(|e| {
        Error::new(Kind::Environment, format!("cannot run wipefs: {}", reason(&e)))
            .hint("install util-linux")
    })?;
    match ran.ok() {
        true => Ok(ran.stdout),
        false if sys.interrupted() => Err(Error::interrupted()),
        false => Err(Error::new(Kind::Kernel, format!("`{line}` failed: {}", ran.complaint()))),
    }
}

/// Pages all over a device.
#[derive(Debug)]
pub struct Sample {
    pages: usize,
    /// Where there is data, and its checksum.
    data: Vec<(u64, u32)>,
}

impl Sample {
    pub fn take(sys: &dyn Sys, path: &str, bytes: u64) -> std::io::Result<Sample> {
        let places = places(bytes);
        let (mut page, mut data) = ([0; PAGE], Vec::new());
        for &at in &places {
            let got = sys.read_at(path, at, &mut page)?;
            // Most drives return zeros for discarded blocks, some return ones.
            let blank = |with: u8| page[..got].iter().all(|&b| b == with);
            if !blank(0) && !blank(0xff) {
                data.push((at, checksum(&page[..got])));
            }
        }
        Ok(Sample { pages: places.len(), data })
    }

    fn describe(&self) -> Option<String> {
        let (first, _) = self.data.first()?;
        let (found, pages) = (self.data.len(), units::counted(self.pages as u64, "page"));
        Some(format!("data of no known format (in {found} of {pages} read, first at byte {first})"))
    }

    pub fn is_blank(&self) -> bool {
        self.data.is_empty()
    }

    /// Stands for the whole sample.
    pub fn sum(&self) -> u32 {
        checksum(format!("{:?}", self.data).as_bytes())
    }

    /// Is there data in this range that was there `before`?
    pub fn keeps(&self, before: &Sample, range: Range<u64>) -> bool {
        self.data.iter().any(|page| range.contains(&page.0) && before.data.contains(page))
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// The offsets of the pages of a sample.
fn places(bytes: u64) -> Vec<u64> {
    let pages = bytes / PAGE as u64;
    let step = (pages / BETWEEN).max(1) as usize;
    let edges = (0..pages.min(EDGE)).chain(pages.saturating_sub(EDGE)..pages);
    let mut places: Vec<u64> =
        edges.chain((0..pages).step_by(step)).map(|page| page * PAGE as u64).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// Overwrites a page with zeros.
pub fn clear(sys: &dyn Sys, path: &str, at: u64) -> std::io::Result<()> {
    sys.write_at(path, at, &[0; PAGE])
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::process::Command;

    use super::*;
    use crate::sys::Real;

    #[test]
    fn a_sample_reaches_from_start_to_end() {
        for bytes in [0, 4095, 4096, 40 << 10, 4 << 20, 1 << 30, 16 << 40, u64::MAX] {
            let places = places(bytes);
            assert!(places.len() as u64 <= 2 * BETWEEN + 2 * EDGE, "{bytes}: {}", places.len());
            let last = (bytes / 4096).checked_sub(1).map(|page| page * 4096);
            assert_eq!(places.last().copied(), last, "{bytes}");
            assert_eq!(places.first().copied(), last.map(|_| 0), "{bytes}");
            let gap = places.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
            assert!(gap <= (bytes / BETWEEN).max(4096), "{bytes}: {gap}");
        }
    }

    #[test]
    fn a_sample_tells_blank_data_and_changed_data() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("disk").to_string_lossy().into_owned();
        let file = File::create(&path).unwrap();
        let bytes = 64 << 20;
        file.set_len(bytes).unwrap();
        let take = || Sample::take(&Real, &path, bytes).unwrap();
        let blank = take();
        assert!(blank.is_blank() && blank.describe().is_none());
        file.write_all_at(&[0xff; 8192], 4096).unwrap();
        assert!(take().is_blank());
        let at = places(bytes)[100];
        file.write_all_at(b"x", at + 4095).unwrap();
        let one = take();
        let said = format!("in 1 of {} pages read, first at byte {at})", one.pages);
        assert!(one.describe().unwrap().ends_with(&said), "{one:?}");
        assert_ne!(one.sum(), blank.sum());
        assert!(one.keeps(&take(), at..bytes) && !one.keeps(&take(), 0..at));
        file.write_all_at(b"y", at + 4095).unwrap();
        assert!(take().sum() != one.sum() && !take().keeps(&one, 0..bytes));
        assert_eq!(take().sum(), take().sum());
        clear(&Real, &path, at).unwrap();
        assert!(take().is_blank());
    }

    /// A superblock of md, version 1.0, which is 8 KiB before the end.
    fn member(bytes: u64) -> (u64, Vec<u8>) {
        let at = bytes - 8192;
        let mut block = vec![0; 4096];
        block[..5].copy_from_slice(&[0xfc, 0x4e, 0x2b, 0xa9, 1]);
        block[16..32].copy_from_slice(&[9; 16]);
        block[144..152].copy_from_slice(&(at / 512).to_le_bytes());
        let words = block[..256].chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap()));
        let sum: u64 = words.map(u64::from).sum();
        let sum = (sum as u32).wrapping_add((sum >> 32) as u32);
        block[216..220].copy_from_slice(&sum.to_le_bytes());
        (at, block)
    }

    /// Also at the end of the device: mdadm would take it for a member of its array.
    #[test]
    fn all_signatures_are_wiped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("disk").to_string_lossy().into_owned();
        let file = File::create(&path).unwrap();
        let bytes = 64 << 20;
        file.set_len(bytes).unwrap();
        let made = Command::new("/usr/sbin/mkswap").args(["-q", &path]).status();
        assert!(made.unwrap().success());
        let (at, block) = member(bytes);
        file.write_all_at(&block, at).unwrap();
        let backing = Backing {
            path: path.clone(),
            name: String::new(),
            append_bytes: 0,
            narrowed: false,
            zones: None,
            usable_bytes: bytes,
            file: None,
        };
        let holds = Holds::look(&Real, &backing, false).unwrap();
        let mut found: Vec<&str> = holds.signatures.iter().map(|s| s.format.as_str()).collect();
        found.sort_unstable();
        assert_eq!(found, ["linux_raid_member", "swap"]);
        holds.wipe(&Real, &backing).unwrap();
        assert!(signatures(&Real, &path).unwrap().is_empty());
    }
}
