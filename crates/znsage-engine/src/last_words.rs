// SPDX-License-Identifier: GPL-2.0-only
//! The engine aborts the process when it finds an invariant broken. A test sets here the
//! message that is printed then: its seed.

use std::cell::RefCell;
use std::sync::Once;

thread_local! {
    static WORDS: RefCell<String> = const { RefCell::new(String::new()) };
}

extern "C" fn speak(_signal: libc::c_int) {
    // abort() raises the signal in the thread that called it, so the words are that
    // thread's. Errors cannot be reported.
    let _ = WORDS.try_with(|words| {
        if let Ok(words) = words.try_borrow() {
            // SAFETY: the buffer is valid for its length; a signal handler may call
            // write(2).
            unsafe { libc::write(2, words.as_ptr().cast(), words.len()) };
        }
    });
}

/// Sets the text that is written to standard error if this thread aborts.
pub fn set(words: &str) {
    static HANDLER: Once = Once::new();

    HANDLER.call_once(|| {
        // SAFETY: the handler only does what signal handlers may do.
        unsafe { libc::signal(libc::SIGABRT, speak as *const () as libc::sighandler_t) };
    });
    WORDS.with_borrow_mut(|w| {
        w.clear();
        w.push_str(words);
    });
}
