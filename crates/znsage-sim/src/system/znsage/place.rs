// SPDX-License-Identifier: GPL-2.0-only
//! The engine's configuration, and placement of pages by their last stay on
//! the device.

use znsage_engine::{Config, Engine, PageOwner, Policy, Refusal, LEAST_PART, MAX_BLOCKS};

use super::state::Znsage;
use crate::device::ZoneDevice;
use crate::host::page::{ACTIVE, WORKINGSET};
use crate::host::task::By;
use crate::host::Host;
use crate::spec::{CompressKind, SpecError, ZnsageSpec};
use crate::system::media::Zoned;
use crate::time::BLOCK;

// As in the module: kmod/geometry.c.
const DEFAULT_CHUNK: u64 = 256 << 10;
const NR_CHUNKS: u32 = 64;
const BIO_MAX: u32 = 256;
/// Most blocks of a page that is packed, 64 bytes each.
const MOST_PARTS: u32 = 64;
/// A swap area may be so many times as large as what fits if no page shrinks.
const MOST_TIMES: u64 = LEAST_PART as u64;

fn refuse<T>(key: &str, what: impl Into<String>) -> Result<T, SpecError> {
    Err(SpecError { key: key.into(), what: what.into() })
}

/// Default blocks of a chunk, on a device that takes multiples of `unit` up to
/// `most`.
fn default_chunk(unit: u32, most: u32) -> u32 {
    let chunk = ((DEFAULT_CHUNK / BLOCK) as u32).max(unit).min(most);
    chunk - chunk % unit
}

/// The most pages of a chunk that a bio, the device and a zone have room for, in units. If pages
/// are packed, none may shrink, and what GC reads reaches beyond its chunk.
fn longest_chunk<D: ZoneDevice>(media: &Zoned<D>, packed: bool) -> u32 {
    let g = media.dev.geometry();
    let most = g.max_append.min(BIO_MAX).min(media.zone_blocks);
    let longest = match packed {
        true => most.saturating_sub(2 + g.write_unit) * LEAST_PART / (LEAST_PART + 1),
        false => most,
    };
    longest - longest % g.write_unit
}

/// From here on, blocks are parts of pages, as small as their numbers allow.
fn pack_pages(cfg: &mut Config) {
    let pages = u64::from(cfg.nr_zones) * u64::from(cfg.zone_blocks);
    cfg.pack = MOST_PARTS;
    while cfg.pack > LEAST_PART && pages * u64::from(cfg.pack) > u64::from(MAX_BLOCKS) {
        cfg.pack /= 2;
    }
    cfg.zone_blocks *= cfg.pack;
    cfg.write_unit *= cfg.pack;
}

/// The slots of an area of `size` bytes, where `most` fit if no page shrinks.
fn slots(size: u64, most: u32) -> Result<u32, SpecError> {
    match size / BLOCK {
        0 => Ok(most),
        slots if slots <= u64::from(most) * MOST_TIMES => Ok(slots as u32),
        _ => refuse("znsage.size", format!("more than {MOST_TIMES} times {most} pages")),
    }
}

