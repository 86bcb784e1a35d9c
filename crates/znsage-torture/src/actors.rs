// SPDX-License-Identifier: GPL-2.0-only
//! The users of the disk: threads that touch and reclaim pages, a user of the
//! raw disk, and occasional events (exits, swapoff, `znsage check`, changed
//! settings, failing zones).

use std::mem;

use znsage_sim::device::ZoneState;
use znsage_sim::time::US;

use super::bio::{Bio, User};
use super::chunks::Plug;
use super::content::Token;
use super::draw::{policy, POLICIES, VICTIMS};
use super::pages::{At, Doing, Task};
use super::state::{Ev, Run};
use super::types::trace;

/// Pages of a batch of reclaim, and of a step of it.
const BATCH: u32 = 32;
const STEP: u32 = 4;
/// Failed reclaims before the OOM killer: the kernel's MAX_RECLAIM_RETRIES.
const FAILURES: u32 = 16;
/// OOM kills before the actors stop.
const DEAD: u64 = 5;
/// Events after which the actors stop.
const ENOUGH: u64 = 1_000_000;
/// Bios of the raw user in flight.
const RAW_DEPTH: u32 = 16;
/// Pages that swapoff reads at a time.
const DRAIN_DEPTH: u32 = 8;
/// Interval at which the live check polls for quiet.
const POLL: u64 = 500 * US;
/// Polls that may find nothing in flight but the engine busy.
const QUIET: u32 = 3;
/// Retry interval of threads while a live check runs.
const FROZEN: u64 = 500 * US;

impl Run {
    fn again(&mut self, actor: u32, within: u64) {
        let at = self.now + self.delay(within);
        self.queue.push(at, Ev::Actor(actor));
    }

    pub(super) fn act(&mut self, actor: u32) {
        let tasks = self.k.tasks.len() as u32;
        if self.frozen && actor < tasks + 1 {
            if self.percent(5) {
                let page = self.draw(self.k.pages.len() as u32);
                self.release(page);
            }
            return self.again(actor, FROZEN);
        }
        if actor == tasks {
            self.act_raw(actor);
        } else if actor > tasks {
            self.act_drain();
        } else {
            self.act_task(actor);
        }
    }

    fn task(&mut self, task: u32) -> &mut Task {
        &mut self.k.tasks[task as usize]
    }

    /// Have the actors finished, or given up?
    fn over(&self) -> bool {
        let tired = self.n.oom >= DEAD || self.events() >= ENOUGH;
        tired || self.k.steps >= self.plan.load.steps
    }

    // ---- threads

    fn act_task(&mut self, t: u32) {
        match self.task(t).doing {
            Doing::Run => self.run_task(t),
            Doing::Reclaim(left) => self.reclaim(t, left),
            Doing::WaitFed(left) => self.reclaim(t, left),
            // Woken: look at the page again.
            Doing::WaitRead | Doing::WaitMemory => {
                self.task(t).doing = Doing::Run;
                self.run_task(t);
            }
        }
    }

    fn run_task(&mut self, t: u32) {
        if self.task(t).goal.is_none() {
            if self.over() {
                return;
            }
            self.stepped();
            self.k.steps += 1;
            self.happen();
            let process = self.task(t).process;
            let range = self.k.range(process, self.plan.load.processes);
            let nr = range.end - range.start;
            let mut page = range.start + self.draw(nr);
            let is_cold = page - range.start >= nr - nr * self.plan.load.cold / 100;
            let left_alone = is_cold && self.page(page).at != At::Nowhere && !self.percent(1);
            if self.percent(30) || left_alone {
                // Skew: some pages are hot; cold ones are hardly touched again.
                page = range.start + (page - range.start) / 8;
            }
            let write = self.percent(self.plan.load.writes);
            self.task(t).goal = Some((page, write));
        }
        self.pursue(t);
    }

