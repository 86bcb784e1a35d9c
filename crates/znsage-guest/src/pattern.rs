// SPDX-License-Identifier: GPL-2.0-only
//! The contents of pages. Every word depends on the page's number and a key, so that a page
//! from another place, an old page or a torn page is never taken for the right one.

pub const PAGE: usize = 4096;
pub const WORDS: usize = PAGE / size_of::<u64>();

/// The key of a page of zeros.
pub const ZERO: u64 = 0;

/// In a key: the page repeats one word, which depends on the key alone.
pub const REPEATS: u64 = 1 << 63;

/// Does a device store a page of this key in its map, without a block?
pub fn takes_no_block(key: u64) -> bool {
    key == ZERO || key & REPEATS != 0
}

/// A bijection that spreads its argument over all bits.
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn first_word(key: u64, page: usize) -> u64 {
    mix(key ^ mix(page as u64 + 1))
}

/// The other words follow from the first by a step that is cheap under emulation.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The word that all pages of a key repeat.
fn repeated_word(key: u64) -> Option<u64> {
    takes_no_block(key).then(|| if key == ZERO { 0 } else { mix(key) })
}

pub fn write(words: &mut [u64], key: u64, page: usize) {
    if let Some(word) = repeated_word(key) {
        words.fill(word);
        return;
    }
    let mut value = first_word(key, page);
    for word in words {
        *word = value;
        value = value.wrapping_add(STEP);
    }
}

pub fn holds(words: &[u64], key: u64, page: usize) -> bool {
    if let Some(word) = repeated_word(key) {
        return words.iter().all(|&w| w == word);
    }
    let mut value = first_word(key, page);
    words.iter().all(|&word| {
        let right = word == value;
        value = value.wrapping_add(STEP);
        right
    })
}

/// Describes a wrong page for a message.
pub fn describe(words: &[u64]) -> String {
    let whole = words.windows(2).all(|w| w[1] == w[0].wrapping_add(STEP));
    match (words.iter().all(|&w| w == words[0]), whole) {
        (true, _) if words[0] == 0 => "zeros".to_string(),
        (true, _) => format!("the word {:#x} all over", words[0]),
        (_, true) => format!("another page or key ({:#x})", words[0]),
        _ => format!("a mixture ({:#x} ... {:#x})", words[0], words[words.len() - 1]),
    }
}

/// Random numbers, the same for the same seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    #[allow(clippy::should_implement_trait)] // they have no end
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_itself_and_no_other() {
        let mut words = [0; WORDS];
        write(&mut words, 7, 3);
        assert!(holds(&words, 7, 3));
        assert!(!holds(&words, 7, 4));
        assert!(!holds(&words, 8, 3));
        assert!(!holds(&words, 7 | REPEATS, 3));
        words[WORDS - 1] ^= 1;
        assert!(!holds(&words, 7, 3));
        assert!(describe(&words).starts_with("a mixture"));
    }

    #[test]
    fn key_zero_is_zeros() {
        let mut words = [9; WORDS];
        assert!(!holds(&words, ZERO, 0));
        write(&mut words, ZERO, 0);
        assert!(holds(&words, ZERO, 5));
        assert_eq!(describe(&words), "zeros");
    }

    #[test]
    fn random_numbers_repeat() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (0..10).map(|_| random.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
