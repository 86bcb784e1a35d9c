// SPDX-License-Identifier: GPL-2.0-only
//! What an engine is made from, and why it may refuse.

use std::ptr;

use crate::sys;

/// Which stream a page goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Single = sys::ZSE_POLICY_SINGLE as isize,
    Cpu = sys::ZSE_POLICY_CPU as isize,
}

/// Why a configuration is refused; the values are those of `enum zse_refusal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    NoMemory = 1,
    BadChunk,
    TooFewZones,
    TooFewOpen,
    TooManyBlocks,
    TooManySlots,
    TooManyChunks,
    BadSetting,
}

impl Refusal {
    pub(crate) fn from_c(why: u32) -> Self {
        use Refusal::*;
        let all = [
            NoMemory,
            BadChunk,
            TooFewZones,
            TooFewOpen,
            TooManyBlocks,
            TooManySlots,
            TooManyChunks,
            BadSetting,
        ];
        *all.iter()
            .find(|r| **r as u32 == why)
            .unwrap_or_else(|| panic!("the engine refused for an unknown reason, {why}"))
    }
}

/// Device and settings; see `struct zse_config` in engine.h.
#[derive(Clone, Debug)]
pub struct Config {
    pub nr_zones: u32,
    pub zone_blocks: u32,
    /// Empty if all zones hold `zone_blocks`, else one for each zone.
    pub zone_caps: Vec<u32>,
    pub finish: bool,
    pub max_active: u32,
    pub nr_slots: u32,
    pub chunk_blocks: u32,
    pub write_unit: u32,
    pub nr_chunks: u32,
    pub nr_gc_chunks: u32,
    pub reserve: u32,
    pub nr_cpus: u32,
    pub policy: Policy,
    /// Zones that each stream writes at a time; 0: the default.
    pub stripe: u32,
    pub gc_low: u32,
    pub gc_high: u32,
}

impl Config {
    /// # Panics
    /// If `zone_caps` is neither empty nor of one element for each zone.
    pub(crate) fn to_c(&self) -> sys::zse_config {
        let caps = &self.zone_caps;
        assert!(
            caps.is_empty() || caps.len() == self.nr_zones as usize,
            "a capacity for each zone or for none"
        );
        sys::zse_config {
            nr_zones: self.nr_zones,
            zone_blocks: self.zone_blocks,
            zone_caps: if caps.is_empty() { ptr::null() } else { caps.as_ptr() },
            finish: self.finish,
            max_active: self.max_active,
            nr_slots: self.nr_slots,
            chunk_blocks: self.chunk_blocks,
            write_unit: self.write_unit,
            nr_chunks: self.nr_chunks,
            nr_gc_chunks: self.nr_gc_chunks,
            reserve: self.reserve,
            nr_cpus: self.nr_cpus,
            policy: self.policy as u32,
            stripe: self.stripe,
            gc_low: self.gc_low,
            gc_high: self.gc_high,
        }
    }

    /// The largest `nr_slots` that is accepted; it is not looked at itself.
    pub fn max_slots(&self) -> u32 {
        // SAFETY: zone_caps has nr_zones elements or is NULL.
        unsafe { sys::zse_max_slots(&self.to_c()) }
    }

    pub fn nr_streams(&self) -> u32 {
        // SAFETY: as above.
        unsafe { sys::zse_nr_streams(&self.to_c()) }
    }

    /// Zones that are written at a time by each stream, and by GC.
    pub fn lanes(&self) -> (u32, u32) {
        let (mut stream, mut gc) = (0, 0);
        // SAFETY: as above; both are written.
        unsafe { sys::zse_lanes(&self.to_c(), &mut stream, &mut gc) };
        (stream, gc)
    }

    /// The lowest `gc_low` that is accepted.
    pub fn least_gc_low(&self) -> u32 {
        self.reserve + self.lanes().1
    }

    /// Blocks of a zone.
    pub fn cap(&self, zone: u32) -> u32 {
        match self.zone_caps.get(zone as usize) {
            Some(cap) => *cap,
            None => self.zone_blocks,
        }
    }
}
