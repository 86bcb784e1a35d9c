// SPDX-License-Identifier: GPL-2.0-only
//! A host of the engine, and the reference model. The model knows exactly what each slot
//! must hold at any time, so it compares every answer of the engine with the only right
//! one. Any difference panics.

use std::collections::{HashSet, VecDeque};

use znsage_engine::{
    Append, Config, Engine, Entry, Failed, Filled, GcRead, PageOwner, Policy, Read, ReadHold,
    Stats, Victim, ZoneOp, DEPTH, NONE,
};

use crate::device::{Device, Fate, Page};

macro_rules! trace {
    ($host:expr, $($arg:tt)*) => {
        $host.trace(format_args!($($arg)*))
    };
}

mod worker;

/// What a slot must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    Zero,
    Filled { word: u64 },
    Writing { version: u64 },
    Stored { version: u64, block: u32 },
    Lost,
}

pub struct Reading {
    hold: ReadHold,
    pages: Vec<Page>,
}

/// The pages of a chunk that is filling.
#[derive(Clone, Copy, Default)]
pub struct Filling {
    nr: u32,
    /// The pages it can hold; fewer at the end of a zone.
    max: u32,
    born: u64,
    /// A batch ended while something of the stream was in flight.
    due: bool,
}

pub struct Host {
    pub e: Engine,
    pub dev: Device,
    pub cfg: Config,
    pub slots: Vec<Slot>,
    /// What the engine's counters must say.
    pub want: Stats,
    /// Of each stream, pages swapped in from its zones.
    pub stream_reads: Vec<u64>,
    /// Errors so far; without any, nothing may fail.
    pub errors: u32,
    /// Chunks are not appended: the host cannot encrypt them, for example.
    pub refuses: bool,
    /// [`Host::run_device`]: every command fails.
    pub away: bool,
    /// And GC's reads of these slots do.
    pub unreadable: Vec<u32>,
    /// And resets of these zones.
    pub dead: Vec<u32>,
    pub failed_chunks: u32,
    /// Appends of a part of a chunk.
    pub splits: u32,
    /// Pages belong to more cgroups than there are streams.
    pub many_cgroups: bool,
    /// A hint told the host to call next_op().
    pub kick: bool,
    /// The clock that `born` of chunks is taken from.
    pub now: u64,
    pub gc_on: bool,

    pub appends: Vec<Append>,
    pub gc_reads: Vec<GcRead>,
    pub resets: Vec<ZoneOp>,
    pub finishes: Vec<ZoneOp>,
    pub reads: Vec<Reading>,
    policy: Policy,
    switched: bool,
    /// Watermarks that were set, which stay.
    watermarks: Option<(u32, u32)>,

    pub filling: Vec<Filling>,
    /// Of each stream, chunks that left it and did not end.
    sent: Vec<u32>,
    /// Stream and pages of each such chunk.
    out: Vec<Option<(u32, u32)>>,
    /// Buffers of each chunk.
    pages: Vec<Vec<Option<Page>>>,
    /// Of each GC chunk, the pages that were read but not appended.
    left: Vec<Vec<(Entry, Page)>>,
    pub live: Vec<u32>,
    pub used_chunks: u32,
    versions: u64,
    /// That the engine has.
    words: HashSet<u64>,
    trace: VecDeque<String>,
}

const TRACE_LINES: usize = 60;
/// More operations than any loop over the engine's work needs.
pub const ENDLESS: u32 = 1_000_000;

impl Host {
    pub fn new(cfg: &Config) -> Self {
        let e = Engine::new(cfg).unwrap_or_else(|why| panic!("refused: {why:?} for {cfg:?}"));
        let chunks = (cfg.nr_chunks + cfg.nr_gc_chunks) as usize;
        Host {
            dev: Device::new(cfg),
            slots: vec![Slot::Zero; cfg.nr_slots as usize],
            want: Stats::default(),
            stream_reads: vec![0; cfg.max_streams() as usize],
            errors: 0,
            refuses: false,
            away: false,
            unreadable: Vec::new(),
            dead: Vec::new(),
            failed_chunks: 0,
            splits: 0,
            many_cgroups: false,
            kick: false,
            now: 1,
            gc_on: true,
            appends: Vec::new(),
            gc_reads: Vec::new(),
            resets: Vec::new(),
            finishes: Vec::new(),
            reads: Vec::new(),
            filling: vec![Filling::default(); cfg.max_streams() as usize],
            sent: vec![0; cfg.max_streams() as usize],
            out: vec![None; cfg.nr_chunks as usize],
            pages: vec![vec![None; cfg.chunk_pages as usize]; chunks],
            left: vec![Vec::new(); chunks],
            live: vec![0; cfg.nr_zones as usize],
            used_chunks: 0,
            versions: 0,
            words: HashSet::new(),
            trace: VecDeque::with_capacity(TRACE_LINES),
            policy: cfg.policy,
            switched: false,
            watermarks: None,
            cfg: cfg.clone(),
            e,
        }
    }

