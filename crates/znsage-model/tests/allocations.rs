// SPDX-License-Identifier: GPL-2.0-only
//! What the module allocates on the paths of pages, by its source; docs/dev/memory.md says why.
//!
//! A bio set refills as bios end, but only `GFP_NOIO` waits for that. With `GFP_NOWAIT`, 7.x
//! returns NULL as soon as the slab fails, and never uses the reserve. No kernel with fault
//! injection is new enough to show it.

use std::fs;

const PATHS: [&str; 6] = ["write.c", "wait.c", "append.c", "read.c", "worker.c", "events.c"];

/// The one exception: a read that finds no memory inside `submit_bio()` is left to a work
/// item, which waits.
const LATER: &str = "gfp_t gfp = wait ? GFP_NOIO : GFP_NOWAIT | __GFP_NOWARN;";

fn source(file: &str) -> String {
    let path = format!("{}/../../kmod/{file}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The calls in `text` of functions whose names begin with `prefix`, with their arguments.
fn calls<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(prefix).filter_map(|(at, _)| {
        let call = &text[at..];
        let end = call.find(';')?;
        call[..end].contains('(').then_some(&call[..end])
    })
}

#[test]
fn bios_are_waited_for() {
    let mut found = 0;
    for file in PATHS {
        let text = source(file);
        for prefix in ["bio_alloc_bioset(", "bio_alloc_clone("] {
            for call in calls(&text, prefix) {
                let later = text.contains(LATER) && call.contains(" gfp,");
                assert!(call.contains("GFP_NOIO") || later, "{file}: {call}");
                found += 1;
            }
        }
    }
    assert_eq!(found, 3, "clones and records of swap-in, and the worker's bios");
}

#[test]
fn nothing_else_is_allocated() {
    for file in PATHS {
        let text = source(file).replacen(LATER, "", 1);
        let flags = text.match_indices("GFP_").map(|(at, _)| &text[at..]);
        for flag in flags {
            assert!(flag.starts_with("GFP_NOIO"), "{file}: {}", flag.lines().next().unwrap());
        }
    }
}
