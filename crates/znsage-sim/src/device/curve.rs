// SPDX-License-Identifier: GPL-2.0-only
//! Durations that depend on how full a zone is.

use crate::time::{from_us, Ns};

/// A curve of straight lines: time by blocks written.
#[derive(Clone, Debug)]
pub(super) struct Curve(Vec<(u32, Ns)>);

impl Curve {
    /// Points are (part of the capacity, microseconds). The result is in integers: no
    /// float may decide the order of events.
    pub fn new(points: &[(f64, f64)], capacity: u32) -> Curve {
        let at = |part: f64| (part * f64::from(capacity)).round() as u32;
        Curve(points.iter().map(|(part, us)| (at(*part), from_us(*us))).collect())
    }

    pub fn at(&self, written: u32) -> Ns {
        let after = self.0.partition_point(|(at, _)| *at < written);
        let (x1, y1) = self.0[after.min(self.0.len() - 1)];
        if after == 0 || x1 <= written {
            return y1;
        }
        let (x0, y0) = self.0[after - 1];
        let part = |dy: Ns| (u128::from(dy) * u128::from(written - x0) / u128::from(x1 - x0)) as Ns;
        match y1 >= y0 {
            true => y0 + part(y1 - y0),
            false => y0 - part(y0 - y1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Curve;

    #[test]
    fn curves_are_straight_between_points() {
        let curve = Curve::new(&[(0.0, 1.0), (0.5, 3.0), (1.0, 2.0)], 100);
        let at = [0, 1, 25, 50, 75, 99, 100].map(|written| curve.at(written));
        assert_eq!(at, [1000, 1040, 2000, 3000, 2500, 2020, 2000]);
        // The largest zone, the longest time.
        let long = Curve::new(&[(0.0, 1e9), (1.0, 0.0)], 1 << 28);
        assert_eq!(long.at(1 << 27), 500_000_000_000);
        // Points that fall on the same block.
        let steep = Curve::new(&[(0.0, 1.0), (0.001, 3.0), (1.0, 2.0)], 100);
        assert_eq!([0, 1, 100].map(|written| steep.at(written)), [1000, 2990, 2000]);
    }
}
