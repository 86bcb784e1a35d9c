// SPDX-License-Identifier: GPL-2.0-only
//! The safe wrapper of the engine.

use std::ffi::{c_char, c_void, CStr};
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::callbacks::{self, Callbacks};
use crate::config::{Config, Policy, Refusal, Victim};
use crate::handed::{
    Added, Append, AppendEnd, Chunk, Ended, Failed, Filled, GcRead, Look, Oddity, Op, Read,
    ReadHold, ZoneOp,
};
use crate::sys::{
    self, znsage_page as PageOwner, zse_op, zse_run, zse_span, zse_stats, zse_stream_info,
};

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub what: String,
    pub at: u32,
    pub is: u64,
    pub want: u64,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} at {}: is {}, should be {}", self.what, self.at, self.is, self.want)
    }
}

/// A row of the zone table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneInfo {
    pub state: &'static str,
    pub capacity: u32,
    pub written: u32,
    /// Blocks that can still be given to appends.
    pub room: u32,
    pub live: u32,
    pub failed: bool,
    pub mixed: bool,
    /// GC could not read all of it.
    pub deferred: bool,
    pub stream: u32,
    pub moves: u32,
    pub key: u64,
    pub age: u64,
}

unsafe extern "C" fn collect(arg: *mut c_void, what: *const c_char, at: u32, is: u64, want: u64) {
    // SAFETY: arg is the Vec that check() passed; what is a literal of check.c.
    let (found, what) = unsafe { (&mut *arg.cast::<Vec<Violation>>(), CStr::from_ptr(what)) };
    found.push(Violation { what: what.to_string_lossy().into_owned(), at, is, want });
}

/// What a host says of a span that GC has read.
struct Span<S, F> {
    slot: S,
    failed: F,
}

impl<S: FnMut(u32) -> u32, F: FnMut(u32) -> bool> Span<S, F> {
    fn callbacks(&mut self) -> zse_span {
        zse_span {
            host: (&raw mut *self).cast(),
            slot: Some(Self::slot),
            failed: Some(Self::failed),
        }
    }

    unsafe extern "C" fn slot(host: *mut c_void, at: u32) -> u32 {
        // SAFETY: host is the span of gc_scan(), which nothing else uses meanwhile.
        unsafe { ((*host.cast::<Self>()).slot)(at) }
    }

    unsafe extern "C" fn failed(host: *mut c_void, at: u32) -> bool {
        // SAFETY: as above.
        unsafe { ((*host.cast::<Self>()).failed)(at) }
    }
}

/// An engine, driven by one thread at a time.
///
/// Methods that return a bool return true if [`Engine::next_op`] may have something new,
/// unless they say otherwise.
pub struct Engine {
    raw: NonNull<sys::zse_engine>,
    /// Marks the values that the engine hands out.
    pub(crate) id: u64,
    nr_zones: u32,
    pub(crate) zone_blocks: u32,
    pub(crate) pack: u32,
    nr_slots: u32,
    pub(crate) streams: u32,
    /// The policy's data for this device.
    private: *mut c_void,
    policy: Policy,
    /// The engine has a pointer to it.
    callbacks: Box<Callbacks>,
}

// SAFETY: the C code's only thread-local value is the number of the shard that a thread
// counts in, and any will do.
unsafe impl Send for Engine {}

impl Drop for Engine {
    fn drop(&mut self) {
        self.detach();
        // SAFETY: created by zse_create(); values that were handed out cannot be used
        // without the engine.
        unsafe { sys::zse_destroy(self.raw.as_ptr()) }
    }
}

