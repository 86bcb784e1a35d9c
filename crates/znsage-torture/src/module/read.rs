// SPDX-License-Identifier: GPL-2.0-only
//! Swap-in, as kmod/read.c.

use znsage_engine::{Read, ReadHold};

use crate::bio::BioId;
use crate::chunks::Cmd;
use crate::content::{name, Token, ZERO};
use crate::media::Ticket;
use crate::model::Slot;
use crate::state::Run;
use crate::types::{trace, Sabotage};

impl Run {
    pub(crate) fn read(&mut self, id: BioId) {
        let mut kick = false;
        while self.bios[id].at < self.bios[id].slots.len() {
            let (at, slot) = (self.bios[id].at, self.bios[id].slots[self.bios[id].at]);
            let max = match self.plan.contents.pack {
                0 => (self.bios[id].slots.len() - at) as u32,
                _ => 1,
            };
            let mut nr = 1;
            match self.e.read_begin(slot, max, &mut kick) {
                Read::Block(hold) => {
                    nr = hold.count() as usize;
                    self.expect(id, at, nr);
                    self.bios[id].left += 1;
                    let t = self.media.read(self.now, hold.block(), hold.blocks());
                    trace!(
                        self,
                        "read of {nr} from slot {slot} on, zone {} block {}: {:?}",
                        t.zone,
                        t.offset,
                        t.error
                    );
                    self.submit(t, Cmd::Read { bio: id, first: at, hold });
                }
                Read::Filled(word) => match self.model.repeats(slot, word) {
                    Some(token) => self.repeated(id, at, token),
                    None => {
                        let want = self.model.get(slot);
                        let is = format!("slot {slot} repeats {word:#x}, should be {want:?}");
                        self.wrong.push(is);
                    }
                },
                Read::Lost => {
                    self.bios[id].failed = true;
                    self.must_be(slot, Slot::Lost);
                }
                Read::Busy => {
                    self.n.busy_reads += 1;
                    let (chunk, entry) = self.e.write_of(slot).expect("it is being written");
                    let (bio, page) = self.m.parents[self.parent(chunk, entry)];
                    let token = self.bios[bio].tokens[page as usize];
                    self.must_be(slot, Slot::Writing(token));
                }
            }
            self.bios[id].at += nr;
        }
        self.bio_put(id);
        if kick {
            self.kick();
        }
    }

    /// Records what `nr` pages of a bio from `at` must hold when they arrive.
    fn expect(&mut self, id: BioId, at: usize, nr: usize) {
        let bio = &mut self.bios[id];
        for i in at..at + nr {
            match self.model.get(bio.slots[i]) {
                Slot::Stored(token) => bio.tokens[i] = token,
                other => self.wrong.push(format!(
                    "slot {} is read from the device, should be {other:?}",
                    bio.slots[i]
                )),
            }
        }
    }

    /// A page repeats a word as it should: it is what the reader expects, unless that
    /// differs from what the slot holds.
    fn repeated(&mut self, id: BioId, at: usize, token: Token) {
        let (word, bio) = (self.plan.contents.word(token), &mut self.bios[id]);
        let same = self.plan.contents.word(bio.tokens[at]) == word;
        bio.got[at] = if same { bio.tokens[at] } else { token };
        self.n.verified += u64::from(token != ZERO);
    }

    fn must_be(&mut self, slot: u32, is: Slot) {
        let want = self.model.get(slot);
        if is != want {
            self.wrong.push(format!("slot {slot} reads as {is:?}, should be {want:?}"));
        }
    }

    /// Verifies a page that was read.
    fn arrived(&mut self, id: BioId, at: usize, token: Token) {
        let bio = &mut self.bios[id];
        bio.got[at] = token;
        self.n.verified += 1;
        self.n.packed_verified += u64::from(self.plan.contents.pack > 0);
        if token != bio.tokens[at] {
            self.wrong.push(format!(
                "slot {} was read as {}, should be {}",
                bio.slots[at],
                name(token),
                name(bio.tokens[at])
            ));
        }
    }

    pub(crate) fn read_ended(&mut self, t: &Ticket, id: BioId, first: usize, hold: ReadHold) {
        let slots = self.bios[id].slots[first..first + hold.count() as usize].to_vec();
        self.worst("read ends", &slots, Some(t.zone));
        if self.media.complete(t) {
            self.e.read_worked();
            let past = u32::from(self.sabotage == Sabotage::NextBlock && self.spoil(50));
            let most = self.media.cells().len() as u32 - 1;
            for (block, (i, slot)) in (hold.block()..).zip(slots.iter().enumerate()) {
                let token = self.media.page((block + past).min(most), hold.first_len(), *slot);
                self.arrived(id, first + i, token);
            }
        } else {
            self.n.read_errors += 1;
            self.bios[id].failed = true;
            self.bios[id].device_error = true;
            self.e.read_failed(hold.count());
        }
        if self.e.read_end(hold) {
            self.kick();
        }
        self.bio_put(id);
    }
}