    /// A thread tries to access its page.
    fn pursue(&mut self, t: u32) {
        let Some((page, write)) = self.task(t).goal else { return };
        let p = *self.page(page);
        match p.at {
            At::Nowhere if self.has_frame() => self.fill(page),
            At::Slot if self.has_frame() => {
                self.task(t).doing = Doing::WaitRead;
                self.swap_in_around(page);
                return;
            }
            At::Nowhere | At::Slot => return self.begin_reclaim(t),
            At::Reading => {
                self.task(t).doing = Doing::WaitRead;
                return;
            }
            At::Memory if write => self.dirty(page),
            At::Writeback if p.dying => (),
            At::Writeback => {
                self.page(page).mapped = true;
                if write {
                    self.dirty(page);
                }
            }
            At::Memory => (),
        }
        let task = self.task(t);
        (task.goal, task.failures) = (None, 0);
        self.again(t, self.plan.load.think);
    }

    fn has_frame(&self) -> bool {
        self.k.frames_used < self.k.frames
    }

    /// Reads a page and those around it.
    fn swap_in_around(&mut self, page: u32) {
        let size = 1 << self.plan.load.cluster;
        let first = page / size * size;
        self.swap_in(page, User::Page(page));
        for p in first..(first + size).min(self.k.pages.len() as u32) {
            if self.has_frame() && self.page(p).at == At::Slot && p != page {
                self.swap_in(p, User::Page(p));
            }
        }
    }

    pub(super) fn is_waited_for(&self, page: u32) -> bool {
        let waits = |t: &Task| t.doing == Doing::WaitRead && t.goal.is_some_and(|g| g.0 == page);
        self.k.tasks.iter().any(waits)
    }

    pub(super) fn wake_readers(&mut self, page: u32) {
        for t in 0..self.k.tasks.len() as u32 {
            let task = self.task(t);
            if task.doing == Doing::WaitRead && task.goal.is_some_and(|g| g.0 == page) {
                task.doing = Doing::Run;
                self.again(t, 0);
            }
        }
    }

    pub(super) fn wake_waiting(&mut self, what: Doing) {
        for t in 0..self.k.tasks.len() as u32 {
            if self.task(t).doing == what {
                self.task(t).doing = Doing::Run;
                self.again(t, 0);
            }
        }
    }

    fn begin_reclaim(&mut self, t: u32) {
        self.task(t).failures += 1;
        if self.task(t).failures > FAILURES {
            self.out_of_memory(t);
            return self.again(t, US);
        }
        let plug = self.percent(self.plan.load.plugged).then(Plug::default);
        self.task(t).plug = plug;
        self.task(t).doing = Doing::Reclaim(BATCH);
        self.again(t, 0);
    }

    fn reclaim(&mut self, t: u32, left: u32) {
        let cpu = t % self.plan.cfg.nr_cpus;
        let mut plug = self.task(t).plug.take();
        let mut left = left;
        let step = STEP.min(left);
        for _ in 0..step {
            let nested = self.percent(self.plan.load.nested);
            if self.m.starved && !nested {
                // Sleeping ends the plug.
                if let Some(plug) = plug.take() {
                    self.unplug(plug, true);
                }
                self.task(t).doing = Doing::WaitFed(left);
                self.m.fed.push(t);
                return;
            }
            let nr = self.k.resident().len() as u32;
            if nr == 0 {
                left = 0;
                break;
            }
            let victim = self.draw(nr);
            self.reclaim_page(self.k.resident()[victim as usize], cpu, plug.as_mut());
            left -= 1;
        }
        self.task(t).plug = plug;
        if left > 0 {
            self.task(t).doing = Doing::Reclaim(left);
            return self.again(t, self.plan.pause);
        }
        self.end_reclaim(t);
    }

    fn end_reclaim(&mut self, t: u32) {
        if let Some(plug) = self.task(t).plug.take() {
            let deferred = self.percent(self.plan.load.nested);
            self.unplug(plug, deferred);
        }
        if !self.has_frame() && self.k.anything_in_writeback() {
            self.task(t).doing = Doing::WaitMemory;
            return;
        }
        self.task(t).doing = Doing::Run;
        self.again(t, US);
    }

