// SPDX-License-Identifier: GPL-2.0-only
//! `znsage estimate`: what compression would gain for the memory that programs have now.
//! Reads pages of them, and changes nothing.

mod pages;
mod record;

use rand::rngs::SmallRng;
use rand::SeedableRng;
use serde::Serialize;
use serde_json::json;

use crate::cli::EstimateArgs;
use crate::error::{Error, Kind, Result};
use crate::sys::Sys;
use crate::units::{self, table};
use record::{Compressors, BLOCK};
use znsage_sim::cli::progress::Progress;

/// A swap area may be this many times as large as its device, as in the module.
const MOST: f64 = 16.0;

/// A process.
#[derive(Clone, Debug, Serialize)]
pub struct Process {
    pub pid: u32,
    pub name: String,
    pub bytes_in_memory: u64,
    /// Memory in swap. It is not read, because that would swap it in.
    pub bytes_in_swap: u64,
    pub sampled_pages: u64,
    /// Share of the pages that repeat one word, such as zero.
    pub filled: f64,
    /// Flash written for each page, including such pages, in pages.
    pub lz4: f64,
    pub zstd: f64,
    /// Pages by the blocks of 64 bytes that they take; the first number is of those that repeat
    /// a word.
    pub lz4_sizes: Vec<u64>,
    pub zstd_sizes: Vec<u64>,
}

#[derive(Debug)]
pub struct Report {
    pub processes: Vec<Process>,
}

pub fn run(sys: &dyn Sys, args: &EstimateArgs, page: u64) -> Result<Report> {
    let mut compressors = Compressors::new()
        .map_err(|e| Error::new(Kind::Space, format!("cannot set up compression: {e}")))?;
    let mut rng = SmallRng::seed_from_u64(args.seed);
    let mut progress = Progress::new();
    let mut processes = Vec::new();
    for &pid in &args.pids {
        progress.show(|| format!("looking at process {pid}"));
        let found = process(sys, pid, page, args.pages, &mut rng, &mut compressors)?;
        processes.push(found);
    }
    Ok(Report { processes })
}

fn process(
    sys: &dyn Sys,
    pid: u32,
    page: u64,
    most: u64,
    rng: &mut SmallRng,
    compressors: &mut Compressors,
) -> Result<Process> {
    let found = pages::look(sys, pid, page, most, rng)?;
    let mut bytes = vec![0; page as usize];
    // The longest record is a block longer than a page.
    let mut lz4_sizes = vec![0; page as usize / BLOCK + 2];
    let mut zstd_sizes = lz4_sizes.clone();
    for &address in &found.sample {
        if sys.interrupted() {
            return Err(Error::interrupted());
        }
        if !pages::read(sys, pid, address, &mut bytes)? {
            continue;
        }
        let sizes = compressors.sizes(&bytes);
        lz4_sizes[sizes.lz4 / BLOCK] += 1;
        zstd_sizes[sizes.zstd / BLOCK] += 1;
    }
    let sampled: u64 = lz4_sizes.iter().sum();
    if sampled == 0 {
        let message = format!("process {pid} has no memory of its own to look at");
        return Err(Error::new(Kind::Usage, message));
    }
    let share = |sizes: &[u64]| {
        let blocks: u64 = sizes.iter().zip(0..).map(|(pages, blocks)| pages * blocks).sum();
        (blocks * BLOCK as u64) as f64 / (sampled * page) as f64
    };
    let name = sys.read(&format!("/proc/{pid}/comm")).unwrap_or_default();
    Ok(Process {
        pid,
        name: name.trim_end().to_string(),
        bytes_in_memory: found.in_memory * page,
        bytes_in_swap: found.in_swap * page,
        sampled_pages: sampled,
        filled: lz4_sizes[0] as f64 / sampled as f64,
        lz4: share(&lz4_sizes),
        zstd: share(&zstd_sizes),
        lz4_sizes,
        zstd_sizes,
    })
}

impl Report {
    /// The mean of a share over all memory.
    fn mean(&self, of: impl Fn(&Process) -> f64) -> f64 {
        let all: u64 = self.processes.iter().map(|p| p.bytes_in_memory).sum();
        let sum: f64 = self.processes.iter().map(|p| of(p) * p.bytes_in_memory as f64).sum();
        sum / all as f64
    }

