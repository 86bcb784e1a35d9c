// SPDX-License-Identifier: GPL-2.0-only
//! Copying within a ZNS SSD: NVMe Copy, and the commands of ZNS+.
//!
//! ZNS+ (Han et al., OSDI 2021) adds two commands. `zone_compaction` copies
//! valid blocks to a zone; a whole program unit that stays on its chip moves
//! there by copyback, without the channel. `TL_open` opens a full zone for
//! threaded logging: the host overwrites dead blocks in ascending order, and
//! the device fills the holes with the live ones, so that it programs one
//! unit after the other of fresh flash (internal plugging).

use super::faults::Asks;
use super::flash::{Ingest, Way};
use super::threaded::{Log, Piece};
use super::types::{Appended, Extent, Fault, FaultKind, ZoneState};
use super::zns::ZnsSsd;
use crate::time::Ns;

impl ZnsSsd {
    /// NVMe Copy: the device appends `from`, in this order, to `to_zone`.
    ///
    /// # Errors
    /// As [`ZnsSsd::append`] and [`ZnsSsd::read`].
    pub fn copy(&mut self, now: Ns, from: &[Extent], to_zone: u32) -> Result<Appended, Fault> {
        self.transfer(now, from, to_zone, 0, false)
    }

    /// `zone_compaction`: like Copy, but a unit whose source is a whole unit on the same
    /// chip moves by copyback.
    ///
    /// # Errors
    /// As [`ZnsSsd::copy`], and if the device does not have the command.
    pub fn zone_compaction(
        &mut self,
        now: Ns,
        from: &[Extent],
        to_zone: u32,
    ) -> Result<Appended, Fault> {
        let Some(plus) = &self.plus else {
            return Err(self.fault(now, FaultKind::Unsupported, to_zone, 0));
        };
        let (latency, copyback) = (plus.params.command, plus.params.copyback);
        self.transfer(now, from, to_zone, latency, copyback)
    }

    fn transfer(
        &mut self,
        now: Ns,
        from: &[Extent],
        zone: u32,
        latency: Ns,
        copyback: bool,
    ) -> Result<Appended, Fault> {
        let blocks = from.iter().fold(0u32, |sum, e| sum.saturating_add(e.blocks));
        let offset = self.begin(now, zone, blocks)?;
        for e in from {
            self.readable(now, *e)?;
        }
        for e in from {
            self.meet(now, e.zone, Asks::Read, 0)?;
        }
        self.meet(now, zone, Asks::Write, blocks)?;
        self.pad(now);
        let mut w = self.flash.write(now, blocks, Way::Copy);
        // Read everything before programming: a read would wait behind the programs of
        // its own command.
        let mut pieces = std::mem::take(&mut self.pieces);
        let (began, mut to) = (w.at, offset);
        for e in from {
            let mut e = *e;
            while e.blocks > 0 {
                pieces.push(self.read_piece(began, &mut e, zone, to, copyback));
                to += pieces[pieces.len() - 1].blocks;
            }
        }
        for p in pieces.drain(..) {
            self.write_piece(&mut w, began, zone, p);
        }
        self.pieces = pieces;
        self.counters.copied_blocks += u64::from(blocks);
        Ok(Appended { offset, done: self.flash.written(&w, 0) + latency })
    }

    /// Reads the head of an extent, up to the next unit boundary at the source or at the
    /// destination, block `to` of `zone`.
    fn read_piece(
        &mut self,
        began: Ns,
        e: &mut Extent,
        zone: u32,
        to: u32,
        copyback: bool,
    ) -> Piece {
        let unit = self.flash.unit_blocks();
        let blocks = e.blocks.min(unit - e.offset % unit).min(unit - to % unit);
        let from = Extent { blocks, ..*e };
        e.offset += blocks;
        e.blocks -= blocks;
        let same_die = self.place(e.zone, from.offset).0 == self.place(zone, to).0;
        let copyback = copyback && blocks == unit && same_die;
        let ready = if copyback { began } else { self.fetch(began, from) };
        Piece { blocks, ready, copyback }
    }

