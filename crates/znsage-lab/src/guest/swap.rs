// SPDX-License-Identifier: GPL-2.0-only
//! The two systems under test: on for as long as a value lives.

use serde::Deserialize;

use super::call;
use crate::model::{System, PAGE};
use crate::Result;

/// A device that vm/run made, by the name it has there.
pub fn device(name: &str) -> Result<String> {
    std::env::var(name).map_err(|_| format!("${name} is not set: was this started by vm/run?"))
}

/// A znsage device as `znsage status --json` shows it.
#[derive(Clone, Debug, Deserialize)]
pub struct Status {
    /// Of the swap area.
    pub size_bytes: u64,
    pub blocks_total: u64,
    pub map_bytes: u64,
    pub chunk_bytes: u64,
}

/// Swap that is on; off again when dropped.
pub struct Swap {
    pub system: System,
    device: String,
    off: bool,
}

impl Swap {
    /// Just as anybody would: mkswap, swapon; but of `area` bytes, as large
    /// as znsage's on a zoned device of this size. What znsage holds back for
    /// its GC, an SSD holds back inside. And the kernel treats a swap area
    /// that is more than half full differently: pages that were read back
    /// lose their slots, and are written again even if they did not change.
    pub fn stock(device: &str, area: u64) -> Result<Swap> {
        call("mkswap", &[device, &(area >> 10).to_string()])?;
        call("swapon", &[device])?;
        Ok(Swap { system: System::Stock, device: device.to_string(), off: false })
    }

    pub fn znsage(device: &str, options: &[&str]) -> Result<Swap> {
        call("znsage", &[&["on", device], options].concat())?;
        Ok(Swap { system: System::Znsage, device: device.to_string(), off: false })
    }

    /// `area` is the size of a stock swap area.
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
        }
        .map(drop)
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        // On an error's way out; that error is the one to show.
        let _ = self.turn_off();
    }
}

/// What a znsage device offers here; it is turned on and off for that.
pub fn offered() -> Result<Status> {
    let swap = Swap::znsage(&device("ZNS0")?, &[])?;
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
    let document: Document =
        serde_json::from_str(&text).map_err(|e| format!("znsage status: {e}"))?;
    document.devices.into_iter().next().ok_or("no znsage device is on".to_string())
}

/// Memory to use so that `percent` of the device's blocks are live: what is
/// beyond the limit is swapped out. Within the limit there is more than the
/// memory under test; the program itself, and for each page its entry in the
/// page tables and a byte of book-keeping.
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
    fn memory_is_what_the_device_holds_and_what_stays() {
        let bytes = memory(131_072, 80, 64 << 20);
        // As measured with `znsage bench --utilization 80`: 119,996 pages.
        assert!((119_000..121_000).contains(&(bytes / PAGE)), "{}", bytes / PAGE);
        assert_eq!(bytes % PAGE, 0);
    }
}
