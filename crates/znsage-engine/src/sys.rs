// SPDX-License-Identifier: GPL-2.0-only
//! engine/engine.h by hand. The test at the end compares every size, offset
//! and constant here with what the C compiler says in `layout.c`.
#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int, c_void};
use std::marker::{PhantomData, PhantomPinned};

pub const ZSE_WORDS: u32 = 512;
pub const ZSE_TAG_BASE: u32 = 0xfff0_0000;
pub const ZSE_MAX_BLOCKS: u32 = ZSE_TAG_BASE - ZSE_WORDS;
pub const ZSE_MAX_ENTRIES: u32 = 0xf_fffe;
pub const ZSE_DEPTH: u32 = 4;
pub const ZSE_LEAST_PART: u32 = 16;

pub const ZSE_VICTIM_GREEDY: u32 = 0;
pub const ZSE_VICTIM_COST_BENEFIT: u32 = 1;
pub const ZSE_VICTIM_AGE: u32 = 2;

/// A life that is not known: `ZNSAGE_NONE`.
pub const NONE: u32 = u32::MAX;

pub const ZSE_OP_NONE: u32 = 0;
pub const ZSE_OP_APPEND: u32 = 1;
pub const ZSE_OP_FAIL: u32 = 2;
pub const ZSE_OP_READ: u32 = 3;
pub const ZSE_OP_RESET: u32 = 4;
pub const ZSE_OP_FINISH: u32 = 5;

pub const ZSE_WAS_RESET: u32 = 0;
pub const ZSE_OVERLAP: u32 = 1;
pub const ZSE_BEYOND: u32 = 2;

pub const ZSE_READ_FILLED: u32 = 0;
pub const ZSE_READ_BLOCK: u32 = 1;
pub const ZSE_READ_BUSY: u32 = 2;
pub const ZSE_READ_LOST: u32 = 3;

/// Only ever behind a pointer.
#[repr(C)]
pub struct zse_engine {
    opaque: [u8; 0],
    marker: PhantomData<(*mut u8, PhantomPinned)>,
}

/// Only the members that are used here.
#[repr(C)]
#[allow(dead_code)]
pub struct znsage_policy {
    pub name: [c_char; 16],
    streams: u32,
    isolates: bool,
    calls: [*const c_void; 5],
    pub attach: Option<unsafe extern "C" fn(dev: *mut zse_engine) -> *mut c_void>,
    pub detach: Option<unsafe extern "C" fn(dev: *mut zse_engine, private_data: *mut c_void)>,
}

/// What a page that is swapped out belongs to: `struct znsage_page` in
/// include/znsage.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct znsage_page {
    pub cgroup: u64,
    pub cpu: u32,
    pub life: u32,
    pub usual: u32,
    pub workingset: bool,
    pub active: bool,
}

impl znsage_page {
    /// A page of which no more is known than the CPU.
    pub fn of_cpu(cpu: u32) -> Self {
        znsage_page { cgroup: 0, cpu, life: NONE, usual: NONE, workingset: false, active: false }
    }
}

#[repr(C)]
pub struct zse_config {
    pub nr_zones: u32,
    pub zone_blocks: u32,
    pub pack: u32,
    pub finish: bool,
    pub max_active: u32,
    pub serial: bool,
    pub wide: bool,
    pub nr_slots: u32,
    pub chunk_pages: u32,
    pub batch_pages: u32,
    pub write_unit: u32,
    pub nr_chunks: u32,
    pub nr_gc_chunks: u32,
    pub reserve: u32,
    pub nr_cpus: u32,
    pub policy: *const znsage_policy,
    pub victim: u32,
    pub stripe: u32,
    pub gc_low: u32,
    pub gc_high: u32,
    pub pace: u32,
    pub host: *mut c_void,
    pub zone_event: Option<
        unsafe extern "C" fn(host: *mut c_void, zone: u32, from: *const c_char, to: *const c_char),
    >,
    pub odd:
        Option<unsafe extern "C" fn(host: *mut c_void, zone: u32, odd: u32, at: u32, least: u32)>,
}

/// Blocks of one zone that follow one another.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct zse_run {
    pub block: u32,
    pub nr: u32,
    pub len: u32,
    pub blocks: u32,
    pub word: u64,
}