impl Engine {
    pub fn new(cfg: &Config) -> Result<Self, Refusal> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut why = 0;
        let mut c = cfg.to_c();
        let callbacks = Box::new(Callbacks::default());
        c.host = (&raw const *callbacks).cast_mut().cast();
        c.odd = Some(callbacks::odd);
        // Attaching a policy takes an engine.
        let attached = cfg.policy.get().attach.is_some();
        if attached {
            c.policy = Policy::single().as_ptr();
        }
        // SAFETY: what the callbacks reach lives as long as the engine.
        let raw = unsafe { sys::zse_create(&c, &mut why) };
        let raw = NonNull::new(raw).ok_or_else(|| Refusal::from_c(why))?;
        let mut e = Engine {
            raw,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            nr_zones: cfg.nr_zones,
            zone_blocks: cfg.zone_blocks,
            pack: cfg.pack,
            nr_slots: cfg.nr_slots,
            streams: cfg.max_streams(),
            private: ptr::null_mut(),
            policy: if attached { Policy::single() } else { cfg.policy },
            callbacks,
        };
        if attached && !e.set_policy(cfg.policy) {
            return Err(Refusal::NoMemory);
        }
        Ok(e)
    }

    fn p(&self) -> *mut sys::zse_engine {
        self.raw.as_ptr()
    }

    fn assert_own(&self, owner: u64) {
        assert_eq!(owner, self.id, "handed out by another engine");
    }

    fn assert_slot(&self, slot: u32) {
        assert!(slot < self.nr_slots, "slot {slot} of {}", self.nr_slots);
    }

    fn assert_stream(&self, stream: u32) {
        assert!(stream < self.streams, "stream {stream} of {}", self.streams);
    }

    fn chunk(&self, ptr: *mut sys::zse_chunk) -> Option<Chunk> {
        NonNull::new(ptr).map(|ptr| Chunk { ptr, owner: self.id })
    }

    fn take_back(&self, chunk: Chunk) -> *mut sys::zse_chunk {
        self.assert_own(chunk.owner);
        chunk.ptr.as_ptr()
    }

    /// Zone and offset of a block.
    pub fn locate(&self, block: u32) -> (u32, u32) {
        (block / self.zone_blocks, block % self.zone_blocks)
    }

    /// Stream for a page that is swapped out.
    pub fn place(&mut self, page: &PageOwner) -> u32 {
        // SAFETY: the engine lives; a page may be anything.
        unsafe { sys::zse_place(self.p(), page) }
    }

    /// Changes the policy, and with it the number of streams. False, and nothing changes,
    /// if the policy cannot be attached or there is no memory for it.
    #[must_use]
    pub fn set_policy(&mut self, policy: Policy) -> bool {
        // SAFETY: the engine lives, and policies stay.
        if !unsafe { sys::zse_prepare(self.p(), policy.as_ptr()) } {
            return false;
        }
        let mut private = ptr::null_mut();
        if let Some(attach) = policy.get().attach {
            // SAFETY: the engine lives.
            private = unsafe { attach(self.p()) };
            if private.is_null() {
                return false;
            }
        }
        // SAFETY: policies stay. No call of one is in progress, as the engine is borrowed.
        unsafe { sys::zse_set_policy(self.p(), policy.as_ptr(), private) }
        self.detach();
        (self.policy, self.private) = (policy, private);
        true
    }

    /// Detaches the policy, which is no longer called.
    fn detach(&mut self) {
        if let Some(detach) = self.policy.get().detach {
            // SAFETY: private is what its attach() returned for this engine.
            unsafe { detach(self.p(), self.private) }
        }
    }

    /// Changes the rule that chooses victims.
    pub fn set_victim(&mut self, victim: Victim) {
        // SAFETY: the engine lives.
        unsafe { sys::zse_set_victim(self.p(), victim as u32) }
    }

    /// Of the page of `slot`, whose block is being read: its age in blocks swapped out, and
    /// what to remember of its lives.
    pub fn life(&self, slot: u32, hold: &ReadHold) -> (u32, u8) {
        self.assert_slot(slot);
        // SAFETY: the block is held, and the slot exists.
        unsafe {
            let (e, block) = (self.p(), hold.block);
            (sys::zse_block_life(e, block), sys::zse_past(e, slot, block))
        }
    }

    /// Makes the engine believe that pasts tell how long pages live, or that they do not,
    /// until it knows better: so tests see both numbers of streams.
    pub fn tell_lives_apart(&mut self, apart: bool) {
        // SAFETY: the engine lives.
        unsafe { sys::zse_lives_apart(self.p(), apart) }
    }

    /// The usual life that a past says; [`NONE`](crate::NONE) if it says nothing.
    pub fn usual_life(&self, past: u8) -> u32 {
        // SAFETY: the engine lives; a past may be anything.
        unsafe { sys::zse_usual_life(self.p(), past) }
    }

    /// The counters of a stream.
    pub fn stream_info(&self, stream: u32) -> zse_stream_info {
        self.assert_stream(stream);
        let mut si = zse_stream_info::default();
        // SAFETY: the stream exists.
        unsafe { sys::zse_get_stream(self.p(), stream, &mut si) };
        si
    }

    /// [`Engine::add_all`] for one page.
    pub fn add(&mut self, stream: u32, slot: u32, now: u64) -> Option<Added> {
        self.add_all(stream, &[slot], &[], now)
    }

    /// Adds pages to the chunk of `stream`, as many as it has room for, or returns None if
    /// all chunks are in use. `now` becomes the chunk's birth if it was empty. The
    /// stream's lock is taken once. `pasts` has what is remembered of each page's lives,
    /// from [`Engine::life`]; of those beyond its end, nothing is.
    ///
    /// # Panics
    /// If there are no slots, or one is out of range.
    pub fn add_all(&mut self, stream: u32, slots: &[u32], pasts: &[u8], now: u64) -> Option<Added> {
        self.assert_stream(stream);
        assert!(!slots.is_empty(), "no pages to add");
        slots.iter().for_each(|&slot| self.assert_slot(slot));
        // SAFETY: stream and slots are in range; no more pages are added than the chunk has
        // room for; it is ours until zse_stream_end().
        unsafe {
            let c = sys::zse_stream_begin(self.p(), stream);
            if c.is_null() {
                sys::zse_stream_end(self.p(), stream);
                return None;
            }
            if (*c).nr == 0 {
                // 0 would say that no page has come.
                (*c).born = now.max(1);
            }
            let (chunk, page) = ((*c).id, (*c).nr);
            let nr = ((*c).max - page).min(slots.len() as u32);
            for (i, &slot) in slots[..nr as usize].iter().enumerate() {
                sys::zse_chunk_add(self.p(), c, slot, pasts.get(i).copied().unwrap_or(0));
            }
            let room = (*c).max - (*c).nr;
            let full = sys::zse_stream_end(self.p(), stream);
            let full = self.chunk(full).map(|chunk| Filled { chunk });
            Some(Added { chunk, page, nr, room, full })
        }
    }

    /// Ends a batch of pages: takes the partial chunk of a stream if it needs no padding and
    /// fewer than [`DEPTH`] of the stream are in flight. Else it is due later:
    /// [`Engine::is_due`].
    pub fn flush(&mut self, stream: u32) -> Option<Filled> {
        self.assert_stream(stream);
        // SAFETY: stream is in range.
        let c = unsafe { sys::zse_stream_flush(self.p(), stream) };
        self.chunk(c).map(|chunk| Filled { chunk })
    }

    /// Did a partial chunk wait for an append of its stream that has ended?
    pub fn is_due(&self, stream: u32) -> bool {
        self.assert_stream(stream);
        // SAFETY: stream is in range.
        unsafe { sys::zse_stream_due(self.p(), stream) }
    }

    /// Takes the partial chunk of a stream if it was born before `born_before`.
    pub fn take(&mut self, stream: u32, born_before: u64) -> Option<Filled> {
        self.assert_stream(stream);
        // SAFETY: stream is in range.
        let c = unsafe { sys::zse_stream_take(self.p(), stream, born_before) };
        self.chunk(c).map(|chunk| Filled { chunk })
    }

    /// The birth of the stream's partial chunk, or 0.
    pub fn born(&self, stream: u32) -> u64 {
        self.assert_stream(stream);
        // SAFETY: stream is in range.
        unsafe { sys::zse_stream_born(self.p(), stream) }
    }

    /// Would [`Engine::add`] find a new chunk for `stream`?
    pub fn has_chunk(&self, stream: u32) -> bool {
        self.assert_stream(stream);
        // SAFETY: stream is in range.
        unsafe { sys::zse_has_chunk(self.p(), stream) }
    }

    fn op_append(&self, op: &zse_op) -> Append {
        let chunk = self.chunk(op.chunk).expect("an append has a chunk");
        Append {
            offset: chunk.get(self).offset,
            chunk,
            zone: op.zone,
            first: op.first,
            nr: op.nr,
            from: op.from,
            blocks: op.blocks,
            padding: op.padding,
        }
    }

    /// Where pages are packed: the blocks that each page of a chunk takes, before its append
    /// starts. False: there is no room, or some lengths are missing since the host could not go
    /// on, and the chunk goes to [`Engine::chunk_lose`].
    pub fn pack(&mut self, filled: &Filled, lengths: &[u32]) -> bool {
        let nr = filled.len(self) as usize;
        assert!(lengths.len() <= nr);
        let c = filled.chunk.ptr.as_ptr();
        for (index, &len) in (0..).zip(lengths) {
            // SAFETY: the chunk was taken from its stream, and has this page.
            unsafe { sys::zse_chunk_pack(self.p(), c, index, len) }
        }
        // SAFETY: the chunk was taken from its stream, and all its pages are packed.
        lengths.len() == nr && unsafe { sys::zse_chunk_fits(self.p(), c) }
    }

    /// Pages that all have room even if none shrinks.
    pub fn certain(&self) -> u32 {
        // SAFETY: the engine lives as long as `self`.
        unsafe { sys::zse_certain(self.p()) }
    }

    /// Pages that still have room even if none shrinks.
    pub fn room(&self) -> u32 {
        // SAFETY: as above.
        unsafe { sys::zse_room(self.p()) }
    }

    /// Gives a chunk a zone. None: there is none yet; the engine keeps the chunk, and the
    /// host calls [`Engine::next_op`].
    pub fn append_start(&mut self, filled: Filled, now: u64) -> Option<Append> {
        let mut op = zse_op { kind: sys::ZSE_OP_NONE, ..Default::default() };
        let c = self.take_back(filled.chunk);
        // SAFETY: the chunk was taken from its stream and not started yet.
        unsafe { sys::zse_append_start(self.p(), c, &mut op, now) }.then(|| self.op_append(&op))
    }

    /// The host cannot append a chunk: its pages fail, and their slots are lost.
    pub fn chunk_lose(&mut self, filled: Filled) -> Failed {
        let nr = filled.len(self);
        let c = self.take_back(filled.chunk);
        // SAFETY: the chunk was taken from its stream and not started yet.
        unsafe { sys::zse_chunk_lose(self.p(), c) };
        Failed { chunk: self.chunk(c).expect("it was one"), first: 0, nr }
    }

    /// Ends an append. `at` is what the device says of the offset of its first block in the
    /// zone, or None if it failed.
    pub fn append_done(&mut self, append: Append, at: Option<u32>, now: u64) -> AppendEnd {
        let c = self.take_back(append.chunk);
        let (mut worked, mut finished) = (at.is_some(), false);
        // SAFETY: the append was in flight and ends now.
        let more = unsafe {
            let at = at.unwrap_or(0);
            sys::zse_append_done(self.p(), c, &mut worked, at, now, &mut finished)
        };
        let ended = if finished { self.chunk(c) } else { None };
        AppendEnd { worked, more, ended: ended.map(|chunk| Ended { chunk }) }
    }

    /// Begins a look at what the device says of `zone`. None: it holds nothing.
    pub fn look_begin(&mut self, zone: u32) -> Option<Look> {
        assert!(zone < self.nr_zones, "zone {zone} of {}", self.nr_zones);
        let mut look = sys::zse_look::default();
        // SAFETY: the zone exists.
        let holds = unsafe { sys::zse_look_begin(self.p(), zone, &mut look) };
        holds.then_some(Look { look, owner: self.id })
    }

    /// Ends it: the zone is full, or has this many blocks written. Returns whether its pages
    /// have been found lost, and whether [`Engine::next_op`] may have something new.
    pub fn look_end(&mut self, mut look: Look, full: bool, written: u32) -> (bool, bool) {
        self.assert_own(look.owner);
        // SAFETY: begun by look_begin(), ended once.
        let more = unsafe { sys::zse_look_end(self.p(), &mut look.look, full, written) };
        (look.look.lost, more)
    }

    /// What the device said since the last call that cannot be right, with the zones.
    pub fn take_odd(&mut self) -> Vec<(u32, Oddity)> {
        std::mem::take(&mut self.callbacks.odd.lock().expect("nobody panics with it"))
    }

    /// Puts back a chunk whose append has ended. True also if a stream has become due.
    pub fn chunk_put(&mut self, ended: Ended) -> bool {
        let c = self.take_back(ended.chunk);
        // SAFETY: the chunk has ended and was not put before.
        unsafe { sys::zse_chunk_put(self.p(), c) }
    }

    /// Puts back a chunk whose pages failed.
    pub fn failed_put(&mut self, failed: Failed) -> bool {
        let c = self.take_back(failed.chunk);
        // SAFETY: as above.
        unsafe { sys::zse_chunk_put(self.p(), c) }
    }

    /// Reports that a block of a GC read is unreadable. True if it is lost; else GC tries
    /// again later.
    pub fn gc_entry_failed(&mut self, read: &GcRead, index: u32) -> bool {
        assert!(index < read.nr, "entry {index} of {}", read.nr);
        self.assert_own(read.chunk.owner);
        // SAFETY: the chunk is being read and has this entry.
        unsafe { sys::zse_gc_entry_failed(self.p(), read.chunk.ptr.as_ptr(), index) }
    }

    /// Finds the live pages of what was read, where pages are packed. `slot` says which slot
    /// the word at a block of the span names, `failed` whether the block could not be read.
    pub fn gc_scan(
        &mut self,
        read: &mut GcRead,
        slot: impl FnMut(u32) -> u32,
        failed: impl FnMut(u32) -> bool,
    ) {
        self.assert_own(read.chunk.owner);
        let mut span = Span { slot, failed };
        let w = span.callbacks();
        // SAFETY: the chunk is being read; the span lives during the call.
        unsafe { sys::zse_gc_scan(self.p(), read.chunk.ptr.as_ptr(), &w) };
        read.nr = read.chunk.get(self).nr;
    }

    pub fn gc_read_done(&mut self, read: GcRead) -> bool {
        let c = self.take_back(read.chunk);
        // SAFETY: the chunk was being read.
        unsafe { sys::zse_gc_read_done(self.p(), c) }
    }

    /// Ends a reset or a finish.
    pub fn zone_done(&mut self, op: ZoneOp, ok: bool) -> bool {
        self.assert_own(op.owner);
        let done = if op.reset { sys::zse_reset_done } else { sys::zse_finish_done };
        // SAFETY: the zone was being reset, or finished.
        unsafe { done(self.p(), op.zone, ok) }
    }

    /// The next operation for the host, which calls this until it returns None.
    pub fn next_op(&mut self, now: u64) -> Option<Op> {
        let mut op = zse_op { kind: sys::ZSE_OP_NONE, ..Default::default() };
        // SAFETY: &mut self makes this the only caller.
        if !unsafe { sys::zse_next_op(self.p(), &mut op, now) } {
            return None;
        }
        let zone = op.zone;
        let chunk = || self.chunk(op.chunk).expect("this kind has a chunk");
        Some(match op.kind {
            sys::ZSE_OP_APPEND => Op::Append(self.op_append(&op)),
            sys::ZSE_OP_FAIL => Op::Fail(Failed { chunk: chunk(), first: op.first, nr: op.nr }),
            sys::ZSE_OP_READ => Op::Read(GcRead {
                chunk: chunk(),
                nr: op.nr,
                zone,
                from: op.from,
                blocks: op.blocks,
            }),
            kind @ (sys::ZSE_OP_RESET | sys::ZSE_OP_FINISH) => {
                Op::Zone(ZoneOp { zone, reset: kind == sys::ZSE_OP_RESET, owner: self.id })
            }
            kind => panic!("unknown operation {kind}"),
        })
    }

    /// Should the host call [`Engine::next_op`] because of GC?
    pub fn gc_due(&self) -> bool {
        // SAFETY: the engine lives.
        unsafe { sys::zse_gc_due(self.p()) }
    }

    /// Looks up the pages of up to `max` slots from `slot` on. Sets `kick` if
    /// [`Engine::next_op`] may have something new.
    pub fn read_begin(&mut self, slot: u32, max: u32, kick: &mut bool) -> Read {
        assert!(max > 0, "a read of nothing");
        self.assert_slot(slot);
        self.assert_slot(slot + (max - 1));
        let (mut run, owner) = (sys::zse_run::default(), self.id);
        // SAFETY: the slots are in range.
        match unsafe { sys::zse_read_begin(self.p(), slot, max, &mut run, kick) } {
            sys::ZSE_READ_FILLED => Read::Filled(run.word),
            sys::ZSE_READ_BLOCK => {
                let zse_run { block, nr, len, blocks, .. } = run;
                Read::Block(ReadHold { block, nr, len, blocks, owner })
            }
            sys::ZSE_READ_BUSY => Read::Busy,
            sys::ZSE_READ_LOST => Read::Lost,
            other => panic!("unknown result {other} of a read"),
        }
    }

    /// Were the pages that are being read found lost meanwhile? Before
    /// [`Engine::read_end`].
    pub fn block_lost(&self, hold: &ReadHold) -> bool {
        self.assert_own(hold.owner);
        // SAFETY: the block is one of the engine's.
        unsafe { sys::zse_block_lost(self.p(), hold.block) }
    }

    pub fn read_end(&mut self, hold: ReadHold) -> bool {
        self.assert_own(hold.owner);
        // SAFETY: begun by read_begin(), ended once.
        unsafe { sys::zse_read_end(self.p(), hold.block) }
    }

    /// Chunk and entry that a slot is being written with.
    pub fn write_of(&self, slot: u32) -> Option<(u32, u32)> {
        self.assert_slot(slot);
        let mut index = 0;
        // SAFETY: slot is in range; a chunk lives as long as the engine.
        let c = unsafe { sys::zse_write_of(self.p(), slot, &mut index).as_ref() };
        c.map(|c| (c.id, index))
    }

    /// Reports that a swap-in read of `nr` blocks failed.
    pub fn read_failed(&mut self, nr: u32) {
        // SAFETY: the engine lives.
        unsafe { sys::zse_read_failed(self.p(), nr) }
    }

    /// Reports that a swap-in read succeeded.
    pub fn read_worked(&mut self) {
        // SAFETY: the engine lives.
        unsafe { sys::zse_read_worked(self.p()) }
    }

    /// Writes a page that repeats a word. None: it is to be written like others. Else,
    /// whether `next_op()` may have something new.
    pub fn fill(&mut self, slot: u32, word: u64) -> Option<bool> {
        self.assert_slot(slot);
        let mut kick = false;
        // SAFETY: slot is in range.
        unsafe { sys::zse_fill(self.p(), slot, word, &mut kick) }.then_some(kick)
    }

    pub fn free(&mut self, slot: u32) -> bool {
        self.assert_slot(slot);
        // SAFETY: slot is in range.
        unsafe { sys::zse_free(self.p(), slot) }
    }

    pub fn stats(&self) -> zse_stats {
        let mut st = zse_stats::default();
        // SAFETY: the structure is that of C.
        unsafe { sys::zse_get_stats(self.p(), &mut st) };
        st
    }

    /// False, and nothing changes, if they are out of range.
    pub fn set_watermarks(&mut self, low: u32, high: u32) -> bool {
        // SAFETY: the engine lives.
        unsafe { sys::zse_set_watermarks(self.p(), low, high) }
    }

    /// (low, high)
    pub fn watermarks(&self) -> (u32, u32) {
        let (mut low, mut high) = (0, 0);
        // SAFETY: the engine lives.
        unsafe { sys::zse_get_watermarks(self.p(), &mut low, &mut high) };
        (low, high)
    }

    pub fn set_gc(&mut self, on: bool) {
        // SAFETY: the engine lives.
        unsafe { sys::zse_set_gc(self.p(), on) }
    }

    /// Is nothing in flight?
    pub fn idle(&self) -> bool {
        // SAFETY: the engine lives.
        unsafe { sys::zse_idle(self.p()) }
    }

    pub fn zone(&self, zone: u32) -> ZoneInfo {
        assert!(zone < self.nr_zones, "zone {zone} of {}", self.nr_zones);
        let mut zi = sys::zse_zone_info::default();
        // SAFETY: the zone exists, so the call fills in all of it; the state's name is a
        // literal.
        let state = unsafe {
            sys::zse_get_zone(self.p(), zone, &mut zi);
            CStr::from_ptr(zi.state)
        };
        ZoneInfo {
            state: state.to_str().expect("an ASCII literal"),
            capacity: zi.capacity,
            written: zi.written,
            room: zi.room,
            live: zi.live,
            failed: zi.failed,
            mixed: zi.mixed,
            deferred: zi.deferred,
            stream: zi.stream,
            moves: zi.moves,
            key: zi.key,
            age: zi.age,
        }
    }

    /// Checks all invariants.
    pub fn check(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        // A bit for each block: with fewer, the engine walks its map more than once.
        let blocks = u64::from(self.nr_zones) * u64::from(self.zone_blocks);
        let mut bits = vec![0; blocks.div_ceil(32) as usize];
        let (arg, words) = ((&raw mut found).cast(), bits.len() as u32);
        // SAFETY: collect() gets the Vec, and only during the calls, as the bits.
        let nr = unsafe {
            sys::zse_check(self.p(), Some(collect), arg)
                + sys::zse_check_twice(self.p(), bits.as_mut_ptr(), words, Some(collect), arg)
        };
        assert_eq!(nr as usize, found.len());
        found
    }
}