    fn write_piece(&mut self, w: &mut Ingest, began: Ns, zone: u32, p: Piece) {
        if !p.copyback {
            w.at = w.at.max(p.ready);
            self.store(w, zone, p.blocks);
            return;
        }
        let (die, _) = self.place(zone, self.zones[zone as usize].written);
        w.programmed = w.programmed.max(self.flash.copyback(began, die));
        self.make_open(zone, false);
        self.advance(zone, p.blocks);
        self.counters.copyback_blocks += u64::from(p.blocks);
        self.counters.programmed_blocks = self.flash.programmed;
    }

    /// `TL_open`: opens a full zone for threaded logging. `valid` has a bit per block,
    /// from the lowest bit of the first word, set for live blocks. Dead blocks can then
    /// be written in ascending order by [`ZnsSsd::write`]; live ones stay readable.
    /// [`ZnsSsd::tl_close`] ends it. Returns the completion time.
    ///
    /// # Errors
    /// If the zone is not full, the limits forbid it, the bitmap has another
    /// length, or the device does not have the command.
    pub fn tl_open(&mut self, now: Ns, zone: u32, valid: &[u64]) -> Result<Ns, Fault> {
        let Some(plus) = &self.plus else {
            return Err(self.fault(now, FaultKind::Unsupported, zone, 0));
        };
        let latency = plus.params.command;
        let words = self.geometry.zone_blocks.div_ceil(64) as usize;
        let kind = match self.zones.get(zone as usize) {
            None => Some(FaultKind::OutOfRange),
            Some(_) if valid.len() != words => Some(FaultKind::OutOfRange),
            Some(z) if z.state != ZoneState::Full || z.written != self.geometry.zone_blocks => {
                Some(FaultKind::WrongState)
            }
            Some(_) => self.may_open(zone).err(),
        };
        if let Some(kind) = kind {
            return Err(self.fault(now, kind, zone, 0));
        }
        // Explicitly, so that the device does not close it.
        self.make_open(zone, true);
        let log = Log { zone, valid: valid.to_vec(), at: 0, written: false };
        self.plus.as_mut().expect("checked above").logs.push(log);
        Ok(self.flash.command(now, latency) + latency)
    }

    /// Writes `blocks` at `offset`; returns the completion time. The offset must be the
    /// write pointer; in a zone open for threaded logging it may also be beyond it.
    ///
    /// # Errors As [`ZnsSsd::append`], and if the offset is wrong.
    pub fn write(&mut self, now: Ns, zone: u32, offset: u32, blocks: u32) -> Result<Ns, Fault> {
        self.check_turn(now, zone)?;
        if self.logs(zone) {
            return self.log_write(now, zone, offset, blocks);
        }
        let at = self.begin(now, zone, blocks)?;
        if offset != at {
            return Err(self.fault(now, FaultKind::NotAtWritePointer, zone, offset));
        }
        self.meet(now, zone, Asks::Write, blocks)?;
        Ok(self.put(now, zone, blocks, Way::Write))
    }

    /// A write to a zone open for threaded logging.
    fn log_write(&mut self, now: Ns, zone: u32, offset: u32, blocks: u32) -> Result<Ns, Fault> {
        let capacity = u64::from(self.geometry.zone_blocks);
        let log = self.log(zone);
        let end = u64::from(offset) + u64::from(blocks);
        let kind = if blocks == 0 || end > capacity {
            Some(FaultKind::OutOfRange)
        } else if offset < log.at {
            Some(FaultKind::NotAtWritePointer)
        } else if log.live(offset, end as u32) > 0 {
            Some(FaultKind::Overwrite)
        } else {
            None
        };
        if let Some(kind) = kind {
            return Err(self.fault(now, kind, zone, offset));
        }
        self.meet(now, zone, Asks::Write, 0)?;
        self.pad(now);
        let mut w = self.flash.write(now, blocks, Way::Write);
        let began = w.at;
        self.plug(&mut w, began, zone, offset, false);
        self.plug(&mut w, began, zone, offset + blocks, true);
        self.counters.writes += 1;
        self.counters.written_blocks += u64::from(blocks);
        let done = self.flash.written(&w, blocks);
        self.zones[zone as usize].busy_until = done;
        Ok(done)
    }