/// What GC has read of a zone whose pages are packed.
#[repr(C)]
pub struct zse_span {
    pub host: *mut c_void,
    pub slot: Option<unsafe extern "C" fn(host: *mut c_void, at: u32) -> u32>,
    pub failed: Option<unsafe extern "C" fn(host: *mut c_void, at: u32) -> bool>,
}

/// A look at what the device says of a zone.
#[repr(C)]
#[derive(Debug, Default)]
pub struct zse_look {
    pub zone: u32,
    pub written: u32,
    pub full: bool,
    pub lost: bool,
}

/// One page of a chunk.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct zse_entry {
    /// Whose page it is.
    pub slot: u32,
    /// Tag of the entry; in a GC chunk the block that it is read from.
    pub expect: u32,
    /// Index of the page's buffer; of a GC chunk with packed pages, where the page begins in
    /// what was read.
    pub page: u32,
    /// Packed: where it begins in what the chunk appends.
    pub at: u32,
    /// Packed: the blocks that it takes.
    pub len: u32,
}

/// The engine's own fields follow. Chunks are only reached through pointers from the
/// engine, so their size does not matter here. It is compared anyway, so that a change of
/// it is noticed.
#[repr(C)]
pub struct zse_chunk {
    pub id: u32,
    pub gc: bool,
    pub nr: u32,
    pub max: u32,
    pub done: u32,
    pub fill: u32,
    pub entries: *mut zse_entry,
    pub born: u64,
    pub priv_: *mut c_void,
    rest: [u32; 21],
    pub offset: u32,
    more: [u32; 6],
}

#[repr(C)]
#[derive(Default)]
pub struct zse_op {
    pub kind: u32,
    pub chunk: *mut zse_chunk,
    pub zone: u32,
    pub first: u32,
    pub nr: u32,
    pub from: u32,
    pub blocks: u32,
    pub padding: u32,
    pub no_room: bool,
}

#[repr(C)]
#[derive(Default)]
pub struct zse_zone_info {
    pub state: *const c_char,
    pub capacity: u32,
    pub written: u32,
    pub room: u32,
    pub live: u32,
    pub failed: bool,
    pub mixed: bool,
    pub deferred: bool,
    pub stream: u32,
    pub moves: u32,
    pub reads: u32,
    pub key: u64,
    pub age: u64,
}

/// What a stream has done.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct zse_stream_info {
    pub host_blocks: u64,
    pub gc_blocks: u64,
    pub padding_blocks: u64,
    pub read_blocks: u64,
    pub stalls: u64,
    pub key: u64,
    pub nr_keys: u32,
    pub zones_open: u32,
}

/// Counters (since creation) and gauges (now); see engine/stats.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct zse_stats {
    pub host_blocks: u64,
    pub host_pages: u64,
    pub gc_blocks: u64,
    pub padding_blocks: u64,
    pub refused_pages: u64,
    pub read_blocks: u64,
    pub gc_read_blocks: u64,
    pub chunks: u64,
    pub zone_resets: u64,
    pub slots_freed: u64,
    pub read_errors: u64,
    pub write_errors: u64,
    pub zones_lost: u64,
    pub pages_lost: u64,
    pub stalls: u64,
    pub zones_dead: u64,
    pub gc_zones: u64,
    pub policy_refused: u64,
    pub slots_used: u64,
    pub live_blocks: u64,
    pub zones_total: u64,
    pub zones_empty: u64,
    pub zones_open: u64,
    pub zones_full: u64,
    pub zones_retired: u64,
    pub blocks_total: u64,
    pub streams: u64,
    pub stripe: u64,
    pub gc_stripe: u64,
    pub gc_shared: u64,
    pub survivors: u64,
    pub keys: u64,
    pub keys_sharing: u64,
    pub write_window: u64,
    pub map_bytes: u64,
}

pub type zse_say_fn =
    unsafe extern "C" fn(arg: *mut c_void, what: *const c_char, at: u32, is: u64, want: u64);

