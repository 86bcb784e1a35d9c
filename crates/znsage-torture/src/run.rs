// SPDX-License-Identifier: GPL-2.0-only
//! A run: the event loop, the worst moments, and the checks.

use znsage_sim::device::ZoneState;
use znsage_sim::time::US;

use super::bio::BioId;
use super::chunks::Cmd;
use super::state::{Ev, Run};
use super::types::trace;

/// Events between two full checks, and between two checks for a hang.
const CHECK_EVERY: u64 = 2_000;
const LOOK_EVERY: u64 = 64;
/// Events without a step of any actor: a livelock. Where most zones cannot be read, GC reads all of their
/// pages again as a last resort, up to a hundred for each page that swap-out gives up, and a task gives up
/// many before it is out of memory.
const CIRCLES: u64 = 2_000_000;
/// Writes after all faults, one of which must find room.
const MOST_TRIES: u32 = 500;
/// Most errors that are listed.
const MOST: usize = 8;

impl Run {
    // ---- bios

    /// A part of a bio has ended.
    pub fn bio_put(&mut self, id: BioId) {
        let bio = &mut self.bios[id];
        if bio.left == 0 {
            self.wrong.push("a page ended twice".into());
            return;
        }
        bio.left -= 1;
        if bio.left == 0 {
            let bio = self.bios.remove(id);
            self.bio_ended(bio);
        }
    }

    // ---- the worst moments

    /// Just before `moment`: strikes some of its slots, or fails the zone.
    pub fn worst(&mut self, moment: &'static str, slots: &[u32], zone: Option<u32>) {
        if !self.percent(self.plan.load.worst) {
            return;
        }
        let (read_only, offline) = self.plan.dying;
        if let Some(zone) = zone.filter(|_| read_only > 0) {
            if self.draw(1_000_000) < 20 * read_only {
                self.zone_dies(zone, ZoneState::ReadOnly);
            } else if self.draw(1_000_000) < 20 * offline {
                self.zone_dies(zone, ZoneState::Offline);
            }
        }
        if slots.is_empty() {
            return;
        }
        let all = self.percent(10);
        let one = self.draw(slots.len() as u32) as usize;
        let range = if all { 0..slots.len() } else { one..one + 1 };
        for &slot in &slots[range] {
            if let Some(what) = self.strike(slot) {
                trace!(self, "just before {moment}: slot {slot} {what}");
                *self.n.moments.entry(format!("{moment}: {what}")).or_default() += 1;
            }
        }
    }

    pub fn zone_dies(&mut self, zone: u32, state: ZoneState) {
        if self.media.kill(zone, state) {
            trace!(self, "zone {zone} fails: {state:?}");
            match state {
                ZoneState::ReadOnly => self.n.zones_read_only += 1,
                _ => self.n.zones_offline += 1,
            }
        }
    }

    /// Begins an outage.
    pub fn go_away(&mut self) {
        if self.outages_left == 0 || self.calm {
            return;
        }
        trace!(self, "the device is away");
        self.n.outages += 1;
        self.outages_left -= 1;
        self.media.go_away();
        self.queue.push(self.now + self.plan.outages.1, Ev::Back);
    }

    fn come_back(&mut self) {
        trace!(self, "the device is back");
        if !self.calm {
            self.media.inject(self.plan.faults.clone());
        }
    }

    // ---- what must hold

    pub fn check(&mut self) {
        self.n.checks += 1;
        let oldest = self.bios.iter().map(|(_, b)| b.since).min();
        if oldest.is_some_and(|since| self.events - since > CIRCLES) {
            self.wrong.push(format!("a bio waits since {CIRCLES} events, and others get on"));
        }
        self.wrong.append(&mut self.media.wrong);
        let wrong = self.model.check(&mut self.e, &self.media);
        self.wrong.extend(wrong);
        self.check_kernel();
        self.wrong.truncate(MOST);
    }

