// SPDX-License-Identifier: GPL-2.0-only
//! The checks of `on` before it changes anything.

use crate::cli::OnArgs;
use crate::contents::Holds;
use crate::device::{self, Backing};
use crate::error::{Error, Kind, Result};
use crate::sys::Sys;
use crate::{resume, swapfile, swaps, units};

/// The forward map, 4 bytes a slot, and lists, which take a part of that (engine/census.c).
const MAP_BYTES: u64 = 5;
/// The forward map of compressed pages.
const PACKED_MAP_BYTES: u64 = 8;

/// The module's default (kmod/config.c).
const DEFAULT_RESERVE: u32 = 2;

/// The module's limits for devices without zones (kmod/virtual.c).
const LEAST_BYTES: u64 = 16 << 20;
const LEAST_OF_A_ZONE: u64 = 256 << 10;
const MOST_OF_A_ZONE: u64 = 2 << 30;
const MOST_ZONES: u64 = 1 << 20;

/// mkswap refuses anything smaller.
const MIN_PAGES: u64 = 10;
/// A compressed page takes at least this part of a page (engine/engine.h, ZSE_LEAST_PART).
const MOST_SHRINK: u64 = 16;

/// Checks a device with these settings; needs root.
pub fn examine(sys: &dyn Sys, args: &OnArgs, page: u64) -> Result<(Backing, Holds)> {
    let backing = match swapfile::named(sys, &args.device)? {
        Some(path) => swapfile::inspect(sys, &path, args)?,
        None => device::inspect(sys, &args.device)?,
    };
    resume::check(sys, &backing.path, &backing.name)?;
    check_settings(args, &backing, page)?;
    check_memory(sys, args, &backing, page)?;
    let holds = Holds::look(sys, &backing, args.force)?;
    Ok((backing, holds))
}

/// The module repeats these checks, but answers only "invalid argument".
fn check_settings(args: &OnArgs, backing: &Backing, page: u64) -> Result<()> {
    let reserve = u64::from(args.reserve.unwrap_or(DEFAULT_RESERVE));
    let unit = args.write_unit.unwrap_or(page);
    if args.no_discard && backing.zones.is_some() {
        let what = format!("--no-discard: the zones of {} must be reset", backing.path);
        return Err(Error::new(Kind::Device, what).hint("it is for devices without zones"));
    }
    if backing.zones.is_none() && backing.usable_bytes < LEAST_BYTES {
        let (path, has) = (&backing.path, units::size(backing.usable_bytes));
        let least = units::size(LEAST_BYTES);
        return Err(Error::new(Kind::Device, format!("{path} has {has}: {least} are needed"))
            .hint("choose a larger device"));
    }
    if let Some(size) = args.zone_size {
        check_zone_size(size, unit, backing)?;
    }
    let number = match (&backing.zones, args.zone_size) {
        (Some(zones), _) => Some(zones.number),
        (None, size) => size.map(|size| backing.usable_bytes / size),
    };
    if let Some(number) = number {
        device::check_zones(backing, number, reserve)?;
    }
    check_write_size("--write-unit", unit, page, page, backing)?;
    device::check_reach(backing, args.size, page)?;
    if let Some(chunk) = args.chunk {
        check_write_size("--chunk", chunk, unit, page, backing)?;
    }
    match args.size {
        Some(size) => check_size(size, args, backing, page),
        None => Ok(()),
    }
}

fn check_zone_size(size: u64, unit: u64, backing: &Backing) -> Result<()> {
    let why = if backing.zones.is_some() {
        format!("{} has zones of its own", backing.path)
    } else if size == 0 || !size.is_multiple_of(unit) {
        format!("{size} bytes are not a multiple of the write unit ({})", units::size(unit))
    } else if size > MOST_OF_A_ZONE {
        format!("{} are more than a zone can have", units::size(size))
    } else if size < LEAST_OF_A_ZONE {
        format!("{} are less than a zone must have", units::size(size))
    } else if backing.usable_bytes / size > MOST_ZONES {
        let number = backing.usable_bytes / size;
        format!("{number} zones of {} are more than {MOST_ZONES}", units::size(size))
    } else {
        return Ok(());
    };
    let [least, most] = [LEAST_OF_A_ZONE, MOST_OF_A_ZONE].map(units::size);
    Err(Error::new(Kind::Device, format!("--zone-size: {why}"))
        .hint(format!("it is for devices without zones, whole units of {least} to {most}")))
}

fn check_size(size: u64, args: &OnArgs, backing: &Backing, page: u64) -> Result<()> {
    let shown = units::size(size);
    let least = MIN_PAGES * page;
    if size < least {
        return Err(Error::new(Kind::Device, format!("--size: {size} bytes are too few"))
            .hint(format!("the minimum is {} ({least} bytes)", units::size(least))));
    }
    let (held_back, compresses) = (args.over_provisioning, args.compresses());
    // The module's limit is a little lower than this one.
    let shrink = if compresses { MOST_SHRINK } else { 1 };
    let most = backing.usable_bytes / 100 * u64::from(100 - held_back) * shrink;
    if size > most {
        let (path, most) = (&backing.path, units::size(most));
        return Err(Error::new(
            Kind::Space,
            format!("--size: {shown} do not fit on {path}: with {held_back} % over-provisioning it holds {most}{}", if compresses { " at most" } else { "" }),
        )
        .hint("choose a smaller --size, or omit it to use all"));
    }
    Ok(())
}

/// A chunk or write unit: whole `unit`s, in one append, within a zone.
fn check_write_size(
    option: &str,
    bytes: u64,
    unit: u64,
    page: u64,
    backing: &Backing,
) -> Result<()> {
    let shown = units::size(bytes);
    let why = if bytes == 0 || !bytes.is_multiple_of(page) {
        format!("{bytes} bytes are not a multiple of the page ({})", units::size(page))
    } else if !bytes.is_multiple_of(unit) {
        format!("{shown} are not a multiple of the write unit ({})", units::size(unit))
    } else if bytes > backing.append_bytes {
        format!("{shown} do not fit in one append")
    } else if backing.zones.as_ref().is_some_and(|zones| bytes > zones.bytes) {
        format!("{shown} do not fit in a zone")
    } else {
        return Ok(());
    };
    let append = units::size(backing.append_bytes);
    let mut hint = format!("{} takes appends of up to {append}", backing.path);
    if let Some(zones) = &backing.zones {
        hint += &format!(" and has zones of {}", units::size(zones.bytes));
    }
    Err(Error::new(Kind::Device, format!("{option}: {why}")).hint(hint))
}

/// Memory for the map, about.
pub fn map_bytes(args: &OnArgs, backing: &Backing, page: u64) -> u64 {
    // With --size the module also maps spare zones, which it counts itself.
    let size = args.size.unwrap_or(backing.usable_bytes);
    if args.compresses() {
        size / page * PACKED_MAP_BYTES
    } else {
        (size.min(backing.usable_bytes) / page).min(device::MAX_BLOCKS) * MAP_BYTES
    }
}

fn check_memory(sys: &dyn Sys, args: &OnArgs, backing: &Backing, page: u64) -> Result<()> {
    let need = map_bytes(args, backing, page);
    let have = swaps::available_memory(sys)?;
    if need <= have {
        return Ok(());
    }
    let (need, have) = (units::size(need), units::size(have));
    Err(Error::new(
        Kind::Space,
        format!("the map of {} takes {need} of memory; {have} are available", backing.path),
    )
    .hint("--size SIZE uses a part of the device"))
}
