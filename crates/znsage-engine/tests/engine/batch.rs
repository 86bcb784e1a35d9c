// SPDX-License-Identifier: GPL-2.0-only
//! A batch of pages ends up where the pages would end up one by one.

use znsage_engine::{Engine, Filled};

use crate::refusals::plain;

/// An engine whose appends end at once.
struct Direct {
    e: Engine,
    written: Vec<u32>,
}

impl Direct {
    fn new() -> Self {
        let mut cfg = plain();
        cfg.zone_blocks = 30; // chunks of 4: the last one of a zone is of 2
        let written = vec![0; cfg.nr_zones as usize];
        Direct { e: Engine::new(&cfg).expect("this is valid"), written }
    }

    fn append(&mut self, chunk: Filled) {
        let append = self.e.append_start(chunk, 0).expect("there are empty zones");
        let (zone, blocks) = (append.zone as usize, append.nr + append.padding);
        let at = self.written[zone];
        self.written[zone] += blocks;
        let end = self.e.append_done(append, Some(at), 0);
        self.e.chunk_put(end.ended.expect("all of it was appended"));
    }

    fn add_one_by_one(&mut self, slots: &[u32]) {
        for &slot in slots {
            let added = self.e.add(0, slot, 1).expect("there are chunks");
            if let Some(chunk) = added.full {
                self.append(chunk);
            }
        }
    }

    fn add_together(&mut self, mut slots: &[u32]) {
        while !slots.is_empty() {
            let added = self.e.add_all(0, slots, &[], 1).expect("there are chunks");
            assert!((1..=slots.len() as u32).contains(&added.nr));
            assert!(added.full.is_some() || added.nr as usize == slots.len());
            slots = &slots[added.nr as usize..];
            if let Some(chunk) = added.full {
                self.append(chunk);
            }
        }
    }

    fn places(&mut self, slots: u32) -> Vec<String> {
        let mut kick = false;
        (0..slots)
            .map(|slot| format!("{:?}", self.e.write_of(slot)) + &self.read(slot, &mut kick))
            .collect()
    }

    fn read(&mut self, slot: u32, kick: &mut bool) -> String {
        match self.e.read_begin(slot, 1, kick) {
            znsage_engine::Read::Block(hold) => {
                let block = hold.block();
                self.e.read_end(hold);
                format!("block {block}")
            }
            other => format!("{other:?}"),
        }
    }
}

#[test]
fn batch_equals_pages_added_one_by_one() {
    let (mut one, mut all) = (Direct::new(), Direct::new());
    let slots: Vec<u32> = (0..200).map(|i| i * 37 % 100).collect();
    let mut left = &slots[..];
    for n in (1..).map(|i| i % 9 + 1) {
        let (now, then) = left.split_at(n.min(left.len()));
        one.add_one_by_one(now);
        all.add_together(now);
        left = then;
        if left.is_empty() {
            break;
        }
    }
    assert_eq!(one.places(100), all.places(100));
    assert_eq!(one.e.stats(), all.e.stats());
    assert!(all.e.check().is_empty());
}

#[test]
fn nothing_is_added_without_a_chunk() {
    let mut d = Direct::new();
    let mut kept = Vec::new();
    while let Some(added) = d.e.add_all(0, &[1, 2, 3, 4], &[], 1) {
        kept.extend(added.full);
    }
    assert!(!d.e.has_chunk(0));
    assert_eq!(d.e.stats().slots_used, 4);
    assert!(!kept.is_empty());
}
