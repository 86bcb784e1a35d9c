// SPDX-License-Identifier: GPL-2.0-only
//! The disk as a block device: reads, writes and discards of any size and
//! order, against a model of what each slot holds.

use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use super::devices::MAIN;
use super::statistics::Listener;
use crate::child::{spawn, Child, Group, Link};
use crate::device::Device;
use crate::direct::Disk;
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::memory::Memory;
use crate::null_blk::NullBlk;
use crate::outcome::{Context, Outcome};
use crate::pattern::{takes_no_block, Random, PAGE, REPEATS, ZERO};
use crate::table::sum;

crate::cases![block:
    random_requests (each), never_written_reads_zero (each), repeated_words_take_no_block (each),
    discard_frees (each),
    overlapping_writes (each), error_before_a_write (each), zeroes_of_much,
    unaligned_is_refused, huge_pages (more), medium_folios (full),
    sleeping_task_pads_no_other_stream (each), heat_knows_pages_that_find_no_chunk (full)];

/// A small device: 24 MiB of slots, so that GC runs soon.
fn attach(policy: &str) -> Outcome<Device> {
    Device::attach(&guest::device(MAIN)?, &[("size", "25165824"), ("policy", policy)])
}

/// The expected contents of each slot of a disk, and a buffer for I/O.
struct Model {
    disk: Disk,
    keys: Vec<u64>,
    buffer: Memory,
}

impl Model {
    fn new(disk: Disk) -> Outcome<Model> {
        let slots = disk.slots();
        Ok(Model { keys: vec![ZERO; slots], buffer: Memory::new(slots * PAGE)?, disk })
    }

    fn write(&mut self, slots: Range<usize>, key: u64) -> Outcome {
        self.buffer.fill(slots.clone(), key);
        self.keys[slots.clone()].fill(key);
        self.disk.write_slots(&self.buffer, slots.clone()).context(format!("write {slots:?}"))
    }

    fn verify(&mut self, slots: Range<usize>) -> Outcome {
        self.disk.read_slots(&mut self.buffer, slots.clone()).context(format!("read {slots:?}"))?;
        slots.into_iter().try_for_each(|s| self.buffer.verify(s..s + 1, self.keys[s]))
    }

    fn discard(&mut self, slots: Range<usize>) -> Outcome {
        self.keys[slots.clone()].fill(ZERO);
        self.disk.discard_slots(slots)
    }

    fn verify_all(&mut self) -> Outcome {
        let all = self.keys.len();
        (0..all).step_by(256).try_for_each(|s| self.verify(s..(s + 256).min(all)))
    }

    /// Number of slots with data that takes a block.
    fn live(&self) -> u64 {
        self.keys.iter().filter(|&&key| !takes_no_block(key)).count() as u64
    }
}

/// A range of slots: mostly one slot, 64 KiB or 1 MiB; sometimes in between.
fn some_slots(random: &mut Random, all: usize) -> Range<usize> {
    let n = match random.below(8) {
        0..3 => 1,
        3..5 => 16,
        5..7 => 256,
        _ => 1 + random.below(256),
    };
    let start = random.below(all - n + 1);
    start..start + n
}

fn random_requests(_: &mut Log) -> Outcome {
    ["single", "cpu"].into_iter().try_for_each(|policy| requests_at_random(attach(policy)?))
}

/// On a small device, so that GC has to work.
pub(super) fn requests_at_random(device: Device) -> Outcome {
    let mut model = Model::new(device.disk()?)?;
    let mut random = Random::new(7);
    let all = model.keys.len();
    for key in 1..900 {
        let slots = some_slots(&mut random, all);
        match random.below(10) {
            // One page: many would leave GC nothing to do.
            0 => model.write(slots.start..slots.start + 1, key | REPEATS)?,
            1..6 => model.write(slots, key)?,
            6 => model.discard(slots)?,
            _ => model.verify(slots)?,
        }
    }
    model.verify_all()?;
    ensure!(device.counter("gc_blocks")? > 0, "GC did not run");
    let (live, wanted) = (device.counter("live_blocks")?, model.live());
    ensure!(live == wanted, "{live} blocks live, should be {wanted}");
    model.discard(0..all)?;
    model.verify_all()?;
    ensure!(device.counter("live_blocks")? == 0, "blocks live after a discard of all");
    drop(model);
    device.finish_sound()
}