extern "C" {
    pub fn zse_create(cfg: *const zse_config, why: *mut u32) -> *mut zse_engine;
    pub fn zse_destroy(e: *mut zse_engine);
    pub fn zse_max_slots(cfg: *const zse_config) -> u32;
    pub fn zse_max_streams(cfg: *const zse_config) -> u32;
    pub fn zse_nr_streams(cfg: *const zse_config, policy: *const znsage_policy) -> u32;
    pub fn zse_lanes(cfg: *const zse_config, streams: u32) -> u32;
    pub fn zse_gc_lanes(cfg: *const zse_config) -> u32;
    pub fn zse_gc_chunks(cfg: *const zse_config) -> u32;

    pub fn zse_place(e: *mut zse_engine, page: *const znsage_page) -> u32;
    pub fn zse_stream_begin(e: *mut zse_engine, stream: u32) -> *mut zse_chunk;
    pub fn zse_chunk_add(e: *mut zse_engine, c: *mut zse_chunk, slot: u32, past: u8) -> u32;
    pub fn zse_stream_end(e: *mut zse_engine, stream: u32) -> *mut zse_chunk;
    pub fn zse_stream_flush(e: *mut zse_engine, stream: u32) -> *mut zse_chunk;
    pub fn zse_stream_take(e: *mut zse_engine, stream: u32, born_before: u64) -> *mut zse_chunk;
    pub fn zse_stream_due(e: *const zse_engine, stream: u32) -> bool;
    pub fn zse_stream_born(e: *const zse_engine, stream: u32) -> u64;
    pub fn zse_append_start(
        e: *mut zse_engine,
        c: *mut zse_chunk,
        op: *mut zse_op,
        now: u64,
    ) -> bool;
    pub fn zse_write_stream(c: *const zse_chunk, nr: u32) -> u32;
    pub fn zse_chunk_lose(e: *mut zse_engine, c: *mut zse_chunk);
    pub fn zse_has_chunk(e: *mut zse_engine, stream: u32) -> bool;

    pub fn zse_append_done(
        e: *mut zse_engine,
        c: *mut zse_chunk,
        ok: *mut bool,
        offset: u32,
        now: u64,
        finished: *mut bool,
    ) -> bool;
    pub fn zse_chunk_put(e: *mut zse_engine, c: *mut zse_chunk) -> bool;
    pub fn zse_gc_entry_failed(e: *mut zse_engine, c: *mut zse_chunk, index: u32) -> bool;
    pub fn zse_gc_read_done(e: *mut zse_engine, c: *mut zse_chunk) -> bool;
    pub fn zse_gc_scan(e: *mut zse_engine, c: *mut zse_chunk, w: *const zse_span);
    pub fn zse_chunk_pack(e: *mut zse_engine, c: *mut zse_chunk, index: u32, len: u32);
    pub fn zse_certain(e: *const zse_engine) -> u32;
    pub fn zse_room(e: *mut zse_engine) -> u32;
    pub fn zse_chunk_fits(e: *mut zse_engine, c: *mut zse_chunk) -> bool;
    pub fn zse_reset_done(e: *mut zse_engine, zone: u32, ok: bool) -> bool;
    pub fn zse_finish_done(e: *mut zse_engine, zone: u32, ok: bool) -> bool;

    pub fn zse_look_begin(e: *mut zse_engine, zone: u32, look: *mut zse_look) -> bool;
    pub fn zse_look_end(e: *mut zse_engine, look: *mut zse_look, full: bool, written: u32) -> bool;

    pub fn zse_next_op(e: *mut zse_engine, op: *mut zse_op, now: u64) -> bool;
    pub fn zse_gc_due(e: *mut zse_engine) -> bool;

    pub fn zse_read_begin(
        e: *mut zse_engine,
        slot: u32,
        max: u32,
        run: *mut zse_run,
        kick: *mut bool,
    ) -> u32;
    pub fn zse_block_lost(e: *const zse_engine, block: u32) -> bool;
    pub fn zse_read_end(e: *mut zse_engine, block: u32) -> bool;
    pub fn zse_write_of(e: *mut zse_engine, slot: u32, index: *mut u32) -> *mut zse_chunk;
    pub fn zse_read_failed(e: *mut zse_engine, nr: u32);
    pub fn zse_read_worked(e: *mut zse_engine);
    pub fn zse_fill(e: *mut zse_engine, slot: u32, word: u64, kick: *mut bool) -> bool;
    pub fn zse_free(e: *mut zse_engine, slot: u32) -> bool;
    pub fn zse_block_life(e: *const zse_engine, block: u32) -> u32;
    pub fn zse_prepare(e: *mut zse_engine, policy: *const znsage_policy) -> bool;
    pub fn zse_past(e: *mut zse_engine, slot: u32, block: u32) -> u8;
    pub fn zse_lives_apart(e: *mut zse_engine, apart: bool);
    pub fn zse_usual_life(e: *const zse_engine, past: u8) -> u32;

    pub fn zse_builtin_policy(name: *const c_char) -> *const znsage_policy;
    pub fn zse_find_policy(name: *const c_char) -> *const znsage_policy;
    pub fn zse_load_policy(path: *const c_char, why: *mut *const c_char) -> *const znsage_policy;
    pub fn znsage_sepbit_init() -> c_int;
    pub fn znsage_oracle_init() -> c_int;
    pub fn zse_set_policy(
        e: *mut zse_engine,
        policy: *const znsage_policy,
        private_data: *mut c_void,
    );
    pub fn zse_set_victim(e: *mut zse_engine, victim: u32);
    pub fn zse_get_stream(e: *mut zse_engine, stream: u32, si: *mut zse_stream_info) -> bool;

    pub fn zse_get_stats(e: *mut zse_engine, st: *mut zse_stats);
    pub fn zse_set_watermarks(e: *mut zse_engine, low: u32, high: u32) -> bool;
    pub fn zse_get_watermarks(e: *mut zse_engine, low: *mut u32, high: *mut u32);
    pub fn zse_set_gc(e: *mut zse_engine, on: bool);
    pub fn zse_idle(e: *mut zse_engine) -> bool;
    pub fn zse_get_zone(e: *mut zse_engine, zone: u32, zi: *mut zse_zone_info) -> bool;
    pub fn zse_check(e: *mut zse_engine, say: Option<zse_say_fn>, arg: *mut c_void) -> u32;
    pub fn zse_check_twice(
        e: *mut zse_engine,
        bits: *mut u32,
        words: u32,
        say: Option<zse_say_fn>,
        arg: *mut c_void,
    ) -> u32;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Refusal;
    use std::collections::BTreeMap;
    use std::ffi::CStr;
    use std::mem::{offset_of, size_of};

    #[repr(C)]
    struct zse_fact {
        name: *const c_char,
        value: u64,
    }

    extern "C" {
        static zse_facts: [zse_fact; 0];
        static zse_nr_facts: u32;
    }

    fn facts_of_c() -> BTreeMap<String, u64> {
        // SAFETY: layout.c defines an array of zse_nr_facts facts whose names
        // are string literals.
        let facts = unsafe {
            std::slice::from_raw_parts((&raw const zse_facts).cast(), zse_nr_facts as usize)
        };
        let name = |f: &zse_fact| {
            // SAFETY: see above.
            unsafe { CStr::from_ptr(f.name) }.to_str().unwrap().into()
        };
        facts.iter().map(|f| (name(f), f.value)).collect()
    }

    macro_rules! layout {
        ($map:ident, $type:ident { $($member:ident $(as $name:literal)?),* $(,)? }) => {
            $map.insert(concat!("sizeof ", stringify!($type)).into(),
                        size_of::<$type>() as u64);
            $($map.insert(layout!(@name $type $member $($name)?).into(),
                          offset_of!($type, $member) as u64);)*
        };
        (@name $type:ident $member:ident) => {
            concat!(stringify!($type), ".", stringify!($member))
        };
        (@name $type:ident $member:ident $name:literal) => {
            concat!(stringify!($type), ".", $name)
        };
    }

    macro_rules! constants {
        ($map:ident, $($name:ident),* $(,)?) => {
            $($map.insert(stringify!($name).into(), u64::from($name));)*
        };
    }

    fn structures(map: &mut BTreeMap<String, u64>) {
        layout!(
            map,
            zse_config {
                nr_zones,
                zone_blocks,
                pack,
                finish,
                max_active,
                serial,
                wide,
                nr_slots,
                chunk_pages,
                batch_pages,
                write_unit,
                nr_chunks,
                nr_gc_chunks,
                reserve,
                nr_cpus,
                policy,
                victim,
                stripe,
                gc_low,
                gc_high,
                pace,
                host,
                zone_event,
                odd,
            }
        );
        map.insert("sizeof zse_config.victim".into(), size_of::<u32>() as u64);
        layout!(map, znsage_page { cgroup, cpu, life, usual, workingset, active });
        layout!(map, znsage_policy { name, streams, isolates, attach, detach });
        layout!(map, zse_span { host, slot, failed });
        layout!(map, zse_look { zone, written, full, lost });
        layout!(map, zse_entry { slot, expect, page, at, len });
        layout!(map, zse_run { block, nr, len, blocks, word });
        layout!(
            map,
            zse_chunk { id, gc, nr, max, done, fill, entries, born, priv_ as "priv", offset }
        );
        layout!(map, zse_op { kind, chunk, zone, first, nr, from, blocks, padding, no_room });
        layout!(
            map,
            zse_zone_info {
                state,
                capacity,
                written,
                room,
                live,
                failed,
                mixed,
                deferred,
                stream,
                moves,
                reads,
                key,
                age
            }
        );
        layout!(
            map,
            zse_stream_info {
                host_blocks,
                gc_blocks,
                padding_blocks,
                read_blocks,
                stalls,
                key,
                nr_keys,
                zones_open
            }
        );
        layout!(
            map,
            zse_stats {
                host_blocks,
                host_pages,
                gc_blocks,
                padding_blocks,
                refused_pages,
                read_blocks,
                gc_read_blocks,
                chunks,
                zone_resets,
                slots_freed,
                read_errors,
                write_errors,
                zones_lost,
                pages_lost,
                stalls,
                zones_dead,
                gc_zones,
                policy_refused,
                slots_used,
                live_blocks,
                zones_total,
                zones_empty,
                zones_open,
                zones_full,
                zones_retired,
                blocks_total,
                streams,
                stripe,
                gc_stripe,
                gc_shared,
                survivors,
                keys,
                keys_sharing,
                write_window,
                map_bytes,
            }
        );
    }

    fn facts_of_rust() -> BTreeMap<String, u64> {
        let mut map = BTreeMap::new();
        structures(&mut map);
        constants!(
            map,
            ZSE_WORDS,
            ZSE_TAG_BASE,
            ZSE_MAX_BLOCKS,
            ZSE_MAX_ENTRIES,
            ZSE_DEPTH,
            ZSE_LEAST_PART,
            ZSE_VICTIM_GREEDY,
            ZSE_VICTIM_COST_BENEFIT,
            ZSE_VICTIM_AGE,
            ZSE_OP_NONE,
            ZSE_OP_APPEND,
            ZSE_OP_FAIL,
            ZSE_OP_READ,
            ZSE_OP_RESET,
            ZSE_OP_FINISH,
            ZSE_WAS_RESET,
            ZSE_OVERLAP,
            ZSE_BEYOND,
            ZSE_READ_FILLED,
            ZSE_READ_BLOCK,
            ZSE_READ_BUSY,
            ZSE_READ_LOST,
        );
        map.insert("ZSE_NR_VICTIMS".into(), 3);
        map.insert("ZSE_OK".into(), 0);
        for (name, why) in [
            ("ZSE_NO_MEMORY", Refusal::NoMemory),
            ("ZSE_BAD_CHUNK", Refusal::BadChunk),
            ("ZSE_TOO_FEW_ZONES", Refusal::TooFewZones),
            ("ZSE_TOO_MANY_BLOCKS", Refusal::TooManyBlocks),
            ("ZSE_TOO_MANY_SLOTS", Refusal::TooManySlots),
            ("ZSE_TOO_MANY_CHUNKS", Refusal::TooManyChunks),
            ("ZSE_BAD_SETTING", Refusal::BadSetting),
        ] {
            map.insert(name.into(), why as u64);
        }
        map
    }

    #[test]
    fn layout_is_that_of_c() {
        assert_eq!(facts_of_c(), facts_of_rust());
    }
}
