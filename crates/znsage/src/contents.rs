// SPDX-License-Identifier: GPL-2.0-only
//! What a device holds: signatures of known formats, and data of any other kind.

use serde::Deserialize;

use crate::error::{reason, Error, Kind, Result};
use crate::sys::Sys;
use crate::units;

/// The smallest page.
const PAGE: u64 = 4096;
/// Pages at the start and at the end that a sample looks at.
const EDGE: u64 = 16;
/// Pages in between, evenly spaced.
const BETWEEN: u64 = 256;
/// Pages with copies of superblocks, which wipefs leaves.
const COPIES: [(&str, u64); 3] = [("btrfs", 64 << 20), ("btrfs", 256 << 30), ("f2fs", PAGE)];

/// A signature of a file system, swap area, RAID member or partition table.
#[derive(Clone, Debug)]
pub struct Signature {
    pub offset: u64,
    pub format: String,
    pub uuid: Option<String>,
    pub label: Option<String>,
}

/// What wipefs prints.
#[derive(Deserialize)]
struct Listing {
    signatures: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    offset: String,
    #[serde(rename = "type")]
    format: String,
    uuid: Option<String>,
    label: Option<String>,
}

/// All signatures, wherever on the device their formats have them.
pub fn signatures(sys: &dyn Sys, path: &str) -> Result<Vec<Signature>> {
    let ran = sys.run(&["wipefs", "--json", path], &mut || ()).map_err(|e| {
        Error::new(Kind::Environment, format!("cannot run wipefs: {}", reason(&e)))
            .hint("install util-linux, or skip the check with --force")
    })?;
    let failed =
        |why: String| Error::new(Kind::Kernel, format!("cannot look for signatures: {why}"));
    match (ran.ok(), ran.stdout.trim()) {
        (false, _) => Err(failed(ran.complaint())),
        (true, "") => Ok(Vec::new()),
        (true, text) => parse(text).ok_or_else(|| failed("wipefs prints no list".to_string())),
    }
}

fn parse(text: &str) -> Option<Vec<Signature>> {
    let listing: Listing = serde_json::from_str(text).ok()?;
    let signature = |listed: Listed| {
        let digits = listed.offset.strip_prefix("0x")?;
        Some(Signature {
            offset: u64::from_str_radix(digits, 16).ok()?,
            format: listed.format,
            uuid: listed.uuid,
            label: listed.label,
        })
    };
    listing.signatures.into_iter().map(signature).collect()
}

/// `a signature of X at byte N`, or several.
pub fn describe(found: &[Signature]) -> String {
    let each: Vec<String> =
        found.iter().map(|s| format!("`{}` at byte {}", s.format, s.offset)).collect();
    let a = if found.len() == 1 { "a signature" } else { "signatures" };
    format!("{a} of {}", each.join(", "))
}

/// Removes signatures from a device without zones, all copies.
pub fn wipe(sys: &dyn Sys, path: &str, found: &[Signature], bytes: u64) -> Result<()> {
    wipefs(sys, &["wipefs", "--all", "--force", path])?;
    let copies = COPIES
        .into_iter()
        .filter(|(format, at)| at + PAGE <= bytes && found.iter().any(|s| s.format == *format));
    copies.into_iter().try_for_each(|(_, at)| clear(sys, path, at))
}

/// Removes one signature.
pub fn wipe_one(sys: &dyn Sys, path: &str, signature: &Signature) -> Result<()> {
    let at = signature.offset.to_string();
    wipefs(sys, &["wipefs", "--force", "--offset", &at, path])
}

fn wipefs(sys: &dyn Sys, argv: &[&str]) -> Result<()> {
    let failed = |why: String| Error::new(Kind::Kernel, format!("cannot wipe signatures: {why}"));
    match sys.run(argv, &mut || ()) {
        Ok(ran) if ran.ok() => Ok(()),
        Ok(ran) => Err(failed(ran.complaint())),
        Err(e) => Err(failed(reason(&e))),
    }
}

/// Writes zeros to a page.
pub fn clear(sys: &dyn Sys, path: &str, at: u64) -> Result<()> {
    sys.write_at(path, at, &[0; PAGE as usize])
        .map_err(|e| Error::io("write zeros to", &sys.at(path), e))
}

/// Pages all over a device: some at the start, at the end and in between.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    pub looked: usize,
    /// Where there is data, and its checksum.
    pub data: Vec<(u64, u32)>,
}

impl Sample {
    /// Reads it.
    pub fn take(sys: &dyn Sys, path: &str, bytes: u64) -> Result<Sample> {
        let places = places(bytes);
        let (mut page, mut data) = ([0; PAGE as usize], Vec::new());
        for &at in &places {
            let got = sys.read_at(path, at, &mut page).map_err(|e| {
                let why = reason(&e);
                Error::new(Kind::Kernel, format!("cannot read byte {at} of {path}: {why}"))
                    .hint("--force takes the device without a look at its data")
            })?;
            if !is_blank(&page[..got]) {
                data.push((at, checksum(&page[..got])));
            }
        }
        Ok(Sample { looked: places.len(), data })
    }

