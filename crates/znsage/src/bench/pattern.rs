// SPDX-License-Identifier: GPL-2.0-only
//! The contents of a page: an arithmetic sequence of words that starts at a hash of
//! seed, page number and generation. Writing or verifying takes two instructions per
//! word. No word fits another place, page or generation, so verification detects
//! stale, misplaced, torn and zeroed pages.
//!
//! Nothing makes such a page smaller. Where pages are to be compressible, the first word
//! is repeated from some place on.

/// Difference of neighbouring words; odd, so that all words of a page differ.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

const M1: u64 = 0xbf58_476d_1ce4_e5b9;
const M2: u64 = 0x94d0_49bb_1331_11eb;

/// Distinguishes a key from noise when decoding.
const TAG: u64 = 0xa5a5;

/// A bijection that spreads every bit (the finalizer of splitmix64).
pub fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(M1);
    x = (x ^ (x >> 27)).wrapping_mul(M2);
    x ^ (x >> 31)
}

fn unmix(mut x: u64) -> u64 {
    x = unshift(x, 31).wrapping_mul(inverse(M2));
    x = unshift(x, 27).wrapping_mul(inverse(M1));
    unshift(x, 30)
}

/// Undoes x ^ (x >> n).
fn unshift(x: u64, n: u32) -> u64 {
    let mut y = x;
    for _ in 0..64 / n {
        y = x ^ (y >> n);
    }
    y
}

/// Inverse of an odd number modulo 2^64: Newton doubles the right bits.
fn inverse(odd: u64) -> u64 {
    let mut x = odd;
    for _ in 0..5 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
    }
    x
}

/// First word of a page: tag (16 bits), page (40), generation (8), mixed.
pub fn key(seed: u64, page: u64, generation: u8) -> u64 {
    mix((TAG << 48 | (page & 0xff_ffff_ffff) << 8 | u64::from(generation)) ^ seed)
}

/// The generation after this one; 0 is "never written".
pub fn next_generation(generation: u8) -> u8 {
    generation.checked_add(1).unwrap_or(1)
}

/// The number of a page's words that differ from each other if compression is to save about
/// `share` of the page.
pub fn distinct(words: usize, share: f64) -> usize {
    ((words as f64 * (1.0 - share)).round() as usize).clamp(1, words)
}

pub fn write(words: &mut [u64], key: u64, distinct: usize) {
    let (first, rest) = words.split_at_mut(distinct);
    let mut word = key;
    for w in first {
        *w = word;
        word = word.wrapping_add(STEP);
    }
    rest.fill(key);
}

/// Compares every word, without an early exit: damage is rare, and branches cost.
pub fn verify(words: &[u64], key: u64, distinct: usize) -> bool {
    let (first, rest) = words.split_at(distinct);
    let mut expected = key;
    let mut difference = 0;
    for w in first {
        difference |= w ^ expected;
        expected = expected.wrapping_add(STEP);
    }
    for w in rest {
        difference |= w ^ key;
    }
    difference == 0
}

/// Describes a page that failed to verify.
pub fn diagnose(words: &[u64], seed: u64, key: u64, distinct: usize) -> String {
    if words.iter().all(|&w| w == 0) {
        return "only zeros".to_string();
    }
    let sound = |key: u64| {
        let expected = |i: usize| match i < distinct {
            true => key.wrapping_add(STEP.wrapping_mul(i as u64)),
            false => key,
        };
        words.iter().enumerate().take_while(|&(i, &w)| w == expected(i)).count()
    };
    let own = sound(key);
    if own > 0 {
        return format!("its own words up to word {own}, then {}", origin(words, own, seed));
    }
    let first = origin(words, 0, seed);
    match sound(words[0]) {
        n if n == words.len() => format!("all of {first}"),
        n => format!("{first} up to word {n}, then {}", origin(words, n, seed)),
    }
}

/// Where the word at an index comes from.
fn origin(words: &[u64], index: usize, seed: u64) -> String {
    let word = words[index];
    let plain = unmix(word.wrapping_sub(STEP.wrapping_mul(index as u64))) ^ seed;
    if plain >> 48 == TAG {
        let (page, generation) = (plain >> 8 & 0xff_ffff_ffff, plain & 0xff);
        format!("page {page} generation {generation}")
    } else if word == 0 {
        "zeros".to_string()
    } else {
        format!("foreign data ({word:#018x})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 0x1234_5678_9abc_def0;

    fn page(number: u64, generation: u8) -> Vec<u64> {
        let mut words = vec![0; 512];
        write(&mut words, key(SEED, number, generation), 512);
        words
    }

    #[test]
    fn mixing_is_invertible() {
        for x in [0, 1, TAG << 48, u64::MAX, SEED] {
            assert_eq!(unmix(mix(x)), x);
        }
    }

    #[test]
    fn page_matches_only_its_own_key() {
        let words = page(7, 1);
        assert!(verify(&words, key(SEED, 7, 1), 512));
        assert!(!verify(&words, key(SEED, 7, 2), 512));
        assert!(!verify(&words, key(SEED, 8, 1), 512));
        assert!(!verify(&words, key(SEED + 1, 7, 1), 512));
    }

    #[test]
    fn every_flipped_bit_is_detected() {
        let good = page(3, 9);
        for word in 0..512 {
            let mut words = good.clone();
            words[word] ^= 1 << (word % 64);
            assert!(!verify(&words, key(SEED, 3, 9), 512), "word {word}");
        }
    }

    #[test]
    fn damage_is_described() {
        let want = key(SEED, 7, 3);
        let tell = |words: &[u64]| diagnose(words, SEED, want, 512);
        assert_eq!(tell(&[0; 512]), "only zeros");
        assert_eq!(tell(&page(7, 2)), "all of page 7 generation 2");
        assert_eq!(tell(&page(9, 1)), "all of page 9 generation 1");

        let mut torn = page(7, 3);
        torn[64..].copy_from_slice(&page(7, 2)[64..]);
        assert_eq!(tell(&torn), "its own words up to word 64, then page 7 generation 2");
        let mut half = page(9, 1);
        half[256..].fill(0);
        assert_eq!(tell(&half), "page 9 generation 1 up to word 256, then zeros");
        assert!(tell(&[5; 512]).starts_with("foreign data (0x0000000000000005) up to word 1"));
    }

    #[test]
    fn compressible_pages_are_verified_too() {
        let (want, distinct) = (key(SEED, 5, 2), distinct(512, 0.75));
        assert_eq!(distinct, 128);
        let mut words = vec![0; 512];
        write(&mut words, want, distinct);
        assert!(verify(&words, want, distinct));
        for word in [0, 127, 128, 511] {
            let mut damaged = words.clone();
            damaged[word] ^= 1;
            assert!(!verify(&damaged, want, distinct), "word {word}");
            let told = diagnose(&damaged, SEED, want, distinct);
            assert_eq!(told.contains(&format!("up to word {word},")), word > 0, "{told}");
        }
    }

    #[test]
    fn generations_never_return_to_unwritten() {
        assert_eq!(next_generation(0), 1);
        assert_eq!(next_generation(255), 1);
    }
}
