// SPDX-License-Identifier: GPL-2.0-only
//! Validation of the parameters.

use super::params::{Controller, Conventional, Interface, Media, Params, Zoned};
use crate::time::BLOCK;

/// Each takes a record in memory; real SSDs have far fewer.
const MAX_DIES: u32 = 1 << 16;
const MAX_WAITING: u32 = 1 << 16;

/// A key, and what is wrong with it.
type Refusal = (&'static str, String);

/// Refuses unless `ok`.
fn need(ok: bool, key: &'static str, what: impl FnOnce() -> String) -> Result<(), Refusal> {
    match ok {
        true => Ok(()),
        false => Err((key, what())),
    }
}

fn positive(value: u64, key: &'static str) -> Result<(), Refusal> {
    need(value > 0, key, || "must be more than 0".into())
}

/// A size must be of whole blocks.
fn whole(bytes: u64, key: &'static str) -> Result<(), Refusal> {
    need(bytes > 0 && bytes.is_multiple_of(BLOCK), key, || {
        format!("{} is not a multiple of 4 KiB", size(bytes))
    })
}

/// Bytes in the largest unit that leaves no fraction.
fn size(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.iter().find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1 << shift));
    match unit {
        Some((shift, name)) => format!("{} {name}", bytes >> shift),
        None => format!("{bytes} bytes"),
    }
}

/// Refuses an impossible set.
pub(super) fn params(p: &Params) -> Result<(), Refusal> {
    media(&p.media)?;
    controller(&p.controller, &p.media)?;
    if let Some(z) = &p.zoned {
        zoned(z, &p.media)?;
    }
    if let Some(c) = &p.conventional {
        conventional(c, &p.media)?;
    }
    match p.interface {
        Interface::Zoned => {
            need(p.zoned.is_some(), "interface", || "a zoned device needs the table [zoned]".into())
        }
        Interface::Conventional => need(p.conventional.is_some(), "interface", || {
            "a conventional device needs the table [conventional]".into()
        }),
    }
}

fn media(m: &Media) -> Result<(), Refusal> {
    positive(m.channels.into(), "media.channels")?;
    need(m.dies >= m.channels, "media.dies", || {
        format!("{} dies cannot be on {} channels", m.dies, m.channels)
    })?;
    need(m.dies <= MAX_DIES, "media.dies", || format!("{MAX_DIES} is the most"))?;
    positive(m.planes.into(), "media.planes")?;
    whole(m.page, "media.page")?;
    positive(m.pages_per_program.into(), "media.pages_per_program")?;
    need(m.program_unit() <= 1 << 30, "media.page", || {
        format!("one program operation would write {}", size(m.program_unit()))
    })?;
    positive(m.program, "media.program_us")?;
    positive(m.reads_per_suspend.into(), "media.reads_per_suspend")?;
    jitter(&m.read_jitter_us, "media.read_jitter_us")?;
    jitter(&m.program_jitter_us, "media.program_jitter_us")?;
    positive(m.channel, "media.channel_mb_s")
}

fn controller(c: &Controller, m: &Media) -> Result<(), Refusal> {
    jitter(&c.write_jitter_us, "controller.write_jitter_us")?;
    whole(c.small_write, "controller.small_write")?;
    positive(c.link_read, "controller.link_read_mb_s")?;
    positive(c.link_write, "controller.link_write_mb_s")?;
    need((1..=MAX_WAITING).contains(&c.waiting_writes), "controller.waiting_writes", || {
        format!("must be from 1 to {MAX_WAITING}")
    })?;
    need(c.buffer >= m.program_unit(), "controller.buffer", || {
        format!(
            "{} does not hold what one program operation writes, {}",
            size(c.buffer),
            size(m.program_unit())
        )
    })
}