    fn log(&mut self, zone: u32) -> &mut Log {
        let plus = self.plus.as_mut().expect("only asked of a device that has logs");
        plus.logs.iter_mut().find(|log| log.zone == zone).expect("only asked of a log")
    }

    /// Advances a log to `end`, with blocks the host writes or live ones. The command began
    /// at `began`.
    fn plug(&mut self, w: &mut Ingest, began: Ns, zone: u32, end: u32, host: bool) {
        let unit = self.flash.unit_blocks();
        let capacity = self.geometry.zone_blocks;
        loop {
            let log = self.log(zone);
            let at = log.at;
            if at == end {
                return;
            }
            let next = (at - at % unit + unit).min(end);
            log.written |= host;
            log.at = next;
            if host {
                self.flash.admit(w, next - at);
            }
            if next.is_multiple_of(unit) || next == capacity {
                self.plug_unit(w, began, zone, (next - 1) / unit * unit, next);
            }
        }
    }

    /// Programs a unit of a log: the host's blocks and the live blocks in it.
    ///
    /// Live blocks of all units are read as the command begins. If each were read when the
    /// ones before it have arrived, a long command would reserve its dies far ahead, and
    /// everything else would wait behind that while they are idle. The host's blocks wait in
    /// the buffer, as those of any write, so that it need not wait for the reads.
    fn plug_unit(&mut self, w: &mut Ingest, began: Ns, zone: u32, first: u32, end: u32) {
        let log = self.log(zone);
        let live = log.live(first, end);
        let written = std::mem::take(&mut log.written);
        let (die, id) = self.place(zone, first);
        if !written && live == 0 {
            return;
        }
        self.counters.copied_blocks += u64::from(live);
        let copyback = self.plus.as_ref().is_some_and(|plus| plus.params.copyback);
        if !written && copyback {
            w.programmed = w.programmed.max(self.flash.copyback(w.at, die));
            self.counters.copyback_blocks += u64::from(live);
        } else {
            let mut ready = w.at;
            if live > 0 {
                ready = ready.max(self.fetch_plug(began, zone, first, end));
            }
            w.programmed = w.programmed.max(self.flash.program(ready, die, id));
        }
        self.counters.programmed_blocks = self.flash.programmed;
    }

    fn fetch_plug(&mut self, at: Ns, zone: u32, first: u32, end: u32) -> Ns {
        let page = self.flash.sense_blocks();
        let mut ready = at;
        for from in (first..end).step_by(page as usize) {
            let live = self.log(zone).live(from, (from + page).min(end));
            if live > 0 {
                let (die, _) = self.place(zone, from);
                ready = ready.max(self.flash.sense(at, die, u64::MAX, live));
            }
        }
        ready
    }

    /// Ends threaded logging in a zone: live blocks beyond the last write move to their
    /// new place, and the old flash is erased. Returns when the zone is full again.
    ///
    /// # Errors
    /// If the zone is not open for threaded logging.
    pub fn tl_close(&mut self, now: Ns, zone: u32) -> Result<Ns, Fault> {
        if !self.logs(zone) {
            return Err(self.fault(now, FaultKind::WrongState, zone, 0));
        }
        self.pad(now);
        let mut w = self.flash.write(now, 0, Way::Copy);
        let began = w.at;
        self.plug(&mut w, began, zone, self.geometry.zone_blocks, false);
        self.forget_log(zone);
        self.make_inactive(zone, ZoneState::Full);
        self.counters.erases += u64::from(self.zone_dies());
        let latency = self.plus.as_ref().map_or(0, |plus| plus.params.command);
        Ok(w.at.max(w.programmed) + latency)
    }
}
