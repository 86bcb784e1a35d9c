// SPDX-License-Identifier: GPL-2.0-only
//! What the engine tells its host in callbacks.

use std::ffi::c_void;
use std::sync::Mutex;

use crate::handed::Oddity;
use crate::sys;

/// What the engine's callbacks reach.
#[derive(Debug, Default)]
pub(crate) struct Callbacks {
    pub(crate) odd: Mutex<Vec<(u32, Oddity)>>,
}

pub(crate) unsafe extern "C" fn odd(host: *mut c_void, zone: u32, odd: u32, _: u32, _: u32) {
    // SAFETY: host is what Engine::new() passed, and lives until zse_destroy().
    let host = unsafe { &*host.cast::<Callbacks>() };
    let what = match odd {
        sys::ZSE_WAS_RESET => Oddity::WasReset,
        sys::ZSE_OVERLAP => Oddity::Overlap,
        sys::ZSE_BEYOND => Oddity::Beyond,
        other => panic!("unknown oddity {other}"),
    };
    host.odd.lock().expect("nobody panics with it").push((zone, what));
}