    /// `data in 3 of 288 pages looked at, the first at byte 0`; None without data.
    pub fn describe(&self) -> Option<String> {
        let (first, _) = self.data.first()?;
        let pages = units::counted(self.data.len() as u64, "page");
        Some(format!("data in {pages} of the {} looked at, first at byte {first}", self.looked))
    }

    /// Stands for the whole sample.
    pub fn sum(&self) -> u32 {
        let all = self
            .data
            .iter()
            .flat_map(|(at, sum)| [at.to_le_bytes(), u64::from(*sum).to_le_bytes()]);
        checksum(&all.flatten().collect::<Vec<u8>>())
    }

    /// Is there data within the first `bytes` that `before` has, too?
    pub fn keeps(&self, before: &Sample, bytes: u64) -> bool {
        self.data.iter().any(|place| place.0 < bytes && before.data.contains(place))
    }
}

/// Drives return zeros for what was discarded or never written, some all ones.
fn is_blank(page: &[u8]) -> bool {
    page.iter().all(|&b| b == 0) || page.iter().all(|&b| b == 0xff)
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// The offsets of the pages to look at, ascending.
fn places(bytes: u64) -> Vec<u64> {
    let pages = bytes / PAGE;
    let edges = (0..EDGE).chain(pages.saturating_sub(EDGE)..pages);
    let between = (1..=BETWEEN).map(|i| {
        let share = u128::from(pages) * u128::from(i) / u128::from(BETWEEN + 1);
        share as u64
    });
    let mut places: Vec<u64> =
        edges.chain(between).filter(|page| *page < pages).map(|page| page * PAGE).collect();
    places.sort_unstable();
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::sys::Real;

    #[test]
    fn a_sample_reaches_from_start_to_end() {
        for bytes in [0, 4095, 4096, 40 << 10, 4 << 20, 1 << 30, 16 << 40, u64::MAX] {
            let places = places(bytes);
            assert!(places.len() as u64 <= BETWEEN + 2 * EDGE, "{bytes}");
            let last = (bytes / PAGE).checked_sub(1).map(|page| page * PAGE);
            assert_eq!(places.last().copied(), last, "{bytes}");
            assert_eq!(places.first().copied(), last.map(|_| 0), "{bytes}");
            let gaps = places.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
            assert!(gaps <= (bytes / BETWEEN).max(PAGE), "{bytes}: {gaps}");
        }
    }

    #[test]
    fn samples_tell_blank_data_and_changed_data() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("disk").to_string_lossy().into_owned();
        let file = File::create(&path).unwrap();
        let bytes = 64 << 20;
        file.set_len(bytes).unwrap();
        let take = || Sample::take(&Real, &path, bytes).unwrap();
        let blank = take();
        assert_eq!((blank.describe(), blank.looked), (None, 288));
        file.write_all_at(&[0xff; 8192], 4096).unwrap();
        assert_eq!(take().describe(), None);
        let at = places(bytes)[100];
        file.write_all_at(b"x", at + 4095).unwrap();
        let one = take();
        let said = format!("data in 1 page of the 288 looked at, first at byte {at}");
        assert_eq!(one.describe(), Some(said));
        assert_ne!(one.sum(), blank.sum());
        assert!(one.keeps(&take(), bytes) && !one.keeps(&take(), at));
        file.write_all_at(b"y", at + 4095).unwrap();
        let other = take();
        assert!(other.sum() != one.sum() && !other.keeps(&one, bytes));
        assert_eq!(take().sum(), other.sum());
    }

    /// Superblocks made by hand: offset and bytes of each. mkfs.f2fs, mdadm, cryptsetup
    /// and mkfs.btrfs are seldom there.
    fn formats(bytes: u64) -> Vec<(&'static str, Vec<(u64, Vec<u8>)>)> {
        let sparse = |len: usize, parts: &[(usize, &[u8])]| {
            let mut block = vec![0; len];
            parts.iter().for_each(|(at, part)| block[*at..at + part.len()].copy_from_slice(part));
            block
        };
        let ext4 = sparse(
            1024,
            &[
                (0, &64u32.to_le_bytes()),
                (4, &256u32.to_le_bytes()),
                (0x38, &[0x53, 0xef]),
                (0x4c, &[1]),
                (0x5c, &[4, 0, 0, 0, 0x40]),
                (0x68, &[7; 16]),
            ],
        );
        let f2fs = sparse(4096, &[(0, &[0x10, 0x20, 0xf5, 0xf2]), (4, &[1, 0, 14])]);
        let swap = sparse(4096, &[(1024, &[1, 0, 0, 0]), (1028, &[255, 1]), (4086, b"SWAPSPACE2")]);
        let mut btrfs = sparse(
            4096,
            &[(0x30, &(65536u64).to_le_bytes()), (0x40, b"_BHRfS_M"), (0x90, &[0, 16])],
        );
        let crc = crc32c(&btrfs[32..]);
        btrfs[..4].copy_from_slice(&crc.to_le_bytes());
        // Version 1.0 is 8 KiB before the end.
        let at = bytes - 8192;
        let mut md = sparse(
            4096,
            &[(0, &[0xfc, 0x4e, 0x2b, 0xa9, 1]), (16, &[9; 16]), (144, &(at / 512).to_le_bytes())],
        );
        let sum = md_checksum(&md[..256]);
        md[216..220].copy_from_slice(&sum.to_le_bytes());
        let luks = |magic: &[u8], offset: u64| {
            sparse(
                4096,
                &[
                    (0, magic),
                    (6, &[0, 2]),
                    (8, &16384u64.to_be_bytes()),
                    (168, b"11111111-2222-4333-8444-555555555555"),
                    (256, &offset.to_be_bytes()),
                ],
            )
        };
        let mut protective = sparse(512, &[(510, &[0x55, 0xaa])]);
        protective[446..462].copy_from_slice(&[
            0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
        ]);
        let last = bytes / 512 - 1;
        let (array, entries) = (vec![0u8; 128 * 128], checksum(&vec![0u8; 128 * 128]));
        let gpt = |mine: u64, other: u64, table: u64| {
            let mut header = sparse(
                512,
                &[
                    (0, b"EFI PART\0\0\x01\0\x5c\0\0\0"),
                    (24, &mine.to_le_bytes()),
                    (32, &other.to_le_bytes()),
                    (40, &34u64.to_le_bytes()),
                    (48, &(last - 33).to_le_bytes()),
                    (56, &[3; 16]),
                    (72, &table.to_le_bytes()),
                    (80, &[128, 0, 0, 0, 128]),
                    (88, &entries.to_le_bytes()),
                ],
            );
            let sum = checksum(&header[..92]);
            header[16..20].copy_from_slice(&sum.to_le_bytes());
            header
        };
        vec![
            ("ext4", vec![(1024, ext4)]),
            ("f2fs", vec![(1024, f2fs.clone()), (5120, f2fs)]),
            ("swap", vec![(0, swap)]),
            ("btrfs", vec![(64 << 10, btrfs.clone()), (64 << 20, btrfs)]),
            ("linux_raid_member", vec![(at, md)]),
            (
                "crypto_LUKS",
                vec![(0, luks(b"LUKS\xba\xbe", 0)), (16384, luks(b"SKUL\xba\xbe", 16384))],
            ),
            (
                "gpt",
                vec![
                    (0, protective),
                    (512, gpt(1, last, 2)),
                    (1024, array.clone()),
                    ((last - 32) * 512, array),
                    (last * 512, gpt(last, 1, last - 32)),
                ],
            ),
        ]
    }

    fn crc32c(bytes: &[u8]) -> u32 {
        let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
        !bytes.iter().fold(!0u32, |crc, b| (0..8).fold(crc ^ u32::from(*b), step))
    }

    /// The sum of its words, without the checksum; both halves are added.
    fn md_checksum(block: &[u8]) -> u32 {
        let words = block.chunks(4).map(|w| u64::from(u32::from_le_bytes(w.try_into().unwrap())));
        let sum: u64 = words.sum();
        (sum as u32).wrapping_add((sum >> 32) as u32)
    }

    /// Each copy of each format is gone, so that no tool takes the device for one.
    #[test]
    fn signatures_are_wiped_wherever_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let bytes: u64 = 128 << 20;
        for (format, blocks) in formats(bytes) {
            let path = dir.path().join(format).to_string_lossy().into_owned();
            let file = File::create(&path).unwrap();
            file.set_len(bytes).unwrap();
            for (at, block) in &blocks {
                file.write_all_at(block, *at).unwrap();
            }
            let found = signatures(&Real, &path).unwrap();
            assert!(found.iter().any(|s| s.format == format), "{format}: {found:?}");
            wipe(&Real, &path, &found, bytes).unwrap();
            let left = signatures(&Real, &path).unwrap();
            assert!(left.is_empty(), "{format}: {left:?}");
            for (at, block) in &blocks {
                let mut now = vec![0; block.len()];
                Real.read_at(&path, *at, &mut now).unwrap();
                let same = now == *block && block.iter().any(|&b| b != 0);
                assert!(!same, "{format}: the block at {at} is as it was");
            }
            fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn the_list_of_wipefs_parses() {
        let text = r#"{"signatures": [
            {"device": "a", "offset": "0xff6", "type": "swap", "uuid": "u", "label": "znsage"},
            {"device": "a", "offset": "0x1fe", "type": "PMBR", "uuid": null, "label": null}]}"#;
        let found = parse(text).unwrap();
        assert_eq!((found[0].offset, found[0].label.as_deref()), (4086, Some("znsage")));
        assert_eq!(describe(&found), "signatures of `swap` at byte 4086, `PMBR` at byte 510");
        assert_eq!(describe(&found[..1]), "a signature of `swap` at byte 4086");
        assert!(parse("{").is_none());
    }
}
