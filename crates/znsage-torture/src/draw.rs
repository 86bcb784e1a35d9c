// SPDX-License-Identifier: GPL-2.0-only
//! What a seed decides: device, settings, load, faults. Extremes are drawn on
//! purpose, and each class of faults is left out of many runs (swarm testing):
//! a run without failing resets finds other bugs than one with them.

use std::fmt;

use znsage_engine::{Config, Engine, Policy, Victim, LEAST_PART};
use znsage_sim::device::{FaultPlan, Params, ZnsSsd};
use znsage_sim::rng::{self, Rng};
use znsage_sim::time::{Ns, BLOCK, MS, US};

use super::content::Contents;

/// Blocks of the largest device; small, so that checking all of them is cheap.
const MOST_BLOCKS: u32 = 12_288;

/// All policies; the common ones more often.
pub(super) const POLICIES: [&str; 10] =
    ["single", "cpu", "cpu", "cpu", "heat", "cgroup", "cgroup", "cgroup", "heat", "sepbit"];
pub(super) const VICTIMS: [Victim; 3] = [Victim::Greedy, Victim::CostBenefit, Victim::Age];

/// The policy of a name.
pub(super) fn policy(name: &str) -> Policy {
    Policy::named(name).expect("all of them are known")
}

/// Order in which free slots are allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reuse {
    /// The slot freed last: its old block is often still being moved.
    Last,
    First,
    Any,
}

/// The load. Shares are percentages; rates are per million steps of the
/// actors.
#[derive(Clone, Debug)]
pub(super) struct Load {
    /// Steps of all actors together.
    pub steps: u32,
    pub tasks: u32,
    pub processes: u32,
    /// Pages of all processes.
    pub pages: u32,
    /// Percentage of pages that are hardly touched again.
    pub cold: u32,
    /// Frames of memory.
    pub frames: u32,
    /// Slots of the raw user.
    pub raw_slots: u32,
    pub writes: u32,
    /// Longest pause between two steps of an actor.
    pub think: Ns,
    /// Readahead window, 2^this.
    pub cluster: u32,
    pub reuse: Reuse,
    /// Slots per batch of frees.
    pub free_batch: u32,
    /// Share of reclaim batches with a block plug.
    pub plugged: u32,
    /// Share of submitters that must not wait for a chunk.
    pub nested: u32,
    pub exits: u32,
    pub unmaps: u32,
    pub drains: u32,
    pub checks: u32,
    pub tunings: u32,
    /// Changes of policy and victim rule.
    pub switches: u32,
    /// Owners of pages: mappings, cgroups.
    pub owners: u32,
    /// Share of completions preceded by an action on their slots.
    pub worst: u32,
    /// A failed swap-in kills the process; else only the page is lost.
    pub kill: bool,
}

/// A run.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub seed: u64,
    /// The built-in device that provides the timing.
    pub timing: &'static str,
    /// Zone size and capacity, blocks.
    pub zone_size: u32,
    pub capacity: u32,
    /// Write unit of the device; the engine's is a multiple.
    pub unit: u32,
    pub max_open: u32,
    pub max_active: u32,
    pub cfg: Config,
    pub contents: Contents,
    pub deadline: Ns,
    /// Maximum delay from a kick to the worker's first step, and between steps.
    pub wake: Ns,
    pub pause: Ns,
    pub faults: FaultPlan,
    /// Blocks per million that are unreadable until their zone is reset.
    pub bad_blocks: u32,
    /// Zone failures per million steps: read-only, offline.
    pub dying: (u32, u32),
    /// Outages per million steps, and their length.
    pub outages: (u32, Ns),
    /// No faults during the final swapoff.
    pub calm_end: bool,
    pub load: Load,
}

struct Draw(Rng);

impl Draw {
    fn between(&mut self, low: u32, high: u32) -> u32 {
        low + rng::below(&mut self.0, high - low + 1)
    }

    fn percent(&mut self, p: u32) -> bool {
        rng::below(&mut self.0, 100) < p
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[rng::below(&mut self.0, of.len() as u32) as usize]
    }

    /// From `low` to one of `high`, which favours small numbers.
    fn up_to(&mut self, low: u32, high: &[u32]) -> u32 {
        let high = self.pick(high).max(low);
        self.between(low, high)
    }
}

/// Draws the engine's write unit, the device's, units per zone, and zone
/// capacity.
fn draw_shape(r: &mut Draw) -> (u32, u32, u32, u32) {
    let unit = r.pick(&[1, 1, 1, 1, 2, 4, 4, 48]);
    let units = match unit {
        48 => r.between(2, 8),
        _ => (r.up_to(8, &[16, 40, 100, 400]) / unit).max(2),
    };
    // The device's unit may be smaller than the engine's; then a zone need not hold
    // whole units.
    let of_device = if unit > 1 && r.percent(40) { 1 } else { unit };
    let rest = if of_device < unit && r.percent(70) { r.between(0, unit - 1) } else { 0 };
    (unit, of_device, units, units * unit + rest)
}

