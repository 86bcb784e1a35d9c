// SPDX-License-Identifier: GPL-2.0-only
//! Virtual zones on a conventional SSD, as the module makes them (kmod/virtual.c): the
//! host chooses where it writes in a zone; a reset trims the zone; a finish does nothing.

use super::conventional::ConventionalSsd;
use super::types::{Appended, DeviceCounters, Fault, ZonedGeometry};
use super::zone_device::ZoneDevice;
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
    /// The write stream of each zone.
    streams: Vec<u32>,
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
        VirtualZones { dev, geometry, streams: vec![0; zones as usize] }
    }

    fn start(&self, zone: u32) -> u64 {
        u64::from(zone) * u64::from(self.geometry.zone_blocks)
    }
}

impl ZoneDevice for VirtualZones {
    fn geometry(&self) -> &ZonedGeometry {
        &self.geometry
    }

    fn counters(&self) -> &DeviceCounters {
        self.dev.counters()
    }

    fn is_virtual(&self) -> bool {
        true
    }

    fn write_streams(&self) -> u32 {
        self.dev.write_streams()
    }

    fn set_write_stream(&mut self, zone: u32, stream: u32) {
        self.streams[zone as usize] = stream;
    }

    fn write(
        &mut self,
        now: Ns,
        zone: u32,
        offset: Option<u32>,
        blocks: u32,
    ) -> Result<Appended, Fault> {
        let offset = offset.expect("there is no append");
        assert!(blocks <= self.geometry.zone_blocks - offset, "beyond zone {zone}");
        let (lba, stream) = (self.start(zone) + u64::from(offset), self.streams[zone as usize]);
        let done = self.dev.write_to(now, stream as usize, lba, blocks);
        Ok(Appended { offset, done })
    }

    fn read(&mut self, now: Ns, zone: u32, offset: u32, blocks: u32) -> Result<Ns, Fault> {
        Ok(self.dev.read(now, self.start(zone) + u64::from(offset), blocks))
    }

    fn reset(&mut self, now: Ns, zone: u32) -> Result<Ns, Fault> {
        Ok(self.dev.trim(now, self.start(zone), u64::from(self.geometry.zone_blocks)))
    }

    fn finish(&mut self, now: Ns, _zone: u32) -> Result<Ns, Fault> {
        Ok(now)
    }
}
