// SPDX-License-Identifier: GPL-2.0-only
//! What every slot must hold, tracked without the engine: the reference for
//! each of its answers.

use znsage_engine::{Engine, Read};

use super::content::{Contents, Token, ZERO};
use super::media::Media;

/// Expected state of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// Empty: reads as zeros.
    Zero,
    /// Being written.
    Writing(Token),
    /// On the device.
    Stored(Token),
    /// In the map alone: the page repeats a word.
    Filled(Token),
    /// Lost to a reported error.
    Lost,
}

pub(super) struct Model {
    contents: Contents,
    slots: Vec<Slot>,
    tokens: u64,
    /// Slots that are not empty.
    pub used: u64,
    /// Blocks that the pages on the device take.
    pub stored: u64,
}

impl Model {
    pub fn new(slots: u32, contents: Contents) -> Model {
        Model { contents, slots: vec![Slot::Zero; slots as usize], tokens: 0, used: 0, stored: 0 }
    }

    /// A new, unique content.
    pub fn token(&mut self) -> Token {
        self.tokens += 1;
        self.tokens
    }

    pub fn get(&self, slot: u32) -> Slot {
        self.slots[slot as usize]
    }

    fn set(&mut self, slot: u32, to: Slot) {
        let was = std::mem::replace(&mut self.slots[slot as usize], to);
        let blocks = |s| match s {
            Slot::Stored(token) => u64::from(self.contents.len(token)),
            _ => 0,
        };
        let count = |s: Slot| (u64::from(s != Slot::Zero), blocks(s));
        let ((used, stored), (used_now, stored_now)) = (count(was), count(to));
        self.used = self.used + used_now - used;
        self.stored = self.stored + stored_now - stored;
    }

    pub fn begin_write(&mut self, slot: u32, token: Token) {
        self.set(slot, Slot::Writing(token));
    }

    /// A write was acknowledged. A free or a later write of the slot takes precedence.
    pub fn written(&mut self, slot: u32, token: Token) {
        if self.get(slot) == Slot::Writing(token) {
            self.set(slot, Slot::Stored(token));
        }
    }

    /// A write has failed.
    pub fn not_written(&mut self, slot: u32, token: Token) {
        if self.get(slot) == Slot::Writing(token) {
            self.set(slot, Slot::Lost);
        }
    }

    /// A page that repeats a word was written.
    pub fn filled(&mut self, slot: u32, token: Token) {
        match self.contents.word(token) {
            Some(0) => self.set(slot, Slot::Zero),
            _ => self.set(slot, Slot::Filled(token)),
        }
    }

    /// Does a slot hold this content?
    pub fn holds(&self, slot: u32, token: Token) -> bool {
        match self.get(slot) {
            Slot::Stored(t) | Slot::Filled(t) => t == token,
            Slot::Zero => self.contents.word(token) == Some(0),
            Slot::Writing(_) | Slot::Lost => false,
        }
    }

    /// What a slot that reads as a page of `word` holds, if that is right.
    pub fn repeats(&self, slot: u32, word: u64) -> Option<Token> {
        let token = match self.get(slot) {
            Slot::Zero => ZERO,
            Slot::Filled(token) => token,
            _ => return None,
        };
        (self.contents.word(token) == Some(word)).then_some(token)
    }

    /// GC gave up the unreadable block of a slot. False: the slot had none.
    pub fn lost(&mut self, slot: u32) -> bool {
        let had = matches!(self.get(slot), Slot::Stored(_));
        self.set(slot, Slot::Lost);
        had
    }

    pub fn free(&mut self, slot: u32) {
        self.set(slot, Slot::Zero);
    }

    /// Compares the engine's answer for a slot with the model. Returns what is wrong.
    fn ask(&self, e: &mut Engine, media: &Media, slot: u32) -> Option<String> {
        let want = self.get(slot);
        let mut kick = false;
        let is = match e.read_begin(slot, 1, &mut kick) {
            Read::Filled(word) => match self.repeats(slot, word) {
                Some(_) => want,
                None => return Some(format!("slot {slot} repeats {word:#x}, should be {want:?}")),
            },
            Read::Lost => Slot::Lost,
            Read::Busy => match want {
                Slot::Writing(_) => want,
                _ => return Some(format!("slot {slot} is being written, should be {want:?}")),
            },
            Read::Block(hold) => {
                let content = media.page(hold.block(), hold.first_len(), slot);
                e.read_end(hold);
                Slot::Stored(content)
            }
        };
        (is != want).then(|| format!("slot {slot} is {is:?}, should be {want:?}"))
    }

    /// Checks every slot, counter and invariant of the engine.
    pub fn check(&self, e: &mut Engine, media: &Media) -> Vec<String> {
        let mut wrong: Vec<String> = e.check().iter().map(ToString::to_string).collect();
        let slots = 0..self.slots.len() as u32;
        wrong.extend(slots.filter_map(|slot| self.ask(e, media, slot)));
        let st = e.stats();
        for (what, is, want) in [
            ("slots in use", st.slots_used, self.used),
            ("live blocks", st.live_blocks, self.stored.div_ceil(self.contents.per_page().into())),
        ] {
            if is != want {
                wrong.push(format!("{what}: {is}, should be {want}"));
            }
        }
        wrong
    }
}