    /// Checks appends refused for too many active zones: the engine may risk that only
    /// while some zone cannot be finished.
    pub fn refused_for_active(&mut self) {
        if self.media.refused.is_empty() {
            return;
        }
        let mut zones = 0..self.plan.cfg.nr_zones;
        if zones.any(|zone| self.m.was_tried(zone) && self.media.is_active(zone)) {
            self.n.refused += self.media.refused.len() as u64;
            self.media.refused.clear();
        } else {
            self.wrong.append(&mut self.media.refused);
        }
    }

    /// Is anything in flight?
    pub fn under_way(&self) -> bool {
        !self.commands.is_empty() || !self.m.at_rest()
    }

    /// Checks for bios that nothing will end.
    fn check_hang(&mut self) {
        if !self.under_way() && !self.bios.is_empty() {
            let writes = self.bios.iter().filter(|(_, b)| b.write).count();
            self.wrong.push(format!(
                "{} writes and {} reads wait, and nothing is under way",
                writes,
                self.bios.len() - writes
            ));
        }
        if self.events - self.events_at_step > CIRCLES {
            self.wrong.push(format!("{CIRCLES} events and no progress"));
        }
    }

    /// With nothing in flight, compares the engine's zones with the device's.
    pub fn check_rest(&mut self) {
        if !self.e.idle() {
            self.wrong.push("nothing is under way, but the engine is not idle".into());
        }
        if let Some(t) = self.k.tasks.iter().find(|t| t.goal.is_some()) {
            self.wrong.push(format!("a task waits for ever: {t:?}"));
        }
        let mut open = 0;
        for zone in 0..self.plan.cfg.nr_zones {
            let z = self.e.zone(zone);
            let (state, written) =
                (self.media.state(zone), self.media.written(zone).min(z.capacity));
            // A failed zone may still count as active, and so may one whose finish failed,
            // whatever its health became since.
            let unfinished = z.failed || self.n.finish_errors > 0 && z.written < z.capacity;
            let active = unfinished && ["full", "retired"].contains(&z.state);
            open += u32::from(z.state == "open" || active);
            let dead = matches!(state, ZoneState::ReadOnly | ZoneState::Offline);
            if self.media.in_flight(zone) > 0 {
                self.wrong.push(format!("zone {zone} has commands in flight"));
            }
            // A failed append may have written something.
            // The device does not say how much of a zone was written that was finished.
            let finished = state == ZoneState::Full && z.state != "open";
            let same = z.written == written
                || (finished || self.n.append_errors > 0) && z.written < written;
            if !dead && !z.failed && z.state != "retired" && !same {
                self.wrong.push(format!(
                    "zone {zone} is {}, {} written; on the device {state:?}, {written}",
                    z.state, z.written
                ));
            }
        }
        if self.plan.cfg.max_active != 0 && self.media.active() > open {
            self.wrong.push(format!(
                "{} zones are active on the device, the engine knows of {open}",
                self.media.active()
            ));
        }
        self.check();
    }

    // ---- the loop

    /// The next event; false if there is none, or something is wrong.
    pub fn step(&mut self) -> bool {
        let Some((at, event)) = self.queue.pop() else { return false };
        self.now = at;
        self.events += 1;
        match event {
            Ev::Actor(actor) => {
                self.not_spinning();
                self.act(actor);
            }
            Ev::Done(i) => {
                let (ticket, cmd) = self.commands.remove(i);
                self.not_spinning();
                match cmd {
                    Cmd::Append(append) => self.append_ended(&ticket, append),
                    Cmd::Read { bio, first, hold } => self.read_ended(&ticket, bio, first, hold),
                    Cmd::GcRead { of, part } => self.gc_part_ended(&ticket, of, part),
                    Cmd::Zone(op) => self.zone_ended(&ticket, op),
                }
            }
            Ev::Work => self.work(),
            Ev::Deadline => self.deadline(),
            Ev::Quiesce => self.quiesce(),
            Ev::Back => self.come_back(),
        }
        if !self.media.wrong.is_empty() {
            self.wrong.append(&mut self.media.wrong);
        }
        if self.events.is_multiple_of(LOOK_EVERY) {
            self.check_hang();
        }
        if self.events.is_multiple_of(CHECK_EVERY) {
            self.check();
        }
        self.wrong.is_empty()
    }

