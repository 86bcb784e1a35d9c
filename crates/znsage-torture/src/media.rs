// SPDX-License-Identifier: GPL-2.0-only
//! The device with the content of its blocks and the commands in flight. It
//! reports commands that are errors of the driver.
//!
//! The device counts in pages, the engine in blocks, of which a page may have several.

use std::collections::BTreeMap;
use std::ops::Range;

use znsage_sim::device::{FaultKind, FaultPlan, ZnsSsd, ZoneState};
use znsage_sim::rng::{self, Rng};
use znsage_sim::time::Ns;

use super::content::{Cell, Contents, Token, GARBAGE, NOTHING};
use super::draw::Scenario;

/// The kind of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verb {
    Append,
    Read,
    Reset,
    Finish,
}

impl Verb {
    pub fn name(self) -> &'static str {
        match self {
            Verb::Append => "append",
            Verb::Read => "read",
            Verb::Reset => "reset",
            Verb::Finish => "finish",
        }
    }
}

/// A command in flight. It counts in pages of the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    pub verb: Verb,
    pub zone: u32,
    pub offset: u32,
    pub pages: u32,
    /// When it completes.
    pub done: Ns,
    pub error: Option<FaultKind>,
    /// Failures of the zone at submission.
    deaths: u32,
    number: u64,
}

#[derive(Clone, Default)]
struct Zone {
    appends: u32,
    reads: u32,
    /// A reset or a finish.
    managed: bool,
    deaths: u32,
}

pub(super) struct Media {
    dev: ZnsSsd,
    zone_pages: u32,
    contents: Contents,
    serial: bool,
    cells: Vec<Cell>,
    zones: Vec<Zone>,
    /// Rate per million of pages that go bad when written, and which are bad.
    bad_rate: u32,
    bad: Vec<bool>,
    rng: Rng,
    submitted: u64,
    last_completed: u64,
    /// Commands that completed after one that was submitted later.
    pub reordered: u64,
    /// Injected errors, by command and kind.
    pub errors: BTreeMap<(Verb, &'static str), u64>,
    pub wrong: Vec<String>,
    /// Commands refused because too many zones are open or active.
    pub refused: Vec<String>,
}

/// The class a fault is counted in; None: not injected.
fn class(kind: FaultKind) -> Option<&'static str> {
    match kind {
        FaultKind::Media => Some("media"),
        FaultKind::ReadOnly => Some("read-only"),
        FaultKind::Offline => Some("offline"),
        _ => None,
    }
}