    pub fn to_text(&self) -> String {
        let row = |cells: [&str; 8]| cells.map(str::to_string).to_vec();
        let mut rows = vec![row([
            "PROGRAM",
            "PID",
            "IN MEMORY",
            "IN SWAP",
            "SAMPLED",
            "FILLED",
            "LZ4",
            "ZSTD",
        ])];
        rows.extend(self.processes.iter().map(|p| {
            vec![
                p.name.clone(),
                p.pid.to_string(),
                units::size(p.bytes_in_memory),
                units::size(p.bytes_in_swap),
                p.sampled_pages.to_string(),
                format!("{:.1} %", p.filled * 100.0),
                format!("{:.2}", p.lz4),
                format!("{:.2}", p.zstd),
            ]
        }));
        let (lz4, zstd) = (self.mean(|p| p.lz4), self.mean(|p| p.zstd));
        let mut text = table(&rows, 1);
        text += &format!(
            "\nFILLED: pages that repeat one word, and take no space. LZ4 and ZSTD: flash written for each page swapped out, in pages; without \
             compression {:.2}.\n",
            1.0 - self.mean(|p| p.filled)
        );
        // Not if all pages repeat a word.
        if lz4 > 0.0 {
            text += &format!(
                "A device holds {:.1} times as many of these pages with `on --compress lz4`, {:.1} \
                 times with zstd.\n",
                (1.0 / lz4).min(MOST),
                (1.0 / zstd).min(MOST)
            );
        }
        text
    }

    pub fn to_json(&self) -> serde_json::Value {
        let (filled, lz4) = (self.mean(|p| p.filled), self.mean(|p| p.lz4));
        let all = json!({"filled": filled, "lz4": lz4, "zstd": self.mean(|p| p.zstd)});
        json!({"version": 1, "processes": self.processes, "all": all})
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::setup_tests::{compare_json, compare_text};
    use crate::sys::fake::Fake;

    const PAGE: usize = 4096;
    const ANONYMOUS: u64 = 1 << 63;
    const IN_SWAP: u64 = 1 << 62;

    fn args(pids: &[u32]) -> EstimateArgs {
        EstimateArgs { pids: pids.to_vec(), pages: 100, seed: 1 }
    }

    /// A process whose memory begins at page 2: one page in swap, then pages of these bytes.
    fn add(fake: &Fake, pid: u32, name: &str, bytes: &[u8]) {
        let end = (3 + bytes.len()) * PAGE;
        fake.put(&format!("/proc/{pid}/comm"), &format!("{name}\n"));
        fake.put(
            &format!("/proc/{pid}/maps"),
            &format!("2000-{end:x} rw-p 00000000 00:00 0 [heap]\n"),
        );
        let mut words = vec![0, 0, IN_SWAP];
        words.extend(bytes.iter().map(|_| ANONYMOUS));
        let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        fs::write(fake.at(&format!("/proc/{pid}/pagemap")), words).unwrap();
        let mut memory = vec![0; 3 * PAGE];
        memory.extend(bytes.iter().flat_map(|&byte| {
            let mut page = vec![byte; PAGE];
            page[0] = 0;
            page
        }));
        fs::write(fake.at(&format!("/proc/{pid}/mem")), memory).unwrap();
    }

    #[test]
    fn programs_weigh_as_much_as_their_memory() {
        let fake = Fake::new();
        add(&fake, 7, "repeats", &[1; 30]);
        add(&fake, 8, "half filled", &[0, 2]);
        let report = run(&fake, &args(&[7, 8]), PAGE as u64).unwrap();
        // A record has at least 256 bytes, a 16th of a page.
        assert_eq!((report.processes[0].lz4, report.processes[0].filled), (0.0625, 0.0));
        assert_eq!((report.processes[1].zstd, report.processes[1].filled), (0.03125, 0.5));
        compare_json(&report.to_json(), "estimate");
        compare_text(&report.to_text(), "estimate");
    }

    #[test]
    fn pages_given_up_meanwhile_do_not_count() {
        let fake = Fake::new();
        add(&fake, 7, "shrinks", &[1; 30]);
        let memory = fs::OpenOptions::new().write(true).open(fake.at("/proc/7/mem")).unwrap();
        memory.set_len(8 * PAGE as u64 + 1).unwrap();
        let report = run(&fake, &args(&[7]), PAGE as u64).unwrap();
        assert_eq!(report.processes[0].sampled_pages, 5);
        memory.set_len(0).unwrap();
        let e = run(&fake, &args(&[7]), PAGE as u64).unwrap_err();
        assert_eq!(e.message, "process 7 has no memory of its own to look at");
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        let e = run(&Fake::new(), &args(&[9]), PAGE as u64).unwrap_err();
        assert_eq!((e.kind, e.message.as_str()), (Kind::Usage, "there is no process 9"));
    }
}
