// SPDX-License-Identifier: GPL-2.0-only
//! SplitMix64: random numbers that never change, so that a seed always means the same run.

pub struct Rng(u64);

/// A seed, or another number, from the environment.
pub fn from_env(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

impl Rng {
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `n`, which is not 0.
    pub fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.next() as u32) * u64::from(n)) >> 32) as u32
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high - low + 1)
    }

    /// From `low` up to one of `high`, but at least `low`.
    pub fn up_to(&mut self, low: u32, high: &[u32]) -> u32 {
        let high = self.pick(high).max(low);
        self.between(low, high)
    }

    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u32) as usize
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }

    pub fn percent(&mut self, p: u32) -> bool {
        self.below(100) < p
    }

    /// Takes a random element out of a list.
    pub fn take<T>(&mut self, from: &mut Vec<T>) -> T {
        let i = self.index(from.len());
        from.swap_remove(i)
    }
}