fn never_written_reads_zero(_: &mut Log) -> Outcome {
    let device = attach("cpu")?;
    let mut model = Model::new(device.disk()?)?;
    model.verify_all()?;
    model.write(10..11, 1)?;
    model.write(300..316, 2)?;
    // Requests that cross the boundaries of earlier ones.
    model.verify(0..256)?;
    model.verify(290..320)?;
    model.verify_all()?;
    ensure!(device.counter("live_blocks")? == 17, "live_blocks");
    drop(model);
    device.finish_sound()
}

/// Pages that repeat a word in place of data, and in requests with data.
fn repeated_words_take_no_block(_: &mut Log) -> Outcome {
    let device = attach("cpu")?;
    let mut model = Model::new(device.disk()?)?;
    model.write(0..512, 1)?;
    for (slots, key) in [(0..1, ZERO), (16..32, REPEATS | 1), (100..356, ZERO), (40..41, REPEATS)] {
        model.write(slots, key)?;
    }
    let mixed = 500..532;
    model.buffer.fill(mixed.clone(), 2);
    model.keys[mixed.clone()].fill(2);
    let without =
        [(500..503, ZERO), (510..511, REPEATS | 1), (515..520, REPEATS), (531..532, ZERO)];
    for (slots, key) in without {
        model.buffer.fill(slots.clone(), key);
        model.keys[slots].fill(key);
    }
    model.disk.write_slots(&model.buffer, mixed).context("write of both sorts of pages")?;
    model.verify_all()?;
    let (live, wanted) = (device.counter("live_blocks")?, model.live());
    ensure!(live == wanted && live == 512 - 274 - 12 + 22, "{live} live, should be {wanted}");
    let used = device.counter("slots_used")?;
    ensure!(used == live + 17 + 6, "{used} slots used");
    let written = device.counter("host_blocks")?;
    ensure!(written == 512 + 22, "{written} blocks written");
    // Data in place of a word, and a word in place of another.
    model.write(16..24, 3)?;
    model.write(24..28, REPEATS | 2)?;
    model.discard(28..30)?;
    model.verify_all()?;
    // More words than the map has room for: the rest takes blocks.
    for word in 0..1024 {
        model.write(word as usize..word as usize + 1, REPEATS | (word + 10))?;
    }
    model.verify_all()?;
    let live = device.counter("live_blocks")?;
    ensure!((512..800).contains(&live), "{live} live");
    model.discard(0..2048)?;
    ensure!(device.counter("slots_used")? == 0, "slots are used after a discard of all");
    drop(model);
    device.finish_sound()
}

fn discard_frees(_: &mut Log) -> Outcome {
    let device = attach("single")?;
    let mut model = Model::new(device.disk()?)?;
    model.write(0..1024, 1)?;
    let live = |wanted: u64, after: &str| -> Outcome {
        let (live, used) = (device.counter("live_blocks")?, device.counter("slots_used")?);
        ensure!((live, used) == (wanted, wanted), "{after}: {live} live, {used} used");
        Ok(())
    };
    live(1024, "after writes")?;
    model.discard(0..1)?;
    live(1023, "one slot discarded")?;
    model.discard(0..512)?;
    live(512, "half discarded")?;
    model.discard(256..600)?;
    live(424, "overlapping ranges discarded")?;
    model.discard(2000..3000)?;
    live(424, "never written slots discarded")?;
    model.verify_all()?;
    guest::ok(&["blkdiscard", "-f", "-o", "4198400", "-l", "1048576", &device.node()])?;
    model.keys[1024..1280].fill(ZERO);
    guest::ok(&["blkdiscard", "-f", "-z", "-o", "2625536", "-l", "1048576", &device.node()])?;
    model.keys[640..896].fill(ZERO);
    model.verify_all()?;
    live(model.live(), "blkdiscard, with and without --zeroout")?;
    ensure!(device.counter("slots_freed")? == 1024 - model.live(), "slots_freed");
    drop(model);
    device.finish_sound()
}

