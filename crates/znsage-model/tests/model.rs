// SPDX-License-Identifier: GPL-2.0-only
//! The races that matter; and mutants with one weakened operation of the engine, each of which
//! must be found. docs/dev/locking.md has the arguments.

use loom::thread;
use znsage_model::port::Mutant;
use znsage_model::port::Operation::{Add, Barrier, CompareAndSwap, Exchange};
use znsage_model::port::Weaken::{Blind, NoBarrier, Plain, Relaxed};
use znsage_model::{explore, Found, Model, Until};

/// Swaps out pages before the threads begin, in this order.
fn written(m: Model, pages: &[(u32, u32)]) {
    for &(slot, version) in pages {
        let _ = m.write(slot, version);
    }
}

/// At rest, slot 0 must read as one of `want`.
fn ends_with(m: Model, want: &[Found]) {
    let (found, _) = m.read(0);
    assert!(want.contains(&found), "slot 0 at rest is {found:?}");
    m.end();
}

macro_rules! threads {
    ($m:ident, $($run:expr),+) => {
        vec![$(thread::spawn(move || $run)),+]
    };
}

fn reads(m: Model, allowed: &[Found]) -> bool {
    let (found, kick) = m.read(0);
    assert!(allowed.contains(&found), "slot 0 read as {found:?}");
    kick
}

fn works(m: Model) -> bool {
    m.work();
    false
}

/// Slot 0's page is given up; GC goes on.
fn loses(m: Model) -> bool {
    m.lose(0);
    m.work();
    false
}

/// The last block of a zone dies while it is read; the zone is reset.
fn read_free_reset() {
    let m = Model::new();
    written(m, &[(0, 1), (1, 1), (1, 2)]);
    m.start();
    let threads = threads![m, m.free(0), works(m), reads(m, &[Found::Page(0, 1), Found::Zeros])];
    ends_with(m.settle(threads), &[Found::Zeros]);
}

/// Two threads read the same zone.
fn read_read_reset() {
    let m = Model::new();
    written(m, &[(0, 1), (1, 1), (1, 2)]);
    m.start();
    let threads = threads![
        m,
        {
            let _ = m.free(0);
            works(m)
        },
        reads(m, &[Found::Page(0, 1), Found::Zeros]),
        reads(m, &[Found::Page(0, 1), Found::Zeros])
    ];
    ends_with(m.settle(threads), &[Found::Zeros]);
}

/// A slot is freed while the append ends that fills its zone.
fn free_as_zone_fills() {
    let m = Model::new();
    written(m, &[(1, 1)]);
    let _ = m.free(1);
    let append = m.submit(0, 1);
    m.start();
    let threads = threads![m, m.complete(append), m.free(0)];
    ends_with(m.settle(threads), &[Found::Zeros]);
}

/// A slot is written again while its older page is in flight, and read.
fn overwrite_in_flight() {
    let m = Model::new();
    let append = m.submit(0, 1);
    m.start();
    let threads = threads![
        m,
        m.complete(append),
        m.write(0, 2),
        reads(m, &[Found::Busy, Found::Page(0, 1), Found::Page(0, 2)])
    ];
    ends_with(m.settle(threads), &[Found::Page(0, 2)]);
}

fn victim() -> Model {
    let m = Model::new();
    written(m, &[(0, 1), (1, 1), (1, 2), (2, 1), (3, 1)]);
    m.eager();
    m
}

/// GC's append ends; its page is freed, and read.
fn move_free_read() {
    let m = victim();
    let append = m.work_until(Until::Append);
    m.start();
    let threads = threads![
        m,
        {
            let _ = m.complete(append);
            works(m)
        },
        m.free(0),
        reads(m, &[Found::Page(0, 1), Found::Zeros])
    ];
    ends_with(m.settle(threads), &[Found::Zeros]);
}

/// GC's append ends; its page is written again, and read.
fn move_overwrite_read() {
    let m = victim();
    let append = m.work_until(Until::Append);
    m.start();
    let threads = threads![
        m,
        m.complete(append),
        m.write(0, 2),
        reads(m, &[Found::Page(0, 1), Found::Busy, Found::Page(0, 2)])
    ];
    ends_with(m.settle(threads), &[Found::Page(0, 2)]);
}

/// A page is given up; its slot is written again.
fn lose_overwrite() {
    let m = victim();
    m.start();
    let threads = threads![m, loses(m), m.write(0, 2)];
    ends_with(m.settle(threads), &[Found::Page(0, 2), Found::Lost]);
}

/// A page is given up; its slot is freed.
fn lose_free() {
    let m = victim();
    m.start();
    let threads = threads![m, loses(m), m.free(0)];
    ends_with(m.settle(threads), &[Found::Zeros]);
}

