// SPDX-License-Identifier: GPL-2.0-only
//! The configuration of an engine, and the reasons to refuse one.

use std::ffi::{CStr, CString};
use std::fmt;
use std::ptr;
use std::sync::Once;

use crate::sys;

/// Which stream a page goes to: a policy of the engine, or a registered one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Policy(*const sys::znsage_policy);

// SAFETY: a policy is constant once it can be found by its name.
unsafe impl Send for Policy {}
// SAFETY: as above.
unsafe impl Sync for Policy {}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Default for Policy {
    fn default() -> Self {
        Policy::single()
    }
}

impl Policy {
    /// Its name.
    pub fn name(&self) -> &str {
        // SAFETY: a policy is found by its name, which ends with a zero.
        let name = unsafe { CStr::from_ptr(self.get().name.as_ptr()) };
        name.to_str().unwrap_or("?")
    }

    pub(crate) fn from_ptr(policy: *const sys::znsage_policy) -> Option<Self> {
        (!policy.is_null()).then_some(Policy(policy))
    }

    /// A policy that comes with the engine.
    pub fn builtin(name: &str) -> Option<Self> {
        let name = CString::new(name).ok()?;
        // SAFETY: the name ends with a zero.
        Self::from_ptr(unsafe { sys::zse_builtin_policy(name.as_ptr()) })
    }

    /// A policy of the engine, one of policies/, to compare with, or a loaded one.
    pub fn named(name: &str) -> Option<Self> {
        static COMPARED: Once = Once::new();
        COMPARED.call_once(|| {
            // SAFETY: each registers its policies, once.
            let errs = unsafe { [sys::znsage_sepbit_init(), sys::znsage_oracle_init()] };
            assert_eq!(errs, [0, 0], "no other policy has their names");
        });
        let name = CString::new(name).ok()?;
        // SAFETY: the name ends with a zero.
        Self::from_ptr(unsafe { sys::zse_find_policy(name.as_ptr()) })
    }

    /// One stream for all.
    pub fn single() -> Self {
        Self::builtin("single").expect("the engine has it")
    }

    /// A stream for each CPU.
    pub fn cpu() -> Self {
        Self::builtin("cpu").expect("the engine has it")
    }

    pub(crate) fn as_ptr(self) -> *const sys::znsage_policy {
        self.0
    }

    pub(crate) fn get(&self) -> &'static sys::znsage_policy {
        // SAFETY: policies stay.
        unsafe { &*self.0 }
    }
}

/// How GC chooses a victim if the policy does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Victim {
    #[default]
    Greedy = sys::ZSE_VICTIM_GREEDY as isize,
    CostBenefit = sys::ZSE_VICTIM_COST_BENEFIT as isize,
    Age = sys::ZSE_VICTIM_AGE as isize,
}

/// Why a configuration is refused: `enum zse_refusal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    NoMemory = 1,
    BadChunk,
    TooFewZones,
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

/// Device and settings; see `struct zse_config` in engine.h. The default has no zones, and 0
/// for what has a default or is off.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub nr_zones: u32,
    pub zone_blocks: u32,
    /// Pages are packed: this many blocks are one of the device. 0: a page is a block.
    pub pack: u32,
    pub finish: bool,
    pub max_active: u32,
    /// A zone takes one append at a time.
    pub serial: bool,
    /// A zone lies across all of the device, although there is no limit on open ones.
    pub wide: bool,
    pub nr_slots: u32,
    pub chunk_pages: u32,
    /// Entries with which a chunk is full unless the device is busy; 0: `chunk_pages`.
    pub batch_pages: u32,
    pub write_unit: u32,
    pub nr_chunks: u32,
    pub nr_gc_chunks: u32,
    pub reserve: u32,
    pub nr_cpus: u32,
    pub policy: Policy,
    pub victim: Victim,
    /// Zones that each stream writes at a time; 0: the default.
    pub stripe: u32,
    pub gc_low: u32,
    pub gc_high: u32,
    pub pace: u32,
}

impl Config {
    pub(crate) fn to_c(&self) -> sys::zse_config {
        sys::zse_config {
            nr_zones: self.nr_zones,
            zone_blocks: self.zone_blocks,
            pack: self.pack,
            finish: self.finish,
            max_active: self.max_active,
            serial: self.serial,
            wide: self.wide,
            nr_slots: self.nr_slots,
            chunk_pages: self.chunk_pages,
            batch_pages: self.batch_pages,
            write_unit: self.write_unit,
            nr_chunks: self.nr_chunks,
            nr_gc_chunks: self.nr_gc_chunks,
            reserve: self.reserve,
            nr_cpus: self.nr_cpus,
            policy: self.policy.as_ptr(),
            victim: self.victim as u32,
            stripe: self.stripe,
            gc_low: self.gc_low,
            gc_high: self.gc_high,
            pace: self.pace,
            host: ptr::null_mut(),
            zone_event: None,
            odd: None,
        }
    }

    /// The largest `nr_slots` that is accepted, whatever `nr_slots` is now.
    pub fn max_slots(&self) -> u32 {
        // SAFETY: the configuration is complete.
        unsafe { sys::zse_max_slots(&self.to_c()) }
    }

    /// The number of streams for the policy.
    pub fn nr_streams(&self) -> u32 {
        // SAFETY: as above; a policy is valid.
        unsafe { sys::zse_nr_streams(&self.to_c(), self.policy.as_ptr()) }
    }

    /// The greatest number of streams for any policy.
    pub fn max_streams(&self) -> u32 {
        // SAFETY: as above.
        unsafe { sys::zse_max_streams(&self.to_c()) }
    }

    /// Zones that each stream writes at a time, and those that GC does.
    pub fn lanes(&self) -> (u32, u32) {
        let cfg = self.to_c();
        // SAFETY: as above.
        unsafe { (sys::zse_lanes(&cfg, self.nr_streams()), sys::zse_gc_lanes(&cfg)) }
    }

    /// A good number of chunks for GC.
    pub fn gc_chunks(&self) -> u32 {
        // SAFETY: as above.
        unsafe { sys::zse_gc_chunks(&self.to_c()) }
    }

    /// The lowest `gc_low` that is accepted.
    pub fn least_gc_low(&self) -> u32 {
        self.reserve + self.lanes().1
    }
}