    fn trace(&mut self, what: std::fmt::Arguments) {
        use std::fmt::Write;

        let mut line = match self.trace.len() {
            TRACE_LINES => self.trace.pop_front().unwrap_or_default(),
            _ => String::new(),
        };
        line.clear();
        let _ = write!(line, "{} {what}", self.now);
        self.trace.push_back(line);
    }

    /// The last steps, for a report.
    pub fn print_trace(&self) {
        for line in &self.trace {
            eprintln!("    {line}");
        }
    }

    /// The only place where the model of a slot changes.
    fn set(&mut self, slot: u32, to: Slot) {
        let was = std::mem::replace(&mut self.slots[slot as usize], to);
        if let Slot::Stored { block, .. } = was {
            self.live[self.e.locate(block).0 as usize] -= 1;
        }
        if let Slot::Stored { block, .. } = to {
            self.live[self.e.locate(block).0 as usize] += 1;
        }
    }

    // ---- swap-out

    /// Consecutive slots belong to one cgroup; half of the pages were on the device before.
    fn owner(&self, cpu: u32, slot: u32) -> PageOwner {
        let life = match self.now % 2 {
            0 => NONE,
            _ => (self.now * 37 % (2 * u64::from(self.cfg.nr_slots))) as u32,
        };
        PageOwner {
            cgroup: match self.many_cgroups {
                true => u64::from(slot / 5 % 23),
                false => (u64::from(slot / 5 % 11) + 1) % 5,
            },
            life,
            usual: self.e.usual_life((self.now * 41 % 256) as u8),
            workingset: slot.is_multiple_of(3),
            ..PageOwner::of_cpu(cpu)
        }
    }

    /// The stream that a slot's pages go to, of a policy of keys.
    pub fn stream_of(&mut self, slot: u32) -> u32 {
        self.e.place(&self.owner(0, slot))
    }

    /// Has each stream had zones and GC chunks of its own from the start?
    fn isolates(&self) -> bool {
        let cgroup = Policy::builtin("cgroup").unwrap();
        !self.switched && self.policy == cgroup && self.e.stats().streams > 1
    }

    /// Another policy and rule for victims.
    pub fn set_policy(&mut self, policy: Policy, victim: Victim) {
        trace!(self, "policy {policy:?} {victim:?}");
        self.policy = policy;
        self.switched = true;
        assert!(self.e.set_policy(policy), "it needs no memory");
        self.e.set_victim(victim);
        self.e.tell_lives_apart(victim != Victim::Greedy);
        if let Some(set) = self.watermarks {
            assert_eq!(self.e.watermarks(), set, "the policy changed the watermarks");
        }
    }

    /// Writes a slot. False if no more chunks may be used.
    pub fn write(&mut self, cpu: u32, slot: u32) -> bool {
        let stream = self.e.place(&self.owner(cpu, slot));
        assert!(u64::from(stream) < self.e.stats().streams);
        let Some(added) = self.e.add(stream, slot, self.now) else {
            assert_eq!(self.filling[stream as usize].nr, 0, "a chunk was filling");
            let full = u64::from(self.in_flight()) >= self.e.stats().write_window;
            // Streams that are isolated have shares of it.
            let shared = self.policy == Policy::builtin("cgroup").unwrap();
            let none = self.used_chunks == self.cfg.nr_chunks;
            assert!(shared || full || none, "the window was open");
            assert!(!self.e.has_chunk(stream));
            return false;
        };
        let filling = &mut self.filling[stream as usize];
        if filling.nr == 0 {
            filling.born = self.now;
            filling.max = 1 + added.room;
            assert!(filling.max <= self.cfg.chunk_pages);
            assert_eq!(filling.max % self.cfg.write_unit, 0);
            self.used_chunks += 1;
        }
        assert_eq!(added.page, filling.nr, "entries are numbered in order");
        filling.nr += 1;
        if filling.nr > filling.max {
            // It was full, and grew since the device was busy.
            assert_eq!(filling.max % self.cfg.batch_pages, 0, "it ends where a zone does");
            filling.max = filling.nr + added.room;
            assert!(filling.max <= self.cfg.chunk_pages);
            assert_eq!(filling.max % self.cfg.write_unit, 0);
        }
        assert_eq!(filling.max, filling.nr + added.room);
        let full = added.full.is_some();
        assert!(!full || added.room == 0, "it left before it was full");
        let grows = !full && added.room == 0;
        assert!(!grows || filling.nr < self.cfg.chunk_pages, "it is full");
        filling.due |= grows;

        self.versions += 1;
        let version = self.versions;
        trace!(self, "write {slot} v{version} stream {stream}");
        self.pages[added.chunk as usize][added.page as usize] = Some((slot, version));
        self.set(slot, Slot::Writing { version });
        if let Some(chunk) = added.full {
            self.start(stream, chunk);
        }
        true
    }