    /// Out of memory: a process dies, or the access fails.
    fn out_of_memory(&mut self, t: u32) {
        self.n.oom += 1;
        self.stepped();
        self.k.steps += 1;
        let task = self.task(t);
        (task.goal, task.failures) = (None, 0);
        if self.percent(20) {
            let process = self.draw(self.plan.load.processes);
            self.exit(process);
        }
    }

    // ---- now and then

    fn chance(&mut self, in_a_million: u32) -> bool {
        in_a_million > 0 && self.draw(1_000_000) < in_a_million
    }

    fn happen(&mut self) {
        let load = self.plan.load.clone();
        if self.chance(load.exits) {
            self.n.exits += 1;
            let process = self.draw(load.processes);
            self.exit(process);
        }
        if self.chance(load.unmaps) {
            let first = self.draw(self.k.pages.len() as u32);
            let nr = 1 + self.draw(64);
            (first..(first + nr).min(self.k.pages.len() as u32)).for_each(|p| self.release(p));
        }
        if self.chance(load.drains) && self.k.drain.is_none() {
            self.n.swapoffs += 1;
            self.begin_drain();
        }
        if self.chance(load.checks) && !self.frozen {
            trace!(self, "check of the live device");
            (self.frozen, self.quiet) = (true, 0);
            self.e.set_gc(false);
            self.queue.push(self.now, Ev::Quiesce);
        }
        if self.chance(load.tunings) {
            let zones = self.plan.cfg.nr_zones + 1;
            let (low, high) = (self.draw(zones), self.draw(zones));
            self.e.set_watermarks(low, high);
            self.kick();
        }
        if self.chance(load.switches) {
            self.n.switches += 1;
            let name = POLICIES[self.draw(POLICIES.len() as u32) as usize];
            trace!(self, "policy {name}");
            assert!(self.e.set_policy(policy(name)), "there is memory");
            let victim = self.draw(VICTIMS.len() as u32) as usize;
            self.e.set_victim(VICTIMS[victim]);
            // No number is drawn for that, so that seeds still do the same.
            self.e.tell_lives_apart(victim > 0);
            self.kick();
        }
        let (read_only, offline) = self.plan.dying;
        if self.chance(read_only) {
            let zone = self.draw(self.plan.cfg.nr_zones);
            self.zone_dies(zone, ZoneState::ReadOnly);
        }
        if self.chance(offline) {
            let zone = self.draw(self.plan.cfg.nr_zones);
            self.zone_dies(zone, ZoneState::Offline);
        }
        if self.chance(self.plan.outages.0) {
            self.go_away();
        }
    }

    /// Like znsage_quiesce() in kmod/worker.c, then the check.
    pub(super) fn quiesce(&mut self) {
        let idle = !self.m.starved && self.e.idle();
        let was_idle = mem::replace(&mut self.was_idle, idle);
        if !idle || !was_idle {
            self.quiet = if self.under_way() { 0 } else { self.quiet + 1 };
            if self.quiet > QUIET {
                self.wrong
                    .push("the check of a live device waits, and nothing is under way".into());
            }
            self.m.flush = true;
            self.kick();
            let at = self.now + POLL;
            self.queue.push(at, Ev::Quiesce);
            return;
        }
        self.was_idle = false;
        self.n.live_checks += 1;
        self.check();
        self.e.set_gc(true);
        self.frozen = false;
        self.kick();
    }

    // ---- the raw user

    fn raw_range(&mut self, most: u32) -> Vec<u32> {
        let nr = self.plan.load.raw_slots;
        let first = self.draw(nr);
        let len = 1 + self.draw(most);
        let from = self.k.raw_from;
        (from + first..from + (first + len).min(nr)).collect()
    }

    fn tokens(&mut self, nr: usize) -> Vec<Token> {
        (0..nr).map(|_| self.model.token()).collect()
    }

    fn raw_write(&mut self, slots: Vec<u32>, plug: Option<&mut Plug>) {
        let tokens = self.tokens(slots.len());
        self.n.raw_written += slots.len() as u64;
        self.k.raw_bios += 1;
        let cpu = self.draw(self.plan.cfg.nr_cpus);
        let bio = self.bio(User::Raw, true, slots, tokens);
        self.write(bio, cpu, plug);
    }

