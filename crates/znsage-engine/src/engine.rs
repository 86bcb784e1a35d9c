// SPDX-License-Identifier: GPL-2.0-only
//! The safe wrapper.

use std::ffi::{c_char, c_void, CStr};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use crate::config::{Config, Policy, Refusal, Victim};
use crate::handed::{
    Added, AddedAll, Append, AppendEnd, BufferHold, Chunk, Ended, Failed, Filled, Finish, GcRead,
    Op, Read, ReadHold, Reset,
};
use crate::memory::{self, InMemory};
use crate::sys::{self, znsage_page as PageOwner, zse_op, zse_stats, zse_stream_info};

/// What [`Engine::check`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub what: String,
    pub at: u32,
    pub is: u64,
    pub want: u64,
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
    // SAFETY: arg is the Vec that check() passed; what is a literal of
    // check.c.
    let (found, what) = unsafe { (&mut *arg.cast::<Vec<Violation>>(), CStr::from_ptr(what)) };
    found.push(Violation { what: what.to_string_lossy().into_owned(), at, is, want });
}

/// An engine, driven by one thread at a time.
pub struct Engine {
    raw: NonNull<sys::zse_engine>,
    /// Names the engine in what it hands out.
    pub(crate) id: u64,
    nr_zones: u32,
    zone_blocks: u32,
    nr_slots: u32,
    streams: u32,
    /// What the policy has for this device.
    private: *mut c_void,
    policy: Policy,
    /// Lives as long as the engine, which has a pointer to it.
    _memory: Option<Arc<InMemory>>,
}

// SAFETY: the C code keeps nothing in thread-local storage but the number of
// the shard it counts in, which may be any.
unsafe impl Send for Engine {}

impl Drop for Engine {
    fn drop(&mut self) {
        self.detach();
        // SAFETY: created by zse_create(); what was handed out cannot be used
        // without the engine.
        unsafe { sys::zse_destroy(self.raw.as_ptr()) }
    }
}

impl Engine {
    pub fn new(cfg: &Config) -> Result<Self, Refusal> {
        Self::create(cfg, None)
    }

    /// The same for a host that says which pages it has in memory.
    pub fn with_memory(cfg: &Config, memory: Arc<InMemory>) -> Result<Self, Refusal> {
        Self::create(cfg, Some(memory))
    }