/// The engine's configuration for a device, as the module chooses it.
fn configure<D: ZoneDevice>(
    media: &Zoned<D>,
    set: &ZnsageSpec,
    cpus: u32,
) -> Result<Config, SpecError> {
    let g = media.dev.geometry();
    let unit = g.write_unit;
    let packed = set.compress != CompressKind::Off;
    let longest = longest_chunk(media, packed);
    let mut chunk = u32::try_from(set.chunk / BLOCK).unwrap_or(u32::MAX);
    if set.chunk == 0 {
        chunk = default_chunk(unit, g.max_append.min(media.zone_blocks));
        chunk = if packed { chunk.min(longest) } else { chunk };
    }
    let most = if packed { longest } else { g.max_append.min(media.zone_blocks) };
    if chunk == 0 || chunk % unit != 0 || chunk > most {
        return refuse(
            "znsage.chunk",
            format!(
                "must be a multiple of {} blocks of 4 KiB and at most {} (append limit) and {} (zone)",
                unit, g.max_append, media.zone_blocks
            ),
        );
    }
    let policy = match &set.policy_source {
        None => Policy::named(set.policy.name()).expect("all of them are known"),
        Some(path) => match Policy::from_source(path) {
            Ok(policy) => policy,
            Err(why) => {
                return refuse("znsage.policy-source", format!("{}: {why}", path.display()))
            }
        },
    };
    let mut cfg = Config {
        nr_zones: g.zones,
        zone_blocks: media.zone_blocks,
        finish: media.zone_blocks != g.zone_blocks,
        max_active: media.max_active(),
        serial: g.emulated_append,
        wide: media.dev.is_virtual(),
        // As in the module, a chunk whose size is set does not grow.
        chunk_pages: if set.chunk == 0 { longest } else { chunk },
        batch_pages: chunk,
        write_unit: unit,
        nr_chunks: set.chunks,
        nr_gc_chunks: set.gc_chunks,
        reserve: set.reserve,
        nr_cpus: cpus,
        policy,
        victim: set.victim.into(),
        pace: set.pace,
        stripe: set.stripe,
        gc_low: set.gc_low,
        gc_high: set.gc_high,
        ..Config::default()
    };
    if packed {
        pack_pages(&mut cfg);
    }
    // As in the module: swap-out and GC share a zone where the drive would mix theirs.
    if cfg.wide && cfg.stripe < 2 && media.dev.write_streams() < 2 && cfg.nr_streams() == 1 {
        cfg.max_active = 1;
    }
    if cfg.nr_chunks == 0 {
        cfg.nr_chunks = NR_CHUNKS.max(4 * cfg.nr_streams() * cfg.lanes().0);
    }
    if cfg.nr_gc_chunks == 0 {
        cfg.nr_gc_chunks = cfg.gc_chunks();
    }
    let left = media.blocks() as f64 * (100.0 - set.over_provisioning) / 100.0;
    let most = (left as u64).min(u64::from(cfg.max_slots())) as u32;
    cfg.nr_slots = slots(set.size, most)?;
    Ok(cfg)
}

/// The configuration and the engine as the module makes them.
pub(super) fn engine<D: ZoneDevice>(
    media: &Zoned<D>,
    set: &ZnsageSpec,
    cpus: u32,
) -> Result<(Config, Engine), SpecError> {
    let cfg = configure(media, set, cpus)?;
    match Engine::new(&cfg) {
        Ok(e) => Ok((cfg, e)),
        Err(Refusal::TooFewZones) => refuse(
            "device",
            format!(
                "{} zones are too few for {} streams, GC and a reserve of {}; a larger size or smaller zones (device.zoned.zone_capacity) would do",
                cfg.nr_zones,
                cfg.nr_streams(),
                cfg.reserve
            ),
        ),
        Err(why) => refuse("znsage", format!("the engine refuses it: {why:?}")),
    }
}

impl<D> Znsage<D> {
    /// The stream of the first of `frames`, and how many frames in a row go there.
    pub(super) fn place(&mut self, h: &Host, by: By, frames: &[u32]) -> (u32, usize) {
        let stream = self.stream_of(h, by, frames[0]);
        let mut nr = 1;
        while nr < frames.len() && self.stream_of(h, by, frames[nr]) == stream {
            nr += 1;
        }
        self.placement.note_stream(by.task, stream);
        (stream, nr)
    }

    fn stream_of(&mut self, h: &Host, by: By, frame: u32) -> u32 {
        let f = h.frame(frame);
        let (life, past) = self.placement.last_stay(frame, f.page);
        let usual = match &mut self.placement.oracle {
            Some(oracle) => oracle.life(f.page, h.count.accesses, h.count.swapped_out),
            None => self.e.usual_life(past),
        };
        self.e.place(&PageOwner {
            cgroup: u64::from(f.group) + 1,
            cpu: by.cpu,
            life,
            usual,
            workingset: f.flags & WORKINGSET != 0,
            active: f.flags & ACTIVE != 0,
        })
    }
}