impl Media {
    pub fn new(plan: &Scenario) -> Media {
        let (cfg, per) = (&plan.cfg, plan.contents.per_page());
        let blocks = cfg.nr_zones * cfg.zone_blocks;
        Media {
            cells: vec![NOTHING; blocks as usize],
            bad_rate: plan.bad_blocks,
            bad: vec![false; (blocks / per) as usize],
            zones: vec![Zone::default(); cfg.nr_zones as usize],
            dev: plan.device(),
            zone_pages: cfg.zone_blocks / per,
            contents: plan.contents,
            serial: cfg.serial,
            rng: rng::stream(plan.seed, 3),
            submitted: 0,
            last_completed: 0,
            reordered: 0,
            errors: BTreeMap::new(),
            wrong: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Replaces the fault plan; zones stay as they are.
    pub fn inject(&mut self, plan: FaultPlan) {
        self.dev.inject(plan);
    }

    /// No faults from now on; failed zones stay failed.
    pub fn calm_down(&mut self) {
        self.inject(FaultPlan::default());
        self.bad_rate = 0;
        self.bad.fill(false);
    }

    /// Every command fails from now on.
    pub fn go_away(&mut self) {
        let all = 1_000_000;
        self.inject(FaultPlan {
            append: all,
            read: all,
            reset: all,
            finish: all,
            ..FaultPlan::default()
        });
    }

    /// All cells of the device.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The page of a slot in these blocks, or what is there instead.
    pub fn page(&self, block: u32, len: u32, slot: u32) -> Token {
        let cells = &self.cells[block as usize..];
        match self.contents.pack {
            0 => cells[0],
            _ => self.contents.unpack(&cells[..cells.len().min(len as usize)], slot),
        }
    }

    /// The blocks of these pages of a zone.
    fn blocks_of(&self, zone: u32, pages: Range<u32>) -> Range<usize> {
        let per = self.contents.per_page() as usize;
        let base = (zone * self.zone_pages) as usize;
        per * (base + pages.start as usize)..per * (base + pages.end as usize)
    }

    pub fn state(&self, zone: u32) -> ZoneState {
        self.dev.zone(zone).state
    }

    /// Written pages of a zone, including failed writes.
    pub fn written(&self, zone: u32) -> u32 {
        self.dev.zone(zone).write_pointer.min(self.zone_pages)
    }

    pub fn is_active(&self, zone: u32) -> bool {
        matches!(self.state(zone), ZoneState::Open | ZoneState::Closed)
    }

    pub fn active(&self) -> u32 {
        self.dev.open_and_active().1
    }

    pub fn in_flight(&self, zone: u32) -> u32 {
        let z = &self.zones[zone as usize];
        z.appends + z.reads + u32::from(z.managed)
    }

    /// Fails a zone. False: it already had.
    pub fn kill(&mut self, zone: u32, state: ZoneState) -> bool {
        let was = self.state(zone);
        if was == ZoneState::Offline || was == state {
            return false;
        }
        self.dev.fail_zone(zone, state);
        self.zones[zone as usize].deaths += 1;
        true
    }

    fn count(&mut self, verb: Verb, what: &'static str) {
        *self.errors.entry((verb, what)).or_default() += 1;
    }

    /// Makes the ticket for the completion of a command.
    fn ticket(
        &mut self,
        verb: Verb,
        zone: u32,
        pages: u32,
        is: Result<(u32, Ns), znsage_sim::device::Fault>,
    ) -> Ticket {
        let (offset, done, error) = match is {
            Ok((offset, done)) => (offset, done, None),
            Err(fault) => (fault.offset, fault.done, Some(fault.kind)),
        };
        if let Some(kind) = error {
            match class(kind) {
                Some(class) => self.count(verb, class),
                None => {
                    let what = format!("{} of zone {zone}: {kind}", verb.name());
                    match kind {
                        FaultKind::TooManyActive | FaultKind::TooManyOpen => &mut self.refused,
                        _ => &mut self.wrong,
                    }
                    .push(what);
                }
            }
            if matches!(kind, FaultKind::ReadOnly | FaultKind::Offline) {
                self.zones[zone as usize].deaths += 1;
            }
        }
        self.submitted += 1;
        let (deaths, number) = (self.zones[zone as usize].deaths, self.submitted);
        Ticket { verb, zone, offset, pages, done, error, deaths, number }
    }

    /// Appends blocks, then `padding` more.
    pub fn append(&mut self, now: Ns, zone: u32, cells: &[Cell], padding: u32) -> Ticket {
        if self.zones[zone as usize].managed {
            self.wrong.push(format!("append to zone {zone}, which is being reset or finished"));
        }
        if self.serial && self.zones[zone as usize].appends > 0 {
            self.wrong.push(format!("two appends at a time to zone {zone}"));
        }
        let per = self.contents.per_page();
        let (pages, data) = ((cells.len() as u32 + padding) / per, cells.len() as u32 / per);
        if !(cells.len() as u32).is_multiple_of(per) || !padding.is_multiple_of(per) {
            self.wrong.push(format!("append of a part of a page to zone {zone}"));
        }
        let from = self.written(zone);
        let is = self.dev.append(now, zone, pages).map(|a| (a.offset, a.done));
        match is {
            Ok((offset, _)) => {
                let to = self.blocks_of(zone, offset..offset + data);
                self.cells[to].copy_from_slice(cells);
                self.spoil(zone * self.zone_pages + offset, data);
            }
            Err(_) => {
                let half = self.blocks_of(zone, from..self.written(zone));
                self.cells[half].fill(GARBAGE);
            }
        }
        self.zones[zone as usize].appends += 1;
        self.ticket(Verb::Append, zone, pages, is)
    }

    /// Draws which of the written pages are bad.
    fn spoil(&mut self, page: u32, pages: u32) {
        if self.bad_rate == 0 {
            return;
        }
        for bad in &mut self.bad[page as usize..(page + pages) as usize] {
            *bad = rng::below(&mut self.rng, 1_000_000) < self.bad_rate;
        }
    }

    /// Reads the pages that have these blocks.
    pub fn read(&mut self, now: Ns, block: u32, blocks: u32) -> Ticket {
        let per = self.contents.per_page();
        let (first, end) = (block / per, (block + blocks).div_ceil(per));
        let (zone, offset, pages) = (first / self.zone_pages, first % self.zone_pages, end - first);
        if self.zones[zone as usize].managed && self.state(zone) == ZoneState::Empty {
            self.wrong.push(format!("read of zone {zone}, which is being reset"));
        }
        let is = self.dev.read(now, zone, offset, pages).map(|done| (offset, done));
        self.zones[zone as usize].reads += 1;
        let mut ticket = Ticket { offset, ..self.ticket(Verb::Read, zone, pages, is) };
        if ticket.error.is_none() && self.bad[first as usize..end as usize].contains(&true) {
            ticket.error = Some(FaultKind::Media);
            self.count(Verb::Read, "bad block");
        }
        ticket
    }

    /// Resets or finishes a zone.
    pub fn manage(&mut self, now: Ns, zone: u32, verb: Verb) -> Ticket {
        let z = &self.zones[zone as usize];
        if z.managed || z.appends > 0 || (verb == Verb::Reset && z.reads > 0) {
            let (name, appends, reads) = (verb.name(), z.appends, z.reads);
            self.wrong.push(format!(
                "{name} of zone {zone} with {appends} appends and {reads} reads in flight"
            ));
        }
        let is = match verb {
            Verb::Reset => self.dev.reset(now, zone),
            _ => self.dev.finish(now, zone),
        };
        if verb == Verb::Reset && is.is_ok() {
            let all = self.blocks_of(zone, 0..self.zone_pages);
            self.cells[all].fill(NOTHING);
            let from = (zone * self.zone_pages) as usize;
            self.bad[from..from + self.zone_pages as usize].fill(false);
        }
        self.zones[zone as usize].managed = true;
        self.ticket(verb, zone, 0, is.map(|done| (0, done)))
    }

    /// Completes a command; true on success. If the zone failed meanwhile, so may the
    /// command.
    pub fn complete(&mut self, t: &Ticket) -> bool {
        if t.number < self.last_completed {
            self.reordered += 1;
        }
        self.last_completed = self.last_completed.max(t.number);
        let z = &mut self.zones[t.zone as usize];
        match t.verb {
            Verb::Append => z.appends -= 1,
            Verb::Read => z.reads -= 1,
            Verb::Reset | Verb::Finish => z.managed = false,
        }
        if t.error.is_some() {
            return false;
        }
        let died = z.deaths > t.deaths;
        if died && rng::below(&mut self.rng, 2) == 0 {
            self.count(t.verb, "zone failed meanwhile");
            return false;
        }
        true
    }
}
