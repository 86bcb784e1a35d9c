// SPDX-License-Identifier: GPL-2.0-only
//! The engine aborts the process when it finds an invariant broken. A test
//! that is about to drive it leaves here what has to be known then: the seed.

use std::cell::RefCell;
use std::sync::Once;

thread_local! {
    static WORDS: RefCell<String> = const { RefCell::new(String::new()) };
}

extern "C" fn speak(_signal: libc::c_int) {
    // abort() raises the signal in the thread that called it, so the words
    // are that thread's. Errors cannot be reported to anyone.
    let _ = WORDS.try_with(|words| {
        if let Ok(words) = words.try_borrow() {
            // SAFETY: the buffer is valid for its length; write(2) may be
            // called in a signal handler.
            unsafe { libc::write(2, words.as_ptr().cast(), words.len()) };
        }
    });
}

/// What is written to standard error if this thread aborts.
pub fn set(words: &str) {
    static HANDLER: Once = Once::new();

    HANDLER.call_once(|| {
        // SAFETY: the handler only does what a handler may do.
        unsafe { libc::signal(libc::SIGABRT, speak as *const () as libc::sighandler_t) };
    });
    WORDS.with_borrow_mut(|w| {
        w.clear();
        w.push_str(words);
    });
}
