// SPDX-License-Identifier: GPL-2.0-only
//! Random numbers. Each party draws from its own generator, derived from the
//! run's seed, so one party's draws do not change another's.

use rand::{Rng as _, SeedableRng};

/// Portable: the same numbers on every machine.
pub type Rng = rand_pcg::Pcg64Mcg;

/// The `n`-th generator of a run.
pub fn stream(seed: u64, n: u64) -> Rng {
    Rng::seed_from_u64(mix(seed ^ mix(n)))
}

/// A bijection that spreads every bit (the finalizer of splitmix64).
pub fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A number below `n`, by one multiplication. The bias is below 2^-32.
#[inline]
pub fn below(rng: &mut Rng, n: u32) -> u32 {
    scale(rng.next_u64(), u64::from(n)) as u32
}

/// `n` times the fraction that `x` is of 2^64.
#[inline]
pub fn scale(x: u64, n: u64) -> u64 {
    ((u128::from(x) * u128::from(n)) >> 64) as u64
}

/// A fraction in [0, 1), of 53 bits.
#[inline]
pub fn unit(x: u64) -> f64 {
    (x >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_and_repeat() {
        let draw = |seed, n| stream(seed, n).next_u64();
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }

    #[test]
    fn below_covers_its_range_evenly() {
        let mut rng = stream(7, 0);
        let mut hits = [0u32; 10];
        (0..100_000).for_each(|_| hits[below(&mut rng, 10) as usize] += 1);
        // A standard deviation is 95.
        assert!(hits.iter().all(|h| h.abs_diff(10_000) < 500), "{hits:?}");
    }

    #[test]
    fn generators_never_change() {
        // If these change, results are no longer comparable with earlier ones.
        assert_eq!(mix(1), 0x910a_2dec_8902_5cc1);
        let first: Vec<u32> = (0..3).map(|n| below(&mut stream(42, n), 1_000_000)).collect();
        assert_eq!(first, FIRST);
    }

    const FIRST: [u32; 3] = [774_306, 920_229, 17_094];
}
