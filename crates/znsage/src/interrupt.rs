// SPDX-License-Identifier: GPL-2.0-only
//! Ctrl-C and SIGTERM set a flag. Commands check it and undo what they did.
//! Programs started by the command get Ctrl-C from the terminal, too.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{sigaction, SaFlags, SigAction, SigHandler, SigSet, Signal};

static SEEN: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_signal: libc::c_int) {
    SEEN.store(true, Ordering::Relaxed);
}

extern "C" fn nothing(_signal: libc::c_int) {}

pub fn seen() -> bool {
    SEEN.load(Ordering::Relaxed)
}

/// From now on the signals do not end the process.
pub fn catch() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        handle(signal, note);
    }
}

/// As `catch`, for a command that must restore the terminal. A change of its size
/// and SIGCONT interrupt waiting.
pub fn catch_on_terminal() {
    catch();
    handle(Signal::SIGQUIT, note);
    handle(Signal::SIGWINCH, nothing);
    handle(Signal::SIGCONT, nothing);
}

fn handle(signal: Signal, handler: extern "C" fn(libc::c_int)) {
    let action = SigAction::new(SigHandler::Handler(handler), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handlers at most store to an atomic, which a signal handler may do,
    // and nothing else in this process installs handlers.
    let old = unsafe { sigaction(signal, &action) };
    debug_assert!(old.is_ok(), "these signals can be caught");
}