/// Writers of the same slots at the same time: any of them may win, but each
/// page is whole, and the maps are sound.
fn overlapping_writes(_: &mut Log) -> Outcome {
    const SLOTS: usize = 512;
    const WRITERS: u64 = 4;
    let device = attach("cpu")?;
    let node = device.node();
    let write = |writer: u64| -> Outcome {
        let disk = Disk::open(&node)?;
        let mut memory = Memory::new(SLOTS * PAGE)?;
        let mut random = Random::new(writer);
        memory.fill(0..SLOTS, writer);
        for _ in 0..150 {
            let n = [1, 3, 16, 64][random.below(4)];
            let start = random.below(SLOTS - n + 1);
            disk.write_slots(&memory, start..start + n).context("write")?;
            if random.below(4) == 0 {
                disk.discard_slots(start..start + n)?;
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let writers: Vec<_> = (1..=WRITERS).map(|w| scope.spawn(move || write(w))).collect();
        let wait = |w: thread::ScopedJoinHandle<Outcome>| w.join().expect("no panic");
        writers.into_iter().map(wait).collect::<Outcome<Vec<()>>>()
    })?;
    device.check()?;
    let disk = device.disk()?;
    let mut memory = Memory::new(SLOTS * PAGE)?;
    disk.read_slots(&mut memory, 0..SLOTS).context("read")?;
    for slot in 0..SLOTS {
        let whole = (ZERO..=WRITERS).any(|key| memory.verify(slot..slot + 1, key).is_ok());
        ensure!(whole, "slot {slot} holds {}", crate::pattern::describe(memory.page(slot)));
    }
    drop(disk);
    device.finish_sound()
}

/// A read whose first slot is lost and whose second is being written: it waits for the
/// write, and then still fails.
fn error_before_a_write(log: &mut Log) -> Outcome {
    // Where an append to a zone that is empty fails.
    let starts = (0..16).map(|zone| (zone * 2048, zone * 2048 + 7));
    // Each command takes half a second, by a timer.
    let slow = [("irqmode", "2"), ("completion_nsec", "500000000")];
    let null = NullBlk::zoned(&[&[("size", "16"), ("zone_size", "1")], &slow[..]].concat())?;
    let device = Device::attach(&null.node(), &[("policy", "single")])?;
    let disk = device.disk()?;
    let write = |slots: Range<usize>| {
        let mut memory = Memory::new(slots.end * PAGE)?;
        memory.fill(slots.clone(), 1);
        disk.write_slots(&memory, slots).context("write")
    };
    for what in ["append to zone", "reset of zone", "I/O error", "no zone can be written"] {
        log.allow(what);
    }
    starts.clone().try_for_each(|(first, last)| null.break_sectors(first, last))?;
    ensure!(write(0..1).is_err(), "it can be written");
    starts.into_iter().try_for_each(|(first, last)| null.mend_sectors(first, last))?;

    let mut memory = Memory::new(4 * PAGE)?;
    for _ in 0..4 {
        thread::scope(|scope| {
            let writer = scope.spawn(|| write(1..4));
            thread::sleep(Duration::from_millis(200));
            let busy = !writer.is_finished();
            let read = disk.read_slots(&mut memory, 0..4);
            ensure!(busy, "written before it could be read");
            ensure!(read.is_err(), "a lost slot is read");
            writer.join().expect("no panic")
        })?;
    }
    disk.read_slots(&mut memory, 1..4).context("read")?;
    memory.verify(1..4, 1)?;
    drop(disk);
    device.finish()
}

/// One call zeroes more than 4 GiB; the kernel splits it into requests.
fn zeroes_of_much(_: &mut Log) -> Outcome {
    let null = NullBlk::zoned(&[("size", "5120"), ("zone_size", "64")])?;
    let device = Device::attach(&null.node(), &[("policy", "single")])?;
    let node = device.node();
    // Slots on both sides of 4 GiB, where a request may end.
    let (first, nr) = ((4 << 30) / PAGE - 4, 8);
    let [of, seek, count] = [format!("of={node}"), format!("seek={first}"), format!("count={nr}")];
    guest::ok(&["dd", "if=/dev/urandom", &of, "bs=4096", "oflag=direct", &seek, &count])?;
    let used = device.counter("slots_used")?;
    ensure!(used == nr as u64, "{used} slots are used");
    guest::ok(&["blkdiscard", "--force", "--zeroout", "--length", "4200M", &node])?;
    let used = device.counter("slots_used")?;
    ensure!(used == 0, "{used} slots are not zeroed");
    device.finish()
}

/// The module does not copy pages, so it refuses a request that is not made of whole
/// pages, and the slots keep their contents.
fn unaligned_is_refused(log: &mut Log) -> Outcome {
    let device = attach("cpu")?;
    let mut model = Model::new(device.disk()?)?;
    model.write(0..64, 1)?;
    log.allow("part of a page refused");
    let memory = Memory::new(16 * PAGE)?;
    for (what, bytes, offset) in [
        ("a sector", 0..512, 0),
        ("half a page", 0..PAGE / 2, 0),
        ("an offset in a page", 0..PAGE, 512),
        ("memory in the middle of a page", 512..512 + PAGE, 0),
        ("several pages of such memory", 2048..2048 + 4 * PAGE, 0),
    ] {
        let error = model.disk.write_at(&memory.bytes()[bytes], offset).err();
        ensure!(
            error.as_ref().is_some_and(|e| e.raw_os_error() == Some(libc::EINVAL)),
            "a write of {what} gives {error:?}"
        );
    }
    let beyond = model.disk.write_at(&memory.bytes()[..PAGE], model.disk.bytes());
    ensure!(beyond.is_err(), "a write beyond the end works");
    model.verify(0..64)?;
    drop(model);
    device.finish_sound()
}

/// A page waits on CPU 1 for its chunk to fill, while a task on CPU 0 runs out of chunks and
/// sleeps with its plug open. The page goes on waiting: its append would need padding.
fn sleeping_task_pads_no_other_stream(_: &mut Log) -> Outcome {
    const TRIES: usize = 5;
    let slow = [("irqmode", "2"), ("completion_nsec", "2000000")];
    let null = NullBlk::zoned(&[&[("size", "64"), ("zone_size", "1")], &slow[..]].concat())?;
    let options = ["--policy", "cpu", "--chunk", "16K", "--write-unit", "16K", "--deadline", "1s"];
    let device = Device::on(&null.node(), &options)?;
    ensure!(device.counter("streams")? >= 2, "the CPUs share a stream");
    // The worker goes on with what found no chunk. On CPU 1 it would fill the page's chunk.
    let _worker = guest::Setting::set("/sys/devices/virtual/workqueue/cpumask", "1")?;
    for _ in 0..TRIES {
        if page_waits_for_its_deadline(&device)? {
            return device.finish_sound();
        }
    }
    Err(format!("the deadline was over in each of {TRIES} tries"))
}

/// Whether the other task was done before the page's deadline.
fn page_waits_for_its_deadline(device: &Device) -> Outcome<bool> {
    const DEADLINE: Duration = Duration::from_secs(1);
    // More than the first chunks of the write window take, and whole units.
    const MANY: usize = 128;
    let padded = || device.counter("padding_blocks");
    let waits = Listener::new("znsage_wait")?;
    let group = Group::new("plug", 64 << 20)?;
    let mut page = swaps_out_on("1", 1, &group)?;
    let mut many = swaps_out_on("0", MANY, &group)?;
    let (used, padded_before) = (device.counter("slots_used")?, padded()?);

    let begun = Instant::now();
    page.go_on()?;
    page.reach()?;
    ensure!(device.counter("slots_used")? == used + 1, "the page does not come");
    many.go_on()?;
    many.reach()?;
    let (more, in_time) = (padded()? - padded_before, begun.elapsed() < DEADLINE);
    ensure!(more == 0 || !in_time, "{more} blocks were padded before the deadline");
    ensure!(waits.heard()?.0 > 0, "no task ran out of chunks");
    let at_deadline = || padded().is_ok_and(|now| now == padded_before + 3);
    ensure!(guest::eventually(20.0, at_deadline), "the page was not padded at its deadline");
    [page, many].into_iter().try_for_each(|mut child| {
        child.go_on()?;
        child.join()
    })?;
    Ok(in_time)
}

/// A process that has pages swapped out, on one CPU, between two points.
fn swaps_out_on(cpu: &str, pages: usize, group: &Group) -> Outcome<Child> {
    let mut child = spawn(Some(group), |link| {
        guest::ok(&["taskset", "--pid", "--cpu-list", cpu, &std::process::id().to_string()])?;
        let mut memory = Memory::new(pages * PAGE)?;
        memory.huge_pages(false)?;
        memory.fill(0..pages, 1);
        link.point()?;
        memory.start_page_out()?;
        link.point()
    })?;
    child.reach()?;
    Ok(child)
}

/// Swaps out a process whose memory is in huge pages. A counter of the kernel must show
/// that they were swapped out in one piece.
fn swaps_huge(device: &Device, counter: impl Fn() -> Outcome<u64>) -> Outcome {
    const SIZE: usize = 32 << 20;
    let before = counter()?;
    let group = Group::new("huge", 256 << 20)?;
    let child = spawn(Some(&group), |_| {
        let mut memory = Memory::new(SIZE)?;
        memory.huge_pages(true)?;
        for key in 1..3 {
            memory.fill(0..SIZE / PAGE, key);
            memory.page_out()?;
            memory.verify(0..SIZE / PAGE, key)?;
        }
        Ok(())
    })?;
    child.join()?;
    let whole = counter()? - before;
    ensure!(whole > 0, "no large page was swapped out in one piece");
    ensure!(device.counter("host_blocks")? > (SIZE / PAGE) as u64, "too little was swapped out");
    Ok(())
}

const THP: &str = "/sys/kernel/mm/transparent_hugepage";

fn huge_pages(_: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    guest::write(&format!("{THP}/enabled"), "madvise").context(THP)?;
    swaps_huge(&device, || guest::table("/proc/vmstat", "thp_swpout"))?;
    device.bench(&["--thp", "--size", "48M", "--seconds", "3"])?;
    device.finish_sound()
}

/// Sizes between a page and a huge page, which Linux has since 6.8 and swaps
/// out whole since 6.10.
fn medium_folios(_: &mut Log) -> Outcome {
    let sizes = format!("{THP}/hugepages-64kB");
    if !guest::exists(&sizes) {
        ensure!(guest::kernel() < (6, 8), "{sizes} is missing");
        return Ok(());
    }
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    guest::write(&format!("{sizes}/enabled"), "madvise").context(&sizes)?;
    let outcome = swaps_huge_or_not(&device, &sizes);
    guest::write(&format!("{sizes}/enabled"), "never").context(&sizes)?;
    outcome?;
    device.finish_sound()
}

fn swaps_huge_or_not(device: &Device, sizes: &str) -> Outcome {
    // Huge pages would be taken instead.
    let pmd = format!("{THP}/hugepages-2048kB/enabled");
    guest::write(&pmd, "never").context(&pmd)?;
    let outcome = swaps_huge(device, || guest::read_number(&format!("{sizes}/stats/swpout")))
        .and_then(|()| device.bench(&["--thp", "--size", "48M", "--seconds", "3"]).map(drop));
    guest::write(&pmd, "inherit").context(&pmd)?;
    outcome
}

/// Policy heat puts pages that come back soon into the first streams, once some do and others
/// do not. That also holds for pages that find no chunk and are placed again when there is one.
fn heat_knows_pages_that_find_no_chunk(_: &mut Log) -> Outcome {
    const SOON: usize = 512;
    const LATE: usize = 4096;
    // Zones enough for several streams and classes of survivors.
    const LARGE: [(&str, &str); 4] =
        [("size", "512"), ("zone_size", "1"), ("zone_max_open", "14"), ("zone_max_active", "14")];
    // With chunks of a page, all but 64 of each round find none. Read-ahead brings them back.
    let slow = [("irqmode", "2"), ("completion_nsec", "8000000")];
    let null = NullBlk::zoned(&[&LARGE[..], &slow[..]].concat())?;
    let device = Device::on(&null.node(), &["--policy", "heat", "--chunk", "4K"])?;
    let group = Group::new("heat", 64 << 20)?;
    let round = |memory: &mut Memory, key: u64| {
        let all = 0..memory.pages();
        memory.fill(all.clone(), key);
        let out = guest::eventually(60.0, || memory.page_out().is_ok());
        ensure!(out, "the pages do not go out");
        memory.verify(all, key)
    };
    let rounds = |link: &mut Link| {
        let (mut soon, mut late) = (Memory::new(SOON * PAGE)?, Memory::new(LATE * PAGE)?);
        // It takes some 8,000 lives to see that lives differ.
        for key in 1..5 {
            round(&mut late, key)?;
            (1..9).try_for_each(|turn| round(&mut soon, 10 * key + turn))?;
        }
        link.point()?;
        (1..4).try_for_each(|turn| round(&mut soon, 50 + turn))
    };
    let mut child = spawn(Some(&group), rounds)?;
    child.reach()?;
    let first = || sum(&device.table("stream_table")?[..2], "host_blocks");
    let before = first()?;
    let streams = device.counter("streams")?;
    ensure!(streams == 6, "{streams} streams, as if lives did not differ");
    child.go_on()?;
    child.join()?;
    let known = first()? - before;
    ensure!(known > SOON as u64 * 2, "{known} of {} pages were known", 3 * SOON);
    device.finish_sound()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_stay_within_the_disk() {
        let mut random = Random::new(1);
        for _ in 0..1000 {
            let slots = some_slots(&mut random, 300);
            assert!(slots.start < slots.end && slots.end <= 300);
        }
    }
}
