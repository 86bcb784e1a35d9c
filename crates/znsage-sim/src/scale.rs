// SPDX-License-Identifier: GPL-2.0-only
//! How a large device is simulated by a small one: the only scaler, for every
//! run.
//!
//! Write amplification depends on how full a device is and on its number of
//! zones, of which streams, watermarks and open zones take some each; hardly on
//! the size of a zone, as long as it holds many chunks. So a smaller device
//! keeps the number of zones and has smaller ones. What takes a time for a whole
//! zone, a reset or an erase, takes less in proportion: otherwise it would weigh
//! more than on the real device. What takes a time for each command stays.
//!
//! A value of the device that the spec sets itself stays as it is.

use serde::{Deserialize, Serialize};

use crate::device::params::{Interface, Zoned};
use crate::device::{superblock_bytes, ParamError, Params};
use crate::spec::Spec;

/// The smallest zone: 16 chunks of 256 KiB. Below it the last chunk of a zone, and
/// the zones that are open, would weigh more than on the real device.
const LEAST_ZONE: u64 = 4 << 20;
/// Zones hold whole chunks of this size.
const CHUNK: u64 = 256 << 10;
/// Superblocks that are enough for garbage collection to work as on a large drive.
const ENOUGH: u64 = 200;

/// How a device was scaled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaled {
    /// Zones that are simulated; superblocks of a conventional SSD.
    pub zones: u64,
    /// Bytes that one holds.
    pub zone_bytes: u64,
    /// Zones of the device.
    pub of_zones: u64,
    /// Bytes that one holds there.
    pub of_zone_bytes: u64,
}

/// A device as it is simulated.
#[derive(Clone, Debug)]
pub struct Device {
    /// Its parameters, scaled.
    pub params: Params,
    /// Its size in bytes, if not that of the parameters.
    pub size: Option<u64>,
    /// What was scaled; None: nothing.
    pub scaled: Option<Scaled>,
}

impl Scaled {
    /// What the times of a whole zone were multiplied by.
    pub fn times(&self) -> f64 {
        self.zone_bytes as f64 / self.of_zone_bytes as f64
    }
}

/// Loads the device of a spec and scales it to the spec's size.
///
/// # Errors
/// If there is no such device, or its parameters are refused.
pub fn device(spec: &Spec) -> Result<Device, ParamError> {
    let mut params = Params::load(&spec.device, &spec.device_set)?;
    let set = |key: &str| spec.device_set.iter().any(|(k, _)| k == key);
    if params.interface == Interface::Conventional {
        return Ok(conventional(params, spec.size, !set("conventional.superblock")));
    }
    let Some(z) = &mut params.zoned else {
        return Ok(Device { params, size: spec.size, scaled: None });
    };
    let own = match set("zoned.zone_capacity") {
        true => Params::load(&spec.device, &[])?.zoned.map_or(0, |z| z.zone_capacity),
        false => z.zone_capacity,
    };
    let (of_zones, shaped) = (z.zones, set("zoned.zone_capacity") || set("zoned.zone_size"));
    let mut size = spec.size;
    if let Some(bytes) = spec.size.filter(|_| !shaped) {
        size = Some(shrink(z, bytes));
    }
    let capacity = z.zone_capacity;
    if own == 0 || (capacity == own && size.is_none_or(|b| b >= u64::from(of_zones) * own)) {
        return Ok(Device { params, size, scaled: None });
    }
    let zones = size.map_or(of_zones.into(), |bytes| bytes / capacity);
    let (zone_bytes, of_zone_bytes) = (capacity, own);
    let scaled = Scaled { zones, zone_bytes, of_zones: of_zones.into(), of_zone_bytes };
    for (key, curve) in
        [("zoned.reset_us", &mut z.reset_us), ("zoned.reset_finished_us", &mut z.reset_finished_us)]
    {
        if !set(key) {
            curve.iter_mut().for_each(|point| point.1 *= scaled.times());
        }
    }
    if !set("media.erase_us") {
        params.media.erase = (params.media.erase as f64 * scaled.times()).round() as u64;
    }
    Ok(Device { params, size, scaled: Some(scaled) })
}

/// Makes zones smaller, so that the device's number of them fits in `bytes`, or as
/// many as can; returns the size of the device.
fn shrink(z: &mut Zoned, bytes: u64) -> u64 {
    let own = z.zone_capacity;
    if bytes >= u64::from(z.zones) * own {
        return bytes;
    }
    let grain = z.write_unit * (CHUNK / z.write_unit).max(1);
    let share = bytes / u64::from(z.zones) / grain * grain;
    let capacity = share.max(LEAST_ZONE / grain * grain).max(grain).min(own);
    if z.zone_size == own {
        z.zone_size = capacity;
    }
    z.zone_capacity = capacity;
    z.max_append = z.max_append.min(capacity);
    (bytes / capacity).min(z.zones.into()) * capacity
}

