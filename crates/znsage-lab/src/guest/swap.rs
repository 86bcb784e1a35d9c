// SPDX-License-Identifier: GPL-2.0-only
//! The two systems under test.

use serde::Deserialize;

use super::program::{call, set};
use super::zram::Zram;
use crate::model::{System, PAGE};
use crate::result::{Context, Result};

/// A device that vm/run made, by the name of its environment variable.
pub fn device(name: &str) -> Result<String> {
    std::env::var(name).map_err(|_| format!("${name} is not set: was this started by vm/run?"))
}

/// A znsage device in `znsage status --json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Status {
    /// The size of the swap area.
    pub size_bytes: u64,
    pub blocks_total: u64,
    pub map_bytes: u64,
    pub chunk_bytes: u64,
    /// Appends, resets and finishes that failed.
    pub write_errors: u64,
}

/// What is between the kernel and the device; it goes when the swap is off.
enum Layer {
    None,
    Zswap,
    Zram(Zram),
}

/// Swap that is on, and turned off when dropped.
pub struct Swap {
    pub system: System,
    device: String,
    off: bool,
    layer: Layer,
}

impl Swap {
    /// Stock swap in an area of `area` bytes, as large as znsage's on a zoned device of
    /// this size: an SSD hides its spare blocks as znsage does. The areas must be equal
    /// also because the kernel treats one that is more than half full differently: pages
    /// that were read back lose their slots, and are written again even if unchanged.
    pub fn stock(device: &str, area: u64) -> Result<Swap> {
        call("mkswap", &[device, &(area >> 10).to_string()])?;
        call("swapon", &[device])?;
        Ok(Swap::of(System::Stock, device))
    }

    fn of(system: System, device: &str) -> Swap {
        Swap { system, device: device.to_string(), off: false, layer: Layer::None }
    }

    /// Stock swap on all of a device, as people set it up.
    pub fn stock_whole(device: &str, options: &[&str]) -> Result<Swap> {
        call("mkswap", &[device])?;
        call("swapon", &[options, &[device]].concat())?;
        Ok(Swap::of(System::Stock, device))
    }

    /// Puts zswap in front.
    pub fn behind_zswap(mut self) -> Result<Swap> {
        call("modprobe", &["lz4"])?;
        self.layer = Layer::Zswap;
        for (name, value) in [("compressor", "lz4"), ("zpool", "zsmalloc"), ("enabled", "Y")] {
            zswap(name, value)?;
        }
        Ok(self)
    }

    /// Stock swap on zram of `bytes`, which writes back to the device what takes more than `memory`.
    pub fn zram(device: &str, bytes: u64, memory: u64) -> Result<Swap> {
        let zram = Zram::on(device, bytes, memory)?;
        let mut swap = Swap::stock_whole(zram.node(), &[])?;
        swap.layer = Layer::Zram(zram);
        Ok(swap)
    }

    pub fn znsage(device: &str, options: &[&str]) -> Result<Swap> {
        call("znsage", &[&["on", "--force", device], options].concat())?;
        Ok(Swap::of(System::Znsage, device))
    }

    /// `area` is the size of the stock swap area.
    pub fn on(system: System, area: u64) -> Result<Swap> {
        match system {
            System::Stock => Swap::stock(&device("CONV0")?, area),
            System::Znsage => Swap::znsage(&device("ZNS0")?, &[]),
        }
    }

    pub fn off(mut self) -> Result<()> {
        self.turn_off()
    }

    fn turn_off(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.off, true) {
            return Ok(());
        }
        match self.system {
            System::Stock => call("swapoff", &[&self.device]),
            System::Znsage => call("znsage", &["off", &self.device]),
        }?;
        match std::mem::replace(&mut self.layer, Layer::None) {
            Layer::None => Ok(()),
            Layer::Zswap => zswap("enabled", "N"),
            Layer::Zram(zram) => zram.off(),
        }
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        // After an error; that one is reported.
        let _ = self.turn_off();
    }
}

/// Sets a parameter of zswap.
fn zswap(name: &str, value: &str) -> Result<()> {
    set(&format!("/sys/module/zswap/parameters/{name}"), value)
}

/// Turns znsage on and off on a device to learn its size.
pub fn offered(device: &str) -> Result<Status> {
    let swap = Swap::znsage(device, &[])?;
    let status = status()?;
    swap.off()?;
    Ok(status)
}

/// The one znsage device that is on.
pub fn status() -> Result<Status> {
    #[derive(Deserialize)]
    struct Document {
        devices: Vec<Status>,
    }
    let text = call("znsage", &["status", "--json"])?;
    let document: Document = serde_json::from_str(&text).context("znsage status")?;
    document.devices.into_iter().next().ok_or("no znsage device is on".to_string())
}

/// The kernel's version, as it reports it.
pub fn release() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    text.trim().to_string()
}

/// The memory that makes `percent` of so many blocks live when all beyond the limit
/// is swapped out. The limit includes the program, and for each page its entry in the
/// page tables and a byte of the program's own.
pub fn memory(blocks: u64, percent: u64, limit: u64) -> u64 {
    const PROGRAM: u64 = 6 << 20;
    const PER_PAGE: u64 = 8 + 1;
    let live = blocks * percent / 100 * PAGE;
    let bytes = live + limit.saturating_sub(PROGRAM);
    (bytes - bytes / PAGE * PER_PAGE) / PAGE * PAGE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_live_blocks_plus_limit() {
        let bytes = memory(131_072, 80, 64 << 20);
        // `znsage bench --utilization 80` settles at 119,996 pages.
        assert!((119_000..121_000).contains(&(bytes / PAGE)), "{}", bytes / PAGE);
        assert_eq!(bytes % PAGE, 0);
    }
}