    /// Appends of a stream in flight that hold its chunk back.
    fn depth(&self, stream: u32) -> u32 {
        let st = self.e.stats();
        let has_lanes = st.gc_shared > 0 || u64::from(stream) < st.streams;
        match (self.cfg.serial, has_lanes) {
            (false, _) => DEPTH,
            (true, true) => st.stripe as u32 + 1,
            (true, false) => 2,
        }
    }

    /// Ends a batch: the chunk of a stream goes if few of the stream are in flight.
    pub fn end_batch(&mut self, stream: u32) {
        let depth = self.depth(stream);
        let f = &mut self.filling[stream as usize];
        let whole = f.nr > 0 && f.nr.is_multiple_of(self.cfg.write_unit);
        if f.nr > 0 {
            f.due = whole;
        }
        let goes = whole && self.sent[stream as usize] < depth;
        let chunk = self.e.flush(stream);
        self.started(stream, chunk, goes);
    }

    /// Takes the chunk of a stream, if it is older, and appends it.
    pub fn take(&mut self, stream: u32, born_before: u64) {
        let f = self.filling[stream as usize];
        assert_eq!(self.e.born(stream), if f.nr > 0 { f.born } else { 0 });
        let chunk = self.e.take(stream, born_before);
        self.started(stream, chunk, f.nr > 0 && f.born < born_before);
    }

    fn started(&mut self, stream: u32, chunk: Option<Filled>, expected: bool) {
        assert_eq!(chunk.is_some(), expected, "is the chunk of stream {stream} taken?");
        if let Some(chunk) = chunk {
            assert_eq!(chunk.len(&self.e), self.filling[stream as usize].nr);
            self.start(stream, chunk);
        }
    }

    /// Streams whose chunk waited for appends that have ended.
    pub fn flush_due(&mut self) {
        for stream in 0..self.filling.len() {
            let due = self.filling[stream].due && self.sent[stream] < self.depth(stream as u32);
            assert_eq!(self.e.is_due(stream as u32), due, "is stream {stream} due?");
            if due {
                self.end_batch(stream as u32);
            }
        }
    }

    /// Blocks of swap-out that left their streams and did not end.
    pub fn in_flight(&self) -> u32 {
        self.out.iter().map(|out| out.map_or(0, |(_, nr)| nr)).sum()
    }

    /// A chunk has ended.
    fn put(&mut self, id: u32) {
        let (stream, _) = self.out[id as usize].take().expect("it had left its stream");
        self.sent[stream as usize] -= 1;
        self.used_chunks -= 1;
    }

    /// Chunks with pages that wait for more.
    pub fn chunks_filling(&self) -> usize {
        self.filling.iter().filter(|f| f.nr > 0).count()
    }

    /// Chunks that a page can be added to, but not on every CPU.
    pub fn chunks_left(&self) -> usize {
        (self.cfg.nr_chunks - self.used_chunks) as usize + self.chunks_filling()
    }

    pub fn flush_all(&mut self) {
        for stream in 0..self.filling.len() as u32 {
            self.take(stream, u64::MAX);
        }
    }

    fn start(&mut self, stream: u32, chunk: Filled) {
        self.filling[stream as usize] = Filling::default();
        self.sent[stream as usize] += 1;
        self.out[chunk.id(&self.e) as usize] = Some((stream, chunk.len(&self.e)));
        if self.refuses {
            self.errors += 1;
            let failed = self.e.chunk_lose(chunk);
            self.fail(failed);
            return;
        }
        match self.e.append_start(chunk, self.now) {
            Some(append) => self.submit(append),
            None => {
                self.waits();
                self.kick = true;
            }
        }
        self.kick |= self.e.gc_due();
    }

