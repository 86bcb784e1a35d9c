// SPDX-License-Identifier: GPL-2.0-only
//! The device with the content of its blocks and the commands in flight. It
//! reports commands that are errors of the driver.

use std::collections::BTreeMap;

use crate::device::{FaultKind, FaultPlan, ZnsSsd, ZoneState};
use crate::rng::{self, Rng};
use crate::time::Ns;

/// Content of a page or block, unique to each write.
pub(super) type Token = u64;

/// A page of zeros; written contents count from 1.
pub(super) const ZERO: Token = 0;
/// Unwritten since the reset, or padding.
pub(super) const NOTHING: Token = u64::MAX;
/// Left behind by a failed write.
const GARBAGE: Token = u64::MAX - 1;

/// A content, for messages.
pub(super) fn name(token: Token) -> String {
    match token {
        ZERO => "zeros".into(),
        NOTHING => "nothing that was written".into(),
        GARBAGE => "the rest of a write that failed".into(),
        token => format!("content {token}"),
    }
}

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

/// A command in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    pub verb: Verb,
    pub zone: u32,
    pub offset: u32,
    pub blocks: u32,
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
    zone_blocks: u32,
    serial: bool,
    content: Vec<Token>,
    zones: Vec<Zone>,
    /// Rate per million of blocks that go bad when written, and which are bad.
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
    pub fn new(dev: ZnsSsd, zone_blocks: u32, serial: bool, bad_rate: u32, seed: u64) -> Media {
        let zones = dev.geometry().zones;
        let blocks = (zones * zone_blocks) as usize;
        Media {
            content: vec![NOTHING; blocks],
            bad_rate,
            bad: vec![false; blocks],
            zones: vec![Zone::default(); zones as usize],
            dev,
            zone_blocks,
            serial,
            rng: rng::stream(seed, 3),
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

    pub fn blocks(&self) -> u32 {
        self.content.len() as u32
    }

    pub fn content(&self, block: u32) -> Token {
        self.content[block as usize]
    }

    pub fn state(&self, zone: u32) -> ZoneState {
        self.dev.zone(zone).state
    }

    /// Written blocks of a zone, including failed writes.
    pub fn written(&self, zone: u32) -> u32 {
        self.dev.zone(zone).write_pointer.min(self.zone_blocks)
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
        blocks: u32,
        is: Result<(u32, Ns), crate::device::Fault>,
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
        Ticket { verb, zone, offset, blocks, done, error, deaths, number }
    }

    pub fn append(&mut self, now: Ns, zone: u32, pages: &[Token], padding: u32) -> Ticket {
        if self.zones[zone as usize].managed {
            self.wrong.push(format!("append to zone {zone}, which is being reset or finished"));
        }
        if self.serial && self.zones[zone as usize].appends > 0 {
            self.wrong.push(format!("two appends at a time to zone {zone}"));
        }
        let blocks = pages.len() as u32 + padding;
        let from = self.written(zone);
        let is = self.dev.append(now, zone, blocks).map(|a| (a.offset, a.done));
        let base = (zone * self.zone_blocks) as usize;
        match is {
            Ok((offset, _)) => {
                let at = base + offset as usize;
                self.content[at..at + pages.len()].copy_from_slice(pages);
                self.spoil(at, pages.len());
            }
            Err(_) => {
                let to = self.written(zone);
                self.content[base + from as usize..base + to as usize].fill(GARBAGE);
            }
        }
        self.zones[zone as usize].appends += 1;
        self.ticket(Verb::Append, zone, blocks, is)
    }

    /// Draws which of the written blocks are bad.
    fn spoil(&mut self, at: usize, blocks: usize) {
        if self.bad_rate == 0 {
            return;
        }
        for bad in &mut self.bad[at..at + blocks] {
            *bad = rng::below(&mut self.rng, 1_000_000) < self.bad_rate;
        }
    }

    pub fn read(&mut self, now: Ns, block: u32, blocks: u32) -> Ticket {
        let (zone, offset) = (block / self.zone_blocks, block % self.zone_blocks);
        if self.zones[zone as usize].managed && self.state(zone) == ZoneState::Empty {
            self.wrong.push(format!("read of zone {zone}, which is being reset"));
        }
        let is = self.dev.read(now, zone, offset, blocks).map(|done| (offset, done));
        self.zones[zone as usize].reads += 1;
        let mut ticket = Ticket { offset, ..self.ticket(Verb::Read, zone, blocks, is) };
        if ticket.error.is_none() && self.bad[block as usize..][..blocks as usize].contains(&true) {
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
            let from = (zone * self.zone_blocks) as usize;
            self.content[from..from + self.zone_blocks as usize].fill(NOTHING);
            self.bad[from..from + self.zone_blocks as usize].fill(false);
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
