// SPDX-License-Identifier: GPL-2.0-only
//! A ZNS SSD: the states of its zones, and where in the flash they are.
//!
//! A zone is striped over `dies_per_zone` dies in program units: all dies for
//! a large zone, one or a few for a small one.

use super::curve::Curve;
use super::faults::{Asks, Fate, FaultPlan, Faults};
use super::flash::{Flash, Ingest, Way};
use super::load::ParamError;
use super::params::{blocks, Interface, Params, Zoned};
use super::threaded::{Piece, Plus};
use super::types::{
    Appended, DeviceCounters, Extent, Fault, FaultKind, ZoneInfo, ZoneState, ZonedGeometry,
};
use crate::time::{transfer, Ns, BLOCK};

/// 16 TiB of zones of 1 MiB; each takes a record in memory.
const MAX_ZONES: u32 = 1 << 24;

#[derive(Clone, Debug)]
pub(super) struct Zone {
    pub state: ZoneState,
    /// Opened by command, so the device does not close it implicitly.
    explicit: bool,
    finished: bool,
    /// Blocks written since the last reset.
    pub written: u32,
    /// When the host's last write to it completes.
    pub busy_until: Ns,
}

/// The rest of a finished zone, which the device fills in the background.
#[derive(Clone, Debug)]
struct Padding {
    zone: u32,
    /// When the next unit is programmed, ...
    next: Ns,
    /// ... the interval between units, ...
    every: Ns,
    /// ... and the next offset to fill.
    offset: u32,
}

/// A ZNS SSD: zones that are written in sequence and reset as a whole.
#[derive(Clone, Debug)]
pub struct ZnsSsd {
    pub(super) geometry: ZonedGeometry,
    params: Zoned,
    pub(super) flash: Flash,
    pub(super) zones: Vec<Zone>,
    /// Open zones, the one longest open first.
    open: Vec<u32>,
    active: u32,
    dies: u32,
    /// Times of resets.
    reset: Curve,
    reset_finished: Curve,
    padding: Vec<Padding>,
    /// Resets are done one after another.
    resetting: Ns,
    faults: Option<Faults>,
    seed: u64,
    pub(super) plus: Option<Plus>,
    /// Scratch of a copy, empty in between.
    pub(super) pieces: Vec<Piece>,
    pub(super) counters: DeviceCounters,
}

impl ZnsSsd {
    /// A device with these parameters. `size`, in bytes of capacity, changes the number
    /// of zones. The seed is for times that vary and for
    /// injected faults.
    ///
    /// # Errors
    /// If the parameters are not those of a zoned device, or no zone is left.
    pub fn new(params: &Params, size: Option<u64>, seed: u64) -> Result<ZnsSsd, ParamError> {
        let zoned = match (params.interface, &params.zoned) {
            (Interface::Zoned, Some(zoned)) => zoned.clone(),
            _ => return Err(params.refuse("interface", "not a zoned device".into())),
        };
        let zones = match size {
            Some(size) => size / zoned.zone_capacity,
            None => zoned.zones.into(),
        };
        let some = |zones: &u32| (1..=MAX_ZONES).contains(zones);
        let zones = u32::try_from(zones).ok().filter(some).ok_or_else(|| {
            let capacity = zoned.zone_capacity;
            params.refuse("size", format!("gives {zones} zones of {capacity} bytes"))
        })?;
        let zone = Zone {
            state: ZoneState::Empty,
            explicit: false,
            finished: false,
            written: 0,
            busy_until: 0,
        };
        Ok(ZnsSsd {
            geometry: ZonedGeometry {
                zones,
                zone_blocks: blocks(zoned.zone_capacity),
                zone_size_blocks: blocks(zoned.zone_size),
                write_unit: blocks(zoned.write_unit),
                max_open: zoned.max_open,
                max_active: zoned.max_active,
                max_append: blocks(zoned.max_append),
                emulated_append: zoned.emulated_append,
            },
            reset: Curve::new(&zoned.reset_us, blocks(zoned.zone_capacity)),
            reset_finished: Curve::new(&zoned.reset_finished_us, blocks(zoned.zone_capacity)),
            params: zoned,
            flash: Flash::new(params, seed),
            zones: vec![zone; zones as usize],
            open: Vec::new(),
            active: 0,
            dies: params.media.dies,
            padding: Vec::new(),
            resetting: 0,
            faults: None,
            seed,
            plus: params.zns_plus.clone().map(Plus::new),
            pieces: Vec::new(),
            counters: DeviceCounters::default(),
        })
    }