fn draw_config(r: &mut Draw, unit: u32, units: u32, capacity: u32, limit: u32) -> Config {
    let zone_blocks = unit * units;
    let most = (MOST_BLOCKS / zone_blocks).clamp(8, 200);
    let nr_zones = r.up_to(8, &[10, 20, 60, 200]).min(most);
    let mut cfg = Config {
        nr_zones,
        zone_blocks,
        finish: capacity != zone_blocks,
        max_active: limit,
        chunk_pages: r.up_to(1, &[1, 2, 4, 8, 64]).min(units) * unit,
        write_unit: unit,
        nr_chunks: r.up_to(1, &[1, 4, 12, 64]),
        nr_gc_chunks: r.up_to(1, &[1, 2, 8]),
        reserve: r.pick(&[1, 1, 1, 2, 3]),
        nr_cpus: r.between(1, 8),
        policy: policy(r.pick(&POLICIES)),
        victim: r.pick(&VICTIMS),
        pace: r.pick(&[0, 1, 50, 50, 100]),
        stripe: r.pick(&[0, 0, 1, 2, 3, 5]),
        ..Config::default()
    };
    if r.percent(15) {
        cfg.finish = true;
    }
    if r.percent(30) {
        cfg.gc_low = r.up_to(cfg.least_gc_low(), &[nr_zones / 2, nr_zones - 2]);
        cfg.gc_high = r.up_to(cfg.gc_low + 1, &[nr_zones / 2, nr_zones - 1]);
    }
    cfg
}

/// What pages hold, and whether they are packed.
/// Drawn from separate generators, so that adding this left every other seed's scenario unchanged, in
/// particular those of the regression seeds in tests/torture.rs.
fn draw_contents(seed: u64) -> Contents {
    let mut r = Draw(rng::stream(seed, 12));
    let mut pack = 0;
    if r.percent(30) {
        pack = r.pick(&[1, 1, 2, 4]) * LEAST_PART;
    }
    let raw = r.pick(&[0, 20, 50, 100]);
    let mut r = Draw(rng::stream(seed, 16));
    let (filled, words) = (r.pick(&[0, 0, 3, 30]), r.pick(&[1, 4, 2_000]));
    Contents { seed, pack, raw, filled, words }
}

/// From here on, blocks are parts of pages. False: a chunk does not fit a zone.
fn pack_pages(cfg: &mut Config, pack: u32) -> bool {
    if pack > 0 {
        cfg.pack = pack;
        cfg.zone_blocks *= pack;
        cfg.write_unit *= pack;
    }
    cfg.chunk_pages <= cfg.zone_blocks / (pack + 1)
}

/// How many times the slots that fit if no page shrinks are promised.
fn promised(seed: u64, contents: Contents) -> u32 {
    let mut r = Draw(rng::stream(seed, 17));
    match contents.pack {
        0 => 1,
        _ => r.pick(&[1, 1, 2, 3]),
    }
}

/// Device faults, zone failures, outages.
type Faults = (FaultPlan, (u32, u32), (u32, Ns));

fn draw_faults(r: &mut Draw) -> Faults {
    let mut plan = FaultPlan::default();
    if r.percent(70) {
        plan.delay = r.pick(&[0, 10_000, 200_000, 1_000_000]);
        plan.delay_max = r.pick(&[10 * US, MS, 20 * MS]);
    }
    if r.percent(30) {
        return (plan, (0, 0), (0, 0));
    }
    // One class alone, or any mix.
    let alone = r.percent(40).then(|| r.between(0, 7));
    let mut rate = |class, of: &[u32]| {
        let on = alone.map_or_else(|| r.percent(40), |a| a == class);
        let rate = r.pick(of);
        if on {
            rate
        } else {
            0
        }
    };
    plan.append = rate(0, &[100, 1_000, 10_000, 100_000]);
    plan.read = rate(1, &[100, 1_000, 10_000, 100_000]);
    plan.reset = rate(2, &[1_000, 10_000, 100_000]);
    plan.finish = rate(3, &[10_000, 100_000, 300_000]);
    plan.read_only = rate(4, &[20, 200, 2_000]);
    plan.offline = rate(5, &[10, 100, 1_000]);
    let dying = rate(6, &[50, 300, 1_000]);
    let outages = rate(7, &[100, 1_000]);
    (plan, (dying, dying / 2), (outages, r.pick(&[US, MS, 50 * MS])))
}

