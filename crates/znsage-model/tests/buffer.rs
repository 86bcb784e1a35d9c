// SPDX-License-Identifier: GPL-2.0-only
//! Step by step, by one thread: what GC has in memory is only read from there
//! as long as the block is where it was read from.

use znsage_model::{Found, Model, Until};

/// The append of GC's chunk has ended, but the chunk was not put back yet: who
/// ends it may be held up in between. Its victim is reset meanwhile, written
/// again, and becomes a victim again.
#[test]
fn chunk_not_yet_put_back_is_no_buffer() {
    let m = Model::new(false);
    for (slot, version) in [(0, 1), (1, 1), (1, 2), (2, 1), (3, 1)] {
        let _ = m.write(slot, version);
    }
    m.eager();
    assert_eq!(m.block(0), 0, "first block of the first zone");
    let moved = m.work_until(Until::Append);
    let _ = m.appended(moved);
    assert_ne!(m.block(0), 0, "GC has moved it");

    // The zone is empty; swap-out gets around to it.
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
