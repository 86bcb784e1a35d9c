// SPDX-License-Identifier: GPL-2.0-only
//! The engine's atomics, barriers and locks, as loom's.
//!
//! While a scenario is set up, one thread runs, and everything is plain memory. When its
//! threads start, each word that they share without a lock becomes an atomic of loom's,
//! which explores what each load may see. Memory keeps the value stored last, for code
//! that reads a word directly under the lock that guards its changes. All other words
//! are under a lock, or hints.
//!
//! A full barrier is a sequentially consistent fence; an operation that is one is relaxed,
//! with a fence on both sides. C11's fence promises no more than smp_mb().

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{c_char, CStr};
use std::mem;
use std::rc::Rc;

use loom::sync::atomic::{fence, AtomicU32, Ordering};
use loom::sync::{Mutex, MutexGuard};

/// How an operation is weakened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Weaken {
    /// `smp_mb()` orders nothing.
    NoBarrier,
    /// An operation that is a full barrier orders nothing.
    Relaxed,
    /// A read-modify-write is a load and a store.
    Plain,
    /// A compare-and-swap is a store.
    Blind,
}

/// The function and the kind of its operation that is weakened, and how.
pub type Mutant = (&'static str, Operation, Weaken);

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation {
    Barrier,
    Exchange,
    CompareAndSwap,
    Add,
}

struct Lock {
    guard: RefCell<Option<MutexGuard<'static, ()>>>,
    mutex: Mutex<()>,
}

#[derive(Default)]
struct Words {
    atomics: HashMap<usize, Rc<AtomicU32>>,
    locks: HashMap<usize, Rc<Lock>>,
    on: bool,
}

thread_local! {
    // loom runs the threads of a model on one thread of the system.
    static WORDS: RefCell<Words> = RefCell::default();
    static MUTANT: Cell<Option<Mutant>> = const { Cell::new(None) };
    static MET: Cell<bool> = const { Cell::new(false) };
}

/// Puts `mutant` in place; `None`: the code as it is.
pub fn set_mutant(mutant: Option<Mutant>) {
    MUTANT.set(mutant);
    MET.set(false);
}

/// Was the mutant's operation executed?
pub fn mutant_met() -> bool {
    MET.get()
}

/// A model begins. Leaks what a panicked one left: it belongs to an execution of loom's that
/// has ended.
pub fn clear() {
    mem::forget(WORDS.take());
}

/// The threads are about to start, and share `words`.
pub fn share(words: impl Iterator<Item = *mut u32>) {
    let atomics = words
        // SAFETY: the words are those of a model that is alive, and one thread runs.
        .map(|p| (p as usize, Rc::new(AtomicU32::new(unsafe { *p }))))
        .collect();
    WORDS.with_borrow_mut(|w| {
        w.atomics = atomics;
        w.on = true;
    });
}

/// The threads have ended.
pub fn unshare() {
    drop(WORDS.take());
}

fn atomic(p: *const u32) -> Option<Rc<AtomicU32>> {
    WORDS.with_borrow(|w| w.atomics.get(&(p as usize)).cloned())
}

fn weakened(operation: Operation, place: *const c_char) -> Option<Weaken> {
    let (function, of, weaken) = MUTANT.get()?;
    // SAFETY: __func__ of the caller.
    let place = unsafe { CStr::from_ptr(place) };
    if operation != of || place.to_bytes() != function.as_bytes() {
        return None;
    }
    MET.set(true);
    Some(weaken)
}

#[derive(Clone, Copy)]
enum Change {
    To(u32),
    By(u32),
}

impl Change {
    fn of(self, old: u32) -> u32 {
        match self {
            Change::To(v) => v,
            Change::By(v) => old.wrapping_add(v),
        }
    }
}

/// A read-modify-write that is a full barrier, or its mutant.
fn update(p: *mut u32, operation: Operation, place: *const c_char, change: Change) -> u32 {
    let Some(a) = atomic(p) else {
        return plain(p, change);
    };
    let weak = weakened(operation, place);
    if weak == Some(Weaken::Plain) {
        let old = a.load(Ordering::Relaxed);
        store(p, &a, change.of(old));
        return old;
    }
    if weak.is_none() {
        fence(Ordering::SeqCst);
    }
    let old = relaxed(p, &a, change);
    if weak.is_none() {
        fence(Ordering::SeqCst);
    }
    old
}

fn relaxed(p: *mut u32, a: &AtomicU32, change: Change) -> u32 {
    let old = match change {
        Change::To(v) => a.swap(v, Ordering::Relaxed),
        Change::By(v) => a.fetch_add(v, Ordering::Relaxed),
    };
    plain(p, Change::To(change.of(old)));
    old
}

fn store(p: *mut u32, a: &AtomicU32, v: u32) {
    a.store(v, Ordering::Relaxed);
    plain(p, Change::To(v));
}

fn plain(p: *mut u32, change: Change) -> u32 {
    // SAFETY: a word of the engine. Threads of the model run one at a time.
    unsafe {
        let old = *p;
        *p = change.of(old);
        old
    }
}

#[no_mangle]
extern "C-unwind" fn model_load(p: *const u32) -> u32 {
    match atomic(p) {
        Some(a) => a.load(Ordering::Relaxed),
        // SAFETY: a word of the engine.
        None => unsafe { *p },
    }
}

#[no_mangle]
extern "C-unwind" fn model_store(p: *mut u32, v: u32) {
    match atomic(p) {
        Some(a) => store(p, &a, v),
        None => _ = plain(p, Change::To(v)),
    }
}

#[no_mangle]
extern "C-unwind" fn model_xchg(p: *mut u32, v: u32, place: *const c_char) -> u32 {
    update(p, Operation::Exchange, place, Change::To(v))
}

#[no_mangle]
extern "C-unwind" fn model_add(p: *mut u32, v: u32, place: *const c_char) -> u32 {
    update(p, Operation::Add, place, Change::By(v)).wrapping_add(v)
}

/// A full barrier only if it succeeds.
#[no_mangle]
extern "C-unwind" fn model_cmpxchg(p: *mut u32, old: u32, new: u32, place: *const c_char) -> u32 {
    let Some(a) = atomic(p) else {
        // SAFETY: a word of the engine.
        let was = unsafe { *p };
        if was == old {
            plain(p, Change::To(new));
        }
        return was;
    };
    let weak = weakened(Operation::CompareAndSwap, place);
    if weak == Some(Weaken::Blind) {
        store(p, &a, new);
        return old;
    }
    if weak == Some(Weaken::Plain) {
        let was = a.load(Ordering::Relaxed);
        if was == old {
            store(p, &a, new);
        }
        return was;
    }
    let order = match weak {
        None => Ordering::AcqRel,
        Some(_) => Ordering::Relaxed,
    };
    match a.compare_exchange(old, new, order, Ordering::Relaxed) {
        Ok(was) => {
            plain(p, Change::To(new));
            if weak.is_none() {
                fence(Ordering::SeqCst);
            }
            was
        }
        Err(was) => was,
    }
}

#[no_mangle]
extern "C-unwind" fn model_mb(place: *const c_char) {
    if WORDS.with_borrow(|w| w.on) && weakened(Operation::Barrier, place).is_none() {
        fence(Ordering::SeqCst);
    }
}

fn lock_at(p: *const u8) -> Option<Rc<Lock>> {
    WORDS.with_borrow_mut(|w| {
        w.on.then(|| {
            w.locks
                .entry(p as usize)
                .or_insert_with(|| {
                    Rc::new(Lock { guard: RefCell::new(None), mutex: Mutex::new(()) })
                })
                .clone()
        })
    })
}

#[no_mangle]
extern "C-unwind" fn model_lock(p: *const u8) {
    if let Some(lock) = lock_at(p) {
        let guard = lock.mutex.lock().expect("never poisoned");
        // SAFETY: the guard is dropped by model_unlock(), before the mutex,
        // which unshare() drops.
        let guard = unsafe { mem::transmute::<MutexGuard<'_, ()>, MutexGuard<'static, ()>>(guard) };
        *lock.guard.borrow_mut() = Some(guard);
    }
}

#[no_mangle]
extern "C-unwind" fn model_unlock(p: *const u8) {
    if let Some(lock) = lock_at(p) {
        let guard = lock.guard.borrow_mut().take();
        drop(guard);
    }
}

#[no_mangle]
extern "C-unwind" fn model_disk_xchg(p: *mut u32, v: u32) -> u32 {
    match atomic(p) {
        Some(a) => relaxed(p, &a, Change::To(v)),
        None => plain(p, Change::To(v)),
    }
}

/// The device returns the latest content, as a read-modify-write sees it.
#[no_mangle]
extern "C-unwind" fn model_disk_read(p: *mut u32) -> u32 {
    match atomic(p) {
        Some(a) => relaxed(p, &a, Change::By(0)),
        None => plain(p, Change::By(0)),
    }
}

#[no_mangle]
extern "C-unwind" fn model_yield() {
    if WORDS.with_borrow(|w| w.on) {
        loom::thread::yield_now();
    }
}

#[no_mangle]
extern "C-unwind" fn model_broken(what: *const c_char) {
    // SAFETY: a string of the C code.
    panic!("{}", unsafe { CStr::from_ptr(what) }.to_string_lossy());
}
