// SPDX-License-Identifier: GPL-2.0-only
//! The engine's own C code in a model checker: every interleaving of a few threads, and
//! every value that an unordered load may see. docs/dev/locking.md says what the model covers
//! and what it does not.

pub mod port;

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;

use loom::thread::JoinHandle;

#[repr(C)]
struct Raw {
    _private: [u8; 0],
}

extern "C-unwind" {
    fn model_create() -> *mut Raw;
    fn model_destroy(m: *mut Raw);
    fn model_eager(m: *mut Raw);
    fn model_lose(m: *mut Raw, slot: u32);
    fn model_shared(m: *mut Raw, nr: u32) -> *mut u32;
    fn model_submit(m: *mut Raw, slot: u32, version: u32, zone: *mut u32, kick: *mut bool) -> u32;
    fn model_appended(m: *mut Raw, chunk: u32, zone: u32) -> bool;
    fn model_put(m: *mut Raw, chunk: u32) -> bool;
    fn model_free(m: *mut Raw, slot: u32) -> bool;
    fn model_read(m: *mut Raw, slot: u32, page: *mut u32, kick: *mut bool) -> u32;
    fn model_work(m: *mut Raw, until: u32, chunk: *mut u32, zone: *mut u32) -> bool;
    fn model_check(m: *mut Raw);
}

/// What a read found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found {
    Zeros,
    /// Slot and version.
    Page(u32, u32),
    /// A block that was reset.
    Nothing,
    Busy,
    Lost,
}

/// An append in flight.
#[derive(Clone, Copy)]
pub struct Request {
    chunk: u32,
    zone: u32,
    kick: bool,
}

/// Where the worker stops.
#[derive(Clone, Copy)]
pub enum Until {
    Rest = 0,
    Append = 1,
}

/// An engine with eight zones of two blocks and four slots.
#[derive(Clone, Copy)]
pub struct Model(*mut Raw);

// SAFETY: the engine is made for several threads, and loom runs one at a time.
unsafe impl Send for Model {}

// SAFETY of all calls: the model is alive until settle(), which consumes it in
// explore()'s closure after its threads were joined.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Model {
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        port::clear();
        Model(unsafe { model_create() })
    }

    /// From now on GC cleans whenever it gains anything.
    pub fn eager(self) {
        unsafe { model_eager(self.0) }
    }

    /// The engine gives up the page of a slot that has a block.
    pub fn lose(self, slot: u32) {
        unsafe { model_lose(self.0, slot) }
    }

    pub fn submit(self, slot: u32, version: u32) -> Request {
        let (mut zone, mut kick) = (0, false);
        let chunk = unsafe { model_submit(self.0, slot, version, &mut zone, &mut kick) };
        Request { chunk, zone, kick }
    }

    /// An append ends; its chunk is still held. Here and below a `bool` tells whether the
    /// worker should run.
    #[must_use]
    pub fn appended(self, r: Request) -> bool {
        unsafe { model_appended(self.0, r.chunk, r.zone) || r.kick }
    }

    /// The chunk of an append that has ended goes back to the engine.
    #[must_use]
    pub fn put(self, r: Request) -> bool {
        unsafe { model_put(self.0, r.chunk) }
    }

    #[must_use]
    pub fn complete(self, r: Request) -> bool {
        let more = self.appended(r);
        self.put(r) | more
    }

    #[must_use]
    pub fn write(self, slot: u32, version: u32) -> bool {
        let request = self.submit(slot, version);
        self.complete(request)
    }

    #[must_use]
    pub fn free(self, slot: u32) -> bool {
        unsafe { model_free(self.0, slot) }
    }

    pub fn read(self, slot: u32) -> (Found, bool) {
        let (mut page, mut kick) = (0, false);
        let how = unsafe { model_read(self.0, slot, &mut page, &mut kick) };
        let found = match how {
            0 => Found::Zeros,
            2 => Found::Busy,
            3 => Found::Lost,
            _ if page == 0 => Found::Nothing,
            _ => Found::Page((page >> 16) - 1, page & 0xffff),
        };
        (found, kick)
    }

    /// The worker runs until it has nothing to do.
    pub fn work(self) {
        unsafe { model_work(self.0, Until::Rest as u32, ptr::null_mut(), ptr::null_mut()) };
    }

    /// The worker runs until an append of GC is to be submitted.
    pub fn work_until(self, until: Until) -> Request {
        let (mut chunk, mut zone) = (0, 0);
        let found = unsafe { model_work(self.0, until as u32, &mut chunk, &mut zone) };
        assert!(found, "GC has nothing to do");
        Request { chunk, zone, kick: true }
    }

    /// The setup is over: other threads may start.
    pub fn start(self) {
        port::share((0..).map_while(|nr| {
            let p = unsafe { model_shared(self.0, nr) };
            (!p.is_null()).then_some(p)
        }));
    }

    /// Joins the threads. The worker runs if one of them asks for it; then all invariants
    /// must hold.
    pub fn settle(self, threads: Vec<JoinHandle<bool>>) -> Self {
        let mut kick = false;
        for thread in threads {
            kick |= thread.join().expect("a thread of the model");
        }
        port::unshare();
        if kick {
            self.work();
        }
        unsafe { model_check(self.0) };
        self
    }

    pub fn end(self) {
        unsafe { model_destroy(self.0) }
    }
}

/// Preemptions in one execution. Three show every mutant; four take minutes.
const PREEMPTIONS: usize = 3;

/// Explores `scenario` with `mutant` in place. The error is the violation.
pub fn explore(mutant: Option<port::Mutant>, scenario: fn()) -> Result<(), String> {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.max_branches = 20_000;
    port::set_mutant(mutant);
    let result = catch_unwind(AssertUnwindSafe(|| builder.check(scenario)));
    let met = port::mutant_met();
    port::clear();
    port::set_mutant(None);
    assert!(mutant.is_none() || met, "{mutant:?} is nowhere");
    result.map_err(|e| match e.downcast::<String>() {
        Ok(s) => *s,
        Err(e) => e.downcast_ref::<&str>().map_or("?".into(), |s| s.to_string()),
    })
}