fn draw_load(r: &mut Draw, slots: u32) -> Load {
    let raw_slots = (u64::from(slots) * u64::from(r.pick(&[0u32, 0, 10, 30, 60])) / 100) as u32;
    let kernel = slots - raw_slots;
    let frames = r.up_to(48, &[64, 200, 600]);
    let fill = r.pick(&[30u32, 70, 90, 98, 100, 110]);
    let mut rate = |p, of: &[u32]| if r.percent(p) { r.pick(of) } else { 0 };
    let (exits, unmaps) = (rate(50, &[100, 1_000]), rate(70, &[1_000, 20_000]));
    let (drains, checks) = (rate(20, &[50, 200]), rate(40, &[100, 1_000]));
    let tunings = rate(30, &[100, 1_000]);
    let switches = rate(40, &[100, 1_000, 10_000]);
    Load {
        steps: r.up_to(3_000, &[5_000, 20_000, 40_000]),
        tasks: r.up_to(1, &[2, 6, 16]),
        processes: r.between(1, 4),
        pages: (u64::from(kernel) * u64::from(fill) / 100) as u32 + frames,
        cold: 0,
        frames,
        raw_slots,
        writes: r.pick(&[10, 50, 90, 100]),
        think: r.pick(&[0, US, 20 * US, 200 * US]),
        cluster: r.between(0, 3),
        reuse: r.pick(&[Reuse::Last, Reuse::First, Reuse::Any]),
        free_batch: r.pick(&[1, 1, 8, 64]),
        plugged: r.pick(&[100, 100, 90, 0]),
        nested: r.pick(&[0, 0, 5, 50]),
        exits,
        unmaps,
        drains,
        checks,
        tunings,
        switches,
        owners: r.up_to(1, &[2, 10, 400]),
        worst: r.pick(&[0, 5, 30, 80]),
        kill: r.percent(50),
    }
}

impl Scenario {
    /// Does the device have no faults besides outages?
    pub fn faultless(&self) -> bool {
        let f = &self.faults;
        let rates = [f.append, f.read, f.reset, f.finish, f.read_only, f.offline, self.dying.0];
        self.bad_blocks == 0 && rates.iter().all(|rate| *rate == 0)
    }

    /// Can no command fail?
    pub fn errorless(&self) -> bool {
        self.faultless() && self.outages.0 == 0
    }

    /// Draws blocks that stay bad.
    fn draw_bad_blocks(&mut self, r: &mut Draw) {
        // Fewer seeds pack pages than do not, and all that GC gives up is found in another way.
        if !r.percent(if self.contents.pack > 0 { 60 } else { 20 }) {
            return;
        }
        self.bad_blocks = r.pick(&[500, 2_000, 10_000]);
        let blocks = self.cfg.nr_zones * self.cfg.zone_blocks / self.contents.per_page();
        if blocks < 1_500 && self.cfg.nr_slots > 80 {
            self.grow_old(blocks);
            // Other faults would end most runs before GC gives up a block.
            if r.percent(70) {
                self.faults = FaultPlan::default();
                (self.dying, self.outages) = ((0, 0), (0, 0));
            }
        }
    }

    /// GC gives up an unreadable block only after the device was written eight times
    /// (engine/recover.c). So half of the pages stay out, and the others keep the device
    /// being written.
    fn grow_old(&mut self, blocks: u32) {
        // Packed pages of full length do that as well.
        self.contents.raw = 100;
        self.cfg.nr_slots = self.cfg.nr_slots.min(self.cfg.max_slots());
        let load = &mut self.load;
        (load.worst, load.exits, load.unmaps, load.drains, load.cluster) = (0, 0, 0, 0, 0);
        (load.raw_slots, load.frames, load.kill) = (0, 48, false);
        load.pages = self.cfg.nr_slots * 9 / 10 + load.frames;
        load.cold = 50;
        load.writes = 90;
        load.steps = 30 * blocks;
    }

    /// The most pages that an append takes, if pages are packed and none shrinks. A span of
    /// GC reaches beyond its chunk, and the append is padded to a write unit, or to a zone's end.
    fn longest_append(&self) -> u32 {
        let cfg = &self.cfg;
        match cfg.pack {
            0 => cfg.chunk_pages,
            pack => {
                let data = (cfg.chunk_pages * (pack + 1)).div_ceil(pack).max(cfg.batch_pages + 1);
                data + cfg.write_unit / pack
            }
        }
    }

