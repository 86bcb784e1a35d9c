// SPDX-License-Identifier: GPL-2.0-only
//! What must hold after every step, and at rest.

use znsage_engine::Stats;

use crate::host::{Host, Slot};

impl Host {
    /// The engine's invariants.
    pub fn check(&self) {
        let found = self.e.check();
        assert!(found.is_empty(), "zse_check: {found:?}");
    }

    /// Every counter, exactly; gauges that the model knows.
    pub fn check_stats(&self) {
        let st = self.e.stats();
        let used = self.slots.iter().filter(|s| **s != Slot::Zero).count() as u64;
        let live: u32 = self.live.iter().sum();
        let want = Stats {
            slots_used: used,
            live_blocks: u64::from(live),
            zones_total: u64::from(self.cfg.nr_zones),
            zones_open: st.zones_open,
            zones_full: st.zones_full,
            zones_empty: st.zones_empty,
            zones_retired: st.zones_retired,
            blocks_total: st.blocks_total,
            streams: st.streams,
            stripe: st.stripe,
            gc_stripe: st.gc_stripe,
            gc_shared: u64::from(self.cfg.max_active == 1),
            survivors: st.survivors,
            keys: st.keys,
            keys_sharing: st.keys_sharing,
            zones_dead: st.zones_dead,
            gc_zones: st.gc_zones,
            write_window: st.write_window,
            // A chunk may wait for its lane first, and stall later or not at all.
            stalls: if self.cfg.serial { st.stalls } else { self.want.stalls },
            map_bytes: st.map_bytes,
            ..self.want
        };
        assert_eq!(st, want, "statistics: is, should be");
        assert_eq!(
            st.zones_total,
            st.zones_empty + st.zones_open + st.zones_full + st.zones_retired
        );
        for (stream, &reads) in self.stream_reads.iter().enumerate() {
            assert_eq!(self.e.stream_info(stream as u32).read_blocks, reads, "reads of {stream}");
        }
        self.check_zones(&st);
    }

    fn check_zones(&self, st: &Stats) {
        let (mut usable, mut retired) = (0, 0);
        for zone in 0..self.cfg.nr_zones {
            let zi = self.e.zone(zone);
            assert_eq!(zi.live, self.live[zone as usize], "live of zone {zone}");
            assert_eq!(zi.capacity, self.cfg.zone_blocks);
            if zi.state == "retired" {
                retired += 1;
            } else {
                usable += u64::from(zi.capacity);
            }
        }
        assert_eq!((st.blocks_total, st.zones_retired), (usable, retired));
        assert!(retired == 0 || self.errors > 0, "zones retired without an error");
    }

    /// The device holds the page of each slot, as the model expects.
    pub fn check_content(&self) {
        for (slot, state) in self.slots.iter().enumerate() {
            if let Slot::Stored { version, block } = *state {
                let want = Some((slot as u32, version));
                assert_eq!(self.dev.peek(block), want, "block {block}");
            }
        }
    }

    /// No command is in flight.
    pub fn nothing_outstanding(&self) -> bool {
        self.appends.is_empty()
            && self.gc_reads.is_empty()
            && self.resets.is_empty()
            && self.finishes.is_empty()
            && self.reads.is_empty()
    }

    /// What must hold when everything is written and nothing is in flight.
    pub fn check_at_rest(&self) {
        for (slot, state) in self.slots.iter().enumerate() {
            assert!(!matches!(state, Slot::Writing { .. }), "the write of slot {slot} is stuck");
        }
        assert_eq!(self.used_chunks, 0, "chunks in use");
        assert!(self.e.idle(), "not idle: {:?}", self.e.stats());
        if self.errors == 0 {
            assert_eq!(self.failed_chunks, 0);
            self.check_all_left();
            assert!(self.e.stats().zones_empty > 0, "the reserve is gone");
        }
        self.check();
        self.check_stats();
        self.check_content();
    }
}
