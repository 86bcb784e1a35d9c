// SPDX-License-Identifier: GPL-2.0-only
//! Ctrl-C and SIGTERM set a flag; whoever holds something looks at it and
//! undoes what it did. Programs that the command starts get the signal from
//! the terminal themselves.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{sigaction, SaFlags, SigAction, SigHandler, SigSet, Signal};

static SEEN: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_signal: libc::c_int) {
    SEEN.store(true, Ordering::Relaxed);
}

pub fn seen() -> bool {
    SEEN.load(Ordering::Relaxed)
}

/// From here on the signals no longer end the process.
pub fn catch() {
    let action = SigAction::new(SigHandler::Handler(note), SaFlags::SA_RESTART, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handler only stores to an atomic, which is allowed in
        // a signal handler, and nothing else in this process has its own.
        let old = unsafe { sigaction(signal, &action) };
        debug_assert!(old.is_ok(), "these signals can be caught");
    }
}