    /// The run of a seed.
    pub fn draw(seed: u64) -> Scenario {
        let mut r = Draw(rng::stream(seed, 0));
        loop {
            let (unit, of_device, mut units, mut capacity) = draw_shape(&mut r);
            let mut max_active = r.pick(&[0, 0, 1, 1, 2, 3, 4, 8, 14]);
            // Many isolated streams take many zones, so small ones.
            let many = unit <= 4 && Draw(rng::stream(seed, 18)).percent(10);
            if many {
                capacity -= unit * units.saturating_sub(8);
                (units, max_active) = (units.min(8), 0);
            }
            let max_open = match r.percent(30) {
                true if max_active > 1 => r.between(1, max_active),
                _ => max_active,
            };
            let mut cfg = draw_config(&mut r, unit, units, capacity, max_open);
            if many {
                cfg.nr_zones = (2 * MOST_BLOCKS / cfg.zone_blocks).min(1500);
                (cfg.policy, cfg.gc_low, cfg.gc_high) = (policy("cgroup"), 0, 0);
            }
            // From a separate generator, so that other seeds keep their scenario.
            let mut later = Draw(rng::stream(seed, 5));
            cfg.serial = later.percent(20);
            cfg.batch_pages = cfg.chunk_pages;
            let longest = cfg.zone_blocks / cfg.chunk_pages;
            cfg.chunk_pages *= longest.min(later.pick(&[1, 1, 2, 4]));
            let contents = draw_contents(seed);
            if !pack_pages(&mut cfg, contents.pack) {
                continue;
            }
            let most = cfg.max_slots();
            if most < 16 || cfg.gc_high >= cfg.nr_zones {
                continue;
            }
            cfg.nr_slots = match r.between(0, 7) {
                0 => r.between(16, most),
                1 | 2 => r.between(most.div_ceil(2).max(16), most),
                _ => most,
            };
            cfg.nr_slots *= promised(seed, contents);
            if contents.pack > 0 && Engine::new(&cfg).is_err() {
                continue;
            }
            let (faults, dying, outages) = draw_faults(&mut r);
            let mut scenario = Scenario {
                seed,
                timing: r.pick(&["zn540", "hynix", "fast"]),
                zone_size: capacity + r.pick(&[0, 1, 24]),
                capacity,
                unit: of_device,
                max_open,
                max_active,
                deadline: r.pick(&[100 * US, MS, 5 * MS]),
                wake: r.pick(&[0, US, 50 * US, MS]),
                pause: r.pick(&[0, 0, US, 50 * US]),
                faults,
                bad_blocks: 0,
                dying,
                outages,
                calm_end: r.percent(50),
                load: draw_load(&mut r, cfg.nr_slots),
                cfg,
                contents,
            };
            // A separate generator, so that the scenario above stays as it was.
            scenario.draw_bad_blocks(&mut Draw(rng::stream(seed, 4)));
            return scenario;
        }
    }

    /// The device, with its faults.
    pub fn device(&self) -> ZnsSsd {
        let bytes = |blocks: u32| u64::from(blocks) * BLOCK;
        let mut p = Params::load(self.timing, &[]).expect("a built-in device");
        // Faults delay commands, and the worst moments are forced; what else varies would only
        // change what known seeds do.
        p.media.read_jitter_us.clear();
        p.media.program_jitter_us.clear();
        p.controller.write_jitter_us.clear();
        let z = p.zoned.as_mut().expect("a zoned one");
        z.zones = self.cfg.nr_zones;
        z.zone_size = bytes(self.zone_size);
        z.zone_capacity = bytes(self.capacity);
        z.write_unit = bytes(self.unit);
        z.max_append = bytes(self.longest_append());
        (z.max_open, z.max_active) = (self.max_open, self.max_active);
        let mut dev = ZnsSsd::new(&p, None, rng::mix(self.seed)).expect("there are zones");
        dev.inject(self.faults.clone());
        dev
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let c = &self.cfg;
        writeln!(
            f,
            "device   {} zones of {} blocks (size {}, engine uses {}), write unit {} (engine {}), open {}, active {}, timing {}",
            c.nr_zones,
            self.capacity,
            self.zone_size,
            c.zone_blocks / self.contents.per_page(),
            self.unit,
            c.write_unit / self.contents.per_page(),
            self.max_open,
            self.max_active,
            self.timing
        )?;
        writeln!(
            f,
            "engine   {} slots, chunk {} to {}, chunks {} + {}, reserve {}, {:?} of {} CPUs, marks {}/{}, finish {}",
            c.nr_slots,
            c.batch_pages,
            c.chunk_pages,
            c.nr_chunks,
            c.nr_gc_chunks,
            c.reserve,
            c.policy,
            c.nr_cpus,
            c.gc_low,
            c.gc_high,
            c.finish
        )?;
        let p = &self.contents;
        writeln!(
            f,
            "pages    pack {}, {} % do not shrink, {} % repeat one of {} words",
            p.pack, p.raw, p.filled, p.words
        )?;
        writeln!(
            f,
            "module   deadline {} ns, worker wakes within {} ns, pauses {} ns",
            self.deadline, self.wake, self.pause
        )?;
        writeln!(
            f,
            "faults   {:?}, bad blocks {}, zones dying {:?}, outages {:?}, calm end {}",
            self.faults, self.bad_blocks, self.dying, self.outages, self.calm_end
        )?;
        write!(f, "load     {:?}", self.load)
    }
}
