// SPDX-License-Identifier: GPL-2.0-only
//! Scales of axes, and their ticks.

/// A linear scale: `low` is at `from`, `high` is at `to`.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    pub low: f64,
    pub high: f64,
    pub from: f64,
    pub to: f64,
}

impl Scale {
    pub fn at(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        self.from + share * (self.to - self.from)
    }

    /// Round values within the scale, about `count` of them.
    pub fn ticks(&self, count: usize) -> Vec<f64> {
        let step = step(self.high - self.low, count);
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|i| i as f64 * step).collect()
    }
}

/// The step, 1, 2 or 5 times a power of ten, that cuts `range` into about `count` parts.
fn step(range: f64, count: usize) -> f64 {
    let rough = range / count as f64;
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    let fits = steps.into_iter().find(|s| s * power >= rough * 0.999);
    fits.unwrap_or(10.0) * power
}

/// `high` raised to the next tick of a scale that begins at `low`.
pub fn round_up(low: f64, high: f64, count: usize) -> f64 {
    let step = step(high - low, count);
    (high / step - 1e-9).ceil() * step
}

/// The label of a tick, with no more digits than its axis needs.
pub fn label(tick: f64, ticks: &[f64]) -> String {
    let digits = (0..3).find(|&d| {
        let scaled = 10f64.powi(d);
        ticks.iter().all(|t| ((t * scaled).round() - t * scaled).abs() < 1e-6)
    });
    format!("{tick:.*}", digits.unwrap_or(3) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_in_place() {
        let scale = Scale { low: 1.0, high: 3.0, from: 100.0, to: 0.0 };
        assert_eq!((scale.at(1.0), scale.at(2.0), scale.at(3.0)), (100.0, 50.0, 0.0));
    }

    #[test]
    fn ticks_are_round() {
        let ticks = |low, high, count| Scale { low, high, from: 0.0, to: 1.0 }.ticks(count);
        assert_eq!(ticks(0.0, 100.0, 5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(ticks(1.0, 3.0, 4), [1.0, 1.5, 2.0, 2.5, 3.0]);
        assert_eq!(ticks(0.0, 7.3, 4), [0.0, 2.0, 4.0, 6.0]);
    }

    #[test]
    fn round_up_reaches_the_next_tick() {
        assert_eq!(round_up(0.0, 87.0, 5), 100.0);
        assert_eq!(round_up(1.0, 2.9, 4), 3.0);
        assert_eq!(round_up(0.0, 40.0, 4), 40.0);
    }

    #[test]
    fn labels_have_as_many_digits_as_needed() {
        assert_eq!(label(1.0, &[1.0, 1.5, 2.0]), "1.0");
        assert_eq!(label(20.0, &[0.0, 20.0]), "20");
    }
}
