// SPDX-License-Identifier: GPL-2.0-only
//! Mean, median, deviation, intervals, ratios.

/// A mean and the interval that holds the true one with 95 %, if the sample's values
/// come from a normal distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean of the sample.
    pub mean: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The mean; None of an empty sample.
pub fn mean(sample: &[f64]) -> Option<f64> {
    (!sample.is_empty()).then(|| sample.iter().sum::<f64>() / sample.len() as f64)
}

/// The median; None of an empty sample. Of an even number of values it is the mean of the
/// middle two.
pub fn median(sample: &[f64]) -> Option<f64> {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => Some(sorted[middle]),
        _ => mean(sorted.get(middle.checked_sub(1)?..=middle)?),
    }
}

/// The smallest value that `share` of the sample, from 0 to 1, do not exceed; None of an
/// empty sample.
pub fn percentile(sample: &[f64], share: f64) -> Option<f64> {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(at.clamp(1, sorted.len().max(1)) - 1).copied()
}

/// Mean and standard deviation of a sample of two or more.
pub fn moments(sample: &[f64]) -> (f64, f64) {
    let n = sample.len() as f64;
    let mean = mean(sample).unwrap_or(f64::NAN);
    let squares: f64 = sample.iter().map(|x| (x - mean) * (x - mean)).sum();
    (mean, (squares / (n - 1.0)).sqrt())
}

/// The mean with its interval; of a single value the interval is the value. None of an
/// empty sample.
pub fn estimate(sample: &[f64]) -> Option<Estimate> {
    if sample.len() < 2 {
        return mean(sample).map(|mean| Estimate { mean, low: mean, high: mean });
    }
    let (mean, deviation) = moments(sample);
    let half = t95(sample.len() - 1) * deviation / (sample.len() as f64).sqrt();
    Some(Estimate { mean, low: mean - half, high: mean + half })
}

/// Student's t of a two-sided interval of 95 %, by the degrees of freedom (from any table
/// of it). Beyond the table it is a little too large.
fn t95(freedom: usize) -> f64 {
    const TABLE: [f64; 20] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    ];
    TABLE[freedom.clamp(1, TABLE.len()) - 1]
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

    #[test]
    fn median_and_percentiles_are_of_the_sorted_sample() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!((median(&[]), percentile(&[], 0.5)), (None, None));
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        for (share, value) in [(0.0, 1.0), (0.5, 50.0), (0.99, 99.0), (0.991, 100.0), (1.0, 100.0)]
        {
            assert_eq!(percentile(&hundred, share), Some(value), "{share}");
        }
    }

    #[test]
    fn an_interval_is_wider_with_fewer_values() {
        let of = |sample: &[f64]| estimate(sample).unwrap();
        assert_eq!(of(&[2.0]), Estimate { mean: 2.0, low: 2.0, high: 2.0 });
        let three = of(&[1.0, 2.0, 3.0]);
        // 4.303 / sqrt(3)
        assert!((three.high - 2.0 - 2.4843).abs() < 1e-3 && three.low + three.high == 4.0);
        let six = of(&[1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
        assert!(six.high < three.high && six.mean == 2.0);
        assert_eq!(estimate(&[]), None);
    }
}
