// SPDX-License-Identifier: GPL-2.0-only
//! Distributions.
//!
//! Built on the `libm` crate, because results must be identical bit for bit on
//! every machine: the standard library takes logarithms and powers from the
//! local C library. So does `rand_distr::Zipf` here: hdrhistogram turns on the
//! feature `std` of num-traits.

use libm::{exp, expm1, log, log1p, pow};

/// Ranks 1 to n, rank k with a probability proportional to k^-s, by
/// rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to
/// generate variates from monotone discrete distributions", 1996): no table,
/// whatever n is.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: f64,
    s: f64,
    /// Integral of the hat from 1/2 to 3/2 and to n + 1/2.
    low: f64,
    high: f64,
    /// A point this close to its rank is accepted at once.
    sure: f64,
}

impl Zipf {
    /// Ranks 1 to `n` (at least 1) with exponent `s` > 0.
    pub fn new(n: u64, s: f64) -> Self {
        assert!(n > 0 && s > 0.0);
        let mut z = Zipf { n: n as f64, s, low: 0.0, high: 0.0, sure: 0.0 };
        z.low = z.integral(1.5) - 1.0;
        z.high = z.integral(n as f64 + 0.5);
        z.sure = 2.0 - z.inverse(z.integral(2.5) - z.hat(2.0));
        z
    }

    fn hat(&self, x: f64) -> f64 {
        exp(-self.s * log(x))
    }

    /// (x^(1-s) - 1) / (1 - s), also where s is 1 or near.
    fn integral(&self, x: f64) -> f64 {
        let l = log(x);
        let t = (1.0 - self.s) * l;
        if t.abs() > 1e-8 {
            expm1(t) / t * l
        } else {
            l * (1.0 + t * 0.5 * (1.0 + t / 3.0))
        }
    }

    fn inverse(&self, y: f64) -> f64 {
        let t = (y * (1.0 - self.s)).max(-1.0);
        let factor = if t.abs() > 1e-8 { log1p(t) / t } else { 1.0 - t * (0.5 - t * (1.0 / 3.0)) };
        exp(factor * y)
    }

    /// How likely a rank is, as compared with others.
    pub fn weight(&self, rank: u64) -> f64 {
        self.hat(rank as f64)
    }

    /// A rank; `draw` gives fractions in [0, 1).
    pub fn rank(&self, mut draw: impl FnMut() -> f64) -> u64 {
        loop {
            let u = self.high + draw() * (self.low - self.high);
            let x = self.inverse(u);
            let k = (x + 0.5).floor().clamp(1.0, self.n);
            if k - x <= self.sure || u >= self.integral(k + 0.5) - self.hat(k) {
                return k as u64;
            }
        }
    }
}

/// Spreads ranks over items: a bijection of 0..n.
#[derive(Clone, Copy, Debug)]
pub struct Scatter {
    n: u64,
    factor: u64,
    shift: u64,
}

impl Scatter {
    /// Over `n` items, below 2^32.
    pub fn new(n: u64, seed: u64) -> Self {
        assert!(n > 0 && n < 1 << 32);
        // Near n times the golden section, which spreads any prefix of the ranks evenly.
        let mut factor = ((n as f64 * 0.618_033_988_749_895) as u64).max(1);
        while gcd(factor, n) != 1 {
            factor += 1;
        }
        Scatter { n, factor, shift: seed % n }
    }

