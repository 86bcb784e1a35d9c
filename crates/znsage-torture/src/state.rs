// SPDX-License-Identifier: GPL-2.0-only
//! A run: all of its state, and the numbers it draws.

use std::fmt;

use slab::Slab;
use znsage_engine::Engine;
use znsage_sim::event::Queue;
use znsage_sim::rng::{self, Rng};
use znsage_sim::time::Ns;

use super::bio::{Bio, BioId, User};
use super::chunks::{Cmd, Module};
use super::content::{Token, ZERO};
use super::counts::Counts;
use super::draw::Scenario;
use super::media::{Media, Ticket};
use super::model::Model;
use super::pages::Kernel;
use super::types::{Sabotage, Trace};

/// Most outages of a run: after more read errors GC gives up pages.
pub(super) const MOST_OUTAGES: u32 = 3;

/// An event.
pub(super) enum Ev {
    Actor(u32),
    Done(usize),
    Work,
    Deadline,
    /// The check of a live device polls for quiet.
    Quiesce,
    /// An outage ends.
    Back,
}

pub(super) struct Run {
    pub plan: Scenario,
    pub now: Ns,
    pub queue: Queue<Ev>,
    pub rng: Rng,
    pub(super) spoiler: Rng,
    pub e: Engine,
    pub media: Media,
    pub model: Model,
    pub m: Module,
    pub k: Kernel,
    pub bios: Slab<Bio>,
    pub commands: Slab<(Ticket, Cmd)>,
    pub n: Counts,
    pub sabotage: Sabotage,
    pub trace: Option<Trace>,
    pub wrong: Vec<String>,
    /// A live check is running: no new bios.
    pub frozen: bool,
    /// Faults are off for good.
    pub(super) calm: bool,
    /// Outages left.
    pub(super) outages_left: u32,
    /// Polls in a row that found nothing in flight.
    pub quiet: u32,
    /// The engine was idle at the last poll.
    pub was_idle: bool,
    /// Pages of successful writes.
    pub acknowledged: u64,
    pub(super) events_at_step: u64,
    pub(super) events: u64,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "run of seed {} at {} ns", self.plan.seed, self.now)
    }
}

impl Run {
    pub fn new(plan: Scenario, sabotage: Sabotage, trace: Option<Trace>) -> Run {
        let cfg = &plan.cfg;
        let e = Engine::new(cfg).unwrap_or_else(|why| panic!("{why:?}: {plan}"));
        Run {
            now: 1,
            queue: Queue::default(),
            rng: rng::stream(plan.seed, 1),
            spoiler: rng::stream(plan.seed, 2),
            e,
            media: Media::new(&plan),
            model: Model::new(cfg.nr_slots, plan.contents),
            m: Module::new(cfg),
            k: Kernel::new(&plan),
            bios: Slab::new(),
            commands: Slab::new(),
            n: Counts::default(),
            sabotage,
            trace,
            wrong: Vec::new(),
            frozen: false,
            calm: false,
            outages_left: MOST_OUTAGES,
            quiet: 0,
            was_idle: false,
            acknowledged: 0,
            events_at_step: 0,
            events: 0,
            plan,
        }
    }

    /// A number below `n`.
    pub fn draw(&mut self, n: u32) -> u32 {
        rng::below(&mut self.rng, n)
    }

    pub fn percent(&mut self, p: u32) -> bool {
        p > 0 && self.draw(100) < p
    }

    /// A span up to `most`.
    pub fn delay(&mut self, most: Ns) -> Ns {
        match most {
            0 => 0,
            _ => rng::scale(rand::Rng::next_u64(&mut self.rng), most + 1),
        }
    }

    /// Does the sabotage strike now? Once in `once_in` calls.
    pub fn spoil(&mut self, once_in: u32) -> bool {
        rng::below(&mut self.spoiler, once_in) == 0
    }

    pub fn events(&self) -> u64 {
        self.events
    }

    /// An actor made progress.
    pub fn stepped(&mut self) {
        self.events_at_step = self.events;
    }

    pub fn bio(&mut self, user: User, write: bool, slots: Vec<u32>, tokens: Vec<Token>) -> BioId {
        let nr = slots.len();
        // A write ends with its last page; a read also holds a reference during
        // submission.
        let left = if write { nr as u32 } else { 1 };
        self.bios.insert(Bio {
            user,
            write,
            slots,
            tokens,
            got: vec![ZERO; nr],
            at: 0,
            left,
            failed: false,
            device_error: false,
            since: self.events,
        })
    }
}
