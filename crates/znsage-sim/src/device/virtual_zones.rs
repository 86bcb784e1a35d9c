// SPDX-License-Identifier: GPL-2.0-only
//! Virtual zones on a conventional SSD, as the module makes them (kmod/virtual.c): an
//! append is a write at the zone's write pointer, which the host keeps; a reset trims the
//! zone; a finish does nothing.

use super::conventional::ConventionalSsd;
use super::types::{Appended, DeviceCounters, Fault, ZonedGeometry};
use super::zns::ZnsSsd;
use crate::time::{Ns, BLOCK};

// As in the module.
const LARGEST: u64 = 256 << 20;
const ZONES_OF_A_DEVICE: u64 = 256;
/// The longest write, in blocks.
const MAX_WRITE: u32 = 256;

/// Zones that the host makes itself.
pub struct VirtualZones {
    dev: ConventionalSsd,
    geometry: ZonedGeometry,
    /// The write pointer of each zone.
    next: Vec<u32>,
}

impl VirtualZones {
    /// Zones of `bytes`; 0: a share of the device, in whole ranges that it can trim.
    pub fn new(dev: ConventionalSsd, bytes: u64) -> Self {
        let grain = dev.trim_granularity() / BLOCK;
        let share = (dev.blocks() / ZONES_OF_A_DEVICE).min(LARGEST / BLOCK);
        let blocks = match bytes / BLOCK {
            0 => (share - share % grain).max(grain),
            blocks => blocks.min(dev.blocks()),
        };
        let zones = dev.blocks() / blocks;
        let (zones, zone_blocks) = (zones as u32, blocks as u32);
        let geometry = ZonedGeometry {
            zones,
            zone_blocks,
            zone_size_blocks: zone_blocks,
            write_unit: 1,
            max_open: 0,
            max_active: 0,
            max_append: MAX_WRITE,
            emulated_append: false,
        };
        VirtualZones { dev, geometry, next: vec![0; zones as usize] }
    }

    fn start(&self, zone: u32) -> u64 {
        u64::from(zone) * u64::from(self.geometry.zone_blocks)
    }
}

/// What the engine's host needs of a device.
pub trait ZoneDevice {
    /// Its shape.
    fn geometry(&self) -> &ZonedGeometry;

    /// Its counters.
    fn counters(&self) -> &DeviceCounters;

    /// Are its zones as wide as the device, although it has no limit on open ones?
    fn is_wide(&self) -> bool;

    /// Appends blocks to a zone.
    ///
    /// # Errors
    /// If the device refuses or fails it.
    fn append(&mut self, now: Ns, zone: u32, blocks: u32) -> Result<Appended, Fault>;

    /// Writes blocks at a place in a zone, where the device's write pointer must be.
    ///
    /// # Errors
    /// If the device refuses or fails it.
    fn write(&mut self, now: Ns, zone: u32, offset: u32, blocks: u32) -> Result<Ns, Fault>;

    /// Reads blocks.
    ///
    /// # Errors
    /// If the device refuses or fails it.
    fn read(&mut self, now: Ns, zone: u32, offset: u32, blocks: u32) -> Result<Ns, Fault>;

    /// Empties a zone.
    ///
    /// # Errors
    /// If the device refuses or fails it.
    fn reset(&mut self, now: Ns, zone: u32) -> Result<Ns, Fault>;

    /// Ends writing to a zone.
    ///
    /// # Errors
    /// If the device refuses or fails it.
    fn finish(&mut self, now: Ns, zone: u32) -> Result<Ns, Fault>;
}

impl ZoneDevice for VirtualZones {
    fn geometry(&self) -> &ZonedGeometry {
        &self.geometry
    }

    fn counters(&self) -> &DeviceCounters {
        self.dev.counters()
    }

    fn is_wide(&self) -> bool {
        true
    }

    fn append(&mut self, now: Ns, zone: u32, blocks: u32) -> Result<Appended, Fault> {
        let offset = self.next[zone as usize];
        self.write(now, zone, offset, blocks).map(|done| Appended { offset, done })
    }

    fn write(&mut self, now: Ns, zone: u32, offset: u32, blocks: u32) -> Result<Ns, Fault> {
        let next = offset + blocks;
        assert!(next <= self.geometry.zone_blocks, "beyond zone {zone}: {next}");
        self.next[zone as usize] = next;
        Ok(self.dev.write(now, self.start(zone) + u64::from(offset), blocks))
    }

    fn read(&mut self, now: Ns, zone: u32, offset: u32, blocks: u32) -> Result<Ns, Fault> {
        Ok(self.dev.read(now, self.start(zone) + u64::from(offset), blocks))
    }

    fn reset(&mut self, now: Ns, zone: u32) -> Result<Ns, Fault> {
        self.next[zone as usize] = 0;
        Ok(self.dev.trim(now, self.start(zone), u64::from(self.geometry.zone_blocks)))
    }

    fn finish(&mut self, now: Ns, _zone: u32) -> Result<Ns, Fault> {
        Ok(now)
    }
}

impl ZoneDevice for ZnsSsd {
    fn geometry(&self) -> &ZonedGeometry {
        ZnsSsd::geometry(self)
    }

    fn counters(&self) -> &DeviceCounters {
        ZnsSsd::counters(self)
    }

    fn is_wide(&self) -> bool {
        false
    }

    fn append(&mut self, now: Ns, zone: u32, blocks: u32) -> Result<Appended, Fault> {
        ZnsSsd::append(self, now, zone, blocks)
    }

    fn write(&mut self, now: Ns, zone: u32, offset: u32, blocks: u32) -> Result<Ns, Fault> {
        ZnsSsd::write(self, now, zone, offset, blocks)
    }

    fn read(&mut self, now: Ns, zone: u32, offset: u32, blocks: u32) -> Result<Ns, Fault> {
        ZnsSsd::read(self, now, zone, offset, blocks)
    }

    fn reset(&mut self, now: Ns, zone: u32) -> Result<Ns, Fault> {
        ZnsSsd::reset(self, now, zone)
    }

    fn finish(&mut self, now: Ns, zone: u32) -> Result<Ns, Fault> {
        ZnsSsd::finish(self, now, zone)
    }
}