    /// The item of a rank, counted from 0.
    pub fn item(&self, rank: u64) -> u64 {
        (rank * self.factor + self.shift) % self.n
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

/// Generalized extreme value distribution: the quantile of `u` in (0, 1).
pub fn gev(u: f64, location: f64, scale: f64, shape: f64) -> f64 {
    location + scale * (pow(-log(u), -shape) - 1.0) / shape
}

/// Generalized Pareto distribution: the quantile of `u` in [0, 1).
pub fn pareto(u: f64, location: f64, scale: f64, shape: f64) -> f64 {
    location + scale * (pow(1.0 - u, -shape) - 1.0) / shape
}

/// Sizes of keys and values in the ETC pool (Atikoglu et al., "Workload
/// Analysis of a Large-Scale Key-Value Store", SIGMETRICS 2012), with the
/// numbers of leverich/mutilate@d65c6ef7, `Generator.cc`.
pub mod etc {
    use super::{gev, pareto};

    /// P(value size = i) for i from 0 to 14 bytes; the rest is a generalized
    /// Pareto distribution.
    const SMALL: [f64; 15] = [
        0.00536, 0.00047, 0.17820, 0.09239, 0.00018, 0.02740, 0.00065, 0.00606, 0.00023, 0.00837,
        0.00837, 0.08989, 0.00092, 0.00326, 0.01980,
    ];

    /// Bytes of the key at quantile `u`; at most 250, as memcached has it.
    pub fn key_size(u: f64) -> u32 {
        // 0 would be minus infinity.
        let size = gev(u.max(1e-12), 30.7984, 8.20449, 0.078688);
        size.round().clamp(1.0, 250.0) as u32
    }

    /// Bytes of the value at quantile `u`, at most a megabyte.
    pub fn value_size(u: f64) -> u32 {
        let mut below = 0.0;
        for (size, p) in SMALL.iter().enumerate() {
            below += p;
            if u < below {
                return size as u32;
            }
        }
        let rest = (u - below) / (1.0 - below);
        pareto(rest, 15.0, 214.476, 0.348238).round().clamp(15.0, 1_048_576.0) as u32
    }

    /// Writes for each read: 30 GETs to a SET.
    pub const SET_RATIO: f64 = 1.0 / 31.0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;
    use rand::Rng as _;

    fn close(is: f64, want: f64, by: f64) {
        assert!((is - want).abs() <= by * want.abs(), "{is}, should be {want}");
    }

    #[test]
    fn zipf_ranks_are_as_likely_as_they_should_be() {
        for s in [0.5, 0.99, 1.0, 1.3] {
            let (n, draws) = (1000u64, 2_000_000);
            let zipf = Zipf::new(n, s);
            let mut rng = rng::stream(11, (s * 100.0) as u64);
            let mut hits = vec![0u64; n as usize + 1];
            for _ in 0..draws {
                hits[zipf.rank(|| rng::unit(rng.next_u64())) as usize] += 1;
            }
            assert_eq!(hits[0], 0);
            let norm: f64 = (1..=n).map(|k| (k as f64).powf(-s)).sum();
            for k in [1, 2, 3, 10, 100] {
                let p = (k as f64).powf(-s) / norm;
                let sigma = (p / draws as f64).sqrt();
                let is = hits[k as usize] as f64 / draws as f64;
                assert!((is - p).abs() < 5.0 * sigma, "s {s} rank {k}: {is}, should be {p}");
            }
            let tail: u64 = hits[501..].iter().sum();
            let want: f64 = (501..=n).map(|k| (k as f64).powf(-s)).sum::<f64>() / norm;
            close(tail as f64 / draws as f64, want, 0.02);
        }
    }

    #[test]
    fn zipf_of_one_rank_is_that() {
        let mut rng = rng::stream(1, 1);
        let zipf = Zipf::new(1, 0.99);
        assert!((0..100).all(|_| zipf.rank(|| rng::unit(rng.next_u64())) == 1));
    }

    #[test]
    fn scatter_is_a_bijection() {
        for n in [1, 2, 7, 100, 4096, 10_007] {
            let scatter = Scatter::new(n, 99);
            let mut seen: Vec<u64> = (0..n).map(|r| scatter.item(r)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..n), "{n}");
        }
    }

    fn quantiles(f: impl Fn(f64) -> u32) -> Vec<u32> {
        let n = 1_000_000;
        let mut all: Vec<u32> = (0..n).map(|i| f((f64::from(i) + 0.5) / f64::from(n))).collect();
        all.sort_unstable();
        all
    }

    /// The expected values follow from the definition by integration.
    #[test]
    fn etc_sizes_have_the_published_shape() {
        let keys = quantiles(etc::key_size);
        let mean = |v: &[u32]| v.iter().map(|&x| f64::from(x)).sum::<f64>() / v.len() as f64;
        close(mean(&keys), 36.2, 0.01);
        close(f64::from(keys[500_000]), 33.8, 0.02);
        close(f64::from(keys[990_000]), 76.0, 0.02);

        let values = quantiles(etc::value_size);
        close(mean(&values), 194.0, 0.02);
        assert_eq!(values[500_000], 39);
        assert_eq!(values[750_000], 214);
        close(f64::from(values[990_000]), 1899.0, 0.01);
        close(f64::from(values[999_000]), 4972.0, 0.01);
        let small = values.iter().filter(|&&v| v < 15).count();
        close(small as f64 / 1e6, 0.44155, 0.001);
    }
}
