// SPDX-License-Identifier: GPL-2.0-only
//! Mean, deviation, ratios.

/// The mean; None of an empty sample.
pub fn mean(sample: &[f64]) -> Option<f64> {
    (!sample.is_empty()).then(|| sample.iter().sum::<f64>() / sample.len() as f64)
}

/// Mean and standard deviation of a sample of two or more.
pub fn moments(sample: &[f64]) -> (f64, f64) {
    let n = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / n;
    let squares: f64 = sample.iter().map(|x| (x - mean) * (x - mean)).sum();
    (mean, (squares / (n - 1.0)).sqrt())
}

/// The percentage above 1 of a ratio, which is given as its logarithm.
pub fn percent(log: f64) -> f64 {
    libm::expm1(log) * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_a_sample() {
        assert_eq!(moments(&[1.0, 2.0, 3.0, 4.0, 5.0]), (3.0, 2.5f64.sqrt()));
        assert_eq!((mean(&[1.0, 2.0]), mean(&[])), (Some(1.5), None));
        assert!((percent(libm::log(1.25)) - 25.0).abs() < 1e-9);
    }
}