    /// Fails and delays commands by the plan from now on.
    pub fn inject(&mut self, plan: FaultPlan) {
        self.faults = Some(Faults::new(plan, self.seed));
    }

    /// Shape and limits.
    pub fn geometry(&self) -> &ZonedGeometry {
        &self.geometry
    }

    /// The device's counters.
    pub fn counters(&self) -> &DeviceCounters {
        &self.counters
    }

    /// State and write pointer of a zone.
    ///
    /// # Panics
    /// If there is no such zone.
    pub fn zone(&self, zone: u32) -> ZoneInfo {
        let z = &self.zones[zone as usize];
        let full = z.state == ZoneState::Full;
        let write_pointer = if full { self.geometry.zone_blocks } else { z.written };
        ZoneInfo { state: z.state, write_pointer }
    }

    /// Zones that are open, and that are active (open or closed).
    pub fn open_and_active(&self) -> (u32, u32) {
        (self.open.len() as u32, self.active)
    }

    /// The chip that a block is on; copyback works within a chip.
    pub fn die(&self, zone: u32, offset: u32) -> u32 {
        self.place(zone, offset).0
    }

    pub(super) fn zone_dies(&self) -> u32 {
        self.params.dies_per_zone
    }

    /// The fault of a command refused at `now`.
    pub(super) fn fault(&self, now: Ns, kind: FaultKind, zone: u32, offset: u32) -> Fault {
        Fault { kind, zone, offset, done: self.flash.refusal(now) }
    }

    /// Appends `blocks` to a zone, opening it if needed. Where the kernel emulates
    /// appends, this is a write and takes as long as one.
    ///
    /// # Errors If the zone's state or room, the limits or the length forbid it, the zone
    /// takes one write at a time and has one in flight, or a fault is injected.
    pub fn append(&mut self, now: Ns, zone: u32, blocks: u32) -> Result<Appended, Fault> {
        if blocks > self.geometry.max_append {
            return Err(self.fault(now, FaultKind::TooLong, zone, 0));
        }
        self.check_turn(now, zone)?;
        self.begin(now, zone, blocks)?;
        self.meet(now, zone, Asks::Write, blocks)?;
        let offset = self.zones[zone as usize].written;
        let way = if self.geometry.emulated_append { Way::Write } else { Way::Append };
        Ok(Appended { offset, done: self.put(now, zone, blocks, way) })
    }

    /// Refuses a write of the host to a zone that takes one at a time and has one in
    /// flight. The device does not delay it itself: it would have to reserve controller
    /// and link for later, and all other commands would wait behind that. The caller
    /// holds it back (`system/turns.rs`).
    pub(super) fn check_turn(&self, now: Ns, zone: u32) -> Result<(), Fault> {
        match self.zones.get(zone as usize) {
            Some(z) if self.geometry.emulated_append && now < z.busy_until => {
                Err(self.fault(now, FaultKind::Busy, zone, z.written))
            }
            _ => Ok(()),
        }
    }

    /// Is the zone open for threaded logging?
    pub(super) fn logs(&self, zone: u32) -> bool {
        self.plus.as_ref().is_some_and(|p| p.logs.iter().any(|log| log.zone == zone))
    }

    pub(super) fn forget_log(&mut self, zone: u32) {
        if let Some(plus) = &mut self.plus {
            plus.logs.retain(|log| log.zone != zone);
        }
    }

    /// Checks that `blocks` can be written at the write pointer, and returns it.
    pub(super) fn begin(&self, now: Ns, zone: u32, blocks: u32) -> Result<u32, Fault> {
        let Some(z) = self.zones.get(zone as usize) else {
            return Err(self.fault(now, FaultKind::OutOfRange, zone, 0));
        };
        let refuse = |kind| Err(self.fault(now, kind, zone, z.written));
        match z.state {
            ZoneState::ReadOnly => return refuse(FaultKind::ReadOnly),
            ZoneState::Offline => return refuse(FaultKind::Offline),
            ZoneState::Full => return refuse(FaultKind::ZoneFull),
            _ if self.logs(zone) => return refuse(FaultKind::WrongState),
            _ => {}
        }
        if blocks == 0 {
            return refuse(FaultKind::OutOfRange);
        }
        if !blocks.is_multiple_of(self.geometry.write_unit) {
            return refuse(FaultKind::NotAUnit);
        }
        if blocks > self.geometry.zone_blocks - z.written {
            return refuse(FaultKind::ZoneFull);
        }
        if let Err(kind) = self.may_open(zone) {
            return refuse(kind);
        }
        Ok(z.written)
    }

