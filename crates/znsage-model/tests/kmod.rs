// SPDX-License-Identifier: GPL-2.0-only
//! A copy of what kmod/ does without a lock, since its C code cannot run here; each part also
//! without the barrier or counter that it needs.

use std::panic::catch_unwind;

use loom::sync::atomic::{fence, AtomicU32, Ordering::*};
use loom::sync::Arc;
use loom::thread;

fn finds(scenario: impl Fn() + Sync + Send + std::panic::UnwindSafe + 'static) -> bool {
    catch_unwind(|| loom::model(scenario)).is_err()
}

/// Each side writes a word, then looks at the other's; one must see the other. A bio waits and
/// a chunk is put: pending_resume(), chunk_put(). A task waits and a chunk is put:
/// wait_for_room(), chunk_put(). The timer is cleared and a page added: znsage_deadline(),
/// deadline_arm().
fn one_sees_the_other(mine: bool, theirs: bool) {
    let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let side = |me: usize, barrier: bool| {
        let words = words.clone();
        move || {
            words[me].store(1, Relaxed);
            if barrier {
                fence(SeqCst);
            }
            words[1 - me].load(Relaxed)
        }
    };
    let other = thread::spawn(side(1, theirs));
    let seen = side(0, mine)() + other.join().unwrap();
    assert_ne!(seen, 0, "neither saw the other: a wake-up is lost");
}

#[test]
fn wake_ups_need_a_barrier_on_both_sides() {
    loom::model(|| one_sees_the_other(true, true));
    assert!(finds(|| one_sees_the_other(true, false)));
    assert!(finds(|| one_sees_the_other(false, true)));
}

/// A chunk of swap-out that is appended in two parts. Each end tells the engine, then ends the
/// bios of its pages. Once the engine has the chunk back, it is used for other bios.
struct Chunk {
    parents: [AtomicU32; 2],
    rest: AtomicU32,
    holds: AtomicU32,
}

const OURS: u32 = 1;
const NEXT: u32 = 2;

fn put_and_used_again(chunk: &Chunk) {
    for parent in &chunk.parents {
        parent.store(NEXT, Relaxed);
    }
}

/// append_end_io(). `counted`: zc->holds decides who puts the chunk; else the last part does.
fn append_end(chunk: &Chunk, part: usize, finished: bool, counted: bool) {
    chunk.holds.fetch_add(1, AcqRel);
    if !finished {
        // zse_append_done(): the worker may append the rest.
        chunk.rest.store(1, Release);
    }
    let parent = chunk.parents[part].load(Relaxed);
    assert_eq!(parent, OURS, "a bio of the chunk's next use was ended");
    let holds = if finished { 2 } else { 1 };
    let last = chunk.holds.fetch_sub(holds, AcqRel) == holds;
    if if counted { last } else { finished } {
        put_and_used_again(chunk);
    }
}

fn chunk_in_two_parts(counted: bool) {
    let chunk = Arc::new(Chunk {
        parents: [AtomicU32::new(OURS), AtomicU32::new(OURS)],
        rest: AtomicU32::new(0),
        holds: AtomicU32::new(1),
    });
    let first = {
        let chunk = chunk.clone();
        thread::spawn(move || append_end(&chunk, 0, false, counted))
    };
    if chunk.rest.load(Acquire) == 1 {
        append_end(&chunk, 1, true, counted);
        first.join().unwrap();
        assert_eq!(chunk.parents[0].load(Relaxed), NEXT, "nobody put the chunk");
    }
}

#[test]
fn chunk_is_put_after_all_its_pages_have_ended() {
    loom::model(|| chunk_in_two_parts(true));
    assert!(finds(|| chunk_in_two_parts(false)));
}