    /// Runs until nothing is in flight.
    fn settle(&mut self) {
        self.stepped();
        while self.step() {}
        if self.wrong.is_empty() {
            self.check_hang();
        }
        if self.wrong.is_empty() {
            self.check_rest();
        }
    }

    /// Runs to the end, or to the first error.
    pub fn run(&mut self) {
        self.go();
        self.account();
    }

    fn go(&mut self) {
        for actor in 0..self.k.actors() {
            let at = self.now + self.delay(10 * US);
            self.queue.push(at, Ev::Actor(actor));
        }
        self.settle();
        if !self.wrong.is_empty() {
            return;
        }
        // Swapoff: every page comes back.
        if self.plan.calm_end {
            self.media.calm_down();
            self.calm = true;
            self.check_recovers();
        }
        self.begin_drain();
        self.settle();
        if !self.wrong.is_empty() {
            return;
        }
        self.free_everything();
        self.kick();
        self.settle();
        self.check_totals();
    }

    /// All faults have ended, and no zone is broken for good: a write finds room after some
    /// tries, unless faults have used up the reserve. Then writes are refused until a zone
    /// dies, which `must_be_full` has checked; such runs are counted.
    fn check_recovers(&mut self) {
        let zones = 0..self.plan.cfg.nr_zones;
        let dead = |z| matches!(self.media.state(z), ZoneState::ReadOnly | ZoneState::Offline);
        if self.plan.load.raw_slots == 0 || zones.clone().any(dead) {
            return;
        }
        for _ in 0..MOST_TRIES {
            let before = (self.n.raw_failed, self.n.no_room);
            self.raw_write_one();
            self.settle();
            // A log may be full of pages that shrink less than was promised.
            let refused = self.n.no_room > before.1;
            if self.n.raw_failed == before.0 || refused || !self.wrong.is_empty() {
                return;
            }
        }
        self.n.dead_ends += 1;
    }

    /// At the end, compares the engine's counters with the driver's.
    fn check_totals(&mut self) {
        let (st, n) = (self.e.stats(), &self.n);
        let (serial, packed) = (self.plan.cfg.serial, self.plan.contents.pack > 0);
        for (what, is, want) in [
            ("slots in use", st.slots_used, 0),
            ("live blocks", st.live_blocks, 0),
            ("pages written", st.host_pages, self.acknowledged),
            ("pages refused", st.refused_pages, n.no_room),
            ("resets", st.zone_resets, n.resets - n.reset_errors),
            ("write errors", st.write_errors, n.append_errors + n.reset_errors + n.finish_errors),
            // Where a zone takes one append at a time, a chunk waits for its lane first.
            ("stalls", st.stalls, if serial { st.stalls } else { st.stalls.min(n.waits) }),
            ("pages lost", st.pages_lost, if packed { st.pages_lost } else { n.gc_lost }),
        ] {
            if is != want {
                self.wrong.push(format!("at the end, {what}: {is}, should be {want}"));
            }
        }
        if self.plan.faultless() && n.gc_lost > 0 {
            self.wrong.push(format!(
                "GC gave up {} pages of a device that was away {} times, no more",
                n.gc_lost, n.outages
            ));
        }
    }

    /// One line per zone.
    pub fn zone_table(&self) -> Vec<String> {
        let line = |zone| {
            let z = self.e.zone(zone);
            format!(
                "zone {zone}: {}{}, {} of {} written, {} live; on the device {:?}, {} written",
                z.state,
                if z.failed { ", bad" } else { "" },
                z.written,
                z.capacity,
                z.live,
                self.media.state(zone),
                self.media.written(zone)
            )
        };
        (0..self.plan.cfg.nr_zones).map(line).collect()
    }

    /// Collects the counters of engine and device.
    fn account(&mut self) {
        let st = self.e.stats();
        let n = &mut self.n;
        n.events = self.events;
        n.virtual_us = self.now / US;
        n.written = st.host_pages;
        n.moved = st.gc_blocks;
        n.zones_retired = st.zones_retired;
        n.reordered = self.media.reordered;
        for ((verb, kind), nr) in &self.media.errors {
            *n.faults.entry(format!("{} {kind}", verb.name())).or_default() += nr;
        }
    }
}