    /// Applies the fault plan to a command to `zone`, of `blocks` if it writes.
    pub(super) fn meet(
        &mut self,
        now: Ns,
        zone: u32,
        asks: Asks,
        blocks: u32,
    ) -> Result<(), Fault> {
        let Some(faults) = &mut self.faults else { return Ok(()) };
        let fate = faults.fate(asks);
        if fate == Fate::Fine {
            return Ok(());
        }
        let unit = self.geometry.write_unit;
        let moved = match (asks, fate) {
            (Asks::Write, Fate::Media) => faults.written(blocks / unit) * unit,
            _ => 0,
        };
        let late = faults.delay();
        let offset = self.zones[zone as usize].written;
        let kind = match fate {
            Fate::ReadOnly => FaultKind::ReadOnly,
            Fate::Offline => FaultKind::Offline,
            _ => FaultKind::Media,
        };
        if moved > 0 {
            self.make_open(zone, false);
            self.advance(zone, moved);
        }
        match fate {
            Fate::ReadOnly => self.fail_zone(zone, ZoneState::ReadOnly),
            Fate::Offline => self.fail_zone(zone, ZoneState::Offline),
            _ => {}
        }
        Err(Fault { kind, zone, offset, done: self.flash.refusal(now) + late })
    }

    /// Makes a zone read-only or offline, as if it had failed.
    ///
    /// # Panics If there is no such zone, or `state` is neither.
    pub fn fail_zone(&mut self, zone: u32, state: ZoneState) {
        assert!(matches!(state, ZoneState::ReadOnly | ZoneState::Offline), "{state:?}");
        self.forget_log(zone);
        self.make_inactive(zone, state);
    }

    fn late(&mut self) -> Ns {
        self.faults.as_mut().map_or(0, Faults::delay)
    }

    /// Writes at the write pointer, after [`ZnsSsd::begin`]; returns the completion
    /// time.
    pub(super) fn put(&mut self, now: Ns, zone: u32, blocks: u32, way: Way) -> Ns {
        self.pad(now);
        let mut w = self.flash.write(now, blocks, way);
        let mut first = 0;
        if self.zones[zone as usize].state == ZoneState::Empty {
            first = self.params.first_write;
        }
        self.store(&mut w, zone, blocks);
        self.counters.writes += 1;
        self.counters.written_blocks += u64::from(blocks);
        let done = self.flash.written(&w, blocks) + first + self.late();
        self.zones[zone as usize].busy_until = done;
        done
    }

    /// Brings blocks into the buffer, and programs the units they complete.
    pub(super) fn store(&mut self, w: &mut Ingest, zone: u32, blocks: u32) {
        self.make_open(zone, false);
        let unit = self.flash.unit_blocks();
        let mut at = self.zones[zone as usize].written;
        let end = at + blocks;
        while at < end {
            let next = (at - at % unit + unit).min(end);
            self.flash.admit(w, next - at);
            at = next;
            // The last unit of a zone may be short.
            if at.is_multiple_of(unit) || at == self.geometry.zone_blocks {
                let (die, id) = self.place(zone, at - 1);
                w.programmed = w.programmed.max(self.flash.program(w.at, die, id));
            }
        }
        self.counters.programmed_blocks = self.flash.programmed;
        self.advance(zone, blocks);
    }

    pub(super) fn advance(&mut self, zone: u32, blocks: u32) {
        let z = &mut self.zones[zone as usize];
        z.written += blocks;
        if z.written == self.geometry.zone_blocks {
            self.make_inactive(zone, ZoneState::Full);
        }
    }

    /// The die of a block, and the number of the unit it is in.
    pub(super) fn place(&self, zone: u32, offset: u32) -> (u32, u64) {
        let unit = offset / self.flash.unit_blocks();
        let width = self.params.dies_per_zone;
        // The golden ratio spreads the first dies of zones written side by side, however
        // many.
        let part = u64::from(zone.wrapping_mul(0x9e37_79b9));
        let turn = ((part * u64::from(width)) >> 32) as u32;
        let die = (zone.wrapping_mul(width) + (unit + turn) % width) % self.dies;
        (die, u64::from(zone) << 32 | u64::from(unit))
    }

    /// Reads written blocks; returns the completion time.
    ///
    /// # Errors If a block was not written, the zone is offline, or a fault is injected.
    pub fn read(&mut self, now: Ns, zone: u32, offset: u32, blocks: u32) -> Result<Ns, Fault> {
        self.readable(now, Extent { zone, offset, blocks })?;
        self.meet(now, zone, Asks::Read, 0)?;
        self.pad(now);
        let at = self.flash.read(now, blocks);
        let ready = self.fetch(at, Extent { zone, offset, blocks });
        self.counters.reads += 1;
        self.counters.read_blocks += u64::from(blocks);
        Ok(self.flash.sent(at, ready, blocks) + self.late())
    }

