// SPDX-License-Identifier: GPL-2.0-only
//! What pages hold. A token names the content of one write, and all else follows from it:
//! the word that the page repeats, if it does, and the length it has when it is packed.
//!
//! The device holds a cell for each block of the engine. A page that is not packed is one
//! cell, its token. A packed one has as many cells as it takes blocks; each says which part
//! of which page it is, and of which slot, as a record's header does.

use znsage_engine::LEAST_PART;
use znsage_sim::rng::mix;

/// Content of a page, unique to each write.
pub(super) type Token = u64;

/// A page of zeros; written contents count from 1.
pub(super) const ZERO: Token = 0;

/// Content of a block.
pub(super) type Cell = u64;

/// Unwritten since the reset, or padding.
pub(super) const NOTHING: Cell = u64::MAX;
/// Left behind by a failed write, or no page at all.
pub(super) const GARBAGE: Cell = u64::MAX - 1;

/// Bits of a packed cell: its part of the page, its slot, then the token.
const PART_BITS: u32 = 7;
const SLOT_BITS: u32 = 21;

/// A content, for messages.
pub(super) fn name(token: Token) -> String {
    match token {
        ZERO => "zeros".into(),
        NOTHING => "nothing that was written".into(),
        GARBAGE => "the rest of a write that failed, or parts of several pages".into(),
        token => format!("content {token}"),
    }
}

/// How the contents of a run are drawn. Shares are percentages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contents {
    pub seed: u64,
    /// Pages are packed: this many blocks of the engine are one of the device. Else 0.
    pub pack: u32,
    /// Pages that do not shrink.
    pub raw: u32,
    /// Pages that repeat a word.
    pub filled: u32,
    /// Different words.
    pub words: u32,
}

impl Contents {
    /// Blocks of the engine in a page of the device.
    pub fn per_page(&self) -> u32 {
        self.pack.max(1)
    }

    fn draw(&self, token: Token, what: u64, of: u32) -> u32 {
        (mix(mix(self.seed ^ token) ^ what) % u64::from(of)) as u32
    }

    /// The word that the page repeats.
    pub fn word(&self, token: Token) -> Option<u64> {
        if token == ZERO {
            return Some(0);
        }
        if self.draw(token, 0, 100) >= self.filled {
            return None;
        }
        Some(match self.draw(token, 1, self.words) {
            // A page of zeros.
            1 => 0,
            word => mix(word.into()),
        })
    }

    /// The blocks that the page takes.
    pub fn len(&self, token: Token) -> u32 {
        if self.pack == 0 {
            return 1;
        }
        let (least, most) = (self.pack / LEAST_PART, self.pack + 1);
        match self.draw(token, 2, 100) < self.raw {
            true => most,
            false => least + self.draw(token, 3, most - least + 1),
        }
    }

    /// A packed page as it is on the device.
    pub fn cells(&self, slot: u32, token: Token) -> impl Iterator<Item = Cell> {
        let first = token << (SLOT_BITS + PART_BITS) | u64::from(slot) << PART_BITS;
        (0..u64::from(self.len(token))).map(move |part| first | part)
    }

    /// The slot and the token of a packed page that begins with this cell.
    pub fn header(&self, cell: Cell) -> Option<(u32, Token)> {
        let slot = (cell >> PART_BITS) as u32 & ((1 << SLOT_BITS) - 1);
        let begins = cell & ((1 << PART_BITS) - 1) == 0;
        begins.then_some((slot, cell >> (SLOT_BITS + PART_BITS)))
    }

    /// The page of a slot, read from these cells; [`GARBAGE`] if they are not all of it.
    pub fn unpack(&self, cells: &[Cell], slot: u32) -> Token {
        let Some((of, token)) = cells.first().and_then(|&cell| self.header(cell)) else {
            return GARBAGE;
        };
        match of == slot && cells.iter().copied().eq(self.cells(slot, token)) {
            true => token,
            false => GARBAGE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENTS: Contents = Contents { seed: 1, pack: 64, raw: 30, filled: 50, words: 4 };

    #[test]
    fn pages_are_found_in_their_cells_and_nowhere_else() {
        let longest = (1..1_000).map(|token| CONTENTS.len(token)).max();
        assert_eq!(longest, Some(65));
        for token in 1..200 {
            let slot = token as u32 * 7;
            let mut cells: Vec<Cell> = CONTENTS.cells(slot, token).collect();
            assert_eq!(cells.len() as u32, CONTENTS.len(token));
            assert_eq!(CONTENTS.unpack(&cells, slot), token);
            assert_eq!(CONTENTS.unpack(&cells, slot + 1), GARBAGE);
            assert_eq!(CONTENTS.unpack(&cells[1..], slot), GARBAGE);
            *cells.last_mut().unwrap() = NOTHING;
            assert_eq!(CONTENTS.unpack(&cells, slot), GARBAGE);
        }
        assert!([NOTHING, GARBAGE].iter().all(|&cell| CONTENTS.header(cell).is_none()));
    }

    #[test]
    fn some_pages_repeat_words() {
        let mut words: Vec<u64> = (1..1_000).filter_map(|token| CONTENTS.word(token)).collect();
        assert!((400..600).contains(&words.len()), "{}", words.len());
        words.sort_unstable();
        words.dedup();
        assert!(words.len() == 4 && words[0] == 0);
    }
}