    pub(super) fn raw_write_one(&mut self) {
        let slots = self.raw_range(1);
        self.raw_write(slots, None);
    }

    fn raw_read(&mut self, slots: Vec<u32>) {
        self.k.raw_bios += 1;
        self.n.read += slots.len() as u64;
        let tokens = vec![0; slots.len()];
        let bio = self.bio(User::Raw, false, slots, tokens);
        self.read(bio);
    }

    pub(super) fn raw_ended(&mut self, bio: Bio) {
        self.k.raw_bios -= 1;
        if !bio.failed {
            return;
        }
        if bio.write {
            self.n.raw_failed += 1;
        } else if bio.device_error && bio.slots.len() > 1 && !self.frozen {
            // Retry page by page to find the bad one.
            self.n.raw_retried += 1;
            for slot in bio.slots {
                self.raw_read(vec![slot]);
            }
        }
    }

    fn act_raw(&mut self, actor: u32) {
        if self.plan.load.raw_slots == 0 || self.over() {
            return;
        }
        if self.k.raw_bios >= RAW_DEPTH {
            return self.again(actor, 20 * US);
        }
        let nested = self.percent(self.plan.load.nested);
        if self.m.starved && !nested {
            self.m.fed.push(actor);
            return;
        }
        match self.draw(10) {
            0..=3 => {
                let mut plug = self.percent(self.plan.load.plugged).then(Plug::default);
                let slots = self.raw_range(24);
                self.raw_write(slots, plug.as_mut());
                if let Some(plug) = plug {
                    self.unplug(plug, nested);
                }
            }
            4..=7 => {
                let slots = self.raw_range(40);
                self.raw_read(slots);
            }
            _ => {
                for slot in self.raw_range(64) {
                    self.disk_free(slot);
                }
            }
        }
        self.again(actor, self.plan.load.think + US);
    }

    pub(super) fn strike_raw(&mut self, slot: u32) -> Option<&'static str> {
        let busy = self.frozen || self.k.raw_bios >= 4 * RAW_DEPTH || self.over();
        match self.draw(4) {
            0 | 1 => {
                self.disk_free(slot);
                Some("is discarded")
            }
            _ if busy => None,
            2 => {
                self.raw_write(vec![slot], None);
                Some("is written")
            }
            _ => {
                self.raw_read(vec![slot]);
                Some("is read")
            }
        }
    }

    // ---- swapoff

    /// Swapoff: all pages come back, and none is swapped out.
    pub(super) fn begin_drain(&mut self) {
        trace!(self, "swapoff");
        self.k.drain = Some(0);
        self.k.frames = u32::MAX;
        self.again(self.k.actors() - 1, 0);
    }

    fn act_drain(&mut self) {
        let Some(mut next) = self.k.drain else { return };
        self.stepped();
        if self.frozen {
            return self.again(self.k.actors() - 1, FROZEN);
        }
        while self.k.drain_reads < DRAIN_DEPTH && (next as usize) < self.k.pages.len() {
            if self.page(next).at == At::Slot {
                self.k.drain_reads += 1;
                self.swap_in(next, User::Swapoff(next));
            }
            next += 1;
        }
        self.k.drain = Some(next);
        if (next as usize) < self.k.pages.len() {
            return self.again(self.k.actors() - 1, 20 * US);
        }
        if self.k.drain_reads > 0 || self.k.anything_in_writeback() {
            return self.again(self.k.actors() - 1, 20 * US);
        }
        // Pages went out behind the scan: scan again.
        if self.k.pages.iter().any(|p| p.at == At::Slot) {
            self.k.drain = Some(0);
            return self.again(self.k.actors() - 1, 20 * US);
        }
        self.k.drain = None;
        self.k.frames = self.plan.load.frames;
    }

    /// Frees all pages and slots.
    pub(super) fn free_everything(&mut self) {
        (0..self.k.pages.len() as u32).for_each(|page| self.release(page));
        self.give_back();
        for slot in self.k.raw_from..self.plan.cfg.nr_slots {
            self.disk_free(slot);
        }
    }
}