    pub(super) fn readable(&self, now: Ns, e: Extent) -> Result<(), Fault> {
        let refuse = |kind| Err(self.fault(now, kind, e.zone, e.offset));
        let Some(z) = self.zones.get(e.zone as usize) else {
            return refuse(FaultKind::OutOfRange);
        };
        let end = u64::from(e.offset) + u64::from(e.blocks);
        if e.blocks == 0 || end > u64::from(self.geometry.zone_blocks) {
            return refuse(FaultKind::OutOfRange);
        }
        if z.state == ZoneState::Offline {
            return refuse(FaultKind::Offline);
        }
        if end > u64::from(z.written) {
            return refuse(FaultKind::BeyondWritePointer);
        }
        Ok(())
    }

    /// Reads blocks into the controller; returns when all have arrived.
    pub(super) fn fetch(&mut self, at: Ns, e: Extent) -> Ns {
        let page = self.flash.sense_blocks();
        let z = &self.zones[e.zone as usize];
        // An incomplete unit is in the buffer, until the zone is finished.
        let programmed = match z.state {
            ZoneState::Full => z.written,
            _ => z.written - z.written % self.flash.unit_blocks(),
        };
        let end = (e.offset + e.blocks).min(programmed);
        let (mut block, mut ready) = (e.offset, at);
        while block < end {
            let next = (block - block % page + page).min(end);
            let (die, id) = self.place(e.zone, block);
            ready = ready.max(self.flash.sense(at, die, id, next - block));
            block = next;
        }
        ready
    }

    /// Resets a zone; returns the completion time.
    ///
    /// # Errors If the zone is read-only or offline, or a fault is injected.
    pub fn reset(&mut self, now: Ns, zone: u32) -> Result<Ns, Fault> {
        self.manageable(now, zone)?;
        self.meet(now, zone, Asks::Reset, 0)?;
        self.pad(now);
        self.padding.retain(|p| p.zone != zone);
        self.forget_log(zone);
        let z = &self.zones[zone as usize];
        let curve = if z.finished { &self.reset_finished } else { &self.reset };
        let mut done = now.max(self.resetting) + curve.at(z.written);
        if z.written > 0 {
            self.counters.erases += u64::from(self.params.dies_per_zone);
            if self.params.reset_occupies_dies {
                done = done.max(self.erase(now, zone));
            } else {
                self.resetting = done;
            }
        }
        self.make_inactive(zone, ZoneState::Empty);
        let z = &mut self.zones[zone as usize];
        (z.written, z.finished) = (0, false);
        self.counters.resets += 1;
        Ok(done + self.late())
    }

    fn erase(&mut self, now: Ns, zone: u32) -> Ns {
        let unit = self.flash.unit_blocks();
        let mut done = now;
        for i in 0..self.params.dies_per_zone {
            let (die, _) = self.place(zone, i * unit);
            done = done.max(self.flash.erase(now, die));
        }
        done
    }

    fn manageable(&self, now: Ns, zone: u32) -> Result<(), Fault> {
        let kind = match self.zones.get(zone as usize).map(|z| z.state) {
            None => FaultKind::OutOfRange,
            Some(ZoneState::ReadOnly) => FaultKind::ReadOnly,
            Some(ZoneState::Offline) => FaultKind::Offline,
            Some(_) => return Ok(()),
        };
        Err(self.fault(now, kind, zone, 0))
    }

    /// Finishes a zone, filling the rest of it; returns the completion time.
    ///
    /// # Errors If the zone is read-only or offline, or a fault is injected.
    pub fn finish(&mut self, now: Ns, zone: u32) -> Result<Ns, Fault> {
        self.manageable(now, zone)?;
        if self.logs(zone) {
            return Err(self.fault(now, FaultKind::WrongState, zone, 0));
        }
        self.meet(now, zone, Asks::Finish, 0)?;
        self.pad(now);
        let z = &self.zones[zone as usize];
        let rest = self.geometry.zone_blocks - z.written;
        let mut took = self.params.finish_empty;
        if z.state != ZoneState::Full {
            if z.written > 0 && self.params.finish != 0 {
                took = transfer(u64::from(rest) * BLOCK, self.params.finish);
                took = took.max(self.params.finish_min);
                self.start_padding(now, zone, took);
                self.counters.padding_blocks += u64::from(rest);
            }
            self.make_inactive(zone, ZoneState::Full);
            self.zones[zone as usize].finished = true;
            self.counters.finishes += 1;
        }
        Ok(now + took + self.late())
    }

