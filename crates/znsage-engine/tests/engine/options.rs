// SPDX-License-Identifier: GPL-2.0-only
//! What a seed decides: the device, the settings, and how often each kind of step is
//! taken. Extremes are drawn on purpose (swarm testing): a run that never completes a
//! reset finds other bugs than one that always does.

use znsage_engine::{Config, Policy, Victim};

use crate::rng::Rng;

/// A random policy; common ones more often.
pub fn any_policy(r: &mut Rng) -> Policy {
    let names = ["single", "cpu", "cpu", "cpu", "cgroup", "cgroup", "heat"];
    Policy::builtin(r.pick(&names)).expect("the engine has it")
}

pub fn any_victim(r: &mut Rng) -> Victim {
    r.pick(&[Victim::Greedy, Victim::CostBenefit, Victim::Age])
}

/// Chances of errors, in 1/10000 of the operations; all 0 in half of the runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Errors {
    pub append: u32,
    pub gc_read: u32,
    pub reset: u32,
    pub finish: u32,
    /// Errors in all; a device that loses every zone proves little.
    pub most: u32,
}

/// Weights of the steps, drawn anew in each phase.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    pub write: u32,
    pub flush: u32,
    pub append_end: u32,
    pub free: u32,
    pub read_begin: u32,
    pub read_end: u32,
    pub gc_read_end: u32,
    pub reset_end: u32,
    pub finish_end: u32,
    pub next_op: u32,
    pub tune: u32,
    /// GC's reads and appends of this stream's pages do not end.
    pub held_back: Option<u32>,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub cfg: Config,
    pub errors: Errors,
    pub steps: u32,
    /// Steps between two draws of the weights.
    pub phase: u32,
    /// Slots below this one are written.
    pub working_set: u32,
    /// Slots are first written in order.
    pub fill: bool,
    /// next_op() is called only after a hint of the engine.
    pub hints: bool,
    /// Watermarks are changed and GC switched off and on.
    pub tuning: bool,
    /// Pages belong to more cgroups than there are streams.
    pub many_cgroups: bool,
}

/// Isolation takes zones for several streams, and places for GC's zones. Returns whether there
/// are many cgroups.
fn isolate(r: &mut Rng, cfg: &mut Config) -> bool {
    cfg.policy = Policy::builtin("cgroup").expect("the engine has it");
    cfg.nr_zones = r.pick(&[130, 130, 200]);
    cfg.zone_blocks = cfg.zone_blocks.min(r.pick(&[8, 16]) * cfg.write_unit);
    let half = (cfg.zone_blocks / cfg.write_unit / 2).max(1) * cfg.write_unit;
    cfg.chunk_pages = cfg.chunk_pages.min(half);
    (cfg.max_active, cfg.stripe) = (14, 2);
    // Without a limit on open zones, as many streams as zones allow.
    let many = cfg.nr_cpus.is_multiple_of(2);
    if many {
        (cfg.max_active, cfg.nr_zones) = (0, 640);
    }
    many
}

/// The configuration, and whether there are many cgroups.
fn draw_config(r: &mut Rng) -> (Config, bool) {
    let unit = r.pick(&[1, 1, 1, 2, 4]);
    let zone_units = r.up_to(8, &[8, 16, 32, 64]) / unit;
    let nr_zones = r.up_to(6, &[8, 12, 20, 40]);
    let mut cfg = Config {
        nr_zones,
        zone_blocks: zone_units * unit,
        finish: r.percent(20),
        max_active: r.pick(&[0, 0, 1, 1, 2, 3, 4, 14]),
        serial: r.percent(20),
        wide: r.percent(20),
        chunk_pages: r.up_to(1, &[1, 2, 4, 8, 64]).min(zone_units) * unit,
        write_unit: unit,
        nr_chunks: r.up_to(1, &[1, 4, 12, 40]),
        nr_gc_chunks: r.up_to(1, &[1, 2, 6, 24]),
        reserve: r.pick(&[1, 1, 2, 3]),
        nr_cpus: r.between(1, 8),
        policy: any_policy(r),
        victim: any_victim(r),
        pace: r.pick(&[0, 1, 50, 50, 100]),
        stripe: r.pick(&[0, 0, 1, 2, 3, 5]),
        ..Config::default()
    };
    let many = r.percent(10) && isolate(r, &mut cfg);
    if r.percent(30) {
        cfg.gc_low = r.up_to(cfg.least_gc_low(), &[cfg.nr_zones - 2]);
        cfg.gc_high = r.up_to(cfg.gc_low + 1, &[cfg.nr_zones - 1]);
    }
    (cfg, many)
}

/// The same, and the engine accepts it.
fn valid_config(r: &mut Rng) -> (Config, bool) {
    loop {
        let (mut cfg, many) = draw_config(r);
        let most = cfg.max_slots();
        if most == 0 || cfg.gc_high >= cfg.nr_zones {
            continue;
        }
        cfg.nr_slots = match r.below(8) {
            0 => r.between(1, most),
            1 | 2 => r.between((most / 2).max(1), most),
            _ => most,
        };
        // From what was drawn, so that other seeds keep their steps.
        cfg.batch_pages = cfg.chunk_pages;
        let longest = cfg.zone_blocks / cfg.chunk_pages;
        cfg.chunk_pages *= longest.min([1, 1, 2, 4][cfg.nr_slots as usize % 4]);
        return (cfg, many);
    }
}

impl Errors {
    fn draw(r: &mut Rng) -> Self {
        if r.percent(50) {
            return Errors::default();
        }
        let mut chance = || r.pick(&[0, 5, 20, 100, 500]);
        Errors {
            append: chance(),
            gc_read: chance(),
            reset: chance(),
            finish: chance(),
            most: r.between(1, 10),
        }
    }
}

impl Weights {
    pub fn draw(r: &mut Rng) -> Self {
        // 0 starves a kind of step until the next draw.
        let mut w = || r.pick(&[0, 1, 2, 4, 4, 8, 8, 8, 16, 16, 16, 16]);
        Weights {
            write: 4 + w(),
            flush: w(),
            append_end: w(),
            read_begin: w() / 4,
            read_end: w(),
            gc_read_end: w(),
            reset_end: w(),
            finish_end: w(),
            next_op: w() * 2,
            // Rarely more than is written, or the device stays empty.
            free: r.pick(&[0, 0, 0, 1, 1, 1, 4, 32]),
            tune: r.pick(&[0, 0, 1]),
            held_back: r.percent(20).then(|| r.below(4)),
        }
    }
}

impl Options {
    pub fn draw(r: &mut Rng) -> Self {
        let (cfg, many_cgroups) = valid_config(r);
        let working_set = match r.below(8) {
            0 => r.between(1, cfg.nr_slots.min(16)),
            1 => r.between(1, cfg.nr_slots),
            _ => cfg.nr_slots,
        };
        Options {
            errors: Errors::draw(r),
            steps: r.pick(&[500, 2000, 2000, 5000, 20000]),
            phase: r.pick(&[20, 50, 200]),
            working_set,
            fill: r.percent(70),
            hints: r.percent(50),
            tuning: r.percent(30),
            many_cgroups,
            cfg,
        }
    }
}