fn zoned(z: &Zoned, m: &Media) -> Result<(), Refusal> {
    positive(z.zones.into(), "zoned.zones")?;
    whole(z.zone_capacity, "zoned.zone_capacity")?;
    whole(z.zone_size, "zoned.zone_size")?;
    need(z.zone_size <= 1 << 40, "zoned.zone_size", || "more than 1 TiB".into())?;
    need(z.zone_capacity <= z.zone_size, "zoned.zone_capacity", || {
        format!("{} is more than the zone size, {}", size(z.zone_capacity), size(z.zone_size))
    })?;
    whole(z.write_unit, "zoned.write_unit")?;
    need(z.zone_capacity.is_multiple_of(z.write_unit), "zoned.write_unit", || {
        let (unit, capacity) = (size(z.write_unit), size(z.zone_capacity));
        format!("{unit} does not divide the zone capacity, {capacity}")
    })?;
    need(
        z.max_active == 0 || (z.max_open > 0 && z.max_open <= z.max_active),
        "zoned.max_open",
        || {
            let open = if z.max_open == 0 { "no limit".into() } else { z.max_open.to_string() };
            format!("{open} is more than max_active, {}: open zones are active", z.max_active)
        },
    )?;
    need(z.max_append >= z.write_unit, "zoned.max_append", || {
        format!("{} is less than the write unit, {}", size(z.max_append), size(z.write_unit))
    })?;
    need(z.max_append <= z.zone_capacity, "zoned.max_append", || {
        format!("{} is more than a zone holds, {}", size(z.max_append), size(z.zone_capacity))
    })?;
    whole(z.max_append, "zoned.max_append")?;
    need((1..=m.dies).contains(&z.dies_per_zone), "zoned.dies_per_zone", || {
        format!("must be from 1 to the number of dies, {}", m.dies)
    })?;
    curve(&z.reset_us, "zoned.reset_us")?;
    curve(&z.reset_finished_us, "zoned.reset_finished_us")
}

/// A curve's points ascend from 0 to 1 and are never negative.
fn curve(points: &[(f64, f64)], key: &'static str) -> Result<(), Refusal> {
    let ends = (points.first().map(|p| p.0), points.last().map(|p| p.0));
    need(ends == (Some(0.0), Some(1.0)), key, || {
        "the first point must be at 0, the last at 1".into()
    })?;
    need(points.windows(2).all(|w| w[0].0 < w[1].0), key, || "points must be in order".into())?;
    need(points.iter().all(|p| (0.0..1e9).contains(&p.1)), key, || {
        "times must be microseconds, from 0 to 1e9".into()
    })
}

/// A distribution's points ascend from 0 to 1 in both values, or there are none.
fn jitter(points: &[(f64, f64)], key: &'static str) -> Result<(), Refusal> {
    if points.is_empty() {
        return Ok(());
    }
    let ends = (points[0].0, points[points.len() - 1].0);
    need(ends == (0.0, 1.0), key, || "the first point must be at 0, the last at 1".into())?;
    let ordered = points.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1);
    need(ordered, key, || "points must be in order".into())?;
    need(points.iter().all(|p| p.1.abs() < 1e9), key, || {
        "times must be microseconds, less than 1e9".into()
    })
}

fn conventional(c: &Conventional, m: &Media) -> Result<(), Refusal> {
    whole(c.flash, "conventional.flash")?;
    need(c.flash < u64::from(u32::MAX) * BLOCK, "conventional.flash", || {
        format!("{} is more than 32-bit block numbers reach, 16 TiB", size(c.flash))
    })?;
    need((0.0..=10.0).contains(&c.over_provisioning), "conventional.over_provisioning", || {
        "must be from 0 to 10: a part of what the host sees".into()
    })?;
    need(c.partition > 0.0 && c.partition <= 1.0, "conventional.partition", || {
        "must be above 0, and 1 at most".into()
    })?;
    need(
        (0.0..=1.0 - c.partition + 1e-9).contains(&c.other_data),
        "conventional.other_data",
        || format!("must be from 0 to {}, what the partition leaves", 1.0 - c.partition),
    )?;
    need(
        c.superblock > 0 && c.superblock.is_multiple_of(m.program_unit()),
        "conventional.superblock",
        || {
            let unit = size(m.program_unit());
            format!("{} is not a multiple of a program operation, {unit}", size(c.superblock))
        },
    )?;
    positive(c.gc_low.into(), "conventional.gc_low")?;
    need((1..=128).contains(&c.write_streams), "conventional.write_streams", || {
        "must be from 1 to 128".into()
    })?;
    whole(c.trim_granularity, "conventional.trim_granularity")
}