    /// A chunk waits. It stalls only if GC has to empty a zone for it.
    fn waits(&mut self) {
        let st = self.e.stats();
        let stalls = st.stalls > self.want.stalls;
        trace!(self, "  waits, stalls {stalls}");
        self.want.stalls += u64::from(stalls);
        let kept = u64::from(self.cfg.reserve) + st.gc_stripe;
        let isolates = self.policy == Policy::builtin("cgroup").unwrap();
        let queues = self.cfg.serial || isolates || st.gc_shared > 0;
        let room = st.zones_empty > kept && !queues;
        assert!(!stalls || !room, "a chunk stalls while {} zones are empty", st.zones_empty);
    }

    /// The pages that an append carries.
    fn pages_of(&self, append: &Append) -> Vec<Page> {
        let buffers = &self.pages[append.id(&self.e) as usize];
        let page = |entry: &Entry| {
            let page = buffers[entry.page as usize].expect("a buffer that was filled");
            assert_eq!(page.0, entry.slot, "the buffer of another slot");
            page
        };
        append.entries(&self.e).iter().map(page).collect()
    }

    fn submit(&mut self, append: Append) {
        let Append { zone, first, nr, padding, .. } = append;
        let id = append.id(&self.e);
        trace!(self, "  append chunk {id} [{first}+{nr}] padding {padding} zone {zone}");
        assert!(nr > 0, "an append without pages");
        self.splits += u32::from(first > 0);
        assert!(padding < self.cfg.write_unit, "padding of a whole unit");
        if append.gc(&self.e) {
            let entries = append.entries(&self.e);
            for entry in entries {
                assert!(self.wants(entry), "GC copies {entry:?}, which is dead");
            }
            let pages: Vec<u32> = entries.iter().map(|e| e.page).collect();
            self.left[id as usize].retain(|(e, _)| !pages.contains(&e.page));
        }
        self.dev.submit_append(zone, nr + padding);
        self.appends.push(append);
    }

    /// An append ends. Unless it failed, its pages are on the device.
    pub fn end_append(&mut self, append: Append, fate: Fate) {
        let pages = self.pages_of(&append);
        let entries = append.entries(&self.e).to_vec();
        let (gc, id, zone) = (append.gc(&self.e), append.id(&self.e), append.zone);
        let padding = append.padding;
        let at = self.dev.complete_append(zone, &pages, padding, fate);
        trace!(self, "append of chunk {id} zone {zone}: {fate:?} at {at:?}");
        let end = self.e.append_done(append, at, self.now);
        self.kick |= end.more;
        assert_eq!((end.worked, self.e.take_odd().len()), (at.is_some(), 0));

        if let Some(offset) = at {
            self.want.chunks += 1;
            self.want.padding_blocks += u64::from(padding);
            if gc {
                self.want.gc_blocks += entries.len() as u64;
            } else {
                self.want.host_blocks += entries.len() as u64;
                self.want.host_pages += entries.len() as u64;
            }
            let base = zone * self.cfg.zone_blocks + offset;
            for (i, entry) in entries.iter().enumerate() {
                self.published(entry, pages[i], gc, base + i as u32);
            }
        } else {
            self.want.write_errors += 1;
            self.errors += 1;
            assert!(end.ended.is_none() && end.more, "what failed is tried again");
            if gc {
                self.left[id as usize].extend(entries.iter().copied().zip(pages));
            }
        }
        if let Some(ended) = end.ended {
            self.kick |= self.e.chunk_put(ended);
            if !gc {
                self.put(id);
            }
        }
    }

    /// A page is at `block`; does its slot point there?
    fn published(&mut self, entry: &Entry, page: Page, gc: bool, block: u32) {
        let (slot, version) = page;
        match self.slots[slot as usize] {
            Slot::Writing { version: v } if !gc && v == version => {
                self.set(slot, Slot::Stored { version, block });
            }
            Slot::Stored { version: v, block: old } if gc && old == entry.expect => {
                assert_eq!(v, version, "GC read another version of slot {slot}");
                self.set(slot, Slot::Stored { version, block });
            }
            _ => (),
        }
    }

    fn fail(&mut self, failed: Failed) {
        trace!(self, "  fail {failed:?}");
        assert!(self.errors > 0, "swap-out failed though the device did not");
        self.failed_chunks += 1;
        let entries = failed.entries(&self.e).to_vec();
        let id = failed.id(&self.e);
        for entry in entries {
            let page = self.pages[id as usize][entry.page as usize].expect("a page");
            let version = page.1;
            if self.slots[page.0 as usize] == (Slot::Writing { version }) {
                self.set(page.0, Slot::Lost);
            }
        }
        self.kick |= self.e.failed_put(failed);
        self.put(id);
    }

    // ---- swap-in, free