    fn start_padding(&mut self, now: Ns, zone: u32, took: Ns) {
        let unit = self.flash.unit_blocks();
        let offset = self.zones[zone as usize].written / unit * unit;
        let units = (self.geometry.zone_blocks - offset).div_ceil(unit);
        let every = took / u64::from(units);
        self.padding.push(Padding { zone, next: now, every, offset });
    }

    /// Catches up on the filling of finished zones due by `now`.
    pub(super) fn pad(&mut self, now: Ns) {
        if self.padding.is_empty() {
            return;
        }
        let mut padding = std::mem::take(&mut self.padding);
        for p in &mut padding {
            while p.next <= now && p.offset < self.geometry.zone_blocks {
                let (die, _) = self.place(p.zone, p.offset);
                self.flash.pad(p.next, die);
                p.next += p.every;
                p.offset += self.flash.unit_blocks();
            }
        }
        padding.retain(|p| p.offset < self.geometry.zone_blocks);
        self.padding = padding;
        self.counters.programmed_blocks = self.flash.programmed;
    }

    /// Opens a zone by command; returns the completion time.
    ///
    /// # Errors
    /// If the zone's state or the limits forbid it.
    pub fn open(&mut self, now: Ns, zone: u32) -> Result<Ns, Fault> {
        self.manageable(now, zone)?;
        let refusal = match self.zones[zone as usize].state {
            ZoneState::Full => Some(FaultKind::WrongState),
            _ => self.may_open(zone).err(),
        };
        if let Some(kind) = refusal {
            return Err(self.fault(now, kind, zone, 0));
        }
        self.make_open(zone, true);
        self.zones[zone as usize].explicit = true;
        Ok(now + self.params.open)
    }

    /// Closes an open zone by command; returns the completion time. A zone with nothing
    /// written becomes empty.
    ///
    /// # Errors
    /// If the zone is not open.
    pub fn close(&mut self, now: Ns, zone: u32) -> Result<Ns, Fault> {
        self.manageable(now, zone)?;
        if self.zones[zone as usize].state != ZoneState::Open || self.logs(zone) {
            return Err(self.fault(now, FaultKind::WrongState, zone, 0));
        }
        if self.zones[zone as usize].written == 0 {
            self.make_inactive(zone, ZoneState::Empty);
        } else {
            self.open.retain(|open| *open != zone);
            self.zones[zone as usize].state = ZoneState::Closed;
        }
        Ok(now + self.params.close)
    }

    /// The open zone that the device may close implicitly.
    fn implicit(&self) -> Option<usize> {
        self.open.iter().position(|z| !self.zones[*z as usize].explicit)
    }

    pub(super) fn may_open(&self, zone: u32) -> Result<(), FaultKind> {
        let g = &self.geometry;
        let state = self.zones[zone as usize].state;
        let inactive = matches!(state, ZoneState::Empty | ZoneState::Full);
        if inactive && g.max_active != 0 && self.active >= g.max_active {
            return Err(FaultKind::TooManyActive);
        }
        let full = g.max_open != 0 && self.open.len() as u32 >= g.max_open;
        if state != ZoneState::Open && full && self.implicit().is_none() {
            return Err(FaultKind::TooManyOpen);
        }
        Ok(())
    }

    /// Opens a zone that passed [`ZnsSsd::may_open`], unless it is open.
    pub(super) fn make_open(&mut self, zone: u32, explicit: bool) {
        let state = self.zones[zone as usize].state;
        if state == ZoneState::Open {
            return;
        }
        let max = self.geometry.max_open;
        if max != 0 && self.open.len() as u32 >= max {
            let implicit = self.implicit().expect("may_open() was asked");
            let closed = self.open.remove(implicit);
            self.zones[closed as usize].state = ZoneState::Closed;
        }
        self.active += u32::from(state != ZoneState::Closed);
        self.open.push(zone);
        let z = &mut self.zones[zone as usize];
        (z.state, z.explicit) = (ZoneState::Open, explicit);
    }

    pub(super) fn make_inactive(&mut self, zone: u32, state: ZoneState) {
        let z = &mut self.zones[zone as usize];
        if matches!(z.state, ZoneState::Open | ZoneState::Closed) {
            self.active -= 1;
        }
        if z.state == ZoneState::Open {
            self.open.retain(|open| *open != zone);
        }
        (z.state, z.explicit) = (state, false);
    }
}