/// Both blocks of a zone die at once.
fn free_free() {
    let m = Model::new();
    written(m, &[(0, 1), (1, 1)]);
    m.start();
    let threads = threads![m, m.free(0), m.free(1)];
    ends_with(m.settle(threads), &[Found::Zeros]);
}

/// Two zones die while the worker looks for dead ones.
fn two_zones_die() {
    let m = Model::new();
    written(m, &[(0, 1), (1, 1), (1, 2), (2, 1), (2, 2)]);
    m.start();
    let threads = threads![m, m.free(0), m.free(1), works(m)];
    ends_with(m.settle(threads), &[Found::Zeros]);
}

/// Two appends to a zone end at once.
fn complete_complete() {
    let m = Model::new();
    let (a, b) = (m.submit(0, 1), m.submit(1, 1));
    m.start();
    let threads = threads![m, m.complete(a), m.complete(b)];
    ends_with(m.settle(threads), &[Found::Page(0, 1)]);
}

/// The last block of a zone dies while it is read, and the worker runs because of another zone.
fn read_free_reset_of_two() {
    let m = Model::new();
    written(m, &[(0, 1), (1, 1), (1, 2), (1, 3)]);
    assert!(m.free(1));
    m.start();
    let threads = threads![
        m,
        {
            m.work();
            true
        },
        reads(m, &[Found::Page(0, 1), Found::Zeros]),
        m.free(0)
    ];
    ends_with(m.settle(threads), &[Found::Zeros]);
}

macro_rules! hold {
    ($($scenario:ident),+ $(,)?) => {
        mod holds {
            $(#[test]
            fn $scenario() {
                znsage_model::explore(None, super::$scenario).unwrap();
            })+
        }
    };
}

hold!(
    read_free_reset,
    read_read_reset,
    read_free_reset_of_two,
    free_as_zone_fills,
    overwrite_in_flight,
    move_free_read,
    move_overwrite_read,
    lose_overwrite,
    lose_free,
    free_free,
    two_zones_die,
    complete_complete,
);

/// Mutants, the scenario that finds each, and the violation.
const MUTANTS: &[(Mutant, fn(), &str)] = &[
    (("next_reset", Barrier, NoBarrier), move_free_read, "a reset was forgotten"),
    (("zse_read_begin", Add, Relaxed), read_free_reset, "stream >= e->max_streams"),
    (("zse_read_begin", Add, Plain), read_read_reset, "stream >= e->max_streams"),
    (("zse_read_end", Add, Relaxed), move_free_read, "a reset was forgotten"),
    (("zse_read_end", Add, Plain), read_read_reset, "a reader that has gone is counted"),
    (("zone_enter", Barrier, NoBarrier), free_as_zone_fills, "a dead zone was overlooked"),
    (("page_died", Add, Relaxed), free_as_zone_fills, "a dead zone was overlooked"),
    (("page_died", Add, Plain), free_free, "live count"),
    (("zse_free", Exchange, Plain), free_as_zone_fills, "live count"),
    (("zse_free", Exchange, Plain), move_free_read, "left > e->cfg.zone_blocks"),
    (("map_write", Exchange, Plain), move_overwrite_read, "left > e->cfg.zone_blocks"),
    (("map_publish", Add, Plain), complete_complete, "live count"),
    (("map_publish", CompareAndSwap, Plain), free_as_zone_fills, "number of slots in use"),
    (("map_publish", CompareAndSwap, Plain), overwrite_in_flight, "live count"),
    (("map_publish", CompareAndSwap, Plain), move_free_read, "left > e->cfg.zone_blocks"),
    (("map_publish", CompareAndSwap, Blind), overwrite_in_flight, "live count"),
    (("map_publish", CompareAndSwap, Blind), move_overwrite_read, "left > e->cfg.zone_blocks"),
    (("map_publish", CompareAndSwap, Blind), free_as_zone_fills, "number of slots in use"),
    (("map_lose", CompareAndSwap, Plain), lose_overwrite, "left > e->cfg.zone_blocks"),
    (("map_lose", CompareAndSwap, Plain), lose_free, "left > e->cfg.zone_blocks"),
    (("zone_append_worked", Add, Plain), complete_complete, "number of appends in flight"),
    (("zone_landed", Add, Relaxed), complete_complete, "the place of an append is refused"),
    (("zones_take_dead", Exchange, Relaxed), two_zones_die, "exceeded maximum"), // the stack is a ring
    (("zone_note_dead", CompareAndSwap, Plain), two_zones_die, "a dead zone was overlooked"),
    (("zone_note_dead", CompareAndSwap, Blind), two_zones_die, "a dead zone was overlooked"),
];

#[test]
fn weaker_is_found() {
    for (nr, &(mutant, scenario, violation)) in MUTANTS.iter().enumerate() {
        let Err(found) = explore(Some(mutant), scenario) else {
            panic!("{nr}: {mutant:?} is not found");
        };
        assert!(found.contains(violation), "{nr}: {mutant:?}: {found}");
    }
}