/// A conventional SSD shrinks its superblocks, and their erase times, itself. A superblock
/// that would cover only some dies is widened to cover all, if at least [`ENOUGH`]
/// superblocks remain.
fn conventional(mut params: Params, size: Option<u64>, may_widen: bool) -> Device {
    let (Some(c), Some(bytes)) = (params.conventional.clone(), size) else {
        return Device { params, size, scaled: None };
    };
    let unit = params.media.program_unit();
    let (stripe, own) = (u64::from(params.media.dies) * unit, c.superblock);
    let flash = (bytes as f64 * (1.0 + c.over_provisioning)) as u64;
    if may_widen && superblock_bytes(&params, bytes) < stripe && flash / stripe >= ENOUGH {
        // Shrunk by `flash / c.flash`, this is one program operation on each die.
        let wide = (u128::from(stripe) * u128::from(c.flash)).div_ceil(flash.into()) as u64;
        let wide = wide.div_ceil(unit) * unit;
        params.media.erase = (params.media.erase as f64 * wide as f64 / own as f64).round() as u64;
        if let Some(c) = &mut params.conventional {
            c.superblock = wide;
        }
    }
    let zone_bytes = superblock_bytes(&params, bytes);
    let (zones, of_zones) = (flash / zone_bytes, c.flash / own);
    let scaled = Scaled { zones, zone_bytes, of_zones, of_zone_bytes: own };
    Device { params, size, scaled: (zone_bytes != own).then_some(scaled) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(device_name: &str, size: Option<u64>, set: &[(&str, &str)]) -> Device {
        let mut spec = Spec { device: device_name.into(), size, ..Spec::default() };
        for (key, value) in set {
            spec.set(key, value).unwrap();
        }
        device(&spec).unwrap()
    }

    fn zoned(d: &Device) -> Zoned {
        d.params.zoned.clone().unwrap()
    }

    #[test]
    fn zones_stay_as_many_and_their_times_shrink_with_them() {
        let d = of("zn540", Some(64 << 30), &[]);
        let s = d.scaled.unwrap();
        assert_eq!((s.zones, s.of_zones, s.of_zone_bytes), (904, 904, 1077 << 20));
        assert_eq!(s.zone_bytes, (64u64 << 30) / 904 / CHUNK * CHUNK);
        assert_eq!(d.size, Some(904 * s.zone_bytes));
        let z = zoned(&d);
        assert_eq!(z.zone_capacity, s.zone_bytes);
        let full = z.reset_us.last().unwrap().1;
        assert!((full - 15810.0 * s.times()).abs() < 1e-6, "{full}");
        assert_eq!(z.reset_us[0].0, 0.0, "parts of a zone stay");
        let finished = z.reset_finished_us.last().unwrap().1;
        assert!((finished - 15360.0 * s.times()).abs() < 1e-6, "{finished}");
        assert_eq!((z.open, z.max_open), (9560, 14), "commands and limits stay");
    }

    #[test]
    fn a_zone_holds_some_chunks_however_small_the_device() {
        let d = of("zn540", Some(768 << 20), &[]);
        let s = d.scaled.unwrap();
        assert_eq!((s.zones, s.zone_bytes), (192, LEAST_ZONE));
        // Whole write units of 192 KiB, and the die's erase is shorter, too.
        let d = of("hynix", Some(4 << 30), &[]);
        let s = d.scaled.unwrap();
        assert_eq!((s.zone_bytes, s.zone_bytes % (192 << 10)), (21 * (192 << 10), 0));
        assert_eq!(zoned(&d).zone_size, s.zone_bytes);
        assert_eq!(d.params.media.erase, (3e6 * s.times()).round() as u64);
    }

    #[test]
    fn the_device_s_own_size_changes_nothing() {
        for size in [None, Some(904 * (1077 << 20)), Some(2000 << 30)] {
            let d = of("zn540", size, &[]);
            assert_eq!((d.scaled, d.size), (None, size));
            assert_eq!(d.params, Params::load("zn540", &[]).unwrap());
        }
    }

    #[test]
    fn what_the_spec_sets_stays() {
        let set = [("device.zoned.zone_capacity", "6 MiB")];
        let d = of("zn540", Some(768 << 20), &set);
        let s = d.scaled.unwrap();
        assert_eq!((s.zones, s.zone_bytes, d.size), (128, 6 << 20, Some(768 << 20)));
        assert!((zoned(&d).reset_us[5].1 - 15810.0 * 6.0 / 1077.0).abs() < 1e-6);
        let set = [set[0], ("device.zoned.reset_us", "[[0, 1], [1, 500]]")];
        assert_eq!(zoned(&of("zn540", Some(768 << 20), &set)).reset_us[1].1, 500.0);
        let d = of("zn540", Some(64 << 30), &[("device.zoned.zones", "100")]);
        assert_eq!(d.scaled.unwrap().zones, 100);
    }

    #[test]
    fn superblocks_stay_as_many_and_reach_over_all_dies() {
        let s = of("conventional", Some(64 << 30), &[]).scaled.unwrap();
        assert!((s.zones as i64 - s.of_zones as i64).abs() <= 2, "{s:?}");
        let s = of("conventional", Some(1 << 30), &[]).scaled.unwrap();
        assert_eq!(s.zone_bytes, 32 * (96 << 10));
    }
}
