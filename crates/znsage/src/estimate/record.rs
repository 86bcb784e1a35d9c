// SPDX-License-Identifier: GPL-2.0-only
//! How much flash a page takes on a device that compresses, as kmod/compress.c makes its
//! record. The kernel's lz4 and zstd are copies of the libraries that are used here, with
//! the same parameters.

use std::io;

/// Records are multiples of this (kmod/geometry.c). On devices above 256 GiB it is larger, up to
/// 256 bytes above 512 GiB, which takes two or three hundredths of a page more.
pub const BLOCK: usize = 64;
/// What precedes the page in its record.
const HEADER: usize = 12;
/// The engine's ZSE_LEAST_PART: no record is shorter than this part of a page.
const LEAST_PART: usize = 16;
/// The kernel's crypto API has no other level.
const ZSTD_LEVEL: i32 = 3;

pub struct Compressors {
    zstd: zstd::bulk::Compressor<'static>,
    out: Vec<u8>,
}

/// Bytes of a page's record. A page that repeats one word has none (engine/filled.c).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    pub lz4: usize,
    pub zstd: usize,
}

impl Compressors {
    pub fn new() -> io::Result<Compressors> {
        Ok(Compressors { zstd: zstd::bulk::Compressor::new(ZSTD_LEVEL)?, out: Vec::new() })
    }

    pub fn sizes(&mut self, page: &[u8]) -> Sizes {
        if page[8..] == page[..page.len() - 8] {
            return Sizes::default();
        }
        // Room for a page that grows: an error would say no more than its length.
        self.out.resize(2 * page.len(), 0);
        let lz4 = lz4::block::compress_to_buffer(page, None, false, &mut self.out);
        let zstd = self.zstd.compress_to_buffer(page, &mut self.out[..]);
        let stored = |got: io::Result<usize>| record(page.len(), got.unwrap_or(page.len()));
        Sizes { lz4: stored(lz4), zstd: stored(zstd) }
    }
}

/// Bytes of the record of a `page` that a compressor shrank to `got` bytes.
fn record(page: usize, got: usize) -> usize {
    let bytes = if got <= page - BLOCK - HEADER { got } else { page };
    (HEADER + bytes).next_multiple_of(BLOCK).max(page / LEAST_PART)
}

#[cfg(test)]
mod tests {
    use super::*;

    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    const PAGE: usize = 4096;

    #[test]
    fn records_are_as_long_as_the_modules() {
        assert_eq!(record(PAGE, 1), 256);
        assert_eq!(record(PAGE, 244), 256);
        assert_eq!(record(PAGE, 245), 320);
        assert_eq!(record(PAGE, 4020), 4032);
        assert_eq!(record(PAGE, 4021), PAGE + 64);
        assert_eq!(record(PAGE, 5000), PAGE + 64);
    }

    #[test]
    fn pages_shrink_as_far_as_they_repeat() {
        let mut compressors = Compressors::new().unwrap();
        let mut page = vec![0; PAGE];
        assert_eq!(compressors.sizes(&page), Sizes::default());
        page.chunks_mut(8).for_each(|word| word.copy_from_slice(b"one word"));
        assert_eq!(compressors.sizes(&page), Sizes::default());
        page[PAGE - 1] = 1;
        assert_eq!(compressors.sizes(&page), Sizes { lz4: 256, zstd: 256 });
        SmallRng::seed_from_u64(1).fill_bytes(&mut page[..PAGE / 2]);
        let half = compressors.sizes(&page);
        assert!((2048..2200).contains(&half.lz4) && (2048..2200).contains(&half.zstd), "{half:?}");
        SmallRng::seed_from_u64(1).fill_bytes(&mut page);
        assert_eq!(compressors.sizes(&page), Sizes { lz4: PAGE + 64, zstd: PAGE + 64 });
        // Letters in no order: zstd codes them in fewer bits, lz4 cannot.
        page.iter_mut().for_each(|byte| *byte = b'a' + *byte % 16);
        let letters = compressors.sizes(&page);
        assert!(letters.lz4 > 4000 && letters.zstd < 2500, "{letters:?}");
    }
}
