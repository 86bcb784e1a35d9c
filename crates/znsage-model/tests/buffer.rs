// SPDX-License-Identifier: GPL-2.0-only
//! Step by step, in one thread: swap-in copies from GC's chunk only while the chunk's block
//! is still the one that GC read.

use znsage_model::{Found, Model, Until};

/// The append of GC's chunk has ended, but the chunk is not put back yet. Meanwhile its victim
/// is reset, written again, and becomes a victim again.
#[test]
fn swap_in_does_not_copy_from_a_chunk_whose_append_ended() {
    let m = Model::new();
    for (slot, version) in [(0, 1), (1, 1), (1, 2), (2, 1), (3, 1)] {
        let _ = m.write(slot, version);
    }
    m.eager();
    assert_eq!(m.block(0), 0, "first block of the first zone");
    let moved = m.work_until(Until::Append);
    let _ = m.appended(moved);
    assert_ne!(m.block(0), 0, "GC has moved it");

    // The zone is empty; swap-out comes to it.
    m.set_gc(false);
    m.work();
    let mut version = 2;
    while m.block(3) != 0 {
        let _ = m.write(3, version);
        m.work();
        version += 1;
        assert!(version < 100, "the first zone is not written again");
    }
    // Its other block dies.
    let _ = m.write(2, 2);
    assert_eq!(m.block(2), 1);
    let _ = m.write(2, 3);
    m.set_gc(true);
    m.work_until(Until::Read);
    let (found, _) = m.read(3);
    assert_eq!(found, Found::Page(3, version - 1));
    let _ = m.put(moved);
    m.end();
}
