// SPDX-License-Identifier: GPL-2.0-only
//! The pages that are in memory as well as on the device. GC drops their blocks instead
//! of moving them, and the host writes them again.
//!
//! The engine asks during `zse_next_op()`, whose caller has borrowed the host. So the host
//! keeps this set up to date, and looks afterwards at what GC dropped.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::handed::Oddity;
use crate::sys;

/// Slots whose page is in memory, unchanged.
#[derive(Debug, Default)]
pub struct InMemory {
    words: Vec<AtomicU64>,
    dropped: Mutex<Vec<u32>>,
}

/// What the engine's callbacks reach.
#[derive(Debug, Default)]
pub(crate) struct Callbacks {
    pub(crate) memory: Option<Arc<InMemory>>,
    pub(crate) odd: Mutex<Vec<(u32, Oddity)>>,
}

impl InMemory {
    /// An empty set for this many slots.
    pub fn new(slots: u32) -> Self {
        let words = (0..slots.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        InMemory { words, dropped: Mutex::default() }
    }

    fn at(&self, slot: u32) -> (&AtomicU64, u64) {
        (&self.words[slot as usize / 64], 1 << (slot % 64))
    }

    /// Adds a slot: its page is in memory, and the host can write it again.
    pub fn insert(&self, slot: u32) {
        let (word, bit) = self.at(slot);
        word.fetch_or(bit, Ordering::Relaxed);
    }

    /// Removes a slot.
    pub fn remove(&self, slot: u32) {
        let (word, bit) = self.at(slot);
        word.fetch_and(!bit, Ordering::Relaxed);
    }

    /// Is it in the set?
    pub fn contains(&self, slot: u32) -> bool {
        let (word, bit) = self.at(slot);
        word.load(Ordering::Relaxed) & bit != 0
    }

    /// Slots that GC removed since the last call. Their blocks are dead.
    pub fn take_dropped(&self) -> Vec<u32> {
        std::mem::take(&mut self.dropped.lock().expect("nobody panics with it"))
    }

    /// GC asks whether it may drop a slot's block.
    fn drop_block(&self, slot: u32) -> bool {
        let (word, bit) = self.at(slot);
        let found = word.fetch_and(!bit, Ordering::Relaxed) & bit != 0;
        if found {
            self.dropped.lock().expect("nobody panics with it").push(slot);
        }
        found
    }
}

pub(crate) unsafe extern "C" fn in_memory(host: *mut c_void, slot: u32) -> bool {
    // SAFETY: host is what Engine::create() passed, and lives until zse_destroy().
    let host = unsafe { &*host.cast::<Callbacks>() };
    host.memory.as_ref().is_some_and(|memory| memory.drop_block(slot))
}

pub(crate) unsafe extern "C" fn odd(host: *mut c_void, zone: u32, odd: u32, _: u32, _: u32) {
    // SAFETY: as above.
    let host = unsafe { &*host.cast::<Callbacks>() };
    let what = match odd {
        sys::ZSE_WAS_RESET => Oddity::WasReset,
        sys::ZSE_OVERLAP => Oddity::Overlap,
        sys::ZSE_BEYOND => Oddity::Beyond,
        other => panic!("unknown oddity {other}"),
    };
    host.odd.lock().expect("nobody panics with it").push((zone, what));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_slots_are_reported_once() {
        let set = InMemory::new(100);
        for slot in [0, 63, 64, 99] {
            set.insert(slot);
        }
        set.remove(63);
        assert!(set.contains(64) && !set.contains(63));
        let asked: Vec<bool> = [0, 63, 99, 99].iter().map(|&s| set.drop_block(s)).collect();
        assert_eq!(asked, [true, false, true, false]);
        assert_eq!(set.take_dropped(), [0, 99]);
        assert!(set.take_dropped().is_empty());
    }
}
