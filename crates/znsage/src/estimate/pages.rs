// SPDX-License-Identifier: GPL-2.0-only
//! The pages of a process that the kernel would swap out.

use std::io;

use rand::rngs::SmallRng;
use rand::RngExt;

use crate::error::{reason, Error, Kind, Result};
use crate::sys::Sys;

/// Words of /proc/PID/pagemap that are read at once.
const WORDS: u64 = 1 << 16;
/// Bits of such a word.
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
/// In a file or in shared memory.
const FILE: u64 = 1 << 61;

/// Pages of a process without a file. Those in a file need no swap; shared memory is not
/// looked at. The kernel's page of zeros, which a process has where it reads before it writes,
/// cannot be told from one of its own, and counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    pub in_memory: u64,
    pub in_swap: u64,
    /// The addresses of a sample of the pages in memory; each page is equally likely.
    pub sample: Vec<u64>,
}

/// Looks for the pages of `pid` and chooses at most `most` of them.
pub fn look(sys: &dyn Sys, pid: u32, page: u64, most: u64, rng: &mut SmallRng) -> Result<Pages> {
    let path = format!("/proc/{pid}/maps");
    let maps = sys.read(&path).map_err(|e| failed(pid, &e))?;
    let mut pages = Pages::default();
    for (from, to) in maps.lines().filter_map(private) {
        for first in (from / page..to / page).step_by(WORDS as usize) {
            let nr = WORDS.min(to / page - first);
            let mut bytes = vec![0; nr as usize * 8];
            let got = sys
                .read_at(&format!("/proc/{pid}/pagemap"), first * 8, &mut bytes)
                .map_err(|e| failed(pid, &e))?;
            for (index, word) in bytes[..got].chunks_exact(8).enumerate() {
                let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
                if sys.interrupted() {
                    return Err(Error::interrupted());
                }
                count(&mut pages, word, (first + index as u64) * page, most, rng);
            }
        }
    }
    Ok(pages)
}

/// The addresses of a line of /proc/PID/maps, if a process has it to itself.
fn private(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split_ascii_whitespace();
    let (from, to) = words.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    // The kernel's own pages, which are in no list of reclaim.
    let kernels = ["[vvar]", "[vdso]", "[vsyscall]", "[vvar_vclock]"];
    let counts = words.next()?.ends_with('p') && !words.any(|word| kernels.contains(&word));
    counts.then_some((number(from)?, number(to)?))
}

/// Each page replaces one of the sample with the probability that leaves all equally likely
/// (Vitter's algorithm R).
fn count(pages: &mut Pages, word: u64, address: u64, most: u64, rng: &mut SmallRng) {
    if word & SWAPPED != 0 {
        pages.in_swap += 1;
    }
    if word & PRESENT == 0 || word & FILE != 0 {
        return;
    }
    pages.in_memory += 1;
    if (pages.sample.len() as u64) < most {
        return pages.sample.push(address);
    }
    let place = rng.random_range(0..pages.in_memory);
    if let Some(at) = pages.sample.get_mut(place as usize) {
        *at = address;
    }
}

/// Reads a page; false if the process has given it up meanwhile.
pub fn read(sys: &dyn Sys, pid: u32, address: u64, page: &mut [u8]) -> Result<bool> {
    match sys.read_at(&format!("/proc/{pid}/mem"), address, page) {
        Ok(got) => Ok(got == page.len()),
        Err(e) if matches!(e.raw_os_error(), Some(libc::EIO | libc::EFAULT)) => Ok(false),
        Err(e) => Err(failed(pid, &e)),
    }
}

fn failed(pid: u32, e: &io::Error) -> Error {
    match e.raw_os_error() {
        Some(libc::ENOENT | libc::ESRCH) => {
            Error::new(Kind::Usage, format!("there is no process {pid}"))
        }
        Some(libc::EACCES | libc::EPERM) => {
            let message = format!("cannot read the memory of process {pid}: {}", reason(e));
            let hint = "root may, unless the process is protected or in another namespace";
            Error::new(Kind::Environment, message).hint(hint)
        }
        _ => {
            let message = format!("cannot read the memory of process {pid}: {}", reason(e));
            Error::new(Kind::Kernel, message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use rand::SeedableRng;

    #[test]
    fn only_private_memory_counts() {
        let range = |line| private(line);
        assert_eq!(range("1000-3000 rw-p 00000000 00:00 0  [heap]"), Some((0x1000, 0x3000)));
        assert_eq!(range("1000-3000 r--p 00000000 08:01 7  /usr/bin/a b"), Some((0x1000, 0x3000)));
        assert_eq!(range("1000-3000 rw-s 00000000 00:01 9  /dev/zero"), None);
        assert_eq!(range("1000-3000 r--p 00000000 00:00 0  [vvar]"), None);
        assert_eq!(range("nonsense"), None);
    }

    #[test]
    fn the_sample_is_even() {
        let mut rng = SmallRng::seed_from_u64(1);
        let mut first_half = 0;
        for _ in 0..100 {
            let mut pages = Pages::default();
            for address in 0..1000 {
                count(&mut pages, PRESENT, address, 50, &mut rng);
                count(&mut pages, PRESENT | FILE, address, 50, &mut rng);
                count(&mut pages, SWAPPED, address, 50, &mut rng);
                count(&mut pages, 0, address, 50, &mut rng);
            }
            assert_eq!((pages.in_memory, pages.in_swap, pages.sample.len()), (1000, 1000, 50));
            first_half += pages.sample.iter().filter(|&&at| at < 500).count();
        }
        // 2,500 are expected, with a deviation of 35.
        assert!((2360..2640).contains(&first_half), "{first_half}");
    }
}