    fn create(cfg: &Config, memory: Option<Arc<InMemory>>) -> Result<Self, Refusal> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut why = 0;
        let mut c = cfg.to_c();
        if let Some(memory) = &memory {
            c.host = Arc::as_ptr(memory).cast_mut().cast();
            c.in_memory = Some(memory::in_memory);
        }
        // A policy that is attached needs the engine for that.
        let attached = cfg.policy.get().attach.is_some();
        if attached {
            c.policy = Policy::single().as_ptr();
        }
        // SAFETY: the set of slots lives as long as the engine.
        let raw = unsafe { sys::zse_create(&c, &mut why) };
        let raw = NonNull::new(raw).ok_or_else(|| Refusal::from_c(why))?;
        let mut e = Engine {
            raw,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            nr_zones: cfg.nr_zones,
            zone_blocks: cfg.zone_blocks,
            nr_slots: cfg.nr_slots,
            streams: cfg.max_streams(),
            private: ptr::null_mut(),
            policy: if attached { Policy::single() } else { cfg.policy },
            _memory: memory,
        };
        if attached && !e.set_policy(cfg.policy) {
            return Err(Refusal::NoMemory);
        }
        Ok(e)
    }

    fn p(&self) -> *mut sys::zse_engine {
        self.raw.as_ptr()
    }

    fn own(&self, owner: u64) {
        assert_eq!(owner, self.id, "handed out by another engine");
    }

    fn slot(&self, slot: u32) {
        assert!(slot < self.nr_slots, "slot {slot} of {}", self.nr_slots);
    }

    fn stream(&self, stream: u32) {
        assert!(stream < self.streams, "stream {stream} of {}", self.streams);
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

    /// Another policy. There may be fewer streams, or more, from now on. False,
    /// and nothing changed, if it cannot be attached.
    #[must_use]
    pub fn set_policy(&mut self, policy: Policy) -> bool {
        let mut private = ptr::null_mut();
        if let Some(attach) = policy.get().attach {
            // SAFETY: the engine lives.
            private = unsafe { attach(self.p()) };
            if private.is_null() {
                return false;
            }
        }
        // SAFETY: a policy is valid for good. No call of one is under way, since
        // the engine is borrowed.
        unsafe { sys::zse_set_policy(self.p(), policy.as_ptr(), private) }
        self.detach();
        (self.policy, self.private) = (policy, private);
        true
    }

    /// The policy is not called any more.
    fn detach(&mut self) {
        if let Some(detach) = self.policy.get().detach {
            // SAFETY: private is what its attach() returned for this engine.
            unsafe { detach(self.p(), self.private) }
        }
    }

    /// Another rule for victims.
    pub fn set_victim(&mut self, victim: Victim) {
        // SAFETY: the engine lives.
        unsafe { sys::zse_set_victim(self.p(), victim as u32) }
    }

    /// How long the page of a block that is being read has been on the device,
    /// in blocks swapped out, and which stream it was in.
    pub fn life(&self, hold: &ReadHold) -> (u32, u32) {
        // SAFETY: the block is held.
        unsafe {
            let (e, block) = (self.p(), hold.block);
            (sys::zse_block_life(e, block), sys::zse_block_stream(e, block))
        }
    }

    /// What a stream has done.
    pub fn stream_info(&self, stream: u32) -> zse_stream_info {
        self.stream(stream);
        let mut si = zse_stream_info::default();
        // SAFETY: the stream exists.
        unsafe { sys::zse_get_stream(self.p(), stream, &mut si) };
        si
    }

    /// Adds a page to the chunk of `stream`, or returns None if all chunks are
    /// in use. `now` becomes the chunk's birth if the page is its first.
    pub fn add(&mut self, stream: u32, slot: u32, now: u64) -> Option<Added> {
        let AddedAll { chunk, page, room, full, .. } = self.add_all(stream, &[slot], now)?;
        Some(Added { chunk, page, room, full })
    }

    /// Adds pages to the chunk of `stream`, as many as it has room for, or
    /// returns None if all chunks are in use. The stream's lock is taken once
    /// for all of them.
    ///
    /// # Panics
    /// If there are no slots, or one is out of range.
    pub fn add_all(&mut self, stream: u32, slots: &[u32], now: u64) -> Option<AddedAll> {
        self.stream(stream);
        assert!(!slots.is_empty(), "no pages to add");
        slots.iter().for_each(|&slot| self.slot(slot));
        let mut flags = 0;
        // SAFETY: stream and slots are in range; no more pages are added than
        // the chunk has room for; it is ours until zse_stream_end().
        unsafe {
            let c = sys::zse_stream_begin(self.p(), stream, &mut flags);
            if c.is_null() {
                sys::zse_stream_end(self.p(), stream, &mut flags);
                return None;
            }
            if (*c).nr == 0 {
                (*c).born = now;
            }
            let (chunk, page) = ((*c).id, (*c).nr);
            let nr = ((*c).max - page).min(slots.len() as u32);
            for &slot in &slots[..nr as usize] {
                sys::zse_chunk_add(self.p(), c, slot);
            }
            let room = (*c).max - (*c).nr;
            let full = sys::zse_stream_end(self.p(), stream, &mut flags);
            let full = Chunk::new(self, full).map(|chunk| Filled { chunk });
            Some(AddedAll { chunk, page, nr, room, full })
        }
    }

    /// Takes the unfilled chunk of a stream: with `units` only if it needs no
    /// padding, and only if it was born before `born_before`.
    pub fn take(&mut self, stream: u32, units: bool, born_before: u64) -> Option<Filled> {
        self.stream(stream);
        // SAFETY: stream is in range.
        let c = unsafe { sys::zse_stream_take(self.p(), stream, units, born_before) };
        Chunk::new(self, c).map(|chunk| Filled { chunk })
    }

    /// When the first page came that waits in the stream's chunk, or 0.
    pub fn born(&self, stream: u32) -> u64 {
        self.stream(stream);
        // SAFETY: stream is in range.
        unsafe { sys::zse_stream_born(self.p(), stream) }
    }

    /// Would [`Engine::add`] find a chunk if `stream` has none?
    pub fn has_chunk(&self, stream: u32) -> bool {
        self.stream(stream);
        // SAFETY: stream is in range.
        unsafe { sys::zse_has_chunk(self.p(), stream) }
    }

    fn op_append(&self, op: &zse_op) -> Append {
        Append {
            chunk: Chunk::new(self, op.chunk).expect("an append has a chunk"),
            zone: op.zone,
            first: op.first,
            nr: op.nr,
            padding: op.padding,
        }
    }

    fn empty_op() -> zse_op {
        zse_op {
            kind: sys::ZSE_OP_NONE,
            chunk: ptr::null_mut(),
            zone: 0,
            first: 0,
            nr: 0,
            padding: 0,
        }
    }

    /// Gives a chunk its zone. None: the engine keeps it until there is one;
    /// [`Engine::next_op`] is to be called.
    pub fn append_start(&mut self, filled: Filled, now: u64) -> Option<Append> {
        let mut op = Self::empty_op();
        let c = filled.chunk.into_raw(self);
        // SAFETY: the chunk was taken from its stream and not started yet.
        unsafe {
            (*c).sent = now;
            sys::zse_append_start(self.p(), c, &mut op)
        }
        .then(|| self.op_append(&op))
    }

    /// The host cannot append a chunk: its pages fail, their slots are lost.
    pub fn chunk_lose(&mut self, filled: Filled) -> Failed {
        let nr = filled.len(self);
        let c = filled.chunk.into_raw(self);
        // SAFETY: the chunk was taken from its stream and not started yet.
        unsafe { sys::zse_chunk_lose(self.p(), c) };
        Failed { chunk: Chunk::new(self, c).expect("it was one"), first: 0, nr }
    }

    /// An append has ended: `at` is the offset in the zone of its first block,
    /// or None if it failed.
    pub fn append_done(&mut self, append: Append, at: Option<u32>) -> AppendEnd {
        let blocks = append.nr + append.padding;
        if let Some(offset) = at {
            assert!(
                offset <= self.zone_blocks - blocks,
                "append at {offset} does not fit the zone"
            );
        }
        let c = append.chunk.into_raw(self);
        let mut finished = false;
        // SAFETY: the append was in flight and ends now; it is inside the zone.
        let more = unsafe {
            sys::zse_append_done(self.p(), c, at.is_some(), at.unwrap_or(0), &mut finished)
        };
        let ended = if finished { Chunk::new(self, c) } else { None };
        AppendEnd { more, ended: ended.map(|chunk| Ended { chunk }) }
    }

    /// Returns true if [`Engine::next_op`] may have something new.
    pub fn chunk_put(&mut self, ended: Ended, now: u64) -> bool {
        let c = ended.chunk.into_raw(self);
        // SAFETY: the chunk has ended and was not put before.
        unsafe { sys::zse_chunk_put(self.p(), c, now) }
    }

    /// [`Engine::chunk_put`] for a chunk whose pages failed.
    pub fn failed_put(&mut self, failed: Failed) -> bool {
        let c = failed.chunk.into_raw(self);
        // SAFETY: as above.
        unsafe { sys::zse_chunk_put(self.p(), c, 0) }
    }

    /// A block of a GC read is unreadable. True if it is given up for lost;
    /// else GC tries again later.
    pub fn gc_entry_failed(&mut self, read: &GcRead, index: u32) -> bool {
        assert!(index < read.nr, "entry {index} of {}", read.nr);
        assert_eq!(read.chunk.owner, self.id, "chunk of another engine");
        // SAFETY: the chunk is being read and has this entry.
        unsafe { sys::zse_gc_entry_failed(self.p(), read.chunk.ptr.as_ptr(), index) }
    }

    /// Returns true if [`Engine::next_op`] may have something new.
    pub fn gc_read_done(&mut self, read: GcRead) -> bool {
        let c = read.chunk.into_raw(self);
        // SAFETY: the chunk was being read.
        unsafe { sys::zse_gc_read_done(self.p(), c) }
    }

    /// Returns true if [`Engine::next_op`] may have something new.
    pub fn reset_done(&mut self, reset: Reset, ok: bool) -> bool {
        self.own(reset.owner);
        // SAFETY: the zone was being reset.
        unsafe { sys::zse_reset_done(self.p(), reset.zone, ok) }
    }

    /// Returns true if [`Engine::next_op`] may have something new.
    pub fn finish_done(&mut self, finish: Finish, ok: bool) -> bool {
        self.own(finish.owner);
        // SAFETY: the zone was being finished.
        unsafe { sys::zse_finish_done(self.p(), finish.zone, ok) }
    }

    /// What is to be done next; call it until it answers None.
    pub fn next_op(&mut self) -> Option<Op> {
        let mut op = Self::empty_op();
        // SAFETY: &mut self makes this the only caller.
        if !unsafe { sys::zse_next_op(self.p(), &mut op) } {
            return None;
        }
        let (zone, owner) = (op.zone, self.id);
        let chunk = || Chunk::new(self, op.chunk).expect("this kind has a chunk");
        Some(match op.kind {
            sys::ZSE_OP_APPEND => Op::Append(self.op_append(&op)),
            sys::ZSE_OP_FAIL => Op::Fail(Failed { chunk: chunk(), first: op.first, nr: op.nr }),
            sys::ZSE_OP_READ => Op::Read(GcRead { chunk: chunk(), nr: op.nr }),
            sys::ZSE_OP_RESET => Op::Reset(Reset { zone, owner }),
            sys::ZSE_OP_FINISH => Op::Finish(Finish { zone, owner }),
            kind => panic!("the engine asks for the unknown, {kind}"),
        })
    }

    /// Is there cause to call [`Engine::next_op`] for GC's sake?
    pub fn gc_due(&self) -> bool {
        // SAFETY: the engine lives.
        unsafe { sys::zse_gc_due(self.p()) }
    }

    /// Where the pages of up to `max` slots from `slot` on are; `kick` is set
    /// if [`Engine::next_op`] may have something new.
    pub fn read_begin(&mut self, slot: u32, max: u32, kick: &mut bool) -> Read {
        assert!(max > 0, "a read of nothing");
        self.slot(slot);
        self.slot(slot + (max - 1));
        let (mut run, owner) = (sys::zse_run::default(), self.id);
        // SAFETY: the slots are in range.
        match unsafe { sys::zse_read_begin(self.p(), slot, max, &mut run, kick) } {
            sys::ZSE_READ_ZERO => Read::Zero,
            sys::ZSE_READ_BLOCK => Read::Block(ReadHold { block: run.block, nr: run.nr, owner }),
            sys::ZSE_READ_BUSY => Read::Busy,
            sys::ZSE_READ_LOST => Read::Lost,
            sys::ZSE_READ_BUFFER => {
                // SAFETY: the chunk is held until buffer_end(); its id is constant.
                let chunk = unsafe { (*run.chunk).id };
                Read::Buffer(BufferHold { run, chunk, owner })
            }
            other => panic!("the engine reads the unknown, {other}"),
        }
    }

    /// Returns true if [`Engine::next_op`] may have something new.
    pub fn read_end(&mut self, hold: ReadHold) -> bool {
        self.own(hold.owner);
        // SAFETY: begun by read_begin(), ended once.
        unsafe { sys::zse_read_end(self.p(), hold.block) }
    }

    /// The page was copied. Returns true if [`Engine::next_op`] may have
    /// something new.
    pub fn buffer_end(&mut self, hold: BufferHold) -> bool {
        self.own(hold.owner);
        // SAFETY: set by read_begin(), ended once.
        unsafe { sys::zse_buffer_end(self.p(), &hold.run) }
    }

    /// Is the slot being written?
    pub fn is_busy(&self, slot: u32) -> bool {
        self.slot(slot);
        // SAFETY: slot is in range.
        unsafe { sys::zse_is_busy(self.p(), slot) }
    }

    /// A swap-in read of so many blocks failed.
    pub fn read_failed(&mut self, nr: u32) {
        // SAFETY: the engine lives.
        unsafe { sys::zse_read_failed(self.p(), nr) }
    }

    /// A swap-in read ended well.
    pub fn read_worked(&mut self) {
        // SAFETY: the engine lives.
        unsafe { sys::zse_read_worked(self.p()) }
    }

    /// Returns true if [`Engine::next_op`] may have something new.
    pub fn free(&mut self, slot: u32) -> bool {
        self.slot(slot);
        // SAFETY: slot is in range.
        unsafe { sys::zse_free(self.p(), slot) }
    }

    pub fn stats(&self) -> zse_stats {
        let mut st = zse_stats::default();
        // SAFETY: the structure is that of C.
        unsafe { sys::zse_get_stats(self.p(), &mut st) };
        st
    }

    /// False, and nothing changed, if they are out of range.
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

    /// Is nothing under way?
    pub fn idle(&self) -> bool {
        // SAFETY: the engine lives.
        unsafe { sys::zse_idle(self.p()) }
    }

    pub fn zone(&self, zone: u32) -> ZoneInfo {
        assert!(zone < self.nr_zones, "zone {zone} of {}", self.nr_zones);
        let mut zi = sys::zse_zone_info {
            state: ptr::null(),
            capacity: 0,
            written: 0,
            room: 0,
            live: 0,
            failed: false,
            mixed: false,
            deferred: false,
            stream: 0,
            moves: 0,
            reads: 0,
            key: 0,
            age: 0,
        };
        // SAFETY: the zone exists, so all is filled in; the state's name is a
        // literal of engine.c.
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

    /// Walks all invariants.
    pub fn check(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        // SAFETY: collect() gets the Vec, and only during the call.
        let nr = unsafe { sys::zse_check(self.p(), Some(collect), (&raw mut found).cast()) };
        assert_eq!(nr as usize, found.len());
        found
    }
}
