// SPDX-License-Identifier: GPL-2.0-only
//! Counters that every version of the module has: /sys/block/znsageN/znsage/, one
//! value per file.

use std::str::FromStr;

use serde::Serialize;

use crate::error::{Error, Kind, Result};
use crate::sys::{absolute, Sys};

#[derive(Clone, Debug, Default, Serialize)]
pub struct Zones {
    pub total: u64,
    pub empty: u64,
    pub open: u64,
    pub full: u64,
    pub retired: u64,
    /// Conventional zones, and those beyond the used part of the device.
    pub unused: u64,
}

/// A device as in `status --json`. Blocks are pages.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Device {
    pub name: String,
    pub backing: String,
    /// Name of its directory in configfs.
    pub config: String,
    pub size_bytes: u64,
    pub policy: String,
    pub chunk_bytes: u64,
    pub write_unit_bytes: u64,
    pub zone_bytes: u64,
    pub blocks_total: u64,
    pub streams: u64,
    /// Zones that a stream writes at a time.
    pub stripe: u64,
    /// Zones that GC writes at a time.
    pub gc_stripe: u64,
    /// 1 if streams write the zones of GC, too.
    pub gc_shared: u64,
    /// Chunks that may be in flight at once.
    pub write_window: u64,
    pub slots_used: u64,
    pub live_blocks: u64,
    /// live_blocks / blocks_total, 0 to 1.
    pub utilization: f64,
    pub zones: Zones,
    pub host_blocks: u64,
    pub gc_blocks: u64,
    pub padding_blocks: u64,
    pub gc_read_blocks: u64,
    /// Blocks appended / blocks swapped out; null before the first.
    pub waf: Option<f64>,
    pub chunks: u64,
    pub zone_resets: u64,
    pub slots_freed: u64,
    pub read_errors: u64,
    pub write_errors: u64,
    /// Zones that another program reset. Older modules count neither these nor lost pages.
    #[serde(skip)]
    pub zones_lost: u64,
    /// Pages in such zones, or given up by GC.
    #[serde(skip)]
    pub pages_lost: u64,
    pub stalls: u64,
    pub map_bytes: u64,
    pub gc_low: u64,
    pub gc_high: u64,
    pub deadline_us: u64,
}

impl Device {
    /// Errors of the device; empty if it is healthy.
    pub fn troubles(&self) -> Vec<String> {
        let counted = [
            (self.read_errors, "read errors"),
            (self.write_errors, "write errors"),
            (self.zones_lost, "zones that another program reset"),
            (self.pages_lost, "pages lost"),
            (self.zones.retired, "zones retired"),
        ]
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{what}: {n}"));
        // Errors have used up the zone that is kept for GC.
        let none = self.zones.full > 0 && self.zones.empty.max(self.zones.open) == 0;
        let refused = none.then(|| "no zone can be written: swap-out is refused".to_string());
        counted.chain(refused).collect()
    }
}

/// Write amplification; None before the first page is swapped out.
pub fn waf(host: u64, gc: u64, padding: u64) -> Option<f64> {
    (host > 0).then(|| (host as f64 + gc as f64 + padding as f64) / host as f64)
}

/// The directory with a device's counters.
pub fn directory(name: &str) -> String {
    format!("/sys/block/{name}/znsage")
}

/// The names of all devices that are on, e.g. znsage0, ordered by number.
pub fn names(sys: &dyn Sys) -> Vec<String> {
    let mut names: Vec<(u64, String)> = sys
        .list("/sys/block")
        .into_iter()
        .filter_map(|n| Some((n.strip_prefix("znsage")?.parse().ok()?, n)))
        .filter(|(_, n)| sys.exists(&directory(n)))
        .collect();
    names.sort();
    names.into_iter().map(|(_, n)| n).collect()
}