    /// Looks up at most `max` slots, and compares the result with the model. A read that
    /// goes to the device is in flight until [`Host::end_read`].
    pub fn begin_read(&mut self, slot: u32, max: u32) {
        let mut kick = false;
        let max = max.min(self.cfg.nr_slots - slot);
        let read = self.e.read_begin(slot, max, &mut kick);
        self.kick |= kick;
        let want = self.slots[slot as usize];
        let written = self.e.write_of(slot).map(|(id, i)| self.pages[id as usize][i as usize]);
        match want {
            Slot::Writing { version } => assert_eq!(written, Some(Some((slot, version)))),
            _ => assert_eq!(written, None),
        }
        match (read, want) {
            (Read::Block(hold), Slot::Stored { .. }) => {
                let pages = self.want_run(slot, max);
                assert_eq!(hold.block(), pages[0].0, "slot {slot} is elsewhere");
                assert_eq!(hold.count() as usize, pages.len(), "run from slot {slot} on");
                pages.iter().for_each(|&(block, _)| self.dev.begin_read(block));
                self.count_read(pages[0].0, pages.len());
                let pages = pages.into_iter().map(|(_, page)| page).collect();
                self.reads.push(Reading { hold, pages });
            }
            (Read::Filled(0), Slot::Zero) | (Read::Lost, Slot::Lost) => (),
            (Read::Filled(is), Slot::Filled { word }) => assert_eq!(is, word, "slot {slot}"),
            (Read::Busy, Slot::Writing { .. }) => (),
            (is, want) => panic!("slot {slot} reads {is:?}, should be {want:?}"),
        }
    }

    /// Swap-in reads `nr` pages from `block` on.
    fn count_read(&mut self, block: u32, nr: usize) {
        let zone = self.e.locate(block).0;
        let stream = self.e.zone(zone).stream as usize;
        self.want.read_blocks += nr as u64;
        self.stream_reads[stream] += nr as u64;
    }

    /// The blocks, and what they hold, that slots from `slot` on are read from
    /// in one go.
    fn want_run(&self, slot: u32, max: u32) -> Vec<(u32, Page)> {
        let mut run: Vec<(u32, Page)> = Vec::new();
        for slot in slot..slot + max {
            let Slot::Stored { version, block } = self.slots[slot as usize] else { break };
            let follows = run
                .last()
                .is_none_or(|&(last, _)| block == last + 1 && block % self.cfg.zone_blocks != 0);
            if !follows {
                break;
            }
            run.push((block, (slot, version)));
        }
        run
    }

    pub fn end_read(&mut self, index: usize) {
        let Reading { hold, pages } = self.reads.swap_remove(index);
        trace!(self, "end of read of {} slots at {}", pages.len(), hold.block());
        for (block, page) in (hold.block()..).zip(pages) {
            let content = self.dev.end_read(block);
            assert_eq!(content, Some(page), "content of block {block}");
        }
        self.e.read_worked();
        self.kick |= self.e.read_end(hold);
    }

    pub fn reads(&self) -> usize {
        self.reads.len()
    }

    pub fn free(&mut self, slot: u32) {
        trace!(self, "free {slot}");
        if self.slots[slot as usize] != Slot::Zero {
            self.want.slots_freed += 1;
        }
        self.e.free(slot);
        self.set(slot, Slot::Zero);
    }

    /// Writes a page that repeats a word. False if the engine has no room for the word.
    pub fn fill(&mut self, slot: u32, word: u64) -> bool {
        let known = self.words.contains(&word);
        let Some(kick) = self.e.fill(slot, word) else {
            assert!(!known && word != 0, "it has the word {word}");
            return false;
        };
        trace!(self, "fill {slot} with {word}");
        self.kick |= kick;
        if word == 0 {
            self.want.slots_freed += u64::from(self.slots[slot as usize] != Slot::Zero);
            self.set(slot, Slot::Zero);
        } else {
            self.words.insert(word);
            self.set(slot, Slot::Filled { word });
        }
        true
    }

    // ---- settings

    pub fn set_gc(&mut self, on: bool) {
        trace!(self, "gc {on}");
        self.e.set_gc(on);
        self.gc_on = on;
        self.kick = true;
    }

    pub fn set_watermarks(&mut self, low: u32, high: u32) {
        trace!(self, "watermarks {low} {high}");
        let valid = low >= self.cfg.least_gc_low() && high > low && high < self.cfg.nr_zones;
        let before = self.e.watermarks();
        assert_eq!(self.e.set_watermarks(low, high), valid);
        let want = if valid { (low, high) } else { before };
        assert_eq!(self.e.watermarks(), want);
        if valid {
            self.watermarks = Some(want);
        }
        self.kick = true;
    }
}
