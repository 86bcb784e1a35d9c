// SPDX-License-Identifier: GPL-2.0-only
//! zram that writes back to a drive. The kernel writes back the pages that a program names.
//! This program names pages that were idle lately, enough to keep zram's memory below a limit.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::program::{call, set};
use crate::files::read;
use crate::model::PAGE;
use crate::result::Result;

const NAME: &str = "zram0";
const NODE: &str = "/dev/zram0";

/// Pages of one request: few, so that the memory is looked at often.
const BATCH: u64 = 256;

/// The device, and the thread that writes back.
pub struct Zram {
    writer: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    most: Arc<AtomicU64>,
}

fn file(name: &str) -> String {
    format!("/sys/block/{NAME}/{name}")
}

impl Zram {
    /// A device of `bytes`, whose pages go to `drive` if they take more than `memory`.
    pub fn on(drive: &str, bytes: u64, memory: u64) -> Result<Zram> {
        call("modprobe", &["lz4"])?;
        call("modprobe", &["zram", "num_devices=1"])?;
        set(&file("comp_algorithm"), "lz4")?;
        set(&file("backing_dev"), drive)?;
        set(&file("disksize"), &bytes.to_string())?;
        set(&file("writeback_limit_enable"), "1")?;
        let (stop, most) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stop_too, most_too) = (Arc::clone(&stop), Arc::clone(&most));
        let writer = thread::spawn(move || {
            while !stop_too.load(Ordering::Relaxed) {
                if let Err(message) = write_back(memory, &most_too) {
                    eprintln!("  zram: {message}");
                    break;
                }
            }
        });
        Ok(Zram { writer: Some(writer), stop, most })
    }

    pub fn node(&self) -> &'static str {
        NODE
    }

    /// Removes the unused device, and prints how much memory it had.
    pub fn off(mut self) -> Result<()> {
        self.end();
        eprintln!("  zram had up to {} MiB", self.most.load(Ordering::Relaxed) >> 20);
        set(&file("reset"), "1")
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        self.end();
    }
}

/// Has a batch written if zram has too much; otherwise waits.
fn write_back(memory: u64, most: &AtomicU64) -> Result<()> {
    let used = used(&read(Path::new(&file("mm_stat")))?)?;
    most.fetch_max(used, Ordering::Relaxed);
    if used <= memory {
        thread::sleep(Duration::from_millis(20));
        return Ok(());
    }
    let before = written(&read(Path::new(&file("bd_stat")))?)?;
    // Pages that were not touched for a second of the drive's time; all, if there are none.
    for age in ["1", "all"] {
        set(&file("idle"), age)?;
        set(&file("writeback_limit"), &BATCH.to_string())?;
        // It says so when the limit is reached.
        let _ = set(&file("writeback"), "idle");
        if written(&read(Path::new(&file("bd_stat")))?)? > before {
            break;
        }
    }
    Ok(())
}

/// The memory of all that zram holds, from mm_stat.
fn used(mm_stat: &str) -> Result<u64> {
    number(mm_stat, 2).ok_or_else(|| format!("mm_stat of {NAME} is {mm_stat:?}"))
}

/// Bytes that were written back, from bd_stat.
fn written(bd_stat: &str) -> Result<u64> {
    let pages = number(bd_stat, 2).ok_or_else(|| format!("bd_stat of {NAME} is {bd_stat:?}"))?;
    Ok(pages * PAGE)
}

fn number(text: &str, field: usize) -> Option<u64> {
    text.split_whitespace().nth(field)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_numbers() {
        assert_eq!(used("  8192 3000  12288 0 16384 0 0 0 0\n"), Ok(12288));
        assert_eq!(written("  10 4 12\n"), Ok(12 * PAGE));
        assert!(used("").is_err());
    }
}