pub fn all(sys: &dyn Sys) -> Result<Vec<Device>> {
    let mut devices = Vec::new();
    for name in names(sys) {
        match read(sys, &name) {
            Ok(device) => devices.push(device),
            // Turned off between the listing and the reading.
            Err(_) if !sys.exists(&directory(&name)) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(devices)
}

/// Without `--no-discard`.
pub fn discards(sys: &dyn Sys, name: &str) -> bool {
    value::<u8>(sys, name, "discard").ok() != Some(0)
}

/// Reads one file of a device.
pub fn value<T: FromStr>(sys: &dyn Sys, name: &str, file: &str) -> Result<T> {
    let path = format!("{}/{file}", directory(name));
    let text = sys.read(&path).map_err(|e| Error::io("read", &sys.at(&path), e))?;
    text.trim().parse().map_err(|_| {
        Error::new(Kind::Kernel, format!("{path} holds `{}`, which is not valid", text.trim()))
            .hint("check that command and module have the same version")
    })
}

pub fn read(sys: &dyn Sys, name: &str) -> Result<Device> {
    let number = |file: &str| value::<u64>(sys, name, file);
    let text = |file: &str| value::<String>(sys, name, file);
    let mut device = Device {
        name: name.to_string(),
        backing: text("backing")?,
        config: text("config")?,
        size_bytes: number("size_bytes")?,
        policy: text("policy")?,
        chunk_bytes: number("chunk_bytes")?,
        write_unit_bytes: number("write_unit_bytes")?,
        zone_bytes: number("zone_bytes")?,
        blocks_total: number("blocks_total")?,
        streams: number("streams")?,
        stripe: number("stripe")?,
        gc_stripe: number("gc_stripe")?,
        gc_shared: number("gc_shared")?,
        write_window: number("write_window")?,
        slots_used: number("slots_used")?,
        live_blocks: number("live_blocks")?,
        utilization: 0.0,
        zones: Zones {
            total: number("zones_total")?,
            empty: number("zones_empty")?,
            open: number("zones_open")?,
            full: number("zones_full")?,
            retired: number("zones_retired")?,
            unused: number("zones_unused")?,
        },
        host_blocks: number("host_blocks")?,
        gc_blocks: number("gc_blocks")?,
        padding_blocks: number("padding_blocks")?,
        gc_read_blocks: number("gc_read_blocks")?,
        waf: None,
        chunks: number("chunks")?,
        zone_resets: number("zone_resets")?,
        slots_freed: number("slots_freed")?,
        read_errors: number("read_errors")?,
        write_errors: number("write_errors")?,
        zones_lost: number("zones_lost").unwrap_or(0),
        pages_lost: number("pages_lost").unwrap_or(0),
        stalls: number("stalls")?,
        map_bytes: number("map_bytes")?,
        gc_low: number("gc_low")?,
        gc_high: number("gc_high")?,
        deadline_us: number("deadline_us")?,
    };
    device.waf = waf(device.host_blocks, device.gc_blocks, device.padding_blocks);
    if device.blocks_total > 0 {
        device.utilization = device.live_blocks as f64 / device.blocks_total as f64;
    }
    Ok(device)
}

/// Finds a device by name or path of the disk or the backing device, or by a link
/// to either.
pub fn find(sys: &dyn Sys, wanted: &str) -> Result<Device> {
    let mut names = vec![wanted.trim_start_matches("/dev/").to_string()];
    if wanted.contains('/') {
        let path = absolute(wanted)?;
        names.extend(sys.link_name(&path));
        names.extend(sys.canonical(&path));
        // A node may have any name.
        if let Ok(Some((major, minor))) = sys.block_device(&path) {
            names.extend(sys.link_name(&format!("/sys/dev/block/{major}:{minor}")));
        }
    }
    let devices = all(sys)?;
    let known = match devices.as_slice() {
        [] => "no znsage device is on".to_string(),
        some => {
            let list: Vec<&str> = some.iter().map(|d| d.name.as_str()).collect();
            format!("available: {}", list.join(", "))
        }
    };
    devices.into_iter().find(|d| names.contains(&d.name) || names.contains(&d.backing)).ok_or_else(
        || Error::new(Kind::Device, format!("`{wanted}` is no znsage device")).hint(known),
    )
}
