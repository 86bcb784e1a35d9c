// SPDX-License-Identifier: GPL-2.0-only
//! What the engine's host needs of a device: zones of its own ([`ZnsSsd`]), or virtual
//! ones (`VirtualZones`).

use super::types::{Appended, DeviceCounters, Fault, ZonedGeometry};
use super::zns::ZnsSsd;
use crate::time::Ns;

/// A device with zones.
pub trait ZoneDevice {
    /// Its shape.
    fn geometry(&self) -> &ZonedGeometry;

    /// Its counters.
    fn counters(&self) -> &DeviceCounters;

    /// The zones are the host's idea: each is as wide as the device, and the host chooses
    /// where it writes.
    fn is_virtual(&self) -> bool;

    /// How many write streams it has; what is written to each is kept apart.
    fn write_streams(&self) -> u32 {
        1
    }

    /// What is written to the zone from now on belongs to this write stream.
    fn set_write_stream(&mut self, _zone: u32, _stream: u32) {}

    /// Writes blocks of a zone, from `offset` on, or appends them.
    ///
    /// # Errors
    /// If the device refuses or fails it.
    fn write(
        &mut self,
        now: Ns,
        zone: u32,
        offset: Option<u32>,
        blocks: u32,
    ) -> Result<Appended, Fault>;

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

impl ZoneDevice for ZnsSsd {
    fn geometry(&self) -> &ZonedGeometry {
        ZnsSsd::geometry(self)
    }

    fn counters(&self) -> &DeviceCounters {
        ZnsSsd::counters(self)
    }

    fn is_virtual(&self) -> bool {
        false
    }

    fn write(
        &mut self,
        now: Ns,
        zone: u32,
        offset: Option<u32>,
        blocks: u32,
    ) -> Result<Appended, Fault> {
        let Some(offset) = offset else { return self.append(now, zone, blocks) };
        let done = ZnsSsd::write(self, now, zone, offset, blocks)?;
        Ok(Appended { offset, done })
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
